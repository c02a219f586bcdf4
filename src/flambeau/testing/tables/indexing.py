"""Samples: gather, scatter, embedding, advanced indexing."""

import numpy as np

from ..samples import T, b, call, f, fixed, i, row

row("embedding", [call(f(5, 3), i(4)), call(f(5, 3), i(2, 3)), call(f(5, 2), i()), fixed(f(5, 3), i(2, 2), 1)], lambda w, k, *_: w[k])
row("_index_add", [call(f(3, 2), 0, i(4, high=3), f(4, 2))], None, torch=None)
row("_embedding_scatter", [call(f(4, 3), i(4), 5), call(f(2, 3, 2), i(2, 3), 5)], None, torch=None)
row("embedding_dense_backward", [call(f(4, 3), i(4), 5, -1, False), call(f(2, 3, 2), i(2, 3), 5, 1, False), call(f(6, 2), i(6, high=3), 4, -1, True)], None)
row("take_along_dim", [call(f(3, 4), i(3, 2, high=4), 1), call(f(3, 4), i(2, high=12))], lambda x, k, d=None: np.take_along_axis(x, k, d))
row("gather", [call(f(3, 4), 1, i(3, 2, high=4)), call(f(3, 4), 0, i(2, 4, high=3)), call(T(f(4, 3)), -1, i(2, 2, high=4)), call(f(), 0, i(high=1))],
    lambda x, d, k: np.take_along_axis(x[:k.shape[0]] if d in (1, -1) else x[:, :k.shape[1]], k, d) if x.ndim else x)
row("index_select", [call(f(3, 4), 0, i(5, high=3)), call(f(3, 4), 1, i(2, high=4)), call(T(f(4, 3)), -1, i(2, high=4)), call(f(3, 4), 0, i(0))],
    lambda x, d, k: np.take(x, k, d))


def _put(x, indices, values, accumulate=False):
    out, key = np.array(x), tuple(slice(None) if a is None else a for a in indices)
    if accumulate:
        # All values by themselves: NumPy's own broadcasting reads beyond them for one index of several dimensions.
        np.add.at(out, key, np.array(np.broadcast_to(values, out[key].shape)))
    else:
        out[key] = values
    return out


_unique = np.array([[0, 2, 1], [1, 0, 3]])
row("scatter.src scatter_add", [call(f(2, 4), 1, _unique, f(2, 3)), call(f(4, 3), 0, _unique, f(3, 3)), call(T(f(4, 2)), -1, _unique, f(2, 3))],
    [None, None])
row("scatter.value", [call(f(2, 4), 1, _unique, 2.5), call(i(4, 3), 0, _unique, 3)], None)
row("scatter.reduce", [call(f(2, 4), 1, _unique, f(2, 3), reduce="add"), call(f(2, 4), 1, _unique, f(2, 3), reduce="multiply")], None, grad=())
row("scatter.value_reduce", [call(f(2, 4), 1, i(2, 3, high=4), 2.0, reduce="add")], None, grad=(0,))
row("scatter_reduce.two", [call(f(2, 4), 1, i(2, 3, high=4), f(2, 3), r) for r in ("sum", "prod", "mean", "amax", "amin")]
    + [call(f(2, 4), 1, i(2, 3, high=4), f(2, 3), "sum", include_self=False)], None, grad=())
row("index_add", [call(f(3, 2), 0, i(4, high=3), f(4, 2)), call(f(2, 4), 1, i(3, high=4), f(2, 3), alpha=2)], None)
row("index_copy", [call(f(3, 2), 0, np.array([2, 0]), f(2, 2))], None)
row("index_fill.int_Scalar", [call(f(3, 2), 0, np.array([2, 0]), 1.5), call(i(2, 3), 1, np.array([0]), 7)], None)
row("take", [call(f(3, 4), i(2, 3, high=12)), call(f(3), i(2, high=3) - 1)], np.take)
row("index.Tensor", [call(f(3, 4), [i(2, high=3)]), call(f(3, 4), [None, i(2, 2, high=4)]), call(f(3, 4), [i(3, high=3), i(3, high=4)]), call(f(3, 4), [b(3, 4)]),
                     call(f(3, 4), [np.array([True, False, True])]), call(f(2, 3, 4), [i(2, high=2), None, i(2, high=4)]), call(f(3), [i(2, high=3) - 3]),
                     call(T(f(4, 3)), [i(2, 1, high=3), i(2, high=4)])],
    lambda x, k: x[tuple(slice(None) if a is None else a for a in k)])
row("index_put", [call(f(3, 4), [i(2, high=3)], f(2, 4), True), call(f(3, 4), [np.array([0, 2])], f(4)), call(f(3, 4), [b(3, 4)], f()), call(f(3, 4), [None, np.array([1, 3])], f(3, 2)),
                  call(f(3, 4), [np.array([0, 2]), np.array([1, 1])], f(2)), call(f(4), [i(2, 3, high=4)], f(3), True), call(f(4), [i(2, 2, high=4)], f(), True)],
    _put)
row("masked_select", [call(f(2, 3), b(2, 3)), call(f(2, 3), b(3))], lambda x, m: x[np.broadcast_to(m, x.shape)])
row("masked_scatter", [call(f(2, 3), np.array([True, False, True]), f(6))], None)
row("nonzero", [call(f(2, 3)), call(b(2, 3)), call(i(5, high=2))], lambda x: np.argwhere(x), grad=())
row("argwhere", [call(b(2, 3))], np.argwhere, grad=())
row("one_hot", [call(i(2, 3)), call(i(4), 7)], lambda x, n=-1: np.eye(n if n > 0 else x.max() + 1, dtype=np.int64)[x], grad=())
row("select_scatter", [call(f(2, 3), f(3), 0, 1)], None)
row("slice_scatter", [call(f(5, 2), f(3, 2), 0, 1, 4)], None)
row("diagonal_scatter", [call(f(3, 3), f(3))], None)
row("bincount", [call(i(6)), call(i(6), f(6), 8)], lambda x, w=None, n=0: np.bincount(x, w, n), grad=())
row("tril_indices triu_indices", [call(3, 3), call(3, 4, 1), call(4, 2, -1)],
    [lambda r, c, k=0: np.stack(np.tril_indices(r, k, c)), lambda r, c, k=0: np.stack(np.triu_indices(r, k, c))], grad=())
row("isin.Tensor_Tensor", [call(i(2, 3), i(2))], np.isin, grad=())
row("searchsorted.Tensor", [call(np.array([1.0, 3.0, 5.0]), f(2, 3) * 3)], np.searchsorted, grad=())
row("bucketize.Tensor", [call(f(2, 3) * 3, np.array([1.0, 3.0, 5.0]))], lambda x, e: np.searchsorted(e, x), grad=())
row("nonzero_numpy", [call(f(2, 3)), call(b(2, 3))], lambda x: list(np.nonzero(x)), grad=())
row("_unique2", [call(i(6), True, True, True), call(i(2, 3, high=3), True, True, True)],
    lambda x, *_: (lambda v, n, c: (v, n.reshape(x.shape), c))(*np.unique(x, return_inverse=True, return_counts=True)), grad=())
row("_is_all_true _is_any_true", [call(b(2, 3)), call(b(0))], [lambda x: np.all(x), lambda x: np.any(x)], grad=())
row("unique_dim", [call(i(4, 2, high=2), 0, True, True, True)], None, grad=())
row("unique_consecutive", [call(i(8, high=2), True, True), call(i(4, 2, high=2), True, True, 0)], None, grad=())
