"""Sorting, searching and comparing of nan, infinities and signed zeros, in every floating dtype, beside PyTorch (NumPy can't do it for bfloat16)."""

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
