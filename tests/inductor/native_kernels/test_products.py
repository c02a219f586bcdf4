"""Matrix products of the runtime beside float64, over shapes that meet every tile, for each kind of CPU; and that no template reads outside its arrays."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from rows import level, thinned

import flambeau as torch
from flambeau import _runtime
from flambeau.base import blas, kernels, prepacked
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
    few = itertools.product(
        (2, 3, 4, 5, 12, 16, 29, 64),
        (24, 31, 48, 97, 130),
        (64, 79, 255, 257, 1030, 2049),
        (False, True),
        (False, True),
    )
    for i, (m, n, k, ta, tb) in enumerate(itertools.islice(few, 0, None, every)):
        _check(m, n, k, (np.float32, np.float64)[i % 2], ta, tb, rng)


@pytest.mark.parametrize("cpu", ["", level("avx2"), "default"])
def test_products(cpu):
    """Each level runs in a process of its own: the CPU is looked at once."""
    guard_pages.run_alone(__file__, f"sweep({7 if cpu else 3})", FLAMBEAU_CPU=cpu, FLAMBEAU_PRODUCTS="own")


LARGE = (
    (257, 257, 128),
    (300, 241, 70),
    (700, 400, 513),
    (241, 1000, 65),
    (1400, 145, 300),
)  # by tiles, where there are


def _operands(m, n, k, ta, tb, rng):
    a, b = rng.normal(size=(k, m) if ta else (m, k)).astype("f"), rng.normal(size=(n, k) if tb else (k, n)).astype("f")
    return a.T if ta else a, b.T if tb else b


def _same_for_any_threads(a, b):
    torch.set_num_threads(2)
    got = blas.matmul(a, b)
    torch.set_num_threads(1)
    assert got.tobytes() == blas.matmul(a, b).tobytes()
    return got


def sweep_large() -> None:
    """Off by no more than sums of float32 in turn, also of rows and columns near both ends of the range; what isn't finite touches nothing else."""
    rng = np.random.default_rng(0)
    blas.share_threads()
    for (m, n, k), ta, tb in itertools.product(LARGE, (False, True), (False, True)):
        a, b = _operands(m, n, k, ta, tb, rng)
        for odd in (False, True):
            if odd:
                a[3] *= 1e-38
                a[7] *= 1e-44
                a[9] *= np.float32(1e36)
                a[200, :20] = 1e-44
                b[:, 5] *= np.float32(1e30)
                b[:, 6] *= 1e-30
                b[:, 100] *= 1e-38
                # What is small in a row meets what is great in a column.
                a[11, 1:] *= 1e-38
                b[0, 8], b[1:, 8] = 0, b[1:, 8] * np.float32(1e25)
            x, y = a.astype("d"), b.astype("d")
            got = _same_for_any_threads(a, b)
            assert np.isfinite(got[[0, 1, 2, 3, 7, 50, m - 1]]).all()
            here = np.isfinite(got)
            assert here.mean() > 0.99
            bound = (2.0**-23 * (np.abs(x) @ np.abs(y)) + 2.0**-149) * (k + 2)
            assert (np.abs(got - x @ y) <= bound)[here].all(), (m, n, k, ta, tb)
        a, b = _operands(m, n, k, ta, tb, rng)
        plain = _same_for_any_threads(a, b)
        a[20, 20], a[21, 1], a[m - 1, k - 1] = np.inf, np.nan, -np.inf
        b[7, 70], b[k - 1, n - 1], b[20, 3] = -np.inf, np.nan, 0
        got = _same_for_any_threads(a, b)
        with np.errstate(invalid="ignore"):
            want = a @ b
        np.testing.assert_array_equal(got[~np.isfinite(want)], want[~np.isfinite(want)])
        rows, columns = np.delete(np.arange(m), (20, 21, m - 1)), np.delete(np.arange(n), (3, 70, n - 1))
        np.testing.assert_array_equal(got[np.ix_(rows, columns)], plain[np.ix_(rows, columns)])


@pytest.mark.parametrize("cpu", ["", level("avx512"), level("avx2")])
def test_large_products(cpu):
    guard_pages.run_alone(__file__, "sweep_large()", FLAMBEAU_CPU=cpu, FLAMBEAU_PRODUCTS="own")


