"""Sharded modules: the steps of training are those of one process, on shares of the batch. Ranks are threads."""

import contextlib
import copy
import functools
import threading
import time

import pytest
from tests.distributed import models

import flambeau as torch
from flambeau import nn
from flambeau.distributed import collectives, threads
from flambeau.distributed.checkpoint_wrapper import CheckpointWrapper, apply_activation_checkpointing
from flambeau.distributed.exchange import ThrottledEngine
from flambeau.distributed.fsdp import (
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    OptimStateKeyType,
    ShardingStrategy,
    StateDictType,
    fully_shard,
    register_fsdp_forward_method,
)
from flambeau.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
from flambeau.distributed.tensor import DTensor, Shard, distribute_tensor, init_device_mesh
from flambeau.distributed.work import Work
from flambeau.utils.checkpoint import checkpoint


def shards_of(model):
    return [m._fsdp_state.shards for m in model.modules() if isinstance(m, FSDPModule)]


def share(rank, ranks):
    n = 4 // ranks
    return slice(n * rank, n * rank + n)


def layers(model, mesh=None, **options):
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


class Checkpointed(models.Block):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


def recomputed(model):
    for layer in model.layers:
        layer.__class__ = Checkpointed
    return layers(model)


def compiled(model):
    for layer in model.layers:
        layer.compile(backend="aot_eager")
    return layers(model)


def wrapped_by_checkpoints(model):
    apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, models.Block))
    assert isinstance(model.layers[0], CheckpointWrapper) and list(model.state_dict()) == list(models.BASE.state_dict())
    model.load_state_dict(models.BASE.state_dict())
    return layers(model)


def told_what_to_gather(model):
    fully_shard([*model.layers, model.head])
    fully_shard(model)
    first, second = model.layers
    first.set_modules_to_forward_prefetch([second])
    model.head.set_modules_to_backward_prefetch([second, first])
    second.set_modules_to_backward_prefetch([])
    return model


