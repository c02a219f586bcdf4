"""Checkpoints that some ranks save and others load. Ranks are threads; files are compared with PyTorch's."""

import copy
import pickle

import pytest
from tests.distributed import models

import flambeau as torch
import flambeau.distributed as dist
import flambeau.distributed.checkpoint as dcp
from flambeau.distributed import threads
from flambeau.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from flambeau.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh, zeros

X = {"even": torch.randn(8, 6), "odd": torch.randn(5, 3), "few": torch.randn(1, 7)}
PLACEMENTS = [Replicate(), Shard(0), Shard(1)]


def spread(ranks, placement, value=None):
    mesh = init_device_mesh("cpu", (ranks,))
    return {
        name: distribute_tensor(x, mesh, [placement])
        if value is None
        else zeros(*x.shape, device_mesh=mesh, placements=[placement])
        for name, x in X.items()
    }


@pytest.mark.parametrize("saved, loaded", [(2, 1), (2, 4), (4, 2), (1, 2)])
def test_resharding(tmp_path, saved, loaded):
    for k, before in enumerate(PLACEMENTS):
        folder = tmp_path / str(k)

        def save(rank, before=before, folder=folder):
            dcp.save({"x": spread(saved, before), "step": 3, "plain": torch.arange(3)}, checkpoint_id=folder)

        def load(rank, folder=folder):
            for after in PLACEMENTS:
                state = {"x": spread(loaded, after, 0), "step": 0, "plain": torch.zeros(3, dtype=torch.int64)}
                held = state["plain"]
                dcp.load(state, checkpoint_id=folder)
                for name, x in X.items():
                    assert torch.equal(state["x"][name].full_tensor(), x)
                assert state["step"] == 3 and held.tolist() == [0, 1, 2]

        threads.spawn(save, saved)
        threads.spawn(load, loaded)
        alone = {"x": {name: torch.zeros(x.shape) for name, x in X.items()}}
        dcp.load(alone, checkpoint_id=folder)
        for name, x in X.items():
            assert torch.equal(alone["x"][name], x)


def trained(ranks, rank, model, optimizer, steps=2):
    n = 4 // ranks
    models.train(model, optimizer, slice(n * rank, n * rank + n), steps)


def test_training_goes_on_with_other_ranks(tmp_path):
    """Two ranks train and save; four, or one without shards, go on as one process would."""

    def made(shard=True):
        model = copy.deepcopy(models.BASE)
        if shard:
            for layer in model.layers:
                fully_shard(layer)
            fully_shard(model)
        return model, models.sgd(model)

    want, optimizer = made(False)
    trained(1, 0, want, optimizer, 4)
    parameters = {name: p.detach() for name, p in want.named_parameters()}

    def first(rank):
        model, optimizer = made()
        trained(2, rank, model, optimizer)
        model_state, optimizer_state = get_state_dict(model, optimizer)
        assert all(isinstance(t, DTensor) for t in model_state.values())
        dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=tmp_path)

    def more(rank, ranks, shard):
        model, optimizer = made(shard)
        with torch.no_grad():
            for p in model.parameters():
                p.zero_()
        model_state, optimizer_state = get_state_dict(model, optimizer)
        dcp.load({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=tmp_path)
        set_state_dict(model, optimizer, model_state_dict=model_state, optim_state_dict=optimizer_state)
        trained(ranks, rank, model, optimizer)
        models.check(model, parameters)

    threads.spawn(first, 2)
    threads.spawn(more, 4, (4, True))
    threads.spawn(more, 1, (1, False))


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_state_dicts_of_wrapped_models(kind):
    def run(rank):
        model = fully_shard(copy.deepcopy(models.BASE))
        optimizer = kind(model.parameters(), 0.01)
        options = StateDictOptions(full_state_dict=True)
        whole = get_model_state_dict(model, options=options)
        for name, t in models.BASE.state_dict().items():
            assert torch.equal(whole[name], t)
        offloaded = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        assert bool(offloaded) == (rank == 0)
        state = get_optimizer_state_dict(model, optimizer, options=options)
        models.check(model, whole)  # making the state moved nothing
        assert set(state["param_groups"][0]["params"]) == set(whole)
        set_optimizer_state_dict(model, optimizer, state, options=options)
        only_first = {name: t + 1 for name, t in whole.items()} if rank == 0 else {}
        found = set_model_state_dict(
            model, only_first, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        )
        assert not found.missing_keys
        models.check(model, {name: t + 1 for name, t in whole.items()})
        ddp = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(models.BASE))
        assert get_model_state_dict(torch.compile(ddp)).keys() == whole.keys()
        with pytest.raises(RuntimeError, match="Missing key"):
            set_model_state_dict(ddp, {}, options=StateDictOptions())

    threads.spawn(run, 2)


