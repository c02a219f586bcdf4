"""Sorting, the first k, medians and ranks: the native lines beside NumPy's stable sort, eager and compiled, in all dtypes, layouts and orders."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.base import kernels, order
from flambeau.base.kernels import ELEMENTS, Order
from flambeau.testing import guard_pages

DTYPES = ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
SHAPES = [((7,), 0), ((5, 33), 1), ((33, 5), 0), ((3, 300, 2), 1), ((2, 5000), 1), ((50,), 0)]
SHAPES += [((2, 100), 0), ((16, 33), 0), ((3, 5, 70), 1), ((17, 64), 0)]  # short lines that lie across
SHAPES += [((4, 1, 33), 1)]


def lines(shape, dtype, seed=0):
    """Numbers with ties, infinities, nan and zeros of both signs where the dtype has them."""
    a = (np.random.default_rng(seed).normal(size=shape) * 20).astype(dtype)
    flat = a.reshape(-1)
    if a.dtype.kind == "f":
        flat[1::11], flat[2::13], flat[3::17], flat[::7], flat[5::19] = 0.0, -0.0, np.inf, np.nan, -np.inf
    return a


def stable(a, dim, descending):
    x = np.flip(a, dim) if descending else a
    places = np.argsort(x, axis=dim, kind="stable")
    return np.flip(a.shape[dim] - 1 - places, dim) if descending else places


@pytest.mark.parametrize("dtype", DTYPES)
def test_beside_a_stable_sort(dtype):
    for shape, dim in SHAPES:
        a = lines(shape, dtype)
        for descending in (False, True):
            want = stable(a, dim, descending)
            values, places = order.arrange(Order.WHOLE, a, dim, descending)
            np.testing.assert_array_equal(places, want)
            picked = np.take_along_axis(a, want, dim)
            assert values.tobytes() == np.ascontiguousarray(picked).tobytes()  # zeros keep their signs
            for k in {1, min(3, a.shape[dim]), min(40, a.shape[dim]), a.shape[dim]}:
                np.testing.assert_array_equal(
                    order.arrange(Order.FIRST, a, dim, descending, k)[1], np.take(want, range(k), dim)
                )
            for rank in (0, a.shape[dim] // 2, a.shape[dim] - 1):
                got = order.arrange(Order.RANK, a, dim, descending, rank)[1]
                np.testing.assert_array_equal(got, np.take(want, [rank], dim))


def test_16_bits():
    x = torch.from_numpy(lines((6, 70), "float32")).bfloat16()
    values, places = x.sort(-1)
    np.testing.assert_array_equal(places.numpy(), stable(x.float().numpy(), -1, False))
    assert torch.equal(values.nan_to_num(7), x.gather(-1, places).nan_to_num(7))


@pytest.mark.parametrize(
    "what",
    ["ascending", "descending", "equal", "two", "sawtooth"],
)
def test_lines_in_any_order(what):
    n = 20_000
    a = {
        "ascending": np.arange(n),
        "descending": np.arange(n)[::-1],
        "equal": np.zeros(n, np.int64),
        "two": np.arange(n) % 2,
        "sawtooth": np.arange(n) % 97 * (1 << 40),
    }[what].astype(np.int64)
    want = stable(a, 0, False)
    for x in (a, a.astype("f4")):
        want = stable(x, 0, False)
        np.testing.assert_array_equal(order.arrange(Order.WHOLE, x, 0)[1], want)
        np.testing.assert_array_equal(order.arrange(Order.FIRST, x, 0, k=50)[1], want[:50])
        assert order.arrange(Order.RANK, x, 0, k=n // 3)[1][0] == want[n // 3]


CALLS = {
    "sort": lambda x: x.sort(0),
    "descending": lambda x: x.sort(-1, descending=True),
    "stable": lambda x: torch.sort(x, dim=-1, stable=True),
    "argsort": lambda x: (x.argsort(-1),),
    "topk": lambda x: x.topk(min(2, x.shape[-1])),
    "smallest": lambda x: x.topk(1, 0, largest=False),
    "median": lambda x: x.median(-1),
    "median kept": lambda x: x.median(0, keepdim=True),
    "nanmedian": lambda x: x.nanmedian(-1),
    "median of all": lambda x: (x.median(), x.nanmedian()),
    "kthvalue": lambda x: x.kthvalue(1, -1),
    "quantile": lambda x: (torch.quantile(x.float(), 0.3, dim=-1),),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
def test_compiled(name, dtype):
    f = CALLS[name]
    for shape in ((4, 9), (3, 50), (6, 2, 5)):
        x = torch.from_numpy(lines(shape, "float32")).nan_to_num(nan=300.0 if dtype == "uint8" else 3.0)
        x = x.clamp(0, 200).to(torch.uint8) if dtype == "uint8" else x.clamp(-99, 99).to(getattr(torch, dtype))
        if x.is_floating_point():
            x[0] = float("nan")
        for t in (x, x.transpose(0, -1)):
            before = torch._inductor.metrics.num_fallbacks
            got, want = torch.compile(lambda t: f(t))(t), f(t)
            assert torch._inductor.metrics.num_fallbacks == before
            for g, w in zip(got, want):
                assert g.dtype == w.dtype and g.stride() == w.stride()
                assert torch.equal(
                    g.nan_to_num(7) if g.is_floating_point() else g, w.nan_to_num(7) if w.is_floating_point() else w
                )


def test_no_dimensions_and_no_elements():
    for f in (lambda x: x.sort(0), lambda x: x.topk(1), lambda x: x.median(0)):
        for g, w in zip(torch.compile(f)(torch.tensor(2.5)), f(torch.tensor(2.5))):
            assert torch.equal(g, w)
    empty = torch.zeros(3, 0)
    for f in (lambda x: x.sort(-1), lambda x: x.topk(0), lambda x: x.sort(0)):
        for g, w in zip(torch.compile(f)(empty), f(empty)):
            assert g.shape == w.shape and g.stride() == w.stride()


def test_gradients_and_any_size():
    f = torch.compile(lambda x: (x.sort(-1)[0] * x.topk(2)[0].sum()).cumsum(-1) + x.median(0)[0], dynamic=True)
    for n in (5, 6, 9):
        x, y = (torch.arange(3.0 * n).reshape(3, n).cos().requires_grad_() for _ in range(2))
        f(x).sum().backward()
        ((y.sort(-1)[0] * y.topk(2)[0].sum()).cumsum(-1) + y.median(0)[0]).sum().backward()
        assert torch.allclose(x.grad, y.grad)


def test_threads_do_not_matter():
    a, old, made = lines((40, 3000), "float32"), torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            made.append([order.arrange(w, a, 1, True, 7)[1] for w in (Order.WHOLE, Order.FIRST, Order.RANK)])
    finally:
        torch.set_num_threads(old)
    assert all((x == y).all() for other in made[1:] for x, y in zip(made[0], other))


def stays_inside() -> None:
    """Lines between pages that nobody may touch."""
    for at_end in (False, True):
        guarded = guard_pages.GuardPages(at_end)
        for dtype in ("float32", "float64", "int16", "uint8"):
            for shape, dim in SHAPES[:-1]:
                a = lines(shape, dtype)
                for what, k in ((Order.WHOLE, a.shape[dim]), (Order.FIRST, 2), (Order.RANK, 1), (Order.MEDIAN, 1)):
                    out = (*shape[:dim], k if what in (Order.WHOLE, Order.FIRST) else 1, *shape[dim + 1 :])
                    arrays = [guarded(x) for x in (a, np.zeros(out, dtype), np.zeros(out, np.int64))]
                    numbers = {"part": what, "k": k, "descending": True, "sorted": True, "element": ELEMENTS[dtype]}
                    kernels.order(arrays[:1], arrays[1:], dim=dim, **numbers)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_reads_nothing_outside_its_arrays():
    guard_pages.run_alone(__file__, "stays_inside()")
