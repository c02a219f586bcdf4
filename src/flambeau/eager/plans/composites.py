"""The rules of composites, and of operators that give their coordinates."""

from __future__ import annotations

from ... import _C
from ...base import dtypes
from ...base.device import CPU
from ...core import keys as K
from ...core import modes
from ...core.dispatch import excluding
from ...core.modes import TorchDispatchMode
from ...core.operator import OpOverload
from ...core.tensor import Tensor
from ...core.viewmap import Strided
from ..backend import kernel_of
from .factories import KERNEL
from .program import Program
from .rules import RULES, rule, steps_of
from .values import NotPlanned, Place, PlanValue, Slot, bytes_of, value_meta


@rule("extern")
def _extern(p: Program, op: OpOverload, values, out):
    coords, pieces = op.overrides.get("coords"), op.overrides.get("pieces")
    if pieces is not None:
        meta = op.definition.meta(*[value_meta(x) for x in values])
        to = p.memory(out, meta.shape, meta.dtype.np, meta.strides)
        for x, d, start in pieces(*values):
            p.copy(x, to.seen(x.shape, to.strides, offset=start * to.strides[d]))
        return to
    if coords is None:
        raise NotPlanned
    found = coords(*values)
    if found is None:
        raise NotPlanned
    shape, fn, tensor = found
    from . import indexing

    return indexing.gather(p, values[0], tuple(shape), fn, tensor, True, out)


class _Record(TorchDispatchMode):
    """Puts the operators it sees into a program. Tensors have no data here; ``_value`` says where they lie."""

    sees_parts = True

    def __init__(self, program: Program):
        self.program = program

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        values = [_values_of(x) for x in func.full(*args, **(kwargs or {}))]
        if func.kind == "view":
            v = values[0]
            made = func.definition.map(Strided(v.shape, v.element_strides(), 0), *values[1:])
            pieces = [made] if isinstance(made, Strided) else made
            out = [
                _stand_in(v.seen(w.shape, bytes_of(w.strides, v.dtype), offset=w.offset * v.dtype.itemsize))
                for w in pieces
            ]
            return out[0] if isinstance(made, Strided) else out
        if func.kind not in RULES or "eager" in func.overrides:
            raise NotPlanned
        known = _known(self.program, func, values)
        if known is not None:
            return _stand_in(known)
        made = steps_of(self.program, func, values, None)
        return tuple(None if v is None else _stand_in(v) for v in made) if isinstance(made, list) else _stand_in(made)


def _known(p: Program, op: OpOverload, values):
    """The result as a constant, where nothing that it is made of depends on the call; else None."""
    if op.kind not in ("pointwise", "index", "factory") or getattr(op.definition, "body", True) is None:
        return None
    args = []
    for x in values:
        if isinstance(x, PlanValue):
            if x.slot.place is not Place.CONSTANT:
                return None
            x = _C.from_array(p.known(x))
        args.append(x)
    made = kernel_of(op)[1](*args)._array
    if made.size > KERNEL or not made.flags.c_contiguous:
        return None
    return p.constant(made)


def _values_of(x):
    if isinstance(x, _C.TensorBase):
        return x._value
    return [_values_of(y) for y in x] if isinstance(x, (list, tuple)) else x


def _stand_in(v: PlanValue):
    if not isinstance(v, PlanValue):
        raise NotPlanned
    t = _C.without_data(_StandIn, v.shape, v.element_strides(), dtypes.from_numpy(v.dtype), CPU, 0, None)
    t._value = v
    return t


class _StandIn(Tensor):
    """A value of a program for the body of a composite. Looking at the data ends the attempt: other data may want another way."""

    __torch_function__ = _C._disabled_torch_function_impl
    # As the tensors of the calls have: a check of elements asks this before it looks at them.
    _has_data = True

    @property
    def _array(self):
        raise NotPlanned


@rule("composite")
def _composite(p: Program, op: OpOverload, values, out):
    d = op.definition
    if d.eager is not None or op.namespace != "aten" or op._schema.is_mutable:
        raise NotPlanned
    p.inside = True
    args = [
        _stand_in(x)
        if isinstance(x, PlanValue)
        else [_stand_in(y) for y in x]
        if isinstance(x, list) and x and isinstance(x[0], PlanValue)
        else x
        for x in values
    ]
    with (
        modes.disabled("function"),
        modes.disabled("dispatch"),
        excluding(K.AUTOGRAD | K.TRANSFORM | K.FUNCTIONALIZE),
        _Record(p),
    ):
        made = d.fn(*args)
    many = isinstance(made, (list, tuple))
    pieces = list(made) if many else [made]
    if any(x is y for x in pieces for y in args) or not all(isinstance(x, _StandIn) for x in pieces):
        raise NotPlanned  # the argument itself
    found = [x._value for x in pieces]
    if not op._schema.is_view:
        return found if many else found[0]
    # All of them views of the first argument, or what was computed.
    if (
        not p.steps
        and all(v.slot == Slot(Place.TENSOR, 0) for v in found)
        and p.counts[Place.TENSOR] == 1
        and out is Place.RESULT
    ):
        results = tuple((None, v.shape, v.strides, v.offset) for v in found)
        return _C.CallPlan(1, results, view=True, many=many, tracked=True)
    if many or found[0].slot.place is Place.TENSOR:
        raise NotPlanned
    return found[0]
