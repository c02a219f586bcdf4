"""Samples: order statistics, searching, writes by index that combine."""

import numpy as np

from ..samples import T, apart, b, call, f, fixed, i, pos, row

_lines = [call(apart(2, 5), 1), call(apart(3, 2), 0, True), call(T(apart(4, 3)), -1)]


def _at(name, k):
    def reference(x, dim=-1, keepdim=False):
        order = np.argsort(x, dim)
        at = np.take(order, [k(x.shape[dim])], dim)
        values = np.take_along_axis(x, at, dim)
        return (values, at) if keepdim else (np.squeeze(values, dim), np.squeeze(at, dim))

    return reference


row("median.dim nanmedian.dim", _lines, _at("median", lambda n: (n - 1) // 2))
row("nanmedian", [call(apart(5)), call(apart(2, 3))], lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2])
row("mode", [fixed(np.array([[1.0, 2, 2, 0], [3, 3, 1, 1]]), 1), fixed(i(3, 5, high=3), 1, True)],
    None, second=False)
row("cummax", [call(apart(2, 5), 1), call(apart(3, 2), 0)], lambda x, d: (np.maximum.accumulate(x, d), np.array(_running(x, d, np.greater_equal))))
row("cummin", [call(apart(2, 5), 1), call(apart(3, 2), 0)], lambda x, d: (np.minimum.accumulate(x, d), np.array(_running(x, d, np.less_equal))))


def _running(x, dim, beats):
    lines = np.moveaxis(x, dim, -1)
    out = np.zeros(lines.shape, np.int64)
    for at in np.ndindex(lines.shape[:-1]):
        best = 0
        for k, v in enumerate(lines[at]):
            best = k if beats(v, lines[at][best]) else best
            out[(*at, k)] = best
    return np.moveaxis(out, -1, dim)


row("quantile nanquantile", [call(apart(5), np.array([0.2, 0.6])), call(apart(3, 4), np.array(0.3), 1, True), call(apart(3, 4), np.array([0.1, 0.9]), 0, interpolation="lower")],
    lambda x, q, dim=None, keepdim=False, interpolation="linear": np.quantile(x, q, dim, keepdims=keepdim, method=interpolation), grad=(0,))
row("quantile.scalar nanquantile.scalar", [call(apart(5), 0.25), call(apart(3, 4), 0.5, 1)], lambda x, q, dim=None: np.quantile(x, q, dim))

_sorted = np.sort(f(6))
row("searchsorted.Scalar", [call(_sorted, 0.1), call(_sorted, 0.1, right=True)], lambda s, v, right=False: np.searchsorted(s, v, "right" if right else "left"), grad=())
row("bucketize.Scalar", [call(0.1, _sorted)], lambda v, s: np.searchsorted(s, v), grad=())
row("isin.Tensor_Scalar", [call(i(2, 3), 2), call(i(3), 1, invert=True)], np.isin, grad=())
row("isin.Scalar_Tensor", [call(2, i(5)), call(9, i(5), invert=True)], np.isin, grad=())
row("histc", [call(f(20), 5, -2, 2), call(f(4, 5), 4)],
    lambda x, bins, lo=0, hi=0: np.histogram(x, bins, (lo, hi) if lo != hi else None)[0].astype(x.dtype), grad=())


def _put_along(x, dim, index, value):
    out = x.copy()
    out[(slice(None),) * dim + (index,)] = value
    return out


row("index_fill.int_Tensor", [call(f(3, 4), 1, np.array([0, 2]), f())], _put_along)


def _put(x, at, value, accumulate=False):
    out = x.copy()
    (np.add.at if accumulate else lambda o, k, v: o.__setitem__(k, v))(out.reshape(-1), at, value)
    return out


row("put", [call(f(3, 4), np.array([0, 5, 11]), f(3)), call(f(4), np.array([1, 1]), f(2), True)], _put)


def _scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
    parts = {}
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = int(index[at])
        parts.setdefault(tuple(to), []).append(src[at])
    out = x.copy()
    fn = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    for to, values in parts.items():
        out[to] = fn([*([x[to]] if include_self else []), *values])
    return out


_index = np.array([[0, 1, 0, 0], [2, 0, 1, 2]])
row("index_reduce", [call(pos(3, 4), 1, np.array([0, 2, 0]), pos(3, 3), r) for r in ("prod", "mean", "amax", "amin")],
    lambda x, dim, index, src, reduce: _scatter_reduce(x, dim, np.broadcast_to(index, src.shape), src, reduce))
row("type_as", [call(f(3), b(2)), call(i(3), f(2))], lambda x, y: x.astype(y.dtype), grad=())
