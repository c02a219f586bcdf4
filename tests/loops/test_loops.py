"""Loops as native loops: values, types, effects and errors beside plain Python, and what is left to Python."""

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import check, same

R = np.random.RandomState(0)
N = 200


def sums(x):
    total, count = 0.0, 0
    for i in range(len(x)):
        if x[i] > 0:
            total += x[i]
            count += 1
    return total, count


def breaks(x, limit):
    at = -1
    for i in range(x.shape[0]):
        if x[i] > limit:
            at = i
            break
    return at


def continues(x):
    s = 0
    for i in range(len(x)):
        if i % 3 == 1:
            continue
        s += int(x[i] * 10) // 3
    return s


def nested(a, b):
    for i in range(a.shape[0]):
        for j in range(i, a.shape[1]):
            if (i + j) % 2 == 0 and a[i, j] > 0.5 or j == 3:
                a[i, j] += b[j] * 2 - a[j, i] ** 2
            else:
                a[i, j] = -a[i, j] if b[i] > 0 else max(a[i, j], 0.25)


def backwards(x):
    for i in range(len(x) - 2, -1, -1):
        x[i] += 0.5 * x[i + 1]
    return i


def while_loop(x):
    i, j = 0, len(x) - 1
    while i < j:
        x[i], x[j] = x[j], x[i]
        i += 1
        j -= 1
    return i


def numbers_only(n):
    a, b = 0.1, 3
    for i in range(n):
        a = 3.7 * a * (1 - a)
        b = (b * 7 + i) % 1013
    return a, b, i


def slices(a, v):
    for i in range(1, a.shape[0]):
        a[i, :] -= a[i - 1, :] * v[i] / 2
        a[i, :-1] = a[i, 1:] * 0.5 + v[: a.shape[1] - 1]
        v[i] = a[i, ::2].sum() + a[i] @ a[i - 1]