class Counter:
    def __init__(self, n):
        self.n = n

    def state_dict(self):
        return {"n": self.n, "history": [torch.full((2,), self.n), {"k": self.n}], "numbers": [1, 2]}

    def load_state_dict(self, state):
        self.n, self.loaded = state["n"], state


def test_objects_lists_and_threads(tmp_path):
    dcp.save({"a": Counter(5), "b": {1: torch.ones(2), "t": (1, 2)}}, checkpoint_id=tmp_path / "one")
    state = {"a": Counter(0), "b": {1: torch.zeros(2), "t": None}}
    dcp.load(state, checkpoint_id=tmp_path / "one")
    assert state["a"].n == 5 and state["a"].loaded["history"][1] == {"k": 5} and state["a"].loaded["numbers"] == [1, 2]
    assert state["b"][1].tolist() == [1, 1] and state["b"]["t"] == (1, 2)

    def run(rank):
        x = torch.ones(4)
        group = dist.new_group([0, 1])
        done = dcp.async_save({"x": x}, checkpoint_id=tmp_path / "later", process_group=group)
        x.zero_()
        done.result()
        with pytest.raises(RuntimeError, match="process_group of its own"):
            dcp.async_save({"x": x}, checkpoint_id=tmp_path / "never")

    threads.spawn(run, 2)
    state = {"x": torch.zeros(4)}
    dcp.load(state, checkpoint_id=tmp_path / "later")
    assert state["x"].tolist() == [1] * 4


def test_flat_and_partial_states():
    """Names of flat states are PyTorch's: the value's path joined by dots, a group's options under each parameter."""
    model, other = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1)), torch.nn.Linear(1, 1)
    groups = [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[1].parameters()}]
    optimizer = torch.optim.SGD(groups, 0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    flat = get_optimizer_state_dict(model, optimizer, options=options)
    assert flat["param_groups.0.bias.lr"] == 0.5 and flat["param_groups.1.weight.lr"] == 0.1
    assert {k for k in flat if k.startswith("state.")} == {
        f"state.{name}.momentum_buffer" for name, _ in model.named_parameters()
    }
    again = torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[1].parameters()}], 0.2, momentum=0.9)
    model.zero_grad()
    set_optimizer_state_dict(model, again, flat, options=options)
    assert [g["lr"] for g in again.param_groups] == [0.5, 0.1]
    for p, state in optimizer.state.items():
        assert torch.equal(again.state[p]["momentum_buffer"], state["momentum_buffer"])
    flat["param_groups.0.bias.lr"] = 7
    with pytest.raises(RuntimeError, match="should have the same saved param_group value"):
        set_optimizer_state_dict(model, again, flat, options=options)
    part = get_optimizer_state_dict(model, optimizer, submodules={model[1]})
    assert list(part["state"]) == ["1.weight", "1.bias"] == part["param_groups"][0]["params"]
    short = get_model_state_dict(model, submodules={model[1]}, options=StateDictOptions(keep_submodule_prefixes=False))
    assert list(short) == ["weight", "bias"] and set_model_state_dict(other, short).missing_keys == []


