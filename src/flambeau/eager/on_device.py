"""Operators that run as kernels of the second device: functional ones as the compiler above makes them, in-place and out= forms by writing what the
functional one gives."""

from __future__ import annotations

from .. import _C
from ..base.errors import DataDependentOutputException, MissingFacet
from ..core.device_memory import on_device
from ..core.operator import OpOverload
from ..core.out_rules import check_dtype, check_inplace, computed_as

__all__ = ["run", "set_kernels"]

# compute(op, all arguments, device) -> the result, or NotImplemented; copy(target, source): elements of the target. Installed from above, since the
# compiler is a higher level.
_compute = _copy = None


def set_kernels(compute, copy) -> None:
    """``compute(op, full, device)`` is asked for the result of a functional operator, ``copy(target, source)`` writes the elements of a tensor; both
    may answer NotImplemented."""
    global _compute, _copy
    _compute, _copy = compute, copy


def run(op: OpOverload, full, device):
    """The result of a call, or NotImplemented where the device has no kernel."""
    if _compute is None:
        return NotImplemented
    if op.kind == "inplace":
        return _in_place(op, full, device) if on_device(full[0]) else NotImplemented
    if op.kind == "out":
        return _out(op, full, device)
    if op._schema.is_mutable:
        return NotImplemented
    if not any(r.is_tensor for r in op._schema.returns):
        return _number(op, full)
    made = _compute(op, full, device)
    return _by_parts(op, full) if made is NotImplemented else made


def _number(op: OpOverload, full):
    """What an operator tells of shapes, or finds out by others that run on the device."""
    try:
        return op.facet("meta")(*full)
    except (DataDependentOutputException, MissingFacet):
        return _by_parts(op, full)


def _by_parts(op: OpOverload, full):
    """What isn't one graph: what a composite is made of, or (the override "by_parts") what the size of the result asks for, one after the other."""
    d, parts = op.definition, op.overrides.get("by_parts")
    if parts is not None:
        return parts(*full)
    return d.fn(*full) if op.kind == "composite" and d.eager is None else NotImplemented


def _in_place(op: OpOverload, full, device):
    from . import mutation  # it is made of this module's users

    functional, target = op.definition.functional, full[0]
    if functional.kind == "pointwise" and len(full) > 1:
        mutation.refuse_partial_overlap(full[:1], full[1:])
    result = _compute(functional, full, device)
    if not isinstance(result, _C.TensorBase):
        return NotImplemented
    check_inplace(op, target._dtype, result._dtype)
    mutation.check_write(op, target, result)
    return NotImplemented if _written(target, result) is NotImplemented else target


def _out(op: OpOverload, full, device):
    from . import mutation

    functional = op.definition.functional
    n = len(functional._schema.arguments)
    targets = full[n:]
    if not all(isinstance(t, _C.TensorBase) and on_device(t) for t in targets):
        return NotImplemented
    outside, rows = (word in functional.out_rules for word in ("outside", "rows"))
    result = _compute(functional, computed_as(functional, full[:n], targets[0]._dtype), device)
    if result is NotImplemented:
        return result
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    sources = [x for a in full[:n] for x in (a if isinstance(a, (list, tuple)) else [a])]
    mutation.refuse_partial_overlap(targets, sources, outside, [r._shape for r in results])
    for t, r in zip(targets, results):
        check_dtype(functional, t._dtype, r._dtype, len(results) > 1)
        mutation.check_write(op, t, r)
    for t, r in zip(targets, results):
        mutation.fit(t, r, rows)
        if _written(t, r) is NotImplemented:
            return NotImplemented
    return targets[0] if len(targets) == 1 else tuple(targets)


def _written(target, result):
    """NotImplemented where there is no kernel for it."""
    made = _copy(target, result)
    if made is not NotImplemented:
        target._bump_version()
    return made
