"""Integer expressions: one canonical form for sizes, strides, offsets, shape guards and the index arithmetic of kernels.

An :class:`Expr` is ``const + sum(coefficient * atom)`` with integer coefficients. Atoms are what the arithmetic can't take apart:

- :class:`Symbol`, a size or an integer of the program that runs, with a range and a divisor that its values are multiples of;
- :class:`Var`, a loop variable, ``0 <= v < extent`` (the extent may be an expression);
- :class:`Prod`, a product of two or more of the other atoms;
- :class:`Div`, :class:`Mod` (floor division and remainder, Python's), :class:`Min`, :class:`Max`, :class:`Apply` (a named function);
- any object with the methods of :class:`Atom`: kernels use loaded values.

A constant is never an Expr but a plain ``int``, so what depends on no atom costs nothing. The functions of this module
(:func:`terms`, :func:`bounds`, :func:`substitute`, ...) take both. Expressions are interned: equal ones are one object, nearly always (the
table is emptied when it is full, and equality then falls back on the structure). Order is by name and number, never by hash: what is
printed or generated comes out the same in every process.
"""

from __future__ import annotations

import math
import operator
from typing import Any

__all__ = [
    "Apply",
    "Atom",
    "Div",
    "Expr",
    "Max",
    "Min",
    "Mod",
    "Prod",
    "Symbol",
    "Var",
    "apply",
    "at_least",
    "bounds",
    "coefficient",
    "const",
    "floordiv",
    "in_one_symbol",
    "linear",
    "maximum",
    "minimum",
    "mod",
    "nonnegative",
    "of",
    "substitute",
    "symbols",
    "terms",
    "variable",
    "variables",
]

INF = math.inf
_NONE: frozenset = frozenset()


class Atom:
    """What an expression can't take apart. ``key`` orders atoms, the same in every process."""

    __slots__ = ()
    key: tuple
    args: Any  # of those that are made of others
    name: str  # of symbols and functions

    def variables(self) -> frozenset:
        """Loop variables inside."""
        return _NONE

    def symbols(self) -> frozenset:
        """Symbols inside."""
        return _NONE

    def bounds(self) -> tuple:
        """(least, greatest) value; infinite where nothing is known."""
        return -INF, INF


class Symbol(Atom):
    """An integer known when the program runs. ``lo <= value <= hi``, a multiple of ``divisor``; a range may be narrowed later, never widened."""

    __slots__ = ("name", "key", "lo", "hi", "divisor")

    def __init__(self, name: str, lo=-INF, hi=INF, divisor: int = 1):
        self.name, self.lo, self.hi, self.divisor = name, lo, hi, divisor
        digits = name.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
        self.key = (1, int(digits) if digits.isdigit() else 0, name)

    def __repr__(self):
        return self.name

    def symbols(self):
        return frozenset((self,))

    def bounds(self):
        return self.lo, self.hi


class Var(Atom):
    """A loop variable: a number that tells it from the others of its nest, and the number of its values (an int or an expression)."""

    __slots__ = ("id", "extent", "key", "_own")

    def __init__(self, id: int, extent):
        self.id, self.extent = id, extent
        self.key = (0, id, "")
        self._own = frozenset((self,))

    def __repr__(self):
        return f"i{self.id}"

    def variables(self):
        return self._own

    def symbols(self):
        return symbols(self.extent)

    def bounds(self):
        return 0, bounds(self.extent)[1] - 1


class _Compound(Atom):
    """Made of ``args``: atoms or expressions. Equal when these are."""

    __slots__ = ("args", "_hash", "_key", "_variables", "_symbols")

    def __init__(self, args: tuple):
        self.args = args
        self._hash = hash((type(self).__name__, args))
        self._key = self._variables = self._symbols = None

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (type(other) is type(self) and self._hash == other._hash and self.args == other.args)

    @property
    def key(self):
        if self._key is None:
            self._key = (2, 0, repr(self))
        return self._key

    def variables(self):
        if self._variables is None:
            self._variables = _NONE.union(*(variables(a) for a in self.args))
        return self._variables

    def symbols(self):
        if self._symbols is None:
            self._symbols = _NONE.union(*(symbols(a) for a in self.args))
        return self._symbols


