"""Moments, norms and other composed reductions."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.shapes import normalize_dims
from ...base.symint import sym_float, sym_max
from ...core.declare import COMPLEX, composite, explicit
from ...core.device_memory import elements
from ...core.operator import namespace
from .basic import as_dtype, correction_of, moment, var_vjp, wider

aten = namespace("aten")


std = explicit(
    "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    out_rules="casts",
)(
    lambda self, dim, correction, keepdim: as_dtype(
        self.dtype.to_real(),
        aten.sqrt.default(aten.var.correction(wider(self), dim, correction=correction, keepdim=keepdim)),
    )
)


def _std_vjp(ct, self, dim, correction, keepdim, result):
    """That of the variance, but 0 at a deviation of 0, where the slope is infinite."""
    of_var = aten.masked_fill.Scalar(aten.div.Tensor(ct, aten.mul.Tensor(result, 2)), aten.eq.Scalar(result, 0), 0)
    return var_vjp(of_var, self, dim, correction, keepdim)


std.derivative(self=_std_vjp)


moment("std")


def _with_mean(name):
    of = getattr(aten, name).correction

    @explicit(
        f"{name}_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        variants="function",
    )
    def both(self, dim, correction, keepdim):
        return of(self, dim, correction=correction, keepdim=keepdim), aten.mean.dim(self, dim, keepdim)

    @composite(f"{name}_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", variants="function")
    def all_dims(self, unbiased):
        return getattr(aten, f"{name}_mean").correction(self, None, correction=correction_of(unbiased))

    @composite(
        f"{name}_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
        variants="function",
    )
    def some_dims(self, dim, unbiased, keepdim):
        return getattr(aten, f"{name}_mean").correction(self, dim, correction=correction_of(unbiased), keepdim=keepdim)


_with_mean("var")
_with_mean("std")


def _reduced(fn, self, dim, keepdim):
    return fn(self, [dim] if isinstance(dim, int) else list(dim) if dim is not None else None, keepdim)


def _nonempty(x, ord, dim) -> None:
    if x.numel() == 0 and any(x.shape[d] == 0 for d in (normalize_dims(dim, x.ndim) or range(x.ndim))):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have an identity"
        )


@explicit(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    variants="linalg",
    name="vector_norm",
    tags=("own_complex_derivative",),
)
def vector_norm(self, ord, dim, keepdim, dtype):
    if dtype is not None and (self.dtype.is_floating_point or self.dtype.is_complex):
        if self.dtype.is_complex is not dtype.is_complex:
            kind = "complex" if self.dtype.is_complex else "real"
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {dtype.scalar_type}"
            )
        if dtypes.promote_types(self.dtype, dtype) is not dtype:
            raise RuntimeError(
                f"linalg.vector_norm: the dtype of the input ({self.dtype.scalar_type}) should be convertible without narrowing to the "
                f"specified dtype ({dtype.scalar_type})"
            )
    x = self if dtype is None else aten._to_copy.default(self, dtype=dtype)
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {_name_of(self.dtype)}"
        )
    if x.dtype in (dtypes.float16, dtypes.bfloat16):  # squares of half precision overflow
        wide = aten._to_copy.default(x, dtype=dtypes.float32)
        return aten._to_copy.default(vector_norm.definition.fn(wide, ord, dim, keepdim, None), dtype=x.dtype)
    if ord.__class__ is complex:
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    if ord < 0 or ord == math.inf:
        _nonempty(x, ord, dim)
    if ord != 0 and all(x.shape[d] == 1 for d in normalize_dims(dim, x.ndim)):
        return _reduced(aten.sum.dim_IntList, aten.abs.default(x), dim, keepdim)  # no square that overflows
    if ord == 0:
        return _reduced(
            aten.sum.dim_IntList, aten._to_copy.default(aten.ne.Scalar(x, 0), dtype=x.dtype.to_real()), dim, keepdim
        )
    if x.dtype.is_complex:
        x = aten.abs.default(x)
    if ord == 2:
        return aten.sqrt.default(_reduced(aten.sum.dim_IntList, aten.mul.Tensor(x, x), dim, keepdim))
    x = aten.abs.default(x)
    if ord == 1:
        return _reduced(aten.sum.dim_IntList, x, dim, keepdim)
    if ord in (math.inf, -math.inf):
        return _reduced(aten.amax.default if ord > 0 else aten.amin.default, x, dim if dim is not None else [], keepdim)
    return aten.pow.Tensor_Scalar(
        _reduced(aten.sum.dim_IntList, aten.pow.Tensor_Scalar(x, ord), dim, keepdim), 1.0 / ord
    )


def _norm_vjp(ct, self, ord, dim, keepdim, result):
    """Zero at a norm of 0, as PyTorch has it, where the limit doesn't exist."""
    if not keepdim and dim is not None:
        for d in sorted(normalize_dims(dim, self.ndim)):
            ct, result = aten.unsqueeze.default(ct, d), aten.unsqueeze.default(result, d)
    if ord == 0:
        return aten.zeros_like.default(self)
    if ord == 1:
        return aten.mul.Tensor(ct, aten.sgn.default(self))
    zero = aten.eq.Scalar(result, 0)
    if ord in (math.inf, -math.inf):
        hit = aten.eq.Tensor(aten.abs.default(self), result)
        count = aten.sum.dim_IntList(hit, dim, True)
        return aten.div.Tensor(aten.where.ScalarOther(hit, aten.mul.Tensor(ct, aten.sgn.default(self)), 0), count)
    if ord == 2:
        return aten.mul.Tensor(aten.masked_fill.Scalar(aten.div.Tensor(self, result), zero, 0), ct)
    scale = aten.masked_fill.Scalar(aten.mul.Tensor(ct, aten.pow.Tensor_Scalar(result, 1 - ord)), zero, 0)
    power = aten.pow.Tensor_Scalar(aten.abs.default(self), ord - 1)
    power = aten.masked_fill.Scalar(power, aten.eq.Scalar(self, 0), 0) if ord < 1 else power
    return aten.mul.Tensor(aten.mul.Tensor(aten.sgn.default(self), power), scale)


