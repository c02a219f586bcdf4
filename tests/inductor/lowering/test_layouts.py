"""Networks of channels-last images: what the program sees has eager's strides, and inside nothing is copied from one order to the other."""

import contextlib
import re

import numpy as np
import pytest
from rows import thinned

import flambeau as torch
from flambeau.inductor import compile as passes
from flambeau.inductor.ir.nodes import BufferKind
from flambeau.inductor.settings import config

LAST = {4: "channels_last", 5: "channels_last_3d"}


def laid_out(torch, t):
    return t.to(memory_format=getattr(torch, LAST[t.ndim])) if t.ndim in LAST else t


def block(torch, i=32, o=32, stride=1):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.n1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
            self.c2, self.n2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
            self.short = nn.Conv2d(i, o, 1, stride) if stride > 1 or i != o else nn.Identity()

        def forward(self, x):
            y = torch.relu(self.n1(self.c1(x)))
            return torch.relu(self.n2(self.c2(y)) + self.short(x))

    return Block()


class Calls:
    """A module made of a function, with convolutions of its own."""

    def __new__(cls, torch, fn, **convs):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                for name, conv in convs.items():
                    setattr(self, name, conv)

            def forward(self, x):
                return fn(self, x)

        return Module()


# Name -> (module, shape of its input).
PROGRAMS = {
    "block": lambda t: (block(t), (2, 32, 9, 7)),
    "block with stride": lambda t: (t.nn.Sequential(block(t), block(t, 32, 48, 2)), (2, 32, 10, 9)),
    "one convolution": lambda t: (t.nn.Conv2d(5, 7, 3), (2, 5, 8, 6)),
    "1x1": lambda t: (t.nn.Sequential(t.nn.Conv2d(8, 16, 1), t.nn.GELU(), t.nn.Conv2d(16, 8, 1)), (2, 8, 6, 6)),
    "depthwise": lambda t: (t.nn.Sequential(t.nn.Conv2d(24, 24, 5, 2, 2, groups=24), t.nn.SiLU()), (3, 24, 9, 9)),
    "groups": lambda t: (t.nn.Conv2d(12, 18, 3, 2, 1, groups=3), (2, 12, 9, 8)),
    "one channel": lambda t: (t.nn.Sequential(t.nn.Conv2d(1, 6, 5), t.nn.ReLU(), t.nn.Conv2d(6, 1, 3)), (2, 1, 12, 12)),
    "one pixel": lambda t: (t.nn.Sequential(t.nn.Conv2d(4, 6, 3), t.nn.Sigmoid(), t.nn.Conv2d(6, 5, 1)), (3, 4, 3, 3)),
    "pooled": lambda t: (
        t.nn.Sequential(t.nn.Conv2d(3, 16, 3), t.nn.MaxPool2d(3, 2, 1), t.nn.AvgPool2d(2), t.nn.Conv2d(16, 4, 1)),
        (2, 3, 17, 15),
    ),
    "adaptive pooling": lambda t: (
        t.nn.Sequential(t.nn.Conv2d(3, 16, 3), t.nn.AdaptiveAvgPool2d(2), t.nn.Conv2d(16, 4, 1)),
        (2, 3, 11, 11),
    ),
    "transposed": lambda t: (
        t.nn.Sequential(t.nn.Conv2d(6, 8, 3, padding=1), t.nn.ConvTranspose2d(8, 5, 2, 2), t.nn.ReLU()),
        (2, 6, 7, 5),
    ),
    "concatenated": lambda t: (
        Calls(t, lambda m, x: m.b(t.cat([t.relu(m.a(x)), x], 1)), a=t.nn.Conv2d(4, 6, 3, 1, 1), b=t.nn.Conv2d(10, 3, 1)),
        (2, 4, 8, 8),
    ),
    "interpolated": lambda t: (
        Calls(
            t,
            lambda m, x: m.b(t.nn.functional.interpolate(m.a(x), scale_factor=2.0, mode="bilinear")),
            a=t.nn.Conv2d(4, 6, 3, 1, 1),
            b=t.nn.Conv2d(6, 3, 3),
        ),
        (2, 4, 8, 8),
    ),
    "views": lambda t: (
        Calls(
            t,
            lambda m, x: (m.a(x).permute(0, 2, 3, 1).sin().flatten(1, 2), m.b(x)[:, 1:5, ::2].exp(), m.a(x).mean((2, 3))),
            a=t.nn.Conv2d(4, 6, 3, 1, 1),
            b=t.nn.Conv2d(4, 6, 1),
        ),
        (2, 4, 8, 8),
    ),
    "intermediate results are returned": lambda t: (
        Calls(
            t,
            lambda m, x: (h := m.a(x), r := t.relu(h), m.b(r), r.transpose(2, 3)),
            a=t.nn.Conv2d(4, 6, 3, 1, 1),
            b=t.nn.Conv2d(6, 3, 3),
        ),
        (2, 4, 8, 8),
    ),
    "by strides": lambda t: (
        Calls(t, lambda m, x: t.as_strided(t.relu(m.a(x)) * 2, (5, 7), (7, 1), 3).sin(), a=t.nn.Conv2d(4, 6, 3)),
        (2, 4, 8, 8),
    ),
    "a template's result by strides": lambda t: (
        Calls(t, lambda m, x: t.as_strided(m.a(x), (5, 7), (7, 1)).sin(), a=t.nn.Conv2d(4, 6, 3)),
        (2, 4, 8, 8),
    ),
    "a part of a template's result by strides": lambda t: (
        Calls(t, lambda m, x: t.as_strided(m.a(x)[:, :, 1:], (5, 7), (9, 1)).sin(), a=t.nn.Conv2d(4, 6, 3)),
        (2, 4, 8, 8),
    ),
    "group norm": lambda t: (
        t.nn.Sequential(t.nn.Conv2d(4, 8, 3), t.nn.GroupNorm(2, 8), t.nn.SiLU(), t.nn.Conv2d(8, 8, 3)),
        (2, 4, 9, 9),
    ),
    "no convolution": lambda t: (
        Calls(t, lambda m, x: t.sigmoid(x * m.w) * x.sin(), w=t.nn.Parameter(t.ones(1, 6, 1, 1))),
        (2, 6, 5, 4),
    ),
    "sequences": lambda t: (t.nn.Sequential(t.nn.Conv1d(4, 6, 3), t.nn.GELU(), t.nn.Conv1d(6, 5, 3)), (2, 4, 19)),
    "volumes": lambda t: (
        t.nn.Sequential(t.nn.Conv3d(3, 6, 3, padding=1), t.nn.BatchNorm3d(6), t.nn.ReLU(), t.nn.Conv3d(6, 4, 2)),
        (2, 3, 5, 6, 4),
    ),
    "squeezed": lambda t: (
        Calls(
            t,
            lambda m, x: (y := m.a(x)) * t.sigmoid(m.b(y.mean((2, 3), keepdim=True))),
            a=t.nn.Conv2d(4, 6, 3, 1, 1),
            b=t.nn.Conv2d(6, 6, 1),
        ),
        (2, 4, 8, 8),
    ),
}  # fmt: skip


