"""Reductions."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.shapes import normalize_dims
from ...base.symint import is_symbolic, sym_float, sym_max
from ...core.declare import composite, explicit, reduction
from ...core.operator import namespace
from ...core.out_rules import check_inplace_shape
from ...core.promotion import check_can_hold

aten = namespace("aten")


def _spread(t, self, dim, keepdim):
    """A reduced tensor with the shape of ``self`` again, as an expanded view."""
    if not keepdim and dim is not None:
        for d in sorted(normalize_dims(dim, self.ndim)):
            t = aten.unsqueeze.default(t, d)
    return aten.expand.default(t, list(self.shape))


def _count(self, dim):
    return math.prod(self.shape[d] for d in normalize_dims(dim, self.ndim))


_divide = lambda s, acc, n, *params: s.div(acc, n)  # noqa: E731

sum_all = reduction(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "add",
    0,
    acc="sum",
    dims=None,
    keepdim=None,
    dtype="dtype",
    out_rules="casts dtype",
)
sum_all.derivative(self=lambda ct, self_like: aten.expand.default(ct, list(self_like.shape)))
sum_dim = reduction(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "add",
    0,
    acc="sum",
    dtype="dtype",
    out_rules="casts dtype",
)
sum_dim.derivative(self=lambda ct, self_like, dim, keepdim: _spread(ct, self_like, dim, keepdim))

mean_all = reduction(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "add",
    0,
    finalize=_divide,
    acc="float",
    dims=None,
    keepdim=None,
    dtype="dtype",
    out_rules="casts",
)
mean_all.derivative(
    self=lambda ct, self_like: aten.div.Tensor(aten.expand.default(ct, list(self_like.shape)), _count(self_like, None))
)
mean_dim = reduction(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "add",
    0,
    finalize=_divide,
    acc="float",
    dtype="dtype",
    out_rules="casts",
)
mean_dim.derivative(
    self=lambda ct, self_like, dim, keepdim: aten.div.Tensor(
        _spread(ct, self_like, dim, keepdim), _count(self_like, dim)
    )
)

amax = reduction("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", "maximum", None)
amin = reduction("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", "minimum", None)


def _share(ct, self, result, dim, keepdim):
    """Elements that equal the extreme share its cotangent."""
    dim = [dim] if isinstance(dim, int) else dim or None
    result, ct = _spread(result, self, dim, keepdim), _spread(ct, self, dim, keepdim)
    mask = aten.eq.Tensor(self, result)
    count = aten.sum.dim_IntList(mask, dim, True)
    return aten.div.Tensor(aten.where.ScalarOther(mask, ct, 0), count)


amax.derivative(self=_share)
amin.derivative(self=_share)
max_all = reduction("max(Tensor self) -> Tensor", "maximum", None, dims=None, keepdim=None, out_rules="casts")
min_all = reduction("min(Tensor self) -> Tensor", "minimum", None, dims=None, keepdim=None, out_rules="casts")


def _share_all(ct, self, result):
    """Elements that equal the extreme share its cotangent; a nan equals a nan."""
    mask = aten.logical_or.default(
        aten.eq.Tensor(self, result),
        aten.logical_and.default(aten.isnan.default(self), aten.isnan.default(result)),
    )
    return aten.where.ScalarOther(mask, aten.div.Tensor(ct, aten.sum.default(mask)), 0)


max_all.derivative(self=_share_all)
min_all.derivative(self=_share_all)

argmax = reduction("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "argmax", None)
argmin = reduction("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "argmin", None)

prod_all = reduction(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "mul",
    1,
    acc="sum",
    dims=None,
    keepdim=None,
    dtype="dtype",
    out_rules="casts dtype",
)
prod_dim = reduction(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "mul",
    1,
    acc="sum",
    dtype="dtype",
    out_rules="casts dtype",
)


def _before(x):
    """Products of the elements in front of each along the last dimension."""
    one = aten.new_ones.default(x, [*x.shape[:-1], 1])
    front = aten.slice.Tensor(x, -1, 0, x.shape[-1] - 1)
    return aten.cumprod.default(aten.cat.default([one, front], -1), -1)


def _others(x):
    """Products of all elements but the own one along the last dimension, without division (there may be zeros), in O(log n) steps: pairs are
    multiplied, the same is asked of half as many, and each element takes its partner back in."""
    n = x.shape[-1]
    if is_symbolic(n):  # the steps would depend on it: products from both ends instead
        return aten.mul.Tensor(_before(x), aten.flip.default(_before(aten.flip.default(x, [-1])), [-1]))
    if n == 1:
        return aten.ones_like.default(x)
    if n % 2:
        x = aten.cat.default([x, aten.new_ones.default(x, [*x.shape[:-1], 1])], -1)
    a, b = aten.slice.Tensor(x, -1, 0, None, 2), aten.slice.Tensor(x, -1, 1, None, 2)
    rest = _others(aten.mul.Tensor(a, b))
    out = aten.stack.default([aten.mul.Tensor(rest, b), aten.mul.Tensor(rest, a)], -1)
    return aten.slice.Tensor(aten.reshape.default(out, [*x.shape]), -1, 0, n)


def _prod_vjp(ct, self):
    if self.numel() == 0:
        return aten.zeros_like.default(self)
    return aten.reshape.default(aten.mul.Tensor(_others(aten.reshape.default(self, [-1])), ct), list(self.shape))


def _prod_dim_vjp(ct, self, dim, keepdim):
    if self.ndim == 0:
        return ct
    if self.numel() == 0:
        return aten.zeros_like.default(self)
    others = aten.transpose.int(_others(aten.transpose.int(self, dim, -1)), dim, -1)
    return aten.mul.Tensor(others, _spread(ct, self, dim, keepdim))


prod_all.derivative(self=_prod_vjp)
prod_dim.derivative(self=_prod_dim_vjp)

any_all = reduction("any(Tensor self) -> Tensor", "logical_or", False, acc="bool", dims=None, keepdim=None)
any_dim = reduction("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", "logical_or", False, acc="bool")
all_all = reduction("all(Tensor self) -> Tensor", "logical_and", True, acc="bool", dims=None, keepdim=None)
all_dim = reduction("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", "logical_and", True, acc="bool")


@explicit("_is_all_true(Tensor self) -> Tensor")
def _is_all_true(self):
    return aten.all.default(_of_bools(self))


@explicit("_is_any_true(Tensor self) -> Tensor")
def _is_any_true(self):
    return aten.any.default(_of_bools(self))


# As in PyTorch, vmap asks all examples together: what is asserted of a batch is one truth.
_is_all_true.override("batch", lambda b, self: b.the_same(aten._is_all_true.default(self)))
_is_any_true.override("batch", lambda b, self: b.the_same(aten._is_any_true.default(self)))


def _of_bools(x):
    if x.dtype is not dtypes.bool_:
        raise RuntimeError(f"expected a tensor of bools, got {x.dtype}")
    return x


def _at(index, self, dim, keepdim):
    index = index if keepdim or self.ndim == 0 else aten.unsqueeze.default(index, dim)
    return index


def _extreme(arg):
    def fn(self, dim, keepdim):
        index = arg(self, dim, True)
        values = aten.gather.default(self, dim, index) if self.ndim else aten.clone.default(self)
        if not keepdim and self.ndim:
            return aten.squeeze.dim(values, dim), aten.squeeze.dim(index, dim)
        return values, index

    return fn


def _extreme_vjp(ct0, self_like, result1, dim, keepdim):
    if self_like.ndim == 0:
        return ct0
    index = _at(result1, self_like, dim, keepdim)
    zeros = aten.new_zeros.default(ct0, list(self_like.shape))
    return aten.scatter.src(zeros, dim, index, ct0 if keepdim else aten.unsqueeze.default(ct0, dim))


max_dim = explicit(
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", variants="function method"
)(_extreme(argmax)).derivative(self=_extreme_vjp)
min_dim = explicit(
    "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", variants="function method"
)(_extreme(argmin)).derivative(self=_extreme_vjp)


@composite("max.other(Tensor self, Tensor other) -> Tensor")
def max_other(self, other):
    return aten.maximum.default(self, other)


@composite("min.other(Tensor self, Tensor other) -> Tensor")
def min_other(self, other):
    return aten.minimum.default(self, other)


def widened(x):
    """16-bit floats as float32, in which statistics of them are computed: their squares overflow and vanish."""
    return aten._to_copy.default(x, dtype=dtypes.float32) if x.dtype in (dtypes.float16, dtypes.bfloat16) else x


def wider(x):
    """16-bit floats as float32, float32 as float64: a variance overflows long before its root does."""
    return aten._to_copy.default(x, dtype=dtypes.float64) if x.dtype is dtypes.float32 else widened(x)


def as_written(target, made):
    """``made`` in the dtype of ``target``. RuntimeError when an in-place operator couldn't write it there."""
    check_can_hold(target.dtype, made.dtype)
    check_inplace_shape(target, made.shape)
    return as_dtype(target.dtype, made)


