"""An operator on DTensors: choose placements, bring the arguments there, run it on each rank's parts, say how the results lie.

The choice is made for each dimension of the mesh alone, by the bytes that have to be moved. An operator without a rule (_strategies.py) gets its
arguments replicated, which the artifact ``dtensor`` of TORCH_LOGS tells; so does one whose parts turn out to have another shape than they should.
Composites are opened, and their parts go the same way. Random numbers are drawn whole, are those of the mesh's first rank, and are cut then.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable

import numpy as np

from ... import _C
from ...autograd.rules import AtenHandler
from ...base.logs import artifact
from ...base.shapes import contiguous_strides
from ...core import reductions
from ...core.definition import TensorMeta
from ...core.indexing import check_bounds
from ...core.operator import OpOverload, namespace
from ...core.sharding import Apart
from ...core.tensor import Tensor
from .. import functional_collectives as funcol
from ._redistribute import redistribute
from ._strategies import (
    STEPS,
    Call,
    Strategy,
    has_rule,
    ignores_index,
    plain_reduction,
    recorded,
    reduced_dims,
    strategies,
)
from .placement_types import DTensorSpec, Placement, Replicate, Shard, local_box

__all__ = ["dispatch", "implicit_replication", "install", "opening"]

aten = namespace("aten")
_log = artifact("dtensor", "")
_state = threading.local()
_wrapper: type[Tensor]  # DTensor, which is defined above this module


def install(wrapper: type[Tensor]) -> None:
    """Tell the class of the results."""
    global _wrapper
    _wrapper = wrapper


@contextlib.contextmanager
def implicit_replication():
    """In the block plain tensors beside DTensors count as replicated: the program promises that all ranks have the same."""
    before = getattr(_state, "implicit", False)
    _state.implicit = True
    try:
        yield
    finally:
        _state.implicit = before


def opening(args: tuple, kwargs: dict):
    """The block of a call by a program. Operators that are made of others make tensors of numbers on their way, which all ranks have; the
    program's own plain tensors are refused."""
    tensors, _ = _leaves((*args, *kwargs.values()))
    mixed = any(t._ndim and not isinstance(t, _wrapper) for t in tensors)
    return contextlib.nullcontext() if mixed else implicit_replication()


def dispatch(op: OpOverload, args: tuple, kwargs: dict):
    """Run ``op``. NotImplementedError for what changes an argument in a way that has no functional form."""
    values = list(op.full(*args, **kwargs))
    if op.kind == "inplace":
        return _inplace(op, values)
    if op.kind == "out":
        return _out(op, values)
    tensors_only = all(r.is_tensor for r in op._schema.returns)
    if op.kind == "composite" and tensors_only and ("sharding" not in op.overrides or _is_cut_along(op, values)):
        with implicit_replication():
            return op.definition.fn(*values)
    if op._schema.is_mutable:
        raise NotImplementedError(f"DTensor: {op} writes into an argument and has no functional form")
    return _run(op, values)


def _is_cut_along(op: OpOverload, values) -> bool:
    """Whether an argument lies in parts along the dimension that the operator treats as a whole: opened, only its sums and extremes cross ranks."""
    rule = op.overrides["sharding"]
    if not isinstance(rule, Apart) or rule.linear:
        return False
    d = values[[a.name for a in op._schema.arguments].index(rule.dim)]
    if not isinstance(d, int):
        return False
    cut = [
        p.dim - (d % max(v._ndim, 1)) for v in values if isinstance(v, _wrapper) for p in v.placements if p.is_shard()
    ]
    return 0 in cut


# ---- arguments -------------------------------------------------------------------------------------------------------


def _leaves(values) -> tuple[list, list[int]]:
    """(the tensors among the arguments and in lists of them, the place of each)."""
    found, at = [], []
    for place, v in enumerate(values):
        for x in v if isinstance(v, list | tuple) else (v,):
            if isinstance(x, _C.TensorBase):
                found.append(x)
                at.append(place)
    return found, at


