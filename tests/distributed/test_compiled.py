"""Compiled modules in DistributedDataParallel, and around it; functional collectives in graphs. Ranks are threads."""

import copy

import pytest

import flambeau as torch
import flambeau.distributed as dist
from flambeau import nn
from flambeau.aot import gradient_notes
from flambeau.distributed import functional_collectives as funcol
from flambeau.distributed import threads
from flambeau.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


torch.manual_seed(0)
BASE = Net()
X = torch.randn(4, 64)
CAP = 64 * 65 * 4 / 2**20  # a layer


def counting(graphs):
    def backend(gm, examples):
        graphs.append([n for n in gm.graph.nodes if n.op.startswith("call")])
        return gm.forward

    return backend


def wanted():
    model = copy.deepcopy(BASE)
    model(X).pow(2).mean().backward()
    return [p.grad for p in model.parameters()]


def gradients(wrap, mode=True, **options):
    """Checks those of two ranks with the module that ``wrap(net, ddp)`` makes."""
    torch._dynamo.reset()

    def run(rank):
        net = copy.deepcopy(BASE)
        model = wrap(net, lambda m: DDP(m, bucket_cap_mb=CAP, **options))
        for _ in range(2):
            net.zero_grad()
            model(X[2 * rank : 2 * rank + 2]).pow(2).mean().backward()
        return [p.grad for p in net.parameters()]

    with torch._dynamo.config.patch(optimize_ddp=mode):
        results = threads.spawn(run, 2)
    for found in results:
        for a, b in zip(found, wanted(), strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("mode", [True, "python_reducer", False])
@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True}, {"static_graph": True}], ids=str)
def test_compile_around_ddp(mode, options):
    gradients(lambda net, ddp: torch.compile(ddp(net)), mode, **options)


def test_ddp_around_compile():
    gradients(lambda net, ddp: ddp(torch.compile(net)))


@pytest.mark.parametrize("mode, parts", [(True, [2, 2, 2, 2]), (False, [8])])
def test_graphs_are_split_at_the_boundaries_of_buckets(mode, parts):
    graphs = []
    gradients(lambda net, ddp: torch.compile(ddp(net), backend=counting(graphs)), mode)
    assert [len(g) for g in graphs[: len(parts)]] == parts


def test_the_first_buckets_are_reduced_before_the_backward_ends():
    torch._dynamo.reset()

    def run(rank):
        net = copy.deepcopy(BASE)
        model = DDP(net, bucket_cap_mb=CAP)
        seen = []
        net.layers[0].weight.register_hook(lambda g: seen.append(model.reducer.next))
        torch.compile(model)(X).sum().backward()
        return seen

    assert threads.spawn(run, 1) == [[3]]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_whole_graphs_start_the_reductions_in_their_backward(backend):
    torch._dynamo.reset()

    def run(rank):
        net = copy.deepcopy(BASE)
        model = DDP(net, bucket_cap_mb=CAP)
        noted, note = [], model.reducer.note

        def watch(i, grad):
            note(i, grad)
            noted.append(model.reducer.next)

        model.reducer.note = watch
        compiled = torch.compile(model, backend=backend)
        compiled(X).sum().backward()
        return noted

    with torch._dynamo.config.patch(optimize_ddp="python_reducer"):
        assert threads.spawn(run, 1) == [[0, 1, 1, 2, 2, 3, 3, 4]]


def test_modules_that_share_compiled_code_have_their_own_reducers():
    """Another module of the class in its own DDP, one outside of it, a parameter that is used beside the graph, and accumulation."""
    torch._dynamo.reset()

    def run(rank):
        x = X[2 * rank : 2 * rank + 2]
        nets = [copy.deepcopy(BASE) for _ in range(3)]
        one, two = (torch.compile(DDP(net, bucket_cap_mb=CAP)) for net in nets[:2])
        plain = torch.compile(nets[2])
        losses = [m(x).pow(2).mean() for m in (one, two, plain)]
        (losses[1] * 2).backward()
        losses[2].backward()
        losses[0].backward()
        first = [[p.grad.clone() for p in net.parameters()] for net in nets]
        (two(x).pow(2).mean() + nets[1].layers[0].weight.sum()).backward()  # on top of what is there
        return *first, [p.grad for p in nets[1].parameters()]

    with torch._dynamo.config.patch(optimize_ddp="python_reducer"):
        for rank, (one, two, plain, again) in enumerate(threads.spawn(run, 2)):
            alone = copy.deepcopy(BASE)
            alone(X[2 * rank : 2 * rank + 2]).pow(2).mean().backward()
            rows = zip(one, two, plain, again, wanted(), [p.grad for p in alone.parameters()], strict=True)
            for k, (a, b, c, d, mean, own) in enumerate(rows):
                torch.testing.assert_close(a, mean, atol=1e-6, rtol=1e-5)
                torch.testing.assert_close(b, 2 * mean, atol=1e-6, rtol=1e-5)
                torch.testing.assert_close(c, own, atol=1e-6, rtol=1e-5)
                torch.testing.assert_close(d, 3 * mean + (k == 0), atol=1e-6, rtol=1e-5)


def test_a_mode_that_is_not_built():

    def run(rank):
        with pytest.raises(NotImplementedError, match="python_reducer"):
            DDP(copy.deepcopy(BASE))(X)

    with torch._dynamo.config.patch(optimize_ddp="python_reducer_without_compiled_forward"):
        threads.spawn(run, 1)


