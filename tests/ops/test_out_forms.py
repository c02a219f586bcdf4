"""out= of functions that choose by flags, draw, or return lists: what they return without it, written into what is given."""

import pytest

import flambeau as torch

X = torch.arange(6.0).reshape(2, 3)
CALLS = {
    "where": lambda **k: torch.where(X > 2, X, -X, **k),
    "nonzero": lambda **k: torch.nonzero(X, **k),
    "randn": lambda **k: torch.randn(2, 3, **k),
    "randint": lambda **k: torch.randint(9, (4,), **k),
    "normal": lambda **k: torch.normal(X, 2.0, **k),
    "normal of numbers": lambda **k: torch.normal(0.5, 2.0, (3,), **k),
    "norm": lambda **k: torch.norm(X, "nuc", **k),
    "eye": lambda **k: torch.eye(3, requires_grad=False, **k),
    "split_with_sizes_copy": lambda **k: torch.split_with_sizes_copy(X, [1, 2], 1, **k),
    "unbind_copy": lambda **k: torch.unbind_copy(X, **k),
    "native_batch_norm": lambda **k: torch.native_batch_norm(X, None, None, None, None, True, 0.1, 1e-5, **k),
}


@pytest.mark.parametrize("name", CALLS)
def test_out(name):
    torch.manual_seed(0)
    want = CALLS[name]()
    several = isinstance(want, (list, tuple))
    targets = [torch.empty(0, dtype=w.dtype) for w in (want if several else [want])]
    torch.manual_seed(0)
    CALLS[name](out=tuple(targets) if several else targets[0])
    for got, w in zip(targets, want if several else [want]):
        assert torch.equal(got, w)


def test_errors():
    with pytest.raises(TypeError, match="tuple of 2"):
        torch.unbind_copy(X, out=(torch.empty(0),))
    with pytest.raises(RuntimeError, match="dtype"):
        torch.nonzero(X, out=torch.empty(0))
