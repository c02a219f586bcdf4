"""Arithmetic and stores of single numbers in native loops, beside NumPy: promotion, bounds, division, conversions."""

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo import convert
from flambeau.testing.loops import check, run, same

RNG = np.random.default_rng(4)


def blend8(a, b):
    out = np.empty_like(a)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] // 2 + b[i, j] // 2
    return out


def divmods(a, b):
    q = np.zeros(100, np.int64)
    r = np.zeros(100, np.int64)
    for i in range(100):
        if b[i] != 0:
            q[i] = a[i] // b[i]
            r[i] = a[i] % b[i]
    return q, r


def divmods_int(a, b):
    q = 0
    r = 0
    f = 0.0
    for i in range(100):
        x = int(a[i])
        y = int(b[i])
        if y:
            q += x // y
            r = r * 7 % 1000003 + x % y
            f += x / y
    return q, r, f


def fdivmods(a, b):
    q = np.zeros(50)
    r = np.zeros(50)
    for i in range(50):
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]
    return q, r


def mix(a):
    s = 0
    t = 0.0
    m = a[0]
    for i in range(len(a)):
        s += a[i]
        t = t + a[i] * 0.5
        m = m if m > a[i] else a[i]
    return s, t, m, s / len(a)


def f32(a, s):
    t = 0.0
    u = np.float32(0)
    for i in range(len(a)):
        t += a[i] * s
        u = u + a[i] * s
        a[i] = a[i] * s + 1
    return t, u


def zero_div(x, d):
    s = 0
    for i in range(40):
        x[i] = 0
        s += 10 // int(d[i])
    return s


def to_ints(x):
    out = np.zeros(16, np.int64)
    for i in range(16):
        out[i] = x[i]
    return out


def to_int8(x):
    out = np.zeros(16, np.int8)
    for i in range(16):
        out[i] = x[i]
    return out


def to_int8_int(x):
    out = np.zeros(40, np.int8)
    for i in range(40):
        out[i] = i * 5
    return out


def to_int8_np(x):
    out = np.zeros(40, np.int8)
    for i in range(40):
        out[i] = x[i]
    return out


def mixed_u64(x, y):
    s = 0.0
    for i in range(40):
        s += x[i] * y[i]
    return s


def pow_int(x, k):
    s = 0
    t = 0.0
    for i in range(30):
        s += i**2 - i**3
        t += x[i] ** k + x[i] ** -1.5 + 2.0**i
    return s, t


def shifts(x):
    s = 0
    for i in range(30):
        s ^= (1 << int(x[i] % 40)) | (int(x[i]) >> 2)
    return s


def np_shifts(x):
    out = np.zeros(30, np.int32)
    for i in range(30):
        out[i] = np.int32(5) << x[i]
    return out


PROGRAMS = [
    (
        blend8,
        lambda: (RNG.integers(0, 256, (12, 12)).astype(np.uint8), RNG.integers(0, 256, (12, 12)).astype(np.uint8)),
    ),
    (divmods, lambda: (RNG.integers(-20, 20, 100), RNG.integers(-6, 6, 100))),
    (divmods_int, lambda: (RNG.integers(-20, 20, 100), RNG.integers(-6, 6, 100))),
    (fdivmods, lambda: (RNG.random(50) * 100 - 50, RNG.random(50) * 8 - 4)),
    (mix, lambda: (RNG.integers(0, 100, 100).astype(np.int32),)),
    (f32, lambda: (RNG.random(100).astype(np.float32), 2.5)),
    (zero_div, lambda: (RNG.random(40), np.zeros(40, np.int64))),
    (to_ints, lambda: (np.array([1e300, np.nan, np.inf, -3.7] * 4),)),
    (to_int8, lambda: (np.array([1.5, -3.7, 300.2, -129.9] * 4),)),
    (to_int8_int, lambda: (np.arange(40),)),
    (to_int8_np, lambda: (np.arange(40) * 10,)),
    (mixed_u64, lambda: (np.arange(40), np.arange(40).astype(np.uint64))),
    (pow_int, lambda: (RNG.random(30), 3)),
    (shifts, lambda: (RNG.integers(0, 63, 30),)),
    (np_shifts, lambda: (RNG.integers(0, 80, 30).astype(np.int32),)),
]


@pytest.mark.parametrize("f, arguments", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_program(f, arguments):
    check(f, *arguments())


NUMBERS = [0, 1, 127, 128, 255, 256, -1, -128, -129, 2**31 - 1, 2**31, 2**32, 2**62, 0.5, -0.5, 127.5, np.nan, np.inf]


@pytest.mark.parametrize("dtype", ["i1", "u1", "u4", "i8", "u8"])
@pytest.mark.parametrize("given", ["f4", "f8", "i8", "u8"])
def test_stored(dtype, given):
    """A number that an array of integers doesn't hold is NumPy's error; arrays are cast as in C."""

    def one_by_one(x, out):
        for i in range(len(x)):
            out[i] = x[i]

    compiled = torch.compile(one_by_one)
    for n in NUMBERS:
        with np.errstate(all="ignore"):
            x = np.array([n] * 20).astype(given)
        a, b = np.zeros(20, dtype), np.zeros(20, dtype)
        same(run(compiled, x, a), run(one_by_one, x, b))
        same(a, b)


def test_fastmath_is_asked_for():
    def dot(x, y):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * y[i]
        return s

    x, y = RNG.random(3001), RNG.random(3001)
    assert torch.compile(dot)(x, y) == dot(x, y)  # as written, to the last bit
    fast = torch.compile(dot, options={"fastmath": True})
    assert abs(fast(x, y) - dot(x, y)) < 1e-9 and np.isnan(fast(x * np.nan, y))


def test_code_stays_off_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))

    def scaled(x, by):
        for i in range(len(x)):
            x[i] = x[i] * by + 0.123456789

    def scaled_otherwise(x, by):
        for i in range(len(x)):
            x[i] = x[i] * by - 0.123456789

    for f, kept in ((scaled, False), (scaled_otherwise, True)):
        torch._dynamo.reset()
        x = np.ones(4001)
        torch.compile(f, options={"cache": kept})(x, 2.0)
        assert round(abs(x[0] - 2.0), 12) == 0.123456789
        assert any(p.is_file() for p in tmp_path.rglob("*")) == kept


