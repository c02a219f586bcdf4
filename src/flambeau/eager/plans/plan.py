"""What native code does in place of a kernel, for one call's description.

``make_plan(op, values)`` is asked by csrc/core/call_plan.c for a call's description that came up again; the answer holds for all calls of that
description. None: the call stays with the kernel, which also words all errors.
"""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import dtypes
from ...core.native_facts import PLANNED_KINDS
from ...core.operator import OpOverload
from ...core.out_rules import computed_as, wants_exact
from .assembly import call_plan
from .program import LARGE, WRITTEN, Program
from .rules import steps_of
from .values import REFUSED, NotPlanned, Place, PlanValue, Slot
from .views import reinterpreted, views
from .whole import whole


def make_plan(op: OpOverload, values: tuple):
    """A CallPlan for calls of ``op`` like this one, or None."""
    try:
        if op.kind == "view":
            return views(op, values)
        if "reinterprets" in op.overrides:
            return reinterpreted(op, values[0])
        found = whole(op, values)
        if found is not None:
            return found
        base = op.definition.functional if op.kind in ("inplace", "out") else op
        p = Program(WRITTEN if base is not op and base.kind == "pointwise" else LARGE)
        bound = [_bind(p, x) for x in values]
        target = None
        if op.kind == "inplace":
            target = bound[0]
        elif op.kind == "out":
            outs = [v for a, v in zip(op._schema.arguments, bound) if a.is_out]
            if len(outs) != 1 or not isinstance(outs[0], PlanValue):
                return None
            kind = next(v._dtype for a, v in zip(op._schema.arguments, values) if a.is_out)
            target, bound = outs[0], computed_as(base, bound[: len(base._schema.arguments)], kind)
        if target is not None and not writable(values, target):
            return None
        if target is None:
            out = steps_of(p, base, bound, Place.RESULT)
            if isinstance(out, _C.CallPlan):
                return out
            several = isinstance(out, list)
            if several and p.results:
                return None
            for x in out if several else [out]:
                if x is None:
                    p.absent()
                else:
                    _settle(p, x)
            if len(p.results) != (len(out) if several else 1):
                return None
        else:
            if base.kind == "pointwise":
                out = steps_of(p, base, bound, target)
            else:
                out = steps_of(p, base, bound, None)
            if not isinstance(out, PlanValue) or out.shape != target.shape:
                return None
            if _category(out.dtype) > _category(target.dtype) or (wants_exact(op) and out.dtype != target.dtype):
                return None
            if out.slot != target.slot:
                p.copy(out, target)
        return call_plan(p, target=target, outside=op.kind == "out" and "outside" in base.out_rules)
    except REFUSED:
        return None


def _bind(p: Program, x):
    if isinstance(x, _C.TensorBase):
        return p.tensor(x._array)
    if isinstance(x, (list, tuple)):
        return [_bind(p, y) for y in x]
    return x


def _settle(p: Program, out: PlanValue) -> None:
    """The result must be new memory of its own."""
    if not isinstance(out, PlanValue) or out.slot.place is Place.TENSOR:
        raise NotPlanned  # the argument itself, or a view of it
    slot = p.final(out)
    if slot == Slot(Place.RESULT, 0) and not out.offset and out.shape == p.results[0].shape:
        return
    strides = out.element_strides()
    step = 1
    for s, n in sorted((s, n) for s, n in zip(strides, out.shape) if n > 1):
        if s != step:
            raise NotPlanned  # not dense: a view of something larger
        step *= n
    if slot.place is Place.TEMPORARY and step * out.dtype.itemsize == p.temporaries[slot.which]:
        p.promote(out)
    else:
        p.copy(out, p.empty(out.shape, out.dtype, strides, result=True))


def _category(dtype: np.dtype) -> int:
    return dtypes.from_numpy(dtype).category


def writable(values, target: PlanValue) -> bool:
    tensors = []
    for x in values:
        tensors += (
            [x]
            if isinstance(x, _C.TensorBase)
            else [y for y in x if isinstance(y, _C.TensorBase)]
            if isinstance(x, (list, tuple))
            else []
        )
    array = tensors[target.slot.which]._array
    if not array.flags.writeable:
        return False
    step = array.itemsize
    for s, n in sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1):
        if s < step:
            return False  # elements overlap
        step = s * n
    return True


PLANNED_KINDS.update(("view", "inplace", "out"))
_C.set_handlers(make_plan=make_plan)
