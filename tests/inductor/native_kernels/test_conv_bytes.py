"""Convolutions of bytes less their zero points: exact, for every kind of CPU, eager and compiled, which calls no Python."""

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.base import affine
from flambeau.inductor import debug
from flambeau.testing import guard_pages


def exact(x, w, x_zero, w_zero, stride, padding, dilation, groups):
    """By windows, in int64."""
    n = len(stride)
    x, w = x.astype(np.int64) - x_zero, w.astype(np.int64) - np.reshape(w_zero, (-1,) + (1,) * (n + 1))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, w.shape[2:])]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, n + 2)))
    windows = windows[
        (slice(None), slice(None), *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    ]
    places, taps = "xyz"[:n], "ijk"[:n]
    out = []
    for a, b in zip(np.split(windows, groups, 1), np.split(w, groups)):
        out.append(np.einsum(f"nc{places}{taps},oc{taps}->no{places}", a, b))
    return np.concatenate(out, 1)


def drawn(rng):
    """The arguments of a convolution of one to three dimensions."""
    n, groups, channels, outputs = rng.integers(1, 4), int(rng.choice([1, 1, 2, 3])), *rng.integers(1, 8, 2).tolist()
    kernel, stride, dilation = (rng.integers(1, 4, n).tolist() for _ in range(3))
    padding = rng.integers(0, 4, n).tolist()
    sizes = [
        max(d * (k - 1) + 1 - 2 * p, 1) + int(rng.integers(0, 20 if n < 3 else 5))
        for k, d, p in zip(kernel, dilation, padding)
    ]
    kind = rng.choice([np.int8, np.uint8])
    low, high = affine.range_of(kind)
    x = rng.integers(low, high, (int(rng.integers(0, 3)), channels * groups, *sizes), endpoint=True).astype(kind)
    if rng.random() < 0.3:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    w = rng.integers(-128, 127, (outputs * groups, channels, *kernel), endpoint=True).astype(np.int8)
    zeros = [0, 5, rng.integers(-20, 20, len(w)), np.zeros(len(w), np.int64)]
    return x, w, int(rng.integers(low, high)), zeros[rng.integers(4)], stride, padding, dilation, groups


def sweep(times: int = 300) -> None:
    rng = np.random.default_rng(0)
    for _ in range(times):
        given = drawn(rng)
        assert np.array_equal(affine.convolved(*given), exact(*given)), [given[0].shape, given[1].shape, *given[2:]]


@pytest.mark.parametrize("cpu", ["", level("avx2"), "default"])
def test_exact_on_all_kinds_of_cpu(cpu):
    guard_pages.run_alone(__file__, "sweep()", FLAMBEAU_CPU=cpu)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("allocator", ["guarded", "guarded_below"])
def test_nothing_outside_is_touched(allocator):
    guard_pages.run_alone(__file__, "sweep(100)", FLAMBEAU_ALLOCATOR=allocator)


@pytest.mark.parametrize("n, far", [(1, 2**21), (2, 2**31), (3, 2**21), (3, 2**40)])
def test_strides_and_dilations_far_beyond_the_image(n, far):
    """The sizes of padded images may be beyond 64 bits: that is memory that isn't there, unless nothing reads them."""
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 127, (2, 4, *[6] * n), dtype=np.int8)
    w = rng.integers(-128, 127, (8, 4, *[3] * n), dtype=np.int8)

    def made(stride, padding, dilation):
        return affine.convolved(x, w, 3, 0, [stride] * n, [padding] * n, [dilation] * n, 1)

    assert np.array_equal(made(far, 0, 1), made(50, 0, 1))
    if n == 1:
        assert np.array_equal(made(1, far, far), made(1, 50, 50))
        assert np.array_equal(made(far, far, 1), made(50, 50, 1))
    else:
        with pytest.raises(MemoryError):
            made(1, far, far)


def test_many_rows_and_places():
    """Whole and cut blocks of places and of output channels, split over threads."""
    rng = np.random.default_rng(1)
    for channels, outputs, groups, size in ((64, 100, 1, 31), (6, 18, 6, 20), (5, 7, 1, 9)):
        x = rng.integers(0, 255, (2, channels, size, size), endpoint=True).astype(np.uint8)
        w = rng.integers(-128, 127, (outputs, channels // groups, 3, 3), endpoint=True).astype(np.int8)
        given = x, w, 131, 0, [1, 1], [1, 1], [1, 1], groups
        assert np.array_equal(affine.convolved(*given), exact(*given))


def sums(x, weight, zero_point, weight_zero_point, *sizes):
    return torch.ops.quantized._code_convolution(x, weight, zero_point, weight_zero_point, *sizes) * 2


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic):
    rng = np.random.default_rng(2)
    torch.compiler.reset()
    run = torch.compile(sums, fullgraph=True, dynamic=dynamic)
    for _ in range(6):
        x, w, x_zero, w_zero, *sizes = drawn(rng)
        tensors = [torch.from_numpy(np.array(v)) for v in (x, w, np.int64(x_zero), np.asarray(w_zero, np.int64))]
        expected = exact(x, w, x_zero, w_zero, *sizes) * 2
        assert np.array_equal(run(*tensors, *sizes).numpy(), expected)
        last = torch.from_numpy(np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1))
        assert np.array_equal(run(last, *tensors[1:], *sizes).numpy(), expected)


def test_a_graph_calls_the_kernel():
    torch.compiler.reset()
    given = torch.zeros(1, 2, 5, dtype=torch.uint8), torch.ones(3, 2, 2, dtype=torch.int8)
    found: list[str] = []
    debug.listeners.append(found.append)
    try:
        torch.compile(sums)(*given, torch.tensor(1), torch.tensor(0), [1], [1], [1], 1)
    finally:
        debug.listeners.pop()
    assert "conv_bytes" in "".join(found) and "_code_convolution" not in "".join(found)
