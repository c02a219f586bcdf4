"""Matrix products of the runtime beside float64, over shapes that meet every tile, for each kind of CPU; and that no template reads outside its arrays."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from flambeau.base import blas
from flambeau.testing import guard_pages

SIDES = (1, 3, 8, 12, 13, 16, 17, 33, 65, 100)
DEEP = (1, 2, 5, 16, 64, 385, 800)


def _check(m, n, k, dtype, ta, tb, rng):
    a = rng.normal(size=(k, m) if ta else (m, k)).astype(dtype)
    b = rng.normal(size=(n, k) if tb else (k, n)).astype(dtype)
    a, b = a.T if ta else a, b.T if tb else b
    got = blas.matmul(a, b)
    bound = float(np.finfo(dtype).eps) * (k + 2) * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    assert (np.abs(got - a.astype(np.float64) @ b.astype(np.float64)) <= bound).all(), (m, n, k, dtype, ta, tb)


def sweep(every: int) -> None:
    rng = np.random.default_rng(0)
    cases = itertools.product(SIDES, SIDES, DEEP, (np.float32, np.float64), (False, True), (False, True))
    for case in itertools.islice(cases, 0, None, every):
        _check(*case, rng)
    for m, n, k in ((1600, 40, 30), (30, 1100, 900), (257, 513, 400)):  # several blocks each way
        for dtype, t in itertools.product((np.float32, np.float64), (False, True)):
            _check(m, n, k, dtype, t, not t, rng)


@pytest.mark.parametrize("level", ["", "avx2", "default"])
def test_products(level):
    """Each level runs in a process of its own: the CPU is looked at once."""
    guard_pages.run_alone(__file__, f"sweep({7 if level else 3})", FLAMBEAU_CPU=level, FLAMBEAU_PRODUCTS="own")


def test_the_library_insisted_on():
    code = "import numpy as np; from flambeau.base import blas; a = np.ones((64, 64), 'f'); assert (blas.matmul(a, a) == 64).all()"
    environment = {**os.environ, "FLAMBEAU_PRODUCTS": "library"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def read_only_inside() -> None:
    rng = np.random.default_rng(0)
    how = {
        "depthwise": ((2, 5, 7, 9), (5, 1, 3, 3), ((2, 1), (1, 2), (1, 1), 5)),
        "tiny": ((2, 5, 2, 2), (5, 1, 5, 5), ((1, 1), (2, 2), (1, 1), 5)),
        "dense": ((2, 8, 9, 11), (12, 8, 3, 3), ((1, 1), (1, 1), (1, 1), 1)),
        "tiles": ((2, 32, 9, 11), (48, 32, 3, 3), ((1, 1), (1, 1), (1, 1), 1)),
        "tiles in strips": ((3, 32, 21, 23), (32, 32, 3, 3), ((1, 1), (2, 0), (1, 1), 1)),
        "pointwise": ((2, 8, 4, 4), (12, 8, 1, 1), ((1, 1), (0, 0), (1, 1), 1)),
    }
    for at_end in (False, True):
        for m, n, k in ((13, 33, 5), (16, 100, 17), (70, 40, 9), (5, 3, 4)):
            for ta, tb in itertools.product((False, True), repeat=2):
                guarded = guard_pages.GuardPages(at_end)
                a = guarded(rng.normal(size=(k, m) if ta else (m, k)).astype("f"))
                b = guarded(rng.normal(size=(n, k) if tb else (k, n)).astype("f"))
                blas.matmul(a.T if ta else a, b.T if tb else b)
        for x_shape, w_shape, rest in how.values():
            guarded = guard_pages.GuardPages(at_end)
            x, w = guarded(rng.normal(size=x_shape).astype("f")), guarded(rng.normal(size=w_shape).astype("f"))
            g = guarded(blas.convolve(0, x, w, None, (), *rest))
            blas.convolve(1, g, w, None, x_shape[2:], *rest)
            blas.convolve(2, g, x, None, w_shape[2:], *rest)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_templates_read_nothing_outside_their_arrays():
    guard_pages.run_alone(__file__, "read_only_inside()")
