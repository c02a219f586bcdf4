"""Operators: arithmetic, comparisons, ``is``, ``in``, of numbers, arrays, tuples and text."""

from __future__ import annotations

import functools

import numpy as np

from ...base.records import slotted
from ...inductor.assembly import instructions as llvm
from .. import arrays, byte_strings, reductions, text, tuples
from ..arrays import OnElements
from ..binary_operators import BINARY_NAMES
from ..containers import Containers, list_functions
from ..emitter import constant
from ..inlining import Inlining
from ..machine import InterpreterPart, Machine
from ..numbers import arithmetic, comparisons, conversions, wrapping
from ..values import ArrayView, Container, Declined, Known, Scalar, Tuple
from .loading import constant_of
from .subscripts import Subscripts

__all__ = ["Comparison", "Operators"]


@slotted
class Comparison:
    """``out``: the result of ``operator`` on ``a`` and ``b``, which keeps its identity while it is looked up by it."""

    operator: str
    a: Scalar
    b: Scalar
    out: Scalar


class Operators(InterpreterPart):
    """``comparisons``: those of the block at hand, by the identity of the result."""

    def __init__(self, machine: Machine, inlining: Inlining, containers: Containers, subscripts: Subscripts):
        super().__init__(machine)
        self.inlining, self.containers, self.subscripts = inlining, containers, subscripts
        self.comparisons: dict[int, Comparison] = {}

    def begin_block(self) -> None:
        self.comparisons = {}

    def BINARY_OP(self, inst):
        b, a = self.machine.pop(), self.machine.pop()
        said = BINARY_NAMES[inst.arg]
        inplace, op = said.endswith("="), said.rstrip("=")
        if op == "@" and not inplace:
            self.stack.append(reductions.dot(self.e, a, b, f"product@{self.machine.at}", self.stack))
            return None
        if op not in arithmetic.BINARY:
            raise Declined(f"the operator {said}")
        own = list_functions.joined(a, b) if op == "+" and not inplace else None
        if own is not None:
            return self.inlining.enter_own(own)
        if op == "*" and not inplace and isinstance(a, Tuple) and a.listed and isinstance(b, Scalar):
            self.stack.append(self.containers.repeated(a.items, b))
            return None
        if isinstance(a, Tuple) or isinstance(b, Tuple):
            raise Declined(f"{said} of a tuple")
        into = a if inplace and isinstance(a, ArrayView) else None
        fn = OnElements(self.e, lambda e, x, y: arithmetic.binary(e, op, x, y))
        out = arrays.elementwise(self.e, fn, a, b, into=into)
        if self.inlining.inputs.tells_wrapping and all(isinstance(v, Scalar) for v in (a, b, out)):
            wrapping.note(self.e, op, a, b, out)
        if into is not None:
            if not arrays.may_hold(a.dtype, out.dtype):
                raise Declined(f"{said} would change the dtype of an array")
            self.subscripts.store(into, out)
            out = into
        self.stack.append(out)
        return None

    def COMPARE_OP(self, inst):
        b, a = self.machine.pop(), self.machine.pop()
        if text.is_text(a) or text.is_text(b):
            self.stack.append(text.compare(self.e, inst.argval, a, b))
            return
        if isinstance(a, Tuple) and isinstance(b, Tuple):
            self.stack.append(tuples.compare(self.e, inst.argval, a, b))
            return
        fn = OnElements(self.e, lambda e, x, y: comparisons.compare(e, inst.argval, x, y))
        out = arrays.elementwise(self.e, fn, a, b)
        if isinstance(out, Scalar):
            self.comparisons[id(out)] = Comparison(inst.argval, a, b, out)
        self.stack.append(out)

    def IS_OP(self, inst):
        b, a = self.machine.pop(), self.machine.pop()
        if not (isinstance(a, Known) or isinstance(b, Known)):
            raise Declined("is")
        self.stack.append(constant((a == b) != bool(inst.arg)))

    def CONTAINS_OP(self, inst):
        c, key = self.machine.pop(), self.machine.pop()
        if isinstance(c, Known) and type(c.value) is frozenset:
            c = constant_of(tuple(c.value))
        if not isinstance(c, Container) and (text.is_text(c) or text.is_text(key)):
            found = text.contains(self.e, c, key)
            self.stack.append(Scalar(np.dtype(bool), True, self.e.flip(found) if inst.arg else found))
            return None
        if byte_strings.is_bytes(c):
            c = Tuple(tuple(map(constant, c.value)))
        own = list_functions.contains(c, key, bool(inst.arg))
        if own is not None:
            return self.inlining.enter_own(own)
        found = self.containers.contains(c, key) if isinstance(c, Container) else self._among(key, c)
        self.stack.append(Scalar(np.dtype(bool), True, self.e.flip(found) if inst.arg else found))
        return None

    def _among(self, key, c):
        """Whether an integer, or a tuple of integers, equals one of a tuple's items."""
        if not isinstance(c, Tuple) or len(c.items) > 64:
            raise Declined(f"in, of a {type(c).__name__.lower()}")
        found = llvm.constant(llvm.I1, False)
        for item in c.items:
            found = self.e.op("or", found, self._equal(key, item))
        return found

    def _equal(self, a, b):
        if isinstance(a, Tuple) and isinstance(b, Tuple) and not a.listed and not b.listed:
            if len(a.items) != len(b.items):
                return llvm.constant(llvm.I1, False)
            pairs = [self._equal(x, y) for x, y in zip(a.items, b.items)]
            return functools.reduce(lambda x, y: self.e.op("and", x, y), pairs, llvm.constant(llvm.I1, True))
        if text.is_text(a) or text.is_text(b):
            return text.compare(self.e, "==", a, b).v
        if not all(isinstance(s, Scalar) and s.kind in "biu" for s in (a, b)):
            raise Declined("in, of other things than integers")  # a nan is in a list that holds it
        return comparisons.compare(self.e, "==", a, b).v

    def UNARY_NEGATIVE(self, inst):
        v = self.machine.pop()
        out = arrays.elementwise(self.e, OnElements(self.e, arithmetic.negate), v)
        if self.inlining.inputs.tells_wrapping and isinstance(out, Scalar):
            wrapping.note_negative(self.e, v, out)
        self.stack.append(out)

    def UNARY_POSITIVE(self, inst):
        v = self.machine.number()
        if v.kind not in "if":
            raise Declined("+ of this value")
        self.stack.append(v)

    def UNARY_INVERT(self, inst):
        self.stack.append(arrays.elementwise(self.e, OnElements(self.e, arithmetic.invert), self.machine.pop()))

    def UNARY_NOT(self, inst):
        v = self.e.flip(conversions.to_bool(self.e, self.machine.number()))
        self.stack.append(Scalar(np.dtype(bool), True, v))