class Prod(_Compound):
    """A product of atoms, in order, none of them a product."""

    __slots__ = ()

    def __repr__(self):
        return "*".join(inside(a) for a in self.args)

    def bounds(self):
        if len(set(self.args)) == 1 and len(self.args) % 2 == 0:  # an even power
            a, z = (abs(x) for x in self.args[0].bounds())
            lo, hi = self.args[0].bounds()
            return (0 if lo <= 0 <= hi else min(a, z) ** len(self.args)), max(a, z) ** len(self.args)
        out = (1, 1)
        for a in self.args:
            out = _times(out, a.bounds())
        return out


class Div(_Compound):
    """``numerator // denominator``, rounded down."""

    __slots__ = ()

    def __repr__(self):
        return f"{inside(self.args[0])}//{inside(self.args[1])}"

    def bounds(self):
        (a, z), (k, m) = bounds(self.args[0]), bounds(self.args[1])
        if k <= 0:
            return -INF, INF
        corners = [_divide(x, y) for x in (a, z) for y in (k, m)]
        return min(corners), max(corners)


class Mod(_Compound):
    """``numerator % denominator``: the sign is the denominator's."""

    __slots__ = ()

    def __repr__(self):
        return f"{inside(self.args[0])} % {inside(self.args[1])}"

    def bounds(self):
        (a, z), (k, m) = bounds(self.args[0]), bounds(self.args[1])
        if k <= 0:
            return -INF, INF
        return 0, min(m - 1, z) if a >= 0 else m - 1


class Min(_Compound):
    """The least of its arguments."""

    __slots__ = ()

    def __repr__(self):
        return f"min({', '.join(map(repr, self.args))})"

    def bounds(self):
        all_ = [bounds(a) for a in self.args]
        return min(b[0] for b in all_), min(b[1] for b in all_)


class Max(_Compound):
    """The greatest of its arguments."""

    __slots__ = ()

    def __repr__(self):
        return f"max({', '.join(map(repr, self.args))})"

    def bounds(self):
        all_ = [bounds(a) for a in self.args]
        return max(b[0] for b in all_), max(b[1] for b in all_)


FUNCTIONS = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "pow": operator.pow,
}


class Apply(_Compound):
    """A function of integers that has no algebra here: ``name`` (a row of ``and or xor lshift rshift pow``) and two operands, or ``int_of``
    and an object that has ``evaluate(env)`` (a floating-point expression cut to an integer)."""

    __slots__ = ("name",)

    def __init__(self, args: tuple):
        self.name = args[0]
        super().__init__(args)

    def __repr__(self):
        if self.name == "int_of":
            return f"int({self.args[1]!r})"
        sign = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "pow": "**"}[self.name]
        return f"({inside(self.args[1])} {sign} {inside(self.args[2])})"

    def variables(self):
        return _NONE.union(*(variables(a) for a in self.args[1:]))

    def symbols(self):
        return _NONE.union(*(symbols(a) for a in self.args[1:]))

    def bounds(self):
        if self.name == "int_of":
            return -INF, INF
        (a, z), (k, m) = bounds(self.args[1]), bounds(self.args[2])
        if a < 0 or k < 0:
            return -INF, INF
        return (0, min(z, m)) if self.name == "and" else (0, INF)


