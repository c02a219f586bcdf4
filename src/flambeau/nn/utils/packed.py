"""Sequences of different lengths: padded, packed step by step, and back."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from flambeau.base import dtypes
from flambeau.base.public import public_in
from flambeau.base.symint import as_float
from flambeau.core.bindings import function
from flambeau.core.conversion import as_tensor
from flambeau.core.tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
]
__all__ += ["unpack_sequence", "unpad_sequence"]

_cat, _sort, _arange, _empty_like = map(function, ("cat", "sort", "arange", "empty_like"))
_base = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])  # type: ignore[name-match]


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one; None for None."""
    if permutation is None:
        return None
    places = _arange(0, permutation.numel(), device=permutation.device)
    return _empty_like(permutation).scatter_(0, permutation, places)


@public_in("nn.utils.rnn")
class PackedSequence(_base):
    """Elements step after step: ``data`` (total, *), ``batch_sizes`` how many sequences there are in each step (falling), and the orders."""

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None:
            if batch_sizes.device.type != "cpu":
                raise ValueError(
                    f"batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. {batch_sizes.device}"
                )
            return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)
        return super().__new__(cls, data[0], data[1], sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def cuda(self, *args, **kwargs) -> PackedSequence:
        return type(self)(self.data.cuda(*args, **kwargs), *self[1:])

    def double(self) -> PackedSequence:
        return self.to(dtypes.float64)

    def float(self) -> PackedSequence:
        return self.to(dtypes.float32)

    def half(self) -> PackedSequence:
        return self.to(dtypes.float16)

    def long(self) -> PackedSequence:
        return self.to(dtypes.int64)

    def int(self) -> PackedSequence:
        return self.to(dtypes.int32)

    def short(self) -> PackedSequence:
        return self.to(dtypes.int16)

    def char(self) -> PackedSequence:
        return self.to(dtypes.int8)

    def byte(self) -> PackedSequence:
        return self.to(dtypes.uint8)

    def pin_memory(self) -> PackedSequence:
        return self

    @property
    def is_cuda(self) -> bool:
        return False

    def is_pinned(self) -> bool:
        return False


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack (T, B, *) of the given lengths; ``enforce_sorted``: they fall already."""
    if not isinstance(lengths, Tensor):
        lengths = as_tensor(list(lengths)).long()
    lengths = lengths.cpu()
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if batch_first:
        input = input.transpose(0, 1)
    order = None
    if enforce_sorted is False:
        lengths, order = _sort(lengths, descending=True)
        input = input.index_select(1, order)
    numbers = lengths.tolist()
    if len(numbers) != input.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(numbers)} (batch_size={input.shape[1]})"
        )
    if not numbers or numbers[-1] <= 0 or min(numbers) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in zip(numbers, numbers[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to "
            "pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability."
        )
    if numbers[0] > input.shape[0]:
        raise RuntimeError(f"Expected sequence length to be at most {input.shape[0]}, got {numbers[0]}")
    sizes, runs, start = [], [], 0
    for k in range(len(numbers) - 1, -1, -1):  # runs of steps with the same number of sequences
        if numbers[k] > start:
            runs.append(input[start : numbers[k], : k + 1].reshape(-1, *input.shape[2:]))
            sizes += [k + 1] * (numbers[k] - start)
            start = numbers[k]
    return PackedSequence(_cat(runs, 0), as_tensor(sizes), order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(padded, lengths), in the order the sequences had before packing."""
    data, sizes, _, back = sequence
    steps = sizes.tolist()
    longest = len(steps)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} and max "
                f"sequence length being {longest}"
            )
    rows, at = [], 0
    widest = steps[0]
    for n in steps:
        row = data[at : at + n]
        if n < widest:
            row = _cat([row, data.new_full((widest - n, *data.shape[1:]), as_float(padding_value))], 0)
        rows.append(row.unsqueeze(0))
        at += n
    if total_length is not None and total_length > longest:
        rows.append(data.new_full((total_length - longest, widest, *data.shape[1:]), as_float(padding_value)))
    out = _cat(rows, 0)
    lengths = as_tensor([sum(n > k for n in steps) for k in range(widest)])
    out = out.transpose(0, 1) if batch_first else out
    if back is not None:
        out, lengths = out.index_select(0 if batch_first else 1, back), lengths[back.cpu()]
    return out, lengths


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (T_i, *) to one tensor (T, B, *)."""
    if not isinstance(sequences, Tensor | list | tuple):
        try:
            sequences = list(sequences)
        except TypeError:
            raise RuntimeError(
                f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
            ) from None
    if not isinstance(batch_first, bool):
        raise TypeError(
            f"pad_sequence(): argument 'batch_first' (position 2) must be bool, not {type(batch_first).__name__}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"padding_side must be one of 'left' or 'right', got {padding_side}")
    sequences = list(sequences.unbind(0)) if isinstance(sequences, Tensor) else list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.shape[0] for s in sequences)
    rows = []
    for s in sequences:
        # The first one's dtype and device are the result's: the others are copied into it.
        s = s.to(sequences[0].device, sequences[0].dtype)
        more = longest - s.shape[0]
        if more:
            extra = s.new_full((more, *s.shape[1:]), as_float(padding_value))
            s = _cat([s, extra] if padding_side == "right" else [extra, s], 0)
        rows.append(s.unsqueeze(0 if batch_first else 1))
    return _cat(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list:
    """The sequences of a padded tensor."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [s[:n].clone() for s, n in zip(padded_sequences.unbind(0), lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (T_i, *)."""
    lengths = as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list:
    """The sequences of a PackedSequence, each with its length."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
