"""Truth values of sizes: comparisons of integer expressions in canonical form, floating-point expressions, and what connects them.

:func:`compare` gives a plain bool when the ranges decide, else a :class:`Rel`. Everything here is immutable and compares by structure; a
symbolic number (``base.symint``) holds one of these and the environment that can decide it."""

from __future__ import annotations

import math
import operator

from . import expr as E
from . import expr_walks
from .expr import Expr, Symbol, in_one_symbol

__all__ = [
    "Float",
    "FloatSymbol",
    "Junction",
    "LAUNCHED",
    "Not",
    "Rel",
    "compare",
    "evaluate",
    "float_op",
    "is_launched",
    "junction",
    "negate",
    "relation",
    "symbols",
]


class _Node:
    __slots__ = ("args", "_hash")

    def __init__(self, *args):
        self.args = args
        self._hash = hash((type(self).__name__, args))

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (type(other) is type(self) and self.args == other.args)

    def symbols(self) -> frozenset:
        """Symbols inside, integer and floating-point ones."""
        return frozenset().union(*(symbols(a) for a in self.args))

    def variables(self) -> frozenset:
        """No loop variables: these are about the whole program."""
        return frozenset()


class Rel(_Node):
    """``e == 0``, ``e != 0`` or ``e >= 0``: args are the sign and ``e``."""

    __slots__ = ()

    def evaluate(self, env):
        return _SIGNS[self.args[0]](expr_walks.evaluate(self.args[1], env), 0)

    def substitute(self, env):
        return relation(self.args[0], E.substitute(self.args[1], env))

    def sides(self):
        """(left, sign, right) without negative terms; the sign may be ``<=``."""
        sign, e = self.args
        left, right = 0, -E.const(e)
        for a, c in E.terms(e):
            if c > 0:
                left = E.of(a) * c + left
            else:
                right = E.of(a) * -c + right
        if isinstance(left, int):
            return right + E.const(e), "<=" if sign == ">=" else sign, E.const(e)
        return left, sign, right

    def __repr__(self):
        left, sign, right = self.sides()
        return f"{left!r} {sign} {right!r}"


class Junction(_Node):
    """``and`` or ``or`` of several: args are the word and the parts."""

    __slots__ = ()

    def evaluate(self, env):
        return (all if self.args[0] == "and" else any)(evaluate(p, env) for p in self.args[1:])

    def substitute(self, env):
        return junction(self.args[0], *(substitute(p, env) for p in self.args[1:]))

    def __repr__(self):
        return f" {self.args[0]} ".join(f"({p!r})" for p in self.args[1:])


class Not(_Node):
    """The opposite of a comparison of floating-point numbers (which NaN keeps from being a comparison again)."""

    __slots__ = ()

    def evaluate(self, env):
        return not evaluate(self.args[0], env)

    def substitute(self, env):
        return negate(substitute(self.args[0], env))

    def __repr__(self):
        return f"not ({self.args[0]!r})"


