"""What a captured variant assumed about symbols, as one native check: a postfix program over sizes, strides and numbers of the call."""

from __future__ import annotations

from typing import Any

from flambeau import _frame
from flambeau.base import expr_walks
from flambeau.base import relations as R
from flambeau.base.expr import Expr
from flambeau.base.records import slotted
from flambeau.base.user_line import UserLine

from .dynamic import SizeSource

__all__ = ["SizeProgram", "holds"]

OPS = _frame.SIZE_OPS
WHAT = {"size": 0, "stride": 1, "int": 2, "float": 3}
_INT64 = (-(1 << 63), (1 << 63) - 1)
_FLOAT_OPS = {n for n in OPS if n[0] == "f" and n not in ("floordiv", "float", "fconst")}


class _Foreign(Exception):
    """An operation the native program doesn't have."""


@slotted
class SizeGuard:
    """A relation of sizes, with the sources of its symbols, as ``text``; where the first of them is; the ``line`` of the program that asked."""

    text: str
    place: str
    source: Any
    line: UserLine | None = None


class SizeProgram:
    """Relations over the symbols of an environment."""

    def __init__(self, env, slot_of):
        """``slot_of(source)``: number of the node of the guard tree that has the value."""
        self.operands: list[tuple[int, int, int]] = []
        self.names: list[str] = []
        self.sources: list[Any] = []  # of the values that the operands are read from
        self.code: list[int] = []
        self.constants: list[Any] = []
        self.relations: list[SizeGuard] = []
        self.where: dict[Any, int] = {}  # symbol -> operand
        for s, origin in env.origins.items():
            first = None
            for source in origin.sources:
                if not isinstance(source, SizeSource):
                    continue
                what = source.what if source.what != "value" else "float" if isinstance(s, R.FloatSymbol) else "int"
                k = len(self.operands)
                self.operands.append((slot_of(source.base), WHAT[what], source.dim))
                self.names.append(source.name)
                self.sources.append(source.base)
                if first is None:
                    first = self.where[s] = k
                else:  # one symbol for several sizes: they are equal
                    self.code += [OPS["operand"], first, OPS["operand"], k, OPS["=="], OPS["check"]]
                    text = f"{self.names[first]} == {source.name}, they were equal when this was captured"
                    self.relations.append(SizeGuard(text, source.name, source.base))
        for e, source in env.aliases:
            k = len(self.operands)
            self.operands.append((slot_of(source.base), WHAT[source.what], source.dim))
            self.names.append(source.name)
            self.sources.append(source.base)
            self.code += [OPS["operand"], k]
            self._emit(e)
            self.code += [OPS["=="], OPS["check"]]
            text = f"{source.name} == {e!r}, so it was when this was captured"
            self.relations.append(SizeGuard(text, source.name, source.base))
        for g in env.result():
            symbols = R.symbols(g.relation)
            if symbols and all(s in self.where for s in symbols) and not isinstance(g.relation, bool):
                self._add(g.relation, g.line)

    @property
    def payload(self) -> tuple:
        flat = tuple(x for o in self.operands for x in o)
        return flat, tuple(self.code), tuple(self.constants)

    def _add(self, relation, line) -> None:
        start = len(self.code), len(self.constants)
        try:
            self._emit(relation)
        except _Foreign:
            del self.code[start[0] :], self.constants[start[1] :]
            self._constant("call", _Relation(relation, dict(self.where)))
        self.code.append(OPS["check"])
        symbols = sorted(R.symbols(relation), key=lambda s: s.name)
        named = ", ".join(f"{s} is {self.names[self.where[s]]}" for s in symbols)
        text = f"{relation!r} ({named}){f', {line}' if line else ''}"
        first = self.where[symbols[0]]
        self.relations.append(SizeGuard(text, self.names[first], self.sources[first], line))

    def _constant(self, op: str, value) -> None:
        self.code += [OPS[op], len(self.constants)]
        self.constants.append(value)

    def _emit(self, r) -> None:
        if isinstance(r, int):
            if not _INT64[0] <= r <= _INT64[1]:
                raise _Foreign
            self._constant("const", int(r))
        elif isinstance(r, Expr):
            expr_walks.emit(r, self)
        elif isinstance(r, R.FloatSymbol):
            self.code += [OPS["operand"], self.where[r]]
        elif type(r) is R.Rel:
            sign, e = r.args
            self._emit(e)
            self._constant("const", 0)
            self.code.append(OPS[sign])
        elif type(r) is R.Junction:
            word, first, *rest = r.args
            self._emit(first)
            for p in rest:
                self._emit(p)
                self.code.append(OPS[word])
        elif type(r) is R.Not:
            self._emit(r.args[0])
            self.code.append(OPS["not"])
        elif type(r) is R.Float and r.args[0] == "is_int64":  # the check computes with more bits
            self._emit(r.args[1])
            self._constant("const", _INT64[0] + 1)
            self.code.append(OPS[">="])
            self._emit(r.args[1])
            self._constant("const", -1)
            self.code.append(OPS["mul"])
            self._constant("const", _INT64[0] + 1)
            self.code += [OPS[">="], OPS["and"]]
        elif type(r) is R.Float and f"f{r.args[0]}" in _FLOAT_OPS:
            name, *args = r.args
            for a in args:
                self._float(a)
            self.code.append(OPS[f"f{name}"])
        elif type(r) is R.Float and r.args[0] == "float":
            self._float(r.args[1])
        else:
            raise _Foreign

    def _float(self, x) -> None:
        if isinstance(x, float):
            self._constant("fconst", x)
        elif isinstance(x, int):
            self._constant("fconst", float(x))
        else:
            self._emit(x)
            if isinstance(x, Expr):
                self.code.append(OPS["float"])

    # -- the emitter of integer expressions: the operands are on the stack already, a value says that they are
    def constant(self, k: int):
        self._emit(k)
        return True

    def leaf(self, atom):
        self.code += [OPS["operand"], self.where[atom]]
        return True

    def _op(name):
        def emit(self, a, b):
            self.code.append(OPS[name])
            return True

        return emit

    add, mul, floordiv, mod = map(_op, ("add", "mul", "floordiv", "mod"))
    minimum, maximum = _op("min"), _op("max")

    def apply(self, name, operands):
        raise _Foreign


