"""Gradients in buckets: which parameters share one, and its memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .. import _C
from ..core.bindings import function
from .process_group import ProcessGroup

__all__ = ["Bucket", "FIRST_BUCKET_BYTES", "assign", "build"]

FIRST_BUCKET_BYTES = 1 << 20
_ALIGN = 64

as_strided = function("as_strided")


def nbytes(t) -> int:
    return t.numel() * t.element_size()


def assign(tensors, limits: list[int], order: list[int]) -> list[list[int]]:
    """Indices of ``tensors``, taken in ``order``, by bucket. A bucket has one dtype and is closed when it holds its limit of bytes: of the first the
    first limit, of each later one the next, the last for the rest. The order of buckets is that of their first tensors."""
    open_: dict = {}
    done: list[list[int]] = []
    closed: dict = {}
    for i in order:
        key = tensors[i].dtype
        indices, size = open_.pop(key, ([], 0))
        indices.append(i)
        size += nbytes(tensors[i])
        count = closed.get(key, 0)
        if size >= limits[min(count, len(limits) - 1)]:
            done.append(indices)
            closed[key] = count + 1
        else:
            open_[key] = (indices, size)
    done += [indices for indices, _ in open_.values()]
    position = {i: k for k, i in enumerate(order)}
    return sorted(done, key=lambda indices: position[indices[0]])


@dataclass
class Bucket:
    """Gradients that are reduced together. ``views[k]`` is the place of parameter ``indices[k]`` in ``flat``."""

    indices: list[int]
    flat: object
    views: list
    pending: int = 0
    waits: object = None  # a Future or a Work
    offsets: list[int] = field(default_factory=list)
    home: tuple | None = None  # (flat, views) of a bucket that has other memory for one backward

    @property
    def size(self) -> int:
        return nbytes(self.flat)


def _dense_strides(t) -> tuple[int, ...]:
    """The parameter's own strides where its elements fill their memory, else row-major ones."""
    expected = 1
    for stride, extent in sorted(zip(t.stride(), t.shape)):
        if extent != 1 and stride != expected:
            break
        expected *= extent
    else:
        return tuple(t.stride())
    return tuple(int(np.prod(t.shape[k + 1 :])) for k in range(t.dim()))


class Memory:
    """Room for all buckets of a reducer, where the other ranks can reach it if the engine has such a place. Buckets that are built anew take the
    same room."""

    def __init__(self, group: ProcessGroup, tensors):
        total = sum(-(-nbytes(t) // _ALIGN) * _ALIGN + _ALIGN for t in tensors) + _ALIGN
        shared = group._engine.shared(total)
        found = np.zeros(total, np.uint8) if shared is None else shared
        self.bytes = found[-found.__array_interface__["data"][0] % _ALIGN :]

    def cut(self, begin: int, size: int, dtype: np.dtype) -> np.ndarray:
        # Of a memoryview: the storage of the tensor begins with the bucket, and offsets count from there.
        return np.frombuffer(memoryview(self.bytes)[begin : begin + size], dtype)


def _views(flat, tensors, indices: list[int]) -> tuple[list, list[int]]:
    """The place of each tensor in ``flat``, and where it begins."""
    views, offsets, at = [], [], 0
    for i in indices:
        t = tensors[i]
        views.append(as_strided(flat, tuple(t.shape), _dense_strides(t), at))
        offsets.append(at)
        at += t.numel()
    return views, offsets


def build(memory: Memory, tensors, assignment: list[list[int]]) -> list[Bucket]:
    """The buckets of an assignment."""
    out, begin = [], 0
    for indices in assignment:
        first = tensors[indices[0]]
        elements = sum(tensors[i].numel() for i in indices)
        array = memory.cut(begin, elements * first.element_size(), first._array.dtype)
        begin += -(-array.nbytes // _ALIGN) * _ALIGN
        flat = _C.from_array(array)
        views, offsets = _views(flat, tensors, indices)
        out.append(Bucket(list(indices), flat, views, offsets=offsets))
    return out


def move(bucket: Bucket, tensors) -> None:
    """Give the bucket memory of its own until ``move_back``. What was in it isn't taken along."""
    bucket.home = (bucket.flat, bucket.views)
    bucket.flat = _C.from_array(np.zeros(bucket.flat.numel(), bucket.flat._array.dtype))
    bucket.views, _ = _views(bucket.flat, tensors, bucket.indices)


def move_back(bucket: Bucket) -> None:
    bucket.flat, bucket.views = bucket.home
    bucket.home = None
