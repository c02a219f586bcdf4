"""Which dtype an operator computes in and returns. Declared on the operator (``promote``, ``operands``, ``out``), never read off a body."""

from __future__ import annotations

import functools

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.device import CPU
from ..base.dtypes import DType, check_number, result_type
from .body import takes_complex
from .definition import TensorMeta
from .operator import OpOverload

__all__ = [
    "DIFFERENT_DEVICES",
    "NARROW",
    "OTHER_DEVICE",
    "accumulation_dtype",
    "check_can_hold",
    "check_same_device",
    "rounded",
    "rounds_operands",
    "check_scalars",
    "compute_dtype",
    "operand_indices",
    "result_dtype",
]


@functools.cache
def operand_indices(op: OpOverload) -> tuple[int, ...]:
    """Positions of the arguments that take part in promotion."""
    names = op.definition.operands
    args = op._schema.arguments
    if names is not None:
        return tuple(i for i, a in enumerate(args) if a.name in names)
    return tuple(i for i, a in enumerate(args) if a.is_tensor)


OTHER_DEVICE = (
    "Attempting to copy from device {} to device {}, but cross-device copies are not allowed!"  # out= lies there
)
DIFFERENT_DEVICES = "Expected all tensors to be on the same device, but found at least two devices, {} and {}!"


def check_same_device(operands) -> None:
    """RuntimeError for tensors (anything with shape and device) on different devices; one without dimensions on the CPU stands beside any."""
    found = None
    for t in operands:
        if len(t.shape) or t.device != CPU:
            if found is not None and t.device != found:
                raise RuntimeError(DIFFERENT_DEVICES.format(found, t.device))
            found = t.device


def compute_dtype(op: OpOverload, args) -> DType:
    """dtype the body runs in, for arguments that are tensors (or TensorMeta) and numbers. RuntimeError for a dtype the operator refuses."""
    d = op.definition
    promote = d.promote if d.promote.__class__ is str else d.promote(args)
    if promote == "keep":
        first = args[operand_indices(op)[0]]
        t = first.dtype if not isinstance(first, _C.TensorBase) else first._dtype
        if t.is_complex:
            _check_complex(op, args, t)
        return t
    t = _common_floating(op, args)
    if t is None:
        t = result_type(*[args[i] for i in operand_indices(op) if args[i] is not None])
    if op.refuses is not None and t.name in op.refuses:
        refuse(op, t)
    if t.is_complex:
        _check_complex(op, args, t)
    if promote == "float" and t.category < 2:
        return dtypes.get_default_dtype()
    return t


def one_dtype(words: str):
    """``promote`` of an operator whose first two operands must have one dtype. ``words`` of the error may have places for the names of both."""

    def promote(args):
        number = next((x for x in args[:2] if isinstance(x, int | float | complex)), None)
        if number is not None:
            raise TypeError(f"expected two tensors of one dtype, but got a number: {number!r}")
        a, b = args[0].dtype, args[1].dtype
        if a is not b:
            raise RuntimeError(words.format(dtypes.c_name(a), dtypes.c_name(b)))
        for x in args[2:]:  # a factor that is a tensor, of which no promotion is known
            if isinstance(x, _C.TensorBase | TensorMeta) and x.dtype is not a:
                raise RuntimeError(
                    f"expected dtype {dtypes.c_name(a)} for `weight` but got dtype {dtypes.c_name(x.dtype)}"
                )
        return "default"

    return promote


def _check_complex(op: OpOverload, args, compute: DType) -> None:
    """NotImplementedError where the body has no meaning for complex operands: what needs an order, say."""
    cast = operand_indices(op)
    marks = [
        ((i in cast) or (a._dtype if isinstance(a, _C.TensorBase) else a.dtype).is_complex)
        if isinstance(a, (_C.TensorBase, TensorMeta))
        else a
        for i, a in enumerate(args)
    ]
    if not takes_complex(op.definition.body, marks):
        refuse(op, compute)


@functools.cache
def exact_scalars(op: OpOverload) -> tuple[int, ...]:
    """Positions of the ``Scalar`` arguments that must fit the dtype computed in."""
    wraps = op.definition.wraps
    return tuple(i for i, a in enumerate(op._schema.arguments) if a.type == "Scalar" and a.name not in wraps)


AS_ELEMENTS = "numbers_as_elements"  # tag of an operator whose numbers become elements, of 16 bits too, before it computes (clamp)


# Tag of an operator that has numbers and operands of wider dtypes rounded first (comparisons).
ROUNDS_OPERANDS = "rounds_operands"
NARROW = (dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2)


