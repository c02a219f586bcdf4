"""Compiled graphs for small calls that come up often.

``compile_plan(op, values, plan)`` is asked by csrc/core/call_plan.c once calls of one description have come up R_OFTEN times. What NumPy's loops do
in one pass stays as it is; several passes, loops that NumPy hasn't vectorised, and kernels in Python become the graph that the compiler makes of
the operator, as large calls do at once (backend.compiled). Unlike there the graph must give the same bits: what a program computes mustn't depend on
how often it has computed it.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base.elements import OWN
from ..core.dispatch import excluding
from ..core.generator import default_generator
from ..core.native_facts import known_by_type
from ..core.operator import OpOverload
from . import backend
from .plans.plan import writable
from .plans.program import Program
from .plans.values import REFUSED
from .plans.whole import by_type

__all__ = ["compile_plan"]

_PATIENCE = 64  # times R_OFTEN calls that could gain something, in a process without the compiler
# Loops that are as fast as compiled ones.
_FAST = OWN | {
    np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.sqrt, np.negative, np.absolute, np.square, np.floor, np.ceil, np.trunc,
    np.rint, np.isnan, np.isinf, np.isfinite, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and,
    np.logical_or, np.logical_not, np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.matmul, np.gcd, np.lcm,
}  # fmt: skip


def compile_plan(op: OpOverload, values: tuple, plan):
    """A Kernel in place of ``plan`` (a CallPlan, a Kernel, None: a kernel in Python), or None: calls go on as they do. NotImplemented: ask again."""
    if backend.accelerate is None or op.namespace != "aten" or _is_large(values) or not _gains(op, plan):
        return None
    if op.kind == "inplace":
        return _writing(op, values, plan)
    if not _pays():
        return NotImplemented
    try:
        op.facet("meta")(
            *values
        )  # the compiler isn't imported for a call that is refused, or whose size depends on data
    except Exception:
        return None
    found = backend.accelerate(op, values, True, exact=True)
    if found is None or not _agrees(op, values, *found):
        return None
    otherwise = plan if isinstance(plan, _C.CallPlan) else None
    return _C.Kernel(found[0], _numbers(op, values), many=found[1], checked=True, otherwise=otherwise)


def _is_large(values) -> bool:
    """Whether this is the matter of backend.compiled, which knows numbers that change; _agrees would hold both results besides."""
    return any(x._array.size >= backend.LARGE for x in backend.tensors_of(values))


_asked = 0


def _pays() -> bool:
    """Whether importing the compiler, which takes as long as many calls, is worth it by now."""
    global _asked
    _asked += 1
    return backend.loaded or _asked > _PATIENCE


def _agrees(op: OpOverload, values, graph, many: bool) -> bool:
    """Whether the graph makes of ``values`` what the kernel makes of them, draws included; the generator stays where it is."""
    generator = default_generator
    state = generator.get_state()
    try:
        with excluding(backend._ABOVE):
            expected = backend.kernel_of(op)[1](*values)
            generator.set_state(state)
            made = graph(*backend.tensors_of(values))
    except Exception:  # what this call is refused for is said by the kernel
        return False
    finally:
        generator.set_state(state)
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    return len(made) == len(expected) and all(map(_same, made, expected))


def _same(a, b) -> bool:
    if not isinstance(a, _C.TensorBase) or not isinstance(b, _C.TensorBase):
        return a is b
    x, y = a._array, b._array
    if x is None or y is None:  # conjugated, say
        return False
    if a._dtype is not b._dtype or x.shape != y.shape or a._strides != b._strides:
        return False
    if x.dtype.kind not in "fc":
        return bool((x == y).all()) if x.dtype.kind in "iub" else x.tobytes() == y.tobytes()
    return bool(np.array_equal(x, y, equal_nan=True))


def _gains(op: OpOverload, plan) -> bool:
    if op.kind in ("view", "out") or op._schema.is_view:
        return False
    if plan is None:
        return True
    if isinstance(plan, _C.Kernel):
        return plan.quiet  # a kernel in Python whose shapes are known
    steps = plan.kept[0]
    if not steps or op.kind == "inplace":
        return False
    loops = [s[0] for s in steps if len(s) > 4]
    slow = [x for x in loops if x[0] != "copy" and not (x[0] == "ufunc" and x[1] in _FAST)]
    made = [x for x in loops if x[0] != "copy"]
    return bool(slow) or (op.kind != "reduction" and len(made) > 1)


def _numbers(op: OpOverload, values) -> tuple:
    return tuple(values[i] for i in known_by_type(op) if by_type(op, i, values[i]))


def _writing(op: OpOverload, values, plan):
    """The graph of the functional operator, whose result is copied; for operators other than elementwise ones, which may be handed overlapping
    memory."""
    base = op.definition.functional
    target = values[0]
    if plan is not None or base.kind == "pointwise":
        return None
    try:
        meta = base.facet("meta")(*values)
        fits = meta.shape == target._shape and meta.dtype is target._dtype
        if not fits or not writable(values, Program().tensor(target._array)):
            return None
    except REFUSED:
        return None
    if not _pays():
        return NotImplemented
    found = backend.accelerate(base, values, True, exact=True)
    return (
        None
        if found is None or found[1] or not _agrees(base, values, *found)
        else _C.Kernel(found[0], (), checked=True, target=0)
    )
