"""Two walks over an :class:`~.expr.Expr`: to its value, and to the operations that compute it."""

from __future__ import annotations

import math

from .expr import FUNCTIONS, Apply, Atom, Div, Expr, Max, Min, Mod, Prod

__all__ = ["emit", "evaluate"]


def evaluate(e, env: dict) -> int:
    """The value, with ``env`` giving an int for each leaf (symbol, variable, loaded value). KeyError for one that is missing."""
    if type(e) is not Expr:
        return e
    out = e.const
    for atom, c in e.terms:
        out += c * _value(atom, env)
    return out


def _value(atom: Atom, env: dict) -> int:
    kind = type(atom)
    if kind is Prod:
        return math.prod(_value(a, env) for a in atom.args)
    if kind is Div:
        return evaluate(atom.args[0], env) // evaluate(atom.args[1], env)
    if kind is Mod:
        return evaluate(atom.args[0], env) % evaluate(atom.args[1], env)
    if kind is Min:
        return min(evaluate(a, env) for a in atom.args)
    if kind is Max:
        return max(evaluate(a, env) for a in atom.args)
    if kind is Apply:
        if atom.name == "int_of":
            return int(atom.args[1].evaluate(env))
        return FUNCTIONS[atom.name](evaluate(atom.args[1], env), evaluate(atom.args[2], env))
    return env[atom]


def emit(e, ops):
    """Write the expression with ``ops``: ``constant(int)``, ``leaf(atom)``, ``add``, ``mul``, ``floordiv``, ``mod``, ``minimum``, ``maximum``
    (two operands each) and ``apply(name, operands)``. Gives what these give; one call for each operation."""
    if type(e) is not Expr:
        return ops.constant(e)
    out = None
    for atom, c in e.terms:
        part = _emit_atom(atom, ops)
        if c != 1:
            part = ops.mul(part, ops.constant(c))
        out = part if out is None else ops.add(out, part)
    return ops.add(out, ops.constant(e.const)) if e.const else out


def _emit_atom(atom: Atom, ops):
    kind = type(atom)
    if kind is Prod:
        out = _emit_atom(atom.args[0], ops)
        for a in atom.args[1:]:
            out = ops.mul(out, _emit_atom(a, ops))
        return out
    if kind is Div or kind is Mod:
        a, b = (emit(x, ops) for x in atom.args)
        return ops.floordiv(a, b) if kind is Div else ops.mod(a, b)
    if kind is Min or kind is Max:
        out = emit(atom.args[0], ops)
        for a in atom.args[1:]:
            out = (ops.minimum if kind is Min else ops.maximum)(out, emit(a, ops))
        return out
    if kind is Apply:
        args = atom.args[1:] if atom.name == "int_of" else [emit(a, ops) for a in atom.args[1:]]
        return ops.apply(atom.name, args)
    return ops.leaf(atom)