def rounds_operands(op: OpOverload, compute: DType) -> bool:
    """Whether operands are rounded to ``compute``, which is narrower than what the body runs in: 1.0001 equals a 1 of 16 bits."""
    return compute in NARROW and ROUNDS_OPERANDS in op.tags


def rounded(value, compute: DType):
    """An array or a real number as ``compute``, a narrow dtype, has it: by way of float32, as casts are. What is neither stays."""
    if value.__class__ not in (int, float) and not isinstance(value, np.ndarray):
        return value
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = dtypes.saturated(np.asarray(value, np.float32), compute.np).astype(compute.np)
    return narrow if isinstance(value, np.ndarray) else float(narrow)


def check_scalars(op: OpOverload, args, compute: DType) -> None:
    """RuntimeError for a number that the dtype computed in can't hold."""
    kind = compute
    if compute in (dtypes.float16, dtypes.bfloat16) and AS_ELEMENTS not in op.tags:
        kind = dtypes.float32
    for i in exact_scalars(op):
        x = args[i]
        if x is not None and not (x.__class__ is int and -128 <= x <= 127):
            check_number(x, kind)


REFUSALS: dict[str, str] = {}  # operators that tell more than that they aren't implemented for a dtype


def refuse(op: OpOverload, dtype: DType):
    """The error for a dtype that the operator doesn't take."""
    told = REFUSALS.get(op._opname.removesuffix("_"))
    if told is not None and dtype is not dtypes.bool_:
        raise RuntimeError(told)
    refused(op._opname, dtype)


def check_parameters(input, *parameters) -> None:
    """RuntimeError when parameters of a normalisation have another dtype than ``input``; float32 beside one of 16 bits is allowed."""
    kind = input.dtype
    for t in parameters:
        if (
            t is None
            or t.dtype is kind
            or (kind.is_floating_point and kind.itemsize == 2 and t.dtype.name == "float32")
        ):
            continue
        raise RuntimeError(
            f"mixed dtype (CPU): expect parameter to have scalar type of {_scalar_name(kind)}, but got {_scalar_name(t.dtype)}"
        )


def refused(opname: str, dtype: DType):
    raise NotImplementedError(f"\"{opname}_cpu\" not implemented for '{_scalar_name(dtype)}'")


def _common_floating(op, args):
    """The dtype when all tensors have one floating dtype and the rest are real numbers, which don't change it; else None."""
    t = None
    for i in operand_indices(op):
        x = args[i]
        if isinstance(x, _C.TensorBase):
            if t is None:
                t = x._dtype
            elif x._dtype is not t:
                return None
        elif x.__class__ is not float and x.__class__ is not int and x is not None:
            return None
    return t if t is not None and t.category >= 2 else None


def result_dtype(op: OpOverload, args, compute: DType) -> DType:
    """dtype of the result; ``out`` may be a dtype, "same", or a function of all arguments."""
    out = op.definition.out
    if out == "same":
        return compute
    return out if isinstance(out, DType) else out(args)


def accumulation_dtype(op: OpOverload, input_dtype: DType, requested: DType | None) -> tuple[DType, DType]:
    """(dtype the reduction accumulates in, dtype of its result)."""
    rule = op.definition.acc
    if op.refuses is not None and input_dtype.name in op.refuses:
        refuse(op, input_dtype)
    if rule == "bool":
        # A uint8 tensor of truth values stays one: from before there was bool.
        return dtypes.bool_, dtypes.uint8 if input_dtype is dtypes.uint8 else dtypes.bool_
    out = requested or input_dtype
    if rule == "float" and requested is not None and requested.category < 2:
        raise RuntimeError(
            f"{op._opname}(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {_scalar_name(requested)}"
        )
    if requested is None and out.category < 2:
        if rule == "sum":
            out = dtypes.int64
        elif rule == "float":
            raise RuntimeError(
                f"{op._opname}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                f"Got: {_scalar_name(input_dtype)}"
            )
    acc = dtypes.float32 if out in (dtypes.float16, dtypes.bfloat16) else out
    return acc, out


def check_can_hold(target: DType, result: DType) -> None:
    """RuntimeError in PyTorch's words when a result may not be written into a tensor of this dtype (a float into integers)."""
    if result.category > target.category:
        raise RuntimeError(
            f"result type {_scalar_name(result)} can't be cast to the desired output type {_scalar_name(target)}"
        )


def _scalar_name(d: DType) -> str:
    return d.scalar_type