vector_norm.derivative(self=_norm_vjp)


def _name_of(dtype):
    return {"int64": "Long", "int32": "Int", "bool": "Bool"}.get(dtype.name, dtype.name)


@composite("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", out_rules="exact")
def norm(self, p):
    return aten.linalg_vector_norm.default(self, p)


@composite("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", out_rules="exact")
def norm_dim(self, p, dim, keepdim):
    return aten.linalg_vector_norm.default(self, 2 if p is None else p, dim, keepdim)


@composite("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", out_rules="exact")
def norm_dtype(self, p, dtype):
    return aten.linalg_vector_norm.default(self, 2 if p is None else p, None, False, dtype=dtype)


@composite(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
    out_rules="exact",
)
def norm_dim_dtype(self, p, dim, keepdim, dtype):
    return aten.linalg_vector_norm.default(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


@composite(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    variants="linalg",
    name="norm",
    out_rules="exact",
)
def linalg_norm(self, ord, dim, keepdim, dtype):
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if ord is not None and dim is None and self.ndim not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " + f"{self.ndim}D."
        )
    if ord is not None and ((dim is None and self.ndim == 2) or (dim is not None and len(dim) == 2)):
        return aten.linalg_matrix_norm.default(self, ord, [0, 1] if dim is None else list(dim), keepdim, dtype=dtype)
    return aten.linalg_vector_norm.default(self, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@composite(
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    variants="",
    out_rules="exact",
)
def linalg_norm_named(self, ord, dim, keepdim, dtype):
    if dim is None and self.ndim != 2:
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " + f"{self.ndim}D."
        )
    return aten.linalg_matrix_norm.str_ord(self, ord, [0, 1] if dim is None else list(dim), keepdim, dtype=dtype)


@composite("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
def dist(self, other, p):
    apart = aten.sub.Tensor(self, other)
    if apart.dtype.category < 2:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {apart.dtype.scalar_type} instead."
        )
    return aten.linalg_vector_norm.default(apart, p)


_as_count = lambda s, x: s.where(s.ne(x, 0), 1, 0)  # noqa: E731


@composite("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor")
def count_nonzero_dims(self, dim):
    return aten.sum.dim_IntList(aten.ne.Scalar(self, 0), dim)


@composite("count_nonzero(Tensor self, int? dim=None) -> Tensor")
def count_nonzero(self, dim):
    hits = aten.ne.Scalar(self, 0)
    return aten.sum.default(hits) if dim is None else aten.sum.dim_IntList(hits, [dim])


def _terms(self):
    return aten.masked_fill.Scalar(self, aten.isnan.default(self), 0)


@explicit("_without_nan(Tensor self) -> Tensor", has_out=False)
def _without_nan(self):
    """What of `nansum` needs no gradient, as one operator: eager calls have a kernel."""
    return _terms(self)


_without_nan.override("rows", lambda h, self: h.without_nan(self))


@composite(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    refuse=COMPLEX,
    out_rules="dtype",
)
def nansum(self, dim, keepdim, dtype):
    if self.dtype.category >= 2:
        self = _terms(self) if self.requires_grad else aten._without_nan.default(self)
    return aten.sum.dim_IntList(self, dim, keepdim, dtype=dtype)


@composite("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
def nanmean(self, dim, keepdim, dtype):
    if self.dtype.category < 2:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype.scalar_type}"
        )
    there = aten.logical_not.default(aten.isnan.default(self))
    return aten.div.Tensor(
        aten.nansum.default(self, dim, keepdim, dtype=dtype), aten.sum.dim_IntList(there, dim, keepdim)
    )


