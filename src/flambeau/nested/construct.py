"""``torch.nested``'s makers, and the way back to padded tensors."""

from __future__ import annotations

from flambeau import _C
from flambeau.base import dtypes
from flambeau.base.compiling import is_compiling
from flambeau.core.conversion import tensor as make_tensor
from flambeau.core.operator import namespace
from flambeau.core.tensor import jagged, strided

from .functions import is_nested
from .functions import to_padded_tensor as _padded
from .sizes import Extremes
from .strided import as_strided_nested, strided_nested
from .strided import narrow as narrow_strided
from .strided.functions import is_strided
from .strided.shapes import to_padded_tensor as pad_strided
from .tensor import NestedTensor

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

aten = namespace("aten")


def _is_jagged(layout) -> bool:
    if layout in (None, jagged, strided):
        return layout is jagged
    raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")


def _checked(tensors) -> None:
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what in ("dtype", "device"):
        if len({str(getattr(t, what)) for t in tensors}) != 1:
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must have the same {what}")
    if len({t.dim() for t in tensors}) != 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    if tensors[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")


def _joined(tensors):
    """The nested tensor of sequences, with their history. The dimension in which they differ is the ragged one, the first of them if none does."""
    _checked(tensors)
    ragged = [d for d in range(tensors[0].dim()) if len({t.shape[d] for t in tensors}) > 1]
    if len(ragged) > 1:
        raise RuntimeError(
            f"When constructing a nested tensor, tensors may differ in one dimension, got {[tuple(t.shape) for t in tensors]}"
        )
    at = ragged[0] if ragged else 0
    lengths = [t.shape[at] for t in tensors]
    begins = [sum(lengths[:k]) for k in range(len(lengths) + 1)]
    offsets = make_tensor(begins, dtype=dtypes.int64, device=tensors[0].device)
    out = NestedTensor(aten.cat(list(tensors), at), offsets, _ragged_idx=at + 1)
    out._extremes = Extremes(min(lengths), max(lengths))
    return out


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A nested tensor of new memory, a leaf: (B, *, ...) of tensors, arrays or lists. In the layout ``torch.jagged`` they differ in one size,
    in ``torch.strided``, the default, in any. RuntimeError where they differ in rank, and with ``torch.jagged`` in dtype or device."""
    if not _is_jagged(layout):
        return strided_nested(tensor_list, dtype, device, requires_grad)
    if is_nested(tensor_list):
        raise RuntimeError("nested_tensor(): a nested tensor is one already; use clone() or as_nested_tensor()")
    parts = [
        t.detach().to(dtype=dtype, device=device)
        if isinstance(t, _C.TensorBase)
        else make_tensor(t, dtype=dtype, device=device)
        for t in tensor_list
    ]
    out = _joined(parts)
    if len(parts) == 1 or out._values.is_inference():
        out._values = out._values.clone()
    out._values.requires_grad_(requires_grad)
    return out


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor that keeps the history of what it is made of: a list of tensors, or a tensor (B, L, ...). Layouts as of
    :func:`nested_tensor`; of a tensor the layout ``torch.jagged`` shares the memory."""
    if is_strided(ts):
        raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
    if is_nested(ts):
        if layout not in (None, jagged):
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(dtype=dtype, device=device) if dtype is not None or device is not None else ts
    in_list = isinstance(ts, (list, tuple)) and all(isinstance(t, _C.TensorBase) for t in ts)
    if not isinstance(ts, _C.TensorBase) and not in_list:
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if not _is_jagged(layout):
        return as_strided_nested(ts, dtype, device)
    if in_list:
        return _joined([t.to(dtype=dtype, device=device) for t in ts])
    ts = ts.to(dtype=dtype, device=device)
    if ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    batch, length = ts.shape[:2]
    offsets = aten.arange(0, batch * length + 1, length, dtype=dtypes.int64, device=ts.device) if length else (
        aten.zeros([batch + 1], dtype=dtypes.int64, device=ts.device)
    )  # fmt: skip
    out = NestedTensor(ts.flatten(0, 1), offsets)
    out._extremes = Extremes(length, length)
    return out


def check_parts(values, offsets, lengths, ragged_idx: int) -> None:
    """RuntimeError, ValueError or IndexError where offsets and lengths don't say sequences inside of the values."""
    if not isinstance(ragged_idx, int) or ragged_idx < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {ragged_idx}.")
    if ragged_idx > values.dim():
        raise IndexError("tuple index out of range")
    for name, x in (("offsets", offsets), ("lengths", lengths)):
        if x is not None and (x.dim() != 1 or x.dtype not in (dtypes.int64, dtypes.int32)):
            raise RuntimeError(
                f"nested tensors: {name} have to be int64 or int32 of one dimension, got {x.dtype} of {x.dim()}"
            )
    if not len(offsets) or (lengths is not None and len(lengths) != len(offsets) - 1):
        raise RuntimeError(
            "nested tensors: offsets have one more element than there are sequences, lengths as many as sequences"
        )
    if is_compiling() or not values._has_data or not offsets._has_data:
        return
    begins, rows = offsets.tolist(), values.shape[ragged_idx - 1]
    ends = begins[1:] if lengths is None else [b + n for b, n in zip(begins, lengths.tolist())]
    if (
        begins[0] < 0
        or any(e < b or e > rows for b, e in zip(begins, ends))
        or any(a > b for a, b in zip(begins, begins[1:]))
    ):
        raise RuntimeError(f"nested tensors: offsets {begins} don't say sequences inside of {rows} rows")


def from_parts(parts: dict):
    """The nested tensor that a file describes. RuntimeError where offsets reach outside of the values."""
    names = {"values", "offsets", "lengths", "_ragged_idx", "requires_grad"}
    given = {k: v for k, v in parts.items() if k in names} if isinstance(parts, dict) else {}
    if not all(isinstance(given.get(n), _C.TensorBase) for n in ("values", "offsets")):
        raise RuntimeError("invalid checkpoint: a nested tensor without values or offsets")
    check_parts(given["values"], given["offsets"], given.get("lengths"), given.get("_ragged_idx", 1))
    return NestedTensor(**given)


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """A nested tensor over the memory of ``values``, with their history. ``offsets``: (B + 1,); without them ``lengths`` (B,) lie end to end.
    ``jagged_dim``: the ragged dimension, 1 unless given. RuntimeError where offsets reach outside."""
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        zero = aten.zeros([1], dtype=lengths.dtype, device=lengths.device)
        offsets, lengths = aten.cat([zero, lengths.cumsum(0).to(lengths.dtype)]), None
    ragged = 1 if jagged_dim is None else jagged_dim
    check_parts(values, offsets, lengths, ragged)
    out = NestedTensor(values, offsets, lengths=lengths, _ragged_idx=ragged)
    if min_seqlen is not None and max_seqlen is not None:
        out._extremes = Extremes(min_seqlen, max_seqlen)
    return out


def narrow(tensor, dim: int, start, length, layout=strided):
    """``tensor`` (B, L, ...) narrowed to ``length`` elements from ``start`` on, both (B,) or numbers: a nested tensor over its memory. In the
    strided layout, the default, some of its rows (``dim`` 0)."""
    if layout is strided:
        return narrow_strided(tensor, dim, start, length)
    if layout is not jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    batch, size = tensor.shape[:2]
    whole = lambda n: n if isinstance(n, _C.TensorBase) else aten.full([batch], n, dtype=dtypes.int64)  # noqa: E731
    start, length = whole(start), whole(length)
    begins = aten.arange(batch, dtype=start.dtype) * size + start
    ends = begins[-1:] + length[-1:]
    values = tensor.reshape(batch * size, *tensor.shape[2:])
    offsets = aten.cat([begins, ends])
    rows = int(ends) if batch else 0
    return nested_tensor_from_jagged(values.narrow(0, 0, max(rows, 0)), offsets, length)


def masked_select(tensor, mask):
    """The elements of each row that ``mask`` keeps, a row a sequence: (B, *). ValueError for tensors that aren't strided."""
    if tensor.layout is not strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout is not strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    tensor, mask = aten.broadcast_tensors([tensor, mask])
    counts = mask.flatten(1).sum(1) if mask.dim() > 1 else mask.sum().view(1)
    return nested_tensor_from_jagged(tensor.masked_select(mask), lengths=counts)


def to_padded_tensor(input, padding: float, output_size=None, out=None):
    """``input``, a nested tensor, as (B, L, ...) with ``padding`` behind the end of each sequence. ``output_size``: the sizes, at least as large."""
    if not is_nested(input) and not is_strided(input):
        raise NotImplementedError("to_padded_tensor: the input is no nested tensor")
    if out is not None:
        raise NotImplementedError("to_padded_tensor with out= is not built")
    if is_strided(input):
        return pad_strided(None, input, padding, output_size)
    return _padded(None, input, padding, output_size)


def to_padded_tensor_method(self, padding, output_size=None):
    """``torch.nested.to_padded_tensor`` as a method."""
    return to_padded_tensor(self, padding, output_size)
