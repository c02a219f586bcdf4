"""A NumPy function compiled: arrays in, array out, one fused parallel kernel. The product is never stored."""

from time import perf_counter

import numpy as np

import flambeau as torch


def outer_sum(X, Y):
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))


def milliseconds(f, *args, repeat=20):
    best = float("inf")
    for _ in range(repeat):
        start = perf_counter()
        f(*args)
        best = min(best, perf_counter() - start)
    return 1000 * best


if __name__ == "__main__":
    compiled = torch.compile(outer_sum)
    X, Y = np.random.randn(1024, 64), np.random.randn(1024, 64)
    start = perf_counter()
    result = compiled(X, Y)
    print(f"first call {perf_counter() - start:.2f} s, result {type(result).__name__} {result.shape} {result.dtype}")
    print(f"greatest difference from NumPy {np.abs(result - outer_sum(X, Y)).max():.1e}")
    print(f"NumPy {milliseconds(outer_sum, X, Y):.2f} ms, compiled {milliseconds(compiled, X, Y):.2f} ms")
