"""Memory formats: orders of dimensions in memory that have a name. Strides count elements."""

from __future__ import annotations

from .public import public_in

__all__ = [
    "MemoryFormat",
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "format_strides",
    "has_format",
    "is_last",
    "preserve_format",
    "suggested_format",
]


@public_in("", "memory_format")
class MemoryFormat:
    """``torch.contiguous_format``, ``torch.channels_last`` ((N, C, H, W) with the channels innermost), ``torch.channels_last_3d``
    ((N, C, D, H, W)), ``torch.preserve_format`` (as the argument has it). There are no others."""

    __slots__ = ("name", "rank")

    def __init__(self, name: str, rank: int | None):
        self.name, self.rank = name, rank

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


contiguous_format = MemoryFormat("contiguous_format", None)
preserve_format = MemoryFormat("preserve_format", None)
channels_last = MemoryFormat("channels_last", 4)
channels_last_3d = MemoryFormat("channels_last_3d", 5)
BY_RANK = {4: channels_last, 5: channels_last_3d}
BY_NAME = {f.name: f for f in (contiguous_format, preserve_format, channels_last, channels_last_3d)}


def _order(ndim: int) -> tuple[int, ...]:
    """Dimensions from the innermost, with the channels innermost."""
    return (1, *range(ndim - 1, 1, -1), 0)


def format_strides(shape, format: MemoryFormat) -> tuple[int, ...]:
    """Strides of a new tensor in ``format``. RuntimeError when the format is for another number of dimensions, or names none."""
    if format.rank is None:
        if format is not contiguous_format:
            raise RuntimeError("unsupported memory format Preserve")
        order = range(len(shape) - 1, -1, -1)
    elif format.rank != len(shape):
        raise RuntimeError(f"required rank {format.rank} tensor to use {format.name} format")
    else:
        order = _order(format.rank)
    out, step = [0] * len(shape), 1
    for d in order:
        out[d] = step
        step = step * max(shape[d], 1)
    return tuple(out)


def has_format(shape, strides, format: MemoryFormat) -> bool:
    """Whether a tensor is dense in the order of a format for channels (strides of dimensions of size 1 don't count)."""
    if len(shape) != format.rank:
        return False
    step = 1
    for d in _order(format.rank):
        if shape[d] != 1:
            if strides[d] != step:
                return False
            step = step * shape[d]
    return True


def is_last(shape, strides) -> bool:
    """Whether a tensor is dense in the order of a format for channels, and not row-major as well."""
    format = BY_RANK.get(len(shape))
    return (
        format is not None and has_format(shape, strides, format) and shape[1] != 1 and any(n != 1 for n in shape[2:])
    )


def suggested_format(shape, strides) -> MemoryFormat:
    """The format that a tensor's strides look like, gaps allowed: what operators on images give their results.

    Strides of dimensions of size 1 do count here, since they alone tell (N, 1, H, W) of one format from the other; what could be either is
    row-major.
    """
    format = BY_RANK.get(len(shape))
    if format is None or strides[1] == 0:
        return contiguous_format
    least = 0
    for d in _order(format.rank):
        n, s = shape[d], strides[d]
        if n == 0 or s < least or (d == 0 and least == strides[1]):
            return contiguous_format
        least = s * n if n > 1 else s
    return format
