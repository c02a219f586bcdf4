"""Sorting, selecting and searching by ranks, beside the CPU: equals, nans, both directions, all dimensions, and no call of Python."""

import pytest
from tests.cuda.kernels import graph_of

import flambeau as torch

A = torch.ops.aten
NAN, INF = float("nan"), float("inf")
TIES = torch.tensor([[3.0, 1, 3, 2, 1], [NAN, -INF, 0, NAN, -1], [-0.0, 0.0, -0.0, 1, 0.0]])
WHOLE = torch.tensor([[5, -3, 5, 2**62, -(2**62)], [0, 1, 0, 1, 0]])
TRUTH = torch.tensor([[True, False, True, False]])
GIVEN = [TIES, TIES.double(), TIES.half(), WHOLE, WHOLE.to(torch.uint8), TRUTH]

CALLS = [
    *[(A.sort.stable, (x,), {"stable": True, "dim": d, "descending": down}) for x in GIVEN for d in (0, -1) for down in (False, True)],
    *[(A.topk.default, (x, 2, 1, largest), {}) for x in (TIES.nan_to_num(9), WHOLE) for largest in (True, False)],
    *[(A.kthvalue.default, (x, k), {}) for x in (TIES, WHOLE) for k in (1, 3, 5)],
    *[(A.median.dim, (x, 1), {}) for x in (TIES, WHOLE)],
    *[(A.nanmedian.dim, (x, 1), {}) for x in (TIES, torch.full((2, 3), NAN))],
]  # fmt: skip


@pytest.mark.parametrize("op, args, kwargs", CALLS, ids=[f"{op}-{k}" for k, (op, *_) in enumerate(CALLS)])
def test_beside_the_cpu(op, args, kwargs):
    graph = graph_of(op, *args, **kwargs)
    assert not graph.info.called
    found, expected = graph(args[0].cuda()), op(*args, **kwargs)
    values, places = (t.cpu() for t in found)
    torch.testing.assert_close(values, expected[0], rtol=0, atol=0, equal_nan=True)
    dim = kwargs.get("dim", -1)
    if op is A.sort.stable:
        assert torch.equal(places, expected[1])  # equals keep their order
    else:  # which of equals is free
        at = places if places.dim() == args[0].dim() else places.unsqueeze(dim)
        torch.testing.assert_close(args[0].gather(dim, at).reshape(values.shape), values, equal_nan=True)


SORTED = torch.tensor([[1.0, 3, 3, 5, NAN], [-INF, 0, 0, 2, INF]])
ASKED = torch.tensor([[0.0, 3, 5, 6, NAN, INF], [-INF, -1, 0, 2, NAN, INF]])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("sequence", [SORTED, SORTED[0]], ids=["rows", "one"])
def test_search(sequence, narrow, right):
    op, how = A.searchsorted.Tensor, {"out_int32": narrow, "right": right}
    graph = graph_of(op, sequence, ASKED, **how)
    assert not graph.info.called
    expected = op(sequence, ASKED, **how)
    (found,) = graph(sequence.cuda(), ASKED.cuda())
    assert found.dtype is expected.dtype and torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing_is_sorted(shape):
    x = torch.ones(shape)
    values, places = graph_of(A.sort.default, x)(x.cuda())
    assert values.shape == places.shape == shape and places.dtype is torch.int64


def test_a_search_in_nothing():
    for sequence, asked in ((torch.ones(0), torch.ones(3)), (torch.ones(3), torch.ones(0))):
        (found,) = graph_of(A.searchsorted.Tensor, sequence, asked)(sequence.cuda(), asked.cuda())
        assert found.tolist() == [0] * len(asked)
