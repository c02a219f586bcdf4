"""Every function of the table against NumPy: values, dtype and shape; NEP 50 on all pairs of dtypes; methods,
attributes, operators, out=."""

import operator
import subprocess
import sys
import warnings

import numpy as np
import pytest

import flambeau as torch
import flambeau.numpy  # noqa: F401
from flambeau.dynamo.numpy import function_table
from flambeau.numpy import table
from flambeau.numpy.promotion import cast, dtype_of, is_tensor
from flambeau.testing.numpy_cover import is_called

R = np.random.RandomState(0)
X = R.randn(2, 3, 4)
F = X.astype(np.float32)
POS = np.abs(X) + 0.5
SMALL = np.clip(X, -0.9, 0.9)
I = R.randint(-4, 5, (2, 3, 4))  # noqa: E741
I32 = I.astype(np.int32)
U8 = R.randint(0, 200, (2, 3, 4)).astype(np.uint8)
B = X > 0
NAN = np.where(B, X, np.nan)
V, W = X[0, 0], F[1, 1]
M, SQ = X[0], R.randn(3, 3)

CASES = {
    **{f: [(X,), (F,), (I,), (I32,), (0.3,)] for f in (np.sin, np.cos, np.tan, np.tanh, np.exp, np.exp2, np.expm1, np.sinh, np.cosh, np.arctan, np.arcsinh)},
    **{f: [(POS,), (POS.astype(np.float32),), (np.abs(I) + 1,)] for f in (np.log, np.log2, np.log10, np.log1p, np.sqrt)},
    np.reciprocal: [(POS,), (POS.astype(np.float32),)],
    **{f: [(SMALL,), (SMALL.astype(np.float32),)] for f in (np.arcsin, np.arccos, np.arctanh)},
    np.arccosh: [(POS + 1,)],
    **{f: [(X * 3,), (F * 3,), (I,), (NAN,)] for f in (np.floor, np.ceil, np.trunc, np.rint, np.sign, np.absolute, np.square, np.negative, np.positive)},
    np.fabs: [(X,), (I,)],
    **{f: [(NAN,), (I,), (np.array([np.inf, -np.inf, 1, np.nan], np.float32),)] for f in (np.isnan, np.isinf, np.isfinite)},
    **{f: [(X,), (F,), (I,)] for f in (np.deg2rad, np.rad2deg, np.radians, np.degrees)},
    np.invert: [(I,), (B,), (U8,)],
    **{f: [(X, F), (X, 2), (2, F), (F, 2.5), (I, I32), (I, 2.5), (U8, 3), (F, np.float64(2)), (X, V), (I, True), (B, 2)]
       for f in (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.fmax, np.fmin)},
    **{f: [(X, 0.7), (X, POS), (F, 2), (I, 3), (I32, np.int64(2)), (-X, POS)] for f in (np.floor_divide, np.remainder, np.fmod)},
    np.power: [(X, 2), (POS, 0.5), (POS, X), (F, 3), (I, 3), (I32, 0), (2.0, X), (I, 1), (POS, -1)],
    np.float_power: [(POS, 2), (np.abs(I) + 1, 0.5)],
    np.arctan2: [(X, POS), (F, 2.0)],
    **{f: [(X, F), (X, 0), (I, 1.5), (I, I32), (B, True), (1, I), (U8, 100)]
       for f in (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)},
    **{f: [(X, B), (I, 1), (B, B)] for f in (np.logical_and, np.logical_or, np.logical_xor)},
    np.logical_not: [(X,), (I,), (B,)],
    **{f: [(I, 3), (B, ~B), (U8, I32), (I, I32)] for f in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)},
    np.clip: [(X, -0.1, 0.2), (I, -1, 2), (X, None, F), (F, -0.1, None), (I, 0.5, 2.5), (NAN, 0, 1), (X, V, 1)],
    np.round: [(X * 3,), (X, 2), (F * 100, 1), (X * 100, -1), (I,), (np.array([0.5, 1.5, 2.5]),)],
    np.where: [(B, X, F), (B, X, 0), (I, 1, 2.5), (B, F, V)],
    np.nan_to_num: [(NAN,), (np.array([np.inf, -np.inf, np.nan], np.float32),), (I,), (NAN, True, 2.0),
        (np.array([-np.inf, np.nan, np.inf]), True, np.inf, 999.0), (np.array([-np.inf, np.nan, np.inf]), True, 1.0, -np.inf, 5.0)],
    np.real: [(X,), (X - 2j * X,)], np.imag: [(X,), (I,), (X - 2j * X,)],
    np.conjugate: [(X,), (I,), (X - 2j * X,)],
    **{f: [(X,), (X, 0), (X, (0, -1)), (F, None), (I32, 1), (B, 2), (X, ())] for f in (np.sum, np.prod, np.mean, np.var, np.std)},
    **{f: [(X,), (X, 0), (X, (0, -1)), (F,), (I32, 1), (NAN, 0), (U8, (0, 1, 2))] for f in (np.max, np.min)},
    **{f: [(B,), (X, 1), (I, (0, 2)), (I * 0,), (np.zeros((0, 2)), 0)] for f in (np.any, np.all)},
    **{f: [(X,), (I, 1), (NAN,), (F, -1), (np.array([1, 1, 0]),)] for f in (np.argmax, np.argmin)},
    **{f: [(X,), (X, 1), (I32, 0), (B, 1), (F, -1)] for f in (np.cumsum, np.cumprod)},
    np.ptp: [(X,), (I, 1)],
    np.average: [(X,), (I, 0), (X, None, POS), (X, 1, POS[0, :, 0]), (I, None, np.abs(I) + 1)],
    **{f: [(NAN,), (NAN, 1), (I,)] for f in (np.nansum, np.nanprod)},
    np.reshape: [(X, (4, 6)), (X, -1, "F"), (X, -1), (X, (3, -1)), (I, (24,))],
    np.transpose: [(X,), (X, (2, 0, 1)), (V,), (X, (-1, 0, 1))],
    np.matrix_transpose: [(X,)],
    np.swapaxes: [(X, 0, -1)],
    np.moveaxis: [(X, 0, -1), (X, (0, 1), (-1, 0))],
    np.rollaxis: [(X, 2), (X, 0, 3), (X, 1, 0)],
    np.ravel: [(X,), (X.T,)],
    np.expand_dims: [(X, 0), (X, -1), (X, (0, 2))],
    np.lib.stride_tricks.sliding_window_view: [(X, 2, 0), (X, (1, 2))],
    np.squeeze: [(X[:1],), (X[:1, :, :1], 0), (X[:1, :, :1], (0, -1))],
    np.broadcast_to: [(V, (2, 3, 4)), (X, (5, 2, 3, 4))],
    np.broadcast_arrays: [(X, V), (1.5, I)],
    **{f: [(X,), (V,), (2.5,), (V, 2, M)] for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    np.concatenate: [((X, F),), ((I, X), 1), ((I32, I), -1), ((X, F), None), (X,)],
    np.stack: [((X, F),), ((I, X), 1), ((I32, I), -1), ((1.0, 2),), (X,)],
    np.vstack: [((V, W),), ((M, M),)],
    np.hstack: [((V, W),), ((M, M),)],
    np.dstack: [((V, W),), ((M, M),)],
    np.column_stack: [((V, W),), ((SQ[:, 0], M),)],
    np.split: [(X, 2, -1), (X, [1, 2], 1)],
    np.array_split: [(X, 3, -1), (X, 5, 1), (V, [1, 3])],
    np.vsplit: [(X, 2)],
    np.hsplit: [(X, 3), (V, 2)],
    np.unstack: [(X,)],
    np.tile: [(M, 2), (V, (2, 3)), (X, (1, 2, 1, 1))],
    np.repeat: [(M, 2), (X, 3, 1), (I, 2, -1)],
    np.roll: [(X, 1), (X, -2, 1), (X, (1, 2), (0, 2)), (X, 1, (0, 1)), (X, 0)],
    np.diagonal: [(X,), (X, 1, 1, 2), (SQ, -1)],
    np.diag: [(SQ,), (V,), (V, 1), (I[0, 0], -2), (M, 1)],
    np.trace: [(SQ,), (X, 1, 1, 2), (I[0, :, :3],)],
    np.tril: [(M,), (X, 1)],
    np.triu: [(M,), (I, -1)],
    np.meshgrid: [(V, W), (V, W, SQ[0])],
    np.take: [(X, [0, 2], 1), (V, 2), (X, -1, 2), (I, [[0, -1]], 0)],
    np.sort: [(X,), (I, 0), (F, None), (NAN, 1)],
    np.zeros: [(3,), ((2, 3), np.int32)],
    np.ones: [(3,), ((2, 3), np.float32)],
    np.zeros_like: [(X,), (I, np.float32)],
    np.ones_like: [(X,), (I,)],
    np.full: [((2, 2), 1.5), (3, 2), (2, np.float32(3)), ((2, 4), V), (2, 1, np.int8)],
    np.full_like: [(X, 2), (I, 2.0), (F, 1, np.int64)],
    np.arange: [(5,), (2, 7), (0, 1, 0.1), (0.3, 1, 0.1), (5, 0, -2), (3, 3), (1, 4, 1, np.float32), (4.0,), (0, 5, 2, np.int32)],
    np.linspace: [(0, 1), (0, 1, 7), (-1.5, 2, 5, False), (0, 10, 4, True, False, np.int64), (1, 1, 3), (0, 1, 1)],
    np.eye: [(3,), (2, 4), (3, 3, 1), (3, None, -1, np.int64)],
    np.identity: [(3,)],
    np.tri: [(3,), (2, 4, 1), (3, 3, -1, np.int32)],
    np.array: [(X,), ([1, 2.5],), ([X[0], F[0]],), (X, np.float32), (1.5,), ([[1, 2], [3, 4]], np.float32)],
    np.asarray: [(X,), ([1, 2],), (I, np.float32)],
    np.copy: [(X,)],
    **{f: [(X.T,), (2.5,), (M, np.float32)] for f in (np.ascontiguousarray, np.asfortranarray)},
    np.astype: [(X, np.float32), (I, np.float64), (X, np.int32), (B, np.int8), (I, np.bool_)],
    np.matmul: [(M, M.T), (X, X.transpose(0, 2, 1)), (M, V), (W, M.T.astype(np.float32)), (V, V), (F, X[0].T)],
    np.dot: [(M, M.T), (V, V), (X, M.T), (X, X.transpose(0, 2, 1)), (2.0, X), (X, V)],
    np.inner: [(V, W), (X, M), (V, 2.0)],
    np.vdot: [(X, F)],
    np.outer: [(V, W), (M, I[0, 0])],
    np.tensordot: [(X, X, 3), (X, X, ([2, 1], [2, 1])), (M, M.T, 1), (X, V, (2, 0))],
    np.kron: [(V, W), (M, SQ), (SQ, V)],
    np.einsum: [("ij,kj->ik", M, SQ @ M), ("ij,jk", M, M.T), ("ij->ji", M), ("ii", SQ), ("ii->i", SQ), ("abc->c", X), ("abc,abc->a", X, F),
                ("...c,c->...", X, V), ("...ij,...jk->...ik", X, X.transpose(0, 2, 1)), ("a,b->ab", V, W), ("ij,jk,kl->il", SQ, SQ, M), ("i,i,i->", V, V, W),
                ("abc,bd->acd", X, SQ), ("ij,ij->ij", M, M), ("...a->...", X), ("ij,k->ki", M, V)],
    np.linalg.norm: [(X,), (M, None, 1), (V, 1), (V, np.inf), (M, "fro"), (M, 2, 0), (V, 0), (V, 3), (V, -np.inf), (I, None, (0, 1))],
}  # fmt: skip