class Expr:
    """``const + sum(coefficient * atom)``, canonical. ``terms``: pairs (atom, coefficient) in order, at least one."""

    __slots__ = ("terms", "const", "_hash", "__weakref__")
    terms: tuple
    const: int
    _hash: int

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (
            type(other) is Expr
            and self._hash == other._hash
            and self.const == other.const
            and self.terms == other.terms
        )

    def __repr__(self):
        out = ""
        for atom, c in self.terms:
            text = repr(atom) if abs(c) == 1 else f"{abs(c)}*{inside(atom)}"
            if isinstance(atom, Mod) or (isinstance(atom, Div) and c < 0):
                text = inside(atom) if abs(c) == 1 else text
            out += (f" + {text}" if c > 0 else f" - {text}") if out else text if c > 0 else f"-{text}"
        return out + (f" + {self.const}" if self.const > 0 else f" - {-self.const}" if self.const else "")

    def __reduce__(self):
        raise TypeError(f"the expression {self} belongs to this process and can't be pickled")

    def __add__(self, other):
        if type(other) is not Expr:
            return _make(self.terms, self.const + other)
        merged = dict(self.terms)
        for atom, c in other.terms:
            merged[atom] = merged[atom] + c if atom in merged else c
        return _sum(merged, self.const + other.const)

    __radd__ = __add__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + other * -1

    def __rsub__(self, other):
        return self * -1 + other

    def __mul__(self, other):
        if type(other) is not Expr:
            if other == 1:
                return self
            if other == 0:
                return 0
            return _make(tuple((a, c * other) for a, c in self.terms), self.const * other)
        out = self * other.const
        for a, c in self.terms:
            for b, d in other.terms:
                out = out + _make(((_product(a, b), c * d),), 0)
        return out + _make(other.terms, 0) * self.const

    __rmul__ = __mul__

    def __floordiv__(self, other):
        return floordiv(self, other)

    def __rfloordiv__(self, other):
        return floordiv(other, self)

    def __mod__(self, other):
        return mod(self, other)

    def __rmod__(self, other):
        return mod(other, self)

    def bounds(self) -> tuple:
        """(least, greatest) value by intervals; infinite where nothing is known."""
        lo = hi = self.const
        for atom, c in self.terms:
            a, z = atom.bounds()
            if c > 0:
                lo, hi = lo + c * a, hi + c * z
            else:
                lo, hi = lo + c * z, hi + c * a
        return lo, hi

    def coefficient(self, var: Atom):
        """The coefficient of ``var`` (an int, or an expression); None when it also occurs inside another atom."""
        out = 0
        for atom, c in self.terms:
            if atom is var:
                out = out + c
            elif type(atom) is Prod:
                n = sum(a is var for a in atom.args)
                if any(a is not var and var in variables(a) for a in atom.args) or n > 1:
                    return None
                if n:
                    rest = tuple(a for a in atom.args if a is not var)
                    out = out + of(rest[0] if len(rest) == 1 else Prod(rest)) * c
            elif not isinstance(atom, (Var, Symbol)) and (var in atom.variables() or var in atom.symbols()):
                return None
        return out

    def variables(self) -> frozenset:
        """Loop variables that take part."""
        if len(self.terms) == 1:
            return self.terms[0][0].variables()
        return _NONE.union(*[a.variables() for a, _ in self.terms])

    def symbols(self) -> frozenset:
        """Symbols that take part."""
        return _NONE.union(*[a.symbols() for a, _ in self.terms])

    def substitute(self, env: dict, value=None):
        """Replace variables and symbols by expressions or ints; ``value`` maps the other leaves (loaded values)."""
        out = self.const
        for atom, c in self.terms:
            if type(atom) is Var or type(atom) is Symbol:
                new = env.get(atom)
                part = _make(((atom, c),), 0) if new is None else new * c
            else:
                part = _rebuild(atom, env, value) * c
            out = part + out
        return out


_TABLE: dict = {}
_LIMIT = 1 << 16


def _make(terms: tuple, const: int):
    """The expression with these terms, which are in order."""
    if not terms:
        return const
    key = (terms, const)
    found = _TABLE.get(key)
    if found is None:
        if len(_TABLE) > _LIMIT:
            _TABLE.clear()
        found = object.__new__(Expr)
        found.terms = terms
        found.const = const
        found._hash = hash(key)
        _TABLE[key] = found
    return found


def _order(term):
    return term[0].key


def _sum(merged: dict, const: int):
    for atom in merged:
        if type(atom) is Mod:
            return _join(merged, const)
    return _make_sorted(merged, const)


def _join(merged: dict, const: int):
    """``den * (num // den) + num % den == num``"""
    for atom in [a for a in merged if type(a) is Mod]:
        c = merged.get(atom, 0)
        if not c:
            continue
        num, den = atom.args
        whole = terms(of(Div(atom.args)) * den * c)
        if all(merged.get(a) == d for a, d in whole):
            for a, _ in whole:
                del merged[a]
            del merged[atom]
            return _make_sorted(merged, const) + num * c
    return _make_sorted(merged, const)


