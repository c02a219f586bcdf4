"""View handlers: what the steps of a view's ``map`` mean.

:class:`Strided` gives shape, strides and offset (eager, fake). :class:`ViewRecorder` keeps the steps, from which the other meanings follow:
:func:`source_index` (lowering: the input index of an output index), the transposed map (autograd) and the shifted one (batching).
A view is a chain of few steps, so every subsystem needs one rule a step, not one an operator.
"""

from __future__ import annotations

import math
from typing import Any

from ..base.records import slotted
from ..base.shapes import contiguous_strides, is_contiguous, normalize_dim, view_strides

__all__ = ["ViewRecorder", "Step", "Strided", "record", "source_index"]


class ViewHandler:
    """Common part: argument checks, and the steps that are compositions of others."""

    __slots__ = ("shape",)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def dim(self, d: int, extra: int = 0) -> int:
        """Non-negative dimension (``extra=1``: a position where a dimension is inserted)."""
        return normalize_dim(d, self.ndim + extra)

    def permute(self, perm):
        raise NotImplementedError(f"{type(self).__name__} must define the step permute")

    def transpose(self, a: int, b: int):
        if self.ndim == 0:
            return self
        perm = list(range(self.ndim))
        perm[a], perm[b] = perm[b], perm[a]
        return self.permute(tuple(perm))

    def select(self, d: int, index: int):
        return self.slice(d, index, 1, 1).squeeze((d,))


class Strided(ViewHandler):
    """Shape, strides and offset of the result."""

    __slots__ = ("strides", "offset")

    def __init__(self, shape, strides, offset=0):
        self.shape, self.strides, self.offset = tuple(shape), tuple(strides), offset

    def permute(self, perm):
        return Strided([self.shape[p] for p in perm], [self.strides[p] for p in perm], self.offset)

    def reshape(self, shape):
        shape = tuple(shape)
        strides = (
            contiguous_strides(shape)
            if is_contiguous(self.shape, self.strides)
            else view_strides(self.shape, self.strides, shape)
        )
        if strides is None:
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                f"contiguous subspaces). Use .reshape(...) instead. (size {list(self.shape)}, stride {list(self.strides)}, "
                f"view size {list(shape)})"
            )
        return Strided(shape, strides, self.offset)

    def expand(self, shape):
        pad = len(shape) - self.ndim
        strides = [0 if n == 1 and shape[pad + i] != 1 else s for i, (n, s) in enumerate(zip(self.shape, self.strides))]
        # A new dimension of size 1 lies as unsqueeze() would put it, in front of others.
        for d in range(pad - 1, -1, -1):
            outer = shape[d + 1] * strides[0] if shape[d] == 1 and self.ndim else 0
            strides.insert(0, outer)
        return Strided(shape, strides, self.offset)

    def slice(self, d, start, length, step):
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + start * strides[d]
        shape[d], strides[d] = length, strides[d] * step
        return Strided(shape, strides, offset)

    def select(self, d, index):
        shape, strides = self.shape, self.strides
        return Strided(shape[:d] + shape[d + 1 :], strides[:d] + strides[d + 1 :], self.offset + index * strides[d])

    def squeeze(self, dims):
        keep = [i for i in range(self.ndim) if i not in dims]
        return Strided([self.shape[i] for i in keep], [self.strides[i] for i in keep], self.offset)

    def unsqueeze(self, d):
        stride = self.shape[d] * self.strides[d] if d < self.ndim else 1
        return Strided(
            (*self.shape[:d], 1, *self.shape[d:]), (*self.strides[:d], stride, *self.strides[d:]), self.offset
        )

    def diagonal(self, d1, d2, offset):
        n1, n2 = self.shape[d1], self.shape[d2]
        length = max(min(n1, n2 - offset) if offset >= 0 else min(n1 + offset, n2), 0)
        start = (offset * self.strides[d2] if offset >= 0 else -offset * self.strides[d1]) if length else 0
        keep = [i for i in range(self.ndim) if i not in (d1, d2)]
        return Strided(
            [*(self.shape[i] for i in keep), length],
            [*(self.strides[i] for i in keep), self.strides[d1] + self.strides[d2]],
            self.offset + start,
        )

    def unfold(self, d, size, step):
        if self.ndim == 0:
            return Strided((size,), (1,), self.offset)
        n = (self.shape[d] - size) // step + 1
        shape, strides = list(self.shape), list(self.strides)
        shape[d] = n
        inner = strides[d]
        strides[d] *= step
        return Strided([*shape, size], [*strides, inner], self.offset)


@slotted
class Step:
    """One step: ``name``, its parameters, and the shapes on both sides."""

    name: str
    params: tuple
    in_shape: tuple[int, ...]
    out_shape: tuple[int, ...]


