"""Batching rules of the kinds that need little: pointwise, reduction, factory, composite, in-place, out and
extern."""

from __future__ import annotations

import logging

from .. import _C
from ..base.errors import MissingFacet
from ..base.memory_format import contiguous_format
from ..base.shapes import normalize_dim, normalize_dims
from ..core import keys as K
from ..core.dispatch import derivatives_asked, differentiated
from ..core.operator import OpOverload, namespace, namespaces
from ..core.out_rules import check_inplace_shape
from ..core.promotion import compute_dtype, operand_indices
from .fallback import fallback_allowed
from .handler import Unbatched, expand_batch, invoke, on_parts, rule
from .levels import below, innermost, value_at

aten = namespace("aten")


# ---- pointwise: ones between the batch and shorter shapes
# -------------------------------------------------------------------


def align(call, values, positions) -> list:
    """``values`` in which mapped tensors broadcast like their examples do: ones are put between the batch and shorter
    shapes."""
    rank = max(
        (x._ndim - m for x, m in ((values[i], call.mask[i]) for i in positions) if isinstance(x, _C.TensorBase)),
        default=0,
    )
    out = list(values)
    for i in positions:
        x = out[i]
        if call.mask[i] and x._ndim - 1 < rank:
            out[i] = aten.view.default(x, [x._shape[0], *[1] * (rank - x._ndim + 1), *x._shape[1:]])
    return out


def _promoted(call, values, positions) -> list:
    """Zero-dimensional examples weigh less in type promotion than their batch would: cast to what the examples
    compute in."""
    op = call.op
    if not any(call.mask[i] and call.logical[i]._ndim == 0 for i in positions) or op.definition.promote == "keep":
        return values
    wanted = compute_dtype(op, call.logical)
    out = list(values)
    for i in operand_indices(op):
        if isinstance(out[i], _C.TensorBase) and out[i]._dtype is not wanted:
            out[i] = aten._to_copy.default(out[i], dtype=wanted)
    return out


@rule("pointwise")
def pointwise(op: OpOverload):
    positions = [i for i, a in enumerate(op._schema.arguments) if a.is_tensor and not a.is_list]

    def run(call, *values):
        return invoke(op, align(call, _promoted(call, values, positions), positions))

    return run


# ---- reduction: dimensions shifted by one
# -----------------------------------------------------------------------------------


def _with_dims(op: OpOverload) -> OpOverload | None:
    """The reduction that does the same over given dimensions, for one that reduces all (``sum.default`` ->
    ``sum.dim_IntList``)."""
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    if d.dims in names:
        return op

    def key(r):
        return (r.combine, r.init, r.map, r.finalize, r.acc)

    candidates = [
        o
        for ns in ("aten", op.namespace)
        for p in namespaces[ns]._packets.values()
        for o in p._overloads.values()
        if o.kind == "reduction"
        and o.definition.dims in [a.name for a in o._schema.arguments]
        and key(o.definition) == key(d)
    ]
    return min(candidates, key=lambda o: (o._opname != op._opname, len(o._schema.arguments)), default=None)


@rule("reduction")
def reduction(op: OpOverload):
    target = _with_dims(op)
    if target is None:
        return _loop(op)
    names = [a.name for a in op._schema.arguments]
    arguments = [a.name for a in target._schema.arguments]
    d = target.definition
    dims_at, keep_at = arguments.index(d.dims), arguments.index(d.keepdim) if d.keepdim in arguments else None
    is_list = target._schema.arguments[dims_at].is_list

    def run(call, *values):
        given = dict(zip(names, values))
        x = values[0]
        rank = x._ndim - 1
        full = [x if k == 0 else given.get(a.name, a.default_value) for k, a in enumerate(target._schema.arguments)]
        dims, keepdim = given.get(d.dims), bool(keep_at is not None and full[keep_at])
        everything = dims is None or (isinstance(dims, (list, tuple)) and not dims)
        if rank == 0:
            # One element an example: a dimension to reduce is put in.
            if not everything:
                normalize_dims(dims if isinstance(dims, (list, tuple)) else [dims], 0)
            full[0], full[dims_at] = aten.unsqueeze.default(x, 1), [1] if is_list else 1
            if keep_at is not None:
                full[keep_at] = False
            return invoke(target, full)
        if not everything:
            if isinstance(dims, (list, tuple)):
                full[dims_at] = [a + 1 for a in normalize_dims(dims, rank)]
            else:
                full[dims_at] = normalize_dim(dims, rank) + 1
            return invoke(target, full)
        if is_list:
            full[dims_at] = list(range(1, rank + 1))
            return invoke(target, full)
        full[0], full[dims_at] = aten.reshape.default(x, [call.size, -1] if x.numel() else [call.size, 0]), 1
        if keep_at is not None:
            full[keep_at] = False
        out = invoke(target, full)
        return aten.view.default(out, [call.size, *[1] * rank]) if keepdim else out

    return run