def _make_sorted(merged: dict, const: int):
    out = [t for t in merged.items() if t[1]]
    if len(out) > 1:
        out.sort(key=_order)
    return _make(tuple(out), const)


def _product(a: Atom, b: Atom) -> Atom:
    parts = [*(a.args if type(a) is Prod else (a,)), *(b.args if type(b) is Prod else (b,))]
    parts.sort(key=lambda x: x.key)
    return Prod(tuple(parts))


def inside(x) -> str:
    """Text of an operand of a product or quotient."""
    text = repr(x)
    return f"({text})" if isinstance(x, (Expr, Div, Mod)) and any(c in text for c in "+-*/%") else text


def _times(x, y):
    corners = [0 if 0 in (a, b) else a * b for a in x for b in y]
    return min(corners), max(corners)


def _divide(x, y):
    if y == INF:
        return 0 if x >= 0 else -1
    return x if x in (INF, -INF) else x // y


def _rebuild(atom: Atom, env: dict, value):
    kind = type(atom)
    if kind is Var or kind is Symbol:
        new = env.get(atom)
        return of(atom) if new is None else new
    if kind is Prod:
        out = 1
        for a in atom.args:
            out = _rebuild(a, env, value) * out
        return out
    if kind is Div or kind is Mod:
        num, den = substitute(atom.args[0], env, value), substitute(atom.args[1], env, value)
        return floordiv(num, den) if kind is Div else mod(num, den)
    if kind is Min or kind is Max:
        args = [substitute(a, env, value) for a in atom.args]
        return minimum(*args) if kind is Min else maximum(*args)
    if kind is Apply:
        if atom.name == "int_of":
            new = atom.args[1].substitute(env)
            return int(new) if isinstance(new, (int, float)) else new.to_int()
        return apply(atom.name, *(substitute(a, env, value) for a in atom.args[1:]))
    new = value(atom) if value is not None else atom
    return new if isinstance(new, (Expr, int)) else of(new)


# --- functions that take ints and expressions alike ------------------------------------------------------------------
def of(atom: Atom) -> Expr:
    """The expression that is one atom."""
    return _make(((atom, 1),), 0)


def variable(v: Var):
    """The loop variable as an expression; 0 for a loop of one iteration."""
    return of(v) if v.extent != 1 else 0


def terms(e) -> tuple:
    """Pairs (atom, coefficient) without the constant."""
    return e.terms if type(e) is Expr else ()


def const(e) -> int:
    """The constant summand."""
    return e.const if type(e) is Expr else e


def variables(e) -> frozenset:
    """Loop variables of an int, an expression or an atom."""
    return _NONE if isinstance(e, (int, str)) else e.variables()


def symbols(e) -> frozenset:
    """Symbols of an int, an expression or an atom."""
    return _NONE if isinstance(e, (int, str)) else e.symbols()


def bounds(e) -> tuple:
    """(least, greatest) value of an int, an expression or an atom."""
    return (e, e) if isinstance(e, int) else e.bounds()


def coefficient(e, var: Atom):
    """See :meth:`Expr.coefficient`."""
    return e.coefficient(var) if type(e) is Expr else 0


def substitute(e, env: dict, value=None):
    """See :meth:`Expr.substitute`."""
    return e.substitute(env, value) if type(e) is Expr else e


def linear(coords, strides, offset=0):
    """``offset + sum(coordinate * stride)``."""
    out = offset
    for c, s in zip(coords, strides):
        if type(s) is Expr or s:
            out = c * s + out
    return out


