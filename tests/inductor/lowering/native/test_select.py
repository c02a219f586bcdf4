"""Running extremes, places, searches, histograms, sets and writes that combine: native loops beside NumPy, eager and compiled, in all dtypes and layouts."""

import ctypes
import mmap
import os
import sys

import numpy as np
import pytest
from rows import thinned

import flambeau as torch
from flambeau.base import kernels
from flambeau.base.kernels import ELEMENTS
from flambeau.testing import guard_pages

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def numbers(shape, dtype, seed=0):
    """With ties, and nan, infinities and zeros of both signs where the dtype has them."""
    a = np.random.default_rng(seed).normal(size=shape) * 20
    if dtype is torch.uint8:
        a = abs(a)
    if dtype in FLOATS and a.size > 20:
        flat = a.reshape(-1)
        flat[1::11], flat[2::13], flat[3::17], flat[5::19] = 0.0, -0.0, np.inf, -np.inf
        flat[:: max(a.size // 3, 1)] = np.nan
    return torch.tensor(a.round(1) if dtype in FLOATS else a.astype(np.int64)).to(dtype)


def same(got, want, tolerance=0.0):
    got, want = (x if isinstance(x, (tuple, list)) else (x,) for x in (got, want))
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape and g.stride() == w.stride()
        torch.testing.assert_close(g, w, rtol=tolerance, atol=tolerance, equal_nan=True)


def rows(x):
    """Indices into the first dimension for each element."""
    return torch.arange(x.numel()).reshape(x.shape) * 7 % max(x.shape[0], 1)


CALLS = {
    "cummax": lambda x: x.cummax(0),
    "cummax of the last": lambda x: x.cummax(-1),
    "cummin": lambda x: x.cummin(0),
    "cummin of the last": lambda x: x.cummin(-1),
    "searchsorted": lambda x: torch.searchsorted(x.flatten().sort()[0], x),
    "searchsorted by rows": lambda x: torch.searchsorted(x.sort(-1)[0], x * 2, right=True, out_int32=True),
    "bucketize": lambda x: torch.bucketize(x, torch.linspace(-9, 9, 8)),
    "isin": lambda x: torch.isin(x, x.flatten()[::3]),
    "not isin": lambda x: torch.isin(x, x.flatten()[:2] * 2, invert=True),
    "scatter sum": lambda x: x.scatter_reduce(0, rows(x), x, "sum"),
    "scatter mean": lambda x: (x * 0).nan_to_num().scatter_reduce(0, rows(x), x, "mean", include_self=False),
    "scatter prod": lambda x: x.scatter_reduce(0, rows(x), x.clamp(-1, 1), "prod"),
    "scatter amax": lambda x: x.scatter_reduce(0, rows(x), x, "amax"),
    "scatter amin": lambda x: x.scatter_reduce(0, rows(x), x, "amin", include_self=False),
    "index_reduce": lambda x: x.index_reduce(0, rows(x)[:, 0], x, "amax"),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x * 2),
    "masked write": lambda x: write(x),
}
REAL = {
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "logcumsumexp of the last": lambda x: x.logcumsumexp(-1),
}


def write(x):
    y = x.clone()
    y[x > 3] = 1
    return y


@pytest.mark.parametrize("name, dtype", thinned(CALLS | REAL, FLOATS + INTS, torch.float32), ids=str)
def test_compiled(name, dtype):
    if name in REAL and dtype not in FLOATS or name == "bucketize" and dtype in (torch.bfloat16, torch.float16):
        return
    f = (CALLS | REAL)[name]
    tolerance = (
        0.0
        if name not in (*REAL, "scatter mean", "scatter sum")
        else {torch.float32: 1e-5, torch.float64: 1e-12}.get(dtype, 1e-2)
    )
    for shape in ((5, 9), (70, 3), (4, 1)):
        for x in (
            numbers(shape, dtype),
            numbers(shape[::-1], dtype).t(),
            numbers((shape[0], 2 * shape[1]), dtype)[:, ::2],
        ):
            before = torch._inductor.metrics.num_fallbacks
            same(torch.compile(lambda x: f(x))(x), f(x), tolerance)
            assert torch._inductor.metrics.num_fallbacks == before, name


@pytest.mark.parametrize("dtype", FLOATS + INTS, ids=str)
def test_running_extremes_beside_numpy(dtype):
    for shape, dim in (((200,), 0), ((3, 70), 1), ((70, 3), 0), ((2, 30, 70), 1)):
        x = numbers(shape, dtype)
        a = x.double().numpy()
        for f, extreme, beats in ((x.cummax, np.maximum, np.greater_equal), (x.cummin, np.minimum, np.less_equal)):
            values, places = f(dim)
            want = extreme.accumulate(a, dim)
            np.testing.assert_array_equal(values.double().numpy(), want)
            own = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
            new = beats(a, want) | np.isnan(a)
            np.testing.assert_array_equal(places.numpy(), np.maximum.accumulate(np.where(new, own, 0), dim))


def test_logarithms_beside_numpy():
    for x in (
        numbers((60, 5), torch.float64),
        torch.randn(5, 600).double() * 300,
        torch.full((4, 9), -torch.inf).double(),
    ):
        for dim in (0, 1):
            with np.errstate(invalid="ignore"):
                want = np.logaddexp.accumulate(x.numpy(), dim)
            np.testing.assert_allclose(x.logcumsumexp(dim).numpy(), want, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(x.float().logcumsumexp(dim).numpy(), want.astype("f"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, torch.bool], ids=str)
def test_sets_and_places_beside_numpy(dtype):
    for shape in ((), (0,), (1,), (300,), (17, 9), (3, 0, 2), (4, 5, 16)):
        x = numbers(shape, dtype) if dtype is not torch.bool else numbers(shape, torch.int64) > 5
        a = x.double().numpy() if dtype not in (torch.int64,) else x.numpy()
        np.testing.assert_array_equal(x.nonzero().numpy(), np.argwhere(a))
        np.testing.assert_array_equal(
            x.t().nonzero().numpy() if x.ndim == 2 else 0, np.argwhere(a.T) if x.ndim == 2 else 0
        )
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        want = np.unique(a, return_inverse=True, return_counts=True, equal_nan=False)
        np.testing.assert_array_equal(values.double().numpy(), want[0])
        number = ~np.isnan(a)  # of nan each is one of its own, in the order of places here
        np.testing.assert_array_equal(inverse.numpy()[number], want[1].reshape(shape)[number])
        np.testing.assert_array_equal(inverse.numpy()[~number], np.arange(len(want[0]))[np.isnan(want[0])])
        np.testing.assert_array_equal(counts.numpy(), want[2])
        assert values.dtype is dtype
    for extreme in (
        torch.tensor([2**63 - 1, -(2**63), 5, 5]),
        torch.tensor([250, 3, 255], dtype=torch.uint8),
        torch.tensor([127, -128], dtype=torch.int8),
    ):
        assert torch.equal(torch.unique(extreme), torch.tensor(np.unique(extreme.numpy())))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_searches_and_histograms_beside_numpy(dtype):
    s, x = numbers((300,), dtype).sort()[0], numbers((40, 11), dtype, 1)
    for right in (False, True):
        got = torch.searchsorted(s, x, right=right)
        np.testing.assert_array_equal(got.numpy(), np.searchsorted(s.numpy(), x.numpy(), "right" if right else "left"))
    for n in (0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 200):
        for right in (False, True):
            got = torch.searchsorted(s[:n], x, right=right, out_int32=n % 2 == 0)
            np.testing.assert_array_equal(
                got.numpy(), np.searchsorted(s[:n].numpy(), x.numpy(), "right" if right else "left")
            )
            # nan stands last and is found behind all numbers, and behind nan from the right.
            padded = torch.cat([s[:n].nan_to_num(0), torch.full((2,), torch.nan, dtype=dtype)]).sort()[0]
            np.testing.assert_array_equal(
                torch.searchsorted(padded, x, right=right).numpy(),
                np.searchsorted(padded.numpy(), x.numpy(), "right" if right else "left"),
            )
    y = x.nan_to_num(0, 9, -9)
    for bins, low, high in ((7, 0, 0), (64, -20, 20), (1, -1, 1)):
        want = np.histogram(y.double().numpy(), bins, (low, high) if low != high else None)[0]
        for f in (lambda y: torch.histc(y, bins, low, high), torch.compile(lambda y: torch.histc(y, bins, low, high))):  # noqa: B023
            np.testing.assert_array_equal(f(y).numpy(), want)
    for f in (lambda x: torch.histc(x, 5), torch.compile(lambda x: torch.histc(x, 5))):
        with pytest.raises(RuntimeError, match="finite"):
            f(x)


def test_no_elements_any_size_and_bad_indices():
    empty = torch.zeros(3, 0)
    for f in (
        lambda x: x.cummax(1),
        lambda x: x.logcumsumexp(0),
        lambda x: torch.searchsorted(torch.arange(3.0), x),
        lambda x: x.scatter_reduce(0, x.long(), x, "sum"),
    ):
        same(torch.compile(f)(empty), f(empty))
    f = torch.compile(
        lambda x: x.cummax(0)[0] + x.logcumsumexp(0) + torch.searchsorted(torch.arange(5.0), x), dynamic=True
    )
    for n in (3, 8, 33):
        x = torch.linspace(-2, 7, n)
        same(f(x), x.cummax(0)[0] + x.logcumsumexp(0) + torch.searchsorted(torch.arange(5.0), x), 1e-5)
    g = torch.compile(lambda x, i: x.scatter_reduce(0, i, x, "amax"))
    for bad in (-1, 4):
        with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
            g(torch.ones(4), torch.tensor([0, bad, 1]))
    h = torch.compile(lambda x, m, s: x.masked_scatter(m, s))
    with pytest.raises(RuntimeError, match="masked_scatter"):
        h(torch.ones(9), torch.ones(9) > 0, torch.ones(8))
    assert torch.equal(torch.compile(lambda: torch.tril_indices(4, 5, 1))(), torch.tril_indices(4, 5, 1))


def test_threads_do_not_matter():
    x, old, made = numbers((300, 700), torch.float32), torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            made.append([x.cummax(0)[1], x.cummin(1)[1], x.logcumsumexp(0), torch.searchsorted(x[0].sort()[0], x)])
    finally:
        torch.set_num_threads(old)
    for other in made[1:]:
        same(other, made[0])


def stays_inside() -> None:
    """Arrays between pages that nobody may touch."""
    protect, maps = ctypes.CDLL(None, use_errno=True).mprotect, []

    def guarded(a, at_end):
        room = -(-max(a.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        maps.append(mmap.mmap(-1, room + 2 * mmap.PAGESIZE))
        start = ctypes.addressof(ctypes.c_char.from_buffer(maps[-1]))
        for place in (start, start + mmap.PAGESIZE + room):
            assert protect(ctypes.c_void_p(place), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
        out = np.frombuffer(maps[-1], a.dtype, a.size, mmap.PAGESIZE + (room - a.nbytes if at_end else 0)).reshape(
            a.shape
        )
        out[...] = a
        return out

    for at_end in (False, True):
        place = lambda *arrays: tuple(guarded(a, at_end) for a in arrays)  # noqa: E731, B023
        for shape, dim in (((7,), 0), ((3, 70), 1), ((70, 3), 0), ((2, 30, 65), 1)):
            for name in ("float32", "float64", "int16", "uint8"):
                a = np.random.default_rng(0).normal(size=shape).astype(name)
                outs = place(a, np.zeros(shape, np.int64))
                kernels.running(place(a), outs, dim=dim, least=True, element=ELEMENTS[name])
                if name.startswith("float"):
                    f64 = name == "float64"
                    kernels.logcumsumexp(place(a), place(a), dim=dim, f64=f64)
                    kernels.histogram(place(a), place(np.zeros(5, name)), f64=f64, low=0.0, high=0.0)
                    s = np.sort(a.reshape(-1))
                    found = place(np.zeros(shape, np.int64))
                    kernels.search(place(s, a), found, right=True, narrow=False, element=ELEMENTS[name])
                holds = a > 0
                kernels.nonzero(place(holds), place(np.zeros((int(holds.sum()), holds.ndim), np.int64)), fill=0)
    os._exit(0)


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect through ctypes is Linux's here")
def test_reads_nothing_outside_its_arrays():
    guard_pages.run_alone(__file__, "stays_inside()")
