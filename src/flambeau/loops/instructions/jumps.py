"""Jumps, and what a comparison tells of variables on either way."""

from __future__ import annotations

from ...base.records import replace
from ..emitter import I64
from ..machine import BlockEnd, Edge, InterpreterPart, Machine
from ..numbers import bounds as between
from ..numbers import conversions, relations
from ..values import ArrayView, Expression, Scalar, ScalarType
from ..variables import Variables
from .operators import Operators

__all__ = ["Jumps"]


class Jumps(InterpreterPart):
    def __init__(self, machine: Machine, variables: Variables, operators: Operators):
        super().__init__(machine)
        self.variables, self.operators = variables, operators

    def JUMP_FORWARD(self, inst):
        return BlockEnd([Edge(inst.target, self.stack)])

    def JUMP_BACKWARD(self, inst):
        if self.machine.insts[inst.target].name != "FOR_ITER":
            self.e.spend(1)
        if not any(isinstance(v, (ArrayView, Expression)) for v in self.stack):
            self.e.flush()
        return BlockEnd([Edge(inst.target, self.stack)])

    JUMP_BACKWARD_NO_INTERRUPT = JUMP_BACKWARD

    def _jump_if(self, inst, want: bool):
        if inst.target < inst.index:
            if self.machine.insts[inst.target].name != "FOR_ITER":
                self.e.spend(1)
            self.e.flush()
        number = self.machine.number()
        test = conversions.to_bool(self.e, number)
        yes, no = self.learnt(number)
        if not want:
            yes, no = no, yes
        edges = [Edge(inst.target, self.stack, yes), Edge(inst.index + 1, self.stack, no)]
        return BlockEnd(edges if want else edges[::-1], test)

    def learnt(self, test: Scalar) -> tuple[dict, dict]:
        """The types of variables where a comparison holds, and where it doesn't."""
        found = self.operators.comparisons.get(id(test))
        if found is None or not found.a.dtype == found.b.dtype == I64:
            return {}, {}
        op, numbers = found.operator, (found.a, found.b)
        out = []
        for known in (op, between.OPPOSITE[op]):
            types = {}
            bounds = between.refined(known, *(s.bounds for s in numbers))
            below = between.below_after(known, *(s.below for s in numbers))
            related = relations.after(known, *(s.relations for s in numbers))
            for s, within, under, near in zip(numbers, bounds, below, related):
                learnt = within != s.bounds or under != s.below or near != s.relations
                for name, value in self.variables.values.items() if learnt else ():
                    if not (isinstance(value, Scalar) and isinstance(self.variables.types.get(name), ScalarType)):
                        continue
                    if value is s:
                        types[name] = replace(self.variables.types[name], bounds=within, below=under, relations=near)
                    elif value.dtype == I64 and (less := _added(s, value)) is not None:
                        of = between.summand(within, less, value.bounds)
                        under_it = between.both_below(value.below, under and (under[0], under[1] - less))
                        types[name] = replace(self.variables.types[name], bounds=of, below=under_it)
            out.append(types)
        return out[0], out[1]

    def POP_JUMP_IF_TRUE(self, inst):
        return self._jump_if(inst, True)

    def POP_JUMP_IF_FALSE(self, inst):
        return self._jump_if(inst, False)

    def JUMP_IF_TRUE_OR_POP(self, inst):
        test = conversions.to_bool(self.e, self.machine.as_number(self.stack[-1]))
        return BlockEnd([Edge(inst.target, self.stack), Edge(inst.index + 1, self.stack[:-1])], test)

    def JUMP_IF_FALSE_OR_POP(self, inst):
        test = conversions.to_bool(self.e, self.machine.as_number(self.stack[-1]))
        return BlockEnd([Edge(inst.index + 1, self.stack[:-1]), Edge(inst.target, self.stack)], test)


def _added(s: Scalar, of: Scalar) -> int | None:
    """The number that has been added to ``of`` to make ``s``."""
    x, y = s.sum_of or (None, None)
    return y.const if x is not None and x.v is of.v and type(y.const) is int else None
