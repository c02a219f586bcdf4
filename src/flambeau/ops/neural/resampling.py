"""Resampling: upsampling by nearest, linear and cubic interpolation, and sampling on a grid.

A resampling is separable: each dimension in turn is a weighted sum of a few rows picked from the input.
"""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.shapes import spread
from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace
from ..reductions.basic import as_dtype, widened

aten = namespace("aten")


def _ratio(size, out, align_corners, scale):
    """Input positions per output position."""
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0 else size / out


def _sources(size, out, align_corners, scale, like, cubic=False):
    """(out,): real position in the input of each output."""
    ratio = _ratio(size, out, align_corners, scale)
    i = aten._to_copy.default(aten.arange.default(out, device=like.device), dtype=_float(like))
    if align_corners:
        return aten.mul.Tensor(i, ratio)
    at = aten.sub.Tensor(aten.mul.Tensor(aten.add.Tensor(i, 0.5), ratio), 0.5)
    return at if cubic else aten.clamp.default(at, 0.0)


def _float(like):
    return dtypes.float64 if like.dtype.name == "float64" else dtypes.float32


def _linear(self, dim, out, align_corners, scale):
    size = self.shape[dim]
    if out == size:
        return self
    at = _sources(size, out, align_corners, scale, self)
    low = aten._to_copy.default(aten.floor.default(at), dtype=dtypes.int64)
    low = aten.clamp.default(low, None, size - 1)
    high = aten.clamp.default(aten.add.Tensor(low, 1), None, size - 1)
    weight = aten._to_copy.default(aten.clamp.default(aten.sub.Tensor(at, low), 0.0, 1.0), dtype=self.dtype)
    weight = aten.reshape.default(weight, [-1, *[1] * (self.ndim - 1 - dim)])
    a, b = aten.index_select.default(self, dim, low), aten.index_select.default(self, dim, high)
    return aten.add.Tensor(aten.mul.Tensor(a, aten.rsub.Scalar(weight, 1)), aten.mul.Tensor(b, weight))


_CUBIC = -0.75  # the coefficient that PyTorch and OpenCV use


def _cubic_weights(t, a=_CUBIC):
    """Weights of the rows at -1, 0, 1, 2 from the floor, for the fraction ``t``. Keys 1981."""

    def near(x):
        return aten.add.Tensor(
            aten.mul.Tensor(aten.mul.Tensor(aten.sub.Tensor(aten.mul.Tensor(x, a + 2), a + 3), x), x), 1
        )

    def far(x):
        out = aten.add.Tensor(aten.mul.Tensor(aten.sub.Tensor(aten.mul.Tensor(x, a), 5 * a), x), 8 * a)
        return aten.sub.Tensor(aten.mul.Tensor(out, x), 4 * a)

    rest = aten.rsub.Scalar(t, 1)
    return [far(aten.add.Tensor(t, 1)), near(t), near(rest), far(aten.add.Tensor(rest, 1))]


def _cubic(self, dim, out, align_corners, scale):
    size = self.shape[dim]
    if out == size and (align_corners or scale in (None, 1)):
        return self
    at = _sources(size, out, align_corners, scale, self, cubic=True)
    floor = aten.floor.default(at)
    base = aten._to_copy.default(floor, dtype=dtypes.int64)
    total = None
    for k, weight in enumerate(_cubic_weights(aten.sub.Tensor(at, floor))):
        rows = aten.index_select.default(self, dim, aten.clamp.default(aten.add.Tensor(base, k - 1), 0, size - 1))
        weight = aten.reshape.default(
            aten._to_copy.default(weight, dtype=self.dtype), [-1, *[1] * (self.ndim - 1 - dim)]
        )
        part = aten.mul.Tensor(rows, weight)
        total = part if total is None else aten.add.Tensor(total, part)
    return total


def _nearest(self, dim, out, exact, scale):
    size = self.shape[dim]
    if out == size:
        return self
    for times in (2, 4, 8):  # ratios without rounding: a view, whose derivative is a sum and no scatter
        if (scale is None or scale == times) and out == size * times:
            shape = list(self.shape)
            wide = aten.expand.default(
                aten.unsqueeze.default(self, dim + 1), [*shape[: dim + 1], times, *shape[dim + 1 :]]
            )
            return aten.reshape.default(wide, [*shape[:dim], out, *shape[dim + 1 :]])
    i = aten._to_copy.default(aten.arange.default(out, device=self.device), dtype=dtypes.float32)
    ratio = _ratio(size, out, False, scale)
    at = aten.floor.default(aten.mul.Tensor(aten.add.Tensor(i, 0.5) if exact else i, ratio))
    at = aten.clamp.default(aten._to_copy.default(at, dtype=dtypes.int64), None, size - 1)
    return aten.index_select.default(self, dim, at)


