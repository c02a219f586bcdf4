"""Launches that C gives to the device one after the other: memory by slots, what is taken and given back, numbers, and what a launch costs the host."""

import sys

import pytest
from tests.cuda.kernels import graph_of

import flambeau as torch
from flambeau import _device
from flambeau.inductor.device import single
from flambeau.inductor.device.launches import Launches

A = torch.ops.aten
X = torch.linspace(-2, 2, 12).reshape(3, 4)


def chained():
    """A function of twenty kernels, each after the other, that nothing knows yet."""
    torch.compiler.reset()

    def chain(x):
        for _ in range(20):
            x = x - x.sum(0, keepdim=True) * 0.01
        return x

    return chain


def the_launches(graph) -> Launches:
    (part,) = graph.parts
    assert isinstance(part, Launches)
    return part


def test_memory_is_taken_and_given_back_between_launches(graphs):
    """What the chain's twenty launches take is given back, but for the result."""
    x = X.cuda()
    f = torch.compile(chained())
    f(x)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated(), torch.cuda.memory_stats()
    found = f(x)
    torch.cuda.synchronize()
    after = torch.cuda.memory_stats()
    taken, given = (after[f"allocation.all.{k}"] - before[1][f"allocation.all.{k}"] for k in ("allocated", "freed"))
    assert len(the_launches(graphs[0]).steps) == 20 and taken >= 20 and taken - given == 1
    torch.testing.assert_close(found.cpu(), chained()(X))
    del found
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before[0]


def test_no_python_runs_between_launches(graphs):
    f, x = torch.compile(chained()), X.cuda()
    f(x)
    part = the_launches(graphs[0])
    held = {part.names[0]: (x._storage.device_memory, 0)}
    numbers, plan = part.numbers({}), part._plan(False)
    memories = [held.get(n, (None, 0))[0] for n in part.names]
    _device.late(1)
    torch.cuda.synchronize()
    places, calls = [0] * len(memories), []
    sys.setprofile(lambda frame, event, arg: calls.append((event, getattr(arg, "__name__", frame.f_code.co_name))))
    try:
        plan.run(memories, places, numbers.packed)
    finally:
        sys.setprofile(None)
    assert len(part.steps) == 20
    assert [c for c in calls if c[0] in ("call", "c_call")] == [("c_call", "run"), ("c_call", "setprofile")]


def test_numbers_are_kept_by_sizes():
    single._exact.clear()
    single._general.clear()
    for n in (3, 4, 3, 5, 4):
        torch.softmax(torch.ones(2, n).cuda(), 1)
    (kernel,) = next(k for what, k in single._general.items() if what[0] is A._softmax.default)
    assert len(kernel.graph._bounds) == 3


def test_a_call_for_more_than_there_is_says_so():
    x = torch.empty(1, device="cuda").expand(1 << 50)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate 4503599627370496 bytes"):
        x + 1
    assert torch.cuda.memory_allocated() == before


def test_what_a_plan_refuses():
    plan = _device.Plan(0, 2)
    memory = _device.Memory(0, 16)
    with pytest.raises(IndexError, match="a slot of a plan"):
        plan.launch(1, 32, False, 0, [2], [], 1)
    with pytest.raises(ValueError, match="a function is needed"):
        plan.launch(0, 32, False, 0, [0], [], 1)
    with pytest.raises(ValueError, match="three slots"):
        plan.product(2, False, False, False, [0, 1], [], 0)
    with pytest.raises(ValueError, match="eight bytes for each number"):
        plan.run([memory, None], [0, 0], b"")
    with pytest.raises(TypeError, match="memory of the device is needed"):
        plan.run([memory, "b"], [0, 0], bytes(16))
    with pytest.raises(TypeError, match="memory of the device is needed"):
        plan.run([memory, memory], [0, 17], bytes(16))
    plan.run([memory, None], [16, 0], bytes(16))  # no steps: nothing is taken


def test_a_graph_of_calls_and_launches():
    """The parts of a graph, in order; a size that a call finds out is known behind it."""
    square = X[:, :3] + 3 * torch.eye(3)
    graph = graph_of(A.linalg_inv_ex.default, square)
    assert not any(isinstance(p, Launches) for p in graph.parts[:1])
    found = torch.compile(lambda x: torch.linalg.inv(x[x > 0].sum() * x + 1) * 2)(square.cuda())
    torch.testing.assert_close(found.cpu(), torch.linalg.inv(square[square > 0].sum() * square + 1) * 2)
