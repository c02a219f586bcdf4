"""The old constructors of sparse tensors, and their classes for isinstance."""

import pytest

import flambeau as torch


def test_old_sparse_constructors():
    """``torch.sparse.FloatTensor(indices, values, size)`` is a tensor in coordinate layout, whose dtype is the values'; the class tells layout and dtype."""
    i, v = torch.tensor([[0, 1], [2, 0]]), torch.tensor([3.0, 4.0])
    made = torch.sparse.FloatTensor(i, v, torch.Size([3, 4]))
    assert made.is_sparse and made.shape == (3, 4) and made.to_dense()[0, 2] == 3
    assert torch.sparse.FloatTensor(i, v).shape == (2, 3) and torch.sparse.LongTensor(i, v).dtype == torch.float32
    assert torch.sparse.DoubleTensor(2, 3).shape == (2, 3) and torch.sparse.DoubleTensor(2, 3).dtype == torch.float64
    assert isinstance(made, torch.sparse.FloatTensor) and not isinstance(made, torch.sparse.DoubleTensor)
    assert not isinstance(torch.eye(2), torch.sparse.FloatTensor)
    assert made.type() == "torch.sparse.FloatTensor" and made.type("torch.sparse.DoubleTensor").dtype == torch.float64
    with pytest.raises(TypeError, match="sizes"):
        torch.sparse.FloatTensor([[1, 2]])