def _filtered(self, dim, out, align_corners, scale, cubic):
    """Antialiased: the filter is stretched by the ratio, so that each output averages all inputs under it. A product with its matrix."""
    size = self.shape[dim]
    ratio = _ratio(size, out, align_corners, scale)
    stretch = max(ratio, 1.0)
    support = (2.0 if cubic else 1.0) * stretch
    kind = _float(self)
    center = aten.mul.Tensor(
        aten.add.Tensor(aten._to_copy.default(aten.arange.default(out, device=self.device), dtype=kind), 0.5), ratio
    )
    low = aten.clamp.default(aten.floor.default(aten.add.Tensor(aten.sub.Tensor(center, support), 0.5)), 0)
    high = aten.clamp.default(aten.floor.default(aten.add.Tensor(aten.add.Tensor(center, support), 0.5)), None, size)
    j = aten._to_copy.default(aten.arange.default(size, device=self.device), dtype=kind)
    center, low, high = (aten.unsqueeze.default(t, 1) for t in (center, low, high))
    x = aten.abs.default(aten.div.Tensor(aten.add.Tensor(aten.sub.Tensor(j, center), 0.5), stretch))
    if cubic:
        a = -0.5
        near = aten.add.Tensor(
            aten.mul.Tensor(aten.mul.Tensor(aten.sub.Tensor(aten.mul.Tensor(x, a + 2), a + 3), x), x), 1
        )
        far = aten.add.Tensor(aten.mul.Tensor(aten.sub.Tensor(aten.mul.Tensor(x, a), 5 * a), x), 8 * a)
        far = aten.sub.Tensor(aten.mul.Tensor(far, x), 4 * a)
        weight = aten.where.self(aten.lt.Scalar(x, 1.0), near, aten.where.ScalarOther(aten.lt.Scalar(x, 2.0), far, 0.0))
    else:
        weight = aten.clamp.default(aten.rsub.Scalar(x, 1), 0.0)
    inside = aten.logical_and.default(aten.ge.Tensor(j, low), aten.lt.Tensor(j, high))
    weight = aten.where.ScalarOther(inside, weight, 0.0)
    weight = aten.div.Tensor(weight, aten.sum.dim_IntList(weight, [1], True))
    weight = aten._to_copy.default(weight, dtype=self.dtype)
    # The matrix on the side of the dimension: neither the result nor the gradient is transposed.
    if dim == self.ndim - 2:
        return aten.matmul.default(weight, self)
    return aten.matmul.default(self, aten.transpose.int(weight, 0, 1))


def _check(self, n, output_size, name):
    if self.ndim != n + 2:
        raise RuntimeError(f"{name}: it is expected input_size equals to {n + 2}, but got size {self.ndim}")
    if 0 in self.shape[1:]:
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(self.shape)}")
    if any(s <= 0 for s in output_size):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(self.shape)} output {list(output_size)}"
        )


def _of_bytes(self, sizes, step, align_corners, scales):
    """Images of 8-bit integers in fixed point: the columns, then the rows, each rounded to a byte. Weights have as many binary digits as fit
    with the largest of them into 15."""
    out = aten._to_copy.default(self, dtype=dtypes.float64)
    for dim in (3, 2):
        n = self.shape[dim]
        unit = aten.reshape.default(aten.eye.default(n, dtype=dtypes.float64, device=self.device), [1, 1, n, n])
        weight = aten.reshape.default(
            step(unit, 3, sizes[dim - 2], align_corners, scales[dim - 2]), [n, sizes[dim - 2]]
        )
        powers = aten.exp2.default(aten.arange.start(1, 23, dtype=dtypes.float64, device=self.device))
        top = aten.floor.default(aten.add.Tensor(aten.mul.Tensor(powers, aten.amax.default(weight)), 0.5))
        one = aten.exp2.default(
            aten.sum.default(aten._to_copy.default(aten.lt.Scalar(top, 1 << 15), dtype=dtypes.float64))
        )
        half = aten.copysign.Tensor(aten.full_like.default(weight, 0.5), weight)
        weight = aten.trunc.default(aten.add.Tensor(aten.mul.Tensor(weight, one), half))
        total = aten.matmul.default(aten.transpose.int(out, dim, 3), weight)
        total = aten.floor.default(aten.add.Tensor(aten.div.Tensor(total, one), 0.5))
        out = aten.transpose.int(aten.clamp.default(total, 0, 255), dim, 3)
    return aten.contiguous.default(aten._to_copy.default(out, dtype=dtypes.uint8))


