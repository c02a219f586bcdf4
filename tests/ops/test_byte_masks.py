"""Masks of bytes are masks; each use as an index says that they are deprecated, at the program's line, once."""

import warnings

import pytest

import flambeau as torch

M = torch.tensor([1, 0, 1], dtype=torch.uint8)
X = torch.arange(3.0)
V = torch.tensor([5.0, 6.0])


def written(x, v):
    x = x.clone()
    x[M] = v
    return x


USES = {
    "read": (lambda: X[M], [0, 2]),
    "write": (lambda: written(X, V), [5, 1, 6]),
    "write one": (lambda: written(X, 7.0), [7, 1, 7]),
    "index_put": (lambda: X.index_put((M,), V), [5, 1, 6]),
    "index_put_": (lambda: X.clone().index_put_((M,), V), [5, 1, 6]),
    "accumulated": (lambda: X.clone().index_put_((M,), V, accumulate=True), [5, 1, 8]),
}


@pytest.mark.parametrize("name", USES)
def test_use(name):
    use, want = USES[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert use().tolist() == want
    assert [str(w.message)[:54] for w in told] == ["indexing with dtype torch.uint8 is now deprecated, ple"]
    assert told[0].filename == __file__
