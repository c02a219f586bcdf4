"""Complex numbers in native loops, beside plain Python and NumPy: values at the edges, types, effects."""

import cmath

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check

R = np.random.RandomState(3)
EDGES = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e308, 5e-324, 3.0]
GRID = np.array([complex(a, b) for a in EDGES for b in EDGES])
Z = R.randn(60) + 1j * R.randn(60)


def mandelbrot(c, out, most):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            z, n = 0, 0
            while n < most:
                if abs(z) > 2.0:
                    break
                z = z * z + c[i, j]
                n += 1
            out[i, j] = n


def mandelbrot_of_python(width, out):
    for i in range(width):
        for j in range(width):
            c = complex(-2.0 + 3.0 * i / width, -1.5 + 3.0 * j / width)
            z = 0j
            k = 0
            while k < 30 and z.real * z.real + z.imag * z.imag < 4.0:
                z = z * z + c
                k += 1
            out[i, j] = k
    return z


def dft(x, out):
    n = len(x)
    for k in range(n):
        s = 0j
        for t in range(n):
            s += x[t] * np.exp(-2j * np.pi * k * t / n)
        out[k] = s
    return s


def each_pair(a, b, out):
    for i in range(len(a)):
        for j in range(len(b)):
            x, y = a[i], b[j]
            out[i, j, 0] = x + y
            out[i, j, 1] = x - y
            out[i, j, 2] = x * y
            out[i, j, 3] = x / y
            out[i, j, 4] = x * 2.5 - 1
            out[i, j, 5] = -x + y.conjugate()
            out[i, j, 6] = abs(x) + 1j * y.real
            out[i, j, 7] = (x == y) + 2 * (x != y) + (3 if x else 4)
            out[i, j, 8] = x**2


def arrays(a, b):
    s = np.zeros(a.shape[1], complex)
    for i in range(a.shape[0]):
        s += a[i] * b - a[i].conj() / 2
        a[i].real[1] = i
        a.imag[i, 2] += 0.5
        b *= 1j
        s[i % 5] = np.abs(a[i]).sum() + a[i].sum() + (a[i] @ b)
    return s, s[0], s[1].real


def single(a, out):
    s = np.complex64(0)
    for i in range(len(a)):
        s = s + a[i] * 2 - 1j * a[i].imag
        out[i] = s * np.float32(0.5) / (1 + 2j)
    return s, abs(s)


def recursion(a, n):
    x, y = 1 + 0j, a[0]
    for i in range(n):
        x, y = y * 0.5, x + a[i % len(a)]
        if abs(y) > 10:
            y = y / abs(y)
    return x, y, y.imag


def functions(a, out):
    for i in range(len(a)):
        out[i] = (
            np.exp(a[i])
            + np.sqrt(a[i]) * np.log(a[i])
            + np.sin(a[i])
            - np.cos(a[i])
            + np.angle(a[i])
            + np.conj(a[i]).imag
        )


def test_mandelbrot():
    y, x = np.mgrid[-1.5:1.5:15j, -2:1:14j]
    check(mandelbrot, x + 1j * y, np.zeros((15, 14), int), 40)
    check(mandelbrot_of_python, 12, np.zeros((12, 12)))


def test_sums_and_recursions():
    check(dft, Z, np.zeros(60, complex))
    check(arrays, R.randn(40, 6) + 1j * R.randn(40, 6), Z[:6].copy())
    check(recursion, Z, 300)
    check(single, Z.astype(np.complex64), np.zeros(60, np.complex64))
    check(functions, Z, np.zeros(60, complex))


def test_views_of_complex_arrays():
    def f(a):
        for i in range(a.shape[0]):
            a[i, ::2] = a[i, 1::2] * 1j + a.real[i, :5]
            a.T[3] += a[i, 4]
            row = a[i]
            row[row.real > 0] = i
        return a.sum(), a.imag.max()

    a = R.randn(40, 10) + 1j * R.randn(40, 10)
    check(f, a)
    check(f, np.asfortranarray(a))
    check(f, (R.randn(40, 20) + 1j * R.randn(40, 20))[:, ::2])


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_edges(dtype):
    with np.errstate(all="ignore"):
        check(each_pair, GRID.astype(dtype), GRID.astype(dtype), np.zeros((100, 100, 9), dtype))


