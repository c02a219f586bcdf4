"""Element types and their promotion.

A :class:`DType` is a singleton; ``.np`` is the NumPy dtype (bfloat16 and the float8 types are ml_dtypes'). Promotion follows
PyTorch's lattice, which is not NumPy's: an integer with a float gives that float, whatever the widths.
"""

from __future__ import annotations

import functools
import math

import ml_dtypes
import numpy as np

from .. import _C
from .public import public_in

__all__ = [
    "DType",
    "as_element",
    "category",
    "check_number",
    "finfo",
    "from_numpy",
    "get_default_dtype",
    "iinfo",
    "limits",
    "may_overflow",
    "overflow",
    "promote_types",
    "result_type",
    "set_default_dtype",
    "sortable",
]


@public_in("", "dtype")
class DType:
    """An element type. ``category``: 0 bool, 1 integer, 2 floating, 3 complex; ``short`` is the name used in graph printing (f32),
    ``scalar_type`` the old one that tensor types and errors have (Float)."""

    __slots__ = (
        "name",
        "np",
        "short",
        "scalar_type",
        "category",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "itemsize",
    )

    def __init__(self, name, np_dtype, short, scalar_type):
        self.name = name
        self.np = np.dtype(np_dtype)
        self.short = short
        self.scalar_type = scalar_type
        self.is_complex = self.np.kind == "c"
        self.is_floating_point = not self.is_complex and self.np.kind not in "biu"
        self.category = {"b": 0, "i": 1, "u": 1, "c": 3}.get(self.np.kind, 2)
        self.is_signed = self.np.kind not in "bu"
        self.itemsize = self.np.itemsize

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return (_by_name, (self.name,))

    def to_complex(self):
        if self.category < 2:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_type}")
        return {"float64": complex128, "complex128": complex128}.get(self.name, complex64)

    def to_real(self):
        return {"complex128": float64, "complex64": float32}.get(self.name, self)


def _by_name(name):
    return globals()[name]


_TYPE_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
    "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int", "float32": "float", "float64": "double",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def c_name(dtype: DType) -> str:
    """What PyTorch's errors call the elements of a tensor: "float", "long int"."""
    return _TYPE_NAMES.get(dtype.name, dtype.name)


