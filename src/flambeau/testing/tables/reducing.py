"""Samples: reductions, softmax, cumulative and statistical operators."""

import numpy as np
import scipy.special as special

from ..samples import T, apart, b, call, f, gaps, i, row


def reduced(make, **kw):
    """Dimensions in all the ways they are written: one, several, negative, all, kept, on odd layouts, on empty and 0-dim tensors."""
    return [call(make(2, 3), 0, **kw), call(make(2, 3), [-1], True, **kw), call(make(2, 3, 2), [0, 2], **kw), call(T(make(3, 2)), [1], **kw),
            call(gaps(make(2, 3)), [0], **kw), call(make(2, 3, 2).transpose(1, 2, 0), [1, 2], True, **kw)]


def _axis(d):
    return tuple(d) if isinstance(d, list) else d


def np_dim(fn):
    return lambda x, dim=None, keepdim=False, *, dtype=None: fn(x, axis=_axis(dim) if dim != [] and x.ndim else None, keepdims=keepdim)


_all = [call(f(2, 3)), call(T(f(3, 2))), call(f()), call(gaps(f(2, 2)))]
row("sum mean", _all + [call(f(0, 3))][:0], [np.sum, np.mean], dtypes=True)
row("prod", _all + [call(np.array([1.0, 0.0, 2.0])), call(i(3)), call(f(0))], np.prod, dtypes=True)
row("sum.dim_IntList", reduced(f) + [call(f(2, 3), None), call(f(2, 3), []), call(i(2, 3), [0]), call(b(2, 3), [0]), call(f(0, 3), [0]), call(f(), [0])], np_dim(np.sum))
row("mean.dim", reduced(f) + [call(f(2, 3), None), call(f(), [0])], np_dim(np.mean))
row("amax amin", reduced(apart) + [call(apart(2, 3)), call(i(2, 3), [1]), call(apart(), [0])], [np_dim(np.max), np_dim(np.min)], dtypes=True)
row("max min", [call(apart(2, 3)), call(T(apart(3, 2))), call(apart()), call(i(4))], [np.max, np.min], dtypes=True)
row("argmax argmin", [call(apart(2, 3)), call(apart(2, 3), 1), call(T(apart(3, 2)), 0, True), call(i(6, high=2)), call(i(2, 6, high=2), 1), call(apart(), 0)],
    [lambda x, dim=None, keepdim=False, fn=fn: fn(x.reshape(1) if x.ndim == 0 else x, axis=dim if x.ndim else None, keepdims=keepdim) for fn in (np.argmax, np.argmin)],
    grad=(), dtypes=True)
row("prod.dim_int", [call(f(2, 3), 0), call(f(2, 3), 1, True), call(np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 3.0]]), 1), call(T(f(3, 2)), -1)],
    lambda x, dim, keepdim=False: np.prod(x, axis=dim, keepdims=keepdim))
_truth = [call(b(2, 3)), call(f(2, 3)), call(i(4, high=2)), call(b(0))]
row("any all", _truth, [np.any, np.all], grad=(), dtypes=True)
row("any.dim all.dim", [call(b(2, 3), 0), call(i(2, 3, high=2), 1, True), call(T(b(3, 2)), -1), call(b(0, 2), 0)],
    [lambda x, dim, keepdim=False, fn=fn: fn(x != 0, axis=dim, keepdims=keepdim) for fn in (np.any, np.all)], grad=())
row("any.dims all.dims", [call(b(2, 3), [0, 1]), call(i(2, 3, high=2), [1], True), call(b(2, 3))],
    [lambda x, dim=None, keepdim=False, fn=fn: fn(x != 0, axis=_axis(dim), keepdims=keepdim) for fn in (np.any, np.all)], grad=())
_pairs = [call(apart(2, 3), 1), call(apart(2, 3), 0, True), call(T(apart(3, 2)), -1), call(apart(), 0), call(i(2, 6, high=3), 1)]


