"""Compiled kernels for single eager operators on large tensors.

:func:`find` is what eager's backend asks before it runs NumPy on many elements. An operator on arguments of one description (shapes, strides,
dtypes, numbers) is compiled when it is met for the second time; numbers that change from call to call thus never cause a compilation. It
answers None, and NumPy runs, for what is met first, or has no kernel. Calls of small arguments come here once they are frequent (eager/often.py).
Graphs are kept on disk by the operator and the description of its arguments, so a second process lowers none of them.
"""

from __future__ import annotations

import logging
from typing import Any

from .. import _C
from ..base import process_state
from ..base.dtypes import DType
from ..base.sources import fingerprint
from ..core import keys, modes
from ..core.dispatch import excluding
from ..core.operator import redefined
from ..fx.targets import kind_of
from .compile import compile_program
from .exactness import is_exact
from .passes.decompose import OpProgram, _Recording, _without_data, tensor_meta
from .runtime.recall import recall, remember

__all__ = ["find"]

log = logging.getLogger("flambeau.inductor")

LIMIT = 2048  # descriptions kept; then the table starts afresh
_SEEN = object()
_REFUSED = object()
_PLAIN = (type(None), bool, int, float, complex, str, DType)
_table: dict[Any, Any] = {}


def _describe(x):
    if isinstance(x, _C.TensorBase):
        a = x._array
        return a.shape, a.strides, a.dtype
    if isinstance(x, (list, tuple)):
        return tuple(map(_describe, x))
    # NOTE: 0.0 and -0.0 are equal as keys and differ as operands.
    return (float, x.hex()) if type(x) is float else (type(x), x)


def find(op, args, now: bool, exact: bool = False):
    """(graph of the tensors among ``args``, whether it has several results) for ``op`` on ``args`` (all of them, in schema order), or None.
    ``now``: True when the description has been met before, None when this call mustn't count as the first. ``exact``: only a graph that gives the
    bits that eager's loops give."""
    try:
        key = (op, exact, *map(_describe, args))
        found = _table.get(key)
    except TypeError:  # an argument that can't be hashed
        return None
    if found is None:
        if len(_table) >= LIMIT:
            _table.clear()
        if now is None:
            return None
        found = _table[key] = _SEEN
        if not now:
            return None
    if found is _SEEN:
        found = _table[key] = _compile(op, args, exact)
    return None if found is _REFUSED else found


def _lies_elsewhere(call) -> bool:
    """Whether a result is an argument, a view of one, or a constant, and not new memory. None is no result."""
    while call is not None and call.what == "call" and kind_of(call.target) == "view":
        call = call.args[0]
    return call is not None and call.what in ("input", "constant")


def _plainly(x) -> bool:
    """Whether the ``repr`` of an argument's description means the same in every process."""
    if isinstance(x, (list, tuple)):
        return all(map(_plainly, x))
    return isinstance(x, _C.TensorBase) or type(x) in _PLAIN


def _entry(op, args, exact: bool) -> str | None:
    """The name of a call's graph on disk: operator, arguments, sources and state of the process."""
    if op.namespace != "aten" or not _plainly(args):
        return None
    state = (fingerprint(), process_state.key(), redefined())
    return f"single {op} {exact} {list(map(_describe, args))} {state}"


def _compile(op, args, exact=False):
    """(graph, are there several results), or _REFUSED."""
    entry = _entry(op, args, exact)
    graph = None if entry is None else recall(entry, {})
    if graph is not None:
        return graph, len(graph.info.plan.outputs) != 1
    program = OpProgram()
    recording = _Recording(program)

    def enter(x):
        if isinstance(x, _C.TensorBase):
            duplicate = _without_data(tensor_meta(x))
            return recording.know(duplicate, program.add("input", "tensor", (), {}, duplicate))
        return [enter(y) for y in x] if isinstance(x, (list, tuple)) else x

    try:
        with (
            modes.disabled("function"),
            modes.disabled("dispatch"),
            excluding(keys.AUTOGRAD | keys.FUNCTIONALIZE | keys.TRANSFORM),
        ):
            out = recording.__torch_dispatch__(op, (), [enter(x) for x in args], {}, positional=True)
        outputs = out if isinstance(out, (tuple, list)) else [out]
        program.outputs = [recording.reference(x) for x in outputs]
        if any(map(_lies_elsewhere, program.outputs)) or (exact and not is_exact(program)):
            return _REFUSED
        program.count()
        graph, made = compile_program(program)
    except Exception as e:
        # Eager's own kernel gives the result or the error; a failure here only costs speed, and is logged.
        log.info("%s has no compiled eager kernel: %s: %s", op, type(e).__name__, str(e))
        return _REFUSED
    if made.lowering.fallbacks or any(getattr(s, "what", "") == "call" for s in graph.info.steps):
        return _REFUSED
    several = isinstance(out, (tuple, list))
    # A list of one result isn't told from a single one by its plan; choices of max-autotune belong to this process.
    if entry is not None and not graph.info.choices and several == (len(outputs) != 1):
        remember(entry, {}, graph, 0, 0)
    return graph, several
