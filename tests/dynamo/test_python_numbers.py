"""Python's numbers that vary flow into graphs as symbols; what comes out is what Python computes: no wrapping, the same errors."""

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile, reset
from flambeau.dynamo.config import config

from .helpers import outcome, same

INTEGERS = {
    "square": lambda x, k: x + k * k,
    "square of a double": lambda x, k: x.double() + k * k,
    "sum": lambda x, k: x.float() + (k + k),
    "quotient of a product": lambda x, k: x + k * 3 // 7,
    "remainder of a power": lambda x, k: x + k**2 % 1000,
    "negative": lambda x, k: x.float() + (-k) + abs(k) % 7,
    "shift": lambda x, k: x.float() + (k << 3),
    "shift and back": lambda x, k: x + ((k << 3) >> 3),
    "true quotient": lambda x, k: x.double() + k / 3,
    "true quotient of a product": lambda x, k: x.double() + k * k / 3,
    "conversion": lambda x, k: x.double() + float(k),
    "beyond": lambda x, k: x + (k * 2**64 >> 64),
    "bits": lambda x, k: x + (k ^ 5) + (~k & 255),
    "branch": lambda x, k: x + (1 if k * k > 2**63 else 2),
    "there and back": lambda x, k: x + int(float(k)),
    "least": lambda x, k: x + min(k * k, 100),
    "divmod": lambda x, k: x + divmod(k, -7)[1] + divmod(k, -7)[0],
    "minus one": lambda x, k: x + k // -1,
    "less than a float": lambda x, k: x + (k < 9007199254740993.0),
    "equal to its float": lambda x, k: x + (k == float(k)),
    "returned": lambda x, k: (x, k * k, k * k / 3),
    "truth in a sum": lambda x, k: x + (k > 4) * 2 - (k == 3) / 2,
    "truth as an int": lambda x, k: x.new_ones(2 + int(k > 4)) + float(k < 0),
    "cut root": lambda x, k: x + math.floor(abs(k) ** 0.5),
    "cut logarithm": lambda x, k: x.new_ones(1 + int(math.log2(abs(k) + 1))),
    "cut exponential": lambda x, k: x + math.ceil(math.exp(max(min(k, 3), 0))),
    "cut remainder": lambda x, k: x + int(k % 2.5) + int(k // 2.5) % 7,
    "cut distance": lambda x, k: x + int(abs(k - 7.5)) % 1000,
    "least with a float": lambda x, k: (x, min(k, 4.0), max(k, 4.0), float(min(k, 4.5))),
}
LARGE = [3, 5, 2**31 + 3, 2**53 + 1, 2**61 + 1, -(2**61) - 7, 2**63 - 1, -(2**63), 2**63, 2**53 + 3]

FLOATS = {
    "power": lambda x, f: x + f**2,
    "root": lambda x, f: x + abs(f**0.5),
    "of two": lambda x, f: x + 2.0**f,
    "quotient": lambda x, f: x + 1 / f,
    "floor": lambda x, f: x + 3 // f + 3 % f,
    "exp": lambda x, f: x.float() + math.exp(f),
    "sqrt": lambda x, f: x + math.sqrt(f),
    "log": lambda x, f: x.float() + math.log(f),
    "int": lambda x, f: x + int(f),
    "rounded": lambda x, f: x + math.floor(f) + math.ceil(f),
    "equal": lambda x, f: x + (f == 3),
    "sign of zero": lambda x, f: x * math.copysign(1.0, f),
    "returned": lambda x, f: (x, f * 2, -f, abs(f)),
    "truth in a sum": lambda x, f: x + (f == f) * 2 + (f < 2) * 3 - (f != 2.5),
    "least and greatest": lambda x, f: x + min(f, 2.0) + max(2.0, f),
    "least and greatest behind": lambda x, f: x + min(2.0, f) + max(f, 2.0),
    "zeros": lambda x, f: x * math.copysign(1.0, min(f, 0.0)) * math.copysign(1.0, max(-0.0, f)),
    "of a size by nan": lambda x, f: x + x.shape[0] // (f * math.nan) + x.shape[0] % math.nan,
}
ODD = [1.5, 2.5, 1e200, -3.0, 0.0, -0.0, 1000.0, -1e19, math.inf, 0.25, math.nan]


def agrees(fn, values, backend, x):
    reset()
    compiled = compile(fn, backend=backend)
    old = _frame.set_strict_guards(True)
    try:
        with config.patch(recompile_limit=64):
            for v in values:
                want, got = outcome(fn, (x, v), {}), outcome(compiled, (x, v), {})
                assert want[0] == got[0] and same(want[1], got[1]), (v, want, got)
    finally:
        _frame.set_strict_guards(old)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name, backend):
    agrees(INTEGERS[name], LARGE, backend, torch.tensor([1, 2, 3]))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", FLOATS)
