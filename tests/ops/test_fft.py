"""Fourier transforms beside NumPy's in long double: lengths, dimensions, norms, layouts, what is not finite, and few lines of many."""

import itertools

import numpy as np
import pytest

import flambeau as torch
from flambeau.base import fft as native
from flambeau.base import kernels
from flambeau.base.kernels import Transform
from flambeau.testing import guard_pages

LENGTHS = [*range(1, 45), 49, 55, 64, 77, 91, 100, 121, 127, 128, 143, 169, 192, 243, 256, 320]
LONG = [512, 625, 1000, 1024, 1155, 2187, 4096]
NAMES = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
EPS = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}


def numbers(shape, dtype, real, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape) if real else rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return torch.tensor(a, dtype=dtype if real else dtype.to_complex())


def exactly(name, x, *args, **kw):
    """NumPy's, in long double."""
    a = x.resolve_conj().numpy()
    return getattr(np.fft, name)(a.astype(np.longdouble if a.dtype.kind == "f" else np.clongdouble), *args, **kw)


def near(got, want, dtype, n):
    """The error of the whole, against its norm, is of a few roundings for each doubling of the length."""
    assert tuple(got.shape) == want.shape
    error = np.linalg.norm((got.resolve_conj().numpy() - want).ravel().astype(complex))
    assert error <= 0.8 * EPS[dtype] * (2 + np.log2(max(n, 1))) * np.linalg.norm(want.ravel().astype(complex)), n


