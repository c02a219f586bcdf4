"""Subscripts that are sums and differences of variables: no checks where the variables' ranges tell that they are inside, errors where they aren't."""

import numpy as np
import pytest

import flambeau as torch

R = np.random.RandomState(5)


def swaps(x, out):
    gap, n = len(x), 0
    while gap > 1:
        gap = max(gap * 10 // 13, 1)
        for i in range(len(x) - gap):
            if x[i] > x[i + gap]:
                n += 1
    out[0] = n


def lags(x, out):
    n = len(x)
    for k in range(len(out)):
        for i in range(n - k):
            out[k] += x[i] * x[i + k]


def lags_behind(x, out):
    for k in range(len(out)):
        for i in range(k, len(x)):
            out[k] += x[i] * x[i - k]


def windows(x, out):
    n = len(x)
    for w in range(1, len(out)):
        for i in range(n - w + 1):
            for j in range(w):
                out[w] += x[i + j]


def windows_from(x, out):
    for w in range(1, len(out)):
        for i in range(len(x) - w + 1):
            for j in range(i, i + w):
                out[w] += x[j]


def guarded(x, out):
    for i in range(len(x)):
        for j in range(len(out)):
            if j <= i:
                out[j] += x[i - j]


def another_name(x, out):
    for k in range(len(out)):
        last = len(x) - k
        for i in range(last):
            behind = i + k
            out[k] += x[behind]


def assigned_within(x, out):
    for k in range(len(out)):
        gap = k
        for i in range(len(x) - gap):
            gap = 0 if gap else 2
            out[k] += x[i + gap]


def assigned_between(x, out):
    for k in range(len(out)):
        gap = k
        last = len(x) - gap
        gap += 1
        for i in range(last):
            out[k] += x[i + gap]


def assigned_later(x, out):
    for k in range(len(out)):
        gap = k
        for i in range(len(x) - gap):
            if i == 6:
                gap = k + 1
            out[k] += x[i + gap]


def end_assigned(x, out):
    for k in range(len(out)):
        last = len(x) - k
        i = 0
        while i < last:
            out[k] += x[i + k]
            if i == 6:
                last += 1
            i += 1


def one_too_many(x, out):
    for k in range(len(out)):
        for i in range(len(x) - k + 1):
            out[k] += x[i + k]


def too_low(x, out):
    for k in range(len(out)):
        for i in range(k - 1, len(x)):
            out[k] += x[i - k]


def kept_in_a_tuple(x, out):
    for k in range(len(out)):
        gap = k
        both = (gap, len(x) - gap)
        gap = k + 1
        for i in range(both[1]):
            out[k] += x[i + both[0]] - x[i + gap - 1]


def swapped(x, out):
    gap, other = 0, 5
    for k in range(len(out)):
        for i in range(len(x) - gap):
            out[k] += x[i + gap]
            if i == 3:
                gap, other = other, gap


def negative(x, out):
    for k in range(-3, 3):
        for i in range(len(x) - max(k, 0)):
            out[k] += x[i + k]


INSIDE = [swaps, lags, lags_behind, windows, windows_from, guarded, another_name]
OTHERS = [kept_in_a_tuple, negative]
FAULTY = [assigned_within, assigned_between, assigned_later, end_assigned, one_too_many, swapped]


def outcome(f, x):
    out = np.zeros(7, x.dtype)
    try:
        f(x, out)
    except IndexError as error:
        return str(error)
    return out.tolist()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("f", [*INSIDE, *OTHERS, *FAULTY, too_low], ids=lambda f: f.__name__)
def test_subscripts_of_sums(f, dynamic, texts):
    compiled = torch.compile(f, dynamic=dynamic)
    for n in (40, 12, 9):
        x = R.randint(0, 1000, n).astype(float)
        want = outcome(f, x)
        assert outcome(compiled, x) == want
        assert isinstance(want, str) == (f in FAULTY)
    if f in INSIDE:
        assert texts and not any("x %errors" in t or "getelementptr i64, ptr %errors" in t for t in texts)
    if f in FAULTY:
        assert texts


@pytest.mark.parametrize("f", [lags, lags_behind], ids=lambda f: f.__name__)
def test_of_a_function_within(f):
    """Parameters of functions that are written out are variables of their own, and so is each call's."""

    def at(x, i, gap):
        return x[i + gap]

    def both(x, out):
        for k in range(len(out)):
            for i in range(len(x) - k):
                out[k] += at(x, i, k) * at(x, k, i) - at(x, i, 0)
        f(x, out)

    x = R.rand(30)
    want, got = np.zeros(7), np.zeros(7)
    both(x, want)
    torch.compile(both)(x, got)
    np.testing.assert_allclose(got, want, rtol=1e-12)