def _with(values, new: list) -> list:
    """The arguments with their tensors replaced, in order."""
    rest = iter(new)

    def of(x):
        return next(rest) if isinstance(x, _C.TensorBase) else x

    return [type(v)(map(of, v)) if type(v) in (list, tuple) else of(v) for v in values]


def _distributed(op: OpOverload, tensors: list) -> list:
    """The arguments as DTensors of one mesh."""
    mesh = next(t.device_mesh for t in tensors if isinstance(t, _wrapper))
    out = []
    for t in tensors:
        if not isinstance(t, _wrapper):
            if t._ndim and not (getattr(_state, "implicit", False) or _C.backward_id() >= 0 or _is_alike(t, mesh)):
                raise RuntimeError(
                    f"{op}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators! "
                    "(A plain tensor is taken as replicated where it has no gradient and all ranks have the same elements.)"
                )
            t = _wrapped(t, mesh, (Replicate(),) * mesh.ndim, t._shape, t._strides)
        elif t.device_mesh != mesh:
            raise RuntimeError(f"{op}: all DTensors must be on one mesh, got {mesh} and {t.device_mesh}")
        out.append(t)
    return out


def _is_alike(t, mesh) -> bool:
    """Whether a plain tensor may count as replicated: nobody asks for its gradient, and the ranks of the mesh have the same elements."""
    if t._array is None or t._requires_grad:
        return False
    digest = hashlib.blake2b(np.ascontiguousarray(t._array), digest_size=8).digest()
    number = _C.from_array(np.frombuffer(digest, np.int64).copy())
    for i in range(mesh.ndim):
        every = funcol.all_gather_tensor(number, 0, mesh.get_group(i))._array
        if not (every == every[0]).all():
            return False
    return True


def _wrapped(local, mesh, placements, shape, strides):
    spec = DTensorSpec(mesh, tuple(placements), tuple(shape), tuple(strides), local._dtype)
    return _wrapper(local, spec, requires_grad=False)


# ---- the choice ------------------------------------------------------------------------------------------------------


def _cost(t, i: int, target: Placement) -> float:
    """Bytes that a rank sends to bring a tensor there along dimension ``i`` of the mesh; cutting what is there costs next to nothing."""
    now, k = t.placements[i], t.device_mesh.size(i)
    if now == target:
        return 0.0
    if now.is_replicate():
        return 1.0
    bytes_ = t._shape.numel() * t._dtype.itemsize * (k - 1) / k
    if target.is_partial():
        return 2 * bytes_ + 2.0
    if now.is_partial():
        return (1 if target.is_shard() else 2) * bytes_ + 1.0
    return (bytes_ / k if target.is_shard() else bytes_) + 1.0


def _chosen(op: OpOverload, values, tensors, at, keep=None) -> list[Strategy] | None:
    """The cheapest strategy of each dimension of the mesh. ``keep``: the placements that the first argument and the result must have; None when
    that can't be."""
    out = []
    for i in range(tensors[0].device_mesh.ndim):
        options = strategies(Call(op, values, tensors, at, i))
        if keep is not None:
            options = [s for s in options if s.ins[0] == keep[i] and s.outs[0] == keep[i]]
            if not options:
                return None
        out.append(min(options, key=lambda s: sum(_cost(t, i, p) for t, p in zip(tensors, s.ins))))
    return out


def _brought(op: OpOverload, tensors, chosen: list[Strategy]) -> list:
    """The parts of the tensors under the placements chosen."""
    out = []
    for k, t in enumerate(tensors):
        target = tuple(s.ins[k] for s in chosen)
        if _log.on and target != t.placements and not all(p.is_replicate() for p in t.placements):
            _log("%s: argument %s from %s to %s%s", op, k, t.placements, target, "" if has_rule(op) else " (no rule)")
        out.append(redistribute(t._local_tensor, tuple(t._shape), t.device_mesh, t.placements, target))
    return out


# ---- running ---------------------------------------------------------------------------------------------------------


