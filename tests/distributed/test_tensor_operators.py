"""Every operator's samples on DTensors in four placements against the plain call: what has no rule is replicated, nothing may be wrong."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.base import pytree
from flambeau.distributed import threads
from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from flambeau.testing.samples import load, to_tensors

ROWS = load()
QUICK = [
    *(
        "add.Tensor",
        "mul.Tensor",
        "where.self",
        "sum.dim_IntList",
        "mean.dim",
        "amax",
        "prod.dim_int",
        "mm",
        "bmm",
        "view",
        "permute",
    ),
    *(
        "expand",
        "slice.Tensor",
        "cat",
        "sort",
        "cumsum",
        "gather",
        "scatter_add",
        "index_select",
        "embedding",
        "_softmax",
    ),
    *("native_layer_norm", "convolution", "flip", "istft", "_scaled_dot_product_flash_attention_for_cpu_backward"),
]


def spread(a, mesh, mode, first, rank):
    t = _C.from_array(np.array(a, copy=True))
    if t.dim() == 0:
        return distribute_tensor(t, mesh)
    if mode == "summands":
        if first and t.dtype.is_floating_point and torch.isfinite(t).all():
            return DTensor.from_local(t * (0.75 if rank else 0.25), mesh, [Partial()])
        return distribute_tensor(t, mesh)
    cut = {"first": 0, "last": t.dim() - 1, "leading": 0 if first else None}[mode]
    return distribute_tensor(t, mesh, [Replicate() if cut is None else Shard(cut)])


def plain(x):
    if not isinstance(x, _C.TensorBase):
        return x
    return (x.float() if x.dtype is torch.bfloat16 else x).detach().clone().resolve_conj().resolve_neg().numpy()


def check(name, calls):
    row = ROWS[name]
    op = row.op
    for call in row.calls[:calls]:
        args, kwargs = to_tensors((call.args, call.kwargs))
        held = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, _C.TensorBase)]
        if not held or any(t.layout is not torch.strided for t in held):
            continue
        try:
            wanted = pytree.tree_leaves(op(*args, **kwargs))
        except Exception:
            continue  # samples of errors
        if any(isinstance(w, _C.TensorBase) and w.layout is not torch.strided for w in wanted):
            continue
        wanted = [plain(w) for w in (*wanted, *held)]  # what was written, too
        for mode in ("first", "last", "leading", "summands"):

            def run(rank, mode=mode, call=call):
                mesh, count = init_device_mesh("cpu", (2,)), []

                def convert(a):
                    count.append(a)
                    return spread(a, mesh, mode, len(count) == 1, rank)

                args, kwargs = (to_tensors(x, convert) for x in (call.args, call.kwargs))
                out = pytree.tree_leaves(op(*args, **kwargs))
                out += [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, DTensor)]
                return [plain(x.full_tensor() if isinstance(x, DTensor) else x) for x in out]

            found = threads.spawn(run, 2)[0]
            assert len(found) == len(wanted), (name, mode, call)
            for a, b in zip(found, wanted):
                if not isinstance(b, np.ndarray):
                    assert a == b or a != a, (name, mode, call)
                    continue
                assert (a.shape, a.dtype) == (b.shape, b.dtype), (name, mode, call)
                tight = a.dtype.itemsize > 4
                np.testing.assert_allclose(
                    a, b, rtol=1e-8 if tight else 1e-5, atol=1e-9 if tight else 1e-6, err_msg=f"{name} {mode} {call}"
                )


@pytest.mark.parametrize("name", QUICK)
def test_of_two_samples(name):
    check(name, 2)


def _is_determined(row) -> bool:
    try:
        return row.values and row.op.kind != "random"
    except AttributeError:
        return False  # not built


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ROWS))
def test_of_all_samples(name):
    if _is_determined(ROWS[name]):
        check(name, 4)
