"""Numerical calculus, splits by tensors, spaced points, memory laid out by hand, and some operators that libraries name."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.shapes import normalize_dim
from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace
from ..creation.factories import OPTIONS

aten = namespace("aten")

# ---- integrals -------------------------------------------------------------------------------------------------------------


def _cut(t, d, begin, end):
    return aten.slice.Tensor(t, d, begin, end)


def _steps(y, x, dim, name):
    """Widths of the intervals, shaped like ``y`` along ``dim``."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[dim] = x.shape[0]
        x = aten.reshape.default(x, shape)
    elif x.ndim < y.ndim:
        x = aten.reshape.default(x, [*[1] * (y.ndim - x.ndim), *x.shape])
    d = dim - y.ndim
    n = x.shape[d]
    return aten.sub.Tensor(_cut(x, d, 1, n), _cut(x, d, 0, max(n - 1, 0)))


def _areas(y, d, widths):
    n = y.shape[d]
    pairs = aten.add.Tensor(_cut(y, d, 1, n), _cut(y, d, 0, max(n - 1, 0)))
    return aten.div.Tensor(aten.mul.Tensor(pairs, widths), 2.0)


def _checked(y, dim, *others):
    for t in (y, *others):
        if getattr(t, "dtype", None) is dtypes.bool_:
            raise RuntimeError("trapezoid: received a bool input for `x` or `y`, but bool is not supported")
    return normalize_dim(dim, y.ndim)


def _empty_like_without(y, d):
    return aten.new_zeros.default(y, [n for k, n in enumerate(y.shape) if k != d])


def _trapezoid(y, dim, widths):
    d = _checked(y, dim)
    if y.shape[d] == 0:
        return _empty_like_without(y, d)
    return aten.sum.dim_IntList(_areas(y, d, widths(d)), [d])


@composite("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", variants="function", has_out=False)
def trapezoid(y, x, dim):
    _checked(y, dim, x)
    return _trapezoid(y, dim, lambda d: _steps(y, x, d, "trapezoid"))


@composite("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", variants="function", has_out=False)
def trapezoid_even(y, dx, dim):
    return _trapezoid(y, dim, lambda d: dx)


composite("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", variants="function", has_out=False)(
    lambda y, x, dim: aten.trapezoid.x(y, x, dim=dim)
)
composite("trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor", variants="function", has_out=False)(
    lambda y, dx, dim: aten.trapezoid.dx(y, dx=dx, dim=dim)
)


@composite("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", variants="function", has_out=False)
def cumulative_trapezoid(y, x, dim):
    d = _checked(y, dim, x)
    return aten.cumsum.default(_areas(y, d, _steps(y, x, d, "cumulative_trapezoid")), d)


@composite(
    "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", variants="function", has_out=False
)
def cumulative_trapezoid_even(y, dx, dim):
    d = _checked(y, dim)
    return aten.cumsum.default(_areas(y, d, dx), d)


# ---- derivatives by differences --------------------------------------------------------------------------------------------


def _along(self, d, spacing, order):
    """Second-order differences inside, one-sided ones of ``order`` at the ends; ``spacing``: a number or the coordinates."""
    n = self.shape[d]
    if n < order + 1:
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    at = lambda k: _cut(self, d, k if k >= 0 else n + k, (k if k >= 0 else n + k) + 1)  # noqa: E731
    if not hasattr(spacing, "dtype"):
        middle = aten.div.Tensor(aten.sub.Tensor(_cut(self, d, 2, n), _cut(self, d, 0, n - 2)), 2 * spacing)
        if order == 1:
            first = aten.div.Tensor(aten.sub.Tensor(at(1), at(0)), spacing)
            last = aten.div.Tensor(aten.sub.Tensor(at(-1), at(-2)), spacing)
        else:
            first = _weighted([(at(0), -1.5), (at(1), 2.0), (at(2), -0.5)], spacing)
            last = _weighted([(at(-1), 1.5), (at(-2), -2.0), (at(-3), 0.5)], spacing)
        return aten.cat.default([first, middle, last], d)
    shape = [1] * self.ndim
    shape[d] = n
    if spacing.ndim != 1 or spacing.shape[0] != n:
        raise RuntimeError(
            f"torch.gradient expected spacing to have the same size as the dimension, but got {list(spacing.shape)} for size {n}"
        )
    x = aten.reshape.default(spacing, shape)
    h = aten.sub.Tensor(_cut(x, d, 1, n), _cut(x, d, 0, n - 1))
    h1, h2 = _cut(h, d, 0, n - 2), _cut(h, d, 1, n - 1)
    total = aten.add.Tensor(h1, h2)
    a = aten.neg.default(aten.div.Tensor(h2, aten.mul.Tensor(h1, total)))
    b = aten.div.Tensor(aten.sub.Tensor(h2, h1), aten.mul.Tensor(h1, h2))
    c = aten.div.Tensor(h1, aten.mul.Tensor(h2, total))
    middle = _products([(a, _cut(self, d, 0, n - 2)), (b, _cut(self, d, 1, n - 1)), (c, _cut(self, d, 2, n))])
    one = lambda k: _cut(h, d, k if k >= 0 else n - 1 + k, (k if k >= 0 else n - 1 + k) + 1)  # noqa: E731
    if order == 1:
        first = aten.div.Tensor(aten.sub.Tensor(at(1), at(0)), one(0))
        last = aten.div.Tensor(aten.sub.Tensor(at(-1), at(-2)), one(-1))
    else:
        first = _edge(at(0), at(1), at(2), one(0), one(1), 1)
        last = _edge(at(-1), at(-2), at(-3), one(-1), one(-2), -1)
    return aten.cat.default([first, middle, last], d)


