"""Which graphs can be replayed, when they are recorded, and whose memory a replay touches."""

import pytest
from tests.cuda.kernels import graph_of

import flambeau as torch
from flambeau.inductor.device.launches import Launches
from flambeau.inductor.device.replay import Replayed, can_replay

A = torch.ops.aten
X = torch.linspace(-2, 2, 12).reshape(3, 4)

CAN = [
    (A.neg.default, (X,), True),
    (A._softmax.default, (X, 1, False), True),
    (A.sort.default, (X,), True),
    (A.bernoulli.p, (X, 0.5), False),  # a replay would draw the same numbers
    (A.embedding.default, (X, torch.tensor([1, 0])), False),  # somebody has to look for an error
    (A.linalg_inv_ex.default, (X[:, :3],), False),  # a call of Python
    (A.t.default, (X,), False),  # its result is the caller's memory
]


@pytest.mark.parametrize("op, args, can", CAN, ids=[str(op) for op, *_ in CAN])
def test_which_graphs_can_be_replayed(op, args, can):
    assert can_replay(graph_of(op, *args)) == can


def test_graphs_of_varying_sizes_are_not_replayed(graphs):
    torch.compile(lambda x: x * 2, dynamic=True)(X.cuda())
    torch.compile(lambda x: x * 3, dynamic=False)(X.cuda())
    assert [can_replay(g) for g in graphs] == [False, True]


@pytest.fixture
def launches(monkeypatch):
    """Names of the kernels that a graph launches itself."""
    seen, run = [], Launches.run
    monkeypatch.setattr(Launches, "run", lambda own, *rest: seen.extend(s.name for s in own.steps) or run(own, *rest))
    return seen


def test_the_second_call_records_and_later_ones_replay(launches):
    softmax = graph_of(A._softmax.default, X, 1, False)
    n, own = len(softmax.steps), {s.name for s in softmax.steps}
    replayed, counts = Replayed(softmax), []
    for x in [(X * k).cuda() for k in range(4)]:
        launches.clear()
        (found,) = replayed(x)
        counts.append(sum(name in own for name in launches))  # copies of what is given may be kernels
        torch.testing.assert_close(found.cpu(), torch.softmax(x.cpu(), 1))
    assert counts == [n, n, 0, 0] and replayed.info is softmax.info


def test_a_replay_writes_nothing_that_a_caller_holds():
    replayed = Replayed(graph_of(A.neg.default, X))
    given = [(X + k).cuda() for k in range(4)]
    found = [replayed(x)[0] for x in given]
    found[2].zero_()  # that a caller writes to a result changes no other
    for k, x in enumerate(given):
        assert torch.equal(x.cpu(), X + k)
        assert torch.equal(found[k].cpu(), -(X + k) * (k != 2))
    assert torch.equal(replayed(given[0])[0].cpu(), -X)


def test_inputs_may_need_gradients_and_have_other_strides():
    replayed = Replayed(graph_of(A.neg.default, X))
    for x in (X, X, X.t().contiguous().t(), X.clone().requires_grad_()):
        (found,) = replayed(x.cuda())
        assert torch.equal(found.cpu(), -x) and not found.requires_grad


def test_the_stream_of_the_caller_is_current_again():
    replayed, x, stream = Replayed(graph_of(A.neg.default, X)), X.cuda(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(3):
            (found,) = replayed(x)
            assert torch.cuda.current_stream() == stream
        assert torch.equal(found.cpu(), -X)


def test_the_default_stream_is_current_again():
    """A user's one, which has the methods of torch.cuda.Stream, not the driver's."""
    replayed, x = Replayed(graph_of(A.neg.default, X)), X.cuda()
    for _ in range(3):
        replayed(x)
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.current_stream().wait_stream(torch.cuda.Stream())


def test_within_a_recording_the_graph_launches_itself(launches):
    replayed, x = Replayed(graph_of(A.neg.default, X)), X.cuda()
    replayed(x)
    torch.cuda.synchronize()
    outer = torch.cuda.CUDAGraph()
    with torch.cuda.graph(outer):
        (found,) = replayed(x)
    assert replayed.recorded is None and len(launches) == 2
    x.fill_(3)
    outer.replay()
    assert found.cpu().tolist() == [[-3.0] * 4] * 3
