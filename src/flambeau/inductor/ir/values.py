"""Typed scalar expressions: what one element of a buffer is computed from.

A :class:`Value` is interned in its :class:`Values` table, so equal expressions are one object and common subexpressions are found by identity.
Operations: ``const`` (number), ``load`` (buffer, index), ``index`` (index), ``cast`` (value), ``checked`` (value, size, tag, wrap: a loaded
index, negative ones wrapped, out-of-range ones reported), and the scalar table's. Operands of an arithmetic operation have one type.

:class:`Typed` is the handler that runs a scalar body into Values: it is where Python numbers get a type.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...base import dtypes
from ...base.expr import Atom, Expr, Symbol, Var, substitute, symbols, terms
from ...base.expr_walks import evaluate
from ...base.quiet import errstate
from ...base.relations import Junction, Not, Rel
from ...core.body import TABLE
from ..assembly.dtypes import compute_type, is_float, is_unsigned, itemsize
from .sizes import size

__all__ = ["Typed", "Value", "Values", "is_complex", "part_of", "short", "to_numpy"]

_NUMPY = {
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "bool": np.bool_,
    "f16": np.float32,
    "bf16": np.float32,
    "c64": np.complex64,
    "c128": np.complex128,
}
# The greatest float32.
_MOST = float(np.finfo(np.float32).max)
_PARTS = {"c64": "f32", "c128": "f64"}
_SUPPORTED = frozenset(_NUMPY)


def is_complex(t: str) -> bool:
    return t in _PARTS


def part_of(t: str) -> str:
    """The type of which complex numbers of type ``t`` are pairs; any other type itself."""
    return _PARTS.get(t, t)


def short(dtype) -> str:
    """The compiler's name of a flambeau dtype. NotImplementedError for dtypes it has no code for (float8)."""
    name = "bool" if dtype.short == "b8" else dtype.short
    if name not in _SUPPORTED:
        raise NotImplementedError(f"the compiler has no code for dtype {dtype}")
    return name


def stored(dtype) -> str:
    """The type of a buffer of this dtype: bytes ("opaque") where kernels don't compute with it, and eager kernels do."""
    try:
        return short(dtype)
    except NotImplementedError:
        return "opaque"


def to_numpy(t: str):
    return _NUMPY[t]


class Value(Atom):
    __slots__ = ("op", "args", "dtype", "serial", "_vars", "_buffers", "_below")

    def __init__(self, op, args, dtype, serial):
        self.op, self.args, self.dtype, self.serial = op, args, dtype, serial
        self._vars = self._buffers = self._below = None

    def __hash__(self):
        return self.serial

    def __repr__(self):
        return f"{self.op}({', '.join(map(repr, self.args))})"

    @property
    def key(self):
        return (3, 0, repr(self))

    def symbols(self) -> frozenset:
        """Sizes that the value depends on."""
        return frozenset().union(*(symbols(a) for a in self.args if isinstance(a, (Value, Expr))))

    def variables(self) -> frozenset:
        """Loop variables that the value depends on."""
        if self._vars is None:
            out: set = set()
            for a in self.args:
                if isinstance(a, (Value, Expr)):
                    out |= a.variables()
            self._vars = frozenset(out)
        return self._vars

    def buffers(self) -> frozenset:
        """Buffers that are read, for loaded indices too."""
        if self._buffers is None:
            out: set = {self.args[0]} if self.op == "load" else set()
            for a in self.args:
                if isinstance(a, Value):
                    out |= a.buffers()
                elif isinstance(a, Expr):
                    for x in loaded_atoms(a):
                        out |= x.buffers()
            self._buffers = frozenset(out)
        return self._buffers


class _Hints(dict):
    """Example values of symbols; one that depends on data is taken to be middling."""

    def __missing__(self, symbol):
        return int(max(symbol.lo, min(symbol.hi, 1024)))


