"""Special functions, orthogonal polynomials, distances, draws of categories, views by strides in compiled graphs: beside eager, no Python between kernels."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing import guard_pages

S = torch.special
EDGES = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, 2.0, -1.0, -2.5, 1e-30, 700.0]
ONE = [
    *(
        "bessel_j0",
        "bessel_j1",
        "bessel_y0",
        "bessel_y1",
        "modified_bessel_i0",
        "modified_bessel_i1",
        "modified_bessel_k0",
        "modified_bessel_k1",
    ),
    *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "airy_ai"),
]
TWO = ["gammainc", "gammaincc", "zeta"]
POLYNOMIALS = [f"{k}_polynomial_{x}" for k in ("chebyshev", "shifted_chebyshev") for x in "tuvw"]
POLYNOMIALS += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]


def check(fn, args, python_calls, tolerance=0.0):
    torch.compiler.reset()
    got, want = torch.compile(fn, fullgraph=True)(*args), fn(*args)
    many = (tuple, list)
    for g, w in zip(got if isinstance(got, many) else [got], want if isinstance(want, many) else [want], strict=True):
        assert (g.dtype, g.shape, g.stride()) == (w.dtype, w.shape, w.stride())
        torch.testing.assert_close(g, w, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert not python_calls


def points(dtype, *shape):
    x = torch.tensor(np.random.default_rng(0).normal(size=(int(np.prod(shape)),)) * 8).to(dtype)
    x[: len(EDGES)] = torch.tensor(EDGES).to(dtype)
    return x.reshape(shape)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("name", [*ONE, *TWO, *POLYNOMIALS])
def test_the_same_loops_as_eager(name, dtype, python_calls):
    """The bits of the eager kernel, which are SciPy's."""
    fn = getattr(S, name)
    if dtype is torch.int64 and name.startswith("gammainc"):
        return
    x = points(torch.float64, 9, 70).nan_to_num(3, 4, -5).to(dtype) if dtype is torch.int64 else points(dtype, 9, 70)
    if name in ONE:
        check(fn, (x,), python_calls)
        check(lambda x: fn(x.t()) * 2, (x,), python_calls)
        check(fn, (x[:0],), python_calls)
        return
    other = x.flip(0) if name in TWO else (torch.arange(70) % 12 - 2).to(x.dtype)
    check(fn, (x, other), python_calls)
    check(lambda x: fn(x, other[:1]), (x,), python_calls)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_expansions(dtype, python_calls):
    x = points(dtype, 630)
    check(S.spherical_bessel_j0, (x,), python_calls, 1e-6 if dtype is torch.float32 else 1e-15)
    for n in range(5):
        check(
            lambda x, n=n: S.polygamma(n, x), (x.abs() + 0.5,), python_calls, 1e-6 if dtype is torch.float32 else 1e-14
        )
    check(lambda x: torch.frexp(x), (x,), python_calls)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, float("inf")])
def test_distances(p, python_calls):
    """Summed in double precision; eager batches are summed in their own."""
    a, b = points(torch.float32, 7, 5).nan_to_num(1, 2, 3), points(torch.float32, 2, 9, 5).nan_to_num(1, 2, 3)
    check(lambda a, b: torch.cdist(a, b, p=p), (a, b[0]), python_calls)
    check(lambda a, b: torch.cdist(a, b, p=p), (a, b), python_calls, 2e-6)
    check(lambda a: torch.cdist(a.t(), a.t(), p=p), (a,), python_calls, 2e-6)
    check(lambda a, b: torch.cdist(a, b[:0], p=p), (a, b[0]), python_calls)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_draws_with_replacement(dtype, python_calls):
    """The numbers of the eager draw, and the stream goes on where it does."""
    w = torch.linspace(0.0, 1, 24).reshape(4, 6).to(dtype)
    for fn in (
        lambda w: torch.multinomial(w, 50, replacement=True),
        lambda w: torch.multinomial(w[1], 9, replacement=True),
        lambda w: torch.multinomial(w.t().contiguous().softmax(1), 2, replacement=True) + 1,
    ):
        torch.compiler.reset()
        torch.manual_seed(7)
        want = [fn(w), fn(w), torch.rand(3)]
        torch.manual_seed(7)
        compiled = torch.compile(fn, fullgraph=True)
        got = [compiled(w), compiled(w), torch.rand(3)]
        assert all(map(torch.equal, got, want)) and not python_calls


def test_draws_are_refused():
    for bad in ([1.0, -1.0], [1.0, float("nan")], [float("inf"), 1.0], [0.0, 0.0]):
        fn = lambda w: torch.multinomial(w, 5, replacement=True)  # noqa: E731
        torch.compiler.reset()
        with pytest.raises(RuntimeError) as want:
            fn(torch.tensor(bad))
        with pytest.raises(RuntimeError) as got:
            torch.compile(fn)(torch.tensor(bad))
        assert str(got.value) == str(want.value)


def test_a_draw_is_pytorch_s():
    """Numbers of PyTorch 2.13 for this seed."""
    torch.manual_seed(3)
    w = torch.linspace(0.1, 1, 24).reshape(4, 6)
    drawn = torch.multinomial(w, 5, replacement=True).tolist()
    assert drawn == [[0, 2, 5, 1, 5], [4, 1, 3, 2, 4], [1, 3, 2, 2, 5], [0, 0, 3, 5, 0]]