def test_floats(name, backend):
    agrees(FLOATS[name], ODD, backend, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))


FROM_DATA = {
    "square": (lambda x: x.double() + x[0].item() ** 2, [3, 2**40 + 1, 2**62]),
    "product": (lambda x: x.double() + x[0].item() * 3 // 2, [3, 2**40 + 1, 2**62]),
    "quotient": (lambda x: x + 1 / x[0].item(), [1.5, 0.0, -0.0, 2.0]),
    "sqrt": (lambda x: x + math.sqrt(x[0].item()), [2.25, -1.0, 4.0]),
    "exp": (lambda x: x.float() + math.exp(x[0].item()), [2.25, 1000.0, -math.inf]),
    "truth": (lambda x: x + (x[0].item() > 3) * 2, [2, 3, 4]),
    "truth of a float": (lambda x: x * ((x[0].item() < 2.5) + 1), [2.25, 2.5, math.nan]),
}


@pytest.mark.parametrize("name", FROM_DATA)
def test_what_depends_on_data(name):
    fn, values = FROM_DATA[name]
    compiled = compile(fn, backend="inductor", fullgraph=True)
    for v in values:
        x = torch.tensor([v, v])
        want, got = outcome(fn, (x,), {}), outcome(compiled, (x,), {})
        assert want[0] == got[0] and same(want[1], got[1]), (v, want, got)


def test_products_that_fit_share_code():
    captured = []

    def backend(gm, inputs):
        captured.append(gm)
        return gm.forward

    compiled = compile(lambda x, k: x + k * k, backend=backend)
    for k in (3, 4, 5, 2**30, -(2**30)):
        assert compiled(torch.ones(2), k)[0].item() == float(1 + k * k)
    assert len(captured) == 2  # for the first number, and for all others


def halved(a, b, tolerance):
    def f(x):
        return x**3 - x - 2

    n = 0
    while b - a > tolerance:
        c = (a + b) / 2
        n += 1
        if f(a) * f(c) < 0:
            b = c
        else:
            a = c
    return (a + b) / 2, n


def logistic(x, r):
    for _ in range(60):
        x = r * x * (1 - x)
    return x


def powers_of_itself(n):
    k = 0
    while n < 1000:
        n = n * n + n
        k += 1
    return n, k


def modular_power(base, exponent, modulus):
    out = 1
    while exponent > 0:
        if exponent % 2:
            out = out * base % modulus
        base = base * base % modulus
        exponent //= 2
    return out


@pytest.mark.parametrize(
    "f, calls",
    [
        (modular_power, [(3, 10**6 + 3, 1009), (5, 10**6 + 7, 2003), (7, 10**15, 2**61 - 1)]),
        (halved, [(1.0, 2.0, 1e-9), (0.5, 2.0, 1e-6), (1.0, 1.75, 1e-3)]),
        (logistic, [(0.3, 3.5), (0.4, 3.6), (0.2, 3.9)]),
        (powers_of_itself, [(2,), (3,), (5,)]),
    ],
    ids=["modular_power", "halved", "logistic", "powers_of_itself"],
)
def test_numbers_that_are_computed_from_themselves(f, calls):
    """Their expressions would double in each turn of the loop: beyond a length they are constants of what is captured."""
    torch._dynamo.reset()
    g = torch.compile(f)
    for args in calls * 2:
        assert g(*args) == f(*args)
    scaled = torch.compile(lambda x, *args: x * logistic(*args))
    for args in ((0.3, 3.5), (0.4, 3.6), (0.2, 3.9)):
        assert torch.equal(
            scaled(torch.ones(2, dtype=torch.float64), *args), torch.full((2,), logistic(*args), dtype=torch.float64)
        )


@pytest.mark.parametrize("fn", [min, max])
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor], ids=["array", "tensor"])
def test_extremes_of_an_element_and_an_integer_that_varies(fn, kind):
    """Which of the two it is depends on data: the graph breaks there."""

    def f(x, k):
        return fn(x[0], k), fn(k, x[0])

    compiled = torch.compile(f, backend="eager")
    for k in (3, 8, 50, 7):
        assert compiled(kind([40.5, 2.0]), k) == f(kind([40.5, 2.0]), k)
