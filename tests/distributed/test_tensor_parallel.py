"""Plans of tensor parallelism: the steps of training are those of one process. Ranks are threads."""

import copy

import pytest
from tests.distributed import models

import flambeau as torch
from flambeau import nn
from flambeau.distributed import checkpoint, threads
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.tensor import DTensor, Replicate, Shard, _redistribute, distribute_tensor, init_device_mesh
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

# By columns and rows; what isn't in the plan stays plain, and is the same on all ranks.
PLAIN = {
    "e": lambda: ColwiseParallel(output_layouts=Replicate()),
    "layers.*.a.?": lambda: ColwiseParallel(output_layouts=Replicate()),
    "layers.*.m.up": lambda: ColwiseParallel(),
    "layers.*.m.down": lambda: RowwiseParallel(),
    "head": lambda: ColwiseParallel(output_layouts=Replicate()),
}
# Between products the activations are cut along the sequence.
SEQUENCE = {
    "e": lambda: RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "n": lambda: SequenceParallel(),
    "head": lambda: ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    "layers.*.n[12]": lambda: SequenceParallel(),
    "layers.*.[am]": lambda: PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
    "layers.*.a.[qkv]": lambda: ColwiseParallel(),
    "layers.*.a.o": lambda: RowwiseParallel(output_layouts=Shard(1)),
    "layers.*.m.up": lambda: ColwiseParallel(),
    "layers.*.m.down": lambda: RowwiseParallel(output_layouts=Shard(1)),
}


@pytest.mark.parametrize("plan, clip", [(PLAIN, False), (SEQUENCE, True)], ids=["plain", "sequence"])
def test_training(plan, clip):
    losses, parameters = models.wanted(clip)

    def run(rank):
        model = copy.deepcopy(models.BASE)
        mesh = init_device_mesh("cpu", (2,))
        parallelize_module(model, mesh, {path: style() for path, style in plan.items()})
        found = models.train(model, models.sgd(model), clip=clip)
        assert found == pytest.approx(losses, rel=1e-5)
        models.check(model, parameters)
        assert model.layers[0].m.up.weight.to_local().shape == (32, 16)

    threads.spawn(run, 2)


def two_dimensions(plan, **options):
    """Layers that are tensor-parallel over "tp" and fully sharded over the other dimensions of the mesh."""
    names, shape = ("dp", "tp"), (2, 2)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    model = copy.deepcopy(models.BASE)
    parallelize_module(model, mesh["tp"], {path: style() for path, style in plan.items()})
    for layer in model.layers:
        fully_shard(layer, mesh=mesh["dp"], **options)
    return fully_shard(model, mesh=mesh["dp"], **options), mesh["dp"].get_local_rank()


FREED, KEPT = {}, {"reshard_after_forward": False}


# Whole parameters are kept or freed by the same lines for each plan.
@pytest.mark.parametrize(
    "plan, clip, options",
    [
        pytest.param(PLAIN, False, FREED, id="freed-plain", marks=pytest.mark.slow),
        pytest.param(SEQUENCE, True, FREED, id="freed-sequence"),
        pytest.param(PLAIN, False, KEPT, id="kept-plain"),
        pytest.param(SEQUENCE, True, KEPT, id="kept-sequence", marks=pytest.mark.slow),
    ],
)
def test_training_in_two_dimensions(plan, clip, options):
    """Each parameter's part over "tp" is cut again over "dp"."""
    losses, parameters = models.wanted(clip)

    def run(rank):
        model, share = two_dimensions(plan, **options)
        found = models.train(model, models.sgd(model), slice(2 * share, 2 * share + 2), clip=clip)
        models.check(model, parameters)
        weight = model.layers[0].m.up.weight
        assert weight.to_local().shape == (16, 16) and weight.device_mesh.mesh_dim_names == ("tp", "dp")
        assert model.layers[0]._fsdp_state.shards.whole is None
        return share, found

    halves = dict(threads.spawn(run, 4))
    assert [(a + b) / 2 for a, b in zip(*halves.values())] == pytest.approx(losses, rel=1e-5)