def test_several_numbers_that_vary_between_calls():
    def f(x, a, b, c):
        s = 0
        for i in range(a):
            s = s + b * i - c
            x[i % 3] += 1
        return s

    compiled = torch.compile(f, dynamic=True)
    for numbers in ((1000, 3, 50), (1100, 5, 60), (1200, 7, 80)):
        x, y = np.zeros(3), np.zeros(3)
        assert compiled(x, *numbers) == f(y, *numbers)
        np.testing.assert_array_equal(x, y)


def halves(x, y, n):
    s = 0.0
    for _ in range(n):
        x = x * 1.0000001 + y
        s += x**0.5
    return s, x


@pytest.mark.parametrize(
    "x, y",
    [
        (1.5, 0.1),
        (1e-200, 1e-201),
        (1e-320, 0.0),
        (1e300, 1e299),
        (0.0, 0.0),
        (-0.0, 0.0),
        (np.inf, 0.0),
        (np.nan, 1.0),
    ],
)
def test_roots_as_powers_are_pows_to_the_last_bit(x, y):
    check(halves, float(x), float(y), 5000)


def powers_of_floats(x, n):
    squared = 0.0
    for _ in range(n):
        x = x * 1.01
        squared = x**2 + x**-2 + x**1.5
    return squared


@pytest.mark.parametrize("x", [1.0, 1e150, -1.0, 1e-150, np.inf, np.nan])
def test_powers_of_floats_end_as_pythons(x):
    check(powers_of_floats, float(x), 2000)


def powers(a, k, b):
    s = 0
    for i in range(len(a)):
        n = int(a[i]) % 5
        s = s % 1000003 + 3**n + (-2) ** n + b**k + int(a[i]) ** k
    return s


@pytest.mark.parametrize("k, b", [(0, 7), (1, -3), (5, 4), (19, 2)])
def test_integer_powers_whose_exponents_are_not_known(k, b):
    check(powers, np.random.RandomState(0).randint(-9, 10, 300), k, b)


@pytest.mark.parametrize("k, b", [(30, 3), (64, 2), (63, 2), (63, -2), (-1, 2)])
def test_integer_powers_that_need_more_bits_or_are_floats(k, b):
    def f(a, k, b):
        s = 0
        for i in range(len(a)):
            s = b**k + int(a[i])
        return s

    check(f, np.arange(1, 300), k, b, native=None)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u8", "?"])
@pytest.mark.parametrize("cut", [math.trunc, math.floor, math.ceil, int, round], ids=lambda f: f.__name__)
def test_cut(cut, dtype):
    """Of NumPy's scalars, float64 alone has math.trunc; nan and infinities have no integer."""

    def each(x, out):
        for i in range(len(x)):
            out[i] = cut(x[i])

    compiled = torch.compile(each)
    for n in (1, 0, 2.5, -2.5, np.nan, np.inf, -np.inf, 1e19):
        with np.errstate(all="ignore"):
            x = np.array([n] * 20).astype(dtype)
        a, b = np.zeros(20, "i8"), np.zeros(20, "i8")
        same(run(compiled, x, a), run(each, x, b))
        same(a, b)


def counted(x):
    n = 0
    for v in x:
        if v > 0:
            n += 1
    return n


def largest_and_place(x):
    best, at, seen = 0.0, 0, False
    for i in range(len(x)):
        if x[i] > best:
            best, at, seen = x[i], i, True
    return best, at, seen


def running(x):
    out, total = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        total += x[i]
        out[i] = total
    return out, total


def rotated(z, n):
    w = 1j
    for k in range(n):
        w *= z[k]
    return w


@pytest.mark.parametrize("x", [np.array([-1.0, 3.0, 2.0]), -np.ones(3), np.ones(3, np.float32)], ids=str)
@pytest.mark.parametrize("fn", [counted, largest_and_place, running])
def test_numbers_are_returned_without_tensors(fn, x, monkeypatch):
    """Python's numbers, NumPy's scalars and those of which only data tells whose they are, alone and in a tuple with arrays: the graph makes them."""
    torch._dynamo.reset()
    made = []
    giving = convert.direct_call
    monkeypatch.setattr(convert, "direct_call", lambda code: made.append(giving(code)) or made[-1])
    compiled = torch.compile(fn)
    for _ in range(2):
        same(compiled(x.copy()), fn(x))
    assert [type(d.call.fn).__name__ for d in made] == ["ArrayResult"]


def test_a_complex_number_is_returned():
    z = np.exp(1j * np.arange(1.0, 4.0))
    compiled = torch.compile(rotated)
    for n in (3, 0):
        same(compiled(z, n), rotated(z, n))
