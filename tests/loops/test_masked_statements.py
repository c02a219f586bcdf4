"""Statements that read under a mask and write under the same one: no element is moved, and results, errors and floating-point flags are NumPy's."""

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.machine import cache
from flambeau.loops import operator
from flambeau.testing.loops import check

R = np.random.RandomState(3)


def squared(z, c, n):
    for _ in range(n):
        inside = abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]


def several_arrays(x, y, n):
    out = np.zeros(x.shape, np.float32)
    for k in range(n):
        m = x > y
        x[m] = x[m] - 0.5 * y[m] + k
        out[m] = -x[m]
        y[m] = x[m] * y[m] * x[0, 0]
    return out


def quotients(x, n):
    for k in range(n):
        m = x != 0
        x[m] = 1 / x[m]
        x[k] = 0


def integers(x, n):
    for k in range(n):
        m = x % 2 == 0
        x[m] = x[m] // 2 + 1
        x[0] = k


def shifted(x, n):
    a, b = x[1:], x[:-1]
    for _ in range(n):
        m = b > 0.2
        a[m] = b[m] * 0.5
        b[m] = a[m] + 0.1


def reversed_view(x, n):
    y = x[::-1]
    for _ in range(n):
        m = x > 0.3
        x[m] = y[m] * 0.9


def two_masks(x, n):
    for _ in range(n):
        m, w = x > 0, x >= 0
        x[m] = x[w] * 0.5
        x[w] = x[m] + x[w] * 0.1


def with_others(x, y, n):
    for k in range(n):
        m = x > -5
        x[m] = x[m] + y
        x[m] = y + x[m]
        x[m] = x[m][k] + 1


def one_for_all(x, n):
    for k in range(n):
        m = x == x[k]
        x[m] = x[m][0] + 1


def changed_mask(x, n):
    for k in range(n):
        m = x > 0
        m[k] = False
        x[m] = x[m] + 1
        m[k] = True
        x[m] = x[m] - 2


def flipped(b, n):
    for k in range(n):
        b[b] = b[b] * b[b]
        b[k] = not b[k]


def other_length(x, y, n):
    for _ in range(n):
        m = x > 0
        x[m] = y[m]


def by_columns(x, n):
    for _ in range(n):
        m = x.T > 0.5
        t = x.T
        t[m] = t[m] * 0.5 + 0.1


CASES = {
    "squared": (squared, R.randn(9, 11) + 1j * R.randn(9, 11), R.randn(9, 11) + 1j * R.randn(9, 11), 60),
    "several_arrays": (several_arrays, R.randn(6, 7), R.randn(6, 7), 60),
    "quotients": (quotients, R.randn(80), 60),
    "integers": (integers, R.randint(-99, 99, 80), 60),
    "shifted": (shifted, R.rand(80), 60),
    "reversed_view": (reversed_view, R.rand(81), 60),
    "two_masks": (two_masks, R.rand(80), 60),
    "two_masks_that_differ": (two_masks, np.where(R.rand(80) < 0.3, 0, R.rand(80)), 60),
    "with_others": (with_others, R.rand(80), R.rand(80), 60),
    "one_for_all": (one_for_all, R.randint(0, 3, 80).astype(float), 60),
    "changed_mask": (changed_mask, R.randn(80), 60),
    "flipped": (flipped, R.rand(80) < 0.5, 60),
    "other_length": (other_length, R.randn(80), R.randn(81), 60),
    "by_columns": (by_columns, R.rand(20, 31), 60),
    "nothing": (integers, np.zeros(0, np.int64), 0),
}


@pytest.mark.parametrize("case", CASES)
def test_beside_plain(case):
    f, *args = CASES[case]
    check(f, *args, native=None)


def test_no_element_is_moved(monkeypatch):
    texts = []
    addresses = cache.addresses
    monkeypatch.setattr(
        cache, "addresses", lambda kernels, **k: texts.extend(kernels.values()) or addresses(kernels, **k)
    )
    operator._call.cache_clear()
    check(*CASES["squared"])
    (text,) = (t for t in texts if "; a loop" in t)
    assert text.count("call ptr @flb_new") == 1  # the mask


def test_nothing_is_told_of_what_the_mask_leaves_out():
    """A vector of quotients would raise the flag of a division by zero."""
    x = np.where(R.rand(1000) < 0.5, 0, R.rand(1000))
    compiled = torch.compile(quotients)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            compiled(x.copy(), 50)


def test_derivative():
    def f(x):
        for _ in range(60):
            m = x > 0.5
            x[m] = x[m] * 0.9 + 0.01
        return (x * x).sum()

    x = torch.tensor(R.rand(20), requires_grad=True)
    (grad,) = torch.autograd.grad(torch.compile(lambda t: torch.compiler.wrap_numpy(f)(t.clone()))(x), x)
    plain, step = x.detach().numpy(), 1e-7
    for k in range(20):
        moved = plain.copy()
        moved[k] += step
        assert abs((f(moved) - f(plain.copy())) / step - float(grad[k])) < 1e-5
