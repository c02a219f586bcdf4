"""The class of nested tensors of the strided layout."""

from __future__ import annotations

import math

from flambeau.base import dtypes
from flambeau.base.records import slotted
from flambeau.base.shapes import contiguous_strides
from flambeau.compiler.controls import assume_constant_result
from flambeau.core.conversion import tensor as make_tensor
from flambeau.core.tensor import Tensor, strided

from ...serialization.rebuild import _rebuild_nested_tensor
from . import functions

__all__ = ["Place", "StridedNestedTensor", "packed_strides"]


@assume_constant_result
def packed_strides(size) -> tuple[int, ...]:
    """The strides of a contiguous part. Sizes are constants of captured code."""
    return contiguous_strides(size)


@slotted(frozen=True)
class Place:
    """Where a part lies in the buffer: sizes, strides and offset in elements."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @property
    def numel(self) -> int:
        return math.prod(self.size)


def _of_buffer(name: str, doc: str) -> property:
    """An attribute that the buffer has."""
    return property(lambda self: getattr(self._buffer, name), doc=doc)


def _has_none(what: str) -> RuntimeError:
    return RuntimeError(f"Internal error: NestedTensorImpl doesn't support {what}. Please file an issue.")


class StridedNestedTensor(Tensor):
    """Tensors of one rank, dtype and device and of any sizes. ``buffer``: their elements (N,). ``places``: a :class:`Place` for each."""

    _buffer: Tensor
    _places: tuple[Place, ...]

    @staticmethod
    def __new__(cls, buffer, places):
        # The native object has no sizes of its own: what asks for them is answered below.
        nothing = (0,) * (1 + (len(places[0].size) if places else 0))
        return Tensor._make_wrapper_subclass(cls, nothing, strides=nothing, dtype=buffer.dtype, device=buffer.device)

    def __init__(self, buffer, places):
        self._buffer, self._places = buffer, tuple(places)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """What ``func`` does with nested tensors. NotImplementedError where there is no rule."""
        return functions.call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Operators called directly. NotImplementedError where there is no rule, or where a gradient would be lost."""
        return functions.call_operator(func, args, kwargs or {})

    # -- metadata --------------------------------------------------------------------------------------------------------
    def values(self):
        """The buffer, a dense tensor (N,)."""
        return self._buffer

    def _nested_tensor_size(self):
        """The sizes of the parts: (B, D) of int64."""
        return self._table([p.size for p in self._places])

    def _nested_tensor_strides(self):
        """The strides of the parts in elements: (B, D) of int64."""
        return self._table([p.stride for p in self._places])

    def _nested_tensor_storage_offsets(self):
        """Where each part begins in the buffer: (B,) of int64."""
        return make_tensor([p.offset for p in self._places], dtype=dtypes.int64)

    def _table(self, rows):
        return make_tensor([list(r) for r in rows], dtype=dtypes.int64)

    @property
    def shape(self):
        """RuntimeError: the parts have sizes, ``size(dim)`` one that all share."""
        raise _has_none("sizes")

    def size(self, dim=None):
        """The size of ``dim``. RuntimeError without it, and where the parts differ; IndexError out of range."""
        if dim is None:
            raise _has_none("sizes")
        at = functions.wrapped(self, dim)
        if at == 0:
            return len(self._places)
        found = {p.size[at - 1] for p in self._places}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {at} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim=None):
        """RuntimeError: the parts have strides."""
        raise _has_none("strides")

    def dim(self) -> int:
        """The number of dimensions, with that of the batch."""
        return 1 + len(self._places[0].size) if self._places else 1

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """The number of elements of all parts."""
        return sum(p.numel for p in self._places)

    nelement = numel

    def is_contiguous(self, *args, **kwargs) -> bool:
        """Whether the parts lie one behind the other, each contiguous."""
        at = 0
        for p in self._places:
            if p.offset != at or (p.numel and p.stride != packed_strides(p.size)):
                return False
            at += p.numel
        return at == self._buffer.numel()

    def __len__(self):
        raise _has_none("sizes")

    def __iter__(self):
        raise _has_none("sizes")

    def __bool__(self):
        if self.numel() > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def item(self):
        """The element, where there is one. RuntimeError for more."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return next(x for x in functions.components(self) if x.numel()).item()

    is_nested = property(lambda self: True, doc="True.")
    layout = property(lambda self: strided, doc="``torch.strided``.")

    # -- autograd --------------------------------------------------------------------------------------------------------
    is_leaf = _of_buffer("is_leaf", "Whether the buffer is a leaf of the autograd graph.")
    grad_fn = _of_buffer("grad_fn", "The function that made the buffer.")
    retains_grad = _of_buffer("retains_grad", "Whether the gradient of the buffer is kept.")
    _version = _of_buffer("_version", "How often the buffer was written.")

    @property
    def requires_grad(self) -> bool:
        """Whether the buffer asks for a gradient."""
        return self._buffer.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._buffer.requires_grad = value

    @property
    def grad(self):
        """The gradient, a nested tensor with the same places, or None."""
        found = self._buffer.grad
        return None if found is None else functions.like(self, found)

    @grad.setter
    def grad(self, value) -> None:
        self._buffer.grad = None if value is None else functions.buffer_as(self, value)

    @property
    def data(self):
        """The same memory without history."""
        return functions.like(self, self._buffer.data)

    @data.setter
    def data(self, value) -> None:
        self._buffer.data = functions.buffer_as(self, value)

    @property
    def mT(self):
        """The last two dimensions swapped."""
        return self.transpose(-2, -1)

    # -- text, copies, pickles -------------------------------------------------------------------------------------------
    def __repr__(self, *, tensor_contents=None):
        asks = self.requires_grad
        parts = [x.detach().requires_grad_(asks) for x in functions.components(self)]
        lines = ",\n".join("\n".join(f"  {line}" for line in repr(x).split("\n")) for x in parts)
        end = (
            f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ", requires_grad=True" if asks else ""
        )
        return f"nested_tensor([\n{lines}\n]{end})"

    def __format__(self, spec):
        return format(repr(self), spec) if spec else repr(self)

    def __hash__(self):
        return id(self)

    def __deepcopy__(self, memo):
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = functions.like(self, self._buffer.__deepcopy__(memo))
        return found

    def __reduce_ex__(self, protocol):
        return _rebuild_nested_tensor, (
            self._buffer.detach(),
            self._nested_tensor_size(),
            self._nested_tensor_strides(),
            self._nested_tensor_storage_offsets(),
        )

    def __setstate__(self, state) -> None:
        """Nothing: what it is made of were arguments."""

    def __tensor_flatten__(self):
        """The names of the tensors inside, and its other parts: tensor subclasses are taken apart and built again by this."""
        return ["_buffer"], {"places": self._places}

    @staticmethod
    def __tensor_unflatten__(inner: dict, meta: dict, outer_size=None, outer_stride=None):
        return StridedNestedTensor(inner["_buffer"], meta["places"])