def test_sizes_that_vary_leave_the_graph_whole():
    def run(rank):
        model = torch.compile(DDP(copy.deepcopy(BASE), bucket_cap_mb=CAP), dynamic=True)
        return [model(X[: 2 + k]).sum().item() for k in range(2)]

    for found in threads.spawn(run, 1)[0], [BASE(X[: 2 + k]).sum().item() for k in range(2)]:
        assert found == pytest.approx([BASE(X[:2]).sum().item(), BASE(X[:3]).sum().item()], rel=1e-5)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_functional_collectives_in_a_graph(backend):
    def f(x, group):
        y = funcol.wait_tensor(funcol.all_reduce(x.sin(), "sum", group)) * 2
        z = funcol.all_gather_tensor(y, 0, group)
        return funcol.reduce_scatter_tensor(z, "avg", 0, group) + 1

    def run(rank):
        group = dist.group.WORLD
        alone = [dist.new_group([0]), dist.new_group([1])][rank]
        compiled = torch.compile(f, backend=backend, fullgraph=True)
        for g in (group, alone, group):  # the group is guarded
            x = (torch.arange(6.0).view(2, 3) + rank).requires_grad_()
            y = x.detach().clone().requires_grad_()
            torch.testing.assert_close(compiled(x, g), f(y, g))
            compiled(x, g).sum().backward()
            f(y, g).sum().backward()
            torch.testing.assert_close(x.grad, y.grad)
        n = 2
        torch.testing.assert_close(x.grad, 2 * n * x.cos().detach())

    threads.spawn(run, 2)


def test_functional_collectives():
    def run(rank):
        x = torch.arange(4.0).view(2, 2) + 10 * rank
        g = dist.group.WORLD
        assert funcol.all_gather_tensor(x, 1, g).tolist() == [[0, 1, 10, 11], [2, 3, 12, 13]]
        assert funcol.reduce_scatter_tensor(x, "max", 1, [0, 1]).tolist() == [[10.0 + rank], [12.0 + rank]]
        assert funcol.broadcast(x, 1, g.group_name).tolist() == [[10, 11], [12, 13]]
        assert funcol.permute_tensor(x, [1, 0], g)[0, 0].item() == 10 - 10 * rank
        assert funcol.all_to_all_single(x, None, None, g).tolist() == [
            [2 * rank, 1 + 2 * rank],
            [10 + 2 * rank, 11 + 2 * rank],
        ]
        with pytest.raises(RuntimeError, match="Could not resolve"):
            funcol.all_reduce(x, "sum", "nobody")
        with pytest.raises(ValueError, match="Invalid reduce operation"):
            funcol.all_reduce(x, "median", g)

    threads.spawn(run, 2)


def test_ranks_that_captured_other_collectives():
    """An error on all ranks before the graph runs; none where one rank alone compiles again."""

    def run(rank):
        group = dist.group.WORLD

        def f(x, more, k=1):
            y = funcol.all_reduce(x, "sum", group)
            return funcol.all_reduce(y, "max", group) if more else y + k

        compiled, x = torch.compile(f, backend="eager", fullgraph=True, dynamic=False), torch.ones(2)
        for k in (1, 2) if rank == 0 else (1, 1):
            assert compiled(x, False, k).tolist() == [2.0 + k] * 2
        with pytest.raises(
            dist.DistBackendError, match="different collectives:(.|\n)*rank 0: .*max.*\n.*rank 1: .*min"
        ):
            torch.compile(lambda x: funcol.all_reduce(x, "min" if rank else "max", group), backend="eager")(x)
        with pytest.raises(
            dist.DistBackendError, match="called different collectives"
        ):  # rank 1 has compared its order
            torch.compile(f, backend="eager")(x, rank == 0)

    torch._dynamo.reset()
    threads.spawn(run, 2)


def test_collectives_under_vmap():
    def run(rank):
        with pytest.raises(RuntimeError, match="is a collective, which has no batching rule"):
            torch.vmap(lambda x: funcol.all_reduce(x, "sum", dist.group.WORLD))(torch.ones(3, 2))

    threads.spawn(run, 1)


def test_collectives_that_can_be_differentiated():
    from flambeau.distributed import differentiable as functional

    def run(rank):
        x = torch.tensor([1.0, 2.0]) * (rank + 1)
        x.requires_grad_()
        every = functional.all_gather(x)
        (functional.all_reduce(x).prod() + every[0].sum() * (rank + 1)).backward()
        # two ranks: d/dx of 2 * prod(sum), and of 3 * sum of rank 0's
        assert x.grad.tolist() == [12.0 + 3 * (rank == 0), 6.0 + 3 * (rank == 0)]

    threads.spawn(run, 2)


def test_weights_gradients_come_before_those_of_inputs(monkeypatch):
    """So the reduction of a bucket takes the time in which the layers before it are differentiated."""
    graphs, insert = [], gradient_notes.insert
    monkeypatch.setattr(gradient_notes, "insert", lambda gm, inputs: (insert(gm, inputs), graphs.append(gm)))
    gradients(lambda net, ddp: torch.compile(ddp(net)), "python_reducer")
    products, found = 0, []
    for node in graphs[0].graph.nodes:
        name = getattr(node.target, "_opname", None)
        products += name == "mm"
        if name == "arrived" and node.args[0].meta["val"].ndim == 2:
            found.append(products)
    assert found == [1, 3, 5, 7]
