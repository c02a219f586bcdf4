"""Pipelines: schedules on ranks that are threads, against the whole model in one process; a job of two processes is in test_processes.py."""

import collections
import itertools
import threading

import pytest

import flambeau as torch
import flambeau.distributed as dist
from flambeau import nn
from flambeau.distributed import threads
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    SplitPoint,
    _orders,
    _ScheduleForwardOnly,
    _v_orders,
    pipe_split,
    pipeline,
)
from flambeau.distributed.pipelining._orders import Kind
from flambeau.distributed.pipelining._split_backward import input_gradients, weight_gradients
from flambeau.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    _Replicate,
    merge_chunks,
    split_args_kwargs_into_chunks,
    sum_reducer,
)
from flambeau.distributed.pipelining.schedules import get_schedule_class
from flambeau.nn.parallel import DistributedDataParallel as DDP

SINGLE = [ScheduleGPipe, Schedule1F1B]
IN_V = [ScheduleZBVZeroBubble, ScheduleDualPipeV]
SEVERAL = [ScheduleLoopedBFS, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble]
N, WIDTH = 4, 6


def layer():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.LayerNorm(WIDTH))


SEED = threading.RLock()  # ranks are threads, and draw from one generator


def seeded(make):
    with SEED:
        torch.manual_seed(0)
        return make()


def layers(count):
    return seeded(lambda: nn.ModuleList([layer() for _ in range(count)]))


def batch(rows=8, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, WIDTH, generator=generator), torch.randn(rows, WIDTH, generator=generator)


def mse(out, target):
    return ((out - target) ** 2).mean()


def whole(modules, x, target, loss=mse, n=N):
    """Output, losses and gradients of the model that isn't split, by microbatches."""
    modules.zero_grad()
    outs, losses = [], []
    for a, b in zip(x.tensor_split(n), target.tensor_split(n)):
        for m in modules:
            a = m(a)
        outs.append(a)
        losses.append(loss(a, b))
    torch.stack(losses).mean().backward()
    gradients = [p.grad.clone() for p in modules.parameters()]
    modules.zero_grad()
    return torch.cat(outs).detach(), torch.stack(losses).detach(), gradients


def close(got, wanted):
    torch.testing.assert_close(list(got), list(wanted), atol=1e-6, rtol=1e-5)


# ---- orders ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks, each, rounds", list(itertools.product((1, 2, 3, 4), (1, 2, 3), (1, 2, 4))))
def test_ranks_never_wait_for_each_other(ranks, each, rounds):
    stages, n = ranks * each, ranks * rounds
    own = [list(range(r, stages, ranks)) for r in range(ranks)]
    orders = [
        [_orders.looped_bfs(s, n) for s in own],
        [_orders.interleaved_1f1b(r, s, ranks, n) for r, s in enumerate(own)],
        [_orders.interleaved_zero_bubble(r, s, ranks, n) for r, s in enumerate(own)],
    ]
    if each == 1:
        orders.append([_orders.gpipe(r, n) for r in range(ranks)])
        orders.append([_orders.one_forward_one_backward(r, stages, n) for r in range(ranks)])
    for order in orders:
        _orders.check(order, stages)
        actions = [a for one in order for a in one]
        assert len(set(actions)) == len(actions)
        assert sum(a.kind is _orders.Kind.FORWARD for a in actions) == stages * n


@pytest.mark.parametrize("order", [_v_orders.zero_bubble_v, _v_orders.dual_pipe_v])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_ranks_in_a_v_never_wait_for_each_other(ranks, order):
    stages = 2 * ranks
    for n in range(1 if order is _v_orders.zero_bubble_v else stages, 2 * stages + 2):
        orders = [order(r, [r, stages - 1 - r], ranks, n) for r in range(ranks)]
        _orders.check(orders, stages)
        for r, own in enumerate(orders):
            kinds = collections.Counter((a.stage, a.kind) for a in own)
            for s in (r, stages - 1 - r):
                whole, inputs, weights = (kinds[s, k] for k in (Kind.BACKWARD, Kind.INPUT, Kind.WEIGHT))
                assert kinds[s, Kind.FORWARD] == whole + inputs == n and inputs == weights