def _extreme(value, arg):
    def fn(x, dim, keepdim=False):
        if x.ndim == 0:
            return x, np.asarray(0)
        return value(x, axis=dim, keepdims=keepdim), arg(x, axis=dim, keepdims=keepdim)

    return fn


row("max.dim min.dim", _pairs, [_extreme(np.max, np.argmax), _extreme(np.min, np.argmin)], dtypes=True)
row("max.other min.other", [call(f(2, 3), f(3))], [np.maximum, np.minimum])
row("aminmax", [call(apart(2, 3)), call(apart(2, 3), dim=1), call(apart(2, 3), dim=0, keepdim=True)],
    lambda x, dim=None, keepdim=False: (x.min(axis=dim, keepdims=keepdim), x.max(axis=dim, keepdims=keepdim)))


def _var(x, dim=None, *, correction=None, keepdim=False):
    return np.var(x, axis=_axis(dim) if dim != [] else None, ddof=1 if correction is None else correction, keepdims=keepdim)


_moments = [call(f(2, 3)), call(f(2, 3), [1]), call(f(2, 3), [0], correction=0), call(f(3, 2, 2), [0, 2], keepdim=True), call(T(f(3, 4)), [1], correction=2),
            call(f(2, 3), None, correction=1)]
row("var.correction", _moments, _var)
row("std.correction", _moments, lambda *a, **k: np.sqrt(_var(*a, **k)))
row("var_mean.correction", _moments, lambda x, dim=None, *, correction=None, keepdim=False: (_var(x, dim, correction=correction, keepdim=keepdim), np.mean(x, axis=_axis(dim), keepdims=keepdim)))
row("std_mean.correction", _moments, lambda x, dim=None, *, correction=None, keepdim=False: (np.sqrt(_var(x, dim, correction=correction, keepdim=keepdim)), np.mean(x, axis=_axis(dim), keepdims=keepdim)))
row("var std", [call(f(2, 3)), call(f(2, 3), False)], [lambda x, unbiased=True: np.var(x, ddof=int(unbiased)), lambda x, unbiased=True: np.std(x, ddof=int(unbiased))])
row("var.dim std.dim", [call(f(2, 3), [1]), call(f(2, 3), [0], False, True), call(f(2, 3), None, False)],
    [lambda x, dim, unbiased=True, keepdim=False, fn=fn: fn(x, axis=_axis(dim), ddof=int(unbiased), keepdims=keepdim) for fn in (np.var, np.std)])
row("logsumexp", [call(f(2, 3), [1]), call(f(2, 3), [0, 1], True), call(np.array([[-np.inf, 0.5], [1.0, 2.0]]), [1]), call(f(), [0])],
    lambda x, dim, keepdim=False: special.logsumexp(x, axis=_axis(dim) if x.ndim else None, keepdims=keepdim))
row("count_nonzero.dim_IntList", [call(i(2, 3, high=2), [0]), call(f(2, 3), [0, 1])], lambda x, dim: np.count_nonzero(x, axis=_axis(dim)), grad=())
row("count_nonzero", [call(i(2, 3, high=2)), call(f(2, 3), 0)], lambda x, dim=None: np.count_nonzero(x, axis=dim), grad=())
row("_without_nan", [call(np.array([[1.0, np.nan], [2.0, 3.0]]))], lambda x: np.where(np.isnan(x), 0, x), grad=())
row("nansum", [call(np.array([[1.0, np.nan], [2.0, 3.0]])), call(f(2, 3), [1], True)], lambda x, dim=None, keepdim=False: np.nansum(x, axis=_axis(dim), keepdims=keepdim))
row("nanmean", [call(np.array([[1.0, np.nan], [2.0, 3.0]])), call(f(2, 3), [1], True)], lambda x, dim=None, keepdim=False: np.nanmean(x, axis=_axis(dim), keepdims=keepdim))


def _norm(x, ord=2, dim=None, keepdim=False):
    x = np.abs(x)
    axis = _axis(dim)
    if ord == np.inf:
        return x.max(axis=axis, keepdims=keepdim)
    if ord == -np.inf:
        return x.min(axis=axis, keepdims=keepdim)
    if ord == 0:
        return (x != 0).sum(axis=axis, keepdims=keepdim).astype(x.dtype)
    return (x**ord).sum(axis=axis, keepdims=keepdim) ** (1 / ord)