def _run(op: OpOverload, values, replicated: bool = False):
    tensors, at = _leaves(values)
    tensors = _distributed(op, tensors)
    mesh, values = tensors[0].device_mesh, _with(values, tensors)
    if mesh.get_coordinate() is None:
        raise RuntimeError(f"{op}: this rank isn't part of the mesh {mesh}")
    if op.kind == "reduction" and not plain_reduction(op) and not replicated:
        call = Call(op, values, tensors, at, 0)
        if any(p.is_shard() and p.dim in reduced_dims(call)[0] for p in tensors[0].placements):
            opened = _opened_reduction(op, values)
            if opened is not None:
                return opened
    r = Replicate()
    chosen = [Strategy((r,) * len(tensors), (r,))] * mesh.ndim if replicated else _chosen(op, values, tensors, at)
    if (
        op.kind in _CHECKED
        and any(p.is_shard() for s in chosen for p in s.outs)
        and not _fits(op, values, tensors, chosen)
    ):
        return _run(op, values, replicated=True)
    local = _brought(op, tensors, chosen)
    if not has_rule(op):  # it may ask how its arguments lie in memory: as_strided does
        local = [_laid_out(x, t) for x, t in zip(local, tensors)]
    outs = _on_parts(op, values, tensors, at, local, chosen)
    if op.effects & {"draws"}:
        outs = [_of_first(x, mesh) for x in outs] if isinstance(outs, list) else _of_first(outs, mesh)
    try:
        made = _results(op, values, outs, chosen, mesh)
    except _OtherShape:
        return _run(op, values, replicated=True)
    if op._schema.is_view:
        _mark_copies(tensors[0], made)
    return made


# Kinds whose sizes may come from arguments that say nothing of being cut.
_CHECKED = ("index", "extern", "composite")
_CORNERS = 8


def _fits(op: OpOverload, values, tensors, chosen: list[Strategy]) -> bool:
    """Whether parts of the arguments give parts of the results, as the shape rule says for each rank (of a large mesh the first and the last). All
    ranks come to the same answer."""
    mesh, meta = tensors[0].device_mesh, op.facet("meta")
    where = list(np.ndindex(*mesh.shape))
    try:
        whole = _listed(meta(*values))
        for coordinate in where if len(where) <= _CORNERS else (where[0], where[-1]):
            given = []
            for k, t in enumerate(tensors):
                shape = local_box(t._shape, mesh, [s.ins[k] for s in chosen], coordinate)[0]
                given.append(TensorMeta(shape, contiguous_strides(shape), t._dtype, t._device))
            for j, (a, b) in enumerate(zip(whole, _listed(meta(*_with(values, given))), strict=True)):
                placed = [s.outs[j if len(s.outs) > j else 0] for s in chosen]
                if a is not None and local_box(a.shape, mesh, placed, coordinate)[0] != tuple(b.shape):
                    return False
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    return True


def _listed(x) -> list:
    return list(x) if isinstance(x, list | tuple) else [x]


def _laid_out(x, t):
    """A whole tensor in the strides that the DTensor shows."""
    if x._strides == t._strides and x._offset == t._offset:
        return x
    for d, (stride, n) in enumerate(zip(t._strides, t._shape)):
        if stride == 0 and n > 1:
            x = x.narrow(d, 0, 1)  # expanded
    out = aten.empty_strided.default(list(x._shape), list(t._strides), dtype=x._dtype, device=x._device)
    return aten.expand.default(aten.copy_.default(out, x), list(t._shape))


def _of_first(x, mesh):
    for i in range(mesh.ndim):
        x = funcol.broadcast(x.contiguous(), 0, mesh.get_group(i))
    return x


def _on_parts(op: OpOverload, values, tensors, at, local, chosen):
    """The operator called on parts, its sizes being those of the parts."""
    cut = any(p.is_shard() for s in chosen for p in s.ins)
    if cut and op.kind == "view":
        return _view_of_parts(op, values, tensors, at, local[0], chosen)
    if any(s.rows for s in chosen):
        return _rows_here(op, values, tensors, at, local, chosen)
    given = _with(values, local)
    if cut and op.kind == "factory" and ignores_index(Call(op, values, tensors, at, 0)):
        whole = list(tensors[0]._shape)
        given = [list(local[0]._shape) if isinstance(v, list | tuple) and list(v) == whole else v for v in given]
    args, kwargs = op.split(given)
    return op(*args, **kwargs)