DRAWN = {
    "poisson": lambda x: torch.poisson(x * 20),
    "poisson of a transposed one": lambda x: torch.poisson(x.t() * 3) + 1,
    "gamma": lambda x: torch._standard_gamma(x + 0.01),
    "binomial": lambda x: torch.binomial((x * 60).round(), x[:1].clamp(0.01, 0.99).expand_as(x)),
    "dirichlet": lambda x: torch._sample_dirichlet(x + 0.1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", DRAWN)
def test_draws_by_rejection(name, dtype, python_calls):
    """The same numbers as eager (shares of a total to an ulp or two), and the stream goes on where it does."""
    x, fn = points(dtype, 6, 7).nan_to_num(0.3, 2, 1).abs().clamp(0, 2), DRAWN[name]
    torch.compiler.reset()
    compiled = torch.compile(fn, fullgraph=True)
    results = []
    for call in (fn, compiled):
        torch.manual_seed(11)
        results.append([call(x), call(x), torch.rand(3)])
    for want, got in zip(*results):
        torch.testing.assert_close(got, want, rtol=1e-6 if name == "dirichlet" else 0, atol=0)
    assert not python_calls


def test_rates_are_refused():
    for bad in (-1.0, float("nan")):
        for fn in (torch.poisson, torch.compile(torch.poisson)):
            with pytest.raises(RuntimeError, match="invalid Poisson rate"):
                fn(torch.tensor([1.0, bad]))


def test_a_generator_of_one_s_own():
    """Its stream is the default one's for the same seed."""
    for draw in (
        lambda g: torch.poisson(torch.full((9,), 15.0), generator=g),
        lambda g: torch._standard_gamma(torch.full((9,), 0.4), generator=g),
    ):
        torch.manual_seed(5)
        assert torch.equal(draw(None), draw(torch.Generator().manual_seed(5)))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool], ids=str
)
def test_mode(dtype, python_calls):
    x = (torch.arange(210) * 7919 % 13 % 5).reshape(5, 6, 7).to(dtype)
    if dtype.is_floating_point:
        x[0, 0, :4] = float("nan")
    for dim, keep in [(0, False), (1, True), (-1, False)]:
        check(lambda x: torch.mode(x, dim, keep), (x,), python_calls)
    check(lambda x: torch.mode(x.t() * 1), (x[0],), python_calls)


STRIDED = {
    "of an argument": lambda x: torch.as_strided(x, (2, 3), (1, 2), 1) * 2,
    "of a result": lambda x: torch.as_strided(x * 2, (2, 3), (1, 2), 1),
    "overlapping": lambda x: torch.as_strided(x + 1, (4, 3), (1, 1)).sum(0),
    "a copy": lambda x: torch.as_strided_copy(x, (2, 2), (2, 1)),
    "of a transposed one": lambda x: torch.as_strided(x.t() * 1, (2, 2), (3, 1), 2) * 2,
}


@pytest.mark.parametrize("name", STRIDED)
def test_views_by_strides(name, python_calls):
    check(STRIDED[name], (points(torch.float32, 4, 6).nan_to_num(1, 2, 3),), python_calls)


def guarded() -> None:
    from flambeau.base import kernels, ufuncs

    for place in (guard_pages.GuardPages(False), guard_pages.GuardPages(True)):
        for n in (1, 5, 511, 513, 3000):
            for wide, dtype in enumerate((np.float32, np.float64)):
                x, y, out = (place(np.linspace(k + 0.5, 3, n).astype(dtype)) for k in range(3))
                for name in ("j0", "gammainc", "airy"):
                    slot = ufuncs.slot_of(name, wide)
                    ufuncs.ready(slot)
                    kernels.ufunc([x, y] if name == "gammainc" else [x], [out], slot=slot)
                degrees = place((np.arange(n) % 5).astype(dtype))
                kernels.polynomial([x, degrees], [out], family=kernels.Polynomial.CHEBYSHEV_T, f64=wide)
                a, b = place(np.ones((2, n, 3), dtype)), place(np.zeros((2, 4, 3), dtype))
                made = place(np.zeros((2, n, 4), dtype))
                kernels.distances([a, b], [made], f64=wide, p=2.0, pairs=False)
                assert np.allclose(made, 3**0.5)
                one, each = place(np.ones((1, n, 3), dtype)), place(np.ones(n * (n - 1) // 2, dtype))
                kernels.distances([one, one], [each], f64=wide, p=2.0, pairs=True)
                assert not each.any()
                p, u = place(np.ones((2, n), dtype)), place(np.linspace(0, 1, 14).reshape(2, 7))
                drawn = place(np.zeros((2, 7), np.int64))
                kernels.categories([p, u], [drawn], f64=wide)
                assert 0 <= drawn.min() and drawn.max() == n - 1


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_kernels_stay_in_their_arrays():
    guard_pages.run_alone(__file__, "guarded()")


def test_a_graph_without_its_loop_is_refused():
    from flambeau import _runtime
    from flambeau.base import kernels

    for slot in (-1, 255, 256):
        with pytest.raises(MemoryError):
            kernels.ufunc([np.ones(3)], [np.ones(3)], slot=slot)
    with pytest.raises(ValueError, match="ufunc"):
        _runtime.use_ufunc(0, np.mean, "f->f")
    with pytest.raises(ValueError, match="no loop"):
        _runtime.use_ufunc(0, np.sin, "l->l")