def test_parameters_of_two_dimensions_in_checkpoints(tmp_path):
    """Saved in two dimensions, read in one and by one process."""
    _, parameters = models.wanted(True, steps=1)

    def save(rank):
        model, share = two_dimensions(SEQUENCE)
        models.train(model, models.sgd(model), slice(2 * share, 2 * share + 2), steps=1)
        checkpoint.save(model.state_dict(), checkpoint_id=tmp_path)

    def load(rank):
        model = copy.deepcopy(models.BASE)
        mesh = init_device_mesh("cpu", (3,))
        fully_shard(model, mesh=mesh)
        state = model.state_dict()
        checkpoint.load(state, checkpoint_id=tmp_path)
        model.load_state_dict(state)
        models.check(model, parameters)

    threads.spawn(save, 4)
    threads.spawn(load, 3)


def test_meshes_of_two_dimensions_have_one_root():
    def run(rank):
        model = copy.deepcopy(models.BASE)
        parallelize_module(model, init_device_mesh("cpu", (2,)), {path: style() for path, style in PLAIN.items()})
        with pytest.raises(ValueError, match="parts of one mesh"):
            fully_shard(model, mesh=init_device_mesh("cpu", (2,), mesh_dim_names=("dp",)))

    threads.spawn(run, 2)


def test_inputs_and_results():
    class Two(nn.Module):
        def forward(self, x, y, scale=None):
            return x * scale, y

    def run(rank):
        mesh = init_device_mesh("cpu", (2,))
        m = parallelize_module(
            Two(),
            mesh,
            PrepareModuleInputOutput(
                input_layouts=(Shard(0), None),
                desired_input_layouts=(Replicate(), None),
                input_kwarg_layouts={"scale": Replicate()},
                desired_input_kwarg_layouts={"scale": Replicate()},
                output_layouts=(Replicate(), None),
                desired_output_layouts=(Shard(0), None),
            ),
        )
        x = torch.arange(2.0) + 2 * rank
        out, same = m(x, x, scale=torch.tensor([2.0]))
        assert out.tolist() == (2 * x).tolist() and same is x
        m = parallelize_module(
            nn.Identity(),
            mesh,
            PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate(), use_local_output=False),
        )
        assert isinstance(m(x), DTensor) and m(x).to_local().tolist() == [0.0, 1.0, 2.0, 3.0]

    threads.spawn(run, 2)


def test_errors():
    def run(rank):
        mesh = init_device_mesh("cpu", (1,))
        with pytest.raises(NotImplementedError, match=r"nn.Linear and nn.Embedding"):
            parallelize_module(nn.LayerNorm(2), mesh, ColwiseParallel())
        with pytest.warns(UserWarning, match="could not be resolved"):
            parallelize_module(nn.Linear(2, 2), mesh, {"nothing": RowwiseParallel()})
        with pytest.raises(AssertionError, match="same length"):
            PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Shard(0), None))
        with pytest.raises(ValueError, match="one dimension"):
            parallelize_module(nn.Linear(2, 2), init_device_mesh("cpu", (1, 1)), ColwiseParallel())

    threads.spawn(run, 1)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_losses_of_classes_in_parts(weighted, reduction, monkeypatch):
    """Logits, of sizes that don't divide, never cross ranks; gradients are those of one process."""
    logits, target = torch.randn(6, 7), torch.tensor([0, 6, 3, -100, 4, 2])
    weight = torch.rand(7) if weighted else None
    plain = logits.clone().requires_grad_()
    wanted = torch.nn.functional.cross_entropy(plain, target, weight, reduction=reduction)
    wanted.sum().backward()

    def run(rank):
        mesh = init_device_mesh("cpu", (3,))
        x = distribute_tensor(logits.clone(), mesh, [Shard(1)]).requires_grad_()
        with loss_parallel():
            loss = torch.nn.functional.cross_entropy(x, target, weight, reduction=reduction)
            loss.sum().backward()
        torch.testing.assert_close(loss.full_tensor(), wanted.detach(), atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(x.grad.full_tensor(), plain.grad, atol=1e-6, rtol=1e-5)
        assert x.grad.placements == (Shard(1),)

    moved, gather = [], _redistribute._gather
    monkeypatch.setattr(_redistribute, "_gather", lambda x, *rest: (moved.append(tuple(x.shape)), gather(x, *rest))[1])
    threads.spawn(run, 3)
    assert moved.count((6, 3)) == 2  # parts of two ranks: of the gradient, by full_tensor()


def test_a_target_that_is_no_class():
    def run(rank):
        x = distribute_tensor(torch.randn(2, 4), init_device_mesh("cpu", (2,)), [Shard(1)])
        with pytest.raises(IndexError, match="Target 9 is out of bounds"):
            torch.nn.functional.cross_entropy(x, torch.tensor([1, 9]))

    threads.spawn(run, 2)
