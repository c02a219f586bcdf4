"""Ways of products and convolutions that are chosen by measuring (inductor/tuning/products.py). No clock but a fake one decides here."""

import contextlib
import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime
from flambeau.base import blas, disk, kernels
from flambeau.base.kernels import Way
from flambeau.inductor.settings import config
from flambeau.inductor.tuning import products as autotune
from flambeau.inductor.tuning import rows as autotune_rows

F = torch.nn.functional


class Clock:
    """Stands still but for what is told."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(autotune, "clock", made)
    return made


@pytest.fixture
def cold(monkeypatch, tmp_path):
    """An empty cache, in memory and on disk."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(autotune, "_known", {})
    torch._dynamo.reset()
    return tmp_path


def choice(clock, seconds, wrong=(), raises=()):
    """A step whose ways take so many seconds, by name."""
    names = list(seconds)
    ran = []

    def run(number):
        name = names[number]
        ran.append(name)
        clock.now += seconds[name]
        if name in raises:
            raise RuntimeError("no\nluck")
        return "wrong" if name in wrong else "right"

    made = autotune.Choice("a step", {n: i for i, n in enumerate(names)}, run, lambda got, want: got == want)
    return made, ran


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        ({"usual": 1e-3, "own": 2e-3, "library": 5e-4}, "library"),
        ({"usual": 1e-3, "own": 9.8e-4}, "usual"),  # less than 3 %
        ({"usual": 1e-3, "own": 9.6e-4, "library": 9.5e-4}, "library"),
        ({"usual": 1e-3}, "usual"),
        ({"usual": 1e-6, "own": 1e-7}, "own"),
    ],
)
def test_the_fastest_is_taken(clock, seconds, wanted):
    assert autotune.decide(choice(clock, seconds)[0], 10.0) == wanted


@pytest.mark.parametrize("how", ["wrong", "raises"])
def test_what_fails_is_dropped_with_one_line(clock, caplog, how):
    made, ran = choice(clock, {"usual": 1e-3, "own": 1e-6, "library": 8e-4}, **{how: ["own"]})
    with caplog.at_level(logging.WARNING, "flambeau.inductor"):
        assert autotune.decide(made, 10.0) == "library"
    (line,) = [r.getMessage() for r in caplog.records if "autotuning" in r.getMessage()]
    assert "own is dropped for a step" in line and "\n" not in line
    assert ran.count("own") == 1


@pytest.mark.parametrize("seconds", [1e-3, 0.3, 0.6, 5.0])
def test_time_is_bounded(clock, seconds):
    """Nothing begins after the end, and a slow way isn't repeated beyond its share."""
    made, ran = choice(clock, {"usual": seconds, "own": seconds * 2, "library": seconds / 2})
    end = config.autotune_seconds
    autotune.decide(made, end)
    assert clock.now <= end + 2 * seconds
    for name, each in (("usual", seconds), ("own", seconds * 2)):
        assert ran.count(name) * each <= config.autotune_seconds * autotune.SHARE + autotune.CALLS * 1e-3 + each


def test_too_little_time_leaves_the_usual_way(clock):
    made, _ = choice(clock, {"usual": 0.1, "own": 0.05})
    assert autotune.decide(made, 0.2) is None


def measured(monkeypatch):
    """What is decided from now on, with a clock of its own: the second way of each step wins."""
    seen = []

    def decide(choice, end):
        seen.append(choice.key)
        for number in choice.ways.values():
            assert choice.agrees(choice.run(number), choice.run(0))
        return list(choice.ways)[min(1, len(choice.ways) - 1)]

    monkeypatch.setattr(autotune, "decide", decide)
    return seen


def program(a, b, x, w):
    return torch.mm(a, b), F.conv2d(x, w, padding=1)


def operands():
    rng = np.random.default_rng(0)
    shapes = ((40, 64), (64, 48), (2, 8, 12, 12), (16, 8, 3, 3))
    return [torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in shapes]


HOW = [{"mode": "max-autotune"}, {"mode": "max-autotune-no-cudagraphs"}, {"options": {"max_autotune": True}}]


@pytest.mark.parametrize("how", HOW)
def test_choices_are_measured_once(cold, monkeypatch, how):
    seen = measured(monkeypatch)
    args, want = operands(), program(*operands())
    for _ in range(2):
        for got, expected in zip(torch.compile(program, **how)(*args), want):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
        assert len(seen) == 2
        torch._dynamo.reset()
    autotune._known.clear()  # another process
    with config.patch(fx_graph_cache=True, autotune_seconds=3.0):  # under which no whole graph is kept
        torch.compile(program, **how)(*args)
    assert len(seen) == 2


