"""Arrays of which elements are anything until they are written: nobody fills them, and what is written is right."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.machine import cache
from flambeau.testing.loops import check, same

N = 1000
X = np.random.default_rng(5).random(N)


def doubled(x):
    out = np.empty(len(x))
    for i in range(len(x)):
        out[i] = x[i] * 2
    return out


def first_apart(x):
    out = np.empty_like(x)
    out[0] = 7
    for i in range(1, len(x)):
        out[i] = x[i] + x[i - 1]
    return out


def used_afterwards(x):
    out = np.empty(len(x), np.float32)
    for i in range(len(x)):
        out[i] = x[i]
    total = out.sum()
    return out + 1, total


def columns(x):
    out = np.empty((len(x), 3), order="F")
    for i in range(len(x)):
        for k in range(3):
            out[i, k] = x[i] * k
    return out[:, 1], out


def complex_numbers(x):
    out = np.empty(len(x), complex)
    for i in range(len(x)):
        out[i] = x[i] * 1j
    return out


def without_a_loop(x):
    out = np.empty(len(x) + 2)
    out[1:-1] = x
    out[0] = out[-1] = -1
    return out * 2, out


def twice(x):
    a, b = np.empty(len(x)), np.empty(len(x))
    for i in range(len(x)):
        a[i], b[i] = x[i], -x[i]
    return a, b, a - b


PROGRAMS = [doubled, first_apart, used_afterwards, columns, complex_numbers, without_a_loop, twice]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_written_is_right(f):
    check(f, X, native=f is not without_a_loop)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_sizes_vary(f):
    torch._dynamo.reset()
    compiled = torch.compile(f, dynamic=True)
    for n in (N, 200, 37):
        same(compiled(X[:n]), f(X[:n]))


@pytest.mark.parametrize("f", [doubled, first_apart], ids=lambda f: f.__name__)
def test_nobody_fills_them(f, monkeypatch):
    texts = []
    addresses = cache.addresses
    monkeypatch.setattr(
        cache, "addresses", lambda kernels, **k: texts.extend(kernels.values()) or addresses(kernels, **k)
    )
    torch._dynamo.reset()
    same(torch.compile(f)(X), f(X))
    assert texts and not any("splat (double 0x0" in text for text in texts)


@pytest.mark.parametrize("f", [doubled, first_apart, twice], ids=lambda f: f.__name__)
def test_derivatives(f):
    """They are those of the elements that are written."""
    x = torch.tensor(X[:20], requires_grad=True)

    def last(x):
        out = f(x)
        return out[-1] if isinstance(out, tuple) else out

    (grad,) = torch.autograd.grad(torch.compile(lambda x: torch.compiler.wrap_numpy(last)(x).sum())(x), x)
    step = 1e-6
    for k in (0, 7, 19):
        moved = X[:20].copy()
        moved[k] += step
        assert abs((last(moved).sum() - last(X[:20]).sum()) / step - float(grad[k])) < 1e-6
