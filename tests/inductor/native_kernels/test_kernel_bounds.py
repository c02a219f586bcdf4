"""Every native kernel (kernel_bounds.py) at odd sizes, from starts that are aligned to nothing, on one thread and on two, for lesser CPUs, each array and workspace
between pages that can't be touched: results have the same bits, and lie within their bounds of float64's."""

import os
import subprocess
import sys

import kernel_bounds
import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.testing import guard_pages

EPS = 2.0**-23
SIZES = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 70]


def flat(results):
    return [results] if isinstance(results, torch.Tensor) else list(results)


def moved(a):
    """The same tensor one element behind where memory begins."""
    t = torch.empty(a.size + 1, dtype=torch.from_numpy(a).dtype)[1:].view(a.shape)
    return t.copy_(torch.from_numpy(a))


def same(name, n, results, other, what):
    """``other`` has the bits of one of the ``results``."""
    for k, y in enumerate(other):
        like = [r[k].dtype is y.dtype and np.array_equal(r[k].numpy(), y.numpy(), equal_nan=True) for r in results]
        assert any(like), (name, n, k, what)


def within(name, n, fn, arrays, results):
    """Beside float64, as the table says."""
    _, how, bound, _ = kernel_bounds.TABLE[name]
    if how is None:
        return
    twice = [torch.from_numpy(a.astype(np.float64)) for a in arrays]
    wanted = flat(fn(*twice))
    if how == kernel_bounds.EXACT:
        for k, (x, y) in enumerate(zip(results, wanted, strict=True)):
            assert np.array_equal(x.numpy(), y.numpy().astype(x.numpy().dtype), equal_nan=True), (name, n, k)
        return
    least = 0.1 * max(
        [w.abs().max().item() for w in wanted if w.numel()], default=1
    )  # what is nothing but rounding is measured by the rest
    scales = flat(fn(*[t.abs() for t in twice])) if how == kernel_bounds.TERMS else wanted
    for k, (x, y, s) in enumerate(zip(results, wanted, scales, strict=True)):
        off, s = np.abs(x.numpy() - y.numpy()), np.abs(s.numpy())
        s = s if how == kernel_bounds.TERMS else max(s.max(initial=0), least)
        assert (off <= bound(n) * EPS * s + 1e-30).all(), (name, n, k, float((off / (EPS * s + 1e-30)).max()), bound(n))


def sweep(sizes) -> None:
    threads = torch.get_num_threads()
    for name, (make, _, _, only) in kernel_bounds.TABLE.items():
        for n in only or sizes:
            fn, arrays = make(n)
            plain = [torch.from_numpy(a) for a in arrays]
            # A description met before has a kernel of its own, as long as it is remembered; its sums have another order than NumPy's in the first call.
            torch.set_num_threads(1)
            first, second, third = (flat(fn(*plain)) for _ in range(3))
            torch.set_num_threads(2)
            two, apart = flat(fn(*plain)), flat(fn(*map(moved, arrays)))
            torch.set_num_threads(1)
            known = first, second, third, flat(fn(*plain))
            torch.set_num_threads(threads)
            same(name, n, known, two, "two threads")
            same(name, n, known, apart, "moved by an element")
            within(name, n, fn, arrays, first)
            within(name, n, fn, arrays, third)


def compiled(sizes) -> None:
    threads = torch.get_num_threads()
    for name, (make, _, _, only) in kernel_bounds.TABLE.items():
        for n in only or sizes:
            fn, arrays = make(n)
            torch.compiler.reset()
            run, plain = torch.compile(fn, dynamic=False), [torch.from_numpy(a) for a in arrays]
            torch.set_num_threads(1)
            one = flat(run(*plain))
            torch.set_num_threads(2)
            same(name, n, (one,), flat(run(*plain)), "compiled, two threads")
            same(name, n, (one,), flat(run(*map(moved, arrays))), "compiled, moved by an element")
            torch.set_num_threads(threads)
            within(name, n, fn, arrays, one)


# Products are made by our kernels: what OpenBLAS does with a piece (without AVX-512) may have other bits than what it does with the whole.
LEVELS = [("guarded", ""), ("guarded_below", ""), ("guarded", "avx2"), ("guarded", "default")]
# What the processor is anyway has run.
DEFAULT = [pytest.param(allocator, cpu, marks=level(cpu).marks) for allocator, cpu in LEVELS]
OWN = {"FLAMBEAU_PRODUCTS": "own"}


@pytest.mark.skipif(not guard_pages.available, reason="guard pages are Linux's here")
@pytest.mark.parametrize("allocator, cpu", DEFAULT, ids=lambda x: x or "own")
def test_eager(allocator, cpu):
    # Three sizes at one level, one at the rest; test_every_size has them all.
    sizes = "(2, 9, 47)" if (allocator, cpu) == LEVELS[0] else "(33,)"
    guard_pages.run_alone(__file__, f"sweep({sizes})", FLAMBEAU_CPU=cpu, FLAMBEAU_ALLOCATOR=allocator, **OWN)


@pytest.mark.skipif(not guard_pages.available, reason="guard pages are Linux's here")
@pytest.mark.parametrize("allocator, cpu", DEFAULT, ids=lambda x: x or "own")
def test_compiled(allocator, cpu):
    sizes = "(7,)" if (allocator, cpu) == LEVELS[0] else "(33,)"
    environment = {"FLAMBEAU_CPU": cpu, "FLAMBEAU_ALLOCATOR": allocator, "FLAMBEAU_STRICT_CAPTURE": "1"}
    guard_pages.run_alone(__file__, f"compiled({sizes})", **environment, **OWN)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.skipif(not guard_pages.available, reason="guard pages are Linux's here")
@pytest.mark.parametrize("allocator, cpu", LEVELS, ids=lambda x: x or "own")
def test_every_size(allocator, cpu):
    guard_pages.run_alone(__file__, "sweep(range(1, 71))", 3000, FLAMBEAU_CPU=cpu, FLAMBEAU_ALLOCATOR=allocator, **OWN)


@pytest.mark.skipif(not guard_pages.available, reason="guard pages are Linux's here")
@pytest.mark.parametrize(
    "allocator, offset, write",
    [("guarded", 4, True), ("guarded", 16, False), ("guarded_below", -1, False), ("guarded_below", 12, True)],
)
def test_guards_find_what_is_outside(allocator, offset, write):
    access = "c_char.from_address(p).value" + (" = b'x'" if write else "")
    code = f"import ctypes, flambeau as t; x = t.empty(3); p = x.data_ptr() + {offset}; p += 12 * (0 < {offset} < 12); ctypes.{access}; del x"
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "FLAMBEAU_ALLOCATOR": allocator}, capture_output=True
    )
    assert run.returncode < 0
