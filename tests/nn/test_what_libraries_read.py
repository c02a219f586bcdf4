"""What libraries that derive from Module and ModuleList call: iteration over members, names of places, tensors' identities."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn


def test_members_by_a_function_of_each_module():
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    m.add_module("again", m[0])
    found = [name for name, _ in m._named_members(lambda each: each._parameters.items())]
    assert found == [name for name, _ in m.named_parameters()]
    assert [n for n, _ in m._named_members(lambda each: each._buffers.items(), prefix="p")] == [
        n for n, _ in m.named_buffers("p")
    ]


def test_names_of_places():
    layers = nn.ModuleList([nn.ReLU(), nn.ReLU()])
    assert layers._get_abs_string_index(-1) == "1"
    with pytest.raises(IndexError, match="out of range"):
        layers._get_abs_string_index(2)


def test_a_tensor_is_told_by_its_address():
    x, y = torch.ones(2), torch.ones(2)
    assert x._cdata == x._cdata != y._cdata


def test_backward_takes_a_sequence_of_one_gradient():
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward([torch.tensor(3.0)])
    assert x.grad.tolist() == [6, 6, 6]
    with pytest.raises(RuntimeError, match="got 1 tensors and 0 gradients"):
        (x * 2).sum().backward([])


def test_addresses_belong_to_the_tensors_of_one_call():
    def same(x, y):
        return x + 1, x._cdata == y._cdata

    compiled, x, y = torch.compile(same, backend="eager"), torch.ones(2), torch.ones(2)
    assert [compiled(*args)[1] for args in ((x, y), (x, x), (y, x), (y, y))] == [False, True, False, True]


@pytest.mark.parametrize(
    "read", ["x.is_shared()", "x._grad is None", "x._is_leaf", "x._writes", "x._offset", "x._has_data"]
)
def test_what_a_tensor_keeps_is_read_at_each_call(read):
    """The fake tensor of a capture keeps something else."""
    space: dict = {}
    exec(f"def f(x):\n    return x + 1, {read}", space)
    written = torch.ones(2, 3).add_(1)
    with_grad = torch.ones(2, 3, requires_grad=True)
    with_grad.sum().backward()
    compiled = torch.compile(space["f"], backend="eager")
    for x in (
        torch.ones(2, 3),
        torch.ones(2, 3).share_memory_(),
        written,
        torch.ones(4, 3)[2:],
        with_grad,
        with_grad * 1,
    ):
        assert compiled(x)[1] == space["f"](x)[1]


@pytest.mark.parametrize("read", ["is_shared", "storage_offset"])
def test_what_the_tensor_of_an_array_keeps(read):
    space: dict = {}
    exec(
        f"def f(a):\n    x = torch.from_numpy(a)\n    return x + 1, x.{read}(), x[1:].{read}()", {"torch": torch}, space
    )
    compiled = torch.compile(space["f"], backend="eager", fullgraph=True)
    for a in (np.ones(3), np.ones(5)[2:], np.ones(3)):
        assert compiled(a)[1:] == space["f"](a)[1:]