class _Relation:
    """A relation evaluated in Python on the operands."""

    def __init__(self, relation, where):
        self.relation, self.where = relation, where

    def __call__(self, values: tuple) -> bool:
        return bool(R.evaluate(self.relation, {s: values[k] for s, k in self.where.items()}))


def operand(v: Any, what: int, d: int):
    """The mirror of the native reading of an operand."""
    if what >= 2:
        if type(v) is not (int if what == 2 else float):
            raise TypeError
        return v
    if hasattr(v, "_shape"):
        return (v._shape if what == 0 else v._strides)[d]
    return v.shape[d] if what == 0 else v.strides[d] // v.itemsize


def holds(payload: tuple, values: list) -> bool:
    """The mirror of the native check."""
    flat, code, constants = payload
    numbers = tuple(operand(values[flat[i]], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3))
    if any(type(n) is int and not -(2**63) <= n < 2**63 for n in numbers):
        return False
    names = {k: n for n, k in OPS.items()}
    stack: list[Any] = []
    steps = iter(code)
    for op in steps:
        name = names[op]
        if name in ("const", "fconst"):
            stack.append(constants[next(steps)])
        elif name == "operand":
            stack.append(numbers[next(steps)])
        elif name == "call":
            stack.append(constants[next(steps)](numbers))
        elif name == "check":
            if not stack.pop():
                return False
        elif name == "not":
            stack.append(not stack.pop())
        elif name == "float":
            stack.append(float(stack.pop()))
        else:
            b, a = stack.pop(), stack.pop()
            if name in ("floordiv", "mod") and b in (0, -1):
                return False
            out = _PYTHON[name.removeprefix("f") if name in _FLOAT_OPS else name](a, b)
            if type(out) is int and not -(2**127) <= out < 2**127:  # numbers that the check computes with
                return False
            stack.append(out)
    return True


_PYTHON = {
    **{n: f for n, f in R.FLOAT.items()},
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b),
}