def as_dtype(dtype, x):
    return x if x.dtype is dtype else aten._to_copy.default(x, dtype=dtype)


@explicit(
    "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    variants="",
    out_rules="casts",
)
def var(self, dim, correction, keepdim):
    """Two passes: mean, then the mean of squared deviations; in double precision, in which no deviation of float32 overflows."""
    dtype = self.dtype
    dtypes.check_number(0 if correction is None else correction, dtypes.float64)
    counted = _count(self, dim)
    # Nothing has no variance, whatever is taken off its number.
    n = 0 if counted.__class__ is int and not counted else counted - (1 if correction is None else correction)
    deviation = _deviation(wider(self), dim)
    squares = aten.mul.Tensor(deviation, deviation)
    if dtype.is_complex:  # the variance of the parts together, a real number
        deviation = aten.view_as_real.default(aten.contiguous.default(deviation))
        squares = aten.sum.dim_IntList(aten.mul.Tensor(deviation, deviation), [-1])
        dtype = dtype.to_real()
    out = aten.div.Tensor(aten.sum.dim_IntList(squares, dim, keepdim), sym_float(sym_max(n, 0)))
    return as_dtype(dtype, out)


def _deviation(self, dim):
    """From the mean. Double precision is measured from the first element on, so that constant data deviates by exactly 0, whatever
    its mean is rounded to (the mean of single precision, summed in double, is exact)."""
    if self.dtype is dtypes.float64:
        first = self
        for d in normalize_dims(dim, self.ndim):
            first = aten.slice.Tensor(first, d, 0, 1)
        self = aten.sub.Tensor(self, first)
    return aten.sub.Tensor(self, aten.mean.dim(self, dim, True))


