"""Updates in place, compiled: many tensors overwritten by a function of them, as an optimizer's step does.

:func:`update` runs ``fn(tensors, numbers)``, which returns (position, new value) pairs, and puts each new value where the tensor at that position
lies. The values are stored straight into that memory when every kernel that reads it does so at the very element it then writes, and not
later; else they are computed beside it and copied. Numbers that change from call to call (a learning rate) are read from memory, so they cause
no compilation.
"""

from __future__ import annotations

import logging

import numpy as np

from .. import _C
from ..core import keys
from ..core.dispatch import excluding
from .compile import compile_program
from .passes.decompose import OpProgram, _Recording, _without_data, tensor_meta
from .single import _describe

__all__ = ["update"]

log = logging.getLogger("flambeau.inductor")

PATIENCE = 4  # calls of one description before it is compiled
LIMIT = 64
_table: dict = {}


def update(name, fn, tensors: list, numbers: list[float]) -> bool:
    """Whether the update was done. ``name``: hashable, tells everything ``fn`` depends on besides shapes and dtypes. False, with nothing written,
    for the first calls, when a mode watches, or when there is no compiled form."""
    if _C.tls("dispatch_modes") or _C.tls("function_modes") or any(t._array is None for t in tensors):
        return False
    if not all(t._array.flags.writeable for t in tensors):
        return False  # the plain way says so, if one of these is written
    key = (name, len(numbers), *map(_describe, tensors))
    found = _table.get(key, 0)
    if type(found) is int:
        if len(_table) >= LIMIT:
            _table.clear()
        _table[key] = found + 1
        if found + 1 < PATIENCE:
            return False
        found = _table[key] = _compile(fn, tensors, len(numbers))
    if found is None:
        return False
    graph, direct, copied = found
    addresses = {t._array.ctypes.data for t in tensors}
    if len(addresses) < len(tensors):
        return False  # two of them share memory
    results = graph(*tensors, _C.from_array(np.array(numbers, np.float64)))
    for at, position in copied:
        np.copyto(tensors[position]._array, results[at]._array)
    for position in (*direct, *(p for _, p in copied)):
        tensors[position]._bump_version()
    return True


def _compile(fn, tensors, count):
    """(graph, positions written directly, (result, position) to copy), or None."""
    program = OpProgram()
    recording = _Recording(program)

    def enter(meta):
        duplicate = _without_data(meta)
        return recording.know(duplicate, program.add("input", "tensor", (), {}, duplicate))

    try:
        duplicates = [enter(tensor_meta(t)) for t in tensors]
        table = enter(tensor_meta(_C.from_array(np.zeros(count))))
        with excluding(keys.AUTOGRAD | keys.FUNCTIONALIZE | keys.TRANSFORM), recording:
            pairs = fn(duplicates, [table.select(0, i) for i in range(count)])
        program.outputs = [recording.reference(value) for _, value in pairs]
        program.count()
        targets = [position for position, _ in pairs]
        graph, made = compile_program(program, output_aliases=dict(enumerate(targets)))
    except Exception as e:
        # The caller has its own way to the result; a failure here only costs speed, and is logged.
        log.info("no compiled update in place: %s: %s", type(e).__name__, str(e))
        return None
    if made.lowering.fallbacks:
        return None
    direct = [targets[i] for i in made.placed]
    return graph, direct, [(i, p) for i, p in enumerate(targets) if i not in made.placed]
