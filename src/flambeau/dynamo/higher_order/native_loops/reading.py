"""Whether a loop is about arrays."""

from __future__ import annotations

import numpy as np

from flambeau.loops.random_numbers import streams
from flambeau.loops.region import find
from flambeau.loops.values import Declined

from ...variables.numpy.ndarray import NumpyNdarrayVariable
from ...variables.numpy.random_generators import DrawVariable, NumpyGeneratorVariable
from ...variables.values.given_text import GivenTextVariable

__all__ = ["reads_arrays"]

# Names of NumPy in loops over numbers alone, too.
OF_NUMBERS = frozenset(
    "pi e inf nan sqrt exp log log2 log10 sin cos tan floor ceil abs int64 float64 int32 float32 bool_".split()
)


def reads_arrays(tx, header: int) -> bool:
    """Whether something that the loop reads may be an array or a random generator: a quick look before it is compiled."""
    try:
        blocks = [*find(tx.insts, header).blocks.items()]
    except Declined:
        if tx.insts[header].name != "FOR_ITER":
            return False
        blocks = [(header + 1, tx.insts[header].target)]
    return any(_reads_array(tx, i) for start, end in blocks for i in tx.insts[start:end])


def _reads_array(tx, i) -> bool:
    if i.name == "LOAD_GLOBAL" and tx.globals.get(i.argval) is np:
        return tx.insts[i.index + 1].argval not in OF_NUMBERS
    if i.name in ("LOAD_DEREF", "LOAD_CLOSURE") and i.argval in tx.cells:
        v = tx.cells[i.argval].get(tx)
    elif i.name == "LOAD_FAST":
        v = tx.locals.get(i.argval)
    else:
        return False
    if v is not None and _may_be_text(tx, v):
        return True
    if v is not None and isinstance(v.unwrap(), NumpyNdarrayVariable | NumpyGeneratorVariable | DrawVariable):
        return True
    return isinstance(getattr(v, "value", None), (np.ndarray, *streams.classes()))


def _may_be_text(tx, v) -> bool:
    return isinstance(tx.realize(v) if v.python_type() is str else None, GivenTextVariable)