def mathematics(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = np.sin(x[i]) + math.sqrt(abs(x[i])) * np.exp(-x[i]) + np.arctan2(x[i], 2.0) + math.floor(x[i] * 3)
    return out


def float32s(x, y):
    s = x[0]
    for i in range(len(x)):
        y[i] = x[i] * 2.5 + 1
        s = np.maximum(s, y[i])
    return s


def bytes_(x):
    h = 0
    for i in range(len(x)):
        h = ((h << 5) ^ int(x[i])) & 0xFFFFFF
        x[i] = x[i] * 3 + 7
    return h


def flags(x):
    found = False
    for i in range(len(x)):
        found = found or x[i]
        x[i] = not x[i]
    return found


def chained(x):
    n = 0
    for i in range(len(x)):
        if -0.5 < x[i] <= 0.5:
            n += 1
    return n


def while_continues(x):
    i = n = 0
    while i < len(x):
        i += 1
        if x[i - 1] > 0:
            continue
        n += i
        while n > 100:
            n -= 7
            if n % 3 == 0:
                continue
            n -= 1
    return n, i


def while_between(x):
    k, n = 0, 0
    while 0 <= k < len(x):
        n += 1
        k += 2 if x[k] > 0.1 else -1 if n % 7 == 0 else 1
    return k, n


def while_numbers(x, end):
    n = 0
    while x < end:
        x = x * 1.01 + 0.001
        n += 1
        if n % 2:
            continue
        x += 0.0001
    return x, n


def pythons_mathematics(x):
    s = 0.0
    for i in range(len(x)):
        a = min(abs(x[i]), 1.0)
        s += (
            math.hypot(a, x[i])
            + math.atan2(x[i], a)
            + math.asin(a)
            + math.acos(-a)
            + math.log2(1 + a)
            + math.log10(2 + a)
        )
        s += (
            math.tan(a)
            + math.sinh(a)
            + math.expm1(a)
            + math.log1p(a)
            + math.erf(a)
            + math.copysign(a, x[i])
            + round(x[i] * 10)
        )
        s += np.round(x[i]) + np.round(i) + round(i) + math.trunc(x[i] * 3)
    return s


V = R.randn(N)
A = R.rand(24, 24)
CASES = {
    "sums": (sums, V),
    "strided": (nested, np.broadcast_to(A[:, :, None], (24, 24, 2))[:, :, 0], R.rand(24)),
    "no trips": (sums, V[:0]),
    "break": (breaks, V, 2.0),
    "no break": (breaks, V, 1e9),
    "continue": (continues, np.abs(V)),
    "nested": (nested, A, R.rand(24)),
    "nested, transposed": (nested, A.T, R.rand(24)),
    "backwards": (backwards, V),
    "while": (while_loop, V),
    "numbers only": (numbers_only, 5000),
    "slices": (slices, R.rand(40, 8), R.rand(40)),
    "mathematics": (mathematics, V),
    "float32": (float32s, V.astype(np.float32), np.zeros(N, np.float32)),
    "mixed": (float32s, V.astype(np.float32), np.zeros(N)),
    "bytes": (bytes_, R.randint(0, 256, N).astype(np.uint8)),
    "flags": (flags, V > 2),
    "chained": (chained, V),
    "while with continue": (while_continues, V),
    "while with a < b < c": (while_between, V),
    "while over numbers": (while_numbers, 1.0, 90.0),
    "few turns of while over numbers": (while_numbers, 80.0, 90.0),
    "Python's mathematics": (pythons_mathematics, V),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees(name):
    f, *args = CASES[name]
    torch._dynamo.reset()
    # A maximum of float32 and float64 has one dtype or the other, from one turn of the loop to the next.
    check(f, *args, native=not name.startswith(("no trips", "mixed", "few turns")))


def index_error(x):
    for i in range(len(x) + 3):
        x[i] = i


def zero_division(x):
    t = 1.0
    for i in range(len(x)):
        t = 1.0 / (5 - i)
        x[i] = t


def integer_modulo(x):
    for i in range(len(x)):
        x[i] = 7 % (50 - i)


def overflow(x):
    n = 1
    for i in range(len(x)):
        n = n * 3
        x[i] = n % 1000


def uint8_overflow(x):
    for i in range(len(x)):
        x[i] = i + 100


def domain(x):
    for i in range(len(x)):
        x[i] = math.sqrt(3 - i)


def domain_of_sine(x):
    for i in range(len(x)):
        x[i] = math.sin(-1e308 * (1 + i))


def domain_of_arcsine(x):
    for i in range(len(x)):
        x[i] = math.asin(0.01 * i)


def not_a_number(x):
    for i in range(len(x)):
        x[i] = round(x[i] * np.nan)


@pytest.mark.parametrize(
    "f, dtype",
    [
        (domain_of_sine, float),
        (domain_of_arcsine, float),
        (not_a_number, float),
        (index_error, float),
        (zero_division, float),
        (integer_modulo, int),
        (uint8_overflow, np.uint8),
        (domain, float),
    ],
)
def test_errors_are_pythons(f, dtype):
    with pytest.raises(Exception) as plain:
        f(np.zeros(N, dtype))
    with pytest.raises(type(plain.value)) as compiled:
        torch.compile(f)(np.zeros(N, dtype))
    assert str(compiled.value) == str(plain.value)


def test_integers_beyond_64_bits_run_plainly():
    check(overflow, np.zeros(N))


def test_effects_before_an_error_are_there():
    def f(x, n):
        for i in range(n):
            x[i] += 1.0
        return x.sum()

    check(f, np.zeros(N), N + 1)
    check(f, np.zeros(2 * N)[::2], N + 1)


def test_arrays_that_share_memory():
    def f(x, y):
        for i in range(1, len(x)):
            x[i] = x[i - 1] + y[i]

    compiled = torch.compile(f)
    for _ in range(2):
        a, b = R.rand(2 * N), None
        b = a.copy()
        f(a[:N], a[N // 2 : N // 2 + N])
        compiled(b[:N], b[N // 2 : N // 2 + N])
        np.testing.assert_array_equal(a, b)


INTS = [-7, -3, -1, 1, 2, 5, 1 << 40, -(1 << 40)]
FLOATS = [-2.5, -1.0, -0.0, 0.0, 0.75, 3.0, 1e300, math.inf, -math.inf, math.nan]


def _operators(symbol, x, y, out):
    scope = {}
    exec(
        f"def f(x, y, out):\n    for i in range(len(x)):\n        for j in range(len(y)):\n            out[i, j] = x[i] {symbol} y[j]\n",
        scope,
    )
    check(scope["f"], x, y, out)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "<", "==", "!="])
@pytest.mark.parametrize("kinds", ["ff", "fi", "ii"])
def test_operators_on_numpy_numbers(symbol, kinds):
    x, y = (np.array((FLOATS if k == "f" else INTS) * 4) for k in kinds)
    _operators(symbol, x, y, np.zeros((len(x), len(y))))


@pytest.mark.parametrize("symbol", ["&", "|", "^", "<<", ">>", "//", "%"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
def test_operators_on_integers(symbol, dtype):
    x = np.array([0, 1, 5, 100, 127, 3, 64, 2] * 4).astype(dtype)
    y = np.array([0, 1, 2, 7, 100, 3, 6, 5] * 4).astype(dtype)
    _operators(symbol, x, y, np.zeros((len(x), len(y)), dtype))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "//", "%", "&", "|", "^", ">>", "/"])
def test_operators_on_python_integers(symbol):
    scope = {}
    text = f"def f(out):\n    for i in range(40):\n        for j in range(40):\n            out[i, j] = (i - 20) {symbol} (j + 1)\n"
    exec(text, scope)
    check(scope["f"], np.zeros((40, 40)))


def strings(x):
    s = "a"
    for i in range(len(x)):
        s = s + "b"
        x[i] = len(s)


def test_what_is_not_understood_stays_python():
    with torch._dynamo.config.patch(native_loops=True):
        check(strings, np.zeros(60), native=False)


def test_gradients():
    def f(x):
        y = x.copy()
        for i in range(1, len(x)):
            y[i] = y[i - 1] * 0.5 + x[i]
        return y.sum()

    x, y = (torch.from_numpy(V[:120].copy()).requires_grad_() for _ in range(2))
    torch.compile(torch.compiler.wrap_numpy(f))(x).backward()
    total = t = torch.zeros((), dtype=torch.float64)
    for i in range(120):
        t = t * 0.5 + y[i] if i else y[0]
        total = total + t
    total.backward()
    assert torch.allclose(x.grad, y.grad)


def test_a_short_loop_is_unrolled():
    def f(x):
        for i in range(3):
            x = x + i
        return x

    check(f, V, native=False)


def test_one_kernel_for_all_sizes():
    torch._dynamo.reset()
    compiled = torch.compile(sums)
    for n in range(100, 1000, 90):
        x = R.randn(n)
        same(compiled(x), sums(x))
    assert counters["stats"]["native_loops"] == 2  # the first size, and all others


def test_ends_of_a_range_that_vary():
    def f(x, first, last, scale):
        for i in range(first, last, 3):
            x[i] = x[i - 1] * scale + i
        return x

    torch._dynamo.reset()
    compiled = torch.compile(f)
    for last, scale in ((300, 0.5), (320, 0.25), (333, 0.125), (400, 0.75), (450, 0.875)):
        same(compiled(np.ones(500), 7, last, scale), f(np.ones(500), 7, last, scale))
    assert counters["stats"]["native_loops"] == 2


# ---- arrays that the loop makes ------------------------------------------------------------------------------------------------


def rebinds(a, x):
    r = np.zeros(len(x))
    for _ in range(60):
        y = a @ x
        x = np.where(y > 1, y / 2, y + 0.1)
        r = r + x - x.mean()
    return x, r


def swaps_names(x, y):
    for i in range(101):
        x, y = y, x * 0.5 + y
        y[0] = i
    return x, y


def keeps_alias(x):
    y = x * 1
    for _ in range(80):
        z = y
        y = y + 1
        z[0] = y[1] - z[2]
    return y, x


def in_place(x, y):
    x2 = x
    for i in range(70):
        x2 += y
        x[i % 5] *= 0.5
    return x2


def overlapping(x):
    for _ in range(70):
        x[1:] = x[:-1] * 0.5 + x[1:]
        x[:-1], x[1:] = x[1:] * 0.9, x[:-1] * 1.1
    return x.sum()


def reductions(a, out):
    for i in range(60):
        b = a * (i + 1)
        out[0] = b.sum(axis=0).max() + np.min(b) + np.max(b, axis=1).sum()
        out[1] += np.argmax(b[i % 4]) + b.argmin()
        out[2:6] = np.sum(b, axis=1, keepdims=True)[:, 0]
        out[6] = (b > 1).any() + 2 * (b > 0).all() + b.mean()


def masks(x):
    for i in range(100):
        x[x > 3] = i * 0.01
        x *= 1.5
    return x


def temporaries_of_many_sizes(x):
    s = 0.0
    for i in range(1, 90):
        t = np.zeros(i)
        t[:] = x[:i]
        u = t.copy()
        s += (t * u).sum()
    return s


def matrix_vector(a, x, y):
    for _ in range(60):
        y[:] = a @ x + x @ a
        x /= y.max() - np.dot(x, y) * 0


def wrong_shapes(x, y):
    for i in range(100):
        x[:] = x + y[: 3 + i]


ARRAYS = {
    "rebinds": (rebinds, R.rand(6, 6) / 6, R.rand(6)),
    "swaps names": (swaps_names, R.rand(5), R.rand(5)),
    "keeps alias": (keeps_alias, R.rand(4)),
    "in place": (in_place, R.rand(6), R.rand(6)),
    "overlapping": (overlapping, R.rand(7)),
    "reductions": (reductions, R.rand(4, 3) - 0.3, np.zeros(8)),
    "masks": (masks, R.rand(9)),
    "many sizes": (temporaries_of_many_sizes, R.rand(100)),
    "matrix and vector": (matrix_vector, R.rand(4, 4), R.rand(4), np.zeros(4)),
    "integers": (masks, R.randint(0, 9, 20)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    f, *args = ARRAYS[name]
    torch._dynamo.reset()
    check(f, *args, native=name != "integers")


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="broadcast"):
        torch.compile(wrong_shapes)(np.zeros(4), np.zeros(200))


def test_explain_tells_what_became_of_each_loop():
    def mixed(a):
        for i in range(300):
            a[i] += 1
        out = 0.0
        for i in range(300):
            out += a[i] * len(str(i))
        return out

    notes = torch._dynamo.explain(mixed)(np.zeros(300)).loops
    assert len(notes) >= 2 and ": native, on several threads" in notes[0] and __file__ in notes[0]
    line = mixed.__code__.co_firstlineno + 5
    assert any("stays Python: a call of" in note and f"line {line}" in note for note in notes[1:]), notes


def test_a_loop_that_was_no_native_one_when_it_ran():
    """Which is known when it has failed: captured anew, it isn't tried at each call."""

    def f(x, n):
        y = x.reshape((1, x.shape[0]))
        for _ in range(n):
            m, half = y.shape[0], y.shape[1] // 2
            turned = np.exp(-1j * np.pi * np.arange(m) / m)[:, None] * y[:, half:]
            y = np.vstack([y[:, :half] + turned, y[:, :half] - turned])
        return y

    x, frames = np.arange(65536) + 0j, torch._dynamo.testing.CompileCounter()
    g = torch.compile(f, backend=frames)
    for _ in range(4):
        assert np.allclose(g(x, 16), f(x, 16))
    assert frames.frame_count == 2