@explicit(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    variants="function method",
)
def aminmax(self, dim, keepdim):
    dims = [] if dim is None else [dim]
    if not dims and self.numel() == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    return aten.amin.default(self, dims, keepdim), aten.amax.default(self, dims, keepdim)


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    out_rules="casts",
)
def diff(self, n, dim, prepend, append):
    parts = [t for t in (prepend, self, append) if t is not None]
    if any(t.ndim != self.ndim for t in parts):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    if n == 0:  # nothing is put before or behind
        return aten.clone.default(self)
    x = aten.cat.default(parts, dim) if len(parts) > 1 else self
    if x.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for _ in range(n):
        size = x.shape[dim]
        if size == 0:
            break
        a, b = aten.slice.Tensor(x, dim, 1, size), aten.slice.Tensor(x, dim, 0, size - 1)
        x = aten.logical_xor.default(a, b) if x.dtype is dtypes.bool_ else aten.sub.Tensor(a, b)
    return x


@explicit("trace(Tensor self) -> Tensor", variants="function method")
def trace(self):
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    return aten.sum.default(aten.diagonal.default(self))


@composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
def cov(self, correction, fweights, aweights):
    if self.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    if self.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    if self.dtype.category < 2:
        self = aten._to_copy.default(self, dtype=dtypes.get_default_dtype())
    x = aten.reshape.default(self, [1, self.numel()]) if self.ndim < 2 else self
    n = x.shape[1]
    weights = _observation_weights(fweights, aweights, n, x)
    if weights is None:
        total, centre = n, aten.mean.dim(x, [1], True)
        scale = sym_float(sym_max(n - correction, 0))
    else:
        total = aten.sum.default(weights)
        centre = aten.div.Tensor(aten.sum.dim_IntList(aten.mul.Tensor(x, weights), [1], True), total)
        if aweights is None or correction == 0:
            scale = aten.sub.Tensor(total, correction)
        else:
            spread = aten.sum.default(aten.mul.Tensor(weights, aweights))
            scale = aten.sub.Tensor(total, aten.div.Tensor(aten.mul.Tensor(spread, correction), total))
        scale = aten.clamp_min.default(scale, 0)
    centred = aten.sub.Tensor(x, centre)
    weighted = centred if weights is None else aten.mul.Tensor(centred, weights)
    out = aten.div.Tensor(
        aten.mm.default(
            centred, aten.t.default(aten.conj_physical.default(weighted) if weighted.dtype.is_complex else weighted)
        ),
        scale,
    )
    return aten.squeeze.default(out)


def _observation_weights(fweights, aweights, n, x):
    """The product of repetitions and importances, None when neither is given. RuntimeError for weights that don't fit."""
    for name, w, integral in (("fweights", fweights, True), ("aweights", aweights, False)):
        if w is None:
            continue
        if w.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions"
            )
        if integral and w.dtype.category != 1:
            raise RuntimeError(
                f"cov(): expected fweights to have integral dtype but got fweights with {_name_of(w.dtype)} dtype"
            )
        if not integral and not w.dtype.is_floating_point:
            raise RuntimeError(
                f"cov(): expected aweights to have floating point dtype but got aweights with {_name_of(w.dtype)} dtype"
            )
        if w.numel() != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got {w.numel()} != {n}"
            )
        values = elements(w)
        if values is not None and (values < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        return fweights if aweights is None else aweights
    return aten.mul.Tensor(fweights, aweights)


@composite("corrcoef(Tensor self) -> Tensor")
def corrcoef(self):
    c = aten.cov.default(self)
    if c.ndim == 0:
        return aten.div.Tensor(c, c)
    s = aten.sqrt.default(aten.diagonal.default(c))
    return aten.div.Tensor(aten.div.Tensor(c, aten.unsqueeze.default(s, 1)), aten.unsqueeze.default(s, 0))


@explicit("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", has_out=False)
def _safe_softmax(self, dim, dtype):
    """softmax with zeros where a whole row is masked."""
    x = self if dtype is None else aten._to_copy.default(self, dtype=dtype)
    masked = aten.all.dim(aten.eq.Scalar(x, -math.inf), dim, True)
    return aten.masked_fill.Scalar(aten._softmax.default(x, dim, False), masked, 0)


@_safe_softmax.override("recompute")
def _safe_softmax_again(self, dim, dtype):
    """See aot/recompute.py, as of _softmax. A row without anything has the maximum -inf."""
    found = aten._softmax.default.overrides["recompute"](self, dim, False) if dtype is None else None
    if found is None:
        return None
    numbers, again = found
    return numbers, lambda x, top, total: aten.masked_fill.Scalar(
        again(x, top, total), aten.eq.Scalar(top, -math.inf), 0
    )


_safe_softmax.derivative(
    self=lambda ct, self_like, result, dim: aten._softmax_backward_data.default(ct, result, dim, self_like.dtype)
)


@composite(
    "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", variants="special", name="logsumexp"
)
def special_logsumexp(self, dim, keepdim):
    return aten.logsumexp.default(self, dim, keepdim)
