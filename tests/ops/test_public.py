"""What public functions return and refuse, beyond values."""

import numpy as np
import pytest

import flambeau as torch


def test_named_results():
    r = torch.max(torch.tensor([[1.0, 2.0], [4.0, 3.0]]), 1)
    assert r.values.tolist() == [2.0, 4.0] and r.indices.tolist() == [1, 0]
    assert isinstance(r, torch.return_types.max) and repr(r).startswith("torch.return_types.max(\nvalues=")


def test_strides_that_are_no_whole_elements():
    with pytest.raises(ValueError, match="not a multiple of the element byte size"):
        torch.from_numpy(np.zeros(3, dtype=[("a", "i1"), ("b", "<f4")])["b"])


@pytest.mark.parametrize("fn", [lambda a, b: a // b, lambda a, b: a % b, lambda a, b: torch.fmod(a, b)])
def test_integers_divided_by_zero(fn):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        fn(torch.tensor([1, 2]), torch.tensor([1, 0]))


def test_view_takes_sizes_in_any_form():
    x = torch.arange(4.0)
    for y in (x.view([2, 2]), x.view((2, 2)), x.view(2, 2), x.view(size=[2, 2]), x.view(torch.Size([2, 2]))):
        assert y.tolist() == [[0, 1], [2, 3]]
    assert x.view(torch.int32).shape == x.view(dtype=torch.int32).shape == x.shape


def test_products_of_many_matrices():
    """The order is found in the time of the products, and its depth is no recursion's."""
    from flambeau.ops.linear_algebra.systems import _cuts, _cuts_of_symbols

    sizes = [3, 7, 2, 9, 9, 1, 4, 6, 2]
    found = _cuts(sizes, 8)
    assert all(found[ij] == k for ij, k in _cuts_of_symbols(sizes, 8).items())
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    assert torch.equal(torch.linalg.multi_dot([turn] * 1201), turn)
    assert torch.equal(torch.chain_matmul(turn, turn, turn), -turn)