def test_python_numbers():
    def f(n, out):
        z, t = 1j, 0
        for k in range(n):
            z = z * (0.5 + 1j) + k - 1
            w = z / (k - 5.5 + 2j)
            out[k % 7] = w.real + (w == z) + abs(w) - (-w).imag
            t += 1 if z else 2
        return z, w, t

    check(f, 40, np.zeros(7))

    def by_zero(n, out):
        z = 1 + 1j
        for k in range(n):
            out[k] = (z / (k - 30)).imag
            z = z / (k - 30 + 0j)
        return z

    check(by_zero, 60, np.zeros(60))


def test_what_is_not_native_is_right():
    def power(a, out):
        for i in range(len(a)):
            out[i] = a[i] ** 0.5 + a[i] ** 3

    check(power, Z.astype(np.complex64), np.zeros(60, np.complex64), native=False)

    def of_cmath(a, out):
        for i in range(len(a)):
            out[i] = cmath.exp(a[i])

    check(of_cmath, Z, np.zeros(60, complex), native=None)

    def ordered(a):
        best = a[0]
        for i in range(len(a)):
            if a[i].real > best.real:
                best = a[i]
        return best

    check(ordered, np.concatenate([Z] * 20))


def test_an_integer_in_a_variable_of_numpys_numbers():
    def f(a, n):
        x = 3
        for i in range(n):
            if a[i % len(a)] > 2.0:
                x = a[i % len(a)]
            else:
                x = x * x if i < 2 else x
        return x

    check(f, np.zeros(5), 400)
    check(f, np.full(5, 2.5), 400)

    def g(c, n):
        z = 0
        for i in range(n):
            if c[i % len(c)] != 0:
                z = z * z + c[i % len(c)]
        return z

    check(g, np.zeros(5, complex), 400, native=None)
    check(g, np.full(5, 0.1 + 0.1j), 400)


def test_large_arrays():
    """Statements that the thread pool does get the complex numbers that they use."""

    def f(a, z):
        for i in range(12):
            w = z[i] * 0.5
            a *= w
            a += z[i] - w
        return w

    check(f, R.randn(300, 400) + 1j * R.randn(300, 400), Z)


def powers(a, out):
    for i in range(len(a)):
        z = a[i]
        out[i, 0], out[i, 1], out[i, 2] = z**3, z**5.0, z**12
        out[i, 3], out[i, 4], out[i, 5] = z**-2, z**-7, z**99
        out[i, 6], out[i, 7] = z ** (4 + 0j), z**0
    out[:, 8] = (a**3).sum() + a[::-1] ** 6


def unknown_powers(a, n, out):
    for i in range(len(a)):
        for k in range(len(n)):
            out[0, i, k], out[1, i, k] = a[i] ** n[k], np.power(a[i], n[k])
        for k in range(-9, 9):
            out[2, i, k] = a[i] ** k + a[i] ** (k / 2)
        out[3, i, 0], out[3, i, 1], out[3, i, 2] = a[i] ** -1, a[i] ** 0.5, np.power(2.0, a[i])


def powers_of_python(n, out):
    z = 0.5 + 0.25j
    for i in range(n):
        z = z * (0.9 + 0.1j) + 0.1
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = z**2, z**3, z**-1, z**-5
        out[i, 4] = z**7.0 + z**0
    return z**4


def iterated_power(z, n):
    for _ in range(n):
        z = z**3 + (0.1 - 0.2j)
    return z


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_powers(dtype):
    check(powers, (Z / 2).astype(dtype), np.zeros((60, 9), dtype))
    with np.errstate(over="ignore"):
        edges = GRID.astype(dtype)
    check(powers, edges, np.zeros((len(GRID), 9), dtype))


@pytest.mark.parametrize("kind", ["complex128", "float64", "int64"])
def test_powers_whose_exponent_is_not_known(kind):
    """Products below 100, as NumPy makes them, and C's function, by which exponents aren't whole."""
    exponents = np.array(
        [*range(-5, 8), 50, 99, -99, 100, -100, 101, 0.5, -1.5, 2j, 2 + 1j, -1 - 2j, -0.0, np.inf, np.nan]
    )
    if kind != "complex128":
        exponents = exponents[:19].real if kind == "int64" else exponents[exponents.imag == 0].real
    points = np.concatenate([Z[:20] / 2, GRID])
    with np.errstate(all="ignore"):
        check(unknown_powers, points, exponents.astype(kind), np.zeros((4, len(points), 27), complex))