WAYS = {
    "layers": layers,
    "whole": fully_shard,
    "kept": lambda m: layers(m, reshard_after_forward=False),
    "always freed": lambda m: layers(m, reshard_after_forward=True),
    "columns": lambda m: layers(m, shard_placement_fn=lambda p: Shard(p.dim() - 1)),
    "replicas": lambda m: layers(m, init_device_mesh("cpu", (2, 1))),
    "recomputed": recomputed,
    "recomputed by wrappers": wrapped_by_checkpoints,
    "told what to gather": told_what_to_gather,
    "compiled": compiled,
    "compiled around": layers,
    "wrapper": lambda m: FullyShardedDataParallel(m, auto_wrap_policy=ModuleWrapPolicy({models.Block, nn.Embedding})),
    "wrapper by size": lambda m: FullyShardedDataParallel(
        m,
        auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params=500),
        sharding_strategy=ShardingStrategy.SHARD_GRAD_OP,
        sync_module_states=True,
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_training(name):
    _, parameters = models.wanted()
    torch._dynamo.reset()

    def run(rank):
        model = WAYS[name](copy.deepcopy(models.BASE))
        called = torch.compile(model, backend="aot_eager") if name == "compiled around" else model
        models.train(called, models.sgd(model), share(rank, 2))
        models.check(model, parameters)
        for shards in shards_of(model):
            assert shards.whole is None and shards.pending is None
        assert all(p.grad.placements == p.placements for p in model.parameters())

    threads.spawn(run, 2)


@pytest.mark.parametrize("mesh", [(4,), (2, 2)])
def test_four_ranks_and_sizes_that_do_not_divide(mesh):
    x = torch.randn(4, 5)

    base = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3), nn.Linear(3, 1))

    def step(model, x):
        optimizer = torch.optim.AdamW(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        return model

    want = dict(step(copy.deepcopy(base), x).named_parameters())

    def run(rank):
        model = copy.deepcopy(base)
        grid = init_device_mesh("cpu", mesh)
        fully_shard(model[0], mesh=grid)
        step(fully_shard(model, mesh=grid), x[rank : rank + 1])
        models.check(model, {name: p.detach() for name, p in want.items()})

    threads.spawn(run, 4)


def test_parameters_are_freed_and_gathered_ahead(monkeypatch):
    log, gather = [], collectives.all_gather_into_tensor

    def run(rank):
        def counted(out, given, group, async_op=False):
            if rank == 0:
                log.append(async_op)
            return gather(out, given, group, async_op)

        monkeypatch.setattr(collectives, "all_gather_into_tensor", counted) if rank == 0 else None
        model = layers(copy.deepcopy(models.BASE), reshard_after_forward=True)
        seen = []
        model.layers[0].register_forward_hook(lambda m, x, y: seen.append(type(m.m.up.weight)))
        for _ in range(2):
            loss = model(models.TEXT).sum()
            assert all(s.whole is None for s in shards_of(model))
            assert isinstance(model.layers[0].m.up.weight, DTensor) and seen[-1] is torch.Tensor
            if rank == 0:
                log.append("backward")
            loss.backward()
            if rank == 0:
                log.append("end")

    threads.spawn(run, 1)
    # three groups forward and backward; from the second pass on the next one is asked for ahead
    assert log[:4] == [False, False, False, "backward"]
    assert log.count(True) >= 2 and len(log) == 16


class HeldEngine(ThrottledEngine):
    """Messages asked for ahead are held until the rank computes, which counts them as hidden, or waits for them."""

    def __init__(self, engine, queue):
        super().__init__(engine, float("inf"))
        self.queue, self.caller, self.moment = queue, threading.current_thread(), threading.Condition()
        self.computes = self.waits = False
        self.sent = self.hidden = 0

    def run(self, transfer, timeout):
        self.sent += 1
        if threading.current_thread() is not self.caller:
            with self.moment:
                assert self.moment.wait_for(lambda: self.computes or self.waits, timeout)
                self.hidden += self.computes
        self.engine.run(transfer, timeout)

    @contextlib.contextmanager
    def during(self, what):
        with self.moment:
            setattr(self, what, True)
            self.moment.notify_all()
        try:
            yield
        finally:
            with self.moment:
                setattr(self, what, False)

    def compute(self):
        """A step that takes as long as the messages under way."""
        with self.during("computes"):
            while self.queue.jobs or self.queue.running:
                time.sleep(0.001)


class Long(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        torch.distributed.group.WORLD._engine.compute()
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        torch.distributed.group.WORLD._engine.compute()
        return g.clone()


class Layer(nn.Linear):
    def forward(self, x):
        return Long.apply(super().forward(x))


def test_communication_runs_beside_the_passes(monkeypatch):
    wait = Work.wait

    def waited(work, timeout=None):
        with torch.distributed.group.WORLD._engine.during("waits"):
            return wait(work, timeout)

    def run(rank):
        model = nn.Sequential(*(Layer(64, 64, bias=False) for _ in range(4)))
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        group = torch.distributed.group.WORLD
        group._engine = engine = HeldEngine(group._engine, group._queue)
        torch.distributed.barrier()
        for _ in range(3):
            engine.sent = engine.hidden = 0
            model(torch.ones(2, 64)).sum().backward()
        return engine.sent, engine.hidden

    monkeypatch.setattr(Work, "wait", waited)
    # Nothing hides the first gather of each pass and the last reduction.
    assert threads.spawn(run, 2) == [(12, 9)] * 2


def test_gradients_that_are_watched_and_passes_that_fail():
    x = torch.randn(2, 4)
    base = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
    base(x).pow(2).sum().backward()
    want = [p.grad for p in base.parameters()]

    def check(found):
        for g, w in zip(found, want, strict=True):
            torch.testing.assert_close(g.full_tensor(), w)

    def run(rank):
        model = copy.deepcopy(base)
        model.zero_grad()
        fully_shard(model[0])
        fully_shard(model)
        params = list(model.parameters())
        check(torch.autograd.grad(model(x).pow(2).sum(), params))
        assert all(p.grad is None for p in params)
        loss = model(x).pow(2).sum()
        with pytest.raises(ZeroDivisionError):
            y = model[0](x)
            y.register_hook(lambda g: 1 / 0)
            (loss + y.sum()).backward()
        model.zero_grad()
        model(x).pow(2).sum().backward()
        check([p.grad for p in params])
        model(x).pow(2).sum().backward()
        check([p.grad / 2 for p in params])
        seen = {}
        for k, p in enumerate(params):
            p.grad = None
            p.register_post_accumulate_grad_hook(lambda p, k=k: seen.update({k: p.grad.clone()}))
        model(x).pow(2).sum().backward()
        check([seen[k] for k in range(len(params))])

    threads.spawn(run, 2)


def test_gradients_kept_and_precision():
    _, parameters = models.wanted(steps=1, clip=False)

    def run(rank):
        model = layers(copy.deepcopy(models.BASE))
        optimizer = models.sgd(model)
        rows = share(rank, 2)
        for k in range(2):  # half of the share at a time, reduced by the second
            model.set_requires_gradient_sync(k == 1)
            part = slice(rows.start + k, rows.start + k + 1)
            loss = nn.functional.cross_entropy(model(models.TEXT[part]).flatten(0, 1), models.NEXT[part].flatten())
            (loss / 2).backward()
            assert (next(model.parameters()).grad is None) == (k == 0)
        optimizer.step()
        models.check(model, parameters)
        half = layers(copy.deepcopy(models.BASE), mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
        seen = []
        half.layers[0].m.up.register_forward_hook(lambda m, x, y: seen.extend((m.weight.dtype, y.dtype)))
        half(models.TEXT).float().sum().backward()
        assert seen[:2] == [torch.bfloat16] * 2 and half.head.weight.grad.dtype is torch.float32

    threads.spawn(run, 2)


def test_frozen_shared_and_ignored_parameters():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight = self.a.weight
            self.c.weight.requires_grad_(False)

        def forward(self, x):
            return self.c(self.b(self.a(x)))

    torch.manual_seed(0)
    base, x = Tied(), torch.randn(2, 4)

    def run(rank):
        want, model = copy.deepcopy(base), copy.deepcopy(base)
        fully_shard(model, ignored_params={model.c.bias})
        assert model.a.weight is model.b.weight and not isinstance(model.c.bias, DTensor)
        want(x).sum().backward()
        model(x).sum().backward()
        assert model.c.weight.grad is None
        torch.testing.assert_close(model.a.weight.grad.full_tensor(), want.a.weight.grad)
        with torch.no_grad():
            torch.testing.assert_close(model(x), want(x))
        with pytest.raises(ZeroDivisionError), contextlib.ExitStack() as stack:
            handle = model.b.register_forward_pre_hook(lambda m, x: 1 / 0)
            stack.callback(handle.remove)
            model(x)
        assert isinstance(model.a.weight, DTensor) and all(s.whole is None for s in shards_of(model))
        register_fsdp_forward_method(model, "extra_repr")
        assert model.extra_repr() == ""
        handle = model.unshard(async_op=True)
        handle.wait()
        assert shards_of(model)[0].whole is not None
        model.reshard()

    threads.spawn(run, 2)


def test_wrapper_state_dicts():
    def run(rank):
        model = FullyShardedDataParallel(copy.deepcopy(models.BASE), auto_wrap_policy=ModuleWrapPolicy({models.Block}))
        state = model.state_dict()
        assert state.keys() == models.BASE.state_dict().keys() == dict(model.named_parameters()).keys()
        for name, t in models.BASE.state_dict().items():
            assert torch.equal(state[name], t)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            assert all(isinstance(t, DTensor) for t in model.state_dict().values())
        model.load_state_dict({name: t + 1 for name, t in state.items()})
        with FullyShardedDataParallel.summon_full_params(model):
            assert torch.equal(model.module.head.weight, models.BASE.head.weight + 1)
            with torch.no_grad():
                model.module.head.weight.zero_()
        assert not model.state_dict()["head.weight"].any()
        model(models.TEXT).sum().backward()
        assert model.clip_grad_norm_(0.1) > 0.1
        with model.no_sync():
            model(models.TEXT).sum().backward()
        assert model.e.weight is model.module.e.weight

    threads.spawn(run, 2)


STRATEGIES = [ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD, ShardingStrategy.HYBRID_SHARD]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_optimizer_states_of_wrappers(strategy):
    """They are one process's, whole or in shards, and training goes on from them."""
    want = copy.deepcopy(models.BASE)
    alone = torch.optim.AdamW(want.parameters(), 0.01)
    models.train(want, alone, steps=2)
    names = [name for name, _ in want.named_parameters()]
    states = {name: alone.state[p] for name, p in want.named_parameters()}

    def made():
        model = FullyShardedDataParallel(
            copy.deepcopy(models.BASE), sharding_strategy=strategy, auto_wrap_policy=ModuleWrapPolicy({models.Block})
        )
        return model, torch.optim.AdamW(model.parameters(), 0.01)

    def run(rank):
        kind = FullyShardedDataParallel
        model, optimizer = made()
        models.train(model, optimizer, share(rank, 2), steps=2)
        whole = kind.optim_state_dict(model, optimizer)
        assert list(whole["state"]) == names == whole["param_groups"][0]["params"]
        for name in names:
            torch.testing.assert_close(whole["state"][name]["exp_avg"], states[name]["exp_avg"], atol=1e-6, rtol=1e-4)
        by_number = kind.rekey_optim_state_dict(whole, OptimStateKeyType.PARAM_ID, model, optim=optimizer)
        assert list(by_number["state"]) == list(range(len(names)))
        assert kind.rekey_optim_state_dict(by_number, OptimStateKeyType.PARAM_NAME, model, optim=optimizer) == {
            **whole,
            "param_groups": [{**whole["param_groups"][0], "params": sorted(names)}],
        }
        with kind.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            shards = kind.optim_state_dict(model, optimizer)
        assert all(isinstance(s["exp_avg"], DTensor) for s in shards["state"].values())
        first = kind.full_optim_state_dict(model, optimizer)
        assert bool(first) == (rank == 0)
        parameters = {name: p.full_tensor().detach() for name, p in model.named_parameters()}
        models.train(model, optimizer, share(rank, 2), steps=1)
        after = {name: p.full_tensor().detach() for name, p in model.named_parameters()}
        ways = (
            lambda m, o: kind.optim_state_dict_to_load(m, o, whole),
            lambda m, o: kind.optim_state_dict_to_load(m, o, shards),
            lambda m, o: kind.scatter_full_optim_state_dict(first, m, optim=o),
        )
        for way in ways:
            again, optimizer = made()
            again.load_state_dict(parameters)
            optimizer.load_state_dict(way(again, optimizer))
            models.train(again, optimizer, share(rank, 2), steps=1)
            models.check(again, after)

    threads.spawn(run, 2)


def test_whole_parameters_with_gradients():
    def run(rank):
        model = FullyShardedDataParallel(nn.Linear(3, 5))
        model(torch.ones(2, 3)).sum().backward()
        with FullyShardedDataParallel.summon_full_params(model, with_grads=True):
            grad = model.module.weight.grad
            assert type(grad) is torch.Tensor and grad.tolist() == [[2.0] * 3] * 5
            grad.mul_(3)
        assert model.weight.grad.full_tensor().tolist() == [[6.0] * 3] * 5

    threads.spawn(run, 2)


class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.ones(2, device="meta"))

    def forward(self, x):
        return x * self.p


def test_modules_on_the_meta_device():
    def run(rank):
        with torch.device("meta"):
            model = layers(models.GPT())
            wrapped = models.GPT()
        assert all(p.is_meta for p in model.parameters())
        model.to_empty(device="cpu")
        model.load_state_dict(sharded(model))
        models.train(model, models.sgd(model), share(rank, 2))
        models.check(model, models.wanted()[1])
        seen = []
        FullyShardedDataParallel(
            wrapped,
            auto_wrap_policy=ModuleWrapPolicy({models.Block}),
            param_init_fn=lambda m: seen.append(type(m)) or m.to_empty(device="cpu", recurse=False),
        )
        assert seen.count(nn.Linear) == 13

    def sharded(model):
        return {
            name: distribute_tensor(models.BASE.get_parameter(name).detach(), p.device_mesh, p.placements)
            for name, p in model.named_parameters()
        }

    threads.spawn(run, 2)


def test_parameters_that_are_cast_and_replaced():
    def run(rank):
        model = fully_shard(nn.Linear(3, 5))
        before = model.weight
        model.to(torch.bfloat16)
        assert model.weight is before and before._local_tensor.dtype is torch.bfloat16
        assert model(torch.ones(2, 3, dtype=torch.bfloat16)).dtype is torch.bfloat16
        model.double()
        model.load_state_dict({name: t + 1 for name, t in model.state_dict().items()}, assign=True)
        assert model.weight is not before
        y = model(torch.ones(2, 3, dtype=torch.float64))
        y.sum().backward()
        torch.testing.assert_close(y[0], model.weight.full_tensor().sum(1) + model.bias.full_tensor())
        assert model.weight.grad.full_tensor().tolist() == [[2.0] * 3] * 5 and before.grad is None

    threads.spawn(run, 2)


ERRORS = {
    "again": (lambda m: fully_shard(fully_shard(m)), ValueError, "sharded already"),
    "container": (lambda m: fully_shard(nn.ModuleList([m])), ValueError, "containers"),
    "DTensors": (
        lambda m: fully_shard(torch.distributed.tensor.distribute_module(m, init_device_mesh("cpu", (1,)))),
        ValueError,
        "parts of one mesh",
    ),
    "meta": (
        lambda m: fully_shard(nn.Linear(2, 2, device="meta"))(torch.ones(2, 2)),
        RuntimeError,
        "materialized from meta device",
    ),
    "meta without values": (
        lambda m: FullyShardedDataParallel(Bare()),
        ValueError,
        "Bare is on the meta device and has no reset_parameters",
    ),
    "no shard any more": (
        lambda m: fully_shard(m).register_parameter("weight", nn.Parameter(torch.ones(2, 2))) or m(torch.ones(2, 2)),
        RuntimeError,
        "weight of a sharded module was replaced by a tensor that isn't sharded",
    ),
    "written back from one rank": (
        lambda m: FullyShardedDataParallel.summon_full_params(m, rank0_only=True).__enter__(),
        NotImplementedError,
        "writeback=True and rank0_only=True is not supported",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fn, kind, text = ERRORS[name]

    def run(rank):
        with pytest.raises(kind, match=text):
            fn(nn.Linear(2, 2))

    threads.spawn(run, 1)