def leaves(x):
    return [y for part in x for y in leaves(part)] if isinstance(x, (tuple, list)) else [x]


def seen(torch, name, compiled=None, training=True, values=None, order=laid_out):
    """Name -> tensor of what the program sees: results, gradients, buffers. ``values``: arrays that take the place of parameters and of the input."""
    torch.manual_seed(0)
    module, shape = PROGRAMS[name](torch)
    module.train(training)
    x = torch.randn(*shape)
    if values is not None:
        with torch.no_grad():
            for t, a in zip((*module.parameters(), x), values):
                t.copy_(torch.from_numpy(a))
    for t in (*module.parameters(), *module.buffers()):
        t.data = order(torch, t.data)
    x = order(torch, x).requires_grad_(training)
    call = module if compiled is None else compiled(module)
    with contextlib.nullcontext() if training else torch.no_grad():
        out = leaves(call(x))
    found = {f"result {k}": y.detach() for k, y in enumerate(out)}
    if training:
        sum((y * torch.arange(y.numel()).reshape(y.shape).cos()).sum() for y in out).backward()
        found |= {"gradient of the input": x.grad, **{f"gradient of {n}": p.grad for n, p in module.named_parameters()}}
    return found | {n: b for n, b in module.named_buffers() if b.ndim}


def strides(t):
    return [s for n, s in zip(t.shape, t.stride()) if n > 1]


def agree(got, want, bound=2e-4):
    for name, e in want.items():
        a, e64 = got[name], e.double().numpy()
        assert strides(a) == strides(e), (name, a.shape, a.stride(), e.stride())
        error = np.abs(a.double().numpy() - e64).max() / max(np.abs(e64).max(), 1)
        assert error <= bound, (name, error)


WAYS = {
    "compiled": lambda m: torch.compile(m),
    "sizes": lambda m: torch.compile(m, dynamic=True),
    "aot_eager": lambda m: torch.compile(m, backend="aot_eager"),
    "frozen": lambda m: torch.compile(m, options={"freezing": True}),
}


@pytest.mark.parametrize("name, way", thinned(PROGRAMS, WAYS, "compiled"))
def test_as_eager(name, way):
    torch.compiler.reset()
    for training in (True, False):
        agree(seen(torch, name, WAYS[way], training), seen(torch, name, None, training))


