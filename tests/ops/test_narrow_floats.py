"""Sorting, searching and comparing of nan, infinities and signed zeros, in every floating dtype, beside PyTorch (NumPy can't do it for bfloat16)."""

import numpy as np
import pytest

import flambeau

try:
    import torch
except ImportError:
    torch = None

NAN, INF = float("nan"), float("inf")
VALUES = [0.5, -1.5, NAN, 3.0, -0.0, 0.0, NAN, INF, -INF, 0.0, 2.0, -1.5]

CASES = """
x.sort()[0]
x.sort(descending=True)[0]
x.argsort(stable=True)
x.topk(4)[0]
x.kthvalue(3)[0]
x.median()
x.nanmedian()
x.unique()
x.unique(return_counts=True)[1]
x.unique(return_inverse=True)[1]
m.unique(x[3:6].view(3, 1), dim=0)
m.unique(x.view(4, 3), dim=0)
x.unique_consecutive()
x.mode()[0]
x.max(0)[0]
x.min(0)[1]
x.argmax()
x.cummax(0)[0]
x.cummin(0)[1]
m.searchsorted(edges, x)
m.searchsorted(edges.expand(4, 3).contiguous(), x.view(4, 3))
m.bucketize(x, edges, right=True)
m.isin(x, m.tensor([0.0, NAN, 2.0]).to(x.dtype))
x.msort()
x.aminmax()[0]
x.nan_to_num()
x.count_nonzero()
x.nonzero()
m.maximum(x, x.flip(0))
m.fmax(x, x.flip(0))
x.clamp(-1, 1)
x.sign()
x == x
x < 0.5
x.amax()
x.floor_divide(2)
x.fmod(2)
x.frac()
m.where(x > 0, x, 0.0)
""".strip().splitlines()


@pytest.mark.parity
@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_values(case, dtype):
    seen = []
    for m in (torch, flambeau):
        x = m.tensor(VALUES, dtype=getattr(m, dtype))
        for _ in range(2):
            out = eval(case, {"m": m, "NAN": NAN, "x": x, "edges": m.tensor([-1.0, 0.0, 1.0], dtype=getattr(m, dtype))})
            seen.append((str(out.dtype), repr(out.tolist()).replace("-0.0", "0.0")))
    assert seen[0] == seen[1] == seen[2] == seen[3]


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("towards", [INF, -INF, 0.0, -0.0, 1.0, -2.5, NAN])
@pytest.mark.parametrize("compiled", [False, True])
def test_neighbours_of_every_number(kind, towards, compiled):
    """One step in the order of the bits, computed here with integers."""
    bits = np.arange(65536, dtype=np.uint16)
    x = flambeau.from_numpy(bits.view(np.int16).copy()).view(getattr(flambeau, kind))
    y = flambeau.full((65536,), towards, dtype=x.dtype)
    fn = flambeau.compile(flambeau.nextafter, fullgraph=True) if compiled else flambeau.nextafter
    made = fn(x, y).view(flambeau.int16).numpy().view(np.uint16)
    wide, at = x.float().numpy(), np.float32(towards)
    step = np.where((wide < at) ^ (wide < 0), 1, -1).astype(np.int32)
    want = (bits.astype(np.int32) + step).astype(np.uint16)
    target = y.view(flambeau.int16).numpy().view(np.uint16)
    want = np.where(wide == 0, (target & 0x8000) | 1, want)
    want = np.where(wide == at, target, want)
    nans = np.isnan(wide) | np.isnan(at)
    assert np.array_equal(made[~nans], want[~nans])
    assert np.isnan(flambeau.from_numpy(made.view(np.int16).copy()).view(x.dtype).float().numpy()[nans]).all()


@pytest.mark.parametrize(
    "kind", ["float16", "bfloat16", "float32", "float64", "int64", "int32", "int16", "int8", "uint8"]
)
@pytest.mark.parametrize("n", [2, 15, 16, 17, 41, 127, 128, 129, 300, 2047, 2048, 3000])
def test_orders_of_lines_of_every_length(kind, n):
    """Each way of csrc/kernels/order.c (pairs of all keys, digits, parts of a line) gives the stable order, ties and nans included."""
    rng = np.random.default_rng(n)
    numbers = rng.integers(0, 100, (3, n)) if n % 2 else rng.standard_normal((3, n)) * 50
    x = flambeau.from_numpy(np.abs(numbers) if kind == "uint8" else numbers).to(getattr(flambeau, kind))
    if x.is_floating_point():
        x[0, :2], x[1, -1], x[2, 0], x[2, 1] = NAN, NAN, 0.0, -0.0
    keys = x.double().numpy()
    nan = np.isnan(keys)
    values = np.where(nan, 0, keys)
    for descending in (False, True):
        sign = -1 if descending else 1
        want = np.stack([np.lexsort((np.arange(n), sign * values[r], sign * nan[r])) for r in range(3)])
        places = x.sort(descending=descending, stable=True)[1].numpy()
        assert np.array_equal(places, want)
        assert np.array_equal(x.t().contiguous().t().sort(descending=descending, stable=True)[1].numpy(), want)
        for k in {1, n // 2, min(n, 20)}:
            assert np.array_equal(x.topk(k, largest=descending)[1].numpy(), want[:, :k])
    order = x.sort(stable=True)[1]
    for k in {1, 2, (n + 1) // 2, n}:
        value, place = x.kthvalue(k)
        assert flambeau.equal(place, order[:, k - 1])
        assert np.array_equal(
            value.double().numpy(), np.take_along_axis(keys, place.numpy()[:, None], 1)[:, 0], equal_nan=True
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gradient_of_nextafter(dtype):
    """1 where the numbers differ; the step isn't differentiated."""
    kind = getattr(flambeau, dtype)
    x = flambeau.tensor([1.0, 2.0, 3.0, 0.0], dtype=kind, requires_grad=True)
    y = flambeau.tensor([2.0, 2.0, 0.0, -1.0], dtype=kind, requires_grad=True)
    for f in (flambeau.nextafter, flambeau.compile(flambeau.nextafter)):
        by_x, by_y = flambeau.autograd.grad(f(x, y).sum(), (x, y))
        assert by_x.tolist() == [1, 0, 1, 1] and by_y.tolist() == [0] * 4


def _losses(x):
    labels, lengths, counts = (flambeau.tensor(v) for v in ([[1, 2], [1, 1]], [3, 3], [2, 1]))
    return flambeau.ops.aten._ctc_each(x, labels, lengths, counts, 0, False)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "float16", "int8"])
@pytest.mark.parametrize("f", [_losses, lambda x: x.logcumsumexp(0)])
def test_kernels_of_wide_numbers_refuse_narrow_ones(f, dtype):
    """They would read and write four bytes where there are one or two."""
    x = flambeau.zeros(3, 2, 3).to(getattr(flambeau, dtype))
    if dtype == "float16" and f is not _losses:
        assert f(x).dtype is x.dtype
    else:
        with pytest.raises(NotImplementedError, match="not implemented for '"):
            f(x)