def _rows_here(op: OpOverload, values, tensors, at, local, chosen):
    """The rows that this rank has, zeros for the others (sharding.Rows)."""
    rule, call = op.overrides["sharding"], Call(op, values, tensors, at, 0)
    source, index = call.named(rule.source), call.named(rule.index)
    mesh, placed = tensors[0].device_mesh, [s.ins[source] if s.rows else Replicate() for s in chosen]
    d = call.rows_dim(rule)
    n, start = (box[d] for box in local_box(tensors[source]._shape, mesh, placed))
    check_bounds(op, local[index]._array, tensors[source]._shape[d])
    at_home = aten.sub.Tensor(local[index], start)
    elsewhere = aten.logical_or.default(aten.lt.Scalar(at_home, 0), aten.ge.Scalar(at_home, n))
    local[index] = aten.masked_fill.Scalar(at_home, elsewhere, 0)
    if not n:  # no row is here
        sizes = list(local[source]._shape)
        local[source] = aten.new_zeros.default(local[source], [*sizes[:d], 1, *sizes[d + 1 :]])
    args, kwargs = op.split(_with(values, local))
    if rule.dim is None:
        elsewhere = aten.unsqueeze.default(elsewhere, -1)
    return aten.masked_fill.Scalar(op(*args, **kwargs), elsewhere, 0)


def _view_of_parts(op: OpOverload, values, tensors, at, local, chosen):
    """Each step of the view on the part, with the sizes that the part has there."""
    mesh, calls = tensors[0].device_mesh, []
    for i in range(mesh.ndim):
        calls.append(Call(op, values, tensors, at, i))
    outs = []
    for record in recorded(calls[0]):
        x, dims = local, [s.ins[0].dim if isinstance(s.ins[0], Shard) else None for s in chosen]
        for step in record.steps:
            dims = [
                None if d is None else STEPS[step.name](step, d, calls[i].parts(0, chosen[i].ins[0].dim))
                for i, d in enumerate(dims)
            ]
            placed = [Replicate() if d is None else Shard(d) for d in dims]
            x = _DO[step.name](x, step, list(local_box(step.out_shape, mesh, placed)[0]))
        outs.append(x if record.steps else aten.alias.default(x))
    return outs if op._schema.returns[0].is_list else outs[0]


_DO: dict[str, Callable] = {
    "permute": lambda x, step, sizes: aten.permute.default(x, list(step.params[0])),
    "reshape": lambda x, step, sizes: aten.reshape.default(x, sizes),
    "expand": lambda x, step, sizes: aten.expand.default(x, sizes),
    "slice": lambda x, step, sizes: _slice(x, sizes, *step.params),
    "squeeze": lambda x, step, sizes: aten.reshape.default(x, sizes),
    "unsqueeze": lambda x, step, sizes: aten.unsqueeze.default(x, step.params[0]),
    "diagonal": lambda x, step, sizes: aten.diagonal.default(x, step.params[2], *step.params[:2]),
    "unfold": lambda x, step, sizes: aten.unfold.default(x, *step.params),
}


def _slice(x, sizes, d, start, length, stride):
    if (start, length, stride) == (0, sizes[d], 1) and x._shape[d] == sizes[d]:
        return x
    return aten.slice.Tensor(x, d, start, start + (length - 1) * stride + 1 if length else start, stride)


