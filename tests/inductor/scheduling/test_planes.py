"""Convolutions whose planes go through the kernels behind them as they are finished: the bits of the same steps apart, for every way that makes a convolution."""

import itertools

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.inductor import compile, debug
from flambeau.inductor.settings import config
from flambeau.inductor.tuning import products as autotune
from flambeau.testing import guard_pages

F = torch.nn.functional
TAKEN = "planes, as they are finished"

# way, input, outputs, taps, stride, padding, groups; transposed where outputs are negative.
CASES = [
    ("gather", (3, 5, 7, 6), 12, (3, 3), 1, 1, 1),  # several images in a block
    ("gather", (2, 12, 31, 33), 24, (3, 2), 1, 1, 1),  # an image in bands
    ("gather", (9, 18, 5, 3), 32, (1, 1), 1, 0, 1),
    ("gather", (2, 18, 19, 20), 12, (1, 1), 2, 0, 3),
    ("gather", (3, 4, 11, 5, 7), 6, (3, 1, 2), 1, 1, 1),
    ("gather", (3, 14, 9, 10), -16, (3, 3), 2, 1, 1),
    ("winograd", (2, 32, 37, 29), 48, (3, 3), 1, 1, 1),  # an image in strips
    ("winograd", (9, 48, 13, 14), 32, (3, 3), 1, 0, 1),  # two images in a strip
    ("winograd", (3, 32, 8, 7), 32, (3, 3), 1, 1, 1),  # few tiles
    ("winograd", (2, 32, 37, 29), -48, (3, 3), 1, 1, 1),
    ("winograd", (2, 3, 40, 41), 20, (7, 7), 2, 3, 1),  # rows of tiles
    ("winograd", (2, 3, 150, 224), 16, (7, 7), 2, 3, 1),  # in bands
    ("winograd", (3, 32, 333), 32, (3,), 1, 1, 1),
    ("shift", (2, 3, 40, 41), 20, (7, 7), 2, 3, 1),
    ("shift", (1, 32, 131, 66), 24, (3, 3), 1, 1, 1),  # in bands
    ("shift", (11, 8, 8, 8), 112, (3, 3), 1, 1, 1),  # images together
    ("shift", (1, 12, 17, 19), 400, (3, 3), 1, 1, 1),  # channels in cuts
    ("shift", (3, 12, 333), 20, (5,), 1, 2, 2),
    ("shift", (3, 16, 14, 15), -12, (2, 2), 2, 0, 1),
    ("point", (3, 18, 19, 20), 12, (1, 1), 1, 0, 1),
    ("point", (9, 18, 5, 3), 32, (1, 1), 1, 0, 1),  # transposed, and back
    ("point", (7, 6, 91, 90), -5, (1, 1), 1, 0, 1),  # some images at a time
    ("taps", (3, 6, 17, 15), 12, (3, 3), 1, 1, 6),
    ("taps", (2, 9, 21, 20), -9, (5, 3), 2, 1, 9),
    ("depthwise", (3, 24, 11, 13), 24, (5, 5), 2, 2, 24),
    ("depthwise", (2, 37, 45, 44), 37, (3, 3), 1, 1, 37),
    ("depthwise", (3, 32, 9, 10), -32, (3, 3), 1, 1, 32),
]


def relu(y, o):
    return torch.relu(y)


def normalised(y, o):
    return F.silu(F.batch_norm(y, o.mean, o.variance, o.scale, o.shift))


def residual(y, o):
    return F.relu(y * o.scale.reshape(-1, *[1] * (y.dim() - 2)) + o.other)


def kept(y, o):
    return y, F.hardswish(y)


def squeezed(y, o):
    z = F.silu(y)
    return z, z.mean(tuple(range(2, y.dim())), keepdim=True)


EPILOGUES = [relu, normalised, residual, kept, squeezed]


