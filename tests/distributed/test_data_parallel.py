"""DistributedDataParallel between threads: every option trains to the single process's parameters."""

import contextlib
import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed import comm_hooks, local_sgd, optimizer_in_backward, threads
from flambeau.distributed.join import Join
from flambeau.nn.parallel import DistributedDataParallel as DDP

RANKS, STEPS = 2, 4
GEN = torch.Generator().manual_seed(0)
X, Y = torch.randn(8, 20, generator=GEN), torch.randn(8, 5, generator=GEN)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(20, 60), nn.Linear(60, 60)
        self.spare = nn.Linear(60, 60)  # used where asked
        self.last = nn.Linear(60, 5)

    def forward(self, x, spare=True):
        x = torch.relu(self.second(torch.relu(self.first(x))))
        return self.last(self.spare(x) if spare else x)


def made():
    torch.manual_seed(3)
    return Net()


BASE = made()


def part(t, rank):
    k = len(t) // RANKS
    return t[rank * k : (rank + 1) * k]


def step(model, optimizer, x, y, spare=True):
    optimizer.zero_grad()
    ((model(x, spare) - y) ** 2).mean().backward()
    optimizer.step()


def train(model, x, y, spare=lambda k: True):
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for k in range(STEPS):
        step(model, optimizer, x, y, spare(k))
    return [p.detach().clone() for p in model.parameters()]


def single(spare=lambda k: True):
    return train(copy.deepcopy(BASE), X, Y, spare)


def same(found, wanted, atol=1e-6):
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=atol, rtol=1e-5)


def on_ranks(run):
    """``run(rank, a module that starts alike on all ranks but is spoilt on rank 1)`` on all ranks."""

    def one(rank):
        model = copy.deepcopy(BASE)
        if rank:
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(1)
        return run(rank, model)

    return threads.spawn(one, RANKS)


OPTIONS = [
    {},
    {"bucket_cap_mb": 0.01},
    {"bucket_cap_mb": 0.01, "gradient_as_bucket_view": True},
    {"find_unused_parameters": True},
    {"bucket_cap_mb": 0.01, "static_graph": True},
    {"static_graph": True, "gradient_as_bucket_view": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_trains_as_one_process_with_the_whole_batch(options):
    for found in on_ranks(lambda rank, m: train(DDP(m, **options), part(X, rank), part(Y, rank))):
        same(found, single())


@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True}], ids=str)
def test_parameters_that_are_not_used(options):
    def run(rank, m):
        found = train(DDP(m, **options), part(X, rank), part(Y, rank), lambda k: False)
        assert m.spare.weight.grad is None
        return found

    for found in on_ranks(run):
        same(found, single(lambda k: False))


def test_used_by_one_rank_alone():
    def run(rank, m):
        model = DDP(m, find_unused_parameters=True)
        model(part(X, rank), spare=rank == 0).sum().backward()
        return m.spare.bias.grad

    alone = copy.deepcopy(BASE)
    alone(part(X, 0)).sum().backward()
    for grad in on_ranks(run):
        torch.testing.assert_close(grad, alone.spare.bias.grad / RANKS)


def test_an_unused_parameter_without_the_option_is_named():
    def run(rank, m):
        model = DDP(m)
        model(part(X, rank), spare=False).sum().backward()
        with pytest.raises(RuntimeError, match="Expected to have finished reduction(.|\n)*spare.weight, spare.bias"):
            model(part(X, rank), spare=False)

    on_ranks(run)


@pytest.mark.parametrize("how", ["no_sync", "attribute"])
def test_gradients_accumulated_without_reduction(how):
    def run(rank, m):
        model = DDP(m)
        x = part(X, rank)
        with model.no_sync() if how == "no_sync" else contextlib.nullcontext():
            if how == "attribute":  # as nanoGPT does
                model.require_backward_grad_sync = False
            model(x[:2]).sum().backward()
            first = m.last.bias.grad.clone()
        model.require_backward_grad_sync = True
        model(x[2:]).sum().backward()
        return first, [p.grad for p in m.parameters()]

    whole = copy.deepcopy(BASE)
    (whole(X).sum() / RANKS).backward()
    (local, _), _ = results = on_ranks(run)
    assert local.tolist() == [2.0] * 5
    for _, grads in results:
        same(grads, [p.grad for p in whole.parameters()], atol=1e-5)