class Values:
    """The table of one compilation. ``hints``: example values of the symbols, for decisions that only cost speed when they are wrong."""

    def __init__(self):
        self._table: dict = {}
        self.hints = _Hints()
        self.scalars: dict = {}  # floating-point symbol -> buffer of its one element

    def hint(self, e) -> int:
        """An example of what a size is when the program runs."""
        return evaluate(e, self.hints) if type(e) is Expr else e

    def make(self, op: str, args: tuple, dtype: str) -> Value:
        key = (op, args, dtype)
        found = self._table.get(key)
        if found is None:
            found = self._table[key] = Value(op, args, dtype, len(self._table))
        return found

    def const(self, number, dtype: str) -> Value:
        if hasattr(number, "__sym__"):
            return self.cast(self.symbolic(number.expr), dtype)
        if dtype in _PARTS:
            return self.make("complex", tuple(self.const(x, _PARTS[dtype]) for x in (number.real, number.imag)), dtype)
        if number.__class__ is complex and dtype != "bool":
            dtypes.check_number(number, dtypes.of_scalar(number.real))
            number = number.real
        if dtype == "bool":
            number = bool(number)
        elif is_float(dtype):
            # NOTE: the table's keys compare by ==, and 0.0 == -0.0; the sign goes into the key
            number = float(number)
            if dtype == "f32":
                # As the element is: what is folded on, a cast to f64 among it, goes on from the rounded number.
                number = float(np.float32(number)) if abs(number) <= _MOST else number
            return self.make("const", (number, math.copysign(1.0, number)), dtype)
        else:
            number = int(number)
        return self.make("const", (number,), dtype)

    def load(self, buffer: str, index: Expr | int, dtype: str) -> Value:
        return self.make("load", (buffer, index), dtype)

    def symbolic(self, e) -> Value:
        """The value of a number that is known when the program runs: i64 for integers, f64 for floating-point expressions."""
        if isinstance(e, (int, Expr)):
            return self.index(e)
        if isinstance(e, float):
            return self.const(e, "f64")
        if e in self.scalars:
            return self.load(self.scalars[e], 0, "f64")
        name, *operands = getattr(e, "args", (None,))
        if type(e) is Rel:
            sign = {"==": "eq", "!=": "ne", ">=": "ge"}[name]
            return self.make(sign, (self.index(operands[0]), self.const(0, "i64")), "bool")
        if type(e) is Not:
            return self.make("logical_not", (self.symbolic(name),), "bool")
        if type(e) is Junction:
            first, *rest = map(self.symbolic, operands)
            return functools.reduce(lambda a, b: self.make(f"logical_{name}", (a, b), "bool"), rest, first)
        op = {"truediv": "div", "mod": "remainder", "min": "lt", "max": "gt"}.get(name, name)
        if name == "float":
            return self.cast(self.symbolic(operands[0]), "f64")
        if op not in TABLE or TABLE[op].kind == "logic":
            raise NotImplementedError(f"kernels don't compute the number {e!r}")
        parts = tuple(self.cast(self.symbolic(x), "f64") for x in operands)
        if name in ("min", "max"):  # as Python's: the first one unless the second is beyond it, which a NaN never is
            return self.make("where", (self.make(op, parts[::-1], "bool"), parts[1], parts[0]), "f64")
        return self.make(op, parts, "bool" if TABLE[op].kind == "compare" else "f64")

    def index(self, ix: Expr | int) -> Value:
        return self.make("index", (ix,), "i64") if isinstance(ix, Expr) else self.const(ix, "i64")

    def element(self, number, dtype: str) -> Value:
        """A number as the element of a tensor: rounded, where that has 16 bits."""
        return self.cast(self.const(number, compute_type(dtype)), dtype)

    def cast(self, v: Value, dtype: str) -> Value:
        if v.dtype == dtype:
            return v
        if dtype in _PARTS:
            t = _PARTS[dtype]
            parts = v.args if v.dtype in _PARTS else (v, self.const(0.0, t))
            return self.make("complex", tuple(self.cast(x, t) for x in parts), dtype)
        if v.dtype in _PARTS:
            parts = [self.cast(x, dtype) for x in v.args]
            return self.make("logical_or", tuple(parts), "bool") if dtype == "bool" else parts[0]
        if v.op == "const" and dtype not in ("f16", "bf16"):
            x = v.args[0]
            if is_float(dtype):
                return self.const(float(_NUMPY[dtype](x)), dtype)
            if dtype == "bool":
                return self.const(x != 0, dtype)
            if not (isinstance(x, float) and not math.isfinite(x)):
                bits = itemsize(dtype) * 8
                x = int(x) & ((1 << bits) - 1)
                return self.const(x - (1 << bits) if not is_unsigned(dtype) and x >> (bits - 1) else x, dtype)
        if v.op == "cast" and dtype == compute_type(v.dtype):
            return self.make("cast", (v,), dtype)
        return self.make("cast", (v,), dtype)

    def transform(self, root: Value, leaf, memo: dict | None = None) -> Value:
        """Rebuild ``root``; ``leaf(value)`` gives the replacement of a load, index or constant, or None to rebuild it as it is."""
        memo = {} if memo is None else memo
        stack = [root]
        while stack:
            v = stack[-1]
            if v in memo:
                stack.pop()
                continue
            if v.op in ("load", "index", "const"):
                new = leaf(v)
                memo[v] = self._inside(v, leaf, memo) if new is None else new
                stack.pop()
                continue
            todo = [a for a in v.args if isinstance(a, Value) and a not in memo]
            if todo:
                stack.extend(todo)
                continue
            args = tuple(memo[a] if isinstance(a, Value) else a for a in v.args)
            memo[v] = v if args == v.args else self.make(v.op, args, v.dtype)
            stack.pop()
        return memo[root]

    def _inside(self, v: Value, leaf, memo: dict) -> Value:
        """Transform the values that the index of ``v`` is loaded from."""
        ix = v.args[-1]
        if not isinstance(ix, Expr) or not loaded_atoms(ix):
            return v
        ix = ix.substitute({}, lambda x: self.transform(x, leaf, memo))
        return self.load(v.args[0], ix, v.dtype) if v.op == "load" else self.index(ix)

    def substitute(self, root: Value, env: dict, memo: dict | None = None) -> Value:
        """Replace loop variables by indices, in loads, indices and loaded indices alike."""
        memo = {} if memo is None else memo

        def atom(v):
            return self.substitute(v, env, memo)

        def leaf(v):
            if v.op == "const":
                return v
            if v.op == "load":
                return self.load(v.args[0], substitute(v.args[1], env, atom), v.dtype)
            return self.index(substitute(v.args[0], env, atom))

        return self.transform(root, leaf, memo)