def large_stay_inside() -> None:
    blas.share_threads()
    for at_end in (False, True):
        guarded = guard_pages.GuardPages(at_end)
        for i, (m, n, k) in enumerate(LARGE):
            a, b = _operands(m, n, k, i % 2 == 0, i // 2 % 2 == 0, np.random.default_rng(0))
            a, b = (guarded(x) if x.flags.c_contiguous else guarded(x.T).T for x in (a, b))
            _runtime.matmul(a, b)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("cpu", ["", level("avx512")])
def test_large_products_stay_in_their_arrays(cpu):
    guard_pages.run_alone(__file__, "large_stay_inside()", FLAMBEAU_CPU=cpu, FLAMBEAU_PRODUCTS="own")


BF16 = torch.bfloat16.np


def _pairs(place=lambda x: x):
    """Operands in bfloat16, plain and transposed, over shapes that meet every kind of block and tail."""
    rng = np.random.default_rng(0)
    shapes = itertools.product(((), (2,)), (1, 5, 16, 17, 33, 70), (1, 15, 33, 64, 300), (1, 2, 31, 32, 33, 100))
    for i, (batch, m, n, k) in enumerate(shapes):
        ta, tb = i % 2, i // 2 % 2
        a, b = (
            place(rng.normal(size=(*batch, *s[:: -1 if t else 1])).astype(BF16))
            for s, t in (((m, k), ta), ((k, n), tb))
        )
        yield a.swapaxes(-1, -2) if ta else a, b.swapaxes(-1, -2) if tb else b


def sweep_bf16(way: int) -> None:
    """Off by at most half a unit of bfloat16 and what float32 sums are off by."""
    assert blas.bf16_products() <= way
    blas.share_threads()
    for a, b in _pairs():
        out = np.full((*a.shape[:-1], b.shape[-1]), np.nan, BF16)
        kernels.product_bf16([a, b], [out], alpha=1.0, beta=0.0)
        a, b = a.astype("d"), b.astype("d")
        want, terms = a @ b, np.abs(a) @ np.abs(b)
        assert (np.abs(out.astype("d") - want) <= 2.0**-8 * np.abs(want) + 2e-7 * (a.shape[-1] + 2) * terms).all()
    a = np.ones((40, 64), BF16)
    a[3, 5], a[20, 0], a[39, 63] = np.nan, np.inf, -np.inf
    out = (
        blas.matmul(a.astype("f"), np.ones((64, 64), "f"))
        if not blas.bf16_products()
        else blas.matmul(a, a[:1].repeat(64, 0))
    )
    assert np.isnan(out[3]).all() and (out[20] == np.inf).all() and (out[39] == -np.inf).all()
    assert (np.delete(out, (3, 20, 39), 0) == 64).all()


@pytest.mark.parametrize(
    "cpu, way", [("", 2), level("avx512_bf16", 1), level("avx512", 0), level("avx2", 0), ("default", 0)]
)
def test_products_of_bf16(cpu, way):
    guard_pages.run_alone(__file__, f"sweep_bf16({way})", FLAMBEAU_CPU=cpu)


def bf16_stays_inside() -> None:
    blas.share_threads()
    for at_end in (False, True):
        guarded = guard_pages.GuardPages(at_end)
        for a, b in itertools.islice(_pairs(guarded), 0, None, 3):
            out = guarded(np.zeros((*a.shape[:-1], b.shape[-1]), BF16))
            kernels.product_bf16([a, b], [out], alpha=1.0, beta=0.0)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("cpu", ["", level("avx512_bf16"), "default"])
def test_products_of_bf16_stay_in_their_arrays(cpu):
    guard_pages.run_alone(__file__, "bf16_stays_inside()", FLAMBEAU_CPU=cpu)


F = torch.nn.functional
ADDED = {
    "addmm": (lambda c, a, b: torch.addmm(c[0], a[0], b[0], beta=0.3, alpha=-1.7), lambda c, a, b: 0.3 * c[0] - 1.7 * (a[0] @ b[0])),
    "addmm, a row": (lambda c, a, b: torch.addmm(c[0, 0], a[0], b[0]), lambda c, a, b: c[0, 0] + a[0] @ b[0]),
    "addmm, a column, transposed": (
        lambda c, a, b: torch.addmm(c[0, 0][:, None], b[0].t(), a[0].t(), beta=2),
        lambda c, a, b: 2 * c[0, 0][:, None] + b[0].t() @ a[0].t(),
    ),
    "addmm_": (lambda c, a, b: c[0].clone().addmm_(a[0], b[0], alpha=0.5), lambda c, a, b: c[0] + 0.5 * (a[0] @ b[0])),
    "without the addend": (lambda c, a, b: torch.addmm(c[0] + torch.nan, a[0], b[0], beta=0), lambda c, a, b: a[0] @ b[0]),
    "the addend alone": (lambda c, a, b: torch.addmm(c[0], a[0], b[0], beta=3, alpha=0), lambda c, a, b: 3 * c[0]),
    "baddbmm": (lambda c, a, b: torch.baddbmm(c, a, b, beta=0.3), lambda c, a, b: 0.3 * c + a @ b),
    "baddbmm, spread": (lambda c, a, b: torch.baddbmm(c[:1], a, b), lambda c, a, b: c[:1] + a @ b),
    "addbmm": (lambda c, a, b: torch.addbmm(c[0], a, b, alpha=1.7), lambda c, a, b: c[0] + 1.7 * (a @ b).sum(0)),
    "addmv": (lambda c, a, b: torch.addmv(c[0, :, 0], a[0], b[0, :, 0], beta=1.7), lambda c, a, b: 1.7 * c[0, :, 0] + a[0] @ b[0, :, 0]),
    "linear": (lambda c, a, b: F.linear(a[0], b[0].t(), c[0, 0]), lambda c, a, b: c[0, 0] + a[0] @ b[0]),
    "linear, stacked": (lambda c, a, b: F.linear(a, b[0].t(), c[0, 0]), lambda c, a, b: c[0, 0] + a @ b[0]),
    "linear, a vector": (lambda c, a, b: F.linear(a[0, 0], b[0].t(), c[0, 0]), lambda c, a, b: c[0, 0] + a[0, 0] @ b[0]),
}  # fmt: skip


ADDED_SIZES = [(3, 5, 7), (40, 33, 64), (128, 100, 130), (1, 300, 280), (70, 1, 600)]


@pytest.mark.parametrize("sizes, dtype", thinned(ADDED_SIZES, [torch.bfloat16, torch.float16], torch.bfloat16), ids=str)
def test_products_with_an_addend_are_rounded_once(sizes, dtype):
    """As PyTorch's: a rounding of the product and one of the sum differ from one of both in a quarter of the elements."""
    m, k, n = sizes
    generator = torch.Generator().manual_seed(0)
    a, b, c = (torch.randn(2, *s, generator=generator).to(dtype) for s in ((m, k), (k, n), (m, n)))
    for name, (fn, exact) in ADDED.items():
        want = exact(c.double(), a.double(), b.double())
        torch.compiler.reset()
        run = torch.compile(fn, dynamic=False)
        for got in (*(fn(c, a, b) for _ in range(3)), run(c, a, b), torch.compile(fn, dynamic=True)(c, a, b)):
            assert got.dtype is dtype and got.shape == want.shape, name
            off = (
                (got != want.float().to(dtype)).sum().item()
            )  # sums in float32 leave hardly an element between two numbers
            assert off <= 1 + got.numel() // 100, (name, off)


def test_bf16_eager_and_compiled():
    """A step under autocast: the same numbers but for the order of sums; float32's but for the rounding."""
    torch.manual_seed(0)
    w, x = torch.randn(96, 128, requires_grad=True), torch.randn(4, 40, 128, requires_grad=True)

    def step(half):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            y = torch.nn.functional.linear(x, w)
            z = y @ y.transpose(1, 2)
        return y, z, *torch.autograd.grad(z.float().square().mean(), (w, x))

    want = step(False)
    eager, compiled = step(True), torch.compile(step)(True)
    for e, c, f in zip(eager, compiled, want):
        assert e.dtype is c.dtype
        for got in (e, c):
            torch.testing.assert_close(got.float(), f, rtol=0.02, atol=0.02 * f.abs().max().item())


def packed_as_unpacked(place=lambda x: x, shapes=None) -> int:
    """Products with a right operand that was packed before have the bits of those that pack it, whatever the threads; how many were tried."""
    rng, tried = np.random.default_rng(0), 0
    shapes = shapes or itertools.product((2, 9, 33, 65, 100, 290), (24, 31, 97, 130, 600), (1, 97, 513, 1030))
    for i, (m, n, k) in enumerate(shapes):
        dtype, transposed = (np.float32, np.float64, BF16)[i % 3], i // 3 % 2 == 0
        size, way = prepacked.elements(np.dtype(dtype), m, n, k, transposed)
        a, b = (rng.normal(size=s).astype(dtype) for s in ((m, k), (n, k) if transposed else (k, n)))
        a, b = place(a), place(b).T if transposed else place(b)
        if size > 0:
            torch.set_num_threads(2)
            got = prepacked.multiply(a, place(prepacked.pack(b, size, transposed, way)), n, transposed, way)
            torch.set_num_threads(1)
            assert (
                got.tobytes()
                == prepacked.multiply(a, prepacked.pack(b, size, transposed, way), n, transposed, way).tobytes()
            )
            want = np.empty((m, n), dtype)
            if dtype is BF16:
                kernels.product_bf16([a, b], [want], alpha=1.0, beta=0.0)
            else:
                want = _runtime.matmul(a, b if m > 64 else np.ascontiguousarray(b), 1)  # few rows: as if it lay by rows
            assert got.tobytes() == want.tobytes(), (m, n, k, dtype, transposed)
            tried += 1
    return tried


def at_least(cases: int) -> None:
    assert packed_as_unpacked() >= cases


@pytest.mark.parametrize(
    "cpu, products", [("", ""), ("", "own"), level("avx2", "own"), ("default", "own"), level("avx2", "")]
)
def test_packed_operands(cpu, products):
    least = 30 if products else 20  # the others are the library's
    guard_pages.run_alone(__file__, f"at_least({least})", FLAMBEAU_CPU=cpu, FLAMBEAU_PRODUCTS=products)


def packed_inside() -> None:
    for at_end in (False, True):
        shapes = (
            (70, 40, 9),
            (13, 33, 5),
            (65, 101, 70),
            (33, 49, 65),
            (9, 130, 33),
            (20, 34, 40),
            (66, 24, 400),
            (17, 50, 31),
            (66, 97, 33),
        )
        assert packed_as_unpacked(guard_pages.GuardPages(at_end), shapes) > 4


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_packed_operands_stay_in_their_arrays():
    guard_pages.run_alone(__file__, "packed_inside()", FLAMBEAU_PRODUCTS="own")


def test_packed_operands_of_another_size_are_refused():
    blas.share_threads()
    a, packed, out = np.ones((70, 8), "f"), np.ones(11, "f"), np.ones((70, 40), "f")
    with pytest.raises(MemoryError):
        kernels.product_packed([a, packed], [out], transposed=True, f64=False, way=kernels.Product.PANELS)
    with pytest.raises(MemoryError):
        kernels.prepack([a], [packed], transposed=False, f64=False, way=kernels.Product.PANELS)


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
        for m, n, k in (
            (13, 33, 5),
            (16, 100, 17),
            (70, 40, 9),
            (5, 3, 4),
            (2, 131, 67),
            (4, 101, 97),
            (7, 50, 131),
            (11, 34, 150),
            (33, 49, 400),
        ):
            for ta, tb in itertools.product((False, True), repeat=2):
                guarded = guard_pages.GuardPages(at_end)
                a = guarded(rng.normal(size=(k, m) if ta else (m, k)).astype("f"))
                b = guarded(rng.normal(size=(n, k) if tb else (k, n)).astype("f"))
                for choice in (0, 1):
                    _runtime.matmul(a.T if ta else a, b.T if tb else b, choice)
        for x_shape, w_shape, rest in how.values():
            guarded = guard_pages.GuardPages(at_end)
            x, w = guarded(rng.normal(size=x_shape).astype("f")), guarded(rng.normal(size=w_shape).astype("f"))
            g = guarded(blas.convolve(0, x, w, None, (), *rest))
            blas.convolve(1, g, w, None, x_shape[2:], *rest)
            blas.convolve(2, g, x, None, w_shape[2:], *rest)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_native_kernels_read_nothing_outside_their_arrays():
    guard_pages.run_alone(__file__, "read_only_inside()")
