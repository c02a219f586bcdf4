"""Questions about tensors that are functions of the root namespace as well as methods."""

from __future__ import annotations

from .. import _C
from ..autograd.grad_mode import is_inference_mode_enabled
from ..base.dtypes import DType, int64
from ..base.dtypes import result_type as _result_type
from ..core.operator import namespace
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


def _assert(condition, message) -> None:
    """``assert`` as a function: AssertionError with the message."""
    assert condition, message


def is_complex(input) -> bool:
    return input.is_complex()


def is_conj(input) -> bool:
    return input.is_conj()


def is_neg(input) -> bool:
    return input.is_neg()


def is_inference(input) -> bool:
    return input.is_inference()


def is_signed(input) -> bool:
    return input.is_signed()


def is_nonzero(input) -> bool:
    """Whether the only element differs from zero."""
    return bool(input)


def is_same_size(input, other) -> bool:
    return input.shape == other.shape


def is_storage(obj) -> bool:
    return isinstance(obj, UntypedStorage | TypedStorage)


def get_device(input) -> int:
    return input.get_device()


def typename(obj) -> str:
    """Qualified name of an object's type; "torch.FloatTensor" and the like for tensors."""
    if isinstance(obj, _C.TensorBase):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return cls.__qualname__ if cls.__module__ in ("builtins", None) else f"{cls.__module__}.{cls.__qualname__}"


def can_cast(from_: DType, to: DType) -> bool:
    """Whether PyTorch's casting rules allow storing ``from_`` in ``to``: the category may not fall."""
    return from_.category <= to.category


def result_type(tensor1, tensor2) -> DType:
    """The dtype of an operation on both (tensors or numbers)."""
    return _result_type(tensor1, tensor2)


def unravel_index(indices, shape):
    """Coordinates, a tuple of tensors, of the flat ``indices`` of a row-major array of ``shape``."""
    if indices.dtype.category != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    indices, out = aten._to_copy.default(indices, dtype=int64), []
    for n in reversed([shape] if isinstance(shape, int) else list(shape)):
        out.append(aten.remainder.Tensor(indices, n))
        indices = aten.floor_divide.default(indices, n)
    return tuple(aten.unbind.int(aten.stack.default(out[::-1], -1), -1)) if out else ()
