"""Nested tensors of the layout ``torch.jagged``: sequences of different lengths in one tensor, one behind the other, and offsets where they begin.

A nested tensor is a frame around its values (around.py), and every function that meets one computes with them (functions.py). ``nt._values`` has
the dimensions of the nested tensor but the first one; its dimension ``_ragged_idx - 1`` is the sequences, laid end to end.
"""

from __future__ import annotations

from flambeau.base.public import public_in
from flambeau.base.shapes import Size, normalize_dim
from flambeau.core.tensor import Tensor, jagged

from ..serialization.rebuild import _rebuild_njt
from . import functions
from .around import AroundOne
from .sizes import ragged_size

__all__ = ["NestedTensor"]


@public_in("nested._internal.nested_tensor")
class NestedTensor(AroundOne):
    """A tensor of shape (B, *, ...) with one dimension whose size differs from sequence to sequence.

    ``values``: the sequences end to end. ``offsets``: int64 or int32 (B + 1,), where each begins and the last ends. ``lengths``: (B,) where
    sequences end before the next one begins, else None. Made by ``torch.nested``'s functions."""

    _values: Tensor
    _offsets: Tensor
    _lengths: Tensor | None
    _ragged_idx: int

    @staticmethod
    def __new__(cls, values, offsets, *, lengths=None, _ragged_idx=1, _metadata_cache=None, requires_grad=False):
        # The native object has no sizes of its own: what asks for them is answered below.
        nothing = (0,) * (values.dim() + 1)
        return Tensor._make_wrapper_subclass(cls, nothing, strides=nothing, dtype=values.dtype, device=values.device)

    def __init__(self, values, offsets, *, lengths=None, _ragged_idx=1, _metadata_cache=None, requires_grad=False):
        self._values, self._offsets, self._lengths, self._ragged_idx = values, offsets, lengths, _ragged_idx
        self._extremes = _metadata_cache  # Extremes, where they are known
        if requires_grad:
            values.requires_grad_(True)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """What ``func`` does with nested tensors. NotImplementedError where there is no rule."""
        return functions.call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Operators called directly. NotImplementedError where there is no rule, or where a gradient would be lost."""
        return functions.call_operator(func, args, kwargs or {})

    def _inner(self):
        return self._values

    def _around(self, inner):
        return functions.like(self, inner)

    def _laid_out(self, other):
        return functions.matching(self, other)._values

    def _element(self):
        return self._values.reshape(())

    # -- parts -----------------------------------------------------------------------------------------------------------
    def values(self):
        """The sequences end to end, a dense tensor."""
        return self._values

    def offsets(self):
        """Where each sequence begins, and where the last ends: (B + 1,)."""
        return self._offsets

    def lengths(self):
        """The lengths (B,) where sequences have holes behind them, else None."""
        return self._lengths

    @property
    def _max_seqlen(self) -> int:
        """The length of the longest sequence."""
        return functions.extremes(self).longest

    @property
    def _min_seqlen(self) -> int:
        """The length of the shortest sequence."""
        return functions.extremes(self).shortest

    def _get_max_seqlen(self) -> int:
        return self._max_seqlen

    def _get_min_seqlen(self) -> int:
        return self._min_seqlen

    # -- metadata --------------------------------------------------------------------------------------------------------
    def _ragged_size(self):
        return ragged_size(self._offsets if self._lengths is None else self._lengths)

    @property
    def shape(self) -> Size:
        """(B, ..., j, ...) with a symbolic size for the ragged dimension."""
        sizes = [self._offsets.shape[0] - 1, *self._values.shape]
        sizes[self._ragged_idx] = self._ragged_size()
        return Size(sizes)

    def size(self, dim=None):
        """The shape, or the size of ``dim``. IndexError for a dimension out of range."""
        return self.shape if dim is None else self.shape[normalize_dim(dim, self.dim())]

    def stride(self, dim=None):
        """Strides in elements, or that of ``dim``: symbolic for the batch."""
        inner = self._values.stride()
        strides = (self._ragged_size() * inner[self._ragged_idx - 1], *inner)
        return strides if dim is None else strides[normalize_dim(dim, self.dim())]

    def dim(self) -> int:
        """The number of dimensions, with that of the batch."""
        return self._values.dim() + 1

    def numel(self) -> int:
        """The number of elements of the values."""
        return self._values.numel()

    def is_contiguous(self, *args, **kwargs) -> bool:
        """Whether the values are contiguous, without holes."""
        return self._lengths is None and self._values.is_contiguous()

    def __len__(self):
        return self._offsets.shape[0] - 1

    def __iter__(self):
        return iter(self.unbind())

    layout = property(lambda self: jagged, doc="``torch.jagged``.")

    @property
    def T(self):
        """ValueError: the batch stays the first dimension."""
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")

    # -- text, copies, pickles -------------------------------------------------------------------------------------------
    def __repr__(self, *, tensor_contents=None):
        end = f"contiguous={self.is_contiguous()}"
        if self.grad_fn is not None:
            end = f"grad_fn={self.grad_fn}, {end}"
        elif self.requires_grad:
            end = f"requires_grad=True, {end}"
        return f"NestedTensor(size=({', '.join(map(str, self.shape))}), offsets={self._offsets}, {end})"

    def __reduce_ex__(self, protocol):
        return _rebuild_njt, (
            {
                "values": self._values.detach(),
                "offsets": self._offsets,
                "lengths": self._lengths,
                "_ragged_idx": self._ragged_idx,
                "_metadata_cache": None,
                "requires_grad": self.requires_grad,
            },
        )

    def __tensor_flatten__(self):
        """The names of the tensors inside, and its other parts: tensor subclasses are taken apart and built again by this."""
        names = ["_values", "_offsets", *(["_lengths"] if self._lengths is not None else [])]
        return names, {"ragged_idx": self._ragged_idx}

    @staticmethod
    def __tensor_unflatten__(inner: dict, meta: dict, outer_size=None, outer_stride=None):
        return NestedTensor(
            inner["_values"], inner["_offsets"], lengths=inner.get("_lengths"), _ragged_idx=meta["ragged_idx"]
        )