bool_ = DType("bool", np.bool_, "b8", "Bool")
uint8 = DType("uint8", np.uint8, "u8", "Byte")
uint16 = DType("uint16", np.uint16, "u16", "UInt16")
uint32 = DType("uint32", np.uint32, "u32", "UInt32")
uint64 = DType("uint64", np.uint64, "u64", "UInt64")
int8 = DType("int8", np.int8, "i8", "Char")
int16 = DType("int16", np.int16, "i16", "Short")
int32 = DType("int32", np.int32, "i32", "Int")
int64 = DType("int64", np.int64, "i64", "Long")
float16 = DType("float16", np.float16, "f16", "Half")
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, "bf16", "BFloat16")
float8_e4m3fn = DType("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "f8e4m3fn", "Float8_e4m3fn")
float8_e5m2 = DType("float8_e5m2", ml_dtypes.float8_e5m2, "f8e5m2", "Float8_e5m2")
float32 = DType("float32", np.float32, "f32", "Float")
float64 = DType("float64", np.float64, "f64", "Double")
complex64 = DType("complex64", np.complex64, "c64", "ComplexFloat")
complex128 = DType("complex128", np.complex128, "c128", "ComplexDouble")

ALL = (
    bool_,
    uint8,
    uint16,
    uint32,
    uint64,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float32,
    float64,
    complex64,
    complex128,
)
# What came after typed tensors and typed storages (FloatTensor, FloatStorage) and has none.
_FLOAT8 = frozenset((float8_e4m3fn, float8_e5m2))
LATE = frozenset((uint16, uint32, uint64, float8_e4m3fn, float8_e5m2))
globals()["bool"] = bool_  # DType.__reduce__ finds it by name


def saturated(array, dtype):
    """What is to be converted to a NumPy dtype: beyond float8_e4m3fn, which has no infinity, its greatest number."""
    if dtype == _E4M3 and array.dtype != dtype:
        return np.clip(array.astype(np.float32), -448, 448)
    return array


_E4M3 = float8_e4m3fn.np


class NamedDType(DType):
    """A dtype of PyTorch's that can be named, compared and asked for its facts; tensors of it are not built."""

    __slots__ = ()

    def __init__(self, name: str, scalar_type: str, itemsize: int = 1):
        self.name, self.short, self.scalar_type, self.itemsize = name, name, scalar_type, itemsize
        self.is_floating_point, self.is_complex = name.startswith("float"), name.startswith("complex")
        self.is_signed = name.startswith(("int", "complex")) or name.endswith("fnuz")
        self.category = 3 if self.is_complex else 2 if self.is_floating_point else 1

    @property
    def np(self):
        raise NotImplementedError(f"tensors of dtype {self} are not built")


_NAMED = {
    "complex32": NamedDType("complex32", "ComplexHalf", 4),
    "float4_e2m1fn_x2": NamedDType("float4_e2m1fn_x2", "Float4_e2m1fn_x2"),
    "float8_e4m3fnuz": NamedDType("float8_e4m3fnuz", "Float8_e4m3fnuz"),
    "float8_e5m2fnuz": NamedDType("float8_e5m2fnuz", "Float8_e5m2fnuz"),
    "float8_e8m0fnu": NamedDType("float8_e8m0fnu", "Float8_e8m0fnu"),
    "bit": NamedDType("bit", "Bit"),
    **{f"bits{n}": NamedDType(f"bits{n}", f"Bits{n}", 2 if n == "16" else 1) for n in ("16", "1x8", "2x4", "4x2", "8")},
    **{f"int{n}": NamedDType(f"int{n}", f"Int{n}") for n in range(1, 8)},
    **{f"uint{n}": NamedDType(f"uint{n}", f"UInt{n}") for n in range(1, 8)},
    **{f"q{n}": NamedDType(f"q{n}", f"Q{'U' if n[0] == 'u' else ''}Int{n.removeprefix('u')[3:]}", 4 if n == "int32" else 1)
       for n in ("int32", "int8", "uint2x4", "uint4x2", "uint8")},
}  # fmt: skip
globals().update(_NAMED)
# Those that quantised tensors have, by statements that type checkers see.
qint8, quint8, qint32, quint4x2 = (_NAMED[name] for name in ("qint8", "quint8", "qint32", "quint4x2"))
BY_NUMPY = {d.np: d for d in ALL}
BY_NUMPY[np.dtype("longlong")] = int64
BY_NUMPY[np.dtype("ulonglong")] = uint64

_default = float32


def get_default_dtype() -> DType:
    """dtype of floating-point results that nothing else determines (float32 unless set)."""
    return _default


def set_default_dtype(dtype: DType) -> None:
    """Set the default floating dtype. TypeError unless ``dtype`` is floating."""
    global _default
    if not isinstance(dtype, DType) or not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = dtype
    _C.forget_call_plans()  # they were worked out for the dtype before


def from_numpy(np_dtype) -> DType:
    """The DType of a NumPy dtype. TypeError for one that tensors don't have."""
    np_dtype = np.dtype(np_dtype)
    found = BY_NUMPY.get(np_dtype)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {np_dtype}. The only supported types are: float64, float32, float16, "
            "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    return found


def of_scalar(value) -> DType:
    """dtype that a Python number brings into promotion."""
    if isinstance(value, (bool_type, np.bool_)):
        return bool_
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise OverflowError("int too big to convert")
        return int64
    if isinstance(value, float):
        return _default
    if isinstance(value, complex):
        return _default.to_complex()
    kind = getattr(value, "__sym__", None)
    if kind is not None:
        return {"int": int64, "float": _default, "bool": bool_}[kind]
    raise TypeError(f"expected a number, got {type(value).__name__}")


bool_type = type(True)  # noqa: UP003  (`bool` is a dtype in this module's users)


@functools.cache
def promote_types(a: DType, b: DType) -> DType:
    """Smallest dtype of PyTorch's lattice that both convert to. RuntimeError for a float of 8 bits beside another dtype, TypeError for others."""
    for k, x in enumerate((a, b), 1):
        if not isinstance(x, DType):
            raise TypeError(
                f"promote_types(): argument 'type{k}' (position {k}) must be torch.dtype, not {type(x).__name__}"
            )
    if a is b:
        return a
    if a in _FLOAT8 or b in _FLOAT8:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a.scalar_type} and {b.scalar_type}"
        )
    if a.category != b.category:
        lo, hi = (a, b) if a.category < b.category else (b, a)
        if hi.is_complex and lo.is_floating_point:
            return complex128 if float64 in (lo,) or hi is complex128 else complex64
        return hi
    if a.is_complex:
        return complex128
    if a.is_floating_point:
        wide = {float64: 4, float32: 3, float16: 2, bfloat16: 2}
        wa, wb = wide.get(a, 1), wide.get(b, 1)
        return (a if wa > wb else b) if wa != wb else float32
    return BY_NUMPY[np.promote_types(a.np, b.np)] if np.promote_types(a.np, b.np).kind != "f" else int64


_C_NAMES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


@functools.cache
def limits(dtype: DType):
    """(lowest, highest) number that converts to the dtype; a negative number wraps to an unsigned one."""
    if dtype.category == 1:
        high = int(np.iinfo(dtype.np).max)
        return (-high if dtype.np.kind == "u" else int(np.iinfo(dtype.np).min)), high
    high = finfo(dtype).max
    return -high, high


def check_number(value, dtype: DType) -> None:
    """RuntimeError when a Python number can't be converted to ``dtype`` without overflow (infinities and nan are floats)."""
    if dtype.category == 0:
        return
    if dtype.category == 3:
        inside = _complex_holds(value, dtype)
    elif value.__class__ is complex:
        inside = value.imag == 0
    else:
        inside = _real_holds(value, dtype)
    if not inside:
        raise RuntimeError(f"{overflow(dtype)}: {value}")


