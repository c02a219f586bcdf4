"""Samples: linear algebra."""

import numpy as np
import scipy.linalg

from ..samples import T, call, f, unit
from ..samples import row as _row


def row(*args, **kw):
    """Matrices have to be regular, definite, of simple eigenvalues: other values than these are errors, or have no one answer."""
    _row(*args, arbitrary=False, **kw)


def well(*shape):
    """Square matrices far from singular, none of them symmetric, with determinants above zero."""
    return f(*shape) * 0.4 + np.eye(shape[-1]) * 3


def definite(*shape):
    """Symmetric positive definite ones."""
    a = f(*shape) * 0.4
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1]) * 2


def lower(*shape):
    return np.tril(well(*shape))


def hermitian(a):
    return (a + a.mH) / 2


def of_hermitian(op, a, *args, **kwargs):
    """One half of the matrix is read: the other follows it."""
    return op(hermitian(a), *args, **kwargs)


_square = [call(well(2, 2)), call(T(well(3, 3))), call(well(2, 2, 2)), call(well(0, 2, 2)), call(well(2, 0, 0))]
row("linalg_inv inverse", _square, [np.linalg.inv, np.linalg.inv], second=True)
row("linalg_inv_ex", _square, lambda a: (np.linalg.inv(a), np.zeros(a.shape[:-2], np.int32)))
row("linalg_det det", _square, [np.linalg.det, np.linalg.det])
row("_linalg_det", _square[:3], through=lambda op, a: op(a)[0])
row("linalg_slogdet slogdet", _square, [lambda a: tuple(np.linalg.slogdet(a))] * 2)
row("_linalg_slogdet", _square[:3], through=lambda op, a: op(a)[:2])
row("logdet", _square, lambda a: np.log(np.linalg.det(a)))
row("linalg_matrix_exp matrix_exp", [call(f(2, 2) * 0.5), call(T(f(3, 3))), call(f(2, 2, 2))], [lambda a: scipy.linalg.expm(a)] * 2)
row("linalg_solve", [call(well(2, 2), f(2)), call(well(3, 3), f(3, 2)), call(well(2, 2, 2), f(2, 2, 1)), call(well(2, 2), f(3, 2), left=False), call(T(well(3, 3)), T(f(2, 3)))],
    lambda a, b, left=True: np.linalg.solve(a, b) if left else b @ np.linalg.inv(a))
row("linalg_solve_ex", [call(well(2, 2), f(2, 1))], lambda a, b: (np.linalg.solve(a, b), np.zeros((), np.int32)))
row("_linalg_solve_ex", [call(well(2, 2), f(2, 1))], through=lambda op, a, b: op(a, b)[0])
row("linalg_solve_triangular", [call(lower(2, 2), f(2, 1), upper=False), call(T(lower(3, 3)), f(3, 2), upper=True), call(lower(2, 2), f(3, 2), upper=False, left=False),
    call(lower(2, 2), f(2, 1), upper=False, unitriangular=True)], lambda a, b, upper, left=True, unitriangular=False: _triangular(a, b, upper, left, unitriangular))


def _triangular(a, b, upper, left, unit):
    a = np.triu(a) if upper else np.tril(a)
    a = a - np.diag(np.diag(a)) + np.eye(len(a)) if unit else a
    return np.linalg.solve(a, b) if left else b @ np.linalg.inv(a)


row("triangular_solve", [call(f(2, 1), well(2, 2)), call(f(2, 2), well(2, 2), upper=False, transpose=True)], through=lambda op, *a, **k: op(*a, **k)[0])
row("cholesky_solve", [call(f(2, 1), lower(2, 2)), call(f(2, 2), T(lower(2, 2)), upper=True), call(f(2, 2, 1), lower(2, 2, 2))],
    lambda b, l, upper=False: np.linalg.solve(np.swapaxes(l, -1, -2) @ l if upper else l @ np.swapaxes(l, -1, -2), b),
    through=lambda op, b, l, upper=False: op(b, l.triu() if upper else l.tril(), upper))
def _factor(l):
    """A triangular matrix with a real diagonal, as factors have it: LAPACK's potri doesn't look at an imaginary part there."""
    return l - 1j * l.diagonal(dim1=-2, dim2=-1).imag.diag_embed() if l.is_complex() else l


