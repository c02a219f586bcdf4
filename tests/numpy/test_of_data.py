"""Functions whose results have sizes that depend on data: in one graph where symbols may stand for the sizes, in NumPy elsewhere, as NumPy always."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import run, same

R = np.random.RandomState(2)
INPUTS = [R.randint(-3, 4, n) for n in (12, 1, 40, 2)] + [np.zeros(12, int), np.ones(5, int), np.empty(0, int)]
PROGRAMS = {
    "nonzero": lambda x: np.nonzero(x),
    "nonzero of rows": lambda x: np.nonzero(x.reshape(-1, 1) > x[:3]),
    "the method": lambda x: (x > 0).nonzero()[0] + 1,
    "flatnonzero": lambda x: np.flatnonzero(x > 0) * 2,
    "argwhere": lambda x: np.argwhere(x.reshape(1, -1)),
    "extract": lambda x: np.extract(x > 0, x * 1.5).sum(),
    "compress": lambda x: np.compress(x > 0, x),
    "compress along an axis": lambda x: np.compress(x > 0, np.stack((x, x * 2)), axis=1),
    "bincount": lambda x: np.bincount(np.abs(x), minlength=2),
    "bincount with weights": lambda x: np.bincount(np.abs(x), x * 0.5),
    "bincount of negative numbers": lambda x: np.bincount(x),
    "bincount of truth values": lambda x: np.bincount(x > 0),
    "unique": lambda x: np.unique(x),
    "unique with inverse and counts": lambda x: np.unique(x.reshape(-1, 1), return_inverse=True, return_counts=True),
    "union1d": lambda x: np.union1d(x, x.astype(np.int8) + 2),
    "intersect1d": lambda x: np.intersect1d(x, x + 2),
    "setdiff1d": lambda x: np.setdiff1d(x, np.int64([0, 1])),
    "setxor1d": lambda x: np.setxor1d(x, x * 2),
}


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_numpy(name, fullgraph):
    f = PROGRAMS[name]
    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=fullgraph)
    for x in INPUTS:
        want = run(f, x.copy())
        if isinstance(want, tuple) and isinstance(want[0], type):
            with pytest.raises(want[0]):
                compiled(x.copy())
        else:
            same(compiled(x.copy()), want)


def test_what_numpy_computes():
    """What compares equal and isn't one number, options, and what has no dimensions."""
    x = np.array([1.0, np.nan, -0.0, 0.0, np.nan])
    for f in (
        lambda x: np.unique(x),
        lambda x: np.union1d(x, x),
        lambda x: np.unique(x > 0, return_index=True),
        lambda x: np.intersect1d(x, x, return_indices=True),
        lambda x: np.setdiff1d(np.int8([1, 2]), x.astype(np.int64) * 0),
        lambda x: np.flatnonzero(x.sum()),
        lambda x: np.nonzero([1, 0, 2]),
        lambda x: np.bincount([1, 2, 2]),
    ):
        torch._dynamo.reset()
        with np.errstate(all="ignore"):
            same(torch.compile(f)(x), f(x))


def test_one_graph():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for name, f in PROGRAMS.items():
            found = torch._dynamo.explain(f)(np.abs(INPUTS[0]))
            assert (found.graph_count, found.graph_break_count) == (1, 0), (name, found.break_reasons)


SELECTIONS = {
    "broadcast with others": lambda x: x[x > 0] + x[:1],
    "sizes that may differ": lambda x: x[x > 0] + x[:3],
    "of two selections": lambda x: x[x > 0] + x[x < 0],
    "twice the same": lambda x: np.stack((x[x > 0], x[x > 0] * 2)),
    "columns": lambda x: (x[x > 0] * 2).reshape(-1, 1) + np.arange(3),
    "reshaped": lambda x: x[x > 0].reshape(2, -1),
    "outer": lambda x: np.outer(x[x > 0], x[x < 0]),
    "concatenated": lambda x: np.concatenate((x[x > 0], x)),
    "the place of the greatest": lambda x: x[x > 0].argmax(),
    "the greatest": lambda x: x[x > 0].max(),
    "sums": lambda x: (x[x > 0].sum(), x[x > 0].prod(), len(x[x > 0])),
    "running sums": lambda x: np.cumsum(x[x > 0]),
    "chosen": lambda x: np.where(x[x > 0] > 1, 1.0, x[x > 0]),
    "a slice as long": lambda x: x[: len(x[x > 0])].sum(),
    "a product": lambda x: x[x > 0] @ x[x > 0],
    "the last": lambda x: x[x > 0][-1],
    "backwards": lambda x: x[x > 0][::-1] * 1.0,
}
NUMBERS = [R.randn(12), -np.abs(R.randn(12)), np.abs(R.randn(12)), np.array([1.0, -2, -3, -4]), np.array([1.0, -2, 2]), np.array([3.0]), np.array([-3.0]), np.empty(0)]  # fmt: skip


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections(name):
    """Of nothing, of one, of all: results and errors are NumPy's."""
    f = SELECTIONS[name]
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(f)
        for x in NUMBERS:
            same(run(compiled, x.copy()), run(f, x.copy()))