def overflow(dtype: DType) -> str:
    """What is told of a value that ``dtype`` can't hold."""
    return f"value cannot be converted to type {_C_NAMES.get(dtype.name, dtype.name)} without overflow"


def _complex_holds(value, dtype: DType) -> bool:
    """Whether both parts fit; symbolic numbers are real ones."""
    if value.__class__ is complex:
        part = dtype.to_real()
        return _real_holds(value.real, part) and _real_holds(value.imag, part)
    return value.__class__ is not float or _real_holds(value, dtype.to_real())


def _real_holds(value, dtype: DType) -> bool:
    low, high = limits(dtype)
    fraction = value.__class__ is float or getattr(value, "__sym__", None) == "float"
    if dtype.category == 2:
        return low <= value <= high or fraction and not -math.inf < value < math.inf
    # Only integers wrap to unsigned numbers, of the symbolic ones too.
    if fraction and low < 0 and dtype.np.kind == "u":
        low = 0
    return low <= value <= high


def as_element(value, dtype: DType):
    """A Python number that NumPy writes into an array of ``dtype``. Of an integer dtype it is a scalar: fractions cut off, numbers beyond its
    range wrapped as in C.

    RuntimeError for a complex number with an imaginary part, unless the dtype is complex or bool.
    """
    if value.__class__ is complex and dtype.category in (1, 2):
        check_number(value, dtype)
        value = value.real
    if dtype.category != 1:
        return float(value) if dtype.category == 2 else value
    if value.__class__ is float:
        value = int(value) if -math.inf < value < math.inf else 0
    bits = dtype.np.itemsize * 8
    value = int(value) & ((1 << bits) - 1)
    if dtype.np.kind == "i" and value >> (bits - 1):
        value -= 1 << bits
    return dtype.np.type(value)


def result_type(*operands) -> DType:
    """dtype of an operation on tensors (anything with ``dtype`` and ``ndim``) and Python numbers.

    Tensors with dimensions decide; a zero-dimensional tensor or a number only counts when its category is higher.
    """
    dims = zero = number = None
    numbers = []
    for x in operands:
        d = getattr(x, "dtype", None)
        if isinstance(d, DType):
            if len(x.shape):
                dims = d if dims is None else promote_types(dims, d)
            else:
                zero = d if zero is None else promote_types(zero, d)
        else:
            numbers.append(x)
    floating = any(d is not None and d.category > int64.category for d in (dims, zero))
    for x in numbers:
        d = int64 if floating and type(x) is int else of_scalar(x)  # floating point takes integers beyond 64 bits
        number = d if number is None else promote_types(number, d)
    out = dims
    for lower in (zero, number):
        if lower is None:
            continue
        if out is None:
            out = lower
        elif lower.category > out.category:
            # Floating point keeps its width beside a complex number without dimensions.
            out = out.to_complex() if out.category == 2 else promote_types(out, lower)
    return out


@public_in("")
class finfo:
    """Limits of a floating dtype: eps, max, min, tiny, smallest_normal, resolution, bits."""

    def __init__(self, dtype: DType | None = None):
        dtype = dtype or _default
        if not isinstance(dtype, DType):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be torch.dtype, not {type(dtype).__name__}")
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{dtype}'")
        f = (ml_dtypes.finfo if dtype.np.kind == "V" or dtype.name.startswith(("bfloat", "float8")) else np.finfo)(
            dtype.np
        )
        self.dtype, self.bits = dtype.to_real().name, f.bits
        self.eps, self.max, self.min = float(f.eps), float(f.max), float(f.min)
        self.tiny = self.smallest_normal = float(f.tiny)
        self.resolution = 10.0**-f.precision

    def __repr__(self):
        facts = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{fact}={getattr(self, fact):g}' for fact in facts)}, dtype={self.dtype})"


@public_in("")
class iinfo:
    """Limits of an integer dtype: min, max, bits."""

    def __init__(self, dtype: DType):
        if not isinstance(dtype, DType):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {type(dtype).__name__}")
        if dtype.category != 1:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{dtype}'")
        i = np.iinfo(dtype.np)
        self.dtype, self.bits, self.min, self.max = dtype.name, i.bits, int(i.min), int(i.max)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def category(dtype: DType) -> int:
    return dtype.category


def sortable(array: np.ndarray) -> np.ndarray:
    """``array`` as NumPy can sort, search and compare it: 16-bit (and narrower) floating point as float32, in which nan has its place."""
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype == np.float16 else array


def may_overflow(given: np.dtype, dtype: np.dtype) -> bool:
    """Whether a NumPy number of the dtype ``given`` may not fit an element of ``dtype``, signed integers: NumPy goes through int() there, and raises.
    A float beyond 32 or 64 bits raises a flag."""
    cut = given.kind in "iu" or (given.kind == "f" and dtype.itemsize < 4)
    return dtype.kind == "i" and cut and not np.can_cast(given, dtype)
