"""Instructions that compute: operators, comparisons, subscripts and attributes."""

from __future__ import annotations

import dis
import operator

from flambeau.base.symint import sym_not

from ...variables import operators
from ...variables.base import Variable
from ...variables.containers.slices import SliceVariable
from ...variables.numpy.masked import MaskedVariable, selection
from ...variables.values.constant import ConstantVariable
from ...variables.values.symbolic import SymbolicVariable, wrap_number

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift,
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
    "<<=": operator.ilshift, ">>=": operator.irshift,
}  # fmt: skip
BINARY_BY_ARG = [BINARY[symbol] for _, symbol in dis._nb_ops]
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


class Arithmetic:
    # -- operators --
    def BINARY_OP(self, inst):
        b, a = self.pop(), self.pop()
        fn = BINARY_BY_ARG[inst.arg]
        self.push(a.updated(self, fn, b) if type(a) is MaskedVariable else operators.binary(self, fn, a, b))

    def COMPARE_OP(self, inst):
        b, a = self.pop(), self.pop()
        self.push(operators.binary(self, COMPARE[inst.argval], a, b))

    def UNARY_NEGATIVE(self, inst):
        self.push(operators.unary(self, operator.neg, self.pop()))

    def UNARY_POSITIVE(self, inst):
        self.push(operators.unary(self, operator.pos, self.pop()))

    def UNARY_INVERT(self, inst):
        self.push(operators.unary(self, operator.invert, self.pop()))

    def TO_BOOL(self, inst):
        self.push(ConstantVariable(self.truth(self.pop())))

    def UNARY_NOT(self, inst):
        self.push(ConstantVariable(not self.truth(self.pop())))

    def IS_OP(self, inst):
        b, a = self.pop(), self.pop()
        self.push(ConstantVariable(operators.identical(self, a, b) != bool(inst.arg)))

    def CONTAINS_OP(self, inst):
        container, item = self.pop(), self.pop()
        r = container.contains(self, item)
        if isinstance(r, SymbolicVariable):
            self.push(wrap_number(sym_not(r.number)) if inst.arg else r)
            return
        self.push(ConstantVariable(self.truth(r) != bool(inst.arg)))

    def BINARY_SUBSCR(self, inst):
        key, v = self.pop(), self.pop()
        masked = selection(self, v, key, self.insts[self.ip : self.ip + 5], BINARY_BY_ARG)
        self.push(v.getitem(self, key) if masked is None else masked)

    def STORE_SUBSCR(self, inst):
        key, target, value = self.pop(), self.pop(), self.pop()
        if type(value) is MaskedVariable:
            value.store(self)
        else:
            target.setitem(self, key, value)

    def _slice(self) -> SliceVariable:
        stop, start = self.pop(), self.pop()
        return SliceVariable([start, stop, ConstantVariable(None)])

    def BINARY_SLICE(self, inst):
        key, v = self._slice(), self.pop()
        self.push(v.getitem(self, key))

    def STORE_SLICE(self, inst):
        key, target, value = self._slice(), self.pop(), self.pop()
        target.setitem(self, key, value)

    def DELETE_SUBSCR(self, inst):
        key, target = self.pop(), self.pop()
        target.delitem(self, key)

    # -- attributes --
    def LOAD_ATTR(self, inst):
        self.push(self.attribute(self.pop(), inst.argval))

    def LOAD_METHOD(self, inst):
        self.push_callable(self.attribute(self.pop(), inst.argval))

    def _super_attr(self, inst) -> Variable:
        obj, cls, make = self.pop(), self.pop(), self.pop()
        plain = make.is_constant() and make.as_constant() is super
        return self.attribute(make.call(self, [cls, obj] if plain or inst.arg & 2 else [], {}), inst.argval)

    def LOAD_SUPER_ATTR(self, inst):
        self.push(self._super_attr(inst))

    def LOAD_SUPER_METHOD(self, inst):
        self.push_callable(self._super_attr(inst))

    def STORE_ATTR(self, inst):
        target, value = self.pop(), self.pop()
        target.setattr(self, inst.argval, value)

    def DELETE_ATTR(self, inst):
        self.pop().delattr(self, inst.argval)