_KEPT = 256  # values below one for which they are kept


def walk(*roots: Value) -> tuple[Value, ...]:
    """All values below ``roots``, operands first, each once; goes into loaded indices too."""
    if len(roots) != 1:
        return _walk(roots)
    root = roots[0]
    found = root._below
    if found is None:
        found = _walk(roots)
        # Many passes ask for the same values. Of a long chain each element would keep all.
        if len(found) <= _KEPT:
            root._below = found
    return found


def _walk(roots: tuple[Value, ...]) -> tuple[Value, ...]:
    # By identity, since the hash of a value is a call of Python's.
    seen: set[int] = set()
    out: list[Value] = []
    stack: list[Any] = list(reversed(roots))
    while stack:
        v = stack.pop()
        if type(v) is tuple:  # a value whose operands are in the list
            out += v
            continue
        if id(v) in seen:
            continue
        seen.add(id(v))
        stack.append((v,))
        for a in v.args:
            if isinstance(a, Value):
                stack.append(a)
            elif isinstance(a, Expr):
                stack += loaded_atoms(a)
    return tuple(out)


def loaded_atoms(ix: Expr | int) -> list[Value]:
    """The loaded values inside an index."""
    out: list = []
    for atom, _ in terms(ix):
        if not isinstance(atom, (Var, Symbol)):
            _loaded(atom, out)
    return out


def _loaded(atom, out):
    if isinstance(atom, Value):
        out.append(atom)
    elif isinstance(atom, Expr):
        out += loaded_atoms(atom)
    else:
        for a in getattr(atom, "args", ()):
            if not isinstance(a, (int, str)):
                _loaded(a, out)


_ORDER = {
    "bool": 0,
    "u8": 1,
    "i8": 1,
    "i16": 2,
    "u16": 2,
    "i32": 3,
    "u32": 3,
    "i64": 4,
    "u64": 4,
    "f16": 5,
    "bf16": 5,
    "f32": 6,
    "f64": 7,
}