row("cholesky_inverse", [call(lower(2, 2)), call(T(lower(3, 3)), upper=True)], lambda l, upper=False: np.linalg.inv(l.T @ l if upper else l @ l.T),
    through=lambda op, l, upper=False: op(_factor(l.triu() if upper else l.tril()), upper))
row("linalg_multi_dot chain_matmul", [call([f(2, 3), f(3, 2), f(2, 4)]), call([f(2, 1), f(1, 3)])], [lambda ms: np.linalg.multi_dot(ms)] * 2)
row("linalg_tensorinv", [call(well(4, 4).reshape(2, 2, 4), 2), call(well(2, 2), 1)], lambda a, ind: np.linalg.tensorinv(a, ind))
row("linalg_tensorsolve", [call(well(4, 4).reshape(2, 2, 2, 2), f(2, 2))], np.linalg.tensorsolve)
row("linalg_vander", [call(f(3)), call(f(2, 3), N=4)], lambda x, N=None: x[..., None] ** np.arange(x.shape[-1] if N is None else N))
row("linalg_diagonal", [call(f(2, 3)), call(f(2, 3, 3), offset=1)], lambda a, offset=0: np.diagonal(a, offset, -2, -1))
row("linalg_matmul", [call(f(2, 3), f(3, 2)), call(f(3), f(3, 2))], np.matmul)
row("_cdist_forward", [call(f(2, 3), f(4, 3), p, None) for p in (1.0, 2.0, 3.0)], lambda a, b, p, mode: (np.abs(a[:, None] - b[None]) ** p).sum(-1) ** (1 / p), rtol=1e-8)
_d = f(2, 3), f(2, 3)
row("_cdist_backward", [call(f(2, 2), *_d, 2.0, np.sqrt(((_d[0][:, None] - _d[1][None]) ** 2).sum(-1)))], grad=(0,), second=False)

row("linalg_cholesky cholesky", [call(definite(2, 2)), call(T(definite(3, 3))), call(definite(2, 2, 2)), call(definite(0, 2, 2))], [np.linalg.cholesky] * 2, through=of_hermitian)
row("linalg_cholesky_ex", [call(definite(2, 2)), call(definite(2, 2), upper=True)], through=lambda op, a, **k: op(hermitian(a), **k)[0])
row("linalg_qr", [call(well(2, 2)), call(f(3, 2)), call(f(2, 3, 2), "reduced"), call(well(2, 2), "complete"), call(f(2, 3))], through=lambda op, a, *m: _qr(a, *op(a, *m)))
row("qr", [call(f(3, 2))], through=lambda op, a: _qr(a, *op(a)))


def _qr(a, q, r):
    """Signs (phases) aside: the projection and the squares."""
    return q @ q.mH if q.shape[-2] > q.shape[-1] else (r.mH @ r), (r.abs() if r.shape[-1] <= r.shape[-2] else r.abs()[..., :, :1])


row("linalg_householder_product orgqr", [call(f(3, 2), unit(2)), call(f(2, 3, 2), unit(2, 2))])
row("ormqr", [call(f(3, 2), unit(2), f(3, 2)), call(f(3, 2), unit(2), f(2, 3), False, True)], grad=())
row("linalg_lu", [call(well(2, 2)), call(well(2, 2, 2)), call(f(3, 2)), call(f(2, 3))], through=lambda op, a: op(a)[1:])
row("linalg_lu_factor linalg_lu_factor_ex _lu_with_info", [call(well(2, 2)), call(well(2, 2, 2))], [None] * 3, through=lambda op, a: op(a)[0])
_p = np.array([1, 2], np.int32)
row("lu_unpack", [call(well(2, 2), _p)], through=lambda op, *a: op(*a)[1:])
row("linalg_lu_solve", [call(well(2, 2), _p, f(2, 1)), call(well(2, 2), _p, f(1, 2), left=False), call(well(2, 2), _p, f(2, 1), adjoint=True)])
row("lu_solve", [call(f(2, 1), well(2, 2), _p)])
row("linalg_ldl_factor", [call(definite(2, 2))], grad=())
row("linalg_ldl_solve", [call(np.tril(well(2, 2)), _p, f(2, 1))], grad=())