def test_a_circle_of_waits_is_found():
    forward, backward = _orders.gpipe(0, 1)
    with pytest.raises(RuntimeError, match="ranks would wait for each other: 0B0, 1B0"):
        _orders.check([[forward, backward], [a._replace(stage=1) for a in (backward, forward)]], 2)
    with pytest.raises(RuntimeError, match="0F0 comes twice"):
        _orders.check([[forward, forward]], 1)


def test_order_of_one_forward_one_backward():
    """PyTorch's."""
    assert " ".join(map(str, _orders.one_forward_one_backward(0, 2, 4))) == "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3"
    assert (
        " ".join(map(str, _orders.interleaved_1f1b(1, [1, 3], 2, 4)))
        == "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3"
    )


def test_orders_in_a_v():
    """PyTorch's."""
    assert (
        " ".join(map(str, _v_orders.zero_bubble_v(1, [1, 2], 2, 4)))
        == "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3"
    )
    assert (
        " ".join(map(str, _v_orders.dual_pipe_v(0, [0, 3], 2, 4)))
        == "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3"
    )


# ---- microbatches ------------------------------------------------------------------------------------------------------


def test_arguments_in_chunks():
    x, y = torch.arange(8).reshape(4, 2), torch.arange(8).reshape(2, 4)
    args, kwargs = split_args_kwargs_into_chunks(
        (x, y, 3), {"k": x}, 2, (TensorChunkSpec(0), TensorChunkSpec(1), None), {"k": _Replicate()}
    )
    assert [a[0].tolist() for a in args] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert [a[1].tolist() for a in args] == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    assert [a[2] for a in args] == [3, 3] and all(k["k"] is x for k in kwargs)
    args, _ = split_args_kwargs_into_chunks(({"a": x, "b": [x]},), None, 4)
    assert len(args) == 4 and args[3][0]["b"][0].tolist() == [[6, 7]]
    assert [len(a[0]) for a in split_args_kwargs_into_chunks((torch.ones(5),), None, 3)[0]] == [2, 2, 1]


BAD_CHUNKS = [
    (((torch.ones(2),), None, 3), AssertionError, "Tensor size 2 is smaller than num_chunks"),
    (((torch.ones(2),), None, 2, ()), ValueError, "0 entries for 1 arguments"),
    (((), {"a": torch.ones(2)}, 2, None, {"b": TensorChunkSpec(0)}), ValueError, r"names \['b'\]"),
    (((torch.ones(2),), None, 2, (sum_reducer,)), ValueError, "Unsupported chunk spec"),
]


@pytest.mark.parametrize("args, error, text", BAD_CHUNKS)
def test_bad_chunk_specs(args, error, text):
    with pytest.raises(error, match=text):
        split_args_kwargs_into_chunks(*args)


def test_results_of_chunks():
    a, b = torch.ones(2, 3), torch.zeros(1, 3)
    assert merge_chunks([a, b], None).shape == (3, 3)
    assert merge_chunks([a.t(), b.t()], TensorChunkSpec(1)).shape == (3, 3)
    merged = merge_chunks([(a, torch.tensor(2.0)), (b, torch.tensor(3.0))], (TensorChunkSpec(0), sum_reducer))
    assert merged[0].shape == (3, 3) and merged[1].item() == 5
    assert merge_chunks([{"n": 1, "t": a}, {"n": 1, "t": b}], None)["n"] == 1
    with pytest.raises(AssertionError, match="microbatches disagree"):
        merge_chunks([{"n": 1}, {"n": 2}], None)
    with pytest.raises(ValueError, match="did not match chunk spec"):
        merge_chunks([(a, b), (a,)], None)


# ---- schedules ---------------------------------------------------------------------------------------------------------


