"""A call of a graph: what it takes, the memory that it uses and returns, and the errors that its kernels report."""

import pytest
from tests.cuda.kernels import graph_of

import flambeau as torch
from flambeau.base import accelerator

A = torch.ops.aten
X = torch.linspace(-2, 2, 12).reshape(3, 4)


def test_a_shape_that_is_not_the_graphs():
    graph = graph_of(A.neg.default, X)
    with pytest.raises(ValueError, match=r"input 0 of a compiled graph has shape \(4, 3\), expected \(3, 4\)"):
        graph(X.t().cuda())


def test_inputs_of_other_strides_and_of_the_host():
    graph = graph_of(A.add.Tensor, X, X)
    for a in (X.cuda(), X, X.t().contiguous().cuda().t(), torch.stack([X, X], 2).cuda()[..., 1]):
        (found,) = graph(a, X.cuda())
        assert found.is_cuda and found.stride() == (4, 1) and torch.equal(found.cpu(), X + X)


def test_an_input_that_begins_within_its_memory():
    graph = graph_of(A.neg.default, X)
    whole = torch.cat([X, X + 1, X + 2]).cuda()
    (found,) = graph(whole[3:6])
    assert torch.equal(found.cpu(), -(X + 1))


def taken() -> int:
    """Bytes, once all that was let go has been."""
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated()


def test_only_results_take_memory_afterwards():
    x = X.cuda()
    graph = graph_of(A.sort.default, X)
    assert len(graph.temporary) > len(graph.outputs)  # the ranks are between
    before = taken()
    held = graph(x)
    after = taken()
    assert after - before == sum(-(-t.numel() * t.element_size() // 512) * 512 for t in held)  # blocks of 512 bytes
    graph(x)
    assert taken() == after
    del held
    assert taken() == before


def test_memory_serves_again_within_a_call(graphs):
    """What an operator that is called has read is let go before the next one."""

    def f(x):
        for _ in range(6):
            x = torch.linalg.inv(x * 2)
        return x

    x = torch.eye(64).cuda()
    compiled = torch.compile(f)
    compiled(x)
    before = taken()
    torch.cuda.reset_peak_memory_stats()
    compiled(x)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    names = {name for s in graphs[0].steps for name in s.last}
    assert len(names) >= 12 and peak <= 6 * x.numel() * 4, (names, peak)


def test_a_result_that_is_a_view_of_an_input_shares_its_memory():
    graph = graph_of(A.t.default, X)
    x = X.cuda()
    (found,) = graph(x)
    assert found._storage is x._storage and found.shape == (4, 3)
    x.zero_()
    assert found.cpu().count_nonzero() == 0


def test_results_that_share_memory_with_each_other(graphs):
    def f(x):
        y = x * 2
        return y, y[1]

    a, b = torch.compile(f)(X.cuda())
    a.zero_()
    assert b.cpu().count_nonzero() == 0 and len(graphs) == 1


def test_an_index_out_of_range_is_told_once():
    graph = graph_of(A.embedding.default, X, torch.tensor([0, 1]))
    assert graph.fails
    x = X.cuda()
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension with size 3"):
        graph(x, torch.tensor([0, 3]).cuda())
    (found,) = graph(x, torch.tensor([2, 0]).cuda())
    assert torch.equal(found.cpu(), X[[2, 0]])
    torch.cuda.synchronize()


def test_sizes_are_bound_at_each_call(graphs):
    f = torch.compile(lambda x, k: (x.sum(0) * k, x.shape[0] * k, x[1:]), dynamic=True)
    for n, k in ((5, 2), (6, 3), (9, 4)):
        x = torch.arange(3.0 * n).reshape(n, 3)
        total, number, rest = f(x.cuda(), k)
        torch.testing.assert_close(total.cpu(), x.sum(0) * k)
        assert number == n * k and torch.equal(rest.cpu(), x[1:])
    # The number is a symbol, too.
    assert len(graphs) == 1 and graphs[0].bound and None in graphs[0].inputs


def test_no_block_is_launched_for_nothing(graphs):
    f = torch.compile(lambda x: (x * 2, x.sum()), dynamic=True)
    for n in (4, 0, 2):
        x = torch.ones(n, 3)
        doubled, total = f(x.cuda())
        assert doubled.shape == (n, 3) and total.item() == 3 * n


def test_draws_are_recorded_by_a_cuda_graph_alone():
    """It knows whose words a replay writes anew; what only records by the driver doesn't."""
    graph, x, driver = graph_of(A.bernoulli.p, X, 0.5), X.cuda(), accelerator.needed()
    assert graph.draws
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        driver.capture_begin(0)
        with pytest.raises(NotImplementedError, match="recorded by another than torch.cuda.CUDAGraph"):
            graph(x)
        driver.Graph(0)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        (y,) = graph(x)
    found = []
    for _ in range(8):
        recorded.replay()
        found.append(tuple(y.flatten().tolist()))
    assert len(set(found)) > 1
    torch.manual_seed(3)
    (a,), (b,) = graph(x), graph(x)
    torch.manual_seed(3)
    assert torch.equal(graph(x)[0].cpu(), a.cpu()) and not torch.equal(a.cpu(), b.cpu())


def test_each_device_has_memory_of_its_own(graphs):
    f = torch.compile(lambda x: x * 2 + 1)
    for index in (0, 1):
        found = f(X.to(f"cuda:{index}"))
        assert found.device == torch.device("cuda", index) and torch.equal(found.cpu(), X * 2 + 1)
    assert [g.device.index for g in graphs] == [0, 1]
