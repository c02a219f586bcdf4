"""Elements of parallel loops are cut into shares of the threads: each is computed once, whatever their numbers are."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.loops.threads.outlining import PIECE


def steps(a, k):
    for _ in range(k):
        a[1:] += 1.0
        a[0] += 1.0


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("number", [1, 2, 3, 7, 16])
def test_each_element_once(number, threads):
    threads(number)
    compiled = torch.compile(steps, dynamic=True)
    for n in (0, 1, PIECE, 2 * PIECE, 2 * PIECE + 1, 3 * PIECE + 7, 5 * PIECE - 1, 17 * PIECE + 3):
        a = np.arange(float(n + 1))
        compiled(a, 4)
        np.testing.assert_array_equal(a, np.arange(4.0, n + 5))


@pytest.mark.parametrize("number", [2, 3, 5])
def test_kernels_of_graphs(number, threads):
    threads(number)
    f = torch.compile(lambda x: (x * 2).sin() + 1)
    for n in (1, 30_000, 65_537, 200_003):
        x = torch.arange(n, dtype=torch.float64)
        assert torch.allclose(f(x), (x * 2).sin() + 1, rtol=1e-12)


def test_fewer_rows_than_threads(threads):
    threads(16)

    def f(a, b):
        for _ in range(3):
            a[:, :] = a * 0.5 + b

    a, b = np.random.rand(3, 50_000), np.random.rand(3, 50_000)
    want, got = a.copy(), a.copy()
    f(want, b)
    torch.compile(f)(got, b)
    np.testing.assert_array_equal(got, want)
