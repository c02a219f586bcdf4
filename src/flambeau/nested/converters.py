"""``torch.nested._internal.nested_tensor``: nested tensors of parts, for libraries that keep offsets themselves."""

from __future__ import annotations

from flambeau.core.operator import namespace

from .construct import _joined, narrow, nested_tensor_from_jagged
from .functions import like, unpadded
from .sizes import RAGGED_SIZES as _tensor_symint_registry
from .tensor import NestedTensor, jagged

__all__ = [
    "NestedTensor",
    "_tensor_symint_registry",
    "buffer_from_jagged",
    "extract_kwargs",
    "jagged_from_list",
    "jagged_from_tensor_and_lengths",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]

aten = namespace("aten")


def jagged_from_list(tensors, offsets, dtype=None, device=None):
    """(the nested tensor of ``tensors`` with their history, its offsets). ``offsets``: those of another nested tensor, whose ragged size this one
    then shares, or None. RuntimeError where the tensors differ in dtype, device, rank or more than one size."""
    made = _joined(tensors)
    known = made._extremes
    values = made._values.to(dtype=dtype, device=device)
    offsets = made._offsets.to(device=values.device) if offsets is None else offsets
    return nested_view_from_values_offsets(values, offsets, made._ragged_idx, known.shortest, known.longest), offsets


def jagged_from_tensor_and_lengths(tensor, starts, lengths):
    """(``tensor`` (B, L, ...) narrowed to ``lengths`` from ``starts`` on, offsets, lengths or None where no sequence has a hole behind it)."""
    batch = tensor.shape[0]
    made = narrow(tensor, 1, starts.expand(batch), lengths.expand(batch), layout=jagged)
    offsets, lengths = made._offsets, made._lengths
    if not aten.equal(offsets[:-1] + lengths, offsets[1:]):
        return made, offsets, lengths
    return nested_view_from_values_offsets(made._values[int(offsets[0]) :], offsets - offsets[0]), offsets, None


def nested_view_from_values_offsets(values, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """The nested tensor over ``values`` whose sequences begin at ``offsets`` (B + 1,)."""
    return nested_tensor_from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(values, offsets, lengths, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """The same with the sequences' ``lengths`` (B,), where holes lie behind them."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def nested_from_padded(padded, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None, sum_S=None):
    """The nested tensor of the sequences in ``padded`` (B, ..., L, ...), what is behind their ends left out. ``sum_S``: their elements together."""
    shape = list(padded.shape[1:])
    shape[ragged_idx - 1] = int(offsets[-1]) if sum_S is None else sum_S
    frame = nested_tensor_from_jagged(padded.new_empty(shape), offsets, None, ragged_idx, min_seqlen, max_seqlen)
    return like(frame, unpadded(padded, frame))


def extract_kwargs(arg):
    """What :class:`NestedTensor` takes beside values, of a nested tensor: by keyword."""
    return {
        "offsets": arg._offsets,
        "lengths": arg._lengths,
        "_metadata_cache": arg._extremes,
        "_ragged_idx": arg._ragged_idx,
    }


def buffer_from_jagged(jagged):
    """The values of a nested tensor."""
    return jagged.values()
