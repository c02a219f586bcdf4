"""Functions that move elements of nested tensors of the strided layout: the batch stays the first dimension."""

from __future__ import annotations

import math

from flambeau.core.operator import namespace

from ..around import wrapped
from .functions import components, is_strided, joined, rule
from .tensor import Place, StridedNestedTensor

aten = namespace("aten")


@rule("unbind")
def unbind(func, t, dim=0):
    if wrapped(t, dim) != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    return components(t)


def _part(t, index: int):
    n = len(t._places)
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
    p = t._places[index % n]
    return aten.as_strided(t._buffer, p.size, p.stride, p.offset)


def _moved(t, place):
    """A view: ``place(p)`` for each place."""
    return StridedNestedTensor(t._buffer, [place(p) for p in t._places])


@rule("select")
def select(func, t, dim, index):
    at = wrapped(t, dim) - 1
    if at < 0:
        return _part(t, index)

    def place(p):
        if not -p.size[at] <= index < p.size[at]:
            raise IndexError(
                f"select(): index {index} out of range for a part of size {p.size[at]} at dimension {at + 1}"
            )
        offset = p.offset + index % p.size[at] * p.stride[at]
        return Place(p.size[:at] + p.size[at + 1 :], p.stride[:at] + p.stride[at + 1 :], offset)

    return _moved(t, place)


@rule("__getitem__")
def getitem(func, t, key):
    keys = key if isinstance(key, tuple) else (key,)
    if Ellipsis in [k for k in keys if k is Ellipsis]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        used = sum(k is not None and k is not Ellipsis for k in keys)
        keys = (*keys[:at], *[slice(None)] * (t.dim() - used), *keys[at + 1 :])
    if keys and isinstance(keys[0], int) and not isinstance(keys[0], bool):
        found = _part(t, keys[0])
        return found[keys[1:]] if len(keys) > 1 else found
    out, dim = t, 0
    for k in keys:
        if isinstance(k, int) and not isinstance(k, bool):
            out = select(None, out, dim, k)
        elif k == slice(None):
            dim += 1
        else:
            raise NotImplementedError(
                f"indexing a nested tensor of the strided layout with {k!r}: it takes integers, whole slices and an ellipsis"
            )
    return out


@rule("__setitem__")
def setitem(func, t, key, value):
    found = getitem(None, t, key)
    if found.is_nested:
        raise NotImplementedError(
            "writing into a nested tensor of the strided layout: the key has to name one part, or a place in it"
        )
    found.copy_(value) if hasattr(value, "dtype") else found.fill_(value)


@rule("transpose", "swapaxes", "swapdims")
def transpose(func, t, dim0, dim1):
    a, b = wrapped(t, dim0), wrapped(t, dim1)
    if 0 in (a, b) and a != b:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")

    def place(p):
        order = list(range(len(p.size)))
        order[a - 1], order[b - 1] = order[b - 1], order[a - 1]
        return Place(tuple(p.size[d] for d in order), tuple(p.stride[d] for d in order), p.offset)

    return t if a == b else _moved(t, place)