# ---- factory
# ----------------------------------------------------------------------------------------------------------------


def size_argument(op: OpOverload, values, shape):
    """Position of the argument that holds the size ``shape``, or None."""
    for i, (a, v) in enumerate(zip(op._schema.arguments, values)):
        if a.is_list and a.type in ("int", "SymInt") and isinstance(v, (list, tuple)) and tuple(v) == tuple(shape):
            return i
    return None


def _ignores_index(op: OpOverload, values) -> bool:
    if op.definition.body is None:
        return True
    try:
        op.definition.body(None, None, *values)
    except (AttributeError, TypeError):
        return False
    return True


@rule("factory")
def factory(op: OpOverload):
    """A result of the examples' shape for every example, so that it can be written in place."""
    d = op.definition

    def run(call, *values):
        shape = tuple(d.shape(*call.logical))
        if _ignores_index(op, values):
            at = size_argument(op, values, shape)
            if at is not None:
                full = list(values)
                full[at] = [call.size, *shape]
                return invoke(op, full)
            if tuple(d.shape(*values)) == (call.size, *shape):
                return invoke(op, values)
        plain = [
            aten.new_empty.default(v, list(x._shape)) if m else v for v, x, m in zip(values, call.logical, call.mask)
        ]
        return aten.clone.default(expand_batch(invoke(op, plain), call.size), memory_format=contiguous_format)

    return run


# ---- composite: the parts under vmap
# ----------------------------------------------------------------------------------------

_ITEM = (
    "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a Tensor in some "
    "data-dependent control flow or "
    "(3) encountering this error in PyTorch internals. For (1): we don't support vmap over calling .item() on a "
    "Tensor, please try to "
    "rewrite what you're doing with other operations. For (2): If you're doing some control flow instead, we don't "
    "support that yet, "
    "please shout over at https://github.com/pytorch/functorch/issues/257 . For (3): please file an issue."
)


def _returns_tensors(op: OpOverload) -> bool:
    return all(r.is_tensor for r in op._schema.returns)


def _recording(values) -> bool:
    """Whether autograd, below, records what is done with these, or pushes tangents."""
    if not derivatives_asked() or _C.tls("excluded") & K.AUTOGRAD:
        return False
    return any(
        differentiated(innermost(x)) if isinstance(x, _C.TensorBase) else isinstance(x, (list, tuple)) and _recording(x)
        for x in values
    )


@rule("composite")
def composite(op: OpOverload):
    fn = op.definition.fn
    if on_parts(op):
        return _loop(op)
    # Some have other parts for when a derivative is taken of them: what is saved must not count as constant.
    differentiable = op.overrides.get("autograd", fn) if op.vjp_formulas is None else fn

    def run(call, *logical):
        if not _returns_tensors(op):
            raise RuntimeError(_ITEM)
        return (differentiable if _recording(logical) else fn)(*logical)

    run.on_examples = True
    return run


# ---- in-place and out=
# ------------------------------------------------------------------------------------------------------


def _incompatible(op: OpOverload):
    name = op._opname
    return RuntimeError(
        f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that "
        "has more elements "
        "than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. "
        "Please try to use "
        f"out-of-place operators instead of {name}. If said operator is being called inside the PyTorch framework, "
        "please file a "
        "bug report instead."
    )