@pytest.mark.parametrize("name", PROGRAMS)
def test_mixed_orders(name):
    """Only the input, or only the weights, in channels-last order."""
    torch.compiler.reset()
    for order in (
        lambda torch, t: laid_out(torch, t) if t.ndim > 3 and t.requires_grad else t,
        lambda torch, t: t.contiguous() if t.requires_grad else laid_out(torch, t),
    ):
        agree(seen(torch, name, WAYS["compiled"], order=order), seen(torch, name, order=order))


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_beside_pytorch(name):
    peer = pytest.importorskip("torch")
    torch.manual_seed(0)
    module, shape = PROGRAMS[name](torch)
    values = [p.detach().numpy() for p in module.parameters()] + [torch.randn(*shape).numpy()]
    for training in (True, False):
        want = seen(peer, name, None, training, values)
        for way in (None, WAYS["compiled"]):
            torch.compiler.reset()
            agree(seen(torch, name, way, training, values), want)


# ---- what runs -----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def graphs():
    """The graphs that are compiled, in order."""
    found, original = [], passes.compile_program

    def look(*args, **kwargs):
        graph, made = original(*args, **kwargs)
        found.append((graph, made.lowering))
        return graph, made

    before, config.force_disable_caches = config.force_disable_caches, True
    passes.compile_program = look
    try:
        yield found
    finally:
        passes.compile_program, config.force_disable_caches = original, before


def copied(graph, lowering):
    """Shapes of what a graph copies from one place to another and does nothing else with."""
    out = []
    for arguments in re.findall(r"; launch \w+\((.*?)\).*: copy$", graph.info.source, re.M):
        names = [n for n in arguments.split(", ") if lowering.buffers[n].kind != BufferKind.INPUT]
        out += [tuple(lowering.buffers[n].shape) for n in names if len(lowering.buffers[n].shape) >= 4]
    return out


def test_copies_of_a_residual_block():
    """None: native kernels read images and weights in either order."""
    for training in (True, False):
        torch.compiler.reset()
        with graphs() as made:
            seen(torch, "block", WAYS["compiled"], training)
        assert len(made) == 1 + training and not any(copied(*m) for m in made)


def test_what_is_saved_lies_in_the_order_of_native_kernels():
    torch.compiler.reset()
    with graphs() as made:
        seen(torch, "block", WAYS["compiled"])
    (forward, _), (_, lowering) = made
    orders = forward.info.orders
    assert orders and set(orders.values()) == {(0, 1, 2, 3)}
    saved = [b for b in lowering.buffers.values() if b.kind == BufferKind.INPUT and b.shape == (2, 32, 9, 7)]
    # All but the input itself and the cotangent.
    assert sum(b.strides == (2016, 63, 7, 1) for b in saved) == len(saved) - 2


def test_images_without_a_template_stay_channels_last():
    torch.compiler.reset()
    with graphs() as made:
        seen(torch, "no convolution", WAYS["compiled"])
    for graph, lowering in made:
        assert not graph.info.orders and not copied(graph, lowering)


def test_hooks_on_saved_tensors():
    """They may hand back copies in any order."""
    torch.compiler.reset()
    packed = []

    def unpack(t):
        packed.append(t.shape)
        return t.to(memory_format=torch.channels_last) if t.ndim == 4 else t.clone()

    def run(compiled):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            return seen(torch, "block", compiled)

    want = seen(torch, "block")
    agree(run(WAYS["compiled"]), want)
    assert (2, 32, 9, 7) in packed
    torch.compiler.reset()
    seen(torch, "block", WAYS["compiled"])  # compiled without hooks, called with them
    agree(run(WAYS["compiled"]), want)


def test_a_second_derivative():
    torch.compiler.reset()
    conv = torch.nn.Conv2d(4, 6, 3, padding=1).to(memory_format=torch.channels_last)
    x = torch.randn(2, 4, 6, 5).to(memory_format=torch.channels_last).requires_grad_()

    def penalty(f):
        (g,) = torch.autograd.grad(f(x).square().sum(), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), [x, conv.weight])

    f = lambda x: torch.tanh(conv(x))  # noqa: E731
    for a, e in zip(penalty(torch.compile(f)), penalty(f)):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-4)
        assert strides(a) == strides(e)


def test_written_images_and_graph_breaks():
    torch.compiler.reset()
    conv = torch.nn.Conv2d(4, 4, 3, padding=1).to(memory_format=torch.channels_last)
    start = torch.randn(2, 4, 6, 5).to(memory_format=torch.channels_last)

    def f(x):
        y = torch.relu(conv(x))
        torch._dynamo.graph_break()
        y[:, 1] += 1
        x.add_(conv(y))
        return y.permute(0, 2, 3, 1)

    results = []
    for call in (f, torch.compile(f)):
        x = start.clone()
        with torch.no_grad():
            y = call(x)
        results.append((x, y))
    for e, a in zip(*results):
        torch.testing.assert_close(a, e)
        assert a.stride() == e.stride()


def test_orders_come_from_the_disk_too(tmp_path, monkeypatch):
    """A forward graph that is recalled tells a backward that isn't."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    want = seen(torch, "block")
    for gone in (False, True, False):
        torch.compiler.reset()
        if gone:
            for path in sorted(tmp_path.glob("graphs/*/*"), key=lambda p: p.stat().st_mtime)[-1:]:
                path.unlink()
        agree(seen(torch, "block", WAYS["compiled"]), want)