def test_buffers_are_those_of_the_first_rank():
    def run(rank, _):
        model = nn.Sequential(nn.Linear(20, 6), nn.BatchNorm1d(6))
        ddp = DDP(model)
        ddp(part(X, rank))
        ddp(part(X, rank))
        return model[1].running_mean

    def before_forward(rank, _):
        model = nn.Sequential(nn.Linear(20, 6), nn.BatchNorm1d(6))
        ddp = DDP(model, broadcast_buffers=False)
        ddp(part(X, rank))
        return model[1].running_mean

    on_ranks(run)
    one, two = on_ranks(before_forward)
    assert not torch.equal(one, two)


def test_buckets_are_built_anew_in_the_order_of_gradients():
    def run(rank, m):
        model = DDP(m, bucket_cap_mb=0.01)
        before = [b.indices for b in model.reducer.buckets]
        train(model, part(X, rank), part(Y, rank))
        return before, [b.indices for b in model.reducer.buckets], model._get_ddp_logging_data()

    for before, after, facts in on_ranks(run):
        assert sorted(sum(before, [])) == sorted(sum(after, [])) == list(range(8))
        assert before[0][0] == 7 and facts["has_rebuilt_buckets"] == 1 and len(after) > 1


def test_reduction_begins_in_the_backward():
    def run(rank, m):
        model = DDP(m, bucket_cap_mb=0.001)
        started = []
        m.first.weight.register_hook(lambda g: started.append(model.reducer.next))
        model(part(X, rank)).sum().backward()
        return started

    assert all(found[0] >= 2 for found in on_ranks(run))


@pytest.mark.parametrize(
    "hook, tolerance",
    [
        ("allreduce_hook", 1e-6),
        ("fp16_compress_hook", 1e-2),
        ("bf16_compress_hook", 5e-2),
        ("fp16_compress_wrapper", 1e-2),
        ("powerSGD_hook", 1e-6),
        ("batched_powerSGD_hook", 1e-6),
    ],
)
def test_hooks(hook, tolerance):
    from flambeau.distributed import comm_hooks, power_sgd

    def run(rank, m):
        model = DDP(m)
        if "power" in hook:
            # Rank 64 of these matrices is exact but for rounding.
            state = power_sgd.PowerSGDState(None, 64, start_powerSGD_iter=2, min_compression_rate=0.001)
            model.register_comm_hook(state, getattr(power_sgd, hook))
        elif hook.endswith("wrapper"):
            model.register_comm_hook(None, comm_hooks.fp16_compress_wrapper(comm_hooks.allreduce_hook))
        else:
            model.register_comm_hook(None, getattr(comm_hooks, hook))
        return train(model, part(X, rank), part(Y, rank))

    for found in on_ranks(run):
        same(found, single(), 1e-2 if "batched" in hook else 5e-3 if "power" in hook else tolerance)


def test_statistics_of_all_ranks():
    torch.manual_seed(1)
    alone = nn.Sequential(nn.Linear(20, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
    both = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone))
    (alone(X) ** 2).mean().backward()

    def run(rank):
        model = copy.deepcopy(both)
        (DDP(model)(part(X, rank)) ** 2).mean().backward()
        return [p.grad for p in model.parameters()] + [model[1].running_mean, model[1].running_var]

    for found in threads.spawn(run, RANKS):
        same(found, [p.grad for p in alone.parameters()] + [alone[1].running_mean, alone[1].running_var])


def test_fewer_batches_on_one_rank():
    def run(rank, m):
        model = DDP(m)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        with Join([model]):
            for _ in range(2 + rank):
                step(model, optimizer, part(X, rank), part(Y, rank))
        return [p.detach().clone() for p in m.parameters()]

    one, two = on_ranks(run)
    same(one, two, 0)

    def throws(rank, m):
        model = DDP(m)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        with pytest.raises(RuntimeError, match="exhausted"):
            with Join([model], throw_on_early_termination=True):
                for _ in range(2 + rank):
                    step(model, optimizer, part(X, rank), part(Y, rank))

    on_ranks(throws)


JOINS = {
    "static graph": ({"static_graph": True, "bucket_cap_mb": 0.01}, None),
    "unused": ({"find_unused_parameters": True}, None),
    "hook": ({"bucket_cap_mb": 0.01}, lambda state, bucket: comm_hooks.allreduce_hook(None, bucket)),
}


