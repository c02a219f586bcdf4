"""Numerical calculus on samples: integrals by trapezoids, derivatives by differences."""

from __future__ import annotations

from ...base import dtypes
from ...base.shapes import normalize_dim
from ...core.declare import composite
from ...core.operator import namespace

aten = namespace("aten")


def _cut(t, d, begin, end):
    return aten.slice.Tensor(t, d, begin, end)


def _steps(y, x, dim, name):
    """Widths of the intervals, along ``dim`` counted from the front in ``x`` too."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[dim] = x.shape[0]
        x = aten.reshape.default(x, shape)
    elif x.ndim < y.ndim:
        x = aten.reshape.default(x, [*[1] * (y.ndim - x.ndim), *x.shape])
    n = x.shape[dim]
    return aten.sub.Tensor(_cut(x, dim, 1, n), _cut(x, dim, 0, max(n - 1, 0)))


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
