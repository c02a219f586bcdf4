"""Work that is recorded and replayed, and events and streams around it."""

import pytest

import flambeau as torch
from flambeau.inductor.device import replay


def test_a_graph_replays_its_work_on_new_contents():
    x = torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2
        z = torch.softmax(y, 0) + y.sum()
    assert not torch.cuda.is_current_stream_capturing()
    for k in range(3):
        x.fill_(k)
        g.replay()
        torch.testing.assert_close(z.cpu(), torch.full((4,), 0.25 + 8.0 * k))
    del y  # its memory is the graph's
    torch.ones(4, device="cuda")
    g.replay()
    torch.testing.assert_close(z.cpu(), torch.full((4,), 16.25))
    before = torch.cuda.memory_allocated()
    g.reset()
    assert torch.cuda.memory_allocated() < before


def test_what_must_not_be_done_meanwhile():
    x = torch.ones(3, device="cuda")
    g = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    with torch.cuda.graph(g):
        assert torch.cuda.is_current_stream_capturing()
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
            (x + 1).cpu()
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
            torch.cuda.current_stream().synchronize()
    with pytest.raises(RuntimeError, match="not permitted"):
        torch.cuda.CUDAGraph().capture_begin()  # on the default stream


def test_a_module_trains_by_graphs_as_it_does_without():
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).cuda()
    x = torch.randn(6, 5, 4).cuda()

    def train(model, forward):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        losses = []
        for batch in x:
            optimizer.zero_grad(set_to_none=True)
            loss = forward(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    state = {name: t.clone() for name, t in plain.state_dict().items()}
    expected = train(plain, plain)
    plain.load_state_dict(state)
    graphed = torch.cuda.make_graphed_callables(plain, (torch.zeros(5, 4, device="cuda"),))
    found = train(graphed, graphed)
    assert graphed is plain
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))


def test_a_function_by_graphs():
    f = torch.cuda.make_graphed_callables(lambda a, b: (a * b, a + b), (torch.ones(3, device="cuda"),) * 2)
    a, b = torch.tensor([1.0, 2, 3]).cuda(), torch.tensor([4.0, 5, 6]).cuda()
    product, total = f(a, b)
    assert product.tolist() == [4, 10, 18] and total.tolist() == [5, 7, 9]


def test_reduce_overhead_replays_and_leaves_results_alone(monkeypatch):
    made = []
    replayed = replay.Replayed
    monkeypatch.setattr(replay, "Replayed", lambda graph: made.append(replayed(graph)) or made[-1])
    f = torch.compile(lambda x, w: torch.softmax(x @ w, 1), mode="reduce-overhead", dynamic=False)
    w = torch.linspace(-1, 1, 12).reshape(4, 3)
    given = [torch.full((2, 4), float(k)) * torch.arange(4) for k in range(4)]
    found = [f(x.cuda(), w.cuda()) for x in given]
    for x, y in zip(given, found):
        torch.testing.assert_close(y.cpu(), torch.softmax(x @ w, 1))
    (one,) = made
    assert one.calls == 4 and one.recorded is not None