@pytest.mark.parametrize("case", JOINS)
@pytest.mark.parametrize("initial", [True, False])
def test_means_over_ranks_that_have_input(case, initial):
    """What one process computes of the batches that the ranks have; a rank that never has any takes part too."""
    options, hook = JOINS[case]
    counts = [3, 0, 1]

    def wanted():
        model = copy.deepcopy(BASE)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for k in range(max(counts)):
            going = [r for r in range(3) if counts[r] > k]
            optimizer.zero_grad()
            for r in going:
                ((model(X[2 * r : 2 * r + 2]) - Y[2 * r : 2 * r + 2]) ** 2).mean().backward()
            for p in model.parameters():
                p.grad /= 3 if initial or hook else len(going)
            optimizer.step()
        return [p.detach() for p in model.parameters()]

    def run(rank):
        model = DDP(copy.deepcopy(BASE), **options)
        if hook is not None:
            model.register_comm_hook(None, hook)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        rows = slice(2 * rank, 2 * rank + 2)
        with model.join(divide_by_initial_world_size=initial):
            for _ in range(counts[rank]):
                step(model, optimizer, X[rows], Y[rows])
        return [p.detach().clone() for p in model.parameters()]

    found = threads.spawn(run, 3)
    same(found[0], wanted())
    for other in found[1:]:
        same(found[0], other, 0)


def test_ranks_with_other_modules():
    def run(rank):
        with pytest.raises(RuntimeError, match="same model across all ranks"):
            DDP(nn.Sequential(*(nn.Linear(2, 2) for _ in range(rank + 1))))
        with pytest.raises(RuntimeError, match="appears not to match sizes"):
            DDP(nn.Linear(2, 2 + rank))

    threads.spawn(run, RANKS)


def test_what_is_refused():
    def run(rank):
        with pytest.raises(RuntimeError, match="any parameters that require a gradient"):
            DDP(nn.ReLU())
        with pytest.raises(ValueError, match="device_ids"):
            DDP(nn.Linear(2, 2), device_ids=[0])
        model = DDP(nn.Linear(2, 2))
        assert set(model.state_dict()) == {"module.weight", "module.bias"}
        model.load_state_dict(model.state_dict())
        model.register_comm_hook(None, lambda s, b: None)
        with pytest.raises(RuntimeError, match="called once"):
            model.register_comm_hook(None, lambda s, b: None)

    threads.spawn(run, 1)
    with pytest.raises(ValueError, match="init_process_group"):
        DDP(nn.Linear(2, 2))


def test_samplers_take_the_ranks_of_the_group():
    def run(rank):
        sampler = torch.utils.data.DistributedSampler(range(10), shuffle=False)
        return list(sampler)

    assert threads.spawn(run, 2) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_callbacks_at_the_end_of_a_backward():
    from flambeau.autograd.engine import queue_callback

    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: queue_callback(lambda: seen.append(x.grad.tolist())))
    y.sum().backward()
    assert seen == [[2.0, 2.0]]
    with pytest.raises(RuntimeError, match="during backward"):
        queue_callback(print)


def test_optimizer_state_in_shares():
    from flambeau.distributed.optim import ZeroRedundancyOptimizer

    def steps(model, optimizer, x, y, n):
        for _ in range(n):
            step(model, optimizer, x, y)
        return [p.detach().clone() for p in model.parameters()]

    alone = copy.deepcopy(BASE)
    wanted = steps(alone, torch.optim.Adam(alone.parameters(), lr=0.01), X, Y, 4)

    def run(rank, m):
        model = DDP(m)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
        steps(model, optimizer, part(X, rank), part(Y, rank), 2)
        with pytest.raises(RuntimeError, match="consolidate"):
            optimizer.state_dict()
        for to in range(RANKS):
            optimizer.consolidate_state_dict(to)
        state = optimizer.state_dict()
        assert len(state["state"]) == 8 and len(optimizer.optim.state) < 8
        again = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.5)
        again.load_state_dict(state)
        return steps(model, again, part(X, rank), part(Y, rank), 2)

    for found in on_ranks(run):
        same(found, wanted, 1e-5)


