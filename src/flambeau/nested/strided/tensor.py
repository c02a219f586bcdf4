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
from ..around import AroundOne, wrapped
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


def _has_none(what: str) -> RuntimeError:
    return RuntimeError(f"Internal error: NestedTensorImpl doesn't support {what}. Please file an issue.")


class StridedNestedTensor(AroundOne):
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

    def _inner(self):
        return self._buffer

    def _around(self, inner):
        return functions.like(self, inner)

    def _laid_out(self, other):
        return functions.buffer_as(self, other)

    def _element(self):
        return next(x for x in functions.components(self) if x.numel())

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
        at = wrapped(self, dim)
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

    def numel(self) -> int:
        """The number of elements of all parts."""
        return sum(p.numel for p in self._places)

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

    layout = property(lambda self: strided, doc="``torch.strided``.")

    # -- text, copies, pickles -------------------------------------------------------------------------------------------
    def __repr__(self, *, tensor_contents=None):
        asks = self.requires_grad
        parts = [x.detach().requires_grad_(asks) for x in functions.components(self)]
        lines = ",\n".join("\n".join(f"  {line}" for line in repr(x).split("\n")) for x in parts)
        end = (
            f", grad_fn=<{self.grad_fn.name().rpartition('::')[2]}>"
            if self.grad_fn is not None
            else ", requires_grad=True"
            if asks
            else ""
        )
        return f"nested_tensor([\n{lines}\n]{end})"

    def __reduce_ex__(self, protocol):
        return _rebuild_nested_tensor, (
            self._buffer.detach(),
            self._nested_tensor_size(),
            self._nested_tensor_strides(),
            self._nested_tensor_storage_offsets(),
        )

    def __tensor_flatten__(self):
        """The names of the tensors inside, and its other parts: tensor subclasses are taken apart and built again by this."""
        return ["_buffer"], {"places": self._places}

    @staticmethod
    def __tensor_unflatten__(inner: dict, meta: dict, outer_size=None, outer_stride=None):
        return StridedNestedTensor(inner["_buffer"], meta["places"])