class FloatSymbol:
    """A floating-point number known when the program runs."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return self.name

    def symbols(self):
        return frozenset((self,))

    def evaluate(self, env):
        return env[self]

    def substitute(self, env):
        return env.get(self, self)


def _to_float(x):
    return float(x)


FLOAT = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    "abs": operator.abs,
    "float": _to_float,
    "min": min,
    "max": max,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "is_int64": lambda n: abs(n) < 1 << 63,
    "is_float": lambda x: type(x) is float,
    "sign": lambda x: math.copysign(1.0, x),
    **{
        n: getattr(math, n)
        for n in ("sqrt", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin", "atan", "exp", "log", "log2")
    },
}
_SIGN = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
_SIGN |= {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_SIGNS = {"==": operator.eq, "!=": operator.ne, ">=": operator.ge}


class Float(_Node):
    """A floating-point operation, not rearranged (rounding is part of its meaning): args are a row of the table and the operands
    (numbers, integer expressions, floating-point ones). The comparisons among them are truth values."""

    __slots__ = ()

    def evaluate(self, env):
        return FLOAT[self.args[0]](*(evaluate(a, env) for a in self.args[1:]))

    def substitute(self, env):
        return float_op(self.args[0], *(substitute(a, env) for a in self.args[1:]))

    def to_int(self):
        return E.of(E.Apply(("int_of", self)))

    def __repr__(self):
        op, *args = self.args
        if op in _SIGN:
            return f"({E.inside(args[0])} {_SIGN[op]} {E.inside(args[1])})"
        return f"-{args[0]!r}" if op == "neg" else f"{op}({', '.join(map(repr, args))})"


LAUNCHED = {"add": "FADD", "sub": "FSUB", "mul": "FMUL", "truediv": "FDIV", "sqrt": "FSQRT", "neg": "FNEG"}
"""Operations for which a launch of a compiled graph has an instruction (``base.enums.Op``); besides it converts integers and rounds down."""


def is_launched(x) -> bool:
    """Whether sizes may be computed by a floating-point expression when a compiled graph is launched."""
    if isinstance(x, (int, float)) or type(x) is Expr:
        return True
    if type(x) is not Float:
        return False
    name, *args = x.args
    rounds = name == "floordiv" and isinstance(args[1], (int, float)) and args[1] == 1
    return (name in LAUNCHED or name == "float" or rounds) and all(map(is_launched, args))


def float_op(name: str, *args):
    """A number when all operands are numbers, else a :class:`Float`."""
    if all(isinstance(a, (int, float)) for a in args):
        return FLOAT[name](*args)
    return Float(name, *args)


def symbols(x) -> frozenset:
    """Symbols of anything that stands in an expression."""
    return frozenset() if isinstance(x, (int, float, str)) else x.symbols()


def evaluate(x, env):
    """The value of any expression; ``env`` gives a number for each symbol."""
    if isinstance(x, (int, float)):
        return x
    return expr_walks.evaluate(x, env) if type(x) is Expr else x.evaluate(env)


def substitute(x, env):
    """Replace symbols in any expression."""
    return x if isinstance(x, (int, float)) else x.substitute(env)


def compare(name: str, a, b):
    """``lt le gt ge eq ne`` of two integers or expressions: a bool where the ranges decide, else a :class:`Rel`."""
    if name == "lt":
        return relation(">=", b - a - 1)
    if name == "le":
        return relation(">=", b - a)
    if name == "gt":
        return relation(">=", a - b - 1)
    if name == "ge":
        return relation(">=", a - b)
    return relation("==" if name == "eq" else "!=", a - b)


def exact(e):
    """Without the floor divisions that are known to leave no remainder, where their factor brings the divisor back."""
    for atom, c in E.terms(e):
        for a in atom.args if type(atom) is E.Prod else (atom,):
            if type(a) is E.Div and isinstance(a.args[1], int) and c % a.args[1] == 0 and E.mod(*a.args) == 0:
                rest = 1
                for b in atom.args if type(atom) is E.Prod else ():
                    if b is not a:
                        rest = E.of(b) * rest
                return exact(e - E.of(atom) * c + a.args[0] * rest * (c // a.args[1]))
    return e


def relation(sign: str, e):
    e = exact(e)
    if type(e) is Expr and not e.const:
        # A positive factor of all terms says nothing.
        first = e.terms[0][0].args if type(e.terms[0][0]) is E.Prod else ()
        for f in first:
            if f.bounds()[0] > 0 and all(f in (a.args if type(a) is E.Prod else (a,)) for a, _ in e.terms):
                return relation(sign, E.floordiv(e, E.of(f)))
    if type(e) is not Expr:
        return _SIGNS[sign](e, 0)
    g = math.gcd(*(c for _, c in e.terms))
    if sign == ">=":
        if E.nonnegative(e):
            return True
        if E.at_least(-e, 1):
            return False
        if g > 1:  # 2 s0 - 5 >= 0 is s0 - 3 >= 0
            e = E.floordiv(e - e.const, g) + e.const // g
        return Rel(sign, e)
    if e.const % g or E.at_least(e, 1) or E.at_least(-e, 1):
        return sign == "!="
    if E.mod(e, g) == 0 and g > 1:
        e = E.floordiv(e, g)
    if e.terms[0][1] < 0:
        e = -e
    return Rel(sign, e)


def negate(r):
    """The opposite truth value."""
    if isinstance(r, bool):
        return not r
    if type(r) is Rel:
        sign, e = r.args
        if sign == ">=":
            return relation(">=", -e - 1)
        return Rel("!=" if sign == "==" else "==", e)
    if type(r) is Junction:
        return junction("or" if r.args[0] == "and" else "and", *map(negate, r.args[1:]))
    return r.args[0] if type(r) is Not else Not(r)


def junction(word: str, *parts):
    """``and`` or ``or``."""
    out: list = []
    stop = word == "or"
    for p in parts:
        for q in p.args[1:] if type(p) is Junction and p.args[0] == word else (p,):
            if isinstance(q, bool):
                if q is stop:
                    return stop
            elif q not in out:
                out.append(q)
    return not stop if not out else out[0] if len(out) == 1 else Junction(word, *out)


def as_symbol(e) -> Symbol | None:
    """The symbol when the expression is nothing but one."""
    found = in_one_symbol(e)
    return found[0] if found is not None and found[1:] == (1, 0) else None
