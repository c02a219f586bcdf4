"""Arguments of an overload that a program calls by name (``torch.ops.aten.add.Tensor``): RuntimeError in PyTorch's words for what the schema
doesn't take. Native code (csrc/core/overload_check.c) lets pass what surely fits, and calls of the package's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _C
from ..base.device import Device, as_device
from ..base.dtypes import DType
from ..base.memory_format import MemoryFormat
from ..base.symint import NUMBERS
from .generator import Generator, is_engine
from .schema import Argument
from .tensor import Layout

_NAMES = {"Scalar": "number", "SymInt": "int", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}
_PLAIN = (int, float, np.generic, *NUMBERS)


def _one_number(v) -> bool:
    return isinstance(v, _C.TensorBase) and (v._array is None or v._array.size == 1)


def _is_tensor(v) -> bool:
    """Whether it is one, or of a class that takes operators over."""
    return isinstance(v, _C.TensorBase) or hasattr(type(v), "__torch_function__")


def _tensor(v) -> bool:
    return _is_tensor(v) or isinstance(v, (complex, *_PLAIN))


def _scalar(v) -> bool:
    return isinstance(v, (complex, *_PLAIN)) or _one_number(v)


def _int(v) -> bool:
    if isinstance(v, int):
        return -(1 << 63) <= v < 1 << 63
    return (
        isinstance(v, (np.integer, np.bool_, *NUMBERS))
        or hasattr(v, "__index__")
        and (not isinstance(v, _C.TensorBase) or _one_number(v))
    )


def _float(v) -> bool:
    return isinstance(v, _PLAIN) or _one_number(v)


def _bool(v) -> bool:
    return v is None or _scalar(v)


def _device(v) -> bool:
    # The error of as_device tells of a device that there isn't.
    return isinstance(v, (Device, str)) and as_device(v) is not None


_TAKES: dict[str, Callable[[object], bool]] = {
    "Tensor": _tensor,
    "Scalar": _scalar,
    "int": _int,
    "SymInt": _int,
    "float": _float,
    "bool": _bool,
    "str": lambda v: isinstance(v, (str, bytes)),
    "ScalarType": lambda v: isinstance(v, (DType, type)),
    "Layout": lambda v: isinstance(v, Layout),
    "MemoryFormat": lambda v: isinstance(v, MemoryFormat),
    "Device": _device,
    "Generator": lambda v: isinstance(v, Generator) or is_engine(v),
}

# The same where the call has failed: what an operator may take beyond this was at fault.
_SURELY_TAKES = _TAKES | {
    "Tensor": lambda v: isinstance(v, _C.TensorBase),
    "Scalar": lambda v: isinstance(v, (complex, int, float, *NUMBERS)),
    "int": lambda v: isinstance(v, (int, *NUMBERS)),
    "SymInt": lambda v: isinstance(v, (int, *NUMBERS)),
}
# What Python and NumPy say of objects they can't use.
_OF_PYTHON = (AttributeError, KeyError, TypeError, ValueError)


def _takes(a: Argument, v, kinds: dict) -> bool:
    takes = kinds.get(a.type)
    if v is None:
        return a.optional or a.type in ("bool", "Tensor") and not a.is_list
    # None: a type of the program's own.
    if takes is None:
        return True
    if not a.is_list:
        return takes(v)
    if isinstance(v, _C.TensorBase):
        return a.type == "Tensor" and a.elements_optional
    # int[2]: one number stands for all.
    if a.type != "Tensor" and a.size is not None and takes(v):
        return True
    if isinstance(v, (str, bytes, dict)) or not hasattr(v, "__iter__") or not hasattr(v, "__len__"):
        return False
    if a.type == "Tensor":
        return all(_is_tensor(x) or x is None and a.elements_optional for x in v)
    return all(x is not None and takes(x) for x in v)


def _type_name(a: Argument) -> str:
    name = _NAMES.get(a.type, a.type)
    if a.is_list:
        name = f"List[Optional[{name}]]" if a.elements_optional else f"List[{name}]"
    return f"Optional[{name}]" if a.optional else name


def _check_argument(op, position: int, a: Argument, v, kinds: dict, failure: BaseException | None) -> None:
    schema = op._schema
    if not _takes(a, v, kinds):
        raise RuntimeError(
            f"{schema.name}() Expected a value of type '{_type_name(a)}' for argument '{a.name}' but instead found type '{type(v).__name__}'.\n"
            f"Position: {position}\nValue: {v!r}\nDeclaration: {schema}"
        ) from failure
    # Kernels of the program's own are given None: an undefined tensor.
    if v is None and a.type == "Tensor" and not a.optional and not a.is_list and op.namespace == "aten":
        raise RuntimeError(
            f"Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #{position} '{a.name}'"
        )


def check_overload(op, args: tuple, kwargs: dict, failure: BaseException | None) -> None:
    """RuntimeError where ``op(*args, **kwargs)`` isn't a call of the operator's schema. ``failure``: the error of a call that wasn't refused
    before; it stays, unless Python or NumPy raised it and an argument is at fault."""
    if failure is not None and type(failure) not in _OF_PYTHON:
        return
    kinds = _TAKES if failure is None else _SURELY_TAKES
    schema, arguments = op._schema, op._schema.arguments
    if len(args) > sum(not a.kwarg_only for a in arguments) or len(args) + len(kwargs) > len(arguments):
        raise RuntimeError(
            f"{schema.name}() expected at most {len(arguments)} argument(s) but received {len(args) + len(kwargs)} argument(s). Declaration: {schema}"
        )
    names = [a.name for a in arguments]
    for position, a in enumerate(arguments):
        if position < len(args):
            v = args[position]
        elif a.name in kwargs:
            v = kwargs[a.name]
        elif a.has_default:
            continue
        else:
            raise RuntimeError(f"{schema.name}() is missing value for argument '{a.name}'. Declaration: {schema}")
        _check_argument(op, position, a, v, kinds, failure)
    for name in kwargs:
        if name not in names:
            raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{schema.name}'. Schema: {schema}")
        if names.index(name) < len(args):
            raise RuntimeError(f"Argument '{name}' specified both as positional and keyword argument. Schema: {schema}")


def checked(op) -> Callable:
    """A call of the operator as a program's own: its arguments are looked at wherever it is made."""

    def call(*args, **kwargs):
        check_overload(op, args, kwargs, None)
        return op(*args, **kwargs)

    return call


_C.set_handlers(overload=check_overload)