def _write(call, target, result):
    """Copy a result, mapped or not, into a written argument."""
    value, mapped = value_at(target, call.level)
    new, new_mapped = value_at(result, call.level)
    if new_mapped and not mapped:
        raise _incompatible(call.op)
    check_inplace_shape(target, result._shape)
    aten.copy_.default(value, new)


_UNBATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "Map over the tensor that is written to, or draw out of place"
)


@rule("inplace")
def inplace(op: OpOverload):
    functional = op.definition.functional
    positions = [i for i, a in enumerate(op._schema.arguments) if a.is_tensor and not a.is_list]
    if functional.kind == "pointwise" and "batch" not in functional.overrides:

        def direct(call, *logical):
            if not call.mask[0] and any(call.mask):
                raise _incompatible(op)
            values = [value_at(x, call.level)[0] if isinstance(x, _C.TensorBase) else x for x in logical]
            with below(call.level):
                typed = _promoted(_Functional(call, functional), values, positions)
                invoke(op, [values[0], *align(call, typed, positions)[1:]])
            return logical[0]

        direct.on_examples = True
        return direct

    drawn = functional.kind == "random"

    def run(call, target, *others):
        if drawn and call.level.randomness == "different" and not call.mask[0]:
            if any(m for m in call.mask[1:]):
                raise _incompatible(op)
            raise RuntimeError(_UNBATCHED)
        # The history of what a level holds is below it: a derivative that reads the target needs it as it was.
        kept = _recording((target, *others))
        before = invoke(aten.clone.default, (target,)) if kept else target
        _write_below(call, target, invoke(functional, (before, *others)))
        return target

    run.on_examples = True
    return run


class _Functional:
    """A call seen as one of the functional operator."""

    def __init__(self, call, functional):
        self.op, self.mask, self.logical = functional, call.mask, call.logical


def _write_below(call, target, result):

    with below(call.level):
        _write(call, target, result)


@rule("out")
def out(op: OpOverload):
    functional = op.definition.functional
    n = len(functional._schema.arguments)

    def run(call, *logical):
        results = invoke(functional, logical[:n])
        targets = logical[n:]
        for t, r in zip(targets, results if isinstance(results, (list, tuple)) else [results]):
            _write_below(call, t, r)
        return targets[0] if len(targets) == 1 else tuple(targets)

    run.on_examples = True
    return run


# ---- extern: one call an example
# --------------------------------------------------------------------------------------------

_logger = logging.getLogger("flambeau.batching")


def _pick(x, mask, i: int):
    if isinstance(mask, tuple):
        return [_pick(y, m, i) for y, m in zip(x, mask)]
    return aten.select.int(x, 0, i) if mask else x


def stack(results):
    """Results of the examples as one, leaf by leaf."""
    first = results[0]
    if isinstance(first, _C.TensorBase):
        if any(tuple(r._shape) != tuple(first._shape) for r in results):
            shapes = ", ".join(str(list(r._shape)) for r in results[:4])
            raise RuntimeError(
                "vmap: We do not support batching operators that can output dynamic shape: the result has another "
                f"shape for each example ({shapes})"
            )
        return aten.stack.default(list(results), 0)
    if isinstance(first, (list, tuple)):
        made = [stack(parts) for parts in zip(*results, strict=True)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    return first


def each_example(call, values):
    """Call the operator once an example and stack the results."""
    fallback_allowed(call.op, call.size)
    return stack([invoke(call.op, [_pick(x, m, i) for x, m in zip(values, call.mask)]) for i in range(call.size)])


def _loop(op: OpOverload):
    if op._schema.is_mutable:
        return None
    said = False

    def run(call, *values):
        nonlocal said
        if not said:
            said = True
            _logger.warning(
                "vmap: %s (kind %s) has no batching rule and is run once an example; op.override('batch', fn) gives "
                "it one",
                op.name(),
                op.kind,
            )
        if not _returns_tensors(op):
            raise MissingFacet("vmap", op, "batch")
        return each_example(call, values)

    return run


rule("extern")(_loop)

__all__ = ["Unbatched", "align", "each_example", "size_argument", "stack"]
