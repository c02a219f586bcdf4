"""Integer index expressions: affine in loop variables, with floor division, remainder and loaded values as further atoms.

An :class:`Index` is ``const + sum(coefficient * atom)``. Atoms: a loop variable :class:`Var`; ``("div", index, k)``;
``("mod", index, k)``; or a loaded :class:`~.values.Value`. All are hashable, and indices are equal exactly when their canonical
forms are. Loop variables are non-negative and below their extent, which is what lets ``div`` and ``mod`` simplify.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Index", "Var", "constant", "floordiv", "linear", "mod", "variable"]


class Var(NamedTuple):
    """A loop variable: a number that tells it from the others of its nest, and the number of its values."""

    id: int
    extent: int


class Index:
    __slots__ = ("terms", "const", "_hash")

    def __init__(self, terms: tuple, const: int):
        self.terms = terms
        self.const = const
        self._hash = hash((terms, const))

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (
            isinstance(other, Index)
            and self._hash == other._hash
            and self.terms == other.terms
            and self.const == other.const
        )

    def __repr__(self):
        parts = [_atom_text(a) if c == 1 else f"{c}*{_atom_text(a)}" for a, c in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)

    def __add__(self, other):
        if isinstance(other, int):
            return Index(self.terms, self.const + other)
        if not other.terms:
            return Index(self.terms, self.const + other.const) if other.const else self
        if not self.terms:
            return Index(other.terms, self.const + other.const) if self.const else other
        return _make([*self.terms, *other.terms], self.const + other.const)

    __radd__ = __add__

    def __mul__(self, k: int):
        if k == 1:
            return self
        if k == 0:
            return _ZERO
        return Index(tuple((a, c * k) for a, c in self.terms), self.const * k)

    __rmul__ = __mul__

    def __sub__(self, other):
        return self + other * -1

    def bounds(self) -> tuple[int, int] | None:
        """(least, greatest) value, None when a loaded value takes part."""
        lo = hi = self.const
        for atom, c in self.terms:
            b = _atom_bounds(atom)
            if b is None:
                return None
            a, z = (c * b[0], c * b[1]) if c > 0 else (c * b[1], c * b[0])
            lo, hi = lo + a, hi + z
        return lo, hi

    def coefficient(self, var: Var) -> int | None:
        """The coefficient of ``var``; None when it also occurs inside another atom."""
        out = 0
        for atom, c in self.terms:
            if atom == var:
                out = c
            elif not isinstance(atom, Var) and var in atom_variables(atom):
                return None
        return out

    def variables(self) -> set:
        out: set = set()
        for atom, _ in self.terms:
            out |= atom_variables(atom)
        return out

    def substitute(self, env: dict, value=None) -> Index:
        """Replace variables by indices; ``value`` maps loaded values."""
        out = Index((), self.const)
        for atom, c in self.terms:
            if isinstance(atom, Var):
                part = env.get(atom)
                part = Index(((atom, 1),), 0) if part is None else part
            elif isinstance(atom, tuple):
                inner = atom[1].substitute(env, value)
                part = floordiv(inner, atom[2]) if atom[0] == "div" else mod(inner, atom[2])
            else:
                new = value(atom) if value is not None else atom
                part = new if isinstance(new, Index) else Index(((new, 1),), 0)
            out = out + part * c
        return out


_ZERO = Index((), 0)


def constant(k: int) -> Index:
    return Index((), k)


def variable(v: Var) -> Index:
    return Index(((v, 1),), 0) if v.extent != 1 else _ZERO


def of_atom(atom) -> Index:
    return Index(((atom, 1),), 0)


def linear(coords, strides, offset: int = 0) -> Index:
    """``offset + sum(coordinate * stride)``."""
    out = Index((), offset)
    for c, s in zip(coords, strides):
        if s:
            out = out + c * s
    return out


def _atom_text(atom) -> str:
    if isinstance(atom, Var):
        return f"i{atom.id}"
    if isinstance(atom, tuple):
        return f"({atom[1]!r}){'//' if atom[0] == 'div' else '%'}{atom[2]}"
    return repr(atom)


def atom_variables(atom) -> set:
    if isinstance(atom, Var):
        return {atom}
    return atom[1].variables() if isinstance(atom, tuple) else atom.variables()


def _atom_bounds(atom):
    if isinstance(atom, Var):
        return 0, atom.extent - 1
    if isinstance(atom, tuple):
        if atom[0] == "mod":
            return 0, atom[2] - 1
        b = atom[1].bounds()
        return b and (b[0] // atom[2], b[1] // atom[2])
    return None


def _key(term):
    atom = term[0]
    # NOTE: never order by hash: the text of a kernel must come out the same in every process
    return (0, atom.id, "") if isinstance(atom, Var) else (1, 0, _atom_text(atom))


def _make(terms: list, const: int) -> Index:
    merged: dict = {}
    for atom, c in terms:
        merged[atom] = merged.get(atom, 0) + c
    # k * (a // k) + a % k == a
    for atom in [a for a in merged if isinstance(a, tuple) and not isinstance(a, Var) and a[0] == "mod"]:
        c = merged.get(atom, 0)
        twin = ("div", atom[1], atom[2])
        if c and merged.get(twin) == c * atom[2]:
            del merged[twin], merged[atom]
            return _make([*merged.items(), *((a, c * d) for a, d in atom[1].terms)], const + c * atom[1].const)
    return Index(tuple(sorted(((a, c) for a, c in merged.items() if c), key=_key)), const)


def _split(ix: Index, k: int) -> tuple[Index, Index]:
    """(q, r) with ix == k q + r, everything divisible in q."""
    q = Index(tuple((a, c // k) for a, c in ix.terms if c % k == 0), ix.const // k)
    return q, Index(tuple((a, c) for a, c in ix.terms if c % k), ix.const % k)


def floordiv(ix: Index, k: int) -> Index:
    if k == 1:
        return ix
    q, r = _split(ix, k)
    b = r.bounds()
    if b is not None and 0 <= b[0] and b[1] < k:
        return q
    if not r.const and r.terms:
        g = math.gcd(k, *(c for _, c in r.terms))
        if g > 1:
            return q + floordiv(Index(tuple((a, c // g) for a, c in r.terms), 0), k // g)
    if (
        len(r.terms) == 1
        and isinstance(r.terms[0][0], tuple)
        and r.terms[0][0][0] == "div"
        and r.terms[0][1] == 1
        and not r.const
    ):
        return q + floordiv(r.terms[0][0][1], r.terms[0][0][2] * k)
    return q + Index(((("div", r, k), 1),), 0)


def mod(ix: Index, k: int) -> Index:
    if k == 1:
        return _ZERO
    _, r = _split(ix, k)
    b = r.bounds()
    if b is not None and 0 <= b[0] and b[1] < k:
        return r
    if not r.const and r.terms:
        g = math.gcd(k, *(c for _, c in r.terms))
        if g > 1:
            return mod(Index(tuple((a, c // g) for a, c in r.terms), 0), k // g) * g
    return Index(((("mod", r, k), 1),), 0)
