"""Maxima of windows in one, two and three dimensions, and the way back.

A pooling is a view of windows (``unfold`` in each dimension) and a reduction over them. Maxima come with the flat position of the winner, through
which the derivative goes.
"""

from __future__ import annotations

import functools
import math

from ...base.memory_format import channels_last_3d, contiguous_format, has_format
from ...base.shapes import is_contiguous, same_shape, spread
from ...core.declare import COMPLEX, INTEGERS, composite, explicit
from ...core.images import as_image, as_images
from ...core.layouts import strides_of
from ...core.operator import namespace
from .pool_windows import KERNEL_DTYPES, check, counts_of, flat_of, lowest, positions_of, windows_of

aten = namespace("aten")


def _max_parts(self, n, kernel_size, stride, padding, dilation, ceil_mode, name):
    kernel = spread(kernel_size, n)
    stride = spread(stride, n) if stride else kernel
    padding, dilation = spread(padding, n), spread(dilation, n)
    check(self, n, kernel, stride, padding, dilation, name)
    counts = counts_of(self, n, kernel, stride, padding, dilation, ceil_mode, name)
    fill = None
    if any(d != 1 for d in dilation):
        fill = -math.inf if self.dtype.is_floating_point else lowest(self.dtype)
    windows = windows_of(self, n, kernel, stride, padding, dilation, counts, fill)
    return windows, kernel, stride, padding, dilation, counts