def test_one_file_and_back(tmp_path):
    def save(rank):
        dcp.save({"m": spread(2, Shard(0)), "l": [torch.ones(2), {"k": 1}], "n": 3}, checkpoint_id=tmp_path / "many")

    threads.spawn(save, 2)
    dcp_to_torch_save(tmp_path / "many", tmp_path / "one.pt")
    state = torch.load(tmp_path / "one.pt")
    assert state["n"] == 3 and state["l"][0].tolist() == [1, 1] and state["l"][1] == {"k": 1}
    torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "again")
    found = {"m": {name: torch.zeros(x.shape) for name, x in X.items()}}
    dcp.load(found, checkpoint_id=tmp_path / "again")
    for name, x in X.items():
        assert torch.equal(found["m"][name], x) and torch.equal(state["m"][name], x)


def test_errors(tmp_path):
    dcp.save({"x": torch.ones(3)}, checkpoint_id=tmp_path)
    held = torch.zeros(3)
    for state, text in (({"x": held, "y": torch.ones(1)}, "Missing key"), ({"x": torch.ones(4)}, "Size mismatch")):
        with pytest.raises(dcp.CheckpointException, match=text):
            dcp.load(state, checkpoint_id=tmp_path)
    assert not held.any()
    state = {"x": held, "y": 1}
    dcp.load(state, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert held.all() and state["y"] == 1
    # What a subclass overrides would be left out.
    for call, base, name in ((dcp.save, dcp.DefaultSavePlanner, "save"), (dcp.load, dcp.DefaultLoadPlanner, "load")):
        with pytest.raises(NotImplementedError, match=f"{name} planners of one's own"):
            call({"x": held}, checkpoint_id=tmp_path, planner=type("Own", (base,), {})())
    with pytest.raises(dcp.CheckpointException, match="overwrite=False"):
        dcp.save({"x": held}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(dcp.CheckpointException, match="No such file"):
        dcp.load({"x": held}, checkpoint_id=tmp_path / "nothing")

    class Bad:
        def __reduce__(self):
            return print, ("ran",)

    def run(rank):
        with pytest.raises(dcp.CheckpointException, match="on one rank only"):
            dcp.save({"x": Raises() if rank else torch.ones(1)}, checkpoint_id=tmp_path / "broken")
        assert not (tmp_path / "broken" / ".metadata").exists()

    class Raises:
        def state_dict(self):
            raise ValueError("on one rank only")

        def load_state_dict(self, state):
            pass

    threads.spawn(run, 2)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Bad()))
    with pytest.raises(dcp.CheckpointException, match="Unsupported global"):
        dcp.load({"x": held}, checkpoint_id=tmp_path)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")  # PyTorch's, of no_dist
def test_files_are_those_of_pytorch(tmp_path):
    real = pytest.importorskip("torch")
    rdcp = pytest.importorskip("torch.distributed.checkpoint")

    def save(rank):
        dcp.save(
            {"m": {**spread(2, Shard(0)), "h": torch.ones(2, dtype=torch.bfloat16)}, "n": 3},
            checkpoint_id=tmp_path / "ours",
        )

    threads.spawn(save, 2)
    state = {"m": {n: real.zeros(x.shape) for n, x in X.items()}, "n": 0}
    rdcp.load(state, checkpoint_id=str(tmp_path / "ours"), no_dist=True)
    for name, x in X.items():
        assert state["m"][name].tolist() == x.tolist()
    assert state["n"] == 3
    theirs = {"m": {n: real.tensor(x.tolist()) for n, x in X.items()}, "n": 4, "l": [real.ones(2)]}
    rdcp.save(theirs, checkpoint_id=str(tmp_path / "theirs"), no_dist=True)

    def load(rank):
        state = {"m": spread(2, Shard(1), 0), "n": 0, "l": [torch.zeros(2)]}
        dcp.load(state, checkpoint_id=tmp_path / "theirs")
        for name, x in X.items():
            assert torch.equal(state["m"][name].full_tensor(), x)
        assert state["n"] == 4 and state["l"][0].tolist() == [1, 1]

    threads.spawn(load, 2)