row("linalg_vector_norm", [call(f(2, 3)), call(apart(2, 3), 1, [1]), call(f(2, 3), 3, [0], True), call(apart(4), np.inf), call(apart(4), -np.inf), call(f(2, 2, 3), 2, [0, 2]),
                           call(f(4), 0.5)], _norm)
row("norm.Scalar", [call(f(2, 3)), call(apart(3), 1)], lambda x, p=2: _norm(x, p))
row("norm.ScalarOpt_dim", [call(f(2, 3), 2, [1]), call(f(2, 3), None, [0], True), call(apart(2, 3), 1, [1])], lambda x, p, dim, keepdim=False: _norm(x, 2 if p is None else p, dim, keepdim))
row("dist", [call(f(3), f(3)), call(f(2, 3), f(3), 1)], lambda a, c, p=2: _norm(a - c, p))

_soft = [call(f(2, 3), 1, False), call(T(f(3, 2)), 0, False), call(f(2, 3, 2), 1, False), call(f(), 0, False), call(f(2, 3) * 100, -1, False)]
row("_softmax _log_softmax", _soft, [lambda x, d, h: special.softmax(x, d) if x.ndim else np.ones(()), lambda x, d, h: special.log_softmax(x, d) if x.ndim else np.zeros(())], rtol=1e-9, strides=False)
row("_safe_softmax", [call(f(2, 3), 1), call(np.array([[-np.inf, -np.inf], [1.0, 2.0]]), 1)], lambda x, d: np.nan_to_num(special.softmax(x, d)), grad=())
row("softmax.int log_softmax.int", [call(f(2, 3), 1), call(f(2, 3), 0)], [special.softmax, special.log_softmax], rtol=1e-9)


row("cumsum cumprod", [call(f(2, 3), 1), call(T(f(3, 2)), 0), call(i(3), 0), call(f(), 0), call(f(0, 2), 0)],
    [lambda x, d: np.cumsum(x.reshape(-1) if x.ndim == 0 else x, d).reshape(x.shape), lambda x, d: np.cumprod(x.reshape(-1) if x.ndim == 0 else x, d).reshape(x.shape)])
row("diff", [call(f(2, 4)), call(f(4, 2), 1, 0), call(f(2, 4), 2)], lambda x, n=1, dim=-1: np.diff(x, n, dim))
row("trace", [call(f(3, 3)), call(f(2, 4))], np.trace)
row("cov corrcoef", [call(f(3, 4)), call(f(4))], [np.cov, np.corrcoef], rtol=1e-8)
row("renorm", [call(f(3, 4), 2, 0, 1.0)], None)
row("logcumsumexp", [call(f(2, 3), 1)], lambda x, d: np.log(np.cumsum(np.exp(x), d)))
row("median", [call(apart(5)), call(apart(2, 3))], lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2])
row("trapezoid.x", [call(f(4), f(4))], np.trapezoid)
row("special_logsumexp", [call(f(2, 3), [1])], lambda x, d: special.logsumexp(x, tuple(d)))

row("var_mean std_mean", [call(f(2, 3))], [lambda x: (np.var(x, ddof=1), x.mean()), lambda x: (np.std(x, ddof=1), x.mean())])
row("var_mean.dim std_mean.dim", [call(f(2, 3), [1])], [lambda x, d: (np.var(x, axis=1, ddof=1), x.mean(1)), lambda x, d: (np.std(x, axis=1, ddof=1), x.mean(1))])
row("norm.ScalarOpt_dtype", [], None)
row("norm.ScalarOpt_dim_dtype", [], None)
row("linalg_norm", [call(f(2, 3)), call(f(2, 3), 1, [0, 1]), call(f(2, 3), np.inf), call(f(3), 3)],
    lambda x, o=None, d=None: np.linalg.norm(x.reshape(-1) if o is None and d is None else x, o))