def _sizes(name: str, t, shape) -> list[tuple[int, ...]]:
    """The sizes of the parts of ``t`` in ``shape``: -1 in the place of a dimension keeps its size, behind them it is told from the rest."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = shape[0]
    if not t._places:
        raise RuntimeError(f"{name}: an empty nested tensor cannot be reshaped")
    if shape[0] != len(t._places):
        raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit batch dimension")
    found = []
    for p in t._places:
        sizes = [p.size[d] if n == -1 and d < len(p.size) else n for d, n in enumerate(shape[1:])]
        known = math.prod(n for n in sizes if n != -1)
        if sizes.count(-1) == 1 and known and p.numel % known == 0:
            sizes[sizes.index(-1)] = p.numel // known
        if -1 in sizes or math.prod(sizes) != p.numel or min(sizes, default=0) < 0:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {p.numel}")
        found.append(tuple(sizes))
    return found


@rule("view")
def view(func, t, *shape):
    sizes = _sizes("view", t, shape)
    # The parts' own rule says where strides don't allow it, and what the strides are.
    made = [x.view(size) for x, size in zip(components(t), sizes)]
    return StridedNestedTensor(
        t._buffer, [Place(tuple(x.shape), tuple(x.stride()), p.offset) for x, p in zip(made, t._places)]
    )


@rule("reshape")
def reshape(func, t, *shape):
    sizes = _sizes("reshape", t, shape)
    return (
        joined([x.reshape(size) for x, size in zip(components(t), sizes)])
        if not t.is_contiguous()
        else view(None, t, *shape)
    )


@rule("unsqueeze")
def unsqueeze(func, t, dim):
    n = t.dim() + 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    at = dim % n - 1
    if at < 0:
        raise RuntimeError("unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the moment")

    def place(p):
        stride = p.size[at] * p.stride[at] if at < len(p.size) else 1
        return Place((*p.size[:at], 1, *p.size[at:]), (*p.stride[:at], stride, *p.stride[at:]), p.offset)

    return _moved(t, place)


@rule("squeeze")
def squeeze(func, t, dim=None):
    if dim is None:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeeze without the dim argument is not supported at the moment, however you can use "
            "squeeze(Tensor self, int dim) instead"
        )
    at = wrapped(t, dim) - 1
    if at < 0:
        raise RuntimeError("squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment")
    if any(p.size[at] != 1 for p in t._places):
        return t
    return _moved(t, lambda p: Place(p.size[:at] + p.size[at + 1 :], p.stride[:at] + p.stride[at + 1 :], p.offset))


@rule("chunk")
def chunk(func, t, chunks, dim=0):
    at = wrapped(t, dim) - 1
    if at != t.dim() - 2 or at < 0:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
    size = t.size(-1)
    if chunks < 1 or size % chunks:
        raise RuntimeError(
            "Chunk for nested tensors is only supported for nested tensors with trailing dimension divisible by chunks, got: "
            f"{size} % {chunks} != 0"
        )
    step = size // chunks

    def piece(k):
        return _moved(t, lambda p: Place((*p.size[:at], step), p.stride, p.offset + k * step * p.stride[at]))

    return tuple(map(piece, range(chunks)))


@rule("narrow")
def narrow(func, t, dim, start, length):
    if wrapped(t, dim) != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    n = len(t._places)
    if not 0 <= start <= n or length < 0 or start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return StridedNestedTensor(t._buffer, t._places[start : start + length])


@rule("cat", "concat", "concatenate")
def cat(func, tensors, dim=0):
    if not all(map(is_strided, tensors)) or dim != 0:
        raise NotImplementedError("cat of nested tensors of the strided layout: all have to be, along dimension 0")
    return joined([x for t in tensors for x in components(t)])


@rule("to_padded_tensor")
def to_padded_tensor(func, t, padding, output_size=None):
    """(B, ...), each dimension as long as the longest part, or as ``output_size`` says. RuntimeError where that is too small."""
    if not t.is_contiguous():
        raise RuntimeError("for now to_padded_tensor only supports contiguous nested tensor")
    if not t._places:
        return t._buffer
    sizes = [max(p.size[d] for p in t._places) for d in range(t.dim() - 1)]
    if output_size is not None:
        if len(output_size) != t.dim():
            raise RuntimeError(
                f"Length of output_size does not match NestedTensor dims. Broadcasting is not supported. got {len(output_size)} and {t.dim()}"
            )
        if any(want < have for want, have in zip(output_size, [len(t._places), *sizes])):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        sizes = list(output_size[1:])
    made = []
    for x in components(t):
        room = [(0, want - have) for want, have in zip(sizes, x.shape)]
        made.append(aten.constant_pad_nd(x, [n for pair in reversed(room) for n in pair], padding))
    out = aten.stack(made)
    if output_size is not None and output_size[0] > len(made):
        out = aten.constant_pad_nd(out, [0, 0] * (out.dim() - 1) + [0, output_size[0] - len(made)], padding)
    return out
