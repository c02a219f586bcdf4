"""Symbolic numbers of a program that compute as Python's do: those of graphs and kernels have 64 bits and raise nothing.

What has no limit in Python, or raises there, is guarded to stay where both agree. Where the example values don't, the symbols become
constants and Python computes. What depends on data has no guards: it is checked when the graph runs, and the frame runs plainly if it fails."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.base import expr as E
from flambeau.base import relations as R
from flambeau.base.expr import Apply, Expr, Max, Min, Symbol
from flambeau.base.symint import FUNCTIONS, SymFloat, SymInt, sym_float, sym_int, sym_sqrt, wrap

from ..exc import unsupported

__all__ = ["error_of", "fitting", "operands", "result"]

WORD = 1 << 63  # what is below it in absolute value is an integer of 64 bits
DOUBLE = 1 << 53  # what is below it in absolute value is a floating-point number exactly
LARGEST_FLOAT = math.ldexp(1.0 - 2.0**-53, 1024)
# Parts of an expression, as whoever walks it meets them: what is computed in a loop from itself, twice, doubles with each turn.
LONGEST = 300

COMPARISONS = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
QUOTIENTS = {operator.truediv, operator.itruediv}
DIVISIONS = {*QUOTIENTS, operator.floordiv, operator.mod, operator.ifloordiv, operator.imod, divmod}
POWERS = {operator.pow, operator.ipow, pow}
SHIFTS = {operator.lshift, operator.rshift, operator.ilshift, operator.irshift}
OF_BITS = {*SHIFTS, operator.and_, operator.or_, operator.xor, operator.iand, operator.ior, operator.ixor}
MATH = {sym_sqrt, *FUNCTIONS.values()}
CUTS = {sym_int, math.floor, math.ceil, math.trunc}
Check = Callable[[Any], None]  # takes a condition that the graph is to check


def fitting(number, check: Check, limit: int = WORD):
    """The symbolic ``number``; no integer in it, nor what that is computed from, reaches ``limit`` in absolute value. Or the plain number."""
    env = number.env
    for e in _integers(env.simplify(number.expr)):
        if (limit == WORD and R.as_symbol(e) is not None) or _magnitude(e, _extent) < limit or _is_one_of_its_parts(e):
            continue
        if env.is_unbacked(e):
            _bound_leaves(env, e, limit, check)
        elif _magnitude(e, lambda a: abs(R.evaluate(E.of(a), env.hints))) >= limit:
            return _constant(number)
        elif limit == WORD:
            env.evaluate(R.Float("is_int64", e))
        else:
            env.evaluate(R.compare("lt", e, limit))
            env.evaluate(R.compare("gt", e, -limit))
    return number


def _is_one_of_its_parts(e) -> bool:
    """Whether the integer is the greatest or least of others, which have been looked at."""
    return (
        type(e) is Expr
        and not e.const
        and len(e.terms) == 1
        and e.terms[0][1] == 1
        and type(e.terms[0][0]) in (Max, Min)
    )


def _is_longer(e, most: int) -> bool:
    """Whether an expression has more than so many parts."""
    parts = [e]
    for _ in range(most):
        if not parts:
            return False
        x = parts.pop()
        parts += [a for a, _ in E.terms(x)] if type(x) is Expr else getattr(x, "args", ())
    return bool(parts)


def _constant(number):
    """The value; each of its symbols is a constant from here on."""
    env = number.env
    for s in sorted(R.symbols(env.simplify(number.expr)), key=lambda s: s.name):
        env.specialize(E.of(s) if isinstance(s, Symbol) else s)
    return env.specialize(number.expr)


def _integers(e) -> Iterator[Expr]:
    """The integer expressions in ``e``, first what they are computed from."""
    parts = _factors(e) if type(e) is Expr else (e,)
    for p in parts:
        for a in p.sides()[::2] if type(p) is R.Rel else getattr(p, "args", ()):
            yield from _integers(a)
    if type(e) is Expr:
        yield e


def _factors(e: Expr) -> list:
    return [a for atom, _ in e.terms for a in (atom.args if type(atom) is E.Prod else (atom,))]


def _magnitude(e: Expr, of_atom: Callable):
    """What no sum of some terms, nor product of some factors, exceeds in absolute value."""
    out: Any = abs(e.const)
    for atom, c in e.terms:
        sizes = [of_atom(a) for a in (atom.args if type(atom) is E.Prod else (atom,))]
        if math.inf in sizes:
            return math.inf
        out += abs(c) * math.prod(max(n, 1) for n in sizes)
    return out


def _extent(atom):
    return max(map(abs, atom.bounds()))


def _bound_leaves(env, e: Expr, limit: int, check: Check) -> None:
    """Bounds for the symbols of ``e``, and for what is cut to an integer in it, under which it fits."""
    leaves = {a for a in _factors(e) if isinstance(a, Symbol) or (type(a) is Apply and a.name == "int_of")}
    if not leaves.issuperset(_factors(e)):
        unsupported(
            "data-dependent", f"{e!r} may not fit into 64 bits", "torch._check(...) can say what it lies between."
        )
    powers = (1 << n for n in range(62, 0, -1))
    most = next((m for m in powers if _magnitude(e, lambda a, m=m: min(_extent(a), m)) < limit), 1)
    for a in sorted((a for a in leaves if _extent(a) > most), key=lambda a: a.key):
        f = a.args[1] if type(a) is Apply else None
        for name, end in (("le", most), ("ge", -most)):
            relation = R.compare(name, E.of(a), end) if f is None else R.float_op(name, f, float(end))
            if env.is_unbacked(E.of(a)):
                check(wrap(relation, env))
            elif not env.evaluate(relation):
                unsupported("data-dependent", f"{e!r} may not fit into 64 bits", "One of its numbers is too large.")


def operands(fn, numbers: list, check: Check) -> list | None:
    """The operands of ``fn`` (numbers, some of them symbolic), such that kernels give what Python gives without an error. None where ``fn``
    has to be given plain numbers."""
    floats = any(isinstance(n, (float, SymFloat)) for n in numbers)
    if floats and fn in OF_BITS:
        return None
    if fn in CUTS and isinstance(numbers[0], SymFloat):  # what kernels cut is computed from integers
        f = numbers[0]
        given = any(s in f.env.hints for s in R.symbols(f.expr) if isinstance(s, R.FloatSymbol))
        return [_constant(f)] if given or not (R.is_launched(f.expr) or f.env.is_unbacked(f.expr)) else numbers
    if floats or fn in QUOTIENTS or fn is sym_float or fn in MATH:
        limit = DOUBLE if fn in COMPARISONS or (fn in QUOTIENTS and not floats) else WORD
        if any(type(n) is int and abs(n) >= limit for n in numbers):
            return None
        numbers = [fitting(n, check, limit) if isinstance(n, SymInt) else n for n in numbers]
    if fn in DIVISIONS or fn in SHIFTS:
        _, by = numbers
        if isinstance(by, (SymInt, SymFloat)):
            allowed = by != 0 if fn in DIVISIONS else by >= 0
            if by.env.is_unbacked(by.expr):
                check(allowed)
            elif not allowed:
                return None
        elif fn in SHIFTS and by < 0:
            raise ValueError("negative shift count")
    return numbers


def error_of(fn, numbers: list, error: Exception) -> Exception:
    """The error with Python's words for numbers of these types, of which ``error`` tells the kind."""
    examples = [n.hint if isinstance(n, (SymInt, SymFloat)) else n for n in numbers]
    try:
        fn(*examples)
    except Exception as own:
        return own if type(own) is type(error) else error
    return error


def result(fn, numbers: list, out, check: Check):
    """``out``, which is ``fn(*numbers)``. Of a function that raises for some floating-point numbers or gives complex ones both are ruled out. One
    that has grown long, as the middle of an interval that is halved again and again does, is a constant."""
    if not isinstance(out, (SymInt, SymFloat)):
        return out
    env, e = out.env, out.expr
    if _is_longer(e, LONGEST) and not env.is_unbacked(e):
        return fn(*[_constant(n) if isinstance(n, (SymInt, SymFloat)) else n for n in numbers])
    if isinstance(out, SymInt) or (fn not in POWERS and fn not in MATH):
        return out
    if env.is_unbacked(out.expr):
        check(abs(out) <= LARGEST_FLOAT)
        return out
    try:
        known = R.evaluate(R.Float("is_float", out.expr), env.hints)
    except (ArithmeticError, ValueError):
        known = False
    if known and env.evaluate(R.Float("is_float", out.expr)):
        return out
    return fn(*[_constant(n) if isinstance(n, (SymInt, SymFloat)) else n for n in numbers])
