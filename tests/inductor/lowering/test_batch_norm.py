"""Batch norm while training: statistics, result and gradients beside float64, in every mode, and in one kernel a pass."""

import itertools

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor import compile as compiler
from flambeau.inductor.ir.nodes import ExternCall

F = torch.nn.functional
BOUND = {"float32": 3e-6, "float64": 1e-13, "bfloat16": 2e-2}  # of the largest magnitude
SHAPES = [
    (4, 5, 6, 7),
    (3, 17, 4),
    (9, 6),
    (2, 3, 3, 4, 5),
    (8, 32, 16, 16),
    (8, 64, 2, 2),
    (1, 20, 4, 4),
    (2, 7, 1, 1),
]


def reference(x, g, weight, bias, running, momentum, eps):
    """(result, cotangents of x, weight and bias, running statistics after it) in float64."""
    axes, n = (0, *range(2, x.ndim)), x.size // x.shape[1]
    wide = lambda t: t.reshape(1, -1, *[1] * (x.ndim - 2))  # noqa: E731
    mean, var = x.mean(axes), x.var(axes)
    normed = (x - wide(mean)) / np.sqrt(wide(var) + eps)
    out = normed * wide(weight) + wide(bias)
    db, dw = g.sum(axes), (g * normed).sum(axes)
    dx = (g - wide(db) / n - normed * wide(dw) / n) * wide(weight / np.sqrt(var + eps))
    moved = [r * (1 - momentum) + momentum * s for r, s in zip(running, (mean, var * n / max(n - 1, 1)))]
    return out, dx, dw, db, *moved


def values(shape, dtype, seed=0):
    t = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)
    return t, t.to(torch.float64).numpy()