@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_lengths(name, dtype):
    for n in LENGTHS + LONG:
        for lines in (1, 33) if n < 200 else (5,):
            real, halved = name in ("rfft", "ihfft"), name in ("irfft", "hfft")
            x = numbers((lines, n // 2 + 1 if halved else n), dtype, real, n)
            size = {"n": n} if halved else {}
            near(getattr(torch.fft, name)(x, **size), exactly(name, x, **size), dtype, n)
            turned = x.t().contiguous()
            near(getattr(torch.fft, name)(turned, dim=0, **size).t(), exactly(name, x, **size), dtype, n)
            if name == "fft":
                near(torch.fft.fft(x.real), exactly("fft", x.real), dtype, n)


DIMS = [
    ((4, 6), (0, 1)),
    ((4, 6), (1, 0)),
    ((3, 5, 7), (0, 2)),
    ((2, 8, 3, 10), (3, 1)),
    ((5, 1, 9), (1, 2)),
    ((17, 32), (0, 1)),
    ((256, 34), (0, 1)),
    ((6, 17, 4), (1, 2)),  # SciPy's
]


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_dimensions_and_norms(name, norm):
    for dtype, (shape, dims) in itertools.product(EPS, DIMS):
        x = numbers(shape, dtype, name == "rfftn")
        layouts = [x, x.transpose(0, 1).contiguous().transpose(0, 1), x.flip(0), x[..., None].expand(*shape, 2)[..., 1]]
        for y in layouts:
            near(getattr(torch.fft, name)(y, dim=dims, norm=norm), exactly(name, y, axes=dims, norm=norm), dtype, 64)
        if not name.startswith("r"):
            near(
                getattr(torch.fft, name)(x.mH.mH, dim=dims, norm=norm),
                exactly(name, x, axes=dims, norm=norm),
                dtype,
                64,
            )
        else:
            near(torch.fft.fftn(x, dim=dims, norm=norm), exactly("fftn", x, axes=dims, norm=norm), dtype, 64)


def test_cut_and_padded():
    for dtype, n in itertools.product(EPS, (1, 3, 8, 12, 13, 24, 31)):
        x = numbers((3, 12), dtype, False)
        near(torch.fft.fft(x, n=n), exactly("fft", x, n=n), dtype, n)
        near(torch.fft.irfft(x, n=n), exactly("irfft", x, n=n), dtype, n)
        near(torch.fft.rfft(x.real, n=n, dim=0), exactly("rfft", x.real, n=n, axis=0), dtype, n)


def test_layouts_that_no_vector_reads():
    """Strides of both sides apart, unaligned memory, the result of out= in its own order."""
    rng = np.random.default_rng(0)
    big = torch.tensor(rng.standard_normal((40, 9, 50)) + 0j)
    x = big[::2, ::3, ::5]
    near(torch.fft.fft(x, dim=1), exactly("fft", x, axis=1), torch.float64, 3)
    near(torch.fft.fft(x, dim=0), exactly("fft", x, axis=0), torch.float64, 20)
    memory = np.zeros(16 * 30 + 4, np.uint8)[4:].view(np.float64).reshape(6, 10)
    memory[...] = rng.standard_normal((6, 10))
    y = torch.from_numpy(memory)
    near(torch.fft.rfft(y), exactly("rfft", y), torch.float64, 10)
    out = torch.empty(20, 40, dtype=torch.complex128)[:, ::4].t()
    z = big[:10, 0, :20]
    assert torch.fft.fft(z, dim=0, out=out) is out
    near(out, exactly("fft", z, axis=0), torch.float64, 10)


def test_what_is_not_finite_stays_in_its_line():
    for n, dtype, bad in itertools.product((6, 7, 16, 256, 768), EPS, (np.inf, np.nan)):
        x = numbers((37, n), dtype, False, n)
        good = torch.fft.fft(x), torch.fft.rfft(x.real), torch.fft.irfft(x[:, : n // 2 + 1], n=n)
        x[5, 2] = complex(bad, 0)
        rows = [r for r in range(37) if r != 5]
        for got, want in zip(
            (torch.fft.fft(x), torch.fft.rfft(x.real), torch.fft.irfft(x[:, : n // 2 + 1], n=n)), good
        ):
            assert torch.equal(got[rows], want[rows]) and not torch.isfinite(got[5]).all()


def test_ends_of_the_spectrum_of_real_numbers_are_real():
    for n, dtype in itertools.product((1, 2, 9, 10, 256, 512), EPS):
        y = torch.fft.rfft(numbers((20, n), dtype, True))
        assert (y[:, 0].imag == 0).all() and (n % 2 or (y[:, -1].imag == 0).all())
        z = numbers((20, n // 2 + 1), dtype, False)
        ends = z.clone()
        ends[:, 0] += 3j
        if n % 2 == 0:
            ends[:, -1] += 5j
        assert torch.equal(torch.fft.irfft(z, n=n), torch.fft.irfft(ends, n=n))


def test_no_worse_than_pocketfft():
    scipy_fft = pytest.importorskip("scipy.fft")
    for n in (64, 1000, 1024, 1155, 4096):
        x = numbers((20, n), torch.float32, False)
        want = exactly("fft", x)
        ours, theirs = (np.linalg.norm(y - want) for y in (torch.fft.fft(x).numpy(), scipy_fft.fft(x.numpy())))
        assert ours <= 1.5 * theirs


def test_results_do_not_depend_on_threads():
    x, threads = numbers((100, 1024), torch.float32, False), torch.get_num_threads()
    try:
        found = []
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            found.append((torch.fft.fft(x), torch.fft.irfft(x), torch.fft.fft2(x)))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


COMPILED = {
    "fft": lambda x: torch.fft.fft(x),
    "ifft2": lambda x: torch.fft.ifft2(x + 1),
    "rfft": lambda x: torch.fft.rfft(x.real * 2, dim=0),
    "fft of real numbers": lambda x: torch.fft.fft(x.real).abs(),
    "fftn of real numbers": lambda x: torch.fft.fftn(x.real, norm="ortho"),
    "irfft": lambda x: torch.fft.irfft(x, n=12).sin(),
    "there and back": lambda x: torch.fft.irfft(torch.fft.rfft(x.real) * 3, n=x.shape[1]),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    f = COMPILED[name]
    for dtype, shape in itertools.product(EPS, ((6, 7), (33, 16), (1, 8))):
        # NOTE: the function has one code object, so what is captured of it sees other sizes each time; dynamic ones are SciPy's.
        compiled = torch.compile(lambda x: f(x), dynamic=False)
        before = torch._inductor.metrics.num_fallbacks
        for x in (numbers(shape, dtype, False), numbers(shape[::-1], dtype, False).t()):
            got, want = compiled(x), f(x)
            assert got.stride() == want.stride()
            torch.testing.assert_close(got, want)
        assert torch._inductor.metrics.num_fallbacks == before


def test_compiled_gradients():
    f = lambda x: (torch.fft.rfft(x, norm="ortho").abs() ** 2).sum() + torch.fft.irfft(torch.fft.fft(x)).sum()  # noqa: E731
    x, y = (numbers((5, 12), torch.float64, True).requires_grad_() for _ in range(2))
    f(x).backward()
    torch.compile(f)(y).backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_more_lengths_than_plans():
    for _, n in itertools.product(range(2), range(2, 60)):
        x = numbers((2, n), torch.float64, False)
        near(torch.fft.fft(x), exactly("fft", x), torch.float64, n)


def test_lengths_whose_tables_are_not_all_kept():
    for n in (m << k for m, k in itertools.product((1, 3, 5, 7, 9, 15), (15, 16))):
        x = numbers((n,), torch.float64, False)
        torch.testing.assert_close(torch.fft.ifft(torch.fft.fft(x)), x)


@pytest.mark.parametrize("seed", range(40))
def test_at_random(seed):
    rng = np.random.default_rng(seed)
    shape = [int(n) for n in rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 24, 32, 64], rng.integers(1, 5))]
    dims = [int(d) for d in rng.permutation(len(shape))[: rng.integers(1, len(shape) + 1)]]
    x = numbers(shape, torch.float64, seed % 2 == 0, seed).permute(*map(int, rng.permutation(len(shape))))
    name = str(rng.choice(["fftn", "ifftn", "irfftn", "rfftn"][: 4 if seed % 2 == 0 else 3]))
    sizes = [int(n) for n in rng.integers(1, 30, len(dims))] if name == "irfftn" or seed % 3 == 0 else None
    norm = [None, "ortho", "forward"][seed % 5 % 3]
    got = getattr(torch.fft, name)(x, s=sizes, dim=dims, norm=norm)
    near(got, exactly(name, x, sizes, dims, norm), torch.float64, 1 << 10)


GUARDED = 1, 2, 3, 5, 8, 12, 15, 22, 26, 32, 49, 64, 256, 512


def transforms(lengths=GUARDED, counts=(1, 3, 16, 21)) -> None:
    rng = np.random.default_rng(0)
    for dtype, n, lines in itertools.product("fd", lengths, counts):
        x = rng.standard_normal((lines, n, 2)).astype(dtype).view(np.dtype(dtype.upper()))[..., 0]
        half = np.ascontiguousarray(x[:, : n // 2 + 1])
        for place, turned in itertools.product((guard_pages.GuardPages(False), guard_pages.GuardPages(True)), (0, 1)):
            dim = 1 - turned
            turn = (lambda a: np.ascontiguousarray(a.T)) if turned else np.ascontiguousarray
            for kind, given, want in [
                (Transform.FORWARD, x, np.fft.fft(x)),
                (Transform.INVERSE, x, np.fft.ifft(x, norm="forward")),
                (Transform.FROM_REAL, x.real, np.fft.rfft(x.real)),
                (Transform.FROM_REAL_WHOLE, x.real, np.fft.fft(x.real)),
                (Transform.TO_REAL, half, np.fft.irfft(half, n, norm="forward")),
            ]:
                out = place(turn(np.zeros(want.shape, want.dtype)))
                native.run(place(turn(given)), out, kind, [dim], 1.0)
                error = np.linalg.norm(out - turn(want)) / max(np.linalg.norm(want), 1e-30)
                assert error < (1e-6 if dtype == "f" else 1e-15), (kind, dtype, n, lines, turned, error)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("cpu, what", [
    ("", ""), ("avx2", "(3, 26, 256), (1, 21)"), ("default", "(3, 26, 256), (1, 21)"),
    pytest.param("avx2", "", marks=pytest.mark.slow), pytest.param("default", "", marks=pytest.mark.slow),
])  # fmt: skip
def test_kernels_stay_in_their_arrays(cpu, what):
    guard_pages.run_alone(__file__, f"transforms({what})", FLAMBEAU_CPU=cpu)


def test_kernels_say_what_is_wrong():
    a = np.zeros((2, 4), np.complex64)
    with pytest.raises(TypeError, match="fft: an array is missing"):
        kernels.fft([a], [], kind=0, f64=False, scale=0.0, dims=(1,))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 8, 5), (6, 7), (2, 16, 9)])
def test_real_results_of_several_dimensions_by_every_way(dtype, shape):
    """The kernel, the plan of calls that come again and the compiled graph agree, whatever the layout."""
    x = torch.randn(*shape, dtype=getattr(torch, dtype))
    for fn in (
        torch.fft.irfft2,
        torch.fft.irfftn,
        lambda x: torch.fft.irfftn(x, dim=(1, 0), norm="ortho"),
        torch.fft.hfft2,
    ):
        want = np.fft.irfft2(x.numpy()) if fn is torch.fft.irfft2 else None
        for y in (x, x.transpose(0, 1).contiguous().transpose(0, 1)):
            first = fn(y)
            for _ in range(4):
                again = fn(y)
                assert torch.equal(again, first) and again.stride() == first.stride()
            assert torch.allclose(torch.compile(fn, fullgraph=True)(y), first, atol=1e-5)
            if want is not None:
                np.testing.assert_allclose(first.numpy(), want, atol=1e-5)
