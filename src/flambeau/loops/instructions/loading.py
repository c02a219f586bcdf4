"""The stack, constants, variables, globals, and functions that the loop makes."""

from __future__ import annotations

from ..emitter import constant
from ..inlining import Callee, Inlining
from ..machine import InterpreterPart, Machine
from ..operands import Operands
from ..values import Declined, Known, LocalFunction, Null, Slice, Tuple
from ..variables import Variables

__all__ = ["Loading", "constant_of"]


class Loading(InterpreterPart):
    """``own_cells``: variables of inner functions that only the loop assigns and reads."""

    def __init__(
        self, machine: Machine, operands: Operands, variables: Variables, inlining: Inlining, own_cells: frozenset[str]
    ):
        super().__init__(machine)
        self.operands, self.variables, self.inlining, self.own_cells = operands, variables, inlining, own_cells

    def POP_TOP(self, inst):
        self.machine.pop()

    def PUSH_NULL(self, inst):
        self.stack.append(Null())

    def SWAP(self, inst):
        s = self.stack
        s[-1], s[-inst.arg] = s[-inst.arg], s[-1]

    def COPY(self, inst):
        self.stack.append(self.stack[-inst.arg])

    def LOAD_CONST(self, inst):
        self.stack.append(constant_of(inst.argval))

    def LOAD_FAST(self, inst):
        self.stack.append(self.variables.read(inst.argval))

    def STORE_FAST(self, inst):
        self.variables.write(inst.argval, self.machine.pop())

    def LOAD_GLOBAL(self, inst):
        v = self.operands.given(self.inlining.here.load_global(inst.argval))
        self.machine.push_callable(v) if inst.arg & 1 else self.stack.append(v)

    def LOAD_DEREF(self, inst):
        here = self.inlining.here
        outer = here.cells.get(inst.argval) if isinstance(here, Callee) and here.cells else None
        if outer in self.own_cells:
            self.stack.append(self.variables.read(outer))
            return
        self.stack.append(self.operands.given(self.inlining.here.deref(inst.argval)))

    def LOAD_CLOSURE(self, inst):
        if isinstance(self.inlining.here, Callee):
            raise Declined("a function that a function makes which the loop calls")
        self.stack.append(Known(inst.argval))

    def MAKE_FUNCTION(self, inst):
        code = self.machine.pop()
        if inst.arg not in (None, 0, 8) or not isinstance(code, Known):
            raise Declined("a function with default values that the loop makes")
        self.stack.append(_with_cells(code.value, self.machine.pop() if inst.arg else Tuple(())))

    def SET_FUNCTION_ATTRIBUTE(self, inst):
        fn, cells = self.machine.pop(), self.machine.pop()
        if inst.arg != 8:
            raise Declined("a function with default values that the loop makes")
        self.stack.append(_with_cells(fn.code, cells))


def _with_cells(code, cells: Tuple) -> LocalFunction:
    return LocalFunction(code, tuple(cell.value for cell in cells.items))


def constant_of(v):
    """A constant of the code."""
    if type(v) in (bool, int, float, complex):
        if type(v) is int and not -(1 << 63) <= v < 1 << 63:
            raise Declined("a very large integer")
        return constant(v)
    if type(v) is tuple:
        return Tuple(tuple(map(constant_of, v)))
    if isinstance(v, slice):
        return Slice(constant_of(v.start), constant_of(v.stop), constant_of(v.step))
    return Known(v)