def _weighted(terms, spacing):
    out = None
    for t, w in terms:
        part = aten.mul.Tensor(t, w / spacing)
        out = part if out is None else aten.add.Tensor(out, part)
    return out


def _products(pairs):
    out = None
    for a, b in pairs:
        part = aten.mul.Tensor(a, b)
        out = part if out is None else aten.add.Tensor(out, part)
    return out


def _edge(y0, y1, y2, h1, h2, sign):
    """The slope at the end of a parabola through three unevenly spaced points."""
    total = aten.add.Tensor(h1, h2)
    a = aten.neg.default(aten.div.Tensor(aten.add.Tensor(aten.mul.Tensor(h1, 2.0), h2), aten.mul.Tensor(h1, total)))
    b = aten.div.Tensor(total, aten.mul.Tensor(h1, h2))
    c = aten.neg.default(aten.div.Tensor(h1, aten.mul.Tensor(h2, total)))
    out = _products([(a, y0), (b, y1), (c, y2)])
    return out if sign > 0 else aten.neg.default(out)


def _gradient(self, spacing, dim, edge_order):
    if self.ndim == 0 and dim is None:
        raise RuntimeError("torch.gradient expected input to have at least one dimension")
    dims = (
        list(range(self.ndim))
        if dim is None
        else [normalize_dim(d, self.ndim) for d in ([dim] if not isinstance(dim, (list, tuple)) else dim)]
    )
    if len(set(dims)) != len(dims):
        raise RuntimeError("dim 0 appears multiple times in the list of dims")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if self.dtype is dtypes.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    many = spacing if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    for s in many:
        if hasattr(s, "device") and s.device != self.device:
            raise RuntimeError(
                f"torch.gradient expected each tensor to be on the same device, but got devices {self.device} and {s.device}!"
            )
    if len(many) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = {self.ndim}', "
            f"since dim argument was not given, but got a list of length {len(many)}"
        )
    return [_along(self, d, 1.0 if s is None else s, edge_order) for d, s in zip(dims, many)]


for _overload, _text in {
    "scalarint": "Scalar? spacing=None, int? dim=None", "scalararray": "Scalar spacing, int[] dim", "array": "int[] dim",
    "scalarrayint": "Scalar[] spacing, int? dim=None", "scalarrayarray": "Scalar[] spacing, int[] dim",
    "tensorarrayint": "Tensor[] spacing, int? dim=None", "tensorarray": "Tensor[] spacing, int[] dim",
}.items():  # fmt: skip

    def _declare(overload=_overload, text=_text):
        @composite(f"gradient.{overload}(Tensor self, *, {text}, int edge_order=1) -> Tensor[]", variants="function")
        def gradient(self, *rest):
            spacing, dim, order = rest if len(rest) == 3 else (None, *rest)
            return _gradient(self, spacing, dim, order)

    _declare()

# ---- splits ----------------------------------------------------------------------------------------------------------------


