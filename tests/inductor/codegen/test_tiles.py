"""Kernels that only move memory: tiles of loops that read across, stores past the cache, padding; beside eager, for every dtype and level of CPU, and within their arrays."""

import platform

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.inductor.codegen import nests
from flambeau.inductor.settings import config
from flambeau.inductor.utils import run_and_get_code
from flambeau.testing import guard_pages

F = torch.nn.functional
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.int32, torch.int64, torch.bool]

ACROSS = [
    ("transposed", lambda x: x.t().contiguous()),
    ("transposed, computed", lambda x: x.t() * 2 + x.t().abs()),
    ("flipped lines", lambda x: x.flip(0).t().contiguous()),
    ("flipped elements", lambda x: x.flip(1).t().contiguous()),
    ("across and along", lambda x: x[:16, :16].t() + x[-16:, -16:]),
    ("two results", lambda x: (x.t().contiguous(), x.t().to(torch.float64))),
    ("divided", lambda x: x.t() // (x.t().abs() + 1)),
]
SHAPES = [(128, 128), (64, 257), (130, 100), (1000, 17), (129, 1030)]
PERMUTED = [
    ((3, 70, 90), (0, 2, 1)),
    ((70, 3, 90), (2, 1, 0)),
    ((4, 20, 30, 40), (0, 2, 3, 1)),
    ((4, 20, 30, 40), (3, 0, 2, 1)),
    ((20, 40, 4, 30), (1, 2, 3, 0)),
]
PADS = [
    ((4, 6), (1, 2, 3, 0)),
    ((4, 6), (1, -2, 0, 3)),
    ((3, 4, 5), (-1, 2, -1, -1, 2, 2)),
    ((3, 4, 5), (0, 0, 1, 1)),
    ((2, 3, 4, 5), (2, 2, 2, 2, 1, 0)),
    ((2, 3, 0, 4), (1, 1, 1, 1)),
    ((70, 90), (5, 7, 1, 1)),
]


def same(fn, *inputs) -> None:
    """Compiled as eager, for each input."""
    torch._dynamo.reset()
    compiled = torch.compile(fn)
    for x in inputs:
        results = [r if isinstance(r, tuple) else (r,) for r in (fn(x), compiled(x))]
        for want, got in zip(*results):
            assert got.dtype is want.dtype and got.shape == want.shape and got.stride() == want.stride()
            assert torch.equal(got, want)


def draw(shape, dtype):
    return torch.from_numpy(np.random.default_rng(0).normal(0, 40, shape).astype(np.float32)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tiles(dtype):
    for shape in SHAPES if dtype is torch.float32 else SHAPES[1:3]:
        x = draw(shape, dtype)
        for name, fn in ACROSS:
            if dtype is not torch.bool or name in ("transposed", "flipped lines"):
                same(fn, x)


@pytest.mark.parametrize("shape, order", PERMUTED, ids=str)
def test_tiles_of_more_dimensions(shape, order):
    same(lambda x: x.permute(order).contiguous(), draw(shape, torch.float32))


def test_tiles_of_symbolic_sizes():
    fn = torch.compile(lambda x, y: x.t() + y, dynamic=True)
    for a, b in ((130, 150), (200, 70), (64, 64), (65, 1000), (17, 2000)):
        x, y = draw((a, b), torch.float32), draw((b, a), torch.float32)
        assert torch.equal(fn(x, y), x.t() + y)


STREAMS = [
    lambda x: x + 1,
    lambda x: x.t().contiguous(),
    lambda x: torch.cat([x, x], 1),
    lambda x: torch.cat([x[1:], x]),
    lambda x: (x.to(torch.float64), x.to(torch.bfloat16), x > 0),
    lambda x: (x * 2, (x * 2).sum(1)),
    lambda x: F.pad(x, (32, 32, 1, 1)),
    lambda x: torch.softmax(x, 1),
    # Lines that begin anywhere: what is left to a cache line's border is written first.
    lambda x: F.pad(x, (1, 1, 1, 1)),
    lambda x: torch.roll(x, 5, 1),
    lambda x: x.flip(1),
    lambda x: x.flip(0, 1)[:, 3:] * 2,
    lambda x: x[torch.arange(x.shape[0]).flip(0), 1:],
    lambda x: torch.cat([x[:, 1:], x[:, :7].abs()], 1),
    lambda x: F.pad(x, (3, 0)).to(torch.bfloat16),
    lambda x: F.pad(x, (3, 0)) > 0,
    lambda x: (x[:, 1:] * 2, (x[:, 1:] * 2).sum(1)),
]


@pytest.mark.parametrize("shape", [(64, 256), (67, 130), (5, 20000), (129, 1030)], ids=str)
def test_stores_past_the_cache(shape):
    x, streams = draw(shape, torch.float32), 0
    for fn in STREAMS:
        results = []
        for size in (1 << 40, 1024):
            torch._dynamo.reset()
            with config.patch({"streamed_bytes": size}):
                out, sources = run_and_get_code(torch.compile(fn), x)
            results.append(out if isinstance(out, tuple) else (out,))
        streams += any("!nontemporal" in text for text in sources)
        for want, got in zip(*results):
            assert torch.equal(got, want)
    assert streams >= (5 if shape == (64, 256) else 2) or platform.machine() not in ("x86_64", "AMD64")


@pytest.mark.parametrize("shape, amounts", PADS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_padding(shape, amounts, dtype):
    values = (0, 1.0059, float("nan")) if dtype.is_floating_point else (0, True, -1)
    for value in values:
        want, got = (
            fn(draw(shape, dtype))
            for fn in (
                lambda x: F.pad(x, amounts, value=value),
                torch.compile(lambda x: F.pad(x, amounts, value=value)),
            )
        )
        np.testing.assert_array_equal(got.float().numpy(), want.float().numpy())
        assert got.dtype is want.dtype and got.stride() == want.stride()


def test_numbers_as_elements_are_rounded():
    """A factory's number was cut off to bfloat16 by compiled code."""
    for dtype in (torch.bfloat16, torch.float16):
        for fn in (
            lambda x: torch.full((3,), 1.0059, dtype=dtype),
            lambda x: torch.full_like(x, 1.0059) * 1000,
            lambda x: x.new_full((3,), 1.0059),
            lambda x: x.index_fill(0, torch.tensor([0, 2]), 1.0059),
        ):
            same(fn, torch.zeros(3, dtype=dtype))


FLIPS = [
    lambda x: x.flip(1),
    lambda x: x.flip(0, 1),
    lambda x: x.flip(1)[:, : x.shape[1] // 2],
    lambda x: (x.flip(1), x.flip(1).to(torch.float32) * 2),
    lambda x: x.flip(1).to(torch.float32) + x.flip(1)[:, :1].to(torch.float32),
    lambda x: x.flip(1).to(torch.float32) + x.to(torch.float32),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [1, 3, 7, 31, 32, 33, 64, 129, 1000, 4098])
def test_flips(width, dtype):
    for fn in FLIPS:
        same(fn, draw((5, width), dtype))


def test_rows_by_index_ask_for_no_row_outside():
    """The next row's address is asked for ahead, by an index that nobody has looked at."""
    x = draw((200, 1030), torch.float32)
    fn = torch.compile(lambda x, i: x[i, 1:] * 2)
    for rows in ([0, 199, -1, -200, 7], [5], list(range(199, -1, -1))):
        i = torch.tensor(rows)
        assert torch.equal(fn(x, i), x[i, 1:] * 2)
    for bad in ([0, 200], [1 << 62, 0], [0, -201, 1]):
        with pytest.raises(IndexError):
            fn(x, torch.tensor(bad))


ORDERED = [
    ((4, 20, 6, 64), lambda x: x.permute(0, 2, 1, 3).contiguous()),
    ((6, 5, 96), lambda x: x.transpose(0, 1) * 2),
    ((6, 5, 33), lambda x: x.transpose(0, 1).contiguous()),
    ((6, 5, 64), lambda x: x.transpose(0, 1) + x[:5, :1]),
    ((5, 6, 64), lambda x: (x.transpose(0, 1).contiguous(), x.transpose(0, 1) > 0)),
    ((8, 1024), lambda x: x[torch.tensor([3, -1, 0, 0, 7, 2, -8, 5])]),
    ((8, 2048), lambda x: x[torch.tensor([3, -1, 0, 0])] + x[:4] * x[torch.tensor([1, 1, 2, 3])]),
    ((8, 1024), lambda x: x[torch.tensor([3, -1, 0, 0, 7])]),
    ((8, 1100), lambda x: x[torch.tensor([3, -1, 0, 0])]),
]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_order_of_reading(dtype, ordered, monkeypatch):
    """Whether large results are made in the order of what is read is the processor's to say."""
    monkeypatch.setattr(nests, "follows_one_line", lambda: ordered)
    for shape, fn in ORDERED:
        with config.patch({"streamed_bytes": 1024}):
            same(fn, draw(shape, dtype))
    take = torch.compile(lambda x, i: x[i])
    with config.patch({"streamed_bytes": 1024}):
        for bad in ([0, 1, 2, 8], [1 << 62, 0, 1, 2], [0, 0, 0, 0, 0, 0, -9, 1]):
            with pytest.raises(IndexError):
                take(draw((8, 1024), dtype), torch.tensor(bad))


PARTS = [
    ("twice", lambda x: torch.cat([x, x], 1)),
    ("computed", lambda x: torch.cat([x * 2, x.abs(), x - 1], 1)),
    ("of another", lambda x: torch.cat([x, x.flip(1), x.flip(0)], 1) * 2),
    ("nine", lambda x: torch.cat([x + i for i in range(9)], 1)),
    ("below one another", lambda x: torch.cat([x, x + 1])),
    ("in between", lambda x: torch.stack([x, x[:, :1] - x], 2)),
    ("across", lambda x: torch.cat([x.t(), x.t() * 2], 1)),
    ("unlike", lambda x: torch.cat([x, x[:, 1:], x[:, :-1], x], 1)),
    ("converted", lambda x: torch.cat([x, x > 0], 1)),
    ("by index", lambda x: torch.cat([x, x[torch.arange(x.shape[0]).flip(0)]], 1)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (70, 33), (130, 64), (64, 700)], ids=str)
def test_parts_of_a_buffer(shape, dtype):
    """Parts of equal shape are made by one kernel."""
    for name, fn in PARTS:
        if not dtype.is_complex or name not in ("computed", "converted"):
            same(fn, draw(shape, dtype))
    _, sources = run_and_get_code(torch.compile(PARTS[0][1]), draw((70, 33), torch.float32))
    assert sum(text.count("define void") for text in sources) == 1


def within_arrays(every: int = 1) -> None:
    """Every so many of the cases, with the input at either end of its pages."""
    places = guard_pages.GuardPages(False), guard_pages.GuardPages(True)
    cases = [
        (dtype, shape, fn)
        for dtype in (np.float32, np.float64, np.int8)
        for shape in (SHAPES if dtype is np.float32 else SHAPES[1:3])
        for fn in (*(fn for _, fn in ACROSS[:5]), *STREAMS[:4], *STREAMS[8:14])
    ]
    cases += [(np.float32, (70, 33), fn) for _, fn in PARTS] + [(np.float32, shape, fn) for shape, fn in ORDERED]
    with config.patch({"streamed_bytes": 1024}):
        for dtype, shape, fn in cases[::every]:
            x = np.random.default_rng(0).normal(0, 40, shape).astype(dtype)
            same(fn, *[torch.from_numpy(place(x)) for place in places])


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize(
    "cpu, allocator, every",
    [
        ("", "", 1),
        level("avx2", "", 4),
        ("default", "system", 4),
        pytest.param("default", "system", 1, marks=pytest.mark.slow),
    ],
)
def test_kernels_stay_in_their_arrays(cpu, allocator, every):
    guard_pages.run_alone(__file__, f"within_arrays({every})", FLAMBEAU_CPU=cpu, FLAMBEAU_ALLOCATOR=allocator)