class ViewRecorder(ViewHandler):
    """Keeps the chain of steps. Shapes are computed on dense strides, on which every step but reshape behaves the same; a reshape
    always succeeds here, since whether it needs a copy is a matter of strides."""

    __slots__ = ("steps",)

    def __init__(self, shape, steps=()):
        self.shape, self.steps = tuple(shape), tuple(steps)

    def _add(self, name, params, shape):
        return ViewRecorder(shape, (*self.steps, Step(name, params, self.shape, tuple(shape))))

    def permute(self, perm):
        return self._add("permute", (tuple(perm),), [self.shape[p] for p in perm])

    def reshape(self, shape):
        return self._add("reshape", (tuple(shape),), shape)

    def expand(self, shape):
        return self._add("expand", (tuple(shape),), shape)

    def slice(self, d, start, length, step):
        return self._add("slice", (d, start, length, step), (*self.shape[:d], length, *self.shape[d + 1 :]))

    def squeeze(self, dims):
        return self._add("squeeze", (tuple(dims),), [n for i, n in enumerate(self.shape) if i not in dims])

    def unsqueeze(self, d):
        return self._add("unsqueeze", (d,), (*self.shape[:d], 1, *self.shape[d:]))

    def diagonal(self, d1, d2, offset):
        return self._add(
            "diagonal", (d1, d2, offset), Strided(self.shape, (1,) * self.ndim).diagonal(d1, d2, offset).shape
        )

    def unfold(self, d, size, step):
        return self._add("unfold", (d, size, step), Strided(self.shape, (1,) * self.ndim).unfold(d, size, step).shape)


def record(map, shape, *args) -> Any:
    """Steps of a view for an input of ``shape``: a ViewRecorder, or a list of them for views with several results."""
    return map(ViewRecorder(shape), *args)


def source_index(steps, index: tuple, ops) -> tuple:
    """Input index that output ``index`` is taken from. ``ops`` has add, mul, floordiv, mod on index values and Python ints
    (reshape needs the last two)."""
    for step in reversed(steps):
        index = _INDEX[step.name](step, index, ops)
    return index


def _permute(step, index, ops):
    out = [None] * len(index)
    for i, p in zip(index, step.params[0]):
        out[p] = i
    return tuple(out)


def _expand(step, index, ops):
    pad = len(step.out_shape) - len(step.in_shape)
    return tuple(0 if n == 1 and m != 1 else i for n, m, i in zip(step.in_shape, step.out_shape[pad:], index[pad:]))


def _slice(step, index, ops):
    d, start, _, stride = step.params
    return (*index[:d], ops.add(ops.mul(index[d], stride), start), *index[d + 1 :])


def _squeeze(step, index, ops):
    rest = iter(index)
    return tuple(0 if i in step.params[0] else next(rest) for i in range(len(step.in_shape)))


def _unsqueeze(step, index, ops):
    d = step.params[0]
    return (*index[:d], *index[d + 1 :])


def _diagonal(step, index, ops):
    d1, d2, offset = step.params
    *rest, k = index
    rest = iter(rest)
    i1, i2 = ops.add(k, max(-offset, 0)), ops.add(k, max(offset, 0))
    return tuple(i1 if d == d1 else i2 if d == d2 else next(rest) for d in range(len(step.in_shape)))


def _unfold(step, index, ops):
    d, _, stride = step.params
    *rest, k = index
    if not step.in_shape:
        return ()
    rest[d] = ops.add(ops.mul(rest[d], stride), k)
    return tuple(rest)


def _reshape(step, index, ops):
    """Dimensions are grouped where both shapes have equal partial products, so that an index only meets div and mod inside a group."""
    src, dst = step.in_shape, step.out_shape
    if any(isinstance(n, int) and n == 0 for n in (*src, *dst)):
        return (0,) * len(src)  # no element asks
    out, i, j = [], 0, 0
    while i < len(src) or j < len(dst):
        i0, j0 = i, j
        a = src[i] if i < len(src) else 1
        b = dst[j] if j < len(dst) else 1
        i, j = min(i + 1, len(src)), min(j + 1, len(dst))
        while a != b:
            if a < b:
                a, i = a * src[i], i + 1
            else:
                b, j = b * dst[j], j + 1
        inner, outer = src[i0:i], [(index[k], dst[k]) for k in range(j0, j) if dst[k] != 1]
        wide = [k for k, n in enumerate(inner) if n != 1]
        if len(outer) == 1 and len(wide) == 1:
            out.extend(outer[0][0] if k == wide[0] else 0 for k in range(len(inner)))
            continue
        linear = 0
        for ix, n in outer:
            linear = ops.add(ops.mul(linear, n), ix)
        part, stride = [0] * len(inner), math.prod(inner)
        for pos, k in enumerate(wide):
            stride //= inner[k]
            q = ops.floordiv(linear, stride) if stride != 1 else linear
            part[k] = ops.mod(q, inner[k]) if pos else q
        out.extend(part)
    return tuple(out)


_INDEX = {
    "permute": _permute,
    "reshape": _reshape,
    "expand": _expand,
    "slice": _slice,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "diagonal": _diagonal,
    "unfold": _unfold,
}