def test_what_is_damaged_is_measured_again(cold, monkeypatch):
    seen = measured(monkeypatch)
    torch.compile(program, mode="max-autotune")(*operands())
    entries = [os.path.join(at, f) for at, _, files in os.walk(cold / "entries" / "choices") for f in files]
    assert len(entries) == 2
    first, second = (os.path.relpath(e, cold / "entries") for e in entries)
    with open(entries[0], "r+b") as f:
        f.write(b"damaged")
    disk.write_entry(second, json.dumps(["another step", "own"]).encode())
    torch._dynamo.reset()
    autotune._known.clear()
    with config.patch(autotune_seconds=3.0):
        torch.compile(program, mode="max-autotune")(*operands())
    assert len(seen) == 4 and first


def test_nothing_is_measured_without_the_mode(cold, monkeypatch):
    seen = measured(monkeypatch)
    for how in ({}, {"mode": "default"}, {"mode": "reduce-overhead"}):
        torch.compile(program, **how)(*operands())
    assert not seen and not (cold / "entries" / "choices").exists()


def test_choices_can_be_read(cold, monkeypatch):
    measured(monkeypatch)
    found = []
    with contextlib.ExitStack() as stack:
        from flambeau.inductor import debug

        debug.listeners.append(found.append)
        stack.callback(debug.listeners.remove, found.append)
        torch.compile(program, mode="max-autotune")(*operands())
    text = "".join(found)
    assert "; product f32 NN 40x64x48 ld 64 48: own" in text and "; convolution (2, 8, 12, 12)" in text


def test_a_way_that_fails_leaves_the_result_right(cold, monkeypatch, caplog):
    def broken(a, b, choice=0):
        if choice == 2:
            raise RuntimeError("broken")
        return native(a, b, choice)

    native = _runtime.matmul
    monkeypatch.setattr(autotune._runtime, "matmul", broken)
    args = operands()
    with caplog.at_level(logging.WARNING, "flambeau.inductor"):
        got = torch.compile(torch.mm, mode="max-autotune")(*args[:2])
    assert sum("library is dropped" in r.getMessage() for r in caplog.records) == 1
    np.testing.assert_allclose(got.numpy(), torch.mm(*args[:2]).numpy(), rtol=1e-4, atol=1e-4)


