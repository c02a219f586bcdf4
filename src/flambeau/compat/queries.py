"""Questions about tensors that are functions of the root namespace as well as methods."""

from __future__ import annotations

import os

from .. import _C
from ..autograd.grad_mode import is_inference_mode_enabled
from ..base import dtypes
from ..base.dtypes import DType, int64
from ..base.dtypes import result_type as _result_type
from ..base.symint import SymInt
from ..core.operator import namespace
from ..core.overrides import checked_input, wrap_function, wrap_native
from .legacy import TypedStorage, UntypedStorage

__all__ = [
    "can_cast",
    "get_device",
    "is_complex",
    "is_conj",
    "is_inference",
    "is_inference_mode_enabled",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "result_type",
    "typename",
    "unravel_index",
]

aten = namespace("aten")


@wrap_native
def _assert_async(input, assert_msg="Expected Tensor with single nonzero value, but got zero") -> None:
    """RuntimeError with the message where the one element of ``input`` is zero. Computation here is never ahead of the program."""
    if not input:
        raise RuntimeError(assert_msg)


@wrap_native
def is_complex(input) -> bool:
    """Whether the dtype of ``input`` is complex."""
    return checked_input("is_complex", input).is_complex()


@wrap_native
def is_conj(input) -> bool:
    """Whether the elements of ``input`` are the conjugates of what lies in memory."""
    return checked_input("is_conj", input).is_conj()


@wrap_native
def is_neg(input) -> bool:
    """Whether the elements of ``input`` are the negatives of what lies in memory."""
    return checked_input("is_neg", input).is_neg()


@wrap_native
def is_inference(input) -> bool:
    """Whether ``input`` was made in inference mode."""
    return checked_input("is_inference", input).is_inference()


@wrap_native
def is_signed(input) -> bool:
    """Whether the dtype of ``input`` has negative numbers."""
    return checked_input("is_signed", input).is_signed()


@wrap_native
def is_nonzero(input) -> bool:
    """Whether the only element differs from zero."""
    return bool(checked_input("is_nonzero", input))


def _storage_id(tensor) -> int:
    """A number that is the same for tensors of one memory, and another for others that live."""
    return tensor.untyped_storage()._cdata


@wrap_native
def is_same_size(input, other) -> bool:
    """Whether two tensors have the same shape."""
    return input.shape == other.shape


def is_storage(obj) -> bool:
    """Whether ``obj`` is a storage."""
    return isinstance(obj, UntypedStorage | TypedStorage)


@wrap_native
def get_device(input) -> int:
    """The index of the device of ``input``; -1 for the CPU."""
    return input.get_device()


def typename(obj) -> str:
    """Qualified name of an object's type; "torch.FloatTensor" and the like for tensors."""
    if isinstance(obj, _C.TensorBase):
        return obj.type()
    cls = obj if isinstance(getattr(obj, "__qualname__", None), str) and hasattr(obj, "__module__") else type(obj)
    return cls.__qualname__ if cls.__module__ in ("builtins", None) else f"{cls.__module__}.{cls.__qualname__}"


def can_cast(from_: DType, to: DType) -> bool:
    """Whether PyTorch's casting rules allow storing ``from_`` in ``to``: the category may not fall. TypeError for what is no dtype."""
    for name, x in (("from_", from_), ("to", to)):
        if not isinstance(x, DType):
            raise TypeError(f"can_cast(): argument '{name}' must be torch.dtype, not {type(x).__name__}")
    return from_.category <= to.category


def result_type(tensor1, tensor2) -> DType:
    """The dtype of an operation on both (tensors or numbers)."""
    return _result_type(tensor1, tensor2)


@wrap_function
def unravel_index(indices, shape):
    """Coordinates, a tuple of tensors, of the flat ``indices`` of a row-major array of ``shape``."""
    if indices.dtype.category != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, SymInt, list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = shape if isinstance(shape, (list, tuple)) else (shape,)
    for n in sizes:
        if not isinstance(n, (int, SymInt)):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    indices = aten._to_copy.default(indices, dtype=int64)
    out = []
    for n in reversed(sizes):
        out.append(aten.remainder.Tensor(indices, n))
        indices = aten.floor_divide.default(indices, n)
    return tuple(aten.unbind.int(aten.stack.default(out[::-1], -1), -1)) if out else ()


def _check_with(error_type, cond, message=None) -> None:
    """``error_type`` with ``message()`` unless ``cond``."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type("Expected cond to be True, but got False." if message is None else str(message()))


def _check_tensor_all_with(error_type, cond, message=None) -> None:
    """As ``_check_with``, for a bool tensor all of whose elements must hold."""
    if not isinstance(cond, _C.TensorBase):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtypes.bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond, message=None) -> None:
    _check_tensor_all_with(RuntimeError, cond, message)


def is_contiguous_or_false(t) -> bool:
    return t.is_contiguous()


def is_fake(x) -> bool:
    """Whether ``x`` is a tensor without data that a FakeTensorMode made."""
    from ..fake.fake_tensor import FakeTensor

    return isinstance(x, FakeTensor)


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors tells its parts (``__tensor_flatten__``)."""
    return issubclass(t, _C.TensorBase) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def debug_unwrap(tensor, *, recurse: bool = True):
    """What a tensor of a function transform stands for: itself outside of one."""
    return tensor


def get_file_path(*parts: str) -> str:
    """The path made of the parts."""
    return os.path.join(*parts)


get_file_path_2 = get_file_path
