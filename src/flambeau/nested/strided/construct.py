"""Makers of nested tensors of the strided layout."""

from __future__ import annotations

from flambeau import _C
from flambeau.base import dtypes
from flambeau.core.conversion import tensor as make_tensor
from flambeau.core.operator import namespace

from .functions import is_strided, joined
from .shapes import narrow as narrowed
from .tensor import Place, StridedNestedTensor

__all__ = [
    "_nested_from_padded",
    "_nested_from_padded_and_nested_example",
    "_nested_tensor_from_mask",
    "_nested_tensor_from_mask_left_aligned",
    "as_strided_nested",
    "from_parts",
    "narrow",
    "strided_nested",
]

aten = namespace("aten")


def _together(parts, dtype, device):
    """The nested tensor of parts in the dtype and on the device of the first unless given. RuntimeError where they differ in rank."""
    if not parts:
        return StridedNestedTensor(aten.empty([0], dtype=dtype, device=device), ())
    for k, x in enumerate(parts):
        if x.dim() != parts[0].dim():
            raise RuntimeError(
                f"All Tensors given to nested_tensor must have the same dimension. Found dimension {x.dim()} for Tensor at index {k} and "
                f"dimension {parts[0].dim()} for Tensor at index 0."
            )
    kind, place = parts[0].dtype if dtype is None else dtype, parts[0].device if device is None else device
    return joined([x.to(dtype=kind, device=place) for x in parts])


def strided_nested(tensor_list, dtype=None, device=None, requires_grad=False):
    """A nested tensor of new memory, a leaf."""
    if not isinstance(tensor_list, list):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [t.detach() if isinstance(t, _C.TensorBase) else make_tensor(t, dtype=dtype) for t in tensor_list]
    out = _together(parts, dtype, device)
    if len(parts) == 1 or out._buffer.is_inference():
        out._buffer = out._buffer.clone()
    out._buffer.requires_grad_(requires_grad)
    return out


def as_strided_nested(ts, dtype=None, device=None):
    """A nested tensor that keeps the history of a list of tensors, or of the rows of a tensor."""
    if isinstance(ts, _C.TensorBase):
        if ts.dim() < 1:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 0")
        return _together(list(ts.unbind(0)), dtype, device)
    return _together(list(ts), dtype, device)


def narrow(tensor, dim: int, start, length):
    """``tensor``, a dense or a nested one, from the part ``start`` on: ``length`` parts."""
    if not isinstance(start, int) or not isinstance(length, int):
        raise RuntimeError("start and length must be integers for the strided layout NT impl")
    return narrowed(None, tensor if is_strided(tensor) else as_strided_nested(tensor), dim, start, length)


def _nested_from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    """The nested tensor of the first elements of each row of ``padded`` (B, ...), as many as the sizes (B, D) say."""
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).reshape(padded.shape[0], padded.shape[2], -1)
    sizes = cpu_nested_shape_example.tolist()
    if len(sizes) != padded.shape[0] or any(len(s) != padded.dim() - 1 for s in sizes):
        raise RuntimeError(
            f"_nested_from_padded: sizes of {len(sizes)} parts for a padded tensor {tuple(padded.shape)}"
        )
    if any(n < 0 or n > m for s in sizes for n, m in zip(s, padded.shape[1:])):
        raise RuntimeError(
            f"_nested_from_padded: sizes {sizes} exceed those of the padded tensor {tuple(padded.shape)}"
        )
    return joined([x[tuple(slice(n) for n in s)] for x, s in zip(padded.unbind(0), sizes)])


def _nested_from_padded_and_nested_example(padded, nt_example):
    """:func:`_nested_from_padded` with the sizes of a nested tensor."""
    return _nested_from_padded(padded, nt_example._nested_tensor_size())


def _nested_tensor_from_mask_left_aligned(t, mask) -> bool:
    """Whether each row of ``mask`` (B, L) is True up to a place and False behind it."""
    counts = mask.sum(1, keepdim=True)
    return bool((mask == (aten.arange(mask.shape[1]) < counts)).all())


def _nested_tensor_from_mask(t, mask, mask_check=True):
    """The nested tensor of the rows of ``t`` (B, L, D) up to the end of the mask (B, L). RuntimeError for a mask with holes."""
    if mask.dtype is not dtypes.bool_ or mask.dim() != 2 or t.dim() != 3 or tuple(mask.shape) != tuple(t.shape[:2]):
        raise RuntimeError(
            f"Expected mask of bool and a shape that fits the input's first two dimensions, got {mask.dtype} {tuple(mask.shape)} "
            f"for {tuple(t.shape)}"
        )
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    return joined([x[:n] for x, n in zip(t.unbind(0), mask.sum(1).tolist())])


def from_parts(buffer, sizes, strides, offsets):
    """The nested tensor that a file describes. RuntimeError where a part reaches outside of the buffer."""
    if not all(isinstance(x, _C.TensorBase) for x in (buffer, sizes, strides, offsets)) or buffer.dim() != 1:
        raise RuntimeError("invalid checkpoint: a nested tensor without a buffer, sizes, strides or offsets")
    rows = (sizes.tolist(), strides.tolist(), offsets.tolist())
    if len({*map(len, rows)}) != 1 or any(len(a) != len(b) for a, b in zip(*rows[:2]) if isinstance(a, list)):
        raise RuntimeError("invalid checkpoint: a nested tensor whose sizes, strides and offsets don't go together")
    places = [Place(tuple(size), tuple(stride), at) for size, stride, at in zip(*rows)]
    for p in places:
        reach = p.offset + sum((n - 1) * s for n, s in zip(p.size, p.stride)) if p.numel else 0
        if min((*p.size, *p.stride, p.offset), default=0) < 0 or (p.numel and reach >= buffer.numel()):
            raise RuntimeError(
                f"invalid checkpoint: a part {p} of a nested tensor lies outside of {buffer.numel()} elements"
            )
    return StridedNestedTensor(buffer, places)