def test_meshes():
    import flambeau.distributed as dist

    def run(rank):
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        assert mesh.mesh.tolist() == [[0, 1], [2, 3]] and mesh.shape == (2, 2) and mesh.size() == 4
        assert mesh.get_coordinate() == [rank // 2, rank % 2]
        assert mesh["dp"].mesh.tolist() == [rank % 2, rank % 2 + 2]
        assert mesh["tp"].get_local_rank() == mesh.get_local_rank("tp") == rank % 2
        x = torch.tensor([rank])
        dist.all_reduce(x, group=mesh.get_group("dp"))
        assert x.item() == 2 * (rank % 2) + 2
        model = DDP(nn.Linear(2, 2), device_mesh=mesh["dp"])
        assert model.process_group.size() == 2
        with pytest.raises(KeyError, match="pp"):
            mesh["pp"]
        with pytest.raises(RuntimeError, match="needs 3 ranks"):
            dist.init_device_mesh("cpu", (3,))

    threads.spawn(run, 4)


def test_local_steps_and_averages():
    """Three steps of local SGD: the first reduces gradients, the others leave ranks apart, until their parameters are averaged."""

    def run(rank):
        alone = torch.distributed.new_subgroups(1)[0]
        model = DDP(nn.Linear(2, 1))
        with torch.no_grad():
            model.module.weight.fill_(1), model.module.bias.fill_(0)
        model.register_comm_hook(local_sgd.PostLocalSGDState(None, alone, 1), local_sgd.post_localSGD_hook)
        averager = local_sgd.PeriodicModelAverager(2, warmup_steps=2)
        optimizer = local_sgd.PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), 0.25), averager)
        seen = []
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.full((1, 2), rank + 1.0)).sum().backward()
            optimizer.step()
            seen.append(model.module.weight[0, 0].item())
        state = optimizer.state_dict()
        assert state["step"] == 3
        averager.step = 0
        optimizer.load_state_dict(state)
        assert averager.step == 3
        with pytest.warns(UserWarning, match="does not contain a step counter"):
            optimizer.load_state_dict({k: v for k, v in state.items() if k != "step"})
        return seen

    # The gradient is rank + 1, the mean 1.5.
    assert threads.spawn(run, 2) == [[0.625, 0.375, -0.125], [0.625, 0.125, -0.125]]
    for options, text in (((0,), "``period``"), ((1, -1), "``warmup_steps``")):
        with pytest.raises(ValueError, match=text):
            local_sgd.PeriodicModelAverager(*options, process_group=1)


def test_optimizers_that_step_in_the_backward():
    """Behind the reduction: parameters are those of all ranks' mean, and gradients are gone."""

    def run(rank):
        model = nn.Linear(2, 1)
        with torch.no_grad():
            model.weight.fill_(1), model.bias.fill_(0)
        optimizer_in_backward.apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 1.0})
        assert len(optimizer_in_backward.get_in_backward_optimizers(model)) == 2
        wrapped = DDP(model)
        wrapped(torch.full((1, 2), rank + 1.0)).sum().backward()
        assert model.weight.tolist() == [[-0.5, -0.5]] and model.weight.grad is None

    threads.spawn(run, 2)
    alone = nn.Linear(1, 1, bias=False)
    before = alone.weight.item()
    optimizer_in_backward.apply_optimizer_in_backward(torch.optim.SGD, alone.parameters(), {"lr": 1.0})
    alone(torch.ones(1, 1)).sum().backward()
    assert alone.weight.item() == before - 1 and alone.weight.grad is None


def test_facts_about_the_module_and_pickles(tmp_path):
    def run(rank):
        model = DDP(nn.Linear(2, 1))
        model._set_ddp_runtime_logging_sample_rate(2)
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
        found = model._get_ddp_logging_data()
        assert found["iteration"] == 2 and found["has_rebuilt_buckets"] == 1 and found["dtypes"] == "float"
        assert found["prev_iteration_grad_ready_order_indices"] in ("0, 1", "1, 0")
        assert found["forward_compute_time"] > 0 and found["has_error"] == 0
        with pytest.raises(RuntimeError, match="before training loop starts"):
            model._set_static_graph()
        assert "before training loop starts" in model._get_ddp_logging_data()["error"]
        torch.save(model, path := tmp_path / f"{rank}.pt")
        again = torch.load(path, weights_only=False)
        again(torch.full((1, 2), float(rank))).sum().backward()
        assert again.module.weight.grad.tolist() == [[0.5, 0.5]]

    threads.spawn(run, 2)


def test_gradients_of_passes_without_reduction_count_as_used():
    """A parameter that one rank used in a pass inside of no_sync, and nobody in the pass that reduces."""

    def run(rank):
        class Turns(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts, self.turn = nn.ModuleList(nn.Linear(1, 1) for _ in range(4)), -1

            def forward(self, x):
                self.turn += 1
                return self.parts[2 * rank + self.turn](x)

        model = DDP(Turns(), find_unused_parameters=True)
        with model.no_sync():
            model(torch.ones(1, 1)).sum().backward()
        model(torch.ones(1, 1)).sum().backward()
        assert [p.grad.item() for p in model.parameters()] == [0.5] * 8

    threads.spawn(run, 2)
