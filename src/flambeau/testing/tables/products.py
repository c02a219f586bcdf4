"""Samples: matrix products."""

import numpy as np

from ..samples import T, call, f, gaps, i, row

_mm = [call(f(2, 3), f(3, 4)), call(T(f(3, 2)), f(3, 2)), call(f(2, 3), T(f(4, 3))), call(gaps(f(2, 3)), f(3, 2)), call(f(0, 3), f(3, 2)), call(f(2, 0), f(0, 3)), call(i(2, 3), i(3, 2))]
row("mm", _mm, np.matmul, dtypes=True)
row("bmm", [call(f(2, 2, 3), f(2, 3, 2)), call(f(2, 3, 2).transpose(0, 2, 1), f(2, 3, 2)), call(f(0, 2, 3), f(0, 3, 2))], np.matmul)
row("mv", [call(f(2, 3), f(3)), call(T(f(3, 2)), f(3))], np.matmul)
row("dot", [call(f(3), f(3)), call(gaps(f(3)), f(3)), call(f(0), f(0)), call(i(3), i(3))], np.dot)
row("vdot inner", [call(f(3), f(3))], np.dot)
row("addmm", [call(f(4), f(2, 3), f(3, 4)), call(f(2, 4), f(2, 3), T(f(4, 3)), beta=0.5, alpha=2), call(f(), f(2, 3), f(3, 2), beta=0)],
    lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b))
row("addmv", [call(f(2), f(2, 3), f(3)), call(f(2), f(2, 3), f(3), beta=0.5, alpha=2)], lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b))
row("baddbmm", [call(f(2, 2, 2), f(2, 2, 3), f(2, 3, 2)), call(f(2), f(2, 2, 3), f(2, 3, 2), beta=0.5, alpha=2)], lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b))
row("addbmm", [call(f(2, 2), f(3, 2, 3), f(3, 3, 2))], lambda c, a, b: c + (a @ b).sum(0))
row("addr", [call(f(2, 3), f(2), f(3)), call(f(2, 3), f(2), f(3), beta=0.5, alpha=2)], lambda c, a, b, beta=1, alpha=1: beta * c + alpha * np.outer(a, b))
_shapes = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3,)), ((2, 2, 3), (3, 2)), ((3,), (2, 3, 2)), ((2, 3), (2, 3, 2)), ((2, 1, 2, 3), (3, 3, 2))]
row("matmul", [call(f(*a), f(*b)) for a, b in _shapes] + [call(T(f(3, 2)), T(f(4, 3)))], np.matmul)
row("linear", [call(f(2, 3), f(4, 3)), call(f(2, 3), f(4, 3), f(4)), call(f(2, 2, 3), f(4, 3), f(4)), call(f(3), f(4, 3), f(4)), call(f(3), f(4, 3))],
    lambda x, w, b=0: x @ w.T + b)
row("bilinear", [call(f(2, 3), f(2, 4), f(2, 3, 4), f(2))], lambda a, c, w, b: np.einsum("ni,oij,nj->no", a, w, c) + b)
row("outer ger", [call(f(2), f(3))], np.outer)
row("kron", [call(f(2, 2), f(3, 2))], np.kron)
row("tensordot", [call(f(2, 3, 4), f(3, 4, 2), [1, 2], [0, 1])], lambda a, c, d, e: np.tensordot(a, c, (d, e)))
row("linalg_vecdot", [call(f(2, 3), f(2, 3))], lambda a, c: (a * c).sum(-1))
row("cross linalg_cross", [call(f(2, 3), f(2, 3))], np.cross)
row("einsum", [call("ij,jk->ik", [f(2, 3), f(3, 2)]), call("bij,bjk->bik", [f(2, 2, 3), f(2, 3, 2)])], lambda e, ts: np.einsum(e, *ts))
row("cdist", [call(f(2, 3), f(4, 3))], lambda a, c: np.sqrt(((a[:, None] - c[None]) ** 2).sum(-1)), rtol=1e-8)
row("linalg_norm.ord_str", [call(f(2, 3), "fro"), call(f(2, 3), "nuc", [0, 1], True)], lambda x, o, d=None, k=False: np.linalg.norm(x, o, None if d is None else tuple(d), k))
row("matrix_power linalg_matrix_power", [call(f(3, 3), 3)], np.linalg.matrix_power)