def run_schedule(cls, ranks, each, n=N, rows=8, steps=2):
    """On threads; compared on each rank with the whole model."""
    x, target = batch(rows)
    total = ranks * each

    def rank(r):
        modules = layers(total)
        mine = [r, total - 1 - r] if cls in IN_V else range(r, total, ranks)
        stages = [PipelineStage(modules[k], k, total, torch.device("cpu")) for k in mine]
        schedule = cls(stages[0] if cls in SINGLE else stages, n, loss_fn=mse)
        reference = layers(total)
        optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (modules, reference)]
        for _ in range(steps):
            out, losses, gradients = whole(reference, x, target, n=n)
            for p, g in zip(reference.parameters(), gradients):
                p.grad = g
            modules.zero_grad()
            got = []
            last = total - 1 in mine
            result = schedule.step(
                *([x] if r == 0 else []), target=target if last else None, losses=got if last else None
            )
            if last:
                close([result, torch.stack(got)], [out, losses])
            else:
                assert result is None
            for k in mine:
                close([p.grad for p in modules[k].parameters()], [p.grad for p in reference[k].parameters()])
            for k in set(range(total)) - set(mine):
                assert all(p.grad is None for p in modules[k].parameters())
            [o.step() for o in optimizers]

    threads.spawn(rank, ranks)


@pytest.mark.parametrize("cls", SINGLE)
@pytest.mark.parametrize("ranks, n", [(1, 1), (1, 3), (2, 4), (3, 4)])
def test_one_stage_a_rank(cls, ranks, n):
    run_schedule(cls, ranks, 1, n)


@pytest.mark.parametrize("cls", SEVERAL)
@pytest.mark.parametrize("ranks, each", [(1, 3), (2, 1), (2, 2), (3, 2)])
def test_several_stages_a_rank(cls, ranks, each):
    run_schedule(cls, ranks, each, 2 * ranks)


@pytest.mark.parametrize("cls", IN_V)
@pytest.mark.parametrize("ranks, n", [(1, 2), (1, 3), (2, 4), (2, 6), (3, 7)])
def test_stages_in_a_v(cls, ranks, n):
    run_schedule(cls, ranks, 2, n)


def test_fewer_microbatches_than_fill_a_v():
    run_schedule(ScheduleZBVZeroBubble, 3, 2, 2)


@pytest.mark.parametrize("cls", [Schedule1F1B, ScheduleInterleaved1F1B])
def test_microbatches_of_other_sizes(cls):
    """PyTorch's shapes are fixed by the first."""
    run_schedule(cls, 2, 1, 4, rows=10)


def test_one_process_without_a_process_group():
    modules, (x, target) = layers(3), batch()
    out, losses, gradients = whole(modules, x, target)
    assert not dist.is_initialized()
    schedule = ScheduleInterleaved1F1B([PipelineStage(m, k, 3) for k, m in enumerate(modules)], N, mse)
    for _ in range(2):  # gradients add up
        got = []
        close([schedule.step(x, target=target, losses=got), torch.stack(got)], [out, losses])
    close([p.grad for p in modules.parameters()], [2 * g for g in gradients])


def test_sums_of_losses():
    modules, (x, target) = layers(2), batch()
    _, _, gradients = whole(modules, x, target)
    schedule = ScheduleLoopedBFS([PipelineStage(m, k, 2) for k, m in enumerate(modules)], N, mse, scale_grads=False)
    assert schedule.step(x, target=target, return_outputs=False) is None
    close([p.grad for p in modules.parameters()], [N * g for g in gradients])


