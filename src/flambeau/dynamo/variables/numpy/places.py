"""Iterating over the places of arrays: ``np.ndindex``, ``np.ndenumerate`` and ``ndarray.flat``."""

from __future__ import annotations

import math

import numpy as np

from ...exc import unsupported
from ..base import Variable
from ..containers.sequences import TupleVariable
from ..functions.handlers import handles
from ..iterators.protocol import IteratorVariable
from ..values.constant import ConstantVariable
from .ndarray import ATTRIBUTES, NumpyNdarrayVariable

__all__ = ["FlatVariable", "IndicesVariable"]

MOST = 1000  # elements that are taken one by one while tracing


def sizes_of(shape) -> tuple[int, ...]:
    if any(type(n) is not int for n in shape):
        unsupported("numpy", "iterating over an array of a size that isn't known", "Its elements are taken one by one.")
    if math.prod(shape) > MOST:
        unsupported("long-loop", f"an iterator with more than {MOST} elements", "Loops are unrolled.")
    return tuple(shape)


class IndicesVariable(IteratorVariable):
    """np.ndindex of these sizes, ``at`` elements of which have been taken."""

    def __init__(self, sizes: tuple[int, ...], at: int = 0):
        super().__init__(np.ndindex)
        self.sizes, self.at = sizes, at

    def index(self) -> tuple[int, ...] | None:
        if self.at >= math.prod(self.sizes):
            return None
        self.at += 1
        return tuple(map(int, np.unravel_index(self.at - 1, self.sizes))) if self.sizes else ()

    def advance(self, tx):
        sizes_of(self.sizes)
        index = self.index()
        return None if index is None else TupleVariable([ConstantVariable(k) for k in index])

    def parts(self):
        return indices_at, [ConstantVariable(self.sizes), ConstantVariable(self.at)]


def indices_at(sizes: tuple[int, ...], at: int):
    it = np.ndindex(*sizes)
    for _ in range(at):
        next(it)
    return it


@handles(np.ndindex)
def _(tx, args, kwargs):
    args = [tx.realize(a) for a in args]
    given = args[0].elements if len(args) == 1 and isinstance(args[0], TupleVariable) else args
    if kwargs or not all(a.can_constant() for a in given):
        return None
    sizes = [a.as_constant() for a in given]
    if len(sizes) == 1 and isinstance(sizes[0], tuple):
        sizes = list(sizes[0])
    if not all(type(n) is int and n >= 0 for n in sizes):
        return None
    return IndicesVariable(tuple(sizes))


class FlatVariable(IteratorVariable):
    """``array.flat``, or with ``places`` np.ndenumerate of it: an element is read when it is taken."""

    def __init__(self, array: NumpyNdarrayVariable, places: bool = False):
        super().__init__(np.ndenumerate if places else np.flatiter)
        self.array, self.places = array, places
        self.indices = IndicesVariable(tuple(array.val.shape))

    def advance(self, tx):
        sizes_of(self.indices.sizes)
        index = self.indices.index()
        if index is None:
            return None
        element = self.array.getitem(tx, ConstantVariable(index))
        return TupleVariable([ConstantVariable(index), element]) if self.places else element

    def parts(self):
        return (enumeration_at if self.places else flat_at), [self.array, ConstantVariable(self.indices.at)]

    def length(self, tx) -> int:
        return math.prod(self.array.val.shape)

    def line(self, tx, writes: bool) -> Variable:
        """The elements in one dimension: a view where the array lies that way."""
        if self.places or (writes and not self.array.val.is_contiguous()):
            unsupported("numpy", "ndarray.flat of an array whose elements don't lie in a line", "NumPy writes into it.")
        return tx.wrap_known(np.reshape).call(tx, [self.array, ConstantVariable(-1)], {})

    def getitem(self, tx, key):
        out = self.line(tx, False).getitem(tx, key)
        if isinstance(out, NumpyNdarrayVariable) and not out.scalar:
            return tx.wrap_known(np.array).call(tx, [out], {})  # a copy
        return out

    def setitem(self, tx, key, value):
        line = self.line(tx, True)
        if isinstance(value, NumpyNdarrayVariable) and not value.scalar and value.val.ndim:
            unsupported("numpy", "an array written into ndarray.flat", "NumPy repeats it.")
        return line.setitem(tx, key, value)


def flat_at(array, at: int):
    it = array.flat
    for _ in range(at):
        next(it)
    return it


def enumeration_at(array, at: int):
    it = np.ndenumerate(array)
    for _ in range(at):
        next(it)
    return it


@handles(np.ndenumerate)
def _(tx, args, kwargs):
    args = [tx.realize(a) for a in args]
    if len(args) != 1 or kwargs or not isinstance(args[0], NumpyNdarrayVariable) or args[0].scalar:
        return None
    return FlatVariable(args[0], places=True)


def _flat(tx, array) -> FlatVariable:
    if array.val.ndim > 32:
        unsupported("numpy", "ndarray.flat of more than 32 dimensions", "NumPy raises an error.")
    return FlatVariable(array)


ATTRIBUTES["flat"] = _flat