def _pool_of_two(forward, backward):
    """Lowered to a native kernel where there is one: float32 and float64, windows without gaps."""

    @forward.override("keep_fused")
    def _(self, kernel_size, stride, padding, dilation, ceil_mode):
        return self.dtype in KERNEL_DTYPES and all(d == 1 for d in spread(dilation, 2))

    @forward.override("lower")
    def _(lowering, val, self, kernel_size, stride, padding, dilation, ceil_mode):
        kernel = spread(kernel_size, 2)
        return lowering.max_pool(val, self, kernel, spread(stride, 2) if stride else kernel, spread(padding, 2))

    @backward.override("keep_fused")
    def _(grad_output, *rest):
        return grad_output.dtype in KERNEL_DTYPES

    @backward.override("lower")
    def _(lowering, val, grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
        return lowering.max_pool_backward(val, backward.name(), grad_output, indices)


def _of_volumes(n: int):
    """Of three dimensions: (C, D, H, W) is one volume, and lies channels last where a batch of it does. Of two, a body as it is."""

    def wrap(fn):
        batched = as_images(fn, 0, False, None)

        def run(self, *rest):
            if self.ndim != 4 or 0 in self.shape:
                return batched(self, *rest)
            x = aten.unsqueeze.default(self, 0)
            last = not is_contiguous(x.shape, strides_of(x)) and has_format(x.shape, strides_of(x), channels_last_3d)
            format = channels_last_3d if last else contiguous_format
            made = fn(x, *rest)
            if isinstance(made, (tuple, list)):
                return tuple(aten.squeeze.dim(as_image(t, format), 0) for t in made)
            return aten.squeeze.dim(as_image(made, format), 0)

        return functools.wraps(fn)(run) if n == 3 else fn

    return wrap


def _max_pool_with_indices(n):
    name = f"max_pool{n}d_with_indices"

    @explicit(
        f"{name}(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, int[{n}] dilation=1, bool ceil_mode=False) "
        "-> (Tensor, Tensor)",
        variants="nn",
        has_out=False,
        images=None if n == 3 else 0,
    )
    @_of_volumes(n)
    def forward(self, kernel_size, stride, padding, dilation, ceil_mode):
        windows, kernel, stride, padding, dilation, counts = _max_parts(
            self, n, kernel_size, stride, padding, dilation, ceil_mode, f"max_pool{n}d"
        )
        values, where = aten.max.dim(windows, -1)
        sizes = list(self.shape[self.ndim - n :])
        flat = positions_of(sizes, kernel, stride, padding, dilation, counts, self.device)
        flat = aten.expand.default(flat, list(windows.shape))
        return values, aten.squeeze.dim(
            aten.gather.default(flat, windows.ndim - 1, aten.unsqueeze.default(where, -1)), -1
        )

    @explicit(
        f"{name}_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, int[{n}] stride, int[{n}] padding, int[{n}] dilation, "
        "bool ceil_mode, Tensor indices) -> Tensor",
        has_out=False,
        images=1,
    )
    def backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
        for what, t in (("grad_output", grad_output), ("indices", indices)):
            if (
                self.ndim != t.ndim
                or not same_shape(t.shape[:-n], self.shape[:-n])
                or not same_shape(t.shape, indices.shape)
            ):
                raise RuntimeError(
                    f"{name}_backward: {what} has the shape {list(t.shape)}, the input {list(self.shape)} and indices {list(indices.shape)}"
                )
        lead = list(self.shape[: self.ndim - n])
        flat = aten.new_zeros.default(grad_output, [*lead, math.prod(self.shape[self.ndim - n :])])
        at, values = (flat_of(t, n) for t in (indices, grad_output))
        out = aten.scatter_add.default(flat, len(lead), at, values)
        return aten.reshape.default(out, list(self.shape))

    forward.derivative(
        (0,),
        self=lambda ct0, self, kernel_size, stride, padding, dilation, ceil_mode, result1: backward(
            ct0, self, kernel_size, stride, padding, dilation, ceil_mode, result1
        ),
    )

    if n == 2:
        _pool_of_two(forward, backward)

    def picked(ct, indices):
        values = aten.gather.default(flat_of(ct, n), indices.ndim - n, flat_of(indices, n))
        return aten.reshape.default(values, list(indices.shape))

    backward.derivative(
        grad_output=picked, self=lambda ct, self_like: aten.new_zeros.default(ct, list(self_like.shape))
    )
    return forward


_with_indices = {n: _max_pool_with_indices(n) for n in (2, 3)}


@composite(
    "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) "
    "-> (Tensor, Tensor)",
    variants="function nn",
    images=(0, True),
)
def max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
    if self.ndim not in (2, 3):
        raise RuntimeError(f"max_pool1d() Expected 2D or 3D input tensor, but got {list(self.shape)}")
    values, indices = _with_indices[2](
        aten.unsqueeze.default(self, -2),
        [1, *spread(kernel_size, 1)],
        [1, *spread(stride, 1)] if stride else [],
        [0, *spread(padding, 1)],
        [1, *spread(dilation, 1)],
        ceil_mode,
    )
    return aten.squeeze.dim(values, -2), aten.squeeze.dim(indices, -2)


def _max_pool(n):
    @composite(
        f"max_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, int[{n}] dilation=1, bool ceil_mode=False) "
        "-> Tensor",
        refuse=(*(INTEGERS if n == 1 else ["bool"]), *COMPLEX),
        variants="function",
        images=None if n == 3 else 0,
    )
    @_of_volumes(n)
    def max_pool(self, kernel_size, stride, padding, dilation, ceil_mode):
        if n == 2 and self.dtype in KERNEL_DTYPES:
            return _with_indices[2](self, kernel_size, stride, padding, dilation, ceil_mode)[0]
        windows = _max_parts(self, n, kernel_size, stride, padding, dilation, ceil_mode, f"max_pool{n}d")[0]
        return aten.max.dim(windows, -1)[0]

    return max_pool


_max_pool(1).override("watched", lambda *args: max_pool1d_with_indices(*args)[0])

_max_pool(2)

_max_pool(3).override("watched", lambda *args: _with_indices[3](*args)[0])


def _max_unpool(n, opname):
    extra = f", int[{n}] stride, int[{n}] padding" if n == 3 else ""

    @composite(
        f"{opname}(Tensor self, Tensor indices, SymInt[{n}] output_size{extra}) -> Tensor",
        variants="",
        images=0 if n == 2 else None,
    )
    def max_unpool(self, indices, output_size, *_):
        """Zeros, and the values at the flat positions that pooling gave."""
        if indices.dtype.name != "int64":
            raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
        if list(indices.shape) != list(self.shape):
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) but got indices tensor with shape: "
                f"{list(indices.shape)}"
            )
        if len(output_size) != n:
            sizes, words = ("(height, width)", "two") if n == 2 else ("(depth, height, width)", "three")
            raise RuntimeError(
                f"There should be exactly {words} elements {sizes} in output_size, but got {len(output_size)} elements."
            )
        if self.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with {self.ndim} dimensions."
            )
        if any(size < 0 for size in output_size):
            raise RuntimeError(
                f"max_unpooling{n}d(): output_size must contain non-negative spatial dimensions, but got output_size={tuple(output_size)}"
            )
        lead = list(self.shape[: self.ndim - n])
        flat = aten.new_zeros.default(self, [*lead, math.prod(output_size)])
        at, values = (flat_of(t, n) for t in (indices, self))
        return aten.reshape.default(aten.scatter.src(flat, len(lead), at, values), [*lead, *output_size])


_max_unpool(2, "max_unpool2d")

_max_unpool(3, "max_unpool3d")