PRODUCTS = [(1, 2, 3), (7, 5, 3), (33, 65, 17), (64, 576, 64), (130, 31, 257), (200, 300, 400)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", PRODUCTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_way_of_a_product(sizes, dtype, threads):
    m, k, n = sizes
    rng = np.random.default_rng(0)
    before = torch.get_num_threads()
    blas.share_threads()
    try:
        torch.set_num_threads(threads)
        for transposed in range(4):
            a = rng.standard_normal((3, k, m) if transposed & 1 else (3, m, k)).astype(dtype)
            b = rng.standard_normal((3, n, k) if transposed & 2 else (3, k, n)).astype(dtype)
            a = a.transpose(0, 2, 1) if transposed & 1 else a
            b = b.transpose(0, 2, 1) if transposed & 2 else b
            want = np.matmul(a.astype(np.float64), b.astype(np.float64))
            bound = (k + 4) * np.finfo(dtype).eps * np.matmul(np.abs(a), np.abs(b))
            for name, number in autotune._GEMM.items():
                assert (np.abs(_runtime.matmul(a, b, number) - want) <= bound).all(), name
                assert (np.abs(_runtime.matmul(a[0], b[0], number) - want[0]) <= bound[0]).all(), name
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("number", [-1, 3, 15, 48, 1 << 40])
def test_there_is_no_such_way(number):
    blas.share_threads()
    with pytest.raises(ValueError, match="there is no choice"):
        _runtime.matmul(np.ones((4, 4)), np.ones((4, 4)), number)


# images, channels, outputs, groups, extent, kernel, stride, padding, dilation
CONVOLUTIONS = [
    (2, 32, 32, 1, 14, 3, 1, 1, 1),
    (2, 3, 8, 1, 17, 3, 2, 1, 1),
    (1, 16, 24, 1, 12, 1, 1, 0, 1),
    (2, 8, 8, 8, 11, 3, 1, 1, 1),
    (1, 6, 4, 2, 13, 5, 1, 2, 2),
    (3, 2, 2, 1, 9, 3, 3, 0, 1),
]


@pytest.mark.parametrize("row", CONVOLUTIONS)
@pytest.mark.parametrize("f64", [0, 1])
def test_every_way_of_a_convolution(row, f64):
    images, channels, outputs, groups, extent, kernel, stride, padding, dilation = row
    dtype, rng = (np.float64 if f64 else np.float32), np.random.default_rng(0)
    draw = lambda *s: rng.standard_normal(s).astype(dtype)  # noqa: E731
    x, w, b = (
        draw(images, channels, extent, extent),
        draw(outputs, channels // groups, kernel, kernel),
        draw(outputs),
    )
    how = {"stride": (1, stride, stride), "padding": (0, padding, padding), "dilation": (1, dilation, dilation)}
    blas.share_threads()
    pairs = (stride,) * 2, (padding,) * 2, (dilation,) * 2
    wide = [a.astype(np.float64) for a in (x, w, b)]
    y = blas.convolve(0, *wide, (), *pairs, groups)
    g = draw(*y.shape)
    wants = [
        ((x, w, b), y),
        ((g, w), blas.convolve(1, g.astype(np.float64), wide[1], None, x.shape[2:], *pairs, groups)),
        ((g, x), blas.convolve(2, g.astype(np.float64), wide[0], None, w.shape[2:], *pairs, groups)),
    ]
    for what, (given, want) in enumerate(wants):
        numbers = {"direction": what, "f64": f64, "groups": groups, **how}
        operands = [*given, None][:3]
        found, made = np.zeros(1, np.int64), np.empty(want.shape, dtype)
        kernels.convolution_ways([*operands, made], [found], **numbers, way=Way.USUAL)
        assert found[0] & 1 << Way.GATHER
        for way in Way:  # one that can't make this is the usual one
            out = np.full(want.shape, np.nan, dtype)
            kernels.convolution(operands, [out], **numbers, way=way)
            assert np.abs(out - want).max() <= 64 * np.finfo(dtype).eps * np.abs(want).max(), (what, way)


def test_the_log_is_asked_for_by_the_environment(tmp_path):
    program = (
        "import flambeau as torch; a = torch.randn(64, 48); torch.compile(torch.mm, mode='max-autotune')(a, a.t())"
    )
    env = {**os.environ, "TORCH_LOGS": "autotuning", "FLAMBEAU_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "[__autotuning]" in done.stderr


def chained(x, w, v):
    """A launch over rows: two products, a kernel between them and one behind."""
    return F.layer_norm(x + F.linear(F.gelu(F.linear(x, w)), v), (128,))


def of_a_chain():
    torch.manual_seed(0)
    return torch.randn(512, 128), torch.randn(256, 128), torch.randn(128, 256)


@pytest.mark.parametrize("way", sorted(autotune_rows.NAMES))
def test_ways_of_a_chain(way, cold, monkeypatch):
    """Our products have the same bits in blocks of any size; what was chosen is kept for the next graph."""
    args = of_a_chain()
    with torch.no_grad():
        want = torch.compile(chained)(*args)
        ways = {}

        def best(times, least):
            ways.update(times)
            return way if way in times else "usual"

        monkeypatch.setattr(autotune, "best", best)
        made = torch.compile(chained, mode="max-autotune")
        got = made(*args)
        monkeypatch.setattr(autotune_rows, "_measured", lambda *args: pytest.fail("it was measured before"))
        torch._dynamo.reset()
        assert torch.equal(torch.compile(chained, mode="max-autotune")(*args), got)
    assert len(ways) > 3  # of five: one is the usual one
    if way in autotune_rows.WAYS:
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    else:
        assert torch.equal(got, want)
    kept = [p.read_bytes() for p in (cold / "entries" / "choices").rglob("a*") if p.is_file()]
    assert len(kept) == 1 and b"chain over 512 rows" in kept[0]


@pytest.mark.parametrize("how", ["wrong", "raises"])
def test_a_way_of_a_chain_that_fails_is_dropped_with_one_line(how, cold, monkeypatch, caplog):
    seen = []

    def agree(made, wanted):
        seen.append(made)
        if len(seen) == 1 and how == "raises":
            raise RuntimeError("no\nluck")
        return len(seen) != 1

    monkeypatch.setattr(autotune_rows, "_agree", agree)
    args = of_a_chain()
    with torch.no_grad(), caplog.at_level(logging.WARNING, "flambeau.inductor"):
        want = torch.compile(chained)(*args)
        got = torch.compile(chained, mode="max-autotune")(*args)
    (line,) = [r.getMessage() for r in caplog.records if "autotuning" in r.getMessage()]
    assert "is dropped for chain over 512 rows" in line and "\n" not in line
    assert len(seen) > 2
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_chains_without_time_stay_as_usual(cold):
    args = of_a_chain()
    with torch.no_grad(), config.patch(autotune_seconds=0.0):
        assert torch.equal(torch.compile(chained, mode="max-autotune")(*args), torch.compile(chained)(*args))
    assert not list(cold.rglob("choices/*/a*"))
