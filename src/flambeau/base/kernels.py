"""The native kernels of csrc/runtime/kernels.def: ``kernels.scan([a], [out], dim=0, product=False, element=Element.F32)`` runs one.

Operands and results are ndarrays in the order of the declaration, None for one that isn't given. Numbers are given by name, each of them;
messages of errors may be left out. The enumerations of the declarations are IntEnums: ``kernels.Order``, ``kernels.Conv``, ...
"""

from __future__ import annotations

import functools
import struct
from typing import Any

from .. import _runtime
from . import enums
from .enums import Element, Field

__all__ = ["ELEMENTS", "ORDERED", "element", "find", "given", "named"]


# Types of elements by the name of their dtype in NumPy.
ELEMENTS = {
    **{"float32": Element.F32, "float64": Element.F64, "float16": Element.F16, "bfloat16": Element.BF16},
    **{"complex64": Element.C64, "complex128": Element.C128, "int64": Element.I64, "int32": Element.I32},
    **{"int16": Element.I16, "int8": Element.I8, "uint8": Element.U8, "bool": Element.U8},
}


ORDERED = tuple(name for name in ELEMENTS if not name.startswith("complex"))  # dtypes whose elements have an order


@functools.cache
def element(dtype, known=tuple(ELEMENTS)) -> Any:
    """The Element of a dtype (NumPy's, or one of flambeau's); None unless its name is among ``known``."""
    return ELEMENTS.get(dtype.name) if dtype.name in known else None


def given(kernel, operands, results) -> tuple[bool, ...]:
    """Whether each view of a kernel is among these, in the order of the declaration. TypeError for one too many, or one that has to be there."""
    found = []
    for role, parts in ((Field.OPERAND, operands), (Field.RESULT, results)):
        fields = [f for f in kernel.fields if f[1] == role]
        wanted = [optional for _, _, count, optional, _ in fields for _ in range(count)]
        there = [x is not None for x in parts] + [False] * (len(wanted) - len(parts))
        if len(there) > len(wanted) or not all(here or optional for here, optional in zip(there, wanted)):
            raise TypeError(f"{kernel.name}: {len(parts)} views are not the {role.name.lower()}s that it takes")
        found += there
    return tuple(found)


def named(kernel, numbers) -> dict[str, Any]:
    """Packed numbers by name; those of an array or list together."""
    rest, found = iter(numbers), {}
    for name, kind, count, _, _ in kernel.fields:
        if kind > Field.RESULT:
            length = next(rest) if kind == Field.LIST else count
            values = tuple(next(rest) for _ in range(count))
            if kind == Field.REAL:
                values = struct.unpack("d", struct.pack("q", *values))
            found[name] = values[:length] if kind in (Field.ARRAY, Field.LIST) else values[0]
    return found


def find(name: str) -> Any:
    """The kernel of this name, or None."""
    return _runtime.KERNELS.get(name)


globals().update(_runtime.KERNELS)


def __getattr__(name: str) -> Any:
    """Enumerations. AttributeError for what is neither one nor a kernel."""
    return getattr(enums, name)