def _splits(name, least, pick):
    def check(self):
        if self.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension{'s' * (least > 1)}, but got a tensor with {self.ndim} dimensions!"
            )
        return pick(self)

    def into(self, sections):
        d = check(self)
        if sections <= 0 or self.shape[d] % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {self.shape[d]} is not divisible by the split_size {sections}!"
            )
        return aten.tensor_split.sections(self, sections, d)

    composite(f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")(into)
    composite(f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")(
        lambda self, indices: aten.tensor_split.indices(self, indices, check(self))
    )


_splits("hsplit", 1, lambda t: 0 if t.ndim == 1 else 1)
_splits("vsplit", 2, lambda t: 0)
_splits("dsplit", 3, lambda t: 2)

# ---- spaced points ---------------------------------------------------------------------------------------------------------


def _logspace(start, end, steps, base, dtype, layout, device, pin_memory):
    kind = dtype or dtypes.get_default_dtype()
    wide = kind if kind.category >= 2 else dtypes.float64
    points = aten.linspace.default(start, end, steps, dtype=wide, device=device)
    out = aten.pow.Scalar(base, points)
    return out if out.dtype is kind else aten._to_copy.default(out, dtype=kind)


composite(
    f"logspace(Scalar start, Scalar end, int steps, float base=10.0, {OPTIONS}) -> Tensor",
    variants="function",
    out_rules="dtype exact",
)(_logspace)
for _overload, _first, _second in (
    ("Tensor_Tensor", "Tensor", "Tensor"),
    ("Tensor_Scalar", "Tensor", "Scalar"),
    ("Scalar_Tensor", "Scalar", "Tensor"),
):
    composite(
        f"logspace.{_overload}({_first} start, {_second} end, int steps, float base=10.0, {OPTIONS}) -> Tensor",
        variants="function",
        out_rules="dtype exact",
    )(lambda start, end, *rest: _logspace(_number(start), _number(end), *rest))


def _number(x):
    if not hasattr(x, "dtype"):
        return x
    if x.ndim:
        raise RuntimeError("logspace only supports 0-dimensional start and end tensors")
    return x.item()


# ---- memory laid out by hand -----------------------------------------------------------------------------------------------


def _laid_out(size, stride, dtype, device):
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    if any(s < 0 for s in stride):
        raise RuntimeError("Stride calculation overflowed: negative strides are not supported")
    reach = sum((n - 1) * s for n, s in zip(size, stride)) + 1 if all(size) else 0
    flat = aten.empty.memory_format([reach], dtype=dtype, device=device)
    return aten.as_strided.default(flat, list(size), list(stride))


@composite(f"empty_strided(SymInt[] size, SymInt[] stride, {OPTIONS}) -> Tensor", variants="function", has_out=False)
def empty_strided(size, stride, dtype, layout, device, pin_memory):
    return _laid_out(size, stride, dtype or dtypes.get_default_dtype(), device)


@composite(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, {OPTIONS}) -> Tensor",
    variants="method",
    has_out=False,
)
def new_empty_strided(self, size, stride, dtype, layout, device, pin_memory):
    return _laid_out(size, stride, dtype or self.dtype, device or self.device)


@composite(
    f"empty_permuted(SymInt[] size, int[] physical_layout, {OPTIONS}) -> Tensor", variants="function", has_out=False
)
def empty_permuted(size, physical_layout, dtype, layout, device, pin_memory):
    if len(physical_layout) != len(size):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    if sorted(physical_layout) != list(range(len(size))):
        raise RuntimeError(
            "Duplicate dim not allowed"
            if len(set(physical_layout)) != len(physical_layout)
            else f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {list(physical_layout)}). NB: negative dims not "
            "currently supported"
        )
    stride, step = [0] * len(size), 1
    for d in reversed(physical_layout):
        stride[d] = step
        step *= max(size[d], 1)
    return _laid_out(size, stride, dtype or dtypes.get_default_dtype(), device)


# ---- names that libraries use ------------------------------------------------------------------------------------------------

composite("relu6(Tensor self) -> Tensor", variants="", inplace=True)(lambda self: aten.hardtanh.default(self, 0, 6))
explicit("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", refuse=COMPLEX)(
    lambda self, output_size: aten.adaptive_avg_pool2d.default(self, output_size)
)
explicit("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", refuse=COMPLEX)(
    lambda self, output_size: aten.adaptive_avg_pool3d.default(self, output_size)
)


@explicit("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", variants="function")
def native_dropout_backward(grad_output, mask, scale):
    return aten.mul.Tensor(aten.mul.Tensor(grad_output, mask), scale)


def _tensordot_error(a, b, i, j):
    return RuntimeError(
        f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has size {b.shape[j]} in dim {j}"
    )


@composite(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", variants="", out_rules="exact"
)
def tensordot(self, other, dims_self, dims_other):
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self.dtype is not other.dtype:
        raise RuntimeError("tensordot: both inputs should have same dtype")
    left, right = [normalize_dim(d, self.ndim) for d in dims_self], [normalize_dim(d, other.ndim) for d in dims_other]
    for i, j in zip(left, right):
        n, m = self.shape[i], other.shape[j]
        if m == 1 and n != 1:
            self = aten.sum.dim_IntList(self, [i], True, dtype=self.dtype)
        elif n == 1 and m != 1:
            other = aten.sum.dim_IntList(other, [j], True, dtype=other.dtype)
        elif n != m:
            raise _tensordot_error(self, other, i, j)
    keep_a = [d for d in range(self.ndim) if d not in left]
    keep_b = [d for d in range(other.ndim) if d not in right]
    inner = math.prod(self.shape[d] for d in left)
    x = aten.reshape.default(
        aten.permute.default(self, keep_a + left), [math.prod(self.shape[d] for d in keep_a), inner]
    )
    y = aten.reshape.default(
        aten.permute.default(other, right + keep_b), [inner, math.prod(other.shape[d] for d in keep_b)]
    )
    return aten.reshape.default(
        aten.mm.default(x, y), [self.shape[d] for d in keep_a] + [other.shape[d] for d in keep_b]
    )
