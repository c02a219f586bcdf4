"""Sizes that depend on data meet others: one graph, which checks what it took for granted."""

import pytest
from flambeau._dynamo import config
from flambeau.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv

import flambeau as torch
from flambeau.fake import FakeTensorMode

BACKENDS = ["eager", "aot_eager", "inductor"]


def zeros_and(x, y):
    return torch.zeros(x.item()) + y


def repeated(x, y):
    return y.repeat_interleave(x, dim=0, output_size=x.sum().item())


def counted_twice(x, y):
    b = y * 1
    first, second = b.nonzero(), b.nonzero()
    assert first.shape[0] == second.shape[0]
    return first + second


def counted_around_a_write(x, y):
    b = y * 1
    first = b.nonzero()
    b.add_(1)
    return first.sum() + b.nonzero().sum()


CALLS = {
    "equal": (zeros_and, [([3], [1.0, 2, 3]), ([3], [4.0, 5, 6])]),
    "one": (zeros_and, [([3], [1.0, 2, 3]), ([1], [4.0, 5, 6])]),
    "repeats": (repeated, [([2, 1], [1.0, 2]), ([0, 5], [1.0, 2])]),
    "the same elements": (counted_twice, [([0], [0.0, 1, 2]), ([0], [0.0, 0, 0]), ([0], [3.0, 4, 0])]),
    "written elements": (counted_around_a_write, [([0], [0.0, -1, 2]), ([0], [0.0, 0, 0])]),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CALLS)
def test_one_graph(name, backend):
    fn, calls = CALLS[name]
    with config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        run = torch.compile(fn, backend=backend, fullgraph=True)
        for x, y in calls:
            x, y = torch.tensor(x), torch.tensor(y)
            x = x if len(x) > 1 else x[0]
            torch.testing.assert_close(run(x, y), fn(x, y))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_taken_for_granted_is_checked(backend):
    with config.patch(capture_scalar_outputs=True):
        run = torch.compile(zeros_and, backend=backend, fullgraph=True)
        run(torch.tensor(3), torch.ones(3))
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            run(torch.tensor(4), torch.ones(3))


def test_fake_tensors_remember_a_count_until_they_are_written():
    with FakeTensorMode(shape_env=ShapeEnv()):
        x = torch.ones(4)
        assert x.nonzero().shape[0] == x.nonzero().shape[0]
        before = x.nonzero().shape[0]
        x.mul_(2)
        with pytest.raises(GuardOnDataDependentSymNode):
            bool(x.nonzero().shape[0] == before)
        size = x.nonzero().shape[0]
        torch.ops.aten._assert_scalar(size == 3, "three")
        assert size == 3
        with pytest.raises(RuntimeError, match="no"):
            torch.ops.aten._assert_scalar(size == 2, "no")
