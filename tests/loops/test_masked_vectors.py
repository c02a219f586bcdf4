"""Loops over ranges that sum up exponentials, in vectors with masks: the sums of single turns, in their order, and which loops are such."""

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.machine.vector_hints import LANES
from flambeau.loops.turns import masked_vectors

R = np.random.RandomState(31)


def sums(x, y, out):
    for i in range(y.shape[0]):
        t = 0.0
        for k in range(x.shape[0]):
            t += np.exp(-x[k] * y[i])
        out[i] = t


def window(x, y, out):
    width = 0.01 * y.shape[0]
    for i in range(y.shape[0]):
        total, weights = 0.0, 0.0
        for k in range(max(i - 3, 0), min(i + 4, x.shape[0])):
            w = np.exp(-((x[k] - y[i]) ** 2) / (2 * width**2))
            total += w * x[k]
            weights += w
        out[i] = total - weights


def greatest(x, y, out):
    for i in range(y.shape[0]):
        best = -1.0
        for k in range(x.shape[0]):
            best = max(best, np.exp(x[k] * y[i]))
        out[i] = best


def chosen(x, y, out):
    for i in range(y.shape[0]):
        t = 0.0
        for k in range(x.shape[0]):
            if x[k] > y[i]:
                t += np.exp(x[k])
        out[i] = t


def divided(x, y, out):
    for i in range(y.shape[0]):
        t = 0.0
        for k in range(x.shape[0]):
            t += np.exp(-1 / x[k]) * y[i]
        out[i] = t


def logarithms(x, y, out):
    for i in range(y.shape[0]):
        t = 0.0
        for k in range(x.shape[0]):
            t += np.log(x[k]) * np.exp(y[i] * x[k])
        out[i] = t


def stored(x, y, out):
    for i in range(y.shape[0]):
        for k in range(x.shape[0]):
            out[i] += np.exp(x[k] * y[i])


TOLD, OTHERS = [sums, window], [divided, logarithms, stored]


@pytest.mark.parametrize("f", [*TOLD, *OTHERS, greatest, chosen], ids=lambda f: f.__name__)
def test_sums_in_their_order(f, texts):
    compiled = torch.compile(f, dynamic=True)
    for n in (9, 1, 2, 3, 7, 8, 15, 16, 17, 33, 100, 0):
        x, y = R.rand(n) + 0.1, R.rand(40) + 0.2
        want, got = np.zeros(40), np.zeros(40)
        f(x, y, want)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled(x, y, got)
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-15)
    if f in (*TOLD, *OTHERS):
        assert texts and all((LANES in t) == (f in TOLD) for t in texts)


def test_order_of_the_sum(monkeypatch):
    """Numbers of very different sizes: any other order of the sum gives another one. Beside the vectors that LLVM makes by itself."""

    def f(x, out):
        for i in range(out.shape[0]):
            t = 0.0
            for k in range(x.shape[1]):
                t += np.exp(x[i, k]) * (1.0 - 2.0 * (k % 2))
            out[i] = t

    for n in (5, 8, 13, 50):
        x, made = R.rand(30, n) * 80 - 40, []
        for told in (masked_vectors.told, lambda e, turn: ""):
            monkeypatch.setattr(masked_vectors, "told", told)
            torch._dynamo.reset()
            made.append(np.zeros(30))
            torch.compile(f)(x, made[-1])
        assert np.array_equal(*made)