def _split(e, k: int):
    """(q, r) with e == k q + r, everything divisible in q."""
    if type(e) is not Expr:
        return e // k, e % k
    q, r = [], []
    for a, c in e.terms:
        (r if c % k else q).append((a, c if c % k else c // k))
    return _make(tuple(q), e.const // k), _make(tuple(r), e.const % k)


def _quotient(atom: Atom, by: Atom):
    """``atom / by`` as an expression when the product contains it, else None."""
    have = list(atom.args) if type(atom) is Prod else [atom]
    for b in by.args if type(by) is Prod else (by,):
        if b not in have:
            return None
        have.remove(b)
    return of(have[0] if len(have) == 1 else Prod(tuple(have))) if have else 1


def _split_by(e, k: Expr):
    """(q, r) with e == k q + r: long division by the leading term of ``k``."""
    lead, c = max(k.terms, key=lambda t: (len(t[0].args) if type(t[0]) is Prod else 1, t[0].key))
    q, r = 0, e
    for _ in range(8):
        for a, d in terms(r):
            part = _quotient(a, lead) if d % c == 0 else None
            if part is not None:
                break
        else:
            return q, r
        part = part * (d // c)
        q, r = part + q, r - k * part
    return q, r


def _within(r, k) -> bool:
    """Whether ``0 <= r < k`` always."""
    if isinstance(k, int):
        lo, hi = bounds(r)
        if 0 <= lo and hi < k:
            return True
        if all(type(a) is not Prod and (type(a) is not Var or type(a.extent) is not Expr) for a, _ in terms(r)):
            return False
    return nonnegative(r) and at_least(k - r, 1)


def _common(r, k):
    """A positive common factor of all terms of both, with both divided by it; None when there is none."""
    g = math.gcd(const(r), const(k), *(c for _, c in (*terms(r), *terms(k))))
    if g > 1:
        return g, *(_make(tuple((a, c // g) for a, c in terms(e)), const(e) // g) for e in (r, k))
    if const(r) or const(k) or not terms(r):
        return None
    shared = None
    for a, _ in (*terms(r), *terms(k)):
        parts = a.args if type(a) is Prod else (a,)
        shared = [p for p in (parts if shared is None else shared) if p in parts and p.bounds()[0] > 0]
        if not shared:
            return None
    out = [0, 0]
    for i, e in enumerate((r, k)):
        for a, c in terms(e):
            out[i] = _quotient(a, shared[0]) * c + out[i]
    return of(shared[0]), *out


def floordiv(e, k):
    """``e // k``. ZeroDivisionError for the number 0."""
    if type(e) is not Expr and type(k) is not Expr:
        return e // k
    if type(k) is Expr:
        q, r = _split_by(e, k)
        if isinstance(r, int) and r == 0 or _within(r, k):
            return q
        if isinstance(r, int) and r < 0 and at_least(r + k, 0):
            return q + -1
        cut = _common(r, k)
        if cut is not None:
            return floordiv(cut[1], cut[2]) + q
        return of(Div((r, k))) + q
    if k == 1:
        return e
    if k < 0:
        return floordiv(-e, -k)
    if k == 0:
        raise ZeroDivisionError(f"{e} // 0")
    q, r = _split(e, k)
    if _within(r, k):
        return q
    if type(r) is Expr and not r.const:
        g = math.gcd(k, *(c for _, c in r.terms))
        if g > 1:
            return floordiv(_make(tuple((a, c // g) for a, c in r.terms), 0), k // g) + q
        if len(r.terms) == 1 and r.terms[0][1] == 1 and type(r.terms[0][0]) is Div:
            num, den = r.terms[0][0].args
            if isinstance(den, int) and den > 0:
                return floordiv(num, den * k) + q
    return of(Div((r, k))) + q


def mod(e, k):
    """``e % k``. ZeroDivisionError for the number 0."""
    if type(e) is not Expr and type(k) is not Expr:
        return e % k
    if type(k) is Expr:
        _, r = _split_by(e, k)
        if isinstance(r, int) and r == 0:
            return 0
        if _within(r, k):
            return r
        if isinstance(r, int) and r < 0 and at_least(r + k, 0):
            return r + k
        cut = _common(r, k)
        if cut is not None:
            return mod(cut[1], cut[2]) * cut[0]
        return of(Mod((r, k)))
    if k == 1:
        return 0
    if k < 0:
        return -mod(-e, -k)
    if k == 0:
        raise ZeroDivisionError(f"{e} % 0")
    _, r = _split(e, k)
    if type(r) is Expr:
        kept = tuple(t for t in r.terms if t[1] * _divisor(t[0]) % k)
        if len(kept) != len(r.terms):
            r = _make(kept, r.const)
    if _within(r, k):
        return r
    if type(r) is Expr and not r.const:
        g = math.gcd(k, *(c for _, c in r.terms))
        if g > 1:
            return mod(_make(tuple((a, c // g) for a, c in r.terms), 0), k // g) * g
    return of(Mod((r, k)))


def _divisor(atom: Atom) -> int:
    if type(atom) is Symbol:
        return atom.divisor
    return math.prod(_divisor(a) for a in atom.args) if type(atom) is Prod else 1


def minimum(*args):
    """The least of the arguments."""
    return _extreme(Min, args)


def maximum(*args):
    """The greatest of the arguments."""
    return _extreme(Max, args)


def _extreme(kind, args):
    flat: list = []
    for a in args:
        inner = a.terms[0][0] if type(a) is Expr and len(a.terms) == 1 and not a.const and a.terms[0][1] == 1 else None
        for x in inner.args if type(inner) is kind else (a,):
            if x not in flat:
                flat.append(x)
    # An argument that another one always beats is dropped.
    kept: list = []
    for x in flat:
        beaten = False
        for y in list(kept):
            if nonnegative(x - y if kind is Min else y - x):
                beaten = True
                break
            if nonnegative(y - x if kind is Min else x - y):
                kept.remove(y)
        if not beaten:
            kept.append(x)
    if len(kept) == 1:
        return kept[0]
    return of(kind(tuple(sorted(kept, key=lambda e: (isinstance(e, Expr), e if isinstance(e, int) else 0, repr(e))))))


def apply(name: str, a, b):
    """One of the functions of :class:`Apply` on two integers or expressions."""
    if type(a) is not Expr and type(b) is not Expr:
        return FUNCTIONS[name](a, b)
    if isinstance(b, int) and b >= 0:
        if name == "pow" and b <= 8:
            return math.prod([a] * b)
        if name == "lshift":
            return a * (1 << b)
        if name == "rshift":
            return floordiv(a, 1 << b)
        if name == "and" and b & (b + 1) == 0:
            return mod(a, b + 1)
    return of(Apply((name, a, b)))


def nonnegative(e) -> bool:
    """Whether ``e >= 0`` follows from the ranges."""
    return at_least(e, 0)


def in_one_symbol(e) -> tuple[Symbol, int, int] | None:
    """(symbol, factor, offset) where the expression is ``factor * symbol + offset``; None for any other expression."""
    if type(e) is Expr and len(e.terms) == 1 and type(e.terms[0][0]) is Symbol:
        return (*e.terms[0], e.const)
    return None


def at_least(e, least: int) -> bool:
    """Whether ``e >= least`` follows from the ranges. Intervals first; then every loop variable is put at the end where the expression is
    least and every symbol is written as its least value plus something non-negative, which proves what has only positive terms then
    (``s0*s1 - s1 >= 2`` for sizes from 2)."""
    if bounds(e)[0] >= least:
        return True
    if type(e) is not Expr:
        return False
    if in_one_symbol(e) is not None:
        return False
    for v in sorted(e.variables(), key=lambda v: -v.id):
        c = coefficient(e, v)
        if c is None:
            return False
        if nonnegative(c):
            e = substitute(e, {v: 0})
        elif nonnegative(-c):
            e = substitute(e, {v: v.extent - 1})
        else:
            return False
    for a, c in e.terms if type(e) is Expr else ():
        if type(a) is Div and isinstance(a.args[1], int):
            # The quotient lies between (num - den + 1) / den and num / den.
            num, den = a.args
            worst = num if c < 0 else num - (den - 1)
            return at_least((e - of(a) * c) * den + worst * c, least * den)
    shifted = {}
    for s in symbols(e):
        if s.lo != -INF:
            shifted[s] = of(Symbol(s.name, 0, s.hi - s.lo)) + s.lo
        elif s.hi != INF:
            shifted[s] = s.hi - of(Symbol(s.name, 0, INF))
    e = substitute(e, shifted)
    lo = const(e)
    for a, c in terms(e):
        b = a.bounds()
        x = min(c * b[0] if b[0] else 0, c * b[1] if b[1] else 0)
        lo = lo + x
    return lo >= least