def var_vjp(ct, self, dim, correction, keepdim):
    n = _count(self, dim) - (1 if correction is None else correction)
    scaled = aten.mul.Tensor(_spread(ct, self, dim, keepdim), 2.0 / n if n else math.inf)
    return aten.mul.Tensor(scaled, _deviation(self, dim))


var.derivative(self=var_vjp)


@explicit(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", variants="function method", out_rules="casts"
)
def logsumexp(self, dim, keepdim):
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        self = aten._to_copy.default(self, dtype=dtypes.get_default_dtype())
    if _count(self, dim) == 0:
        return aten.log.default(aten.sum.dim_IntList(aten.exp.default(self), dim, keepdim))
    top = aten.amax.default(aten.real.default(self), dim, True)
    top = aten.where.ScalarOther(aten.isfinite.default(top), top, 0)
    total = aten.log.default(aten.sum.dim_IntList(aten.exp.default(aten.sub.Tensor(self, top)), dim, keepdim))
    return aten.add.Tensor(total, top if keepdim else aten.squeeze.dims(top, list(normalize_dims(dim, self.ndim))))


logsumexp.derivative(
    self=lambda ct, self, result, dim, keepdim: aten.mul.Tensor(
        _spread(ct, self, dim, keepdim),
        aten.exp.default(aten.sub.Tensor(self, _spread(result, self, dim, keepdim))),
    )
)


def _truths_along(reduce_dim):
    def along(self, dim, keepdim):
        """Along no dimension each element answers for itself; other reductions take an empty list for all dimensions."""
        dims = range(self.ndim) if dim is None else dim and normalize_dims(dim, self.ndim)
        if not dims:
            truths = aten.ne.Scalar(self, 0)
            return aten._to_copy.default(truths, dtype=dtypes.uint8) if self.dtype is dtypes.uint8 else truths
        for d in sorted(dims, reverse=True):
            self = reduce_dim(self, d, keepdim)
        return self

    return along


for _name, _along in (("any", any_dim), ("all", all_dim)):
    explicit(f"{_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", out_rules="exact")(
        _truths_along(_along)
    )


def correction_of(unbiased):
    return 1 if unbiased else 0


def moment(name):
    """The overloads of ``var`` and ``std`` that take ``unbiased``."""
    of = getattr(aten, name).correction

    @composite(f"{name}(Tensor self, bool unbiased=True) -> Tensor")
    def all_dims(self, unbiased):
        return of(self, None, correction=correction_of(unbiased))

    @composite(f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor")
    def some_dims(self, dim, unbiased, keepdim):
        return of(self, dim, correction=correction_of(unbiased), keepdim=keepdim)


moment("var")