def quotients_of_either(z, least, out):
    for i in range(len(z)):
        numerator, divisor = 1.5 + 0.5j, 3 - 0.25j
        for j in range(least[i]):
            divisor *= z[j] - z[i]
        for j in range(least[i] // 2):
            numerator = numerator * z[i] + z[j]
        out[i] = numerator / divisor
        out[i] += 1 / divisor + numerator / 2.5 + z[i].real / divisor
    return numerator / divisor


@pytest.mark.parametrize("least", [[0] * 9, [0, 1, 2, 3, 0, 2, 1, 0, 4], [3, 2, 2, 1, 2, 3, 3, 2, 0]])
def test_quotients_of_numbers_that_may_be_pythons(least):
    """A loop without turns leaves Python's numbers, whose quotients differ from NumPy's in the last place."""
    check(quotients_of_either, R.randn(9) + 1j * R.randn(9), np.array(least), np.zeros(9, complex))


def test_a_quotient_of_an_integer_in_the_place_of_a_complex_number():
    def f(z, least):
        for i in range(len(least)):
            divisor = 3
            for j in range(least[i]):
                divisor = divisor * (z[j] + 1)
            last = 1 / divisor
        return last

    for least in ([1, 2], [2, 0]):
        check(f, Z, np.array(least), native=None)


def test_a_quotient_by_zero_that_may_be_pythons():
    def by_zero(z, n, out):
        for i in range(len(z)):
            divisor = 0j
            for j in range(n):
                divisor += z[j] * 0
            out[i] = (z[i] * 2 + divisor * 0) / (1 + divisor) + (1 + divisor) / divisor
        return out

    with np.errstate(all="ignore"):
        check(by_zero, Z, 0, np.zeros(len(Z), complex), native=None)
        check(by_zero, Z, 3, np.zeros(len(Z), complex), native=None)


def test_powers_of_pythons_numbers():
    check(powers_of_python, 80, np.zeros((80, 5), complex))
    for z in (0.3 + 0.2j, 1.7 - 0.4j, 0j):  # one grows until Python says that it is too large
        check(iterated_power, z, 1200)


def added_from_the_left(a):
    s = 1 + 0j
    for i in range(len(a)):
        s = s + 1j * a[i]
    return s, s == a[0], s * a[1] != a[2]


def subtracted_from_the_right(a):
    s = 1 + 0j
    for i in range(len(a)):
        s = a[i] - s
    return s, a[0] == s


def divided_from_the_left(a):
    s = 1 + 0j
    for i in range(len(a)):
        s = s / a[i]
    return s


@pytest.mark.parametrize("dtype", ["f8", "c16", "i8", "f4"])
@pytest.mark.parametrize("f", [added_from_the_left, subtracted_from_the_right, divided_from_the_left])
def test_pythons_complex_numbers_answer_before_float64(f, dtype):
    """np.float64 is a float of Python's: where it stands on the right, the result and the error are Python's."""
    a = np.arange(1, 3000).astype(dtype)
    check(f, a, native=None)
    a[2500] = 0
    check(f, a, native=None)


def test_complex_numbers_of_float64_are_native():
    check(divided_from_the_left, np.arange(1.0, 3000.0))


def exponentials(z, out):
    for k in range(60):
        out[:] = np.exp(z)
        out[k] = np.exp(z[k] * 1.0)


@pytest.mark.parametrize("re", [0.0, -0.0, 1.5, 800.0, -np.inf, np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_exponentials_are_those_of_the_library(re, dtype):
    """Also those of imaginary numbers, of which only sine and cosine are asked: to the last bit."""
    r = np.random.default_rng(1)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e300, np.pi, 2.2250738585072014e-308, 1e-320]
    z = np.empty(500 + len(ends), dtype)
    with np.errstate(all="ignore"):
        z.real, z.imag = re, np.concatenate([r.standard_normal(250) * 10, 10 ** r.uniform(-40, 30, 250), ends])
        got, want = np.empty_like(z), np.empty_like(z)
        torch.compile(exponentials)(z, got)
        exponentials(z, want)
    if dtype == "complex128":
        np.testing.assert_array_equal(got, want)
        whole = ~np.isnan(want)
        assert (np.signbit(got.imag[whole]) == np.signbit(want.imag[whole])).all()
    else:
        np.testing.assert_allclose(got, want, rtol=1e-6)
