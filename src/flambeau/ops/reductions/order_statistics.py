"""Median, mode, quantiles, and running extremes."""

from __future__ import annotations

import math

import numpy as np

from ...base import order, select
from ...base.dtypes import bool_, from_numpy, int64, sortable
from ...base.kernels import Order
from ...base.shapes import contiguous_strides, normalize_dim
from ...core.declare import COMPLEX, composite, explicit, extern
from ...core.definition import TensorMeta
from ...core.device_memory import elements
from ...core.operator import namespace
from .lines import by_lines

aten = namespace("aten")


def _chosen_meta(self, dim, keepdim):
    """Shape rule of a reduction along one dimension to (values, indices)."""
    shape = tuple(self.shape)
    d = normalize_dim(dim, len(shape))
    if shape:
        if shape[d] == 0:
            raise IndexError(f"Expected reduction dim {d} to have non-zero size.")
        shape = (*shape[:d], *([1] if keepdim else []), *shape[d + 1 :])
    strides = contiguous_strides(shape)
    return TensorMeta(shape, strides, self.dtype, self.device), TensorMeta(shape, strides, int64, self.device)


def _choose(a, dim, keepdim, pick):
    """(values, indices): in each line along ``dim`` the element whose position ``pick(lines)`` gives."""
    d = normalize_dim(dim, a.ndim)
    if not a.ndim:
        return np.array(a), np.zeros((), np.int64)
    if a.shape[d] == 0:
        raise IndexError(f"Expected reduction dim {d} to have non-zero size.")
    lines = np.moveaxis(a, d, -1)
    at = np.expand_dims(np.asarray(pick(lines), np.int64), d)
    values = np.take_along_axis(a, at, d)
    if not keepdim:
        values, at = np.squeeze(values, d), np.squeeze(at, d)
    return np.array(values, order="C"), np.array(at, order="C")