row("linalg_eigh", [call(definite(2, 2) + np.diag([0.0, 1])), call(definite(2, 3, 3) + np.diag([0.0, 1, 3]), "U")], through=lambda op, a, *u: (lambda r: (r[0], r[1].abs()))(op(hermitian(a), *u)))
row("linalg_eigvalsh", [call(definite(2, 2) + np.diag([0.0, 1])), call(definite(3, 3) + np.diag([0.0, 1, 3]), "U")], lambda a, u="L": np.linalg.eigvalsh(a), through=of_hermitian)
row("_linalg_eigh", [call(definite(2, 2) + np.diag([0.0, 1]))], through=lambda op, a: (lambda r: (r[0], r[1].abs()))(op(hermitian(a))))
_eig = np.diag([1.0, 3.0]) + 0.2 * f(2, 2)
row("linalg_eig", [call(_eig), call(np.stack([_eig, _eig.T]))], through=lambda op, a: (lambda r: (r[0], r[1].abs()))(op(a)))
row("linalg_eigvals", [call(_eig), call(np.stack([_eig, _eig.T]))])
row("_linalg_eigvals", [call(_eig), call(np.stack([_eig, _eig.T]))], grad=())
_svd = [call(well(2, 2) + np.diag([0.0, 2])), call(f(3, 2) + np.eye(3, 2) * [2.0, 4]), call(f(2, 2, 3) + np.diag([2.0, 4, 6])[:2])]


def _of_svd(op, a, *args, **kwargs):
    u, s, v = op(a, *args, **kwargs)
    return u.abs()[..., :, : s.shape[-1]], s, v.abs()[..., : s.shape[-1], :] if v.shape[-1] == a.shape[-1] else v.abs()[..., : s.shape[-1]]


row("linalg_svd", [call(s.args[0], False) for s in _svd], through=_of_svd)
row("_linalg_svd", _svd, through=_of_svd)
row("svd", _svd[:2], through=lambda op, a: (lambda u, s, v: (u.abs(), s, v.abs()))(*op(a)))
row("linalg_svdvals", [*_svd, call(np.zeros((0, 2, 2)))], lambda a: np.linalg.svd(a, compute_uv=False))
row("linalg_pinv", [call(f(3, 2), 1e-15), call(f(2, 2, 3), 1e-15), call(definite(2, 2), 1e-15, True)], lambda a, r, h=False: np.linalg.pinv(a), through=lambda op, a, r, h=False: op(hermitian(a) if h else a, r, h))
row("linalg_pinv.atol_rtol_float", [call(f(3, 2)), call(f(2, 3), rtol=1e-12)], lambda a, rtol=None: np.linalg.pinv(a))
row("pinverse", [call(f(3, 2))], np.linalg.pinv)
row("linalg_lstsq", [call(f(3, 2), f(3, 1)), call(f(2, 4, 2), f(2, 4, 2))], strides=False, through=lambda op, *a: op(*a)[0])
_n = f(2, 3) + np.eye(2, 3) * [2.0, 4, 6]
row("linalg_matrix_norm", [call(_n, o) for o in (1, -1, 2, -2, np.inf, -np.inf)], lambda a, o: np.linalg.norm(a, o))
row("linalg_matrix_norm.str_ord", [call(_n, "fro"), call(_n, "nuc"), call(np.stack([_n, -_n]), "nuc", [1, 2], True)], lambda a, o, d=None, k=False: np.linalg.norm(a, o, None if d is None else tuple(d), k))
row("nuclear_norm", [call(_n), call(_n, True)], lambda a, k=False: np.linalg.norm(a, "nuc", keepdims=k))
row("nuclear_norm.dim", [call(np.stack([_n, -_n]), [1, 2])], lambda a, d: np.linalg.norm(a, "nuc", tuple(d)))
row("frobenius_norm.dim", [call(_n, [1]), call(_n, [0, 1], True)], lambda a, d, k=False: np.linalg.norm(a, None, tuple(d), k))
row("linalg_cond", [call(_svd[0].args[0], p) for p in (None, 1, 2, -2, np.inf)], lambda a, p: np.linalg.cond(a, p))
row("linalg_cond.p_str", [call(_svd[0].args[0], p) for p in ("fro", "nuc")], lambda a, p: np.linalg.cond(a, p))
