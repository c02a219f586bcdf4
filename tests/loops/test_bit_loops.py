"""Loops over the bits of a number are taken in closed form: values beside Python, and that no turn is run."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.machine import cache
from flambeau.testing.loops import check

NUMBERS = np.concatenate([np.arange(40), 2 ** np.arange(62), [2**62 - 1, 2**63 - 1, 0x5555_5555_5555, 3**39]])


def cleared(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while x:
            x &= x - 1
            n += 3
        out[i] = n + x


def cleared_the_other_way(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while x:
            n = 1 + n
            x = (x - 1) & x
        out[i] = n


def shifted(a, out):
    for i in range(len(a)):
        x, n, m = int(a[i]), 0, 100
        while x:
            n += x & 1
            x >>= 1
            m = m + 2
        out[i] = n * 1000 + m


def divided(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while x:
            x //= 8
            n += 1
        out[i] = n


def low_bits_behind_the_shift(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while x:
            x = x >> 1
            n = n + (1 & x) + x % 2 + 1
        out[i] = n


def at_least_one_turn(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while True:
            x >>= 2
            n += 1
            if not x:
                break
        out[i] = n


CLOSED = [cleared, cleared_the_other_way, shifted, divided, low_bits_behind_the_shift]


@pytest.mark.parametrize("f", CLOSED, ids=lambda f: f.__name__)
def test_closed_form(f, monkeypatch):
    texts = []
    addresses = cache.addresses
    monkeypatch.setattr(
        cache, "addresses", lambda kernels, **k: texts.extend(kernels.values()) or addresses(kernels, **k)
    )
    check(f, NUMBERS, np.zeros(len(NUMBERS), np.int64))
    assert any("@llvm.ctpop" in text for text in texts)


def other_bits(a, out):
    for i in range(len(a)):
        x, n, last = int(a[i]), 0, 0
        while x:
            last = x
            n += x & 2
            x >>= 1
        out[i] = n + last


def numpys(a, out):
    for i in range(len(a)):
        x, n = a[i], 0
        while x:
            x = x & (x - 1)
            n += 1
        out[i] = n


def two_numbers(a, out):
    for i in range(len(a)):
        x, y = int(a[i]), int(a[-1 - i])
        while x:
            x >>= 1
            y >>= 1
        out[i] = y


@pytest.mark.parametrize("f", [at_least_one_turn, other_bits, numpys, two_numbers], ids=lambda f: f.__name__)
def test_loops_that_are_no_bit_loops(f):
    check(f, NUMBERS, np.zeros(len(NUMBERS), np.int64))


def test_numpys_numbers_may_be_negative():
    """Python's integers would go on for ever there; NumPy's end."""
    check(numpys, np.array([-1, -(2**62), 5]), np.zeros(3, np.int64))


def drawdown(p):
    peak, worst = p[0], 0.0
    for v in p:
        peak = max(peak, v)
        worst = max(worst, (peak - v) / peak)
    return worst


def test_short_loops_that_break_unrolled_are_native():
    """Without which a first call with few elements would leave the function to Python for good."""
    torch._dynamo.reset()
    compiled = torch.compile(drawdown)
    for n in (20, 2000, 3):
        p = np.random.default_rng(n).random(n) + 1
        assert compiled(p) == drawdown(p)
    assert "native" in str(torch._dynamo.explain(drawdown)(np.ones(4)))


def odd_numbers(n, h):
    out = 0.0
    for i in range(1, n):
        for k in range(1, 2 ** (i - 1) + 1):
            out += np.exp(-(2 * k - 1) * h)
    return out


def test_small_multiples_of_a_counter_are_not_checked(monkeypatch):
    texts = []
    addresses = cache.addresses
    monkeypatch.setattr(
        cache, "addresses", lambda kernels, **k: texts.extend(kernels.values()) or addresses(kernels, **k)
    )
    check(lambda a: odd_numbers(len(a), a[0]), np.full(9, 0.01))
    (kernel,) = (text.split("define internal")[0] for text in texts if "; a loop" in text)
    assert "smul.with.overflow" not in kernel
