"""Functions of NumPy whose results' sizes depend on values, that call Python functions, or that tell of an array's layout: captured whole they give
what NumPy gives, in value, type, dtype, shape and strides, and its errors."""

import warnings

import numpy as np
import pytest

import flambeau as torch

rng = np.random.default_rng(0)
GIVEN = {
    "A": rng.random((4, 5)), "B": rng.random((4, 5)), "T": rng.random((2, 3, 4)), "V": rng.random(7), "W": rng.random(7),
    "E": np.zeros((0, 3)), "I": np.array([3, 1, 2, 3, 0, 1]), "J": np.array([1, 5, 3]), "C": rng.random(4) + 1j, "M": np.array([True, False, True, True]),
    "N": np.array([1.0, np.nan, 2, np.nan, 1.0]), "P": np.array([1.0, -3, 2]), "U": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "H": rng.random((3, 4)).astype(np.float16), "F": np.asfortranarray(rng.random((4, 5))), "S": np.array([2, 0, 1, 0], np.int8),
}  # fmt: skip

CALLS = """
np.unique(V) | np.unique(N) | np.unique(I, return_index=True) | np.unique(U, axis=0) | np.unique(C) | np.unique(H)
np.unique(V, return_inverse=True, return_counts=True) | np.unique_all(I) | np.unique_counts(V) | np.unique_inverse(U) | np.unique_values(V)
np.union1d(V, W) | np.union1d(I, V) | np.intersect1d(V, V[2:]) | np.intersect1d(I, J, return_indices=True) | np.setdiff1d(V, V[:3])
np.setdiff1d(I, J, assume_unique=True) | np.setxor1d(V, W[:2]) | np.polydiv(V, P) | np.poly(V) | np.poly(A[:, :4])
np.histogram_bin_edges(V, 5) | np.histogram_bin_edges(V, 4, (0.0, 1.0)) | np.histogram_bin_edges(V, "auto") | np.histogram(V, "fd")
np.histogram(V, bins="sturges", density=True) | np.delete(V, V > 0.5) | np.insert(V, V > 0.5, 3.0) | np.where(A > 0.5) | np.ix_(M, [0, 2])
np.compress(M, A, axis=0) | np.repeat(V[:4], S) | np.extract(H > 0.5, H)
np.array_equiv(A, A[0]) | np.array_equiv(A, A) | np.array_equiv(A, V) | np.array_equiv(I, [3, 1, 2, 3, 0, 1]) | np.array_equal(N, N, equal_nan=True)
np.array_equal(N, N) | np.array_equal(I, [3, 1, 2, 3, 0, 1]) | np.array_equal(I, I, True) | np.array_equal(A, V)
np.apply_along_axis(np.sum, 1, A) | np.apply_along_axis(lambda r: r * 2, 0, A) | np.apply_along_axis(lambda r: np.sort(r)[:2], 1, T)
np.apply_along_axis(lambda r, k: np.outer(r, r) + k, -1, A, 3) | np.apply_along_axis(lambda r: r[0], 1, T) | np.apply_along_axis(np.cumsum, 0, F)
np.apply_over_axes(np.sum, T, [0, 2]) | np.apply_over_axes(np.max, T, (-1,)) | np.apply_over_axes(np.sum, T, 1)
np.piecewise(V, [V < 0.3, V >= 0.3], [lambda x: -x, lambda x: x * 2]) | np.piecewise(V, [V < 0.3, V >= 0.3], [-1.0, 1.0])
np.piecewise(V, [V < 0.3], [1.0, lambda x: x]) | np.piecewise(A, [A < 0.3, A > 0.6], [lambda x, k: x * k, 7, 0.5], 3.0) | np.piecewise(I, [I > 1], [0.7, 2])
np.piecewise(V, V < 0.3, [lambda x: -x, 0])
np.fromiter((x * x for x in range(5)), float) | np.fromiter([1, 2, 3], int, count=2) | np.fromiter((i for i in range(3)), dtype=np.int8)
np.asarray_chkfinite(A) | np.asarray_chkfinite(A) is A | np.asarray_chkfinite(I) | np.isfortran(A) | np.isfortran(F) | np.isfortran(A.T)
np.require(A, requirements="C") | np.require(F, requirements=["C"]) | np.require(A, np.float32, ["F"]) | np.require(I, requirements=None)
np.base_repr(10, 2) | np.binary_repr(-3, 8) | np.isdtype(A.dtype, "real floating") | np.mintypecode("fd")
np.format_float_positional(1.5) | np.format_float_scientific(1.5) | np.busday_count("2011-01", "2011-02") | np.is_busday("2011-01-01")
np.datetime_data(np.dtype("M8[D]")) | np.einsum_path("ij,kj->ik", A, B)
A.strides | A.T.strides | A[::2, 1:].strides | F.strides | A.flags.c_contiguous | F.flags.fnc | A[:, 1].flags["C"] | A.T.flags.f_contiguous | E.flags.forc
A.item(3) | A.item(1, 2) | A.item((1, -1)) | V[2:3].item() | V.sum().item() | I.item(-1) | M.item(0) | S.item(2) | H.item(1, 1) | A.device
H > 0.5 | H == H | ~(H != 1) | 2 >= H | np.logical_and(H > 0, H <= 1) | H[H < 0.5]
np.linalg.norm(A[:, :4], 2) | np.linalg.norm(A, 1) | np.linalg.norm(C) | np.linalg.norm(A, "nuc") | np.mask_indices(3, np.triu) | np.mask_indices(4, np.tril, -1)
np.lib.stride_tricks.sliding_window_view(V, 3) | np.lib.stride_tricks.sliding_window_view(A, (2, 3)).sum((2, 3)) | A.compress([True, False, True], axis=0)
np.lib.stride_tricks.sliding_window_view(T, 2, axis=-1) | np.lib.stride_tricks.sliding_window_view(V, 3).mean(axis=-1) | A.compress(M, 0)
V.tolist() | A[:2, :2].tolist() | I.tolist() | M.tolist() | V.sum().tolist() | A.to_device("cpu")
""".replace("\n", "|")
NOT_THE_STRIDES = ("np.where", "mask_indices", "np.ix_", "return_indices")  # NumPy gives columns of one array