def tensors(x):
    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.array(x, order="K"))
    if isinstance(x, (tuple, list)):
        return type(x)(map(tensors, x))
    return x


def same(got, want, exact=False):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want) and type(got) is type(want)
        for g, w in zip(got, want):
            same(g, w, exact)
        return
    assert is_tensor(got), type(got)
    want = np.asarray(want)
    assert dtype_of(got) == want.dtype, (dtype_of(got), want.dtype)
    assert tuple(got.shape) == want.shape, (tuple(got.shape), want.shape)
    if want.dtype.kind in "fc" and not exact:
        eps = 1e-5 if want.dtype.itemsize == 4 else 1e-12
        np.testing.assert_allclose(got.numpy(), want, rtol=eps, atol=eps)
    else:
        np.testing.assert_array_equal(got.numpy(), want)


IMPLEMENTATIONS = {id(c): fn for c, fn in table.FUNCTIONS}
PAIRS = [
    pytest.param(f, args, id=f"{f.__name__}-{k}")
    for f, cases in CASES.items()
    for k, args in enumerate(cases)
    if id(f) in IMPLEMENTATIONS
]


@pytest.mark.parametrize("f, args", PAIRS)
def test_against_numpy(f, args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = f(*args)
        except (TypeError, ValueError) as e:
            with pytest.raises((TypeError, ValueError)):
                IMPLEMENTATIONS[id(f)](*map(tensors, args))
            assert str(e)
            return
    same(IMPLEMENTATIONS[id(f)](*map(tensors, args)), want)


WRITING = {"fill", "sort", "copyto", "putmask", "fill_diagonal"}  # see test_agreement.py
# Their sizes depend on data, see test_of_data.py.
OF_DATA = {
    "nonzero", "flatnonzero", "argwhere", "extract", "compress", "bincount", "unique", "union1d", "intersect1d", "setdiff1d", "setxor1d",
}  # fmt: skip


def test_all_are_covered():
    missing = {getattr(c, "__name__", c) for c, impl in table.FUNCTIONS if c not in CASES and not is_called(impl)} - {
        "empty",
        "empty_like",
        "around",
        "amax",
        "amin",
        "concat",
        *WRITING,
        *OF_DATA,
    }
    assert missing <= {"permute_dims", "asanyarray", "diagonal", "matrix_diagonal", "matrix_transpose", "matmul"}, (
        missing
    )


def test_keyword_arguments():
    x = tensors(X)
    for f in (np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.any, np.all):
        for axis in (None, 1, (0, 2)):
            same(IMPLEMENTATIONS[id(f)](x, axis=axis, keepdims=True), f(X, axis=axis, keepdims=True))
    for f in (np.argmax, np.argmin):
        for axis in (None, 1):
            same(IMPLEMENTATIONS[id(f)](x, axis=axis, keepdims=True), f(X, axis=axis, keepdims=True))
    impl = {f: IMPLEMENTATIONS[id(f)] for f, _ in table.FUNCTIONS}
    same(impl[np.sum](tensors(I), dtype=np.float32), np.sum(I, dtype=np.float32))
    same(impl[np.mean](tensors(F), dtype=np.float64), np.mean(F, dtype=np.float64))
    same(impl[np.var](x, ddof=1), np.var(X, ddof=1))
    same(impl[np.add](x, 1, dtype=np.float32), np.add(X, 1, dtype=np.float32))
    same(impl[np.concatenate]((x, x), axis=2, dtype=np.float32), np.concatenate((X, X), axis=2, dtype=np.float32))
    same(
        impl[np.meshgrid](tensors(V), tensors(W), indexing="ij", sparse=True),
        np.meshgrid(V, W, indexing="ij", sparse=True),
    )
    same(impl[np.clip](x, max=0.1), np.clip(X, max=0.1))


def test_out():
    impl = {f: IMPLEMENTATIONS[id(f)] for f, _ in table.FUNCTIONS}
    out = torch.zeros(2, 3, 4)
    assert impl[np.add](tensors(F), 1, out=out) is out
    same(out, F + 1)
    assert impl[np.add](tensors(X), 1, out) is out
    same(out, (X + 1).astype(np.float32))
    s = torch.zeros(3, 4, dtype=torch.float64)
    assert impl[np.sum](tensors(X), 0, out=s) is s
    same(s, X.sum(0))
    with pytest.raises(TypeError, match=r"Cannot cast ufunc 'add' output from dtype\('float64'\) to dtype\('int64'\)"):
        impl[np.add](tensors(X), 1, out=torch.zeros(2, 3, 4, dtype=torch.int64))
    with pytest.raises(TypeError, match="could not be broadcast together"):
        impl[np.add](tensors(X), 1, out=torch.zeros(2))


VALUES = [np.array([1, 2, 3], d) for d in "?bhilBfd"] + [
    np.float32(2),
    np.float64(2),
    np.int8(2),
    np.int64(2),
    np.uint8(2),
    np.bool_(True),
    2,
    2.0,
    True,
]


@pytest.mark.parametrize(
    "f",
    [
        np.add,
        np.subtract,
        np.multiply,
        np.divide,
        np.maximum,
        np.less,
        np.equal,
        np.logical_and,
        np.power,
        np.bitwise_or,
    ],
)
def test_promotion(f):
    """NEP 50 on all pairs: the same dtype as NumPy, or TypeError where it isn't covered; an error where NumPy has
    one."""
    covered = 0
    for a in VALUES:
        for b in VALUES:
            if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
                continue
            try:
                with np.errstate(all="ignore"):
                    want = f(a, b)
            except (TypeError, ValueError):
                with pytest.raises((TypeError, ValueError)):
                    IMPLEMENTATIONS[id(f)](tensors(a), tensors(b))
                continue
            try:
                got = IMPLEMENTATIONS[id(f)](tensors(a), tensors(b))
            except TypeError:
                continue
            covered += 1
            same(got, want)
    assert covered > 20, covered


def test_operators():
    for name, fn in table.OPERATORS.items():
        plain = getattr(operator, name)
        args = (
            (I,)
            if name == "invert"
            else (X,)
            if name in ("neg", "pos", "abs")
            else (B, ~B)
            if name in ("and_", "or_", "xor")
            else (M, M.T)
            if name in ("matmul", "imatmul")
            else (np.abs(I), np.abs(I))
            if "shift" in name
            else (POS, POS)
        )
        if name == "imatmul":
            args = (SQ, SQ)
        if name in ("iand", "ior", "ixor"):
            args = (B, ~B)
        same(fn(*map(tensors, args)), plain(args[0].copy(), *args[1:]))


METHOD_CASES = [
    ("sum", (1,), {"keepdims": True}), ("mean", (), {}), ("prod", (0,), {}), ("var", (), {"ddof": 1}), ("std", (2,), {}), ("max", (1,), {}),
    ("min", (), {}), ("argmax", (1,), {}), ("argmin", (), {}), ("any", (0,), {}), ("all", (), {}), ("cumsum", (1,), {}), ("cumprod", (), {}),
    ("reshape", (4, 6), {}), ("reshape", ((6, 4),), {}), ("reshape", (-1,), {}), ("transpose", (), {}), ("transpose", (1, 0, 2), {}),
    ("transpose", ((2, 1, 0),), {}), ("transpose", (None,), {}), ("swapaxes", (0, 1), {}), ("ravel", (), {}), ("flatten", (), {}), ("squeeze", (), {}),
    ("clip", (-0.1, 0.2), {}), ("round", (1,), {}), ("astype", (np.float32,), {}), ("copy", (), {}), ("view", (), {}), ("diagonal", (), {}), ("trace", (), {}),
    ("repeat", (2,), {}), ("take", ([0, 1], 1), {}), ("conj", (), {}), ("conjugate", (), {}), ("dot", (V,), {}),
]  # fmt: skip


@pytest.mark.parametrize("name, args, kwargs", METHOD_CASES)
def test_methods(name, args, kwargs):
    same(table.METHODS[name](tensors(X), *map(tensors, args), **kwargs), getattr(X, name)(*args, **kwargs))


def test_methods_and_attributes_are_all_tested():
    tested = {name for name, _, _ in METHOD_CASES} | WRITING | OF_DATA
    assert {n for n, impl in table.METHODS.items() if not is_called(impl)} <= tested
    for name, fn in table.ATTRIBUTES.items():
        same(fn(tensors(X)), getattr(X, name))


def test_views_are_views():
    impl = {f: IMPLEMENTATIONS[id(f)] for f, _ in table.FUNCTIONS}
    for f, args in ((np.reshape, (-1,)), (np.transpose, ()), (np.swapaxes, (0, 1)), (np.expand_dims, (0,)), (np.ravel, ()), (np.moveaxis, (0, 1)),
                    (np.squeeze, ()), (np.atleast_3d, ()), (np.asarray, ()), (np.diagonal, ())):  # fmt: skip
        assert np.shares_memory(X, f(X, *args))
        x = tensors(X)
        assert np.shares_memory(x.numpy(), impl[f](x, *args).numpy()), f
    for f, args in ((np.array, ()), (np.copy, ()), (np.astype, (np.float64,)), (np.round, (2,)), (np.clip, (None, None)), (np.sum, ((),)), (np.roll, (0,)),
                    (np.positive, ()), (np.power, (1,))):  # fmt: skip
        x = tensors(X)
        assert not np.shares_memory(x.numpy(), impl[f](x, *args).numpy()), f


DECLINED = [
    (np.power, (I, -1)), (np.add, (U8, 300)), (np.reshape, (X, -1, "Q")),
]  # fmt: skip


@pytest.mark.parametrize("f, args", DECLINED)
def test_declines_what_it_does_not_cover(f, args):
    """TypeError (or what NumPy raises): then the piece runs in NumPy."""
    with pytest.raises((TypeError, OverflowError, ValueError)):
        IMPLEMENTATIONS[id(f)](*map(tensors, args))


BY_NUMPY = [
    (np.sum, (U8,)), (np.sum, (np.float16(X),)), (np.round, (B,)), (np.take, (X, 0, None, None, "wrap")), (np.sort, (X + 1j,)),
    (np.sin, (np.float16(X),)), (np.sin, (U8,)), (np.floor_divide, (I, np.abs(I) + 1)), (np.remainder, (I, 3)), (np.power, (I, np.abs(I))),
    (np.matmul, (I[0], I[0].T)), (np.bitwise_count, (I,)), (np.hypot, (X, F)), (np.divmod, (X, 0.3)),
    (np.frexp, (X,)), (np.gcd, (I, 6)), (np.interp, (V, np.sort(W), W)), (np.median, (X, 1)), (np.diff, (X,)), (np.fft.rfft, (X,)),
    (np.fft.fft2, (M,)), (np.fft.fftfreq, (7,)), (np.histogram, (V, 4)), (np.gradient, (M,)), (np.pad, (M, 1)), (np.tril_indices, (3,)),
    (np.hamming, (5,)), (np.argsort, (X,)), (np.cov, (M,)), (np.corrcoef, (M,)), (np.quantile, (X, [0.1, 0.9])), (np.isclose, (X, F)),
    (np.linalg.solve, (SQ, SQ)), (np.linalg.eigh, (SQ + SQ.T,)), (np.linalg.slogdet, (SQ,)), (np.linalg.inv, (SQ,)), (np.nanmean, (NAN, 1)),
    (np.convolve, (V, W)), (np.searchsorted, (np.sort(V), W)), (np.trapezoid, (M,)), (np.polyval, (V, M)), (np.percentile, (X, 30, 1)),
    (np.take_along_axis, (X, np.argsort(X, -1), -1)), (np.cross, (SQ, SQ)), (np.unwrap, (V,)), (np.logaddexp, (X, F)), (np.isin, (I, [1, 2])),
]  # fmt: skip


@pytest.mark.parametrize("f, args", BY_NUMPY, ids=lambda v: getattr(v, "__name__", None))
def test_what_tensors_have_no_operator_for_is_numpys_in_the_graph(f, args):
    """One node of the graph, with the results of NumPy to the bit, also where nothing is known of the values."""
    torch._dynamo.reset()  # all of them are one lambda
    captured = torch.compile(lambda *a: f(*a), backend="aot_eager", fullgraph=True)
    got, want = captured(*args), f(*args)
    assert type(got) is type(want)
    for g, w in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
        assert type(g) is type(w) and g.dtype == w.dtype and np.shape(g) == np.shape(w)
        np.testing.assert_array_equal(g, w)


METHODS_OF_UFUNCS = {
    "reduce": lambda x: (
        np.add.reduce(x),
        np.multiply.reduce(x, axis=1),
        np.maximum.reduce(x, axis=-1, keepdims=True),
        np.logaddexp.reduce(x),
    ),
    "accumulate": lambda x: (np.add.accumulate(x), np.minimum.accumulate(x, axis=1)),
    "outer": lambda x: (np.subtract.outer(x[0], x[1]),),
    "reduceat": lambda x: (np.add.reduceat(x, [0, 1], axis=1),),
}


@pytest.mark.parametrize("name", METHODS_OF_UFUNCS)
def test_methods_of_ufuncs(name):
    f = METHODS_OF_UFUNCS[name]
    for got, want in zip(torch.compile(f, fullgraph=True)(M), f(M)):
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert got.dtype == want.dtype


def test_descriptions_of_arrays_are_constants():
    def f(x):
        n = np.size(x) + np.ndim(x) + np.shape(x)[1]
        y = x.astype(np.result_type(x, np.float32)) if not np.iscomplexobj(x) else x
        return y * n * np.sqrt(2.0)

    same_array(torch.compile(f, fullgraph=True)(X), f(X))


def same_array(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want)


def test_shapes_that_follow_from_values_are_left_to_numpy():
    def f(x, n):
        return np.histogram(x, np.int64(n))[0] + 0

    same_array(torch.compile(f)(V, 3), f(V, 3))
    with pytest.raises(np.linalg.LinAlgError):
        torch.compile(lambda a: np.linalg.inv(a))(np.zeros((2, 2)))


def test_gradients():
    x = torch.tensor(X, requires_grad=True)
    impl = {f: IMPLEMENTATIONS[id(f)] for f, _ in table.FUNCTIONS}
    y = impl[np.mean](impl[np.multiply](impl[np.sin](x), impl[np.var](x, axis=0)))
    g = torch.autograd.grad(y, x)[0]
    t = torch.tensor(X, requires_grad=True)
    want = torch.autograd.grad((t.sin() * ((t - t.mean(0)) ** 2).mean(0)).mean(), t)[0]
    assert torch.allclose(g, want)
    assert torch.allclose(
        torch.vmap(lambda a: impl[np.std](a, axis=1, keepdims=True))(x.detach()).double(),
        torch.tensor(X.std(2, keepdims=True)),
    )
    assert cast(x, np.float64) is x


def test_families_that_load_later_have_their_functions():
    """The table doesn't depend on which operators something else has used before."""
    program = (
        "import numpy as np, flambeau, flambeau.numpy\n"
        "from flambeau.dynamo.numpy import numpy_bridge as b\n"
        "b.load()\n"
        "for f in (np.arctan2, np.cumsum, np.cumprod, np.exp2, np.log1p, np.sinh, np.sort): assert b.functions.get(id(f)), f\n"
        "out = flambeau.compile(lambda x: np.cumsum(np.sort(x)), fullgraph=True)(np.array([3.0, 1.0, 2.0]))\n"
        "assert out.tolist() == [1.0, 3.0, 6.0], out\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FIRST_CALL = """
import sys
import numpy as np
import flambeau as torch

def f(x):
    return np.exp(x).sum(axis=0) + np.maximum(x, 0).mean()

x = np.ones((4, 3))
assert np.allclose(torch.compile(f, fullgraph=True)(x), f(x))
print(*(m for m in UNUSED if m in sys.modules))
from numpy.polynomial import polynomial

def g(x):
    return polynomial.polyval(x, [1.0, 2.0, 3.0])

assert np.array_equal(torch.compile(g, fullgraph=True)(x), g(x))
"""
UNUSED = (
    "numpy.f2py",
    "numpy.testing",
    "numpy.ctypeslib",
    "numpy.polynomial",
    "flambeau.nn",
    "flambeau.inductor.device",
)


def test_a_first_call_imports_what_it_uses():
    code = FIRST_CALL.replace("UNUSED", repr(UNUSED))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_every_library_is_asked_for_a_late_function(monkeypatch):
    asked = []
    monkeypatch.setattr(function_table, "late", [lambda n=n: asked.append(n) or True for n in range(2)])
    assert function_table.lookup(lambda: None) is None
    assert asked == [0, 1]
