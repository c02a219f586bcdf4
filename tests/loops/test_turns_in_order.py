"""Element-wise turns over the same elements, several at a time in their order: NumPy's results to the bit, and which loops are taken so."""

import json

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime
from flambeau.loops import operator
from flambeau.loops.turns import turns_in_order

R = np.random.RandomState(7)
N = 20_000  # elements that are worth blocks


def shifted_sums(out, x, c):
    m = len(out)
    for k in range(len(c)):
        out += c[k] * x[k : k + m]


def shifted_the_other_way(out, x, c):
    m = len(out)
    for k in range(len(c)):
        out -= x[len(c) - 1 - k : len(c) - 1 - k + m] / c[k]


def polynomial(out, x, c):
    y = x[: len(out)]
    for k in range(len(c)):
        out *= y
        out += c[k]


def horner_in_one(out, x, c):
    y = x[: len(out)]
    for k in range(len(c)):
        out[:] = out * y + c[k]


def scaled_by_a_variable(out, x, c):
    m, w = len(out), 1.0
    for k in range(len(c)):
        w = w * 0.9 + c[k]
        out += w * x[k : m + k]


def over_numbers(out, x, c):
    y = x[: len(out)]
    for w in c:
        out[:] = np.minimum(out + w, y * w)


def part_of_it(out, x, c):
    for k in range(len(c)):
        out[1:-1] += c[k] * x[1 : len(out) - 1]


def columns(out, x, c):
    for k in range(len(c)):
        out[:] = out * 0.5 + x[: len(x) // 4 * 4].reshape(-1, 4)[:, k % 4][: len(out)]


TOGETHER = [shifted_sums, shifted_the_other_way, horner_in_one, scaled_by_a_variable, over_numbers]
APART = [polynomial, part_of_it, columns]


def reads_what_it_writes(out, x, c):
    m = len(out)
    for k in range(len(c)):
        out[1:] += c[k] * out[:-1]
        x[0] += out[m // 2]


def number_of_the_array(out, x, c):
    for k in range(len(c)):
        out += out[5] * c[k]


def steps_of_two(out, x, c):
    m = len(out)
    for k in range(0, len(c), 2):
        out += c[k] * x[k : k + m]


def condition(out, x, c):
    m = len(out)
    for k in range(len(c)):
        if c[k] > 0.5:
            out += c[k] * x[k : k + m]


ONE_BY_ONE = [reads_what_it_writes, number_of_the_array, steps_of_two, condition]


@pytest.fixture
def taken(monkeypatch):
    """Whether several turns are taken at once, of each loop by blocks of rows."""
    made, known = [], turns_in_order.take_several

    def take_several(*args):
        made.append(known(*args))
        return made[-1]

    monkeypatch.setattr(turns_in_order, "take_several", take_several)
    return made


def given(n=N, taps=13, dtype=np.float64):
    return R.rand(n).astype(dtype), R.rand(4 * n + taps).astype(dtype), (R.rand(taps) + 0.1).astype(dtype)


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()


def same_bits(f, compiled, arrays):
    plain, ours = [a.copy() for a in arrays], [a.copy() for a in arrays]
    f(*plain)
    compiled(*ours)
    for a, b in zip(plain, ours):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("threads", ["one", "two"])
@pytest.mark.parametrize("f", TOGETHER + APART + ONE_BY_ONE, ids=lambda f: f.__name__)
def test_bits_of_numpy(f, threads, taken):
    before = _runtime.loops_worth(0 if threads == "two" else 10**12)
    try:
        same_bits(f, torch.compile(f), given())
    finally:
        _runtime.loops_worth(before)
    if f in TOGETHER:
        assert taken and all(taken)
    if f in ONE_BY_ONE:
        assert not any(taken)


@pytest.mark.parametrize("taps", [0, 1, 2, 7, 8, 9, 16, 17, 40])
def test_numbers_of_turns(taps):
    for f in TOGETHER:
        same_bits(f, torch.compile(f), given(taps=taps))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128, np.int16])
def test_dtypes(dtype):
    for f in (shifted_sums, horner_in_one) if dtype != np.int16 else (shifted_sums,):
        out, x, c = given()
        arrays = [(a * 9).astype(dtype) for a in (out, x, c)]
        same_bits(f, torch.compile(f), arrays)


def test_sizes_that_vary():
    for f in TOGETHER:
        compiled = torch.compile(f, dynamic=True)
        for n in (17_001, 16_384, 30_011, 40, 1, 0):
            same_bits(f, compiled, given(n))


def test_parts_and_steps_of_arrays():
    wide, x, c = R.rand(3 * N), R.rand(9 * N), R.rand(11)
    for cut in (slice(1, N), slice(None, None, 2), slice(None, None, -1), slice(5, -5, 3)):
        plain, ours = wide.copy(), wide.copy()
        shifted_sums(plain[cut], x[::2], c)
        torch.compile(shifted_sums)(ours[cut], x[::2], c)
        np.testing.assert_array_equal(plain, ours)


@pytest.mark.parametrize("moved", [0, 1, 5, N // 2, N])
def test_one_memory(moved):
    """What is read may be what is written."""
    whole, c = R.rand(2 * N + 20), R.rand(9)
    plain, ours = whole.copy(), whole.copy()
    shifted_sums(plain[moved : moved + N], plain[: N + 20], c)
    torch.compile(shifted_sums)(ours[moved : moved + N], ours[: N + 20], c)
    np.testing.assert_array_equal(plain, ours)


@pytest.mark.parametrize("at", [0, 3, 9, 17])
def test_errors_in_the_middle(at):
    """Turns before an error have their effects, as Python's have."""

    def f(out, x, c, places):
        for k in range(len(places)):
            out += c[places[k]] * x[: len(out)]

    def g(out, x, c, places):
        for k in range(len(places)):
            out += c[k] * x[k : k + len(out)]

    out, x, c = given(taps=20)
    places = np.arange(18) % 5
    places[at] = 100
    for fn, args, error in ((f, (out, x, c, places), IndexError), (g, (out, x[: N + at - 1], c, places), ValueError)):
        plain, ours = [a.copy() for a in args], [a.copy() for a in args]
        with pytest.raises(error):
            fn(*plain)
        with pytest.raises(error):
            torch.compile(fn)(*ours)
        np.testing.assert_array_equal(plain[0], ours[0])


def test_only_one_size_is_broadcast():
    """What is added in place has the sizes of its place, or is broadcast to them."""

    def f(out, x, c):
        for k in range(len(c)):
            out += x[k : k + 1]

    def g(out, x, c):
        for k in range(len(c)):
            out += c[k] * x[k : k + 2]

    same_bits(f, torch.compile(f), given())
    for n in (2, 1, 0, 3):
        args = given(n)
        plain, ours = [a.copy() for a in args], [a.copy() for a in args]
        if n == 2:
            same_bits(g, torch.compile(g), args)
            continue
        with pytest.raises(ValueError):
            g(*plain)
        with pytest.raises(ValueError):
            torch.compile(g)(*ours)
        np.testing.assert_array_equal(plain[0], ours[0])


def test_what_is_kept():
    """The kernel of the filter is by blocks of elements."""
    made, known = [], operator.program

    def program(*args):
        made.append(json.loads(text := known(*args))["text"])
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "program", program)
        same_bits(shifted_sums, torch.compile(shifted_sums), given())
    assert made and all("KERNEL.turns" in t for t in made)
