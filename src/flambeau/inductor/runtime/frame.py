"""The integers of a compiled graph: constants, and a little program that computes from the symbols what depends on them at each call.

Everything a launch counts with (shapes, strides, offsets, trip counts, the sizes a kernel reads) has a *place* in the graph's frame
(csrc/runtime/graph.h). :meth:`IntegerFrame.number` and :meth:`IntegerFrame.block` give places; what is no constant is
computed by instructions that are shared, as expressions are. A symbol has a *stage*: 0 when an input gives it, else
that of the Python step whose result has it as a size."""

from __future__ import annotations

import struct

from ...base.enums import Bind, Op
from ...base.expr import Expr, Symbol, symbols
from ...base.expr_walks import emit
from ...base.relations import LAUNCHED, Float
from .records import Binding

__all__ = ["IntegerFrame"]

_INTEGER = {"and": Op.AND, "or": Op.OR, "xor": Op.XOR, "lshift": Op.SHL, "rshift": Op.SHR, "pow": Op.POW}
_FLOATING = {name: Op[op] for name, op in LAUNCHED.items()}
_WORD = -(1 << 63), (1 << 63) - 1


class IntegerFrame:
    def __init__(self):
        self.values: list[int] = []
        self.stages: list[tuple[list, list]] = [([], [])]  # (bindings, instructions)
        self.symbols: dict[Symbol, tuple[int, int]] = {}  # place, stage
        self._places: dict = {}

    def bind(self, symbol: Symbol, source: int, what: Bind, index: int, itemsize: int = 1, stage: int = 0) -> None:
        """``symbol`` is a size or stride ``index`` of input ``source``, or its value; in a later stage, of that result of the step."""
        if symbol in self.symbols:
            return
        while len(self.stages) <= stage:
            self.stages.append(([], []))
        place = self._new(0)
        self.symbols[symbol] = (place, stage)
        lo, hi = max(_WORD[0], symbol.lo), min(_WORD[1], symbol.hi)
        self.stages[stage][0].append(
            Binding(source, int(what), index, place, int(lo), int(hi), symbol.divisor, itemsize)
        )

    def stage(self, *expressions) -> int:
        """The first stage in which all of them are known."""
        return max((self.symbols[s][1] for e in expressions for s in symbols(e)), default=0)

    def number(self, e) -> int:
        """The place of an int or expression."""
        if e not in self._places:
            self._places[e] = self._new(e) if type(e) is not Expr else emit(e, _Code(self, self.stage(e)))
        return self._places[e]

    def block(self, es) -> int:
        """The first of neighbouring places."""
        es = tuple(es)
        key = ("block", es)
        if key not in self._places:
            at = len(self.values)
            self.values += [0 if type(e) is Expr else int(e) for e in es]
            for i, e in enumerate(es):
                if type(e) is Expr:
                    place = self.number(e)
                    self.stages[self.stage(e)][1].append((int(Op.MOVE), at + i, place, place))
            self._places[key] = at
        return self._places[key]

    def bits(self, x: float) -> int:
        """The place of a floating-point constant."""
        (value,) = struct.unpack("<q", struct.pack("<d", x))
        key = ("float", value)
        if key not in self._places:
            self._places[key] = self._new(value)
        return self._places[key]

    def _new(self, value: int) -> int:
        self.values.append(int(value))
        return len(self.values) - 1


class _Code:
    """Handler of :func:`~..base.expr_walks.emit`: operands and results are places."""

    def __init__(self, frame: IntegerFrame, stage: int):
        self.frame, self.code = frame, frame.stages[stage][1]
        self.stage = stage

    def constant(self, n):
        return self.frame.number(n)

    def leaf(self, atom):
        found = self.frame.symbols.get(atom)
        if found is None:
            raise NotImplementedError(f"inductor: {atom!r} is not a size or number of the inputs")
        return found[0]

    def _op(self, op, a, b):
        key = ("op", self.stage, op, a, b)
        places = self.frame._places
        if key not in places:
            places[key] = self.frame._new(0)
            self.code.append((int(op), places[key], a, b))
        return places[key]

    def add(self, a, b):
        return self._op(Op.ADD, a, b)

    def mul(self, a, b):
        return self._op(Op.MUL, a, b)

    def floordiv(self, a, b):
        return self._op(Op.DIV, a, b)

    def mod(self, a, b):
        return self._op(Op.MOD, a, b)

    def minimum(self, a, b):
        return self._op(Op.MIN, a, b)

    def maximum(self, a, b):
        return self._op(Op.MAX, a, b)

    def apply(self, name, operands):
        if name in _INTEGER:
            return self._op(_INTEGER[name], *operands)
        place = self._floating(operands[0])
        return self._op(Op.TRUNC, place, place)

    def _floating(self, x) -> int:
        """The place of a floating-point number."""
        if isinstance(x, int) or type(x) is Expr:
            place = self.frame.number(x)
            return self._op(Op.FLOAT, place, place)
        if isinstance(x, float):
            return self.frame.bits(x)
        name, *args = x.args if type(x) is Float else (repr(x),)
        if name == "float":
            return self._floating(args[0])
        places = [self._floating(a) for a in args]
        if name in _FLOATING:
            return self._op(_FLOATING[name], places[0], places[-1])
        if name == "floordiv" and args[1] == 1:
            return self._op(Op.FFLOOR, places[0], places[0])
        raise NotImplementedError(f"inductor: sizes are computed by {name}, for which a launch has no instruction")
