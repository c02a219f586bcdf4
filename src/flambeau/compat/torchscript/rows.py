"""Operators of TorchScript that aren't ATen's: on numbers, text, lists and dicts, and what it asks tensors.

A row is a signature in TorchScript's types (small letters are variables, ``number`` any number, a result ``=`` the promoted type of the arguments)
and the function. Several rows of a name are tried in order.
Semantics are those of ``torch/csrc/jit/runtime/register_prim_ops.cpp`` as its schemas state
them: ``div`` and ``pow`` of ints are floats, ``round`` gives one, and a float divided by zero is infinite.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable

from ...base.device import Device
from . import values
from .types import Type, from_node, parse
from .values import torch

__all__ = ["PRIM", "ROWS", "Row"]


class Row:
    """``takes``: the types of positional arguments, ``optional`` those of keywords."""

    def __init__(self, signature: str, fn: Callable, keywords: dict[str, str] | None = None):
        takes, _, gives = signature.rpartition("->")
        node = ast.parse(f"[{takes}]", mode="eval").body
        self.takes: tuple[Type, ...] = tuple(map(from_node, node.elts))  # type: ignore[attr-defined]
        self.gives = None if gives.strip() == "=" else parse(gives.strip())
        self.fn = fn
        self.keywords = {name: parse(t) for name, t in (keywords or {}).items()}


ROWS: dict[str, list[Row]] = {}
PRIM: dict[str, list[Row]] = {}


def row(names: str, fn: Callable, *signatures: str, table=None, **keywords: str) -> None:
    for name in names.split():
        held = (ROWS if table is None else table).setdefault(name, [])
        held += [Row(s, fn, keywords) for s in signatures]


def prim(names: str, fn: Callable, *signatures: str) -> None:
    row(names, fn, *signatures, table=PRIM)


# -- numbers -----------------------------------------------------------------------------------------------------------
_TWO = "number, number -> ="


def _over(a: float, zero: float) -> float:
    """A float divided by zero: nothing is raised."""
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, zero)


for _name, _fn in {"add": operator.add, "sub": operator.sub, "mul": operator.mul}.items():
    row(_name, _fn, _TWO)
for _name, _fn in {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}.items():
    row(_name, _fn, "number, number -> bool", "str, str -> bool")
for _name, _fn in {"eq": operator.eq, "ne": operator.ne}.items():
    row(_name, _fn, "Device, Device -> bool", "List[int], List[int] -> bool", "List[float], List[float] -> bool")
    row(_name, _fn, "List[bool], List[bool] -> bool", "List[str], List[str] -> bool", "Enum, Enum -> bool")
    row(_name, _fn, "NoneType, NoneType -> bool")
row("neg", operator.neg, "number -> =")
row("floordiv", operator.floordiv, "int, int -> int")
row("floordiv", lambda a, b: a // b if b else _over(a, b), _TWO)
row("remainder", operator.mod, "int, int -> int")
row("remainder", lambda a, b: a % b if b else math.nan, _TWO)
row("divmod", divmod, "int, int -> Tuple[int, int]", "number, number -> Tuple[float, float]")
row("div", operator.truediv, "complex, complex -> complex", "int, int -> float")
row("div", lambda a, b: a / b if b else _over(a, b), "number, number -> float")
row("pow", lambda a, b: a**b, "complex, complex -> complex")
row("pow", lambda a, b: float(a) ** b, "number, number -> float")
row("fmod", math.fmod, "number, number -> float")
row("mathremainder", math.remainder, "number, number -> float")
row("copysign", math.copysign, "number, number -> float")
row("atan2", math.atan2, "number, number -> float")
row("gcd", math.gcd, "int, int -> int")
row("ldexp", math.ldexp, "float, int -> float")
row("frexp", math.frexp, "float -> Tuple[float, int]")
row("modf", math.modf, "float -> Tuple[float, float]")
row("factorial", math.factorial, "int -> int")
row("log", math.log, "number -> float", "number, number -> float")
for _name in (
    "exp expm1 log1p log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc gamma lgamma "
    "degrees radians fabs"
).split():
    row(_name, getattr(math, _name), "number -> float")
row("floor", math.floor, "number -> int")
row("ceil", math.ceil, "number -> int")
row("round", lambda a: math.copysign(float(round(a)), a), "number -> float")
row("isfinite", math.isfinite, "float -> bool")
row("isinf", math.isinf, "float -> bool")
row("isnan", math.isnan, "float -> bool")
row("__not__", operator.not_, "bool -> bool")
row("__and__", operator.and_, "bool, bool -> bool", "int, int -> int")
row("__or__", operator.or_, "bool, bool -> bool", "int, int -> int")
row("__xor__", operator.xor, "bool, bool -> bool", "int, int -> int")
row("__lshift__", operator.lshift, "int, int -> int")
row("__rshift__", operator.rshift, "int, int -> int")
row("__is__", operator.is_, "a, b -> bool")
row("__isnot__", operator.is_not, "a, b -> bool")
row("__range_length", lambda lo, hi, step: len(range(lo, hi, step)), "int, int, int -> int")
row("__derive_index", lambda index, start, step: start + index * step, "int, int, int -> int")
row("__round_to_zero_floordiv", lambda a, b: _toward_zero(a, b), "int, int -> int")
row("bin", bin, "int -> str")
row("hex", hex, "int -> str")
row("oct", oct, "int -> str")
row("chr", chr, "int -> str")
row("ord", ord, "str -> int")
row("hash", hash, "t -> int")
row("str", values.shown, "t -> str")
row("Int", int, "number -> int", "Tensor -> int", "str -> int")
row("Float", float, "number -> float", "Tensor -> float", "str -> float")
row("Bool", bool, "number -> bool", "Tensor -> bool")
row("IntImplicit", int, "Tensor -> int")
row("FloatImplicit", float, "Tensor -> float")
row("ScalarImplicit", lambda x: x.item(), "Tensor -> number")
row("Complex", complex, "number -> complex", "Tensor -> complex", "number, number -> complex")


def _toward_zero(a: int, b: int) -> int:
    return a // b if (a < 0) == (b < 0) else -(-a // b)


# Text is bytes in UTF-8 there: lengths and places count these.
_BYTES = ("utf-8", "surrogateescape")

# -- lists -------------------------------------------------------------------------------------------------------------


def _slice(xs, start=None, end=None, step=1):
    if isinstance(xs, str) and not xs.isascii():
        return xs.encode(*_BYTES)[start:end:step].decode(*_BYTES)
    return xs[start:end:step]


def _length(text: str) -> int:
    return len(text.encode(*_BYTES))


def character(text: str, at: int) -> str:
    """``text[at]`` by bytes."""
    return text[at] if text.isascii() else text.encode(*_BYTES)[at : at + 1 or None].decode(*_BYTES)


def _appended(xs, x):
    xs.append(x)
    return xs


def _extended(xs, other):
    xs.extend(other)


def _set(xs, at, x):
    xs[at] = x


def _delete(xs, at):
    del xs[at]


def _sort(xs, reverse=False):
    xs.sort(reverse=reverse)


def _times(xs, n):
    xs *= n
    return xs


row("len", len, "List[t] -> int", "Dict[k, v] -> int", "Tensor -> int")
row("len", _length, "str -> int")
row("append", _appended, "List[t], t -> List[t]")
row("extend", _extended, "List[t], List[t] -> NoneType")
row("insert", lambda xs, at, x: xs.insert(at, x), "List[t], int, t -> NoneType")
row("reverse", lambda xs: xs.reverse(), "List[t] -> NoneType")
row("clear", lambda xs: xs.clear(), "List[t] -> NoneType", "Dict[k, v] -> NoneType")
row(
    "pop",
    lambda xs, *at: xs.pop(*at),
    "List[t] -> t",
    "List[t], int -> t",
    "Dict[k, v], k -> v",
    "Dict[k, v], k, v -> v",
)
row("remove", lambda xs, x: xs.remove(x), "List[t], t -> NoneType")
row(
    "index", lambda xs, x, *places: xs.index(x, *places), "List[t], t -> int", "str, str -> int", "str, str, int -> int"
)
row("count", lambda xs, x: xs.count(x), "List[t], t -> int", "str, str -> int")
row("sort", _sort, "List[t] -> NoneType", "List[t], bool -> NoneType")
row("sorted", sorted, "List[t] -> List[t]")
row("copy", lambda xs: xs.copy(), "List[t] -> List[t]", "Dict[k, v] -> Dict[k, v]")
row("list", list, "List[t] -> List[t]", "str -> List[str]")
row("add", operator.add, "List[t], List[t] -> List[t]", "str, str -> str")
row("add_", operator.iadd, "List[t], List[t] -> List[t]")
row("mul", operator.mul, "List[t], int -> List[t]", "int, List[t] -> List[t]")
row("mul_", _times, "List[t], int -> List[t]")
row("select", operator.getitem, "List[t], int -> t")
row("__getitem__", operator.getitem, "List[t], int -> t", "Dict[k, v], k -> v")
row("__getitem__", character, "str, int -> str")
row("__contains__", operator.contains, "List[t], t -> bool", "Dict[k, v], k -> bool", "str, str -> bool")
for _of in ("List[t]", "str"):
    for _more in ("", ", Optional[int]", ", Optional[int], Optional[int]", ", Optional[int], Optional[int], int"):
        row("slice", _slice, f"{_of}{_more} -> {_of}")
row("_set_item", _set, "List[t], int, t -> NoneType", "Dict[k, v], k, v -> NoneType")
row("Delete", _delete, "List[t], int -> NoneType", "Dict[k, v], k -> NoneType")
row("sum", sum, "List[int] -> int", "List[bool] -> int", "List[float] -> float")
row("any", any, "List[int] -> bool", "List[bool] -> bool", "List[float] -> bool", "List[str] -> bool")
row("all", all, "List[int] -> bool", "List[bool] -> bool", "List[float] -> bool")
row("_infer_size", lambda a, b: list(torch.broadcast_shapes(a, b)), "List[int], List[int] -> List[int]")
row("broadcast_shapes", lambda *s: list(torch.broadcast_shapes(*s)), "List[int], List[int] -> List[int]")
row("Size", list, "List[int] -> List[int]")
row("_size_if_not_equal", lambda a, b: None if a == b else a, "List[int], List[int] -> Optional[List[int]]")
row("_unwrap_optional", lambda x: _unwrapped(x), "Optional[t] -> t")


def _unwrapped(x):
    if x is None:
        raise RuntimeError("Unwrapping null optional")
    return x


# -- dicts -------------------------------------------------------------------------------------------------------------
row("keys", lambda d: list(d.keys()), "Dict[k, v] -> List[k]")
row("values", lambda d: list(d.values()), "Dict[k, v] -> List[v]")
row("items", lambda d: list(d.items()), "Dict[k, v] -> List[Tuple[k, v]]")
row("get", lambda d, key: d.get(key), "Dict[k, v], k -> Optional[v]")
row("get", lambda d, key, default: d.get(key, default), "Dict[k, v], k, v -> v")
row("setdefault", lambda d, key, x: d.setdefault(key, x), "Dict[k, v], k, v -> v")
row("update", lambda d, other: d.update(other), "Dict[k, v], Dict[k, v] -> NoneType")
row("popitem", lambda d: d.popitem(), "Dict[k, v] -> Tuple[k, v]")
row("dict", dict, "Dict[k, v] -> Dict[k, v]", "List[Tuple[k, v]] -> Dict[k, v]")
row("dict", dict, " -> Dict[str, Tensor]")

# -- text --------------------------------------------------------------------------------------------------------------
for _name in (
    "capitalize isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper lower "
    "swapcase title upper"
).split():
    row(_name, getattr(str, _name), f"str -> {'bool' if _name.startswith('is') else 'str'}")
for _name in ("strip", "lstrip", "rstrip"):
    row(_name, getattr(str, _name), "str -> str", "str, str -> str")
for _name in ("startswith", "endswith"):
    row(_name, getattr(str, _name), "str, str -> bool", "str, str, int -> bool", "str, str, int, int -> bool")
for _name in ("find", "rfind", "rindex"):
    row(_name, getattr(str, _name), "str, str -> int", "str, str, int -> int")
for _name in ("center", "ljust", "rjust"):
    row(_name, getattr(str, _name), "str, int -> str", "str, int, str -> str")
for _name in ("partition", "rpartition"):
    row(_name, getattr(str, _name), "str, str -> Tuple[str, str, str]")
row("split", str.split, "str -> List[str]", "str, Optional[str] -> List[str]", "str, Optional[str], int -> List[str]")
row("rsplit", str.rsplit, "str, str -> List[str]", "str, str, int -> List[str]")
row("splitlines", str.splitlines, "str -> List[str]", "str, bool -> List[str]")
row("expandtabs", str.expandtabs, "str -> str", "str, int -> str")
row("join", str.join, "str, List[str] -> str")
row("replace", str.replace, "str, str, str -> str", "str, str, str, int -> str")


def formatted(text: str, *given) -> str:
    """``torch.format``: each ``{}`` of the text is the next argument."""
    parts = text.split("{}")
    if len(parts) - 1 > len(given):
        raise RuntimeError(f"Too few arguments for format string: {text}")
    return parts[0] + "".join(values.shown(x) + part for x, part in zip(given, parts[1:]))


def percent(text: str, *given) -> str:
    """``torch.percentFormat``: ``%`` of text, in which ``%s`` is as :func:`formatted` writes it."""
    kinds = re.findall(r"%[-+ #0-9.]*([a-zA-Z%])", text)
    kinds = [k for k in kinds if k != "%"]
    return text % tuple(values.shown(x) if k == "s" else x for k, x in zip(kinds, given))


# -- what tensors are asked --------------------------------------------------------------------------------------------


def _data(name: str) -> Callable:
    return lambda x: getattr(x, name)


def _tensor(data, dtype=None, device=None, requires_grad=False):
    return torch.tensor(data, dtype=values.dtype_of(dtype), device=device, requires_grad=requires_grad)


def _as_tensor(data, dtype=None, device=None):
    return torch.as_tensor(data, dtype=values.dtype_of(dtype), device=device)


def _warned(message: str, stacklevel: int = 2) -> None:
    warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)


_HOW = {"dtype": "Optional[int]", "device": "Optional[Device]"}
for _from in ("number", "List[t]"):
    row("tensor", _tensor, f"{_from} -> Tensor", **_HOW, requires_grad="bool")
    row("as_tensor", _as_tensor, f"{_from} -> Tensor", **_HOW)
row("as_tensor", _as_tensor, "Tensor -> Tensor", **_HOW)
row("_list_to_tensor", _tensor, "List[int] -> Tensor")
row("device", Device, "str -> Device", "str, int -> Device", "Device -> Device")
row("is_scripting", lambda: True, " -> bool")
row("_get_tracing_state", lambda: False, " -> bool")
row("has_torch_function", lambda x: False, "t -> bool")
row("warn", _warned, "str -> NoneType", "str, int -> NoneType")
row("wait", lambda x: x, "Future[t] -> t")
for _name in ("dtype", "layout"):
    prim(_name, lambda x, _name=_name: values.code_of(getattr(x, _name)), "Tensor -> int")
prim("device", _data("device"), "Tensor -> Device")
prim("shape", lambda x: list(x.size()), "Tensor -> List[int]")
for _name in (
    "requires_grad is_cuda is_cpu is_sparse is_sparse_csr is_quantized is_meta is_mkldnn is_nested is_mps is_xpu is_xla is_vulkan is_ipu is_mtia "
    "is_maia"
).split():
    prim(_name, lambda x, _name=_name: bool(getattr(x, _name, False)), "Tensor -> bool")
prim("ndim", lambda x: x.dim(), "Tensor -> int")
prim("itemsize", _data("itemsize"), "Tensor -> int")
prim("nbytes", _data("nbytes"), "Tensor -> int")
prim("data", _data("data"), "Tensor -> Tensor")
prim("grad", _data("grad"), "Tensor -> Optional[Tensor]")
prim("type", _data("type"), "Device -> str")
prim("index", _data("index"), "Device -> Optional[int]")
prim("name", lambda x: None, "Tensor -> Optional[str]")
prim("EnumName", _data("name"), "Enum -> str")
prim("NumToTensor", _tensor, "number -> Tensor")
prim("unchecked_unwrap_optional", lambda x: x, "Optional[t] -> t")
prim("rangelist", lambda n: list(range(n)), "int -> List[int]")
prim("tolist", lambda x, *_: x.tolist(), "Tensor, int, int -> Any", "Tensor -> Any")
prim("StringIndex", character, "str, int -> str")
prim("abs", abs, "number -> =", "Tensor -> Tensor")
for _name, _fn in {"min": min, "max": max}.items():
    prim(_name, _fn, _TWO, "List[t] -> t")
    prim(_name, _fn, "List[t], List[t] -> List[t]")
prim("IfThenElse", lambda c, a, b: a if c else b, "bool, t, t -> t")
prim("AutogradZero", lambda: None, " -> Any")