def _declare(opname, n, step, *, align):
    """One operator with PyTorch's signature: ``step(self, dim, size, align_corners, scale)`` for each dimension."""
    letters = {1: [""], 2: ["_h", "_w"], 3: ["_d", "_h", "_w"]}[n]
    scales = ", ".join(f"float? scales{c}=None" for c in letters)
    corners = ", bool align_corners" if align else ""

    @composite(
        f"{opname}(Tensor self, SymInt[{n}] output_size{corners}, {scales}) -> Tensor",
        refuse=COMPLEX,
        variants="",
        images=0,
    )
    def upsample(self, output_size, *rest):
        align_corners, given = (rest[0], rest[1:]) if align else (False, rest)
        sizes = spread(output_size, n)
        _check(self, n, sizes, opname)
        if align and not self.dtype.is_floating_point and (self.dtype is not dtypes.uint8 or n != 2):
            raise NotImplementedError(
                f"\"compute_indices_weights_linear\" not implemented for '{self.dtype.scalar_type}'"
            )
        if self.dtype is dtypes.uint8 and align:
            return _of_bytes(self, sizes, step, align_corners, given or (None, None))
        # 16-bit numbers in float32, where they are weighted, and where their gradients are summed.
        out = widened(self) if align or self.requires_grad else self
        for i in range(n):
            out = step(out, 2 + i, sizes[i], align_corners, given[i] if i < len(given) else None)
        return aten.clone.default(out) if out is self else as_dtype(self.dtype, out)

    @composite(
        f"{opname}.vec(Tensor input, SymInt[]? output_size{corners}, float[]? scale_factors) -> Tensor", variants=""
    )
    def upsample_vec(input, output_size, *rest):
        factors = rest[-1]
        if (output_size is None) == (factors is None):
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        if factors is None:
            return upsample(input, list(output_size), *rest[:-1])
        if len(factors) != n:
            raise RuntimeError(f"{opname}: {n} scale factors are needed, but got {len(factors)}")
        sizes = [math.floor(m * f) for m, f in zip(input.shape[2:], factors)]
        return upsample(input, sizes, *rest[:-1], *factors)


for _n, _linear_name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    _declare(f"upsample_nearest{_n}d", _n, lambda x, d, s, _, scale: _nearest(x, d, s, False, scale), align=False)
    _declare(f"_upsample_nearest_exact{_n}d", _n, lambda x, d, s, _, scale: _nearest(x, d, s, True, scale), align=False)
    _declare(f"upsample_{_linear_name}", _n, _linear, align=True)
_declare("upsample_bicubic2d", 2, _cubic, align=True)
_declare("_upsample_bilinear2d_aa", 2, lambda x, d, s, a, scale: _filtered(x, d, s, a, scale, False), align=True)
_declare("_upsample_bicubic2d_aa", 2, lambda x, d, s, a, scale: _filtered(x, d, s, a, scale, True), align=True)


# ---- sampling on a grid -------------------------------------------------------------------------------------------------------


def _real(coordinate, size, align_corners):
    """From [-1, 1] to positions."""
    if align_corners:
        return aten.mul.Tensor(aten.add.Tensor(coordinate, 1), (size - 1) / 2)
    return aten.div.Tensor(aten.sub.Tensor(aten.mul.Tensor(aten.add.Tensor(coordinate, 1), size), 1), 2)