class Typed:
    """Handler: scalar operations on Values and Python numbers. ``dtype``: the type that numbers alone compute in."""

    def __init__(self, values: Values, dtype: str):
        self.values = values
        self.dtype = compute_type(dtype)

    def number(self, a):
        """A symbolic number as a Value of this handler's type (a truth value's arithmetic is integer); anything else as it is."""
        if not hasattr(a, "__sym__"):
            return a
        if hasattr(a, "maybe_as_int") and isinstance(size(a) if type(a.expr) is Expr else a.expr, (int, float)):
            return size(a) if type(a.expr) is Expr else a.expr
        v = self.values.symbolic(a.env.simplify(a.expr))
        whole = v.dtype == "bool" or (v.dtype == "i64" and self.dtype != "bool")
        t = self.dtype if is_float(self.dtype) or whole else v.dtype
        return self.values.cast(v, t)

    def __getattr__(self, name: str):
        row = TABLE.get(name)
        if row is None:
            raise AttributeError(f"no scalar operation {name!r}; the rows are in flambeau/ops/scalars.py")
        special = getattr(self, f"_{name}", None) if name in ("where", "cast", "pow") else None

        def record(*args):
            if any(hasattr(a, "__sym__") for a in args):
                args = tuple(map(self.number, args))
            if special is not None:
                return special(*args)
            if not any(isinstance(a, Value) for a in args):
                with errstate(all="ignore"):
                    return np.asarray(row.numpy(*args)).item()
            if row.kind == "logic":
                return self.values.make(name, tuple(self._as(a, "bool") for a in args), "bool")
            t = self._common(args)
            if row.kind == "float" and not is_float(t):
                t = "f32"
            if name in ("add", "mul"):
                for a, b in ((args[0], args[1]), (args[1], args[0])):
                    if not isinstance(a, Value) and a == (1 if name == "mul" else None) and isinstance(b, Value):
                        return self._as(b, t)
            out = "bool" if row.kind == "compare" else t
            return self.values.make(name, tuple(self._as(a, t) for a in args), out)

        self.__dict__[name] = record
        return record

    def _common(self, args) -> str:
        best = None
        for a in args:
            if isinstance(a, Value):
                t = compute_type(a.dtype)
                if best is None or _ORDER[t] > _ORDER[best]:
                    best = t
        if best is None:
            return self.dtype
        for a in args:
            if isinstance(a, float) and not is_float(best):
                return self.dtype if is_float(self.dtype) else "f32"
            if isinstance(a, int) and not isinstance(a, bool) and best == "bool":
                best = self.dtype if self.dtype != "bool" else "i64"
        return best

    def _as(self, a, t: str) -> Value:
        return self.values.cast(a, t) if isinstance(a, Value) else self.values.const(a, t)

    def _where(self, c, a, b):
        if not isinstance(c, Value):
            return a if c else b
        t = self._common((a, b))
        return self.values.make("where", (self._as(c, "bool"), self._as(a, t), self._as(b, t)), t)

    def _cast(self, x, dtype):
        t = dtype if isinstance(dtype, str) else short(dtype)
        return self._as(x, t)

    def _pow(self, x, y):
        """Small constant exponents as products, as NumPy does for squares."""
        if not isinstance(x, Value) and not isinstance(y, Value):
            return np.power(x, y).item()
        t = self._common((x, y))
        v = self._as(x, t)
        e = y.args[0] if isinstance(y, Value) and y.op == "const" else y if not isinstance(y, Value) else None
        if e is not None:
            if e == 2:
                return self.values.make("mul", (v, v), t)
            if e == 3:
                return self.values.make("mul", (self.values.make("mul", (v, v), t), v), t)
            if e == 1:
                return v
            if e == 0.5 and is_float(t):
                return self.values.make("sqrt", (v,), t)
            if e == -1 and is_float(t):
                return self.values.make("reciprocal", (v,), t)
            if e == 0:
                return self.values.const(1, t)
        return self.values.make("pow", (v, self._as(y, t)), t)


# Nodes of a graph that may be computed one in another before a result gets memory.
DEEPEST = 100
HEAVY = frozenset(
    "exp expm1 log log1p log2 tanh erf normal_cdf sigmoid sin cos tan pow floordiv remainder fmod".split()
)


def weight(values) -> float:
    """Rough cost of one element, in simple vector instructions."""
    w = 0.0
    for v in values:
        if v.op in HEAVY:
            w += 20
        elif v.op in ("div", "sqrt", "rsqrt", "reciprocal"):
            w += 4
        elif v.op not in ("const", "index"):
            w += 1
    return w