class Operands:
    """Of one case, by name; the convolution takes ``x``, ``weight`` and ``bias``."""

    def __init__(self, case, dtype=np.float32, seed=0):
        self.way, shape, outputs, taps, stride, padding, self.groups = case
        rng = np.random.default_rng(seed)
        self.transposed, outputs = outputs < 0, abs(outputs)
        self.stride, self.padding = stride, padding
        ends = (shape[1], outputs // self.groups) if self.transposed else (outputs, shape[1] // self.groups)

        def made(*sizes):
            return torch.from_numpy(rng.normal(size=sizes).astype(dtype))

        self.x, self.weight, self.bias = made(*shape), made(*ends, *taps) * 0.3, made(outputs)
        self.mean, self.scale, self.shift = made(outputs), made(outputs), made(outputs)
        self.variance = made(outputs).abs() + 0.5
        self.other = made(*self.convolution().shape)

    def convolution(self):
        names = (
            ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
            if self.transposed
            else ("conv1d", "conv2d", "conv3d")
        )
        fn = getattr(F, names[self.x.dim() - 3])
        return fn(self.x, self.weight, self.bias, stride=self.stride, padding=self.padding, groups=self.groups)

    def exact(self):
        out = object.__new__(Operands)
        out.__dict__ = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in self.__dict__.items()}
        return out


def run(operands, epilogue, patch, fused=True):
    """(results of the compiled program, its source). The way is chosen as if it had been measured; a graph that the disk keeps has the way of the case
    that compiled it."""
    seen = []
    torch._dynamo.reset()
    patch.setattr(autotune, "recalled", lambda key, names: operands.way if key.startswith("convolution") else "usual")
    debug.listeners.append(seen.append)
    try:
        with (
            config.patch(planes_bytes=0, epilogue_fusion=fused, max_autotune=True),
            torch._functorch.config.patch(enable_autograd_cache=False),
        ):
            out = torch.compile(lambda o: epilogue(o.convolution(), o), dynamic=False)(operands)
    finally:
        debug.listeners.pop()
    source = "\n".join(seen)
    assert (TAKEN in source) == fused, source[:2000]
    return (out if isinstance(out, tuple) else (out,)), source


def check(case, epilogue, patch, dtype=np.float32):
    o = Operands(case, dtype)
    got, _ = run(o, epilogue, patch)
    apart, _ = run(o, epilogue, patch, fused=False)
    exact = o.exact()
    wanted = epilogue(exact.convolution(), exact)
    for a, b, c in zip(got, apart, wanted if isinstance(wanted, tuple) else (wanted,)):
        assert a.stride() == b.stride() and torch.equal(a, b), (case, epilogue.__name__)
        bound = 512 * float(np.finfo(dtype).eps) * max(1.0, float(c.abs().max()))
        assert float((a.double() - c).abs().max()) <= bound, (case, epilogue.__name__)
    return got


@pytest.mark.parametrize("epilogue", EPILOGUES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def test_bits_are_those_of_the_steps_apart(case, epilogue, monkeypatch):
    check(case, epilogue, monkeypatch)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c[0] in ("gather", "point", "taps")], ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}"
)
def test_float64(case, monkeypatch):
    check(case, residual, monkeypatch, np.float64)


@pytest.mark.parametrize("case", CASES[1::2], ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def test_threads_change_no_bit(case, monkeypatch):
    o, before, found = Operands(case), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found += [run(o, f, monkeypatch)[0] for f in (normalised, squeezed)]
    finally:
        torch.set_num_threads(before)
    for k, other in enumerate(found[2:]):
        assert all(map(torch.equal, found[k % 2], other))


@pytest.mark.parametrize(
    "case", [c for c in CASES if c[0] in ("winograd", "shift")], ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}"
)
def test_what_is_made_again_goes_through_the_kernels_again(case, monkeypatch):
    """Results that aren't finite: these ways leave them to another one, after some planes have been handed over."""
    o = Operands(case)
    last = (-1,) * o.x.dim()
    for place, value in (((0,) * o.x.dim(), np.inf), (last, np.nan)):
        o.x[place] = value
        other = o.other.clone()
        for epilogue in (normalised, residual, kept):
            got, apart = run(o, epilogue, monkeypatch)[0], run(o, epilogue, monkeypatch, fused=False)[0]
            for a, b in zip(got, apart):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
            finite = np.isfinite(got[-1].numpy())
            assert finite.any() and not finite.all()
        assert torch.equal(o.other, other)


def test_the_only_reader_writes_over_the_result(monkeypatch):
    o = Operands(CASES[6])
    for epilogue in (relu, normalised, residual):
        assert "arena of 0 bytes" in run(o, epilogue, monkeypatch)[1]
    assert " lies in " not in run(o, kept, monkeypatch)[1]  # it is wanted itself