def _opened_reduction(op: OpOverload, values):
    """A reduction with a step before or after its sum (or extreme) as these three, so that the sum alone crosses ranks. None for another kind."""
    d, a, h = op.definition, reductions.arguments(op)(values), AtenHandler()
    by = {"add": aten.sum.dim_IntList, "maximum": aten.amax.default, "minimum": aten.amin.default}.get(d.combine)
    if by is None:
        return None
    tensors, at = _leaves(values)
    dims, keepdim = reduced_dims(Call(op, values, tensors, at, 0))
    n = 1
    for e in dims:
        n *= tensors[0]._shape[e]
    x = a.input if a.input._dtype is a.acc else aten._to_copy.default(a.input, dtype=a.acc)
    if d.map is not None:
        x = d.map(h, x, *a.params)
    x = by(x, dims, keepdim)
    if d.finalize is not None:
        x = d.finalize(h, x, n, *a.params)
    return x if x._dtype is a.out else aten._to_copy.default(x, dtype=a.out)


class _OtherShape(Exception):
    """The parts haven't the shapes that parts of the result have."""


def _results(op: OpOverload, values, outs, chosen: list[Strategy], mesh):
    """DTensors of what the call on parts returned."""
    many = isinstance(outs, list | tuple)
    flat = list(outs) if many else [outs]
    metas = None
    made = []
    for j, x in enumerate(flat):
        if not isinstance(x, _C.TensorBase):
            made.append(x)
            continue
        placements = tuple(s.outs[j if len(s.outs) > j else 0] for s in chosen)
        shape, strides = x._shape, x._strides
        if any(p.is_shard() for p in placements):
            if metas is None:
                metas = op.facet("meta")(*values)
            meta = metas[j] if many else metas
            shape, strides = meta.shape, meta.strides
        if local_box(shape, mesh, placements)[0] != tuple(x._shape):
            raise _OtherShape
        made.append(_wrapped(x, mesh, placements, shape, strides))
    return type(outs)(made) if type(outs) in (list, tuple) else tuple(made) if many else made[0]


def _mark_copies(base, made) -> None:
    """A view whose parts had to be copied isn't one: writes to it must not get lost."""
    for x in made if isinstance(made, list | tuple) else [made]:
        if x._local_tensor._storage is not base._local_tensor._storage:
            x._is_copied_view = True


# ---- writes ----------------------------------------------------------------------------------------------------------


def _written(op: OpOverload, target):
    if not isinstance(target, _wrapper):
        raise RuntimeError(
            f"{op}: a DTensor can't be written into a plain torch.Tensor; use full_tensor() or to_local()"
        )
    if target._is_copied_view:
        raise RuntimeError(
            f"{op}: this view of a DTensor had to be copied (its parts aren't parts of what it is a view of), so a write to it would be lost"
        )


def _inplace(op: OpOverload, values):
    """The result in the placements of the first argument, written into its parts."""
    first, functional = values[0], op.definition.functional
    tensors, at = _leaves(values)
    _written(op, first)
    if functional.kind == "view":
        raise NotImplementedError(
            f"DTensor: {op} changes the shape of a tensor in place; use the operator that returns a view"
        )
    if functional.kind == "pointwise":
        tensors, chosen = _distributed(op, tensors), None
        if functional.facet("meta")(*values).shape == first._shape:
            chosen = _chosen(functional, _with(values, tensors), tensors, at, first.placements)
        if chosen is not None:
            args, kwargs = op.split(_with(values, _brought(op, tensors, chosen)))
            op(*args, **kwargs)
            return first
    args, kwargs = functional.split(values)
    _store(op, first, functional(*args, **kwargs))
    return first


def _store(op: OpOverload, target, result) -> None:
    _written(op, target)
    if tuple(result._shape) != tuple(target._shape):
        raise RuntimeError(
            f"{op}: a result of shape {list(result._shape)} can't be written into one of {list(target._shape)}"
        )
    mesh = target.device_mesh
    parts = redistribute(result._local_tensor, tuple(result._shape), mesh, result.placements, target.placements)
    aten.copy_.default(target._local_tensor, parts)


def _out(op: OpOverload, values):
    functional = op.definition.functional
    n = len(functional._schema.arguments)
    args, kwargs = functional.split(values[:n])
    results, targets = functional(*args, **kwargs), values[n:]
    for t, x in zip(targets, results if isinstance(results, list | tuple) else [results]):
        _store(op, t, x)
    return targets[0] if len(targets) == 1 else tuple(targets)
