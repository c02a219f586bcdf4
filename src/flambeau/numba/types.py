"""The types of signatures: ``float64(float64[:], int32)``, as objects or as text.

A signature converts numbers as Numba does, and says which arrays a function takes; nothing is compiled from it, since the types of a call decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ArrayType", "NumberType", "Signature", "TupleType", "described", "signature_of"]


class Type:
    def __getitem__(self, key) -> ArrayType:
        """``float64[:, ::1]``: an array; ``1`` as a step says where neighbours lie side by side."""
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(k, slice) and k.start is k.stop is None and k.step in (None, 1) for k in keys):
            raise TypeError(f"{self}[{key}] is no array type: it wants slices like [:] and [:, ::1]")
        layout = "C" if keys[-1].step == 1 else "F" if keys[0].step == 1 else "A"
        return ArrayType(self, len(keys), layout)


@dataclass(frozen=True)
class NumberType(Type):
    """``dtype`` is None for void. Called with types it is a signature, with a number that number in the type, as in Numba."""

    name: str
    dtype: np.dtype | None

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *given) -> Any:
        if len(given) == 1 and not isinstance(given[0], Type):
            return self.number(given[0])
        return Signature(tuple(given), self)

    def number(self, x):
        """A number as a function of this signature gets it: Python's, for what NumPy computes with in 64 bits."""
        if self.dtype is None:
            raise TypeError("void has no values")
        value = self.dtype.type(x)
        return value.item() if self.dtype.kind == "b" or self.dtype in ("i8", "f8", "c16") else value

    def takes(self, x) -> bool:
        return isinstance(x, (bool, int, float, complex, np.generic)) and _fits(np.asarray(x).dtype, self.dtype)

    def given(self, x):
        return self.number(x)


@dataclass(frozen=True)
class ArrayType(Type):
    of: Type
    ndim: int
    layout: str

    def __repr__(self) -> str:
        return f"{self.of}[{', '.join([':'] * self.ndim)}]"

    def __call__(self, *given) -> Signature:
        return Signature(tuple(given), self)

    def takes(self, x) -> bool:
        if not isinstance(x, np.ndarray) or x.ndim != self.ndim or x.dtype != getattr(self.of, "dtype", None):
            return False
        return self.layout == "A" or x.flags.c_contiguous if self.layout != "F" else x.flags.f_contiguous

    def given(self, x):
        return x


@dataclass(frozen=True)
class TupleType(Type):
    items: tuple[Type, ...]

    def takes(self, x) -> bool:
        return isinstance(x, tuple) and len(x) == len(self.items) and all(t.takes(y) for t, y in zip(self.items, x))

    def given(self, x):
        return tuple(t.given(y) for t, y in zip(self.items, x))


@dataclass(frozen=True)
class Signature(Type):
    """``result`` is None where only the arguments are given."""

    arguments: tuple[Any, ...]
    result: Any = None

    def takes(self, args) -> bool:
        return len(args) == len(self.arguments) and all(t.takes(x) for t, x in zip(self.arguments, args))


def described(x) -> str:
    """The type of an argument as Numba's errors name it."""
    if isinstance(x, np.ndarray):
        layout = "C" if x.flags.c_contiguous else "F" if x.flags.f_contiguous else "A"
        return f"array({x.dtype}, {x.ndim}d, {layout})"
    return str(np.asarray(x).dtype) if isinstance(x, bool | int | float | complex | np.generic) else type(x).__name__


def _fits(given: np.dtype, wanted: np.dtype | None) -> bool:
    """Whether a number may be converted: integers and floats into each other, nothing complex into them."""
    order = "biufc"
    return wanted is not None and (
        order.index(given.kind) <= order.index(wanted.kind) or given.kind in "iuf" and wanted.kind in "iuf"
    )


_DTYPES = {
    "boolean": "?", "bool_": "?", "b1": "?", "void": None, "none": None,
    **{f"{k}int{8 * n}": f"{k[:1] or 'i'}{n}" for k in ("", "u") for n in (1, 2, 4, 8)},
    **{f"{k}{n}": f"{k}{n}" for k in "iu" for n in (1, 2, 4, 8)},
    "float32": "f4", "float64": "f8", "complex64": "c8", "complex128": "c16", "f4": "f4", "f8": "f8", "c8": "c8", "c16": "c16",
    "byte": "u1", "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int_": "i8", "uint": "u8", "intc": "i4", "uintc": "u4",
    "intp": "i8", "uintp": "u8", "long_": "i8", "ulong": "u8", "longlong": "i8", "ulonglong": "u8", "float_": "f8", "double": "f8",
}  # fmt: skip
NAMES = {name: NumberType(name, None if d is None else np.dtype(d)) for name, d in _DTYPES.items()}
globals().update(NAMES)


def Tuple(items) -> TupleType:  # noqa: N802  # Numba's name
    return TupleType(tuple(items))


def UniTuple(item, count: int) -> TupleType:  # noqa: N802  # Numba's name
    return TupleType((item,) * count)


def signature_of(x) -> Signature:
    """A signature from what a decorator is given: one, its text, or a tuple of types of the arguments."""
    if isinstance(x, str):
        try:
            x = eval(x, {"__builtins__": {}}, {**NAMES, "Tuple": Tuple, "UniTuple": UniTuple})
        except Exception as e:
            raise TypeError(f"{x!r} is no signature ({e})") from None
    if isinstance(x, tuple):
        x = Signature(x)
    if not isinstance(x, Signature) or not all(isinstance(t, Type) for t in x.arguments):
        raise TypeError(f"invalid signature: {x!r}")
    return x