def _reflect(x, low2, high2):
    """Reflected into [low2 / 2, high2 / 2]."""
    if low2 == high2:
        return aten.zeros_like.default(x)
    low, span = low2 / 2, (high2 - low2) / 2
    x = aten.abs.default(aten.sub.Tensor(x, low))
    extra = aten.fmod.Tensor(x, span)
    flips = aten.floor.default(aten.div.Tensor(x, span))
    even = aten.eq.Scalar(aten.fmod.Tensor(flips, 2.0), 0.0)
    return aten.where.self(
        even, aten.add.Tensor(extra, low), aten.sub.Tensor(aten.add.Tensor(aten.neg.default(extra), span), -low)
    )


def _settle(x, size, padding_mode, align_corners):
    if padding_mode == 2:
        x = _reflect(x, 0, 2 * (size - 1)) if align_corners else _reflect(x, -1, 2 * size - 1)
    return x if padding_mode == 0 else _clipped(x, size - 1)


def _clipped(x, last):
    """Cut at 0 and at ``last``, where the gradient ends; nan is 0."""
    inside = aten.logical_and.default(aten.gt.Scalar(x, 0), aten.lt.Scalar(x, last))
    return aten.where.self(
        inside, x, aten.mul.Tensor(aten._to_copy.default(aten.ge.Scalar(x, last), dtype=x.dtype), last)
    )


def _pick(input, at, n):
    """input (N, C, ...) at integer positions, one tensor (N, ...) a dimension; zeros outside: (N, C, ...)."""
    sizes = list(input.shape[2:])
    inside, flat = None, None
    for i in range(n):
        ok = aten.logical_and.default(aten.ge.Scalar(at[i], 0), aten.lt.Scalar(at[i], sizes[i]))
        inside = ok if inside is None else aten.logical_and.default(inside, ok)
    for i in range(n):
        safe = aten.where.ScalarOther(inside, at[i], 0)
        index = aten.mul.Tensor(aten._to_copy.default(safe, dtype=dtypes.int64), math.prod(sizes[i + 1 :]))
        flat = index if flat is None else aten.add.Tensor(flat, index)
    batch, channels = input.shape[:2]
    shape = list(flat.shape[1:])
    count = math.prod(shape)
    index = aten.expand.default(aten.reshape.default(flat, [batch, 1, count]), [batch, channels, count])
    values = aten.gather.default(aten.reshape.default(input, [batch, channels, math.prod(sizes)]), 2, index)
    values = aten.reshape.default(values, [batch, channels, *shape])
    return aten.where.ScalarOther(aten.unsqueeze.default(inside, 1), values, 0.0)


def _corners(input, at, n):
    """Multilinear: the corners around each position, weighted."""
    lows = [aten.floor.default(x) for x in at]
    total = None
    for corner in range(1 << n):
        places, weight = [], None
        for i in range(n):
            up = corner >> i & 1
            place = aten.add.Tensor(lows[i], 1) if up else lows[i]
            part = aten.sub.Tensor(at[i], lows[i]) if up else aten.sub.Tensor(aten.add.Tensor(lows[i], 1), at[i])
            places.append(place)
            weight = part if weight is None else aten.mul.Tensor(weight, part)
        part = aten.mul.Tensor(_pick(input, places, n), aten.unsqueeze.default(weight, 1))
        total = part if total is None else aten.add.Tensor(total, part)
    return total


def _bicubic_grid(input, at, padding_mode, align_corners):
    h, w = input.shape[2:]
    y, x = at
    y0, x0 = aten.floor.default(y), aten.floor.default(x)
    wy, wx = _cubic_weights(aten.sub.Tensor(y, y0)), _cubic_weights(aten.sub.Tensor(x, x0))
    total = None
    for j in range(4):
        row = None
        for k in range(4):
            py = _settle(aten.add.Tensor(y0, j - 1), h, padding_mode, align_corners)
            px = _settle(aten.add.Tensor(x0, k - 1), w, padding_mode, align_corners)
            part = aten.mul.Tensor(_pick(input, [py, px], 2), aten.unsqueeze.default(wx[k], 1))
            row = part if row is None else aten.add.Tensor(row, part)
        row = aten.mul.Tensor(row, aten.unsqueeze.default(wy[j], 1))
        total = row if total is None else aten.add.Tensor(total, row)
    return total


