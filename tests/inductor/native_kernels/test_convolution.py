"""The runtime's convolutions beside NumPy's windows, over shapes that meet every way of cutting the work."""

import importlib
import itertools
import platform

import numpy as np
import pytest

import flambeau as torch
from flambeau.base import blas, kernels
from flambeau.testing import guard_pages

reference = importlib.import_module("flambeau.ops.neural.convolution")  # flambeau.ops has operators for attributes

CASES = [
    # images, channels, spatial, outputs, kernel, stride, padding, dilation, groups
    (1, 3, (8, 8), 4, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 3, (33, 31), 7, (5, 3), (2, 1), (2, 0), (1, 2), 1),
    (8, 64, (16, 16), 32, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (5, 40, (4, 4), 24, (3, 3), (1, 1), (1, 1), (1, 1), 1),  # several images in a block
    (3, 40, (7, 9), 24, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    (2, 16, (20, 20), 48, (1, 1), (1, 1), (0, 0), (1, 1), 1),  # the input as it is
    (2, 16, (20, 20), 48, (1, 1), (2, 2), (0, 0), (1, 1), 1),
    (2, 16, (6, 6), 8, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (2, 17, (2, 8), 5, (1, 1), (2, 1), (0, 0), (1, 1), 1),  # a dimension with one place of several
    (3, 12, (5,), 6, (1,), (5,), (0,), (1,), 2),
    (2, 32, (9, 11), 64, (4, 4), (2, 2), (1, 1), (1, 1), 1),  # whole vectors, a tile cut short
    (1, 96, (7, 8), 128, (5, 5), (2, 1), (2, 2), (1, 1), 1),  # several slices of a sum
    (2, 24, (15, 15), 24, (3, 3), (1, 1), (1, 1), (1, 1), 24),  # depthwise
    (2, 24, (15, 15), 48, (3, 3), (2, 2), (1, 1), (1, 1), 24),
    (2, 24, (15, 15), 36, (3, 3), (2, 1), (2, 1), (2, 1), 3),
    (2, 5, (70,), 6, (4,), (3,), (5,), (2,), 1),
    (2, 4, (6, 7, 8), 6, (2, 3, 3), (1, 2, 1), (1, 1, 2), (2, 1, 1), 2),
    (1, 2, (3, 3), 8, (3, 3), (1, 1), (4, 4), (1, 1), 1),  # windows that lie in the padding
    (70, 1, (5, 5), 6, (5, 5), (1, 1), (0, 0), (1, 1), 1),  # one position an image
    (3, 37, (2, 2), 37, (5, 5), (1, 1), (2, 2), (1, 1), 37),  # planes shorter than a vector
    (2, 9, (40, 37), 9, (5, 5), (2, 2), (2, 2), (1, 1), 9),
    (2, 6, (19, 23), 12, (3, 4), (3, 2), (0, 3), (2, 3), 6),
    (2, 4, (9, 8, 21), 4, (3, 2, 5), (2, 1, 3), (1, 0, 4), (1, 2, 1), 4),
    (3, 6, (17,), 6, (3,), (1,), (5,), (1,), 3),  # two channels a group, and windows beside the input
    (
        2,
        32,
        (17, 19),
        48,
        (3, 3),
        (1, 1),
        (1, 1),
        (1, 1),
        1,
    ),  # tiles of 4 by 4: cut at both ends, an odd number of vectors of outputs
    (3, 64, (9, 33), 32, (3, 3), (1, 1), (2, 0), (1, 1), 1),
    (9, 32, (12, 12), 80, (3, 3), (1, 1), (1, 1), (1, 1), 1),  # several images a strip, a strip with fewer
    (6, 96, (4, 4), 32, (3, 3), (1, 1), (1, 1), (1, 1), 1),  # all tiles in memory
    (1, 32, (40, 130), 32, (3, 3), (1, 1), (0, 1), (1, 1), 1),  # rows longer than a strip
    (3, 5, (30, 41), 18, (3, 5), (2, 3), (1, 2), (1, 1), 1),  # shifted rows: windows in phases
    (2, 128, (24, 64), 20, (3, 3), (2, 2), (1, 1), (1, 1), 1),  # bands of rows
    (5, 6, (14, 14), 16, (5, 5), (1, 1), (0, 0), (1, 1), 1),  # several images a window
    (2, 300, (900,), 40, (3,), (1,), (1,), (1,), 1),  # strips of columns
    (2, 24, (20, 26), 100, (4, 4), (4, 4), (0, 0), (1, 1), 2),  # patches, in groups
    (2, 8, (33, 40), 9, (3, 2), (1, 2), (4, 1), (2, 3), 1),  # more padding than the kernel reaches
    (3, 40, (9, 21), 40, (5, 5), (1, 1), (2, 2), (1, 1), 40),  # depthwise, vectors of channels and a part of one
    (2, 18, (13, 12), 18, (5, 3), (2, 3), (3, 0), (1, 2), 18),
    (20, 8, (1, 1), 8, (3, 3), (1, 1), (1, 1), (1, 1), 8),
    (2, 16, (3, 4), 16, (2, 2), (1, 2), (4, 5), (2, 1), 16),  # windows that lie in the padding
    (3, 19, (40,), 19, (7,), (3,), (9,), (2,), 19),
    # one vector of channels, and rows as long as the image's: the taps of a row side by side
    (2, 20, (6, 7, 19), 16, (3, 2, 3), (1, 1, 1), (1, 0, 1), (1, 1, 1), 1),
    (3, 24, (5, 9), 10, (3, 3), (2, 1), (1, 2), (1, 2), 2),
    (2, 16, (4, 5, 33), 12, (1, 3, 4), (2, 1, 1), (0, 1, 3), (1, 1, 2), 1),
    (2, 16, (190,), 40, (2,), (1,), (1,), (2,), 1),
    # tiles of one and of three dimensions
    (3, 48, (9,), 32, (3,), (1,), (2,), (1,), 1),
    (2, 32, (301,), 48, (3,), (1,), (0,), (1,), 1),
    (1, 256, (800,), 16, (3,), (1,), (1,), (1,), 1),  # strips of columns
    (3, 48, (3, 9, 33), 32, (2, 3, 3), (1, 1, 1), (0, 2, 1), (1, 1, 1), 1),
    (2, 16, (5, 4, 37), 48, (4, 1, 3), (1, 1, 1), (3, 0, 2), (1, 1, 1), 1),
    (1, 32, (30, 8, 9), 16, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),  # strips of planes
    (1, 64, (2, 13, 70), 32, (2, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),  # of rows
    (1, 112, (9, 4, 150), 16, (8, 3, 3), (1, 1, 1), (7, 0, 1), (1, 1, 1), 1),  # of columns
    (3, 32, (5, 12, 11), 32, (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), 1),  # planes of all images in a row
    # an odd number of vectors of 8 channels
    (2, 24, (5, 9, 11), 40, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    (3, 8, (70,), 24, (3,), (1,), (1,), (1,), 1),
    (2, 24, (9, 10), 8, (4, 4), (2, 2), (1, 1), (1, 1), 1),  # and of pixels
    (2, 22, (7, 9), 50, (3, 3), (2, 1), (1, 1), (1, 2), 2),
    # rows of tiles
    (2, 3, (40, 45), 20, (7, 7), (2, 2), (3, 3), (1, 1), 1),
    (2, 5, (64, 100), 50, (5, 5), (2, 2), (2, 0), (1, 1), 1),
    (1, 3, (150, 224), 16, (8, 8), (3, 2), (4, 5), (2, 1), 1),  # bands
    (3, 20, (19, 40), 33, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (3, 7, (19, 26), 40, (2, 4), (1, 1), (0, 3), (2, 1), 1),
    (5, 12, (301,), 20, (7,), (2,), (9,), (1,), 1),
    (2, 30, (70,), 31, (6,), (2,), (0,), (1,), 1),
    # halves: a stride of two parts the image, or the gradient
    (2, 32, (17, 22), 48, (4, 4), (2, 2), (1, 1), (1, 1), 1),
    (3, 48, (12, 9), 32, (3, 4), (2, 2), (0, 3), (1, 1), 1),
    (1, 16, (70, 66), 64, (4, 3), (2, 2), (2, 1), (1, 1), 1),  # strips of rows
    (1, 256, (5, 300), 32, (3, 3), (2, 2), (1, 2), (1, 1), 1),  # of columns
    (40, 16, (4, 3), 16, (4, 3), (2, 2), (3, 0), (1, 1), 1),  # of images
    (1, 16, (7, 7), 16, (4, 4), (2, 2), (0, 0), (1, 1), 1),  # inputs that no window reaches
    (2, 144, (12, 12), 80, (4, 4), (2, 2), (1, 1), (1, 1), 1),
    # channels in multiples of 8 and not of 16: vectors of AVX2
    (2, 24, (17, 19), 40, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (3, 40, (9, 8), 56, (3, 3), (1, 1), (2, 0), (1, 1), 1),
    (2, 24, (13, 10), 40, (4, 4), (2, 2), (1, 1), (1, 1), 1),
    (2, 5, (20, 27), 9, (6, 6), (2, 2), (2, 3), (1, 1), 1),
    # depthwise squares of taps, with stride one: tiles of rows, the last one begins earlier
    (2, 10, (7, 12), 10, (3, 3), (1, 1), (0, 2), (1, 1), 10),
    (3, 9, (6, 41), 9, (3, 3), (1, 1), (1, 1), (1, 1), 9),
    (2, 10, (4, 8), 10, (5, 5), (1, 1), (6, 3), (1, 1), 10),
    (2, 3, (11, 10), 3, (2, 2), (4, 4), (0, 0), (1, 1), 3),  # a stride beyond the kernel: inputs that nobody reads
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_product_and_adjoints(case, dtype):
    images, channels, spatial, outputs, kernel, *how, groups = case
    rng = np.random.default_rng(0)
    x = rng.normal(size=(images, channels, *spatial)).astype(dtype)
    w = rng.normal(size=(outputs, channels // groups, *kernel)).astype(dtype)
    b = rng.normal(size=outputs).astype(dtype)

    def agrees(got, want, terms):
        assert got.dtype == dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=float(np.finfo(dtype).eps) * 8 * terms**0.5 * 12)

    exact = [a.astype(np.float64) for a in (x, w, b)]
    want = reference._forward_numpy(exact[0], exact[1], *how, groups) + exact[2].reshape(-1, *[1] * len(spatial))
    got = blas.convolve(0, x, w, b, (), *how, groups)
    agrees(got, want, w[0].size)
    g = rng.normal(size=want.shape).astype(dtype)
    wide = g.astype(np.float64)
    want = reference._input_adjoint_numpy(wide, exact[1], spatial, *how, groups)
    agrees(blas.convolve(1, g, w, None, spatial, *how, groups), want, outputs * np.prod(kernel))
    want = reference._weight_adjoint_numpy(wide, exact[0], kernel, *how, groups)
    agrees(blas.convolve(2, g, x, None, kernel, *how, groups), want, g[:, 0].size)


def in_order(a, last):
    """A copy, its channels innermost or in C order, from a start that is aligned to nothing."""
    line = np.empty(a.size + 1, a.dtype)[1:]
    if last:
        out = line.reshape(a.shape[0], *a.shape[2:], a.shape[1]).transpose(0, -1, *range(1, a.ndim - 1))
    else:
        out = line.reshape(a.shape)
    out[...] = a
    return out


POINTS = [
    (2, 33, (9, 11), 20, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (5, 100, (2, 2), 130, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (3, 7, (8, 8), 5, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (2, 200, (16, 16), 90, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (2, 12, (4, 5, 6), 8, (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
]


WAYS = [("USUAL", np.float32), ("USUAL", np.float64), ("PIXELS", np.float32), ("WINOGRAD", np.float32)]


# The largest case is there for its strips of columns, which one dtype and Winograd's way meet.
@pytest.mark.parametrize(
    "case, way, dtype",
    [
        pytest.param(case, way, dtype, marks=pytest.mark.slow if case[1] == 112 and (way, dtype) in WAYS[1:3] else ())
        for case in [*CASES, *POINTS]
        for way, dtype in WAYS
    ],
    ids=str,
)
def test_operands_in_either_order(case, way, dtype):
    images, channels, spatial, outputs, kernel, *how, groups = case
    n, rng = len(spatial), np.random.default_rng(0)
    x = rng.normal(size=(images, channels, *spatial)).astype(dtype)
    w = rng.normal(size=(outputs, channels // groups, *kernel)).astype(dtype)
    b = rng.normal(size=outputs).astype(dtype)
    y = reference._forward_numpy(x.astype("d"), w.astype("d"), *how, groups)
    g = rng.normal(size=y.shape).astype(dtype)
    wide = g.astype("d")
    wanted = [
        ((x, w, b), y + b.astype("d").reshape(-1, *[1] * n), w[0].size),
        ((g, w), reference._input_adjoint_numpy(wide, w.astype("d"), spatial, *how, groups), outputs * np.prod(kernel)),
        ((g, x), reference._weight_adjoint_numpy(wide, x.astype("d"), kernel, *how, groups), g[:, 0].size),
    ]
    named = zip(("stride", "padding", "dilation"), how, (1, 0, 1))
    rest = {name: (*[fill] * (3 - n), *given) for name, given, fill in named}
    blas.share_threads()
    for what, (given, want, terms) in enumerate(wanted):
        for orders in itertools.product((False, True) if n > 1 else (False,), repeat=3):
            parts = [*map(in_order, given[:2], orders), *given[2:]]
            made = in_order(np.full(want.shape, np.nan, dtype), orders[2])
            numbers = {"direction": what, "f64": dtype is np.float64, "groups": groups, "way": kernels.Way[way]}
            kernels.convolution(parts, [made], **numbers, **rest)
            bound = float(np.finfo(dtype).eps) * 8 * terms**0.5 * 12
            np.testing.assert_allclose(made, want, rtol=0, atol=bound, err_msg=f"{what} {orders}")


@pytest.mark.parametrize("odd", [np.inf, np.nan, 3e38])
@pytest.mark.parametrize("channels, last", [(32, False), (20, False), (32, True), (20, True)])
def test_what_is_not_finite_reaches_only_its_windows(channels, last, odd):
    """Sums of transformed tiles would spread it over the tile, products with the zeros beside an image over rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, channels, 12, 12)).astype("f")
    w = rng.normal(size=(channels, channels, 3, 3)).astype("f")
    how = ((1, 1), (1, 1), (1, 1))
    x[0, 3, 5, 6] = odd
    with np.errstate(all="ignore"):
        want = reference._forward_numpy(x.astype("d"), w.astype("d"), *how, 1).astype("f")
        back = reference._weight_adjoint_numpy(x.astype("d"), x.astype("d"), (3, 3), *how, 1).astype("f")
        into = reference._input_adjoint_numpy(x.astype("d"), w.astype("d"), (12, 12), *how, 1).astype("f")
    if last:
        x, w = (np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for a in (x, w))
    for got, exact in (
        (blas.convolve(0, x, w, None, (), *how, 1, last), want),
        (blas.convolve(1, x, w, None, (12, 12), *how, 1, last), into),
        (blas.convolve(2, x, x, None, (3, 3), *how, 1, last), back),
    ):
        assert got.strides == in_order(exact, last).strides
        finite = np.isfinite(exact) & (np.abs(exact) < 1e37)
        assert np.isfinite(got)[finite].all()
        small = finite & (np.abs(exact) < 1e4)
        np.testing.assert_allclose(got[small], exact[small], atol=1e-3)
        assert (np.isnan(got) == np.isnan(exact))[~finite].all() or odd == 3e38


@pytest.mark.parametrize("odd", [np.inf, np.nan, 3e38])
@pytest.mark.parametrize(
    "side, kernel, stride", [((40,), 3, 1), ((6, 9, 8), 3, 1), ((3, 1, 9), 3, 1), ((18, 15), 4, 2), ((30, 30), 7, 2)]
)
def test_what_is_not_finite_reaches_only_its_windows_by_other_tiles(side, kernel, stride, odd):
    rng, n = np.random.default_rng(0), len(side)
    taps = tuple(min(s, kernel) for s in side)
    how = ((stride,) * n, tuple(t // 2 for t in taps), (1,) * n)
    x = rng.normal(size=(2, 16, *side)).astype("f")
    out = [(s + 2 * p - t) // stride + 1 for s, t, p in zip(side, taps, how[1])]
    g = rng.normal(size=(2, 32, *out)).astype("f")
    w = rng.normal(size=(32, 16, *taps)).astype("f")
    x[(0, 3, *(s // 2 for s in side))] = odd
    rest = {k: (*[f] * (3 - n), *v) for k, v, f in zip(("stride", "padding", "dilation"), how, (1, 0, 1))}
    # Pixels, which make the gradient of the weight with strides, leave out what lies beside the image.
    found, numbers = np.zeros(1, np.int64), {"direction": 2, "f64": False, "groups": 1, "way": kernels.Way.USUAL}
    kernels.convolution_ways([g, x, None, w], [found], **numbers, **rest)
    g[(1, 5, *(0 if found[0] >> kernels.Way.WINOGRAD & 1 else s // 2 for s in out))] = odd
    with np.errstate(all="ignore"):
        exact = [
            reference._forward_numpy(x.astype("d"), w.astype("d"), *how, 1),
            reference._input_adjoint_numpy(g.astype("d"), w.astype("d"), side, *how, 1),
            reference._weight_adjoint_numpy(g.astype("d"), x.astype("d"), taps, *how, 1),
        ]
    blas.share_threads()
    for what, (given, want) in enumerate(zip(((x, w, None), (g, w), (g, x)), exact)):
        made = np.empty(want.shape, "f")
        kernels.convolution(given, [made], direction=what, f64=False, groups=1, way=kernels.Way.WINOGRAD, **rest)
        small = np.isfinite(want) & (np.abs(want) < 1e4)
        np.testing.assert_allclose(made[small], want[small], atol=1e-3)
        assert (np.isnan(made) == np.isnan(want))[~np.isfinite(want)].all()


@pytest.mark.parametrize("outputs, way", [(32, "PIXELS"), (900, "PIXELS"), (32, "GATHER")])
def test_a_weight_that_is_not_finite_meets_the_zeros_beside_an_image(outputs, way):
    rng = np.random.default_rng(0)
    w = rng.normal(size=(outputs, 32, 3, 3)).astype("f")
    x = in_order(rng.normal(size=(2, 32, 8, 8)).astype("f"), True)
    w[4, 5, 0, 0] = np.inf
    made = in_order(np.full((2, outputs, 8, 8), 1, "f"), True)
    how = {"stride": (1, 1, 1), "padding": (0, 1, 1), "dilation": (1, 1, 1), "groups": 1}
    blas.share_threads()
    kernels.convolution([x, w, None], [made], direction=0, f64=False, way=kernels.Way[way], **how)
    assert np.isnan(made[:, 4, 0]).all() and np.isnan(made[:, 4, :, 0]).all()
    assert np.isinf(made[:, 4, 1:, 1:]).all() and np.isfinite(np.delete(made, 4, 1)).all()


def test_a_weight_that_is_not_finite_does_not_meet_what_lies_beside_the_cotangents():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(32, 32, 3, 3)).astype("f")
    g = in_order(rng.normal(size=(2, 32, 5, 5)).astype("f"), True)
    w[4, 5, 0, 0] = np.inf  # reaches no input of the last rows and columns
    made = in_order(np.full((2, 32, 10, 10), np.nan, "f"), True)
    how = {"stride": (1, 2, 2), "padding": (0, 1, 1), "dilation": (1, 1, 1), "groups": 1}
    blas.share_threads()
    kernels.convolution([g, w], [made], direction=1, f64=False, way=kernels.Way.PIXELS, **how)
    with np.errstate(invalid="ignore"):
        want = reference._input_adjoint_numpy(g.astype("d"), w.astype("d"), (10, 10), (2, 2), (1, 1), (1, 1), 1)
    np.testing.assert_array_equal(np.isfinite(made), np.isfinite(want))
    assert not np.isfinite(made).all() and np.isfinite(made[:, 5, -1]).all()


@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize(
    "images, channels, outputs, side",
    [(2, 16, 30, (9, 10, 11)), (1, 40, 64, (30, 31)), (5, 130, 200, (4, 4)), (3, 20, 16, (2, 3))],
)
def test_taps_beside_the_image_are_zeros_to_the_bit(images, channels, outputs, side, stride, dilation):
    """Pixels: tiles leave out what reads beside the image. Beside an image that has the zeros; with a weight of few places it is packed in turn."""
    rng, n = np.random.default_rng(0), len(side)
    x = rng.normal(size=(images, channels, *side)).astype("f")
    w = rng.normal(size=(outputs, channels, *[3] * n)).astype("f")
    padded = np.pad(x, [(0, 0), (0, 0), *[(dilation + 1,) * 2] * n])
    out = [(s + 2 * (dilation + 1) - 2 * dilation - 1) // stride + 1 for s in side]
    ones = (1,) * (3 - n)
    how = {"stride": (*ones, *[stride] * n), "dilation": (*ones, *[dilation] * n), "groups": 1, "f64": False}
    blas.share_threads()
    made = []
    for image, around in ((x, dilation + 1), (padded, 0)):
        made.append(in_order(np.full((images, outputs, *out), np.nan, "f"), True))
        given = [in_order(image, True), w, None]
        padding = (*[0] * (3 - n), *[around] * n)
        kernels.convolution(given, made[-1:], direction=0, way=kernels.Way.PIXELS, padding=padding, **how)
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize(
    "channels, outputs, groups, side",
    [(40, 150, 1, (20, 21)), (48, 36, 2, (6, 9, 8)), (130, 16, 1, (7, 7))],
)
def test_pixels_do_not_depend_on_threads(channels, outputs, groups, side):
    """Also which way is taken: images in C order are turned first."""
    old, rng, n = torch.get_num_threads(), np.random.default_rng(0), len(side)
    out = tuple((s - 1) // 2 + 1 for s in side)
    x, g = (rng.normal(size=(4, c, *s)).astype("f") for c, s in ((channels, side), (outputs, out)))
    w = rng.normal(size=(outputs, channels // groups, *[3] * n)).astype("f")
    ones = (1,) * (3 - n)
    how = {"stride": (*ones, *[2] * n), "padding": (*[0] * (3 - n), *[1] * n), "dilation": (1, 1, 1)}
    blas.share_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            for what, parts, like in ((0, (x, w, None), g), (1, (g, w), x), (2, (g, x), w)):
                made = in_order(np.full(like.shape, np.nan, "f"), True)
                given = [p if p is None else in_order(p, True) for p in parts]
                kernels.convolution(
                    given, [made], direction=what, f64=False, groups=groups, way=kernels.Way.PIXELS, **how
                )
                results.append(made)
    finally:
        torch.set_num_threads(old)
    for k, made in enumerate(results[3:]):
        np.testing.assert_array_equal(made, results[k % 3])


@pytest.mark.parametrize(
    "channels, outputs, groups, taps, side",
    [
        (3, 16, 1, 3, (40, 40)),
        (32, 48, 1, 3, (40, 40)),
        (32, 48, 1, 3, (18, 13, 9)),
        (32, 48, 1, 3, (900,)),
        (40, 40, 40, 3, (40, 40)),
        (200, 90, 1, 1, (40, 40)),
        (200, 300, 1, 1, (5, 5)),
    ],
)
def test_result_does_not_depend_on_threads(channels, outputs, groups, taps, side):
    old = torch.get_num_threads()
    rng, n = np.random.default_rng(0), len(side)
    x = rng.normal(size=(6, channels, *side)).astype("f")
    w = rng.normal(size=(outputs, channels // groups, *[taps] * n)).astype("f")
    g = rng.normal(size=(6, outputs, *side)).astype("f")
    how = ((1,) * n, (taps // 2,) * n, (1,) * n, groups)
    try:
        results = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(
                (
                    blas.convolve(0, x, w, None, (), *how),
                    blas.convolve(1, g, w, None, side, *how),
                    blas.convolve(2, g, x, None, w.shape[2:], *how),
                )
            )
    finally:
        torch.set_num_threads(old)
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, np.ones((1, 2, 5), "f"), np.ones((3, 3, 2), "f"), None, (), (1,), (0,), (1,), 1),  # channels differ
        (
            0,
            np.ones((1, 2, 5), "f"),
            np.ones((3, 2, 7), "f"),
            None,
            (),
            (1,),
            (0,),
            (1,),
            1,
        ),  # kernel longer than input
        (0, np.ones((1, 2, 5), "f"), np.ones((3, 2, 2), "f"), None, (), (0,), (0,), (1,), 1),
        (0, np.ones((1, 2, 5), "f"), np.ones((3, 2, 2), "f"), None, (), (1, 1), (0,), (1,), 1),
        (0, np.ones((1, 2, 5), "f"), np.ones((3, 2, 2), "d"), None, (), (1,), (0,), (1,), 1),
        (0, np.ones((1, 2, 5), "f"), np.ones((3, 2, 2), "f"), np.ones(2, "f"), (), (1,), (0,), (1,), 1),
        (0, np.ones((1, 2, 5), "f")[:, :, ::2], np.ones((3, 2, 2), "f"), None, (), (1,), (0,), (1,), 1),
        (0, np.ones((1, 0, 5), "f"), np.ones((3, 0, 2), "f"), None, (), (1,), (0,), (1,), 1),
        (1, np.ones((1, 3, 9), "f"), np.ones((3, 2, 2), "f"), None, (5,), (1,), (0,), (1,), 1),
        (2, np.ones((2, 3, 4), "f"), np.ones((1, 2, 5), "f"), None, (2,), (1,), (0,), (1,), 1),
        (3, np.ones((1, 2, 5), "f"), np.ones((3, 2, 2), "f"), None, (), (1,), (0,), (1,), 1),
    ],
)
def test_what_does_not_fit_is_refused(arguments):
    with pytest.raises(ValueError, match="convol"):
        blas.convolve(*arguments)


def test_transposed_layouts_and_empty_batches_go_through_the_operator():
    x = torch.randn(2, 8, 8, 6).permute(0, 3, 1, 2)
    conv = torch.nn.Conv2d(6, 10, 3, padding=1)
    want = conv(x.contiguous())
    np.testing.assert_allclose(conv(x).detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert torch.nn.functional.conv2d(torch.zeros(0, 6, 8, 8), conv.weight).shape == (0, 10, 6, 6)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_with_output_padding_have_a_compiled_backward(dims):
    """There may be room for one more window than the input has elements."""
    F = torch.nn.functional
    for size, kernel, stride, padding, extra, groups in (
        (5, 3, 2, 1, 1, 1),
        (7, 2, 3, 0, 2, 1),
        (6, 5, 3, 2, 2, 16),
        (4, 1, 2, 0, 1, 1),
    ):
        rng = np.random.default_rng(size)
        x = torch.from_numpy(rng.normal(size=(2, 16, *[size] * dims)).astype("f")).requires_grad_()
        w = torch.from_numpy(rng.normal(size=(16, 16 // groups, *[kernel] * dims)).astype("f")).requires_grad_()

        def f(x, w):
            return getattr(F, f"conv_transpose{dims}d")(x, w, None, stride, padding, extra, groups)  # noqa: B023

        exact = [t.detach().double().requires_grad_() for t in (x, w)]
        want = torch.autograd.grad(f(*exact).square().sum(), exact)
        torch._dynamo.reset()
        before = torch._inductor.metrics.num_fallbacks
        got = torch.autograd.grad(torch.compile(f)(x, w).square().sum(), (x, w))
        assert torch._inductor.metrics.num_fallbacks == before
        for a, b in zip(got, want):
            assert float((a.double() - b).abs().max()) <= 1e-5 * float(b.abs().max())


def test_what_memory_held_before_makes_no_difference():
    """Products of shifted rows read on behind a plane, against zeros: what is there has to be finite."""
    x = torch.randn(2, 32, 7, 9)
    w = torch.randn(17, 32, 1, 1, requires_grad=True)

    def gradient():
        return torch.autograd.grad(torch.nn.functional.conv2d(x, w, padding=1).sum(), w)[0]

    want = gradient()
    for size in range(1000, 120_000, 5000):
        spoiled = [torch.full((size,), float("nan")) for _ in range(3)]
        del spoiled
        assert torch.equal(gradient(), want)


@pytest.mark.parametrize("far", [2**21, 2**33, 2**40])
@pytest.mark.parametrize("way", [way for way in kernels.Way if way is not kernels.Way.DEPTHWISE])
@pytest.mark.parametrize(
    "channels, outputs, groups, spatial, kernel",
    [
        (2, 2, 1, (3, 3, 3), 1),
        (1, 1, 1, (5, 5), 3),
        (8, 8, 4, (5, 5), 3),
        (32, 32, 1, (7, 7), 3),
        (32, 20, 1, (40,), 3),
    ],
)
def test_strides_and_dilations_far_beyond_the_image(channels, outputs, groups, spatial, kernel, way, far):
    """No memory is taken for places that nothing reads: sizes of padded images wouldn't fit into 64 bits."""
    rng, n = np.random.default_rng(0), len(spatial)
    x = rng.normal(size=(2, channels, *spatial)).astype("f")
    w = rng.normal(size=(outputs, channels // groups, *[kernel] * n)).astype("f")

    def made(stride, padding, dilation):
        rest = {
            name: (*[fill] * (3 - n), *[given] * n)
            for name, given, fill in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1))
        }
        places = [(s + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for s in spatial]
        y = rng.normal(size=(2, outputs, *places)).astype("f")
        results = []
        for what, (a, b, shape) in enumerate([(x, w, y.shape), (y, w, x.shape), (y, x, w.shape)]):
            results.append(np.full(shape, np.nan, "f"))
            kernels.convolution([a, b, None], [results[-1]], direction=what, f64=False, groups=groups, way=way, **rest)
        return results

    for how in (lambda s: (s, 0, 1), lambda s: (s, s, 1), lambda s: (1, s, s), lambda s: (s, s + 1, s)):
        results = []
        for distance in (50, far):
            rng = np.random.default_rng(1)
            stride, padding, dilation = how(distance)
            if kernel > 1 or stride > 1:  # else there are as many places as padding
                results.append(made(stride, padding, dilation))
        for got, want in zip(*results):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)


WITHOUT_AVX512 = [
    # channels, outputs, groups, kernel, stride; the usual way, and the directions that go it
    (24, 40, 1, 3, 1, "WINOGRAD", (0, 1, 2)),
    (64, 64, 1, 3, 1, "WINOGRAD", (0, 1, 2)),
    (24, 40, 1, 4, 2, "WINOGRAD", (0, 1)),
    (3, 32, 1, 7, 2, "WINOGRAD", (0,)),
    (128, 64, 1, 4, 2, "PIXELS", (0,)),
    (64, 128, 1, 4, 2, "PIXELS", (1,)),
    (24, 24, 24, 3, 2, "DEPTHWISE", (0, 1, 2)),
    (24, 24, 24, 3, 1, "TAPS", (0, 1, 2)),
]


def usual_ways() -> None:
    blas.share_threads()
    for channels, outputs, groups, kernel, stride, way, directions in WITHOUT_AVX512:
        x, w = np.ones((4, channels, 40, 40), "f"), np.ones((outputs, channels // groups, kernel, kernel), "f")
        side = (40 + 2 * (kernel // 2) - kernel) // stride + 1
        y, found = np.ones((4, outputs, side, side), "f"), np.zeros(1, np.int64)
        how = {
            "stride": (1, stride, stride),
            "padding": (0, kernel // 2, kernel // 2),
            "dilation": (1, 1, 1),
            "groups": groups,
            "f64": False,
        }
        for what in directions:
            operands = [(x, w, None, y), (y, w, None, x), (y, x, None, w)][what]
            kernels.convolution_ways(operands, [found], direction=what, way=kernels.Way.USUAL, **how)
            assert found[0] >> 16 == 1 << kernels.Way[way], (channels, outputs, kernel, what)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="vectors of x86 processors")
def test_usual_ways_without_avx512():
    guard_pages.run_alone(__file__, "usual_ways()", FLAMBEAU_CPU="avx2")