def _nan(x):
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def _median_at(lines):
    """The lower of two middle ones; nan where there is one."""
    lines = sortable(lines)
    order = np.argsort(lines, axis=-1, kind="stable")
    middle = order[..., (lines.shape[-1] - 1) // 2]
    nan = _nan(lines)
    return np.where(nan.any(-1), nan.argmax(-1), middle)


def _nanmedian_at(lines):
    lines = sortable(lines)
    order = np.argsort(lines, axis=-1, kind="stable")
    count = lines.shape[-1] - _nan(lines).sum(-1)
    return np.take_along_axis(order, np.maximum(count - 1, 0)[..., None] // 2, -1)[..., 0]


def _mode_at(lines):
    """The last position of the smallest of the most frequent values."""
    if (found := select.mode(lines)) is not None:
        return found
    lines = sortable(lines)
    flat = lines.reshape(-1, lines.shape[-1])
    out = np.empty(len(flat), np.int64)
    for k, line in enumerate(flat):
        values, counts = np.unique(line, return_counts=True)  # NaN is one value, the greatest
        best = values[counts.argmax()]
        out[k] = np.flatnonzero(line == best if best == best else _nan(line))[-1]
    return out.reshape(lines.shape[:-1])


def _spread_back(ct0, self_like, result1, dim, keepdim):
    if not self_like.ndim:
        return ct0
    if not keepdim:
        ct0, result1 = aten.unsqueeze.default(ct0, dim), aten.unsqueeze.default(result1, dim)
    return aten.scatter.src(aten.new_zeros.default(ct0, list(self_like.shape)), dim, result1, ct0)


def _shared(ct, self, result):
    """Elements equal to the result share its cotangent."""
    mask = aten.logical_or.default(
        aten.eq.Tensor(self, result),
        aten.logical_and.default(aten.isnan.default(self), aten.isnan.default(result)),
    )
    return aten.where.ScalarOther(mask, aten.div.Tensor(ct, aten.sum.default(mask)), 0)


def _of_none(dtype):
    """The median of no elements: nan, or what a conversion of it to an integer gives."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else math.nan


def _middle(name, pick, what):
    def choose(a, dim, keepdim):
        normalize_dim(dim, a.ndim)
        if not a.size or not a.ndim:
            return _choose(a, dim, keepdim, pick)
        d = normalize_dim(dim, a.ndim)
        made = order.arrange(what, a, d)
        if made is None:
            return _choose(a, dim, keepdim, pick)
        return made if keepdim else tuple(np.squeeze(x, d) for x in made)

    along = extern(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        refuse=("bool", *COMPLEX),
        meta=_chosen_meta,
        has_out=True,
    )(choose)
    along.derivative(self=_spread_back)
    along.override(
        "lower",
        lambda lowering, val, self, dim, keepdim: lowering.arrange(val, what, self, dim, keepdim=keepdim),
    )
    by_lines(along)

    def of_all(a):
        flat = a.reshape(-1)
        if not flat.size:
            return np.array(_of_none(a.dtype), a.dtype)
        made = order.arrange(what, flat, 0)
        return np.array(flat[int(pick(flat))]) if made is None else made[0].reshape(())

    whole = extern(
        f"{name}(Tensor self) -> Tensor",
        refuse=("bool", *COMPLEX),
        meta=lambda self: TensorMeta((), (), self.dtype, self.device),
    )(of_all)
    whole.derivative(self=_shared)

    @whole.override("lower")
    def _lower(lowering, val, self):
        if 0 in self.shape:
            return lowering.full((), val.dtype, _of_none(val.dtype.np), val.device)
        out = lowering.arrange(val, what, self, 0)
        # Of a tensor without dimensions it gives values and indices.
        return out[0] if isinstance(out, (list, tuple)) else out


_middle("median", _median_at, Order.MEDIAN)
_middle("nanmedian", _nanmedian_at, Order.NANMEDIAN)

mode = extern(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    refuse=COMPLEX,
    meta=_chosen_meta,
    has_out=True,
)(lambda a, dim, keepdim: _choose(a, dim, keepdim, _mode_at))
mode.derivative(self=_spread_back)
mode.override("lower", lambda low, vals, self, dim, keepdim: low.mode(vals, self, dim, keepdim))
by_lines(mode)

# ---- running extremes ------------------------------------------------------------------------------------------------------


def _running(name, extreme):
    def meta(self, dim):
        normalize_dim(dim, len(self.shape))
        shape = tuple(self.shape)
        strides = contiguous_strides(shape)
        return TensorMeta(shape, strides, self.dtype, self.device), TensorMeta(shape, strides, int64, self.device)

    def run(a, dim):
        normalize_dim(dim, a.ndim)
        if not a.ndim:
            return np.array(a), np.zeros((), np.int64)
        made = select.running(a, normalize_dim(dim, a.ndim), extreme is np.minimum)
        if made is not None:
            return made
        x = sortable(a)
        values = extreme.accumulate(x, axis=dim)
        n = a.shape[normalize_dim(dim, a.ndim)]
        own = np.arange(n).reshape([n if d == normalize_dim(dim, a.ndim) else 1 for d in range(a.ndim)])
        # A new extreme, or the old one once more, is where the running value equals the element (a nan stays).
        new = (values == x) | _nan(x)
        at = np.maximum.accumulate(np.where(new, own, 0), axis=dim)
        return np.array(values.astype(a.dtype), order="C"), np.array(at, np.int64, order="C")

    op = extern(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)", refuse=COMPLEX, meta=meta, has_out=True
    )(run)
    op.derivative(
        self=lambda ct0, self_like, result1, dim: (
            aten.scatter_add.default(aten.new_zeros.default(ct0, list(self_like.shape)), dim, result1, ct0)
            if self_like.ndim
            else ct0
        )
    )
    op.override("lower", lambda lowering, val, self, dim: lowering.running(val, self, dim, extreme is np.minimum))
    by_lines(op)


_running("cummax", np.maximum)
_running("cummin", np.minimum)


@extern(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    meta=lambda self, dim: TensorMeta(
        tuple(self.shape), contiguous_strides(tuple(self.shape)), self.dtype, self.device
    ),
    has_out=True,
)
def logcumsumexp(a, dim):
    normalize_dim(dim, a.ndim)
    if a.dtype.kind in "biu" or a.dtype.itemsize == 1:
        kind = from_numpy(a.dtype).scalar_type
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{kind}'")
    if not a.ndim:
        return np.array(a)
    if a.dtype.kind == "c":
        return np.ascontiguousarray(np.moveaxis(_complex_logcumsumexp(np.moveaxis(a, dim, 0)), 0, dim))
    wide = a.astype(np.float32) if a.dtype.itemsize == 2 else a
    return select.logcumsumexp(wide, normalize_dim(dim, a.ndim)).astype(a.dtype, copy=False)


logcumsumexp.override("lower", lambda lowering, val, self, dim: lowering.logcumsumexp(val, self, dim))
by_lines(logcumsumexp)


def _complex_logcumsumexp(rows):
    """Along the first axis: the one of both whose real part is larger, plus log(1 + exp(the other - it))."""
    out = np.array(rows, np.complex128)
    for i in range(1, len(out)):
        x, y = out[i - 1], out[i]
        low, high = np.where(x.real < y.real, x, y), np.where(x.real < y.real, y, x)
        both = np.where(np.isfinite(low.real) | (low.real != high.real), high + np.log1p(np.exp(low - high)), high)
        out[i] = np.where(np.isnan(x) | np.isnan(y), np.nan, both)
    return out.astype(rows.dtype)


def _logcumsumexp_vjp(ct, self, result, dim):
    """sum over j >= i of ct_j exp(self_i - result_j), whose exponents are at most 0. Short lines take all pairs, which can be differentiated to
    any order; long ones the sums of the positive and of the negative cotangents, each as a logarithm."""
    if not self.ndim:
        return ct
    d = normalize_dim(dim, self.ndim)
    n = self.shape[d]
    if n <= 512:
        rows, columns = aten.unsqueeze.default(aten.transpose.int(self, d, -1), -1), aten.transpose.int(result, d, -1)
        later = aten.triu.default(aten.ones.default([n, n], dtype=bool_, device=self.device))
        powers = aten.sub.Tensor(rows, aten.unsqueeze.default(columns, -2))
        weights = aten.exp.default(aten.where.ScalarOther(later, powers, -math.inf))
        out = aten.sum.dim_IntList(
            aten.mul.Tensor(weights, aten.unsqueeze.default(aten.transpose.int(ct, d, -1), -2)), [-1]
        )
        return aten.transpose.int(out, d, -1)

    def part(ct):
        log = aten.sub.Tensor(aten.log.default(ct), result)
        back = aten.flip.default(aten.logcumsumexp.default(aten.flip.default(log, [dim]), dim), [dim])
        return aten.exp.default(aten.add.Tensor(back, self))

    if self.dtype.is_complex:
        return part(ct)
    zero = aten.zeros_like.default(ct)
    return aten.sub.Tensor(part(aten.maximum.default(ct, zero)), part(aten.maximum.default(aten.neg.default(ct), zero)))


logcumsumexp.derivative(self=_logcumsumexp_vjp)

# ---- quantiles -------------------------------------------------------------------------------------------------------------

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name, self, q, dim, keepdim, interpolation, skip_nan):
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if self.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if self.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not self.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    original = self
    if dim is None:
        self, d = aten.reshape.default(self, [-1]), 0
    else:
        d = normalize_dim(dim, self.ndim)
        self = aten.unsqueeze.default(self, 0) if not self.ndim else self
    # The other dimensions keep their places; that of the lines becomes 1.
    x = aten.sort.default(aten.transpose.int(aten.unsqueeze.default(self, -1), d, -1), -1)[0]
    n = x.shape[-1]
    nan = aten.isnan.default(x)
    if skip_nan:
        last = aten.sub.Tensor(aten.sum.dim_IntList(aten.logical_not.default(nan), [-1], True), 1)
        rank = aten.mul.Tensor(aten.reshape.default(q, [-1]), aten.clamp_min.default(last, 0))
    else:
        rank = aten.mul.Tensor(aten.reshape.default(q, [-1]), n - 1)
        rank = aten.expand.default(rank, [*x.shape[:-1], q.numel()])
        rank = aten.where.ScalarOther(aten.logical_not.default(aten.any.dim(nan, -1, True)), rank, float(n - 1))
    if interpolation == "nearest":
        rank = aten.round.default(rank)
    below = aten._to_copy.default(aten.floor.default(rank), dtype=int64)
    above = aten._to_copy.default(aten.ceil.default(rank), dtype=int64)
    low, high = aten.gather.default(x, -1, below), aten.gather.default(x, -1, above)
    if interpolation in ("lower", "nearest"):
        out = low
    elif interpolation == "higher":
        out = high
    elif interpolation == "midpoint":
        out = aten.lerp.Scalar(low, high, 0.5)
    else:
        out = aten.lerp.Tensor(low, high, aten.sub.Tensor(rank, below))
    out = aten.movedim.int(out, -1, 0)  # (lines, q) -> (q, lines)
    if not keepdim:
        out = aten.squeeze.dim(out, d + 1)
    elif dim is None or not original.ndim:
        out = aten.reshape.default(out, [q.numel(), *[1] * original.ndim])
    return aten.squeeze.dim(out, 0) if q.ndim == 0 else out


def _are_shares(q) -> bool:
    inside = aten.logical_and.default(aten.ge.Scalar(q, 0), aten.le.Scalar(q, 1))
    return bool(aten.all.default(inside).item())


for _name, _skip in (("quantile", False), ("nanquantile", True)):

    def _declare(name=_name, skip=_skip):
        tail = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"

        @composite(f"{name}(Tensor self, Tensor q, {tail}", has_out=True, out_rules="exact")
        def of_tensor(self, q, dim, keepdim, interpolation):
            if elements(q) is not None and q.numel() and q.dtype.is_floating_point and not _are_shares(q):
                raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
            return _quantile(name, self, q, dim, keepdim, interpolation, skip)

        @composite(f"{name}.scalar(Tensor self, float q, {tail}", has_out=True, out_rules="exact")
        def of_number(self, q, dim, keepdim, interpolation):
            if not 0 <= q <= 1:
                raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
            return _quantile(
                name,
                self,
                aten.scalar_tensor.default(q, dtype=self.dtype, device=self.device),
                dim,
                keepdim,
                interpolation,
                skip,
            )

    _declare()


@explicit(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    variants="function method",
    inplace=True,
)
def renorm(self, p, dim, maxnorm):
    """Slices along ``dim`` whose p-norm exceeds ``maxnorm`` are scaled to it."""
    if p.__class__ is complex or maxnorm.__class__ is complex:
        raise RuntimeError(f"renorm: {'p' if p.__class__ is complex else 'maxnorm'} must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    d = normalize_dim(dim, self.ndim)
    self = aten.contiguous.default(self)
    norm = aten.linalg_vector_norm.default(self, p, [e for e in range(self.ndim) if e != d], True)
    factor = aten.div.Tensor(aten.full_like.default(norm, maxnorm), aten.add.Tensor(norm, 1e-7))
    return aten.mul.Tensor(self, aten.where.ScalarOther(aten.gt.Scalar(norm, maxnorm), factor, 1))