def _sampled(input, grid, interpolation_mode, padding_mode, align_corners):
    """input (N, C, ...) at the points of a grid (N, ..., n)."""
    n, sizes, grid = input.ndim - 2, list(input.shape[2:]), aten.contiguous.default(grid)
    # The grid's last dimension is (x, y, z): from the last dimension of the input to the first.
    at = [_real(aten.select.int(grid, -1, n - 1 - i), sizes[i], align_corners) for i in range(n)]
    if interpolation_mode == 2:
        if n != 2:
            raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
        return _bicubic_grid(input, at, padding_mode, align_corners)
    at = [_settle(x, sizes[i], padding_mode, align_corners) for i, x in enumerate(at)]
    if interpolation_mode == 1:
        at = [aten.round.default(x) for x in at]
        made = _pick(input, at, n)
        if not grid.requires_grad:
            return made
        # What is nearest doesn't move with the grid, whose gradient is zero and not missing.
        never = aten.zeros_like.default(at[0], dtype=dtypes.bool_)
        return aten.where.self(aten.unsqueeze.default(never, 1), aten.unsqueeze.default(at[0], 1), made)
    return _corners(input, at, n)


@explicit(
    "_grid_sample(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    has_out=False,
)
def _grid_sample(input, grid, interpolation_mode, padding_mode, align_corners):
    """What of `grid_sampler_2d` needs no gradient, as one operator: eager calls have a kernel."""
    return _sampled(input, grid, interpolation_mode, padding_mode, align_corners)


@_grid_sample.override("rows")
def _grid_sample_rows(h, input, grid, interpolation_mode, padding_mode, align_corners):
    if interpolation_mode == 2 or padding_mode == 2:
        raise NotImplementedError("cubic weights and reflections have no kernel")
    return h.grid_sample(input, grid, interpolation_mode == 1, padding_mode == 1, bool(align_corners))


def _grid_sampler(n):
    @composite(
        f"grid_sampler_{n}d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        variants="function",
    )
    def sampler(input, grid, interpolation_mode, padding_mode, align_corners):
        if input.ndim != n + 2 or grid.ndim != n + 2:
            raise RuntimeError(
                f"grid_sampler_{n}d(): expected input and grid of {n + 2} dimensions, but got sizes {list(input.shape)} and {list(grid.shape)}"
            )
        if grid.dtype is not input.dtype:
            raise RuntimeError(f"expected scalar type {input.dtype.scalar_type} but found {grid.dtype.scalar_type}")
        if grid.shape[-1] != n:
            raise RuntimeError(
                f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes {list(grid.shape)}"
            )
        if grid.shape[0] != input.shape[0]:
            raise RuntimeError(
                f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes {list(input.shape)} and grid with sizes "
                f"{list(grid.shape)}"
            )
        if n == 2 and not (input.requires_grad or grid.requires_grad):
            return aten._grid_sample.default(input, grid, interpolation_mode, padding_mode, align_corners)
        return _sampled(input, grid, interpolation_mode, padding_mode, align_corners)

    return sampler


_samplers = {n: _grid_sampler(n) for n in (2, 3)}


@composite(
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    variants="function",
)
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {list(input.shape)} and grid "
            f"with sizes {list(grid.shape)}"
        )
    return _samplers[input.ndim - 2](input, grid, interpolation_mode, padding_mode, align_corners)


@composite("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", variants="function")
def affine_grid_generator(theta, size, align_corners):
    """Positions of an affine map of the output's grid: theta (N, n, n + 1), size (N, C, ...): (N, ..., n)."""
    n = len(size) - 2
    axes = []
    for i in range(n):
        count = size[2 + i]
        steps = aten._to_copy.default(aten.arange.default(count, device=theta.device), dtype=theta.dtype)
        if count == 1:
            line = aten.mul.Tensor(steps, 0.0)
        elif align_corners:
            line = aten.sub.Tensor(aten.mul.Tensor(steps, 2.0 / (count - 1)), 1.0)
        else:
            line = aten.sub.Tensor(aten.div.Tensor(aten.add.Tensor(aten.mul.Tensor(steps, 2.0), 1.0), count), 1.0)
        shape = [1] * n
        shape[i] = count
        axes.append(aten.expand.default(aten.reshape.default(line, shape), list(size[2:])))
    ones = aten.ones_like.default(axes[0])
    base = aten.reshape.default(aten.stack.default([*axes[::-1], ones], -1), [1, -1, n + 1])
    base = aten.expand.default(base, [size[0], *base.shape[1:]])
    out = aten.bmm.default(base, aten.transpose.int(theta, 1, 2))
    return aten.reshape.default(out, [size[0], *size[2:], n])