def function(text):
    names = [n for n in GIVEN if n in {t for t in text.replace("np.", "") if t.isupper()}]
    scope = {"np": np}
    exec(f"def f({', '.join(names)}):\n    return {text}", scope)
    return scope["f"], [GIVEN[n] for n in names]


def agree(want, got, strides):
    assert type(want) is type(got)
    if isinstance(want, (tuple, list)):
        assert len(want) == len(got)
        for w, g in zip(want, got):
            agree(w, g, strides)
    elif isinstance(want, (np.ndarray, np.generic)):
        assert (want.dtype, want.shape) == (got.dtype, got.shape)
        if want.size and strides:
            assert want.strides == got.strides
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    else:
        assert want == got


TEXTS = [t.strip() for t in CALLS.split("|") if t.strip()]


@pytest.mark.parametrize("text, backend", [*((t, "eager") for t in TEXTS), *((t, "inductor") for t in TEXTS[::4])])
def test_as_numpy_gives_it(text, backend):
    f, args = function(text)
    compiled = torch.compile(f, fullgraph=True, backend=backend)
    want = f(*args)
    for _ in range(2):
        agree(want, compiled(*args), not any(n in text for n in NOT_THE_STRIDES))


ERRORS = """
np.apply_along_axis(np.sum, 2, A) | np.apply_along_axis(np.sum, 1, E) | np.piecewise(V, [V > 0], [1, 2, 3]) | np.fromiter([1, 2], int, count=3)
np.asarray_chkfinite(N) | np.require(A, requirements=["C", "F"]) | A.item() | A.item(99) | A.item(1) + A.item(1, 2, 3) | np.unique(A, axis=5)
np.apply_over_axes(np.cross, A, 0) | np.histogram_bin_edges(V, "nothing") | np.compress(M, A, axis=4)
np.base_repr(10, 99) | np.lib.stride_tricks.sliding_window_view(V, 99) | np.lib.stride_tricks.sliding_window_view(V, (3, 3)) | np.linalg.norm(A, 7)
np.lib.stride_tricks.sliding_window_view(V, -1) | np.array(A, copy="yes") | np.asarray(A, int, "Q") | np.sort(A, kind="zz") | np.linspace(0, V[0], 2.5)
np.common_type("a") | np.insert(V, 99, 1.0) | np.delete(V, 99)
""".replace("\n", "|")


@pytest.mark.parametrize("text", [t.strip() for t in ERRORS.split("|") if t.strip()])
def test_errors_are_numpys(text):
    f, args = function(text)
    told = []
    for call in (f, torch.compile(f, backend="eager")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception) as e:
                call(*args)
        told.append((type(e.value), str(e.value)))
    assert told[0] == told[1]


def test_sizes_that_values_tell_are_of_each_call():
    compiled = torch.compile(lambda v: np.unique(v) * 2, fullgraph=True)
    for values in ([1.5, 1.5, 2.5], [3.0, 2.0, 1.0], [0.0, 0.0, 0.0]):
        np.testing.assert_array_equal(compiled(np.array(values)), np.unique(values) * 2)


def test_what_depends_on_values_is_plain_without_fullgraph():
    def f(v):
        return np.unique(v + 0.5).size

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=False):
        assert torch.compile(f)(np.array([1.0, 1.0, 2.0])) == 2


def test_a_piece_of_nothing_calls_the_function_on_nothing_visible():
    f = torch.compile(lambda x: np.piecewise(x, [x > 9, x <= 9], [np.log, np.exp]), fullgraph=True)
    np.testing.assert_allclose(f(np.zeros(3)), np.ones(3))
