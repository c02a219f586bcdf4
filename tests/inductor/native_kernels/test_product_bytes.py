"""Products of bytes less their zero points: exact, for every kind of CPU, eager and compiled, which calls no Python."""

import itertools

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.base import affine
from flambeau.inductor import debug
from flambeau.testing import guard_pages

SIZES = [(1, 1, 1), (1, 8, 64), (2, 5, 63), (4, 4, 65), (9, 3, 130), (5, 33, 16), (70, 12, 300), (3, 4, 0)]
KINDS = (np.int8, np.uint8)


def operands(m, n, k, a_kind, b_kind, rng):
    """Bytes to their ends, and zero points: none, one, one for each row of the weight."""
    a, b = (rng.integers(*affine.range_of(t), (r, k), endpoint=True).astype(t) for r, t in ((m, a_kind), (n, b_kind)))
    for a_zero, b_zero in itertools.product(
        (0, 7, -128, 255), (0, -5, rng.integers(-128, 127, n), np.zeros(n, np.int64))
    ):
        yield a, b, a_zero, b_zero


def exact(a, b, a_zero, b_zero):
    return (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - np.reshape(b_zero, (-1, 1))).T


def sweep() -> None:
    rng = np.random.default_rng(0)
    for size, kinds in itertools.product(SIZES, itertools.product(KINDS, KINDS)):
        for given in operands(*size, *kinds, rng):
            assert np.array_equal(affine.dot(*given), exact(*given)), (size, kinds, given[2:])


@pytest.mark.parametrize("cpu", ["", level("avx2"), "default"])
def test_exact_on_all_kinds_of_cpu(cpu):
    guard_pages.run_alone(__file__, "sweep()", FLAMBEAU_CPU=cpu)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("allocator", ["guarded", "guarded_below"])
def test_nothing_outside_is_touched(allocator):
    guard_pages.run_alone(__file__, "sweep()", FLAMBEAU_ALLOCATOR=allocator)


def products(x, weight, zero_point, weight_zero_point):
    return torch.ops.quantized._code_products(x, weight, zero_point, weight_zero_point) * 2


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(7, 20), (2, 3, 20), (20,), (0, 20)])
def test_compiled(shape, dynamic):
    rng = np.random.default_rng(1)
    torch.compiler.reset()
    run = torch.compile(products, fullgraph=True, dynamic=dynamic)
    for zeros in (np.int64(3), rng.integers(-9, 9, 6)):
        x = rng.integers(0, 255, shape, endpoint=True).astype(np.uint8)
        weight = rng.integers(-128, 127, (6, 20)).astype(np.int8)
        given = [torch.from_numpy(np.array(v)) for v in (x, weight, np.int64(100), zeros)]
        assert torch.equal(run(*given), products(*given))
        want = exact(x.reshape(-1, 20), weight, 100, zeros).reshape(*shape[:-1], 6)
        assert np.array_equal(run(*given).numpy(), want * 2)
        crossed = torch.from_numpy(np.ascontiguousarray(weight.T)).t()  # a weight that lies across
        assert torch.equal(run(given[0], crossed, *given[2:]), products(*given))


def test_a_graph_calls_the_kernel():
    torch.compiler.reset()
    given = (torch.zeros(3, 8, dtype=torch.uint8), torch.ones(4, 8, dtype=torch.int8), torch.tensor(1), torch.tensor(0))
    found: list[str] = []
    debug.listeners.append(found.append)
    try:
        torch.compile(products)(*given)
    finally:
        debug.listeners.pop()
    assert "product_bytes" in "".join(found) and "_code_products" not in "".join(found)