@pytest.mark.parametrize("mode", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("shape", SHAPES)
def test_training(shape, mode):
    for name, affine, kept in itertools.product(BOUND, (True, False), (True, False)):
        dtype, c = getattr(torch, name), shape[1]
        (x, x64), (g, g64) = values(shape, dtype), values(shape, dtype, 1)
        (w, w64), (b, b64) = values(c, dtype, 2), values(c, dtype, 3)
        # Statistics are float32 beside 16 bits.
        wide = torch.float64 if dtype is torch.float64 else torch.float32
        running = [torch.zeros(c, dtype=wide), torch.ones(c, dtype=wide)] if kept else [None, None]

        def step(x, w, b, mean, var):
            return F.batch_norm(x, mean, var, w, b, True, 0.25, 1e-3)

        f = step if mode == "eager" else torch.compile(step, backend=mode)
        x.requires_grad_(), w.requires_grad_(), b.requires_grad_()
        for _ in range(2):  # nothing of the first call is left in the second
            x.grad = w.grad = b.grad = None
            got = f(x, *((w, b) if affine else (None, None)), *running)
            got.backward(g)
        first = reference(x64, g64, w64, b64, (np.zeros(c), np.ones(c)), 0.25, 1e-3)
        want = reference(x64, g64, *((w64, b64) if affine else (np.ones(c), np.zeros(c))), first[4:], 0.25, 1e-3)
        made = [got, x.grad, *([w.grad, b.grad] if affine else [None, None]), *running]
        for k, (a, e) in enumerate(zip(made, want)):
            if a is None:
                continue
            error = np.abs(a.detach().to(torch.float64).numpy() - e).max()
            bound = BOUND[name] if k < 4 else 1e-5 if name == "float64" else BOUND[name]
            # Sums over an image whose deviations cancel: of the size of what is summed.
            assert error <= bound * max(np.abs(e).max(), np.abs(g64).max() * (4 if k in (2, 3) else 1)), (
                name,
                k,
                error,
            )


@pytest.mark.parametrize("mode", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("shape", SHAPES)
def test_given_statistics(shape, mode):
    """In evaluation; the second call is with other statistics and weights in the same memory."""
    wide = lambda t: t.reshape(1, -1, *[1] * (len(shape) - 2))  # noqa: E731
    axes = (0, *range(2, len(shape)))
    for name, last in itertools.product(BOUND, (True, False)):
        dtype, c = getattr(torch, name), shape[1]
        (x, x64), (g, g64) = values(shape, dtype), values(shape, dtype, 1)
        w, b, mean, var = torch.zeros(4, c, dtype=dtype).unbind(0)
        if last:
            x, g = (t.to(memory_format=torch.channels_last) if t.ndim == 4 else t for t in (x, g))

        def step(x, w, b):
            return F.batch_norm(x, mean, var, w, b, False, 0.1, 1e-3)

        f = step if mode == "eager" else torch.compile(step, backend=mode)
        x, w, b = (t.detach().requires_grad_() for t in (x, w, b))
        for seed in (2, 3):
            with torch.no_grad():
                for k, t in enumerate((w, b, mean, var)):
                    t.copy_(values(c, dtype, seed + 10 * k)[0])
                var.abs_()
            x.grad = w.grad = b.grad = None
            got = f(x, w, b)
            got.backward(g)
            w64, b64, mean64, var64 = (t.detach().to(torch.float64).numpy() for t in (w, b, mean, var))
            scale = 1 / np.sqrt(wide(var64) + 1e-3)
            normed = (x64 - wide(mean64)) * scale
            want = normed * wide(w64) + wide(b64), g64 * wide(w64) * scale, (g64 * normed).sum(axes), g64.sum(axes)
            for k, (a, e) in enumerate(zip((got, x.grad, w.grad, b.grad), want)):
                error = np.abs(a.detach().to(torch.float64).numpy() - e).max()
                assert error <= BOUND[name] * max(np.abs(e).max(), 4 * np.abs(normed).max() * (k > 1)), (name, k, error)


@pytest.mark.parametrize("mode", ["eager", "inductor"])
def test_formats_and_numbers_that_are_not_finite(mode):
    def step(x, w, b):
        return F.silu(F.batch_norm(x, None, None, w, b, True))

    f = step if mode == "eager" else torch.compile(step, backend=mode)
    x, w, b = torch.randn(3, 4, 5, 6), torch.randn(4), torch.randn(4)
    last = x.to(memory_format=torch.channels_last)
    assert f(last, w, b).is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(f(last, w, b), f(x, w, b), atol=1e-5)
    x[0, 1, 2, 3], x[1, 2, 0, 0] = float("inf"), float("nan")
    assert (~torch.isfinite(f(x, w, b)).flatten(2)).any(2).any(0).tolist() == [False, True, True, False]
    assert torch.allclose(f(x, w, b)[:, 3], step(last, w, b)[:, 3], atol=1e-5)


def test_second_derivatives():
    x, w, b = (values(s, torch.float64, k)[0].requires_grad_() for k, s in enumerate([(3, 2, 2, 2), 2, 2]))
    mean, var = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    f = lambda *a: F.batch_norm(a[0], None, None, *a[1:], True)  # noqa: E731
    assert torch.autograd.gradcheck(f, (x, w, b)) and torch.autograd.gradgradcheck(f, (x, w, b))
    op = torch.ops.aten._native_batch_norm_legit_functional
    for training in (True, False):
        g = lambda *a, training=training: op(*a, mean, var, training, 0.1, 1e-5)[0]  # noqa: E731
        assert torch.autograd.gradcheck(g, (x, w, b)) and torch.autograd.gradgradcheck(g, (x, w, b))


def test_statistics_written_between_the_passes():
    """The backward reads what this call's statistics were, whatever became of the running ones."""
    norm = torch.nn.BatchNorm2d(3)
    x = torch.randn(2, 3, 4, 4, requires_grad=True)
    y = norm(x * 1)
    norm(torch.randn(2, 3, 4, 4))
    y.square().sum().backward()
    assert torch.isfinite(x.grad).all()


ACTIVATIONS = [torch.relu, F.silu, F.hardswish, torch.sigmoid, lambda y: y]


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_one_kernel_a_pass(act, monkeypatch):
    """Statistics, normalisation and activation are one kernel forward, and the two sums and the input's gradient one backward."""
    graphs, plain = [], compiler.compile_program
    monkeypatch.setattr(compiler, "compile_program", lambda *a, **k: graphs.append(plain(*a, **k)) or graphs[-1])
    model = torch.nn.Sequential(torch.nn.Conv2d(8, 32, 3, padding=1, bias=False), torch.nn.BatchNorm2d(32))
    with torch._inductor.config.patch(force_disable_caches=True):
        made = torch.compile(lambda x: act(model(x)))(torch.randn(4, 8, 16, 16))
        made.backward(torch.randn(4, 32, 16, 16))
    # Beside it there is one that counts the batches.
    kernels = [sum(not isinstance(s, ExternCall) and s.total == 32 for s in g.info.steps) for g, _ in graphs]
    others = [sum(not isinstance(s, ExternCall) and s.total > 1 for s in g.info.steps) for g, _ in graphs]
    assert kernels == others == [1, 1], [g.info.source.split("define")[0] for g, _ in graphs]
