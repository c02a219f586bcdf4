"""What a loop runs over, as :mod:`flambeau.loops` is told."""

from __future__ import annotations

import functools
import math

import numpy as np

from flambeau.base.symint import sym_min
from flambeau.loops.emitter import constant
from flambeau.loops.operands import OverItems, OverRange
from flambeau.loops.values import Call, Declined, Known

from ...variables.iterators.builtin_iterators import EnumerateVariable, ZipVariable
from ...variables.iterators.container_iterators import NumpyIteratorVariable
from ...variables.numpy.ndarray import NumpyNdarrayVariable
from ...variables.numpy.places import IndicesVariable
from ...variables.values.given_text import GivenTextVariable, TextIteratorVariable
from ...variables.values.symbolic import SymbolicVariable
from .described import describe, whole
from .trips import Elements, Ends

__all__ = ["elements_of", "told"]


def told(trip: Ends | Elements | None) -> OverRange | OverItems | None:
    """As Inputs has it."""
    if isinstance(trip, Ends):
        ends = [whole(e) if isinstance(e, SymbolicVariable) else e for e in (trip.start, trip.stop)]
        return OverRange(*ends, trip.step)
    return trip and OverItems(trip.of)


def elements_of(tx, v) -> Elements | None:
    """Those of an array, a text or what iterates over such. None for what is empty, or no native loop's."""
    try:
        return _found(tx, {}, v)
    except Declined:
        return None


def _found(tx, operands: dict, v) -> Elements | None:
    """Arrays are entered in ``operands``."""
    if isinstance(v, NumpyIteratorVariable) and v.over is not None and not v.at:
        v = v.over
    if isinstance(v, GivenTextVariable):
        v = v.iter(tx)
    if isinstance(v, TextIteratorVariable) and v.over is not None:
        n, codes = v.text.size(), describe(tx, operands, v.text)
        return Elements(Call(reversed, (codes,)) if v.down else codes, _hint(n), n, operands)
    if v.is_constant() and type(v.as_constant()) is bytes and v.as_constant():
        n = len(v.as_constant())
        return Elements(Known(v.as_constant(), v), n, n, operands)
    if isinstance(v, NumpyNdarrayVariable) and v.val.ndim:
        n = v.val.shape[0]
        if not n > 0:
            return None
        return Elements(describe(tx, operands, v), _hint(n), n, operands)
    if isinstance(v, EnumerateVariable):
        inner = _found(tx, operands, v.it)
        call = inner and Call(enumerate, (inner.of, constant(v.at)))
        return inner and Elements(call, inner.about, inner.count, operands)
    if isinstance(v, IndicesVariable) and not v.at and 0 not in v.sizes:
        n = math.prod(v.sizes)
        return Elements(Call(np.ndindex, tuple(map(constant, v.sizes))), n, n, operands)
    if not isinstance(v, ZipVariable) or v.strict:
        return None
    inner = [_found(tx, operands, it) for it in v.its]
    if not inner or any(e is None for e in inner):
        return None
    count = functools.reduce(sym_min, [e.count for e in inner])
    return Elements(Call(zip, tuple(e.of for e in inner)), min(e.about for e in inner), count, operands)


def _hint(n) -> int:
    """A size as it is at this call."""
    return n if type(n) is int else n.env.hint(n.expr)
