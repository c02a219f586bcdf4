"""KernelCalls in call plans: the handler of core/native_kernels that makes steps of them."""

from __future__ import annotations

import math

import numpy as np

from ...base import dtypes
from ...base.device import CPU
from ...base.memory_format import is_last
from ...base.shapes import contiguous_strides, is_contiguous, normalize_dim
from ...core import modes, native_kernels
from ...core.handler import Handler
from ...core.messages import About
from ...core.native_kernels import ordering, windows
from ..backend import kernel_of, wrap_meta
from .program import Program
from .values import NotPlanned, PlanValue, bytes_of, value_meta

__all__ = ["KernelCalls", "by_override", "by_rows", "extreme", "line_products"]


_KEPT = 1 << 14  # elements of an array that is kept to be copied


class Stored:
    """A value of a program as the override "lower" sees it: a tensor, and the part of memory where it lies."""

    __slots__ = ("dtype", "shape", "strides", "value")

    device = CPU

    def __init__(self, value: PlanValue):
        self.value, self.shape = value, value.shape
        self.dtype = dtypes.from_numpy(value.dtype)
        self.strides = value.element_strides()

    @property
    def sizes(self):
        return self.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def stride(self):
        return self.strides

    def numel(self) -> int:
        return math.prod(self.shape)


class KernelCalls(Handler):
    """What the override "lower" of an operator is handed. It has the rules of native kernels and nothing else: what
    is lowered to other things has no call plan by this way (AttributeError)."""

    rules = native_kernels.SUBJECTS

    def __init__(self, program: Program, make=None):
        """``make``: (program, operator, values, out) -> the operator's result, of other operators that the override calls."""
        self.program, self.make = program, make

    def operator(self, op, args, kwargs, val) -> Stored:
        values = op.full(*args, **kwargs)
        return Stored(self.make(self.program, op, [x.value if isinstance(x, Stored) else x for x in values], None))

    def launch(self, kernel, operands, outs, flops, /, effect=False, by_planes=False, **numbers) -> list[Stored | None]:
        made = [o and self.program.empty(o.shape, o.dtype.np, o.strides) for o in outs]
        given = [x and x.value for x in operands]
        self.program.native(kernel, given, made, flops, numbers)
        return [v and Stored(v) for v in made]

    def realize(self, x: Stored) -> Stored:
        return x

    def contiguous(self, x: Stored) -> Stored:
        if is_contiguous(x.shape, x.strides):
            return x
        return Stored(self.program.copy(x.value, self.program.empty(x.shape, x.value.dtype)))

    def image(self, x: Stored) -> Stored:
        return x if is_last(x.shape, x.strides) else self.contiguous(x)

    def image_strides(self, shape, ruled, as_ruled: bool) -> tuple:
        return tuple(ruled) if is_last(shape, ruled) else contiguous_strides(shape)

    def part(self, part: Stored, shape, strides) -> Stored:
        v = part.value
        return Stored(v.seen(shape, bytes_of(strides, v.dtype)))

    def in_memory(self, part: Stored, dtype, strides, device) -> Stored:
        return part

    def copied(self, x: Stored) -> Stored:
        return Stored(self.program.copy(x.value, self.program.empty(x.shape, x.value.dtype)))

    def as_dtype(self, x: Stored, dtype) -> Stored:
        return x if x.dtype is dtype else Stored(self.program.cast(x.value, dtype.np))

    def biased(self, x: Stored, bias: Stored) -> Stored:
        v = bias.value
        spread = v.seen(x.shape, (0, v.strides[0], *[0] * (x.ndim - 2)))
        return Stored(self.program.ufunc(np.add, [x.value, spread], None, x.shape))

    def full(self, shape, dtype, number, device) -> Stored:
        return Stored(self.program.copy(self.program.constant(number, dtype.np), self.program.empty(shape, dtype.np)))

    def block_diag(self, matrices: list[Stored]) -> Stored:
        """Matrices of one dtype copied onto the diagonal of zeros; vectors are rows."""
        blocks = [x if x.ndim == 2 else self.part(x, (1, *x.shape), (0, *x.strides)) for x in matrices]
        if {x.dtype for x in blocks} != {blocks[0].dtype} or any(x.ndim != 2 or 0 in x.shape for x in blocks):
            raise NotPlanned
        height, width = (sum(x.shape[d] for x in blocks) for d in (0, 1))
        made, dtype = self.full((height, width), blocks[0].dtype, 0, CPU), blocks[0].value.dtype
        place = 0
        for x in blocks:
            strides = (width * dtype.itemsize, dtype.itemsize)
            self.program.copy(x.value, made.value.seen(x.shape, strides, offset=place * dtype.itemsize))
            place += x.shape[0] * width + x.shape[1]
        return made

    def known(self, val, op, *given) -> Stored:
        """What is made of no tensor: it is kept, and copied."""
        if math.prod(val.shape) > _KEPT:
            raise NotPlanned
        made = kernel_of(op)[1](*given)._array
        return Stored(self.program.copy(self.program.constant(made), self.program.empty(made.shape, made.dtype)))

    def message(self, text: str, about=About.INDEX) -> int:
        return 0  # the kernel words it


def by_override(p: Program, op, values, make):
    """The results of ``op`` as values, made by the native kernel that its override "lower" names. REFUSED where that names none."""
    if "keep_fused" in op.overrides and not op.overrides["keep_fused"](*map(_stored, values)):
        raise NotPlanned
    with modes.disabled("function"), modes.disabled("dispatch"):
        metas = wrap_meta(op.facet("meta")(*map(value_meta, values)))
    many = isinstance(metas, (tuple, list))
    made = op.overrides["lower"](KernelCalls(p, make), metas, *map(_stored, values))
    made, metas = (list(made), metas) if many else ([made], [metas])
    if len(made) != len(metas) or not all(
        isinstance(x, Stored) or (x is None is m and many) for x, m in zip(made, metas)
    ):
        raise NotPlanned
    found = [None if m is None else _laid_out(p, x.value, m) for x, m in zip(made, metas)]
    return found if many else found[0]


def by_rows(p: Program, op, values):
    """The results of ``op`` as values, made by the native kernel that its override "rows" names: eager calls alone have it."""
    made = op.overrides["rows"](KernelCalls(p), *map(_stored, values))
    return [m.value for m in made] if isinstance(made, list) else made.value


def extreme(p: Program, x: PlanValue, dim, keepdim: bool, least: bool) -> PlanValue:
    """argmax or argmin."""
    made = ordering.extreme(KernelCalls(p), Stored(x), dim, least).value
    if not keepdim:
        return made
    axis = None if dim is None else normalize_dim(dim, len(x.shape))
    shape = tuple(1 if axis in (None, d) else n for d, n in enumerate(x.shape))
    return made.seen(shape, bytes_of(contiguous_strides(shape), made.dtype))


def line_products(p: Program, lines: PlanValue) -> PlanValue:
    """The products of lines (lines, terms)."""
    return windows.line_products(KernelCalls(p), Stored(lines)).value


def _stored(x):
    if isinstance(x, PlanValue):
        return Stored(x)
    return [_stored(y) for y in x] if isinstance(x, (list, tuple)) else x


def _laid_out(p: Program, v: PlanValue, meta) -> PlanValue:
    """With the strides that the shape rule says."""
    strides = meta.stride()
    return v if v.strides == bytes_of(strides, v.dtype) else p.copy(v, p.empty(v.shape, v.dtype, strides))