def test_who_reads_other_elements_stays_behind(monkeypatch):
    def flipped(y, o):
        return torch.relu(y).flip(1) + y

    def statistics(y, o):
        return F.relu(F.batch_norm(y, None, None, o.scale, o.shift, True))

    for f in (flipped, statistics):
        o = Operands(CASES[0])
        seen = []
        debug.listeners.append(seen.append)
        try:
            with config.patch(planes_bytes=0):
                got = torch.compile(lambda o, f=f: f(o.convolution(), o))(o)
        finally:
            debug.listeners.pop()
        assert TAKEN not in "".join(seen)
        assert torch.allclose(got, f(o.convolution(), o), rtol=1e-4, atol=1e-4)


def test_small_results_and_sizes_unknown_stay_apart():
    for sizes, dynamic in (((2, 3, 9, 9), False), ((8, 3, 70, 70), True)):
        seen = []
        torch._dynamo.reset()
        debug.listeners.append(seen.append)
        try:
            torch.compile(lambda x, w: torch.relu(F.conv2d(x, w)), dynamic=dynamic)(
                torch.randn(*sizes), torch.randn(8, 3, 3, 3)
            )
        finally:
            debug.listeners.pop()
        assert seen and TAKEN not in "".join(seen)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.two = torch.nn.Conv2d(32, 16, 1)
        self.norm = torch.nn.BatchNorm2d(32)

    def forward(self, x):
        return F.relu(x + self.two(F.hardswish(self.norm(self.one(x)))))


def test_a_package_keeps_them(tmp_path):
    block, x = Block().eval(), torch.randn(3, 16, 21, 19)
    path = str(tmp_path / "block.pt2")
    seen = []
    debug.listeners.append(seen.append)
    try:
        with config.patch(planes_bytes=0), torch.no_grad():
            torch._inductor.aoti_compile_and_package(torch.export.export(block, (x,)), package_path=path)
    finally:
        debug.listeners.pop()
    assert "".join(seen).count(TAKEN) == 2
    assert torch.allclose(torch._inductor.aoti_load_package(path)(x), block(x), rtol=1e-5, atol=1e-5)


def test_a_graph_from_the_disk_keeps_them(tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    block, x = Block().eval(), torch.randn(3, 16, 21, 19)
    found = []
    for again in (False, True):
        torch._dynamo.reset()
        if again:
            monkeypatch.setattr(compile, "compile_program", None)
        with config.patch(planes_bytes=0), torch.no_grad():
            found.append(torch.compile(block)(x))
    assert torch.equal(*found)


@pytest.mark.parametrize("freezing", [False, True])
def test_gradients_and_freezing(freezing):
    block, x = Block().eval(), torch.randn(3, 16, 21, 19)
    torch._dynamo.reset()
    with config.patch(planes_bytes=0):
        f = torch.compile(block, options={"freezing": freezing})
        with torch.no_grad():
            assert torch.allclose(f(x), block(x), rtol=1e-5, atol=1e-5)
        wanted = torch.autograd.grad(block(x).square().mean(), list(block.parameters()))
        got = torch.autograd.grad(f(x).square().mean(), list(block.parameters()))
    for a, b in zip(got, wanted):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-6)


def sweep(every: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for i, (case, epilogue) in enumerate(itertools.product(CASES, EPILOGUES)):
            if i % every == 0:
                check(case, epilogue, patch)


def guarded() -> None:
    """All operands lie between pages that can't be touched."""
    with pytest.MonkeyPatch.context() as patch:
        for at_end, case in itertools.product((False, True), CASES):
            o, place = Operands(case), guard_pages.GuardPages(at_end)
            o.__dict__ |= {
                k: torch.from_numpy(place(v.numpy())) for k, v in o.__dict__.items() if isinstance(v, torch.Tensor)
            }
            for epilogue in (residual, squeezed):
                run(o, epilogue, patch)


@pytest.mark.parametrize("cpu", [level("avx2"), "default"])
def test_other_kinds_of_cpu(cpu):
    """In a process of its own: the CPU is looked at once."""
    guard_pages.run_alone(__file__, "sweep(7)", FLAMBEAU_CPU=cpu)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_nothing_outside_is_touched():
    guard_pages.run_alone(__file__, "guarded()")


@pytest.mark.parametrize("allocator", ["guarded", "guarded_below"])
def test_no_memory_is_used_outside_or_too_late(allocator):
    guard_pages.run_alone(__file__, "sweep(4)", FLAMBEAU_ALLOCATOR=allocator)