def test_evaluation():
    """Forwards alone, with another number of rows than in training, and back."""

    def rank(r):
        modules = layers(2)
        (x, target), (other, _) = batch(), batch(12, 3)
        schedule = Schedule1F1B(PipelineStage(modules[r], r, 2), N, mse)
        for rows, given in ((8, x), (12, other), (8, x)):
            with torch.no_grad():
                out = schedule.eval(*([given] if r == 0 else []))
                wanted = modules[1](modules[0](given))
            assert out is None if r == 0 else torch.allclose(out, wanted, atol=1e-6) and len(out) == rows
            schedule.step(*([batch()[0]] if r == 0 else []), target=target if r else None)
        losses = []
        schedule.eval(*([batch()[0]] if r == 0 else []), target=target if r else None, losses=losses)
        assert len(losses) == (N if r else 0)
        with torch.no_grad(), pytest.raises(RuntimeError, match="Please call eval"):
            schedule.step()
        forward = _ScheduleForwardOnly(PipelineStage(modules[r], r, 2), N)
        assert (forward.step(*([x] if r == 0 else [])) is None) == (r == 0)
        with pytest.raises(RuntimeError, match="Forward-only"):
            forward.step(target=target)

    threads.spawn(rank, 2)


class TwoValues(nn.Module):
    """Hands on a value as it is, one that needs no gradient, and one that nothing uses."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, rows=None, unused=None, *, shift=0.0):
        return self.linear(x) + shift, torch.arange(len(x)) if rows is None else rows, x * 2


@pytest.mark.parametrize("cls", [ScheduleGPipe, ScheduleInterleavedZeroBubble])
def test_values_between_stages(cls):
    """Tuples, integers, values handed on, keyword arguments for each stage."""

    def loss(out, target):
        return mse(out[0] * out[1][:, None], target)

    def rank(r):
        modules, (x, target) = seeded(lambda: [TwoValues(), TwoValues()]), batch()
        shift = [torch.full((8, 1), 0.5), torch.full((8, 1), 0.25)]
        for a, t, s0, s1 in zip(*(v.tensor_split(N) for v in (x, target, *shift))):
            (loss(modules[1](*modules[0](a, shift=s0), shift=s1), t) / N).backward()
        wanted = [p.grad.clone() for p in modules[r].parameters()]
        modules[r].zero_grad()
        stage = PipelineStage(modules[r], r, 2)
        schedule = cls(stage if cls in SINGLE else [stage], N, loss)
        schedule.step(*([x] if r == 0 else []), target=target, shift=shift[r])
        close([p.grad for p in modules[r].parameters()], wanted)

    threads.spawn(rank, 2)


PARALLEL = [
    (Schedule1F1B, "ddp"),
    (Schedule1F1B, "fsdp"),
    (ScheduleInterleaved1F1B, "ddp"),
    (ScheduleInterleaved1F1B, "fsdp"),
    (ScheduleInterleavedZeroBubble, "ddp"),
]


@pytest.mark.parametrize("cls, wrap", PARALLEL)
def test_data_parallel_stages(cls, wrap):
    """Two replicas of two stages: the gradients are those of the whole batch in one process."""

    def rank(r):
        column, row = r % 2, r // 2
        pipes = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        replicas = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        modules, reference, (x, target) = layers(2), layers(2), batch(16)
        _, _, gradients = whole(reference, x, target, n=2 * N)
        for p, g in zip(reference.parameters(), gradients):
            p.grad = g
        if wrap == "ddp":
            module = DDP(modules[column], process_group=replicas[column])
        else:
            mesh = dist.device_mesh.DeviceMesh.from_group(replicas[column], "cpu")
            module = fully_shard(modules[column], mesh=mesh)
        stage = PipelineStage(module, column, 2, group=pipes[row])
        schedule = cls(stage if cls in SINGLE else [stage], N, mse)
        for _ in range(3):
            module.zero_grad()
            mine = slice(8 * row, 8 * row + 8)
            schedule.step(*([x[mine]] if column == 0 else []), target=target[mine] if column else None)
            got = [p.grad for p in module.parameters()]
            got = [g.full_tensor() for g in got] if wrap == "fsdp" else got
            close(got, [p.grad for p in reference[column].parameters()])

    threads.spawn(rank, 4)


# ---- backward in two parts ---------------------------------------------------------------------------------------------


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.linear(torch.tanh(self.linear(x)))


@pytest.mark.parametrize("make", [layer, Tied, lambda: nn.MultiheadAttention(WIDTH, 2), nn.Identity])
def test_a_backward_in_two_parts_is_the_whole(make):
    module, x = seeded(make), batch()[0]

    def run(x):
        return module(x, x, x)[0] if isinstance(module, nn.MultiheadAttention) else module(x)

    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    run(a).backward(g := batch(seed=5)[1])
    wanted = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    (found,), later = input_gradients([run(b)], [g], [b])
    assert make is Tied or all(p.grad is None for p in module.parameters())
    weight_gradients(later)
    close([found, *(p.grad for p in module.parameters())], [a.grad, *wanted])


# ---- traced ------------------------------------------------------------------------------------------------------------


class Skips(nn.Module):
    """A value of the first stage is used in the last, past the one between."""

    def __init__(self, marks=False):
        super().__init__()
        self.layers, self.marks = layers(3), marks
        self.norm = nn.BatchNorm1d(WIDTH)
        self.register_buffer("offset", torch.tensor(0.5))

    def forward(self, x, *, mask=None):
        first = self.layers[0](x)
        if self.marks:
            pipe_split()
        y = self.layers[1](first)
        if self.marks:
            pipe_split()
        return {"out": self.norm(self.layers[2](y) + first + self.offset) * mask, "first": first}


SPLITS = {
    "by name": ({"layers.1": SplitPoint.BEGINNING, "layers.2": SplitPoint.BEGINNING}, False),
    "behind": ({"layers.0": SplitPoint.END, "layers.1": SplitPoint.END}, False),
    "by marks": (None, True),
}


@pytest.mark.parametrize("how", SPLITS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_traced_stages(how, ranks):
    spec, marks = SPLITS[how]

    def loss(out, target):
        return mse(out["out"], target) + out["first"].mean()

    def rank(r):
        model, reference = seeded(lambda: Skips(marks)), seeded(lambda: Skips(marks))
        (x, target), mask = batch(), torch.arange(8.0)[:, None]
        pipe = pipeline(model, (x[:2],), {"mask": mask[:2]}, spec)
        assert pipe.num_stages == 3
        names = [set(dict(pipe.get_stage_module(k).named_parameters())) for k in range(3)]
        assert set().union(*names) == set(dict(model.named_parameters()))
        assert sum(map(len, names)) == len(set().union(*names))
        assert pipe.get_stage_module(1).get_parameter("layers.1.0.weight") is model.layers[1][0].weight
        for a, m, t in zip(*(v.tensor_split(N) for v in (x, mask, target))):
            (loss(reference(a, mask=m), t) / N).backward()
        stages = [pipe.build_stage(k) for k in range(r, 3, ranks)]
        schedule = Schedule1F1B(stages[0], N, loss) if ranks == 3 else ScheduleLoopedBFS(stages, N, loss)
        given = {"args": (x,), "kwargs": {"mask": mask}} if r == 0 else {"args": (), "kwargs": {}}
        out = schedule.step(*given["args"], **given["kwargs"], target=target if 2 % ranks == r else None)
        assert out is None or out["out"].shape == (8, WIDTH)
        wanted = dict(reference.named_parameters())
        for stage in stages:
            named = dict(stage.submod.named_parameters())
            close([p.grad for p in named.values()], [wanted[name].grad for name in named])
        if 2 % ranks == r:
            close([model.norm.running_mean], [reference.norm.running_mean])

    threads.spawn(rank, ranks) if ranks > 1 else rank(0)


def test_a_traced_module_runs_in_one_process():
    model, (x, _) = Skips(True), batch()
    pipe = pipeline(model.eval(), (x,), {"mask": x})
    close(pipe(x, mask=x).values(), model(x, mask=x).values())


def test_splits_of_nothing():
    """Two splits in one place are one, and one at the end is none; outside of a trace they do nothing."""
    model = nn.Sequential(layer(), layer())
    spec = {"0": SplitPoint.END, "1": SplitPoint.BEGINNING, "1.2": SplitPoint.END}
    assert pipeline(model, (batch()[0],), split_spec=spec).num_stages == 2
    assert pipe_split() is None and not model[0]._forward_hooks and not model[1]._forward_pre_hooks


# ---- what is refused ---------------------------------------------------------------------------------------------------


def stage_of(index=0, total=1, **more):
    return PipelineStage(nn.Identity(), index, total, **more)


REFUSED = [
    (lambda: stage_of(2, 2), ValueError, "Stage index 2 is out of range of 2"),
    (lambda: Schedule1F1B(stage_of(0, 2), 4), RuntimeError, "2 stages on 1 ranks"),
    (lambda: ScheduleLoopedBFS([], 4), ValueError, "needs the stages of this rank"),
    (lambda: ScheduleLoopedBFS([stage_of(1, 2)], 4), ValueError, r"has the stages \[0, 1\], got \[1\]"),
    (lambda: ScheduleGPipe(stage_of(), 0), ValueError, "at least one microbatch"),
    (lambda: ScheduleGPipe(stage_of(), 2, mse).step(batch()[0]), ValueError, "needs target="),
    (lambda: ScheduleGPipe(stage_of(), 2, mse).step(batch()[0], target=batch()[1], losses=()), TypeError, "losses must be a list"),
    (lambda: ScheduleGPipe(stage_of(), 9, mse).step(*batch()[:1], target=batch()[1]), AssertionError, "smaller than num_chunks"),
    (lambda: ScheduleGPipe(stage_of(output_args=torch.ones(1)), 2).step(batch()[0]), RuntimeError, "its output_args are"),
    (lambda: ScheduleZBVZeroBubble([stage_of()], 2), ValueError, "requires exactly 2 stages per rank, but got 1 stages on 1 ranks"),
    (lambda: ScheduleZBVZeroBubble([stage_of(0, 2)], 2), ValueError, r"has the stages \[0, 1\], got \[0\]"),
    (lambda: ScheduleDualPipeV([stage_of(0, 2), stage_of(1, 2)], 1), ValueError, "at least as many microbatches as stages"),
    (lambda: get_schedule_class("2F2B"), ValueError, "Unknown schedule name '2F2B'"),
    (lambda: pipeline(nn.Identity(), (), split_spec={}, split_policy=print), ValueError, "Cannot specify both"),
    (lambda: pipeline(nn.Identity(), (), split_policy=print), NotImplementedError, "split_policy isn't built"),
    (lambda: pipeline(nn.Identity(), (torch.ones(1),), split_spec={"a.b": SplitPoint.END}), AttributeError, "nonexistent module"),
    (lambda: pipeline(nn.Identity(), (torch.ones(1),)).get_stage_module(1), ValueError, "Invalid stage index 1!"),
]  # fmt: skip


@pytest.mark.parametrize("call, error, text", REFUSED)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_sharded_stages_have_whole_backwards():
    def rank(r):
        stages = [PipelineStage(fully_shard(layers(1)[0]), k, 4) for k in range(4)]
        with pytest.raises(NotImplementedError, match="ScheduleInterleavedZeroBubble of modules of fully_shard"):
            ScheduleInterleavedZeroBubble([stages[r], stages[2 + r]], 2)
        with pytest.raises(NotImplementedError, match="ScheduleZBVZeroBubble of modules of fully_shard"):
            ScheduleZBVZeroBubble([stages[r], stages[3 - r]], 2)

    threads.spawn(rank, 2)


def test_names_of_schedules():
    assert (
        get_schedule_class("gpipe") is ScheduleGPipe
        and get_schedule_class("interleaved1f1b") is ScheduleInterleaved1F1B
    )


def test_an_error_names_the_stage():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("mine")

    stages = [PipelineStage(m, k, 2) for k, m in enumerate((nn.Identity(), Fails()))]
    with pytest.raises(ValueError, match="mine") as found:
        ScheduleLoopedBFS(stages, 2, mse).step(batch()[0], target=batch()[1])
    assert found.value.__notes__ == ["in the forward of stage 1, microbatch 0"]
