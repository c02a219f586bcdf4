"""Loops of call plans in place of NumPy's (csrc/core/loops.c): limits by a number, common divisors and multiples. They have NumPy's bits."""

import numpy as np
import pytest

import flambeau as torch

SIZES = [1, 4, 5, 67]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, -1.5, 5e-324, -5e-324]


def of_floats(n, dtype):
    return np.resize(np.array([*FLOATS, 0.25, -3.0, 7.0], dtype), n)


def of_integers(n, dtype):
    info = np.iinfo(dtype)
    some = [0, 1, 2, 3, 12, 18, 100, 99, info.max, info.max - 1, info.min, info.min + 1]
    return np.resize(np.array(some + ([-1, -4, -12, -35] if info.min else []), dtype), n)


def same_bits(result, expected):
    found = result.numpy()
    assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def often(run):
    """The result of the third call: the first is the Python way's, the second makes the plan."""
    run()
    run()
    return run()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", FLOATS)
def test_limits_of_floats(dtype, number):
    b = np.dtype(dtype).type(number)
    for n in SIZES:
        a = of_floats(n, dtype)
        x = torch.from_numpy(a)
        same_bits(often(lambda: x.clamp_min(number)), np.maximum(a, b))
        same_bits(often(lambda: x.clamp_max(number)), np.minimum(a, b))
        same_bits(often(lambda: x.clamp(number, 2.0)), np.minimum(np.maximum(a, b), np.dtype(dtype).type(2.0)))
        same_bits(often(lambda: torch.relu(x)), np.maximum(a, np.dtype(dtype).type(0)))
        same_bits(often(lambda: torch.clamp_min(x, number, out=torch.empty_like(x))), np.maximum(a, b))
        same_bits(often(lambda: x.clone().clamp_max_(number)), np.minimum(a, b))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_limits_of_integers(dtype):
    for n in SIZES:
        a = of_integers(n, dtype)
        x = torch.from_numpy(a)
        for number in {0, 5, int(a.min()), int(a.max())}:
            b = np.dtype(dtype).type(number)
            same_bits(often(lambda: x.clamp(min=number)), np.maximum(a, b))  # noqa: B023
            same_bits(often(lambda: x.clamp(max=number)), np.minimum(a, b))  # noqa: B023


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_limits_of_other_layouts(dtype):
    a = (of_floats if dtype == "float32" else of_integers)(24, dtype).reshape(4, 6)
    b = np.dtype(dtype).type(1)
    for view in (
        lambda t: t,
        lambda t: t.T,
        lambda t: t[:, ::2],
        lambda t: t[1:3, 1:5],
        lambda t: t[:, :0],
        lambda t: t[2],
    ):
        expected = np.maximum(view(a), b)
        assert often(lambda: view(torch.from_numpy(a)).clamp_min(1)).numpy().tobytes() == expected.tobytes()  # noqa: B023
    x = torch.from_numpy(a)
    zero_dim = torch.tensor(1, dtype=x.dtype)
    same_bits(often(lambda: torch.maximum(x, zero_dim)), np.maximum(a, b))
    same_bits(often(lambda: torch.minimum(zero_dim, x)), np.minimum(b, a))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_common_divisors_and_multiples(dtype):
    for n in SIZES:
        a = of_integers(n, dtype)
        for b in (a[::-1].copy(), np.roll(a, 3), np.zeros_like(a), np.full_like(a, 12)):
            x, y = torch.from_numpy(a), torch.from_numpy(b)
            same_bits(often(lambda: torch.gcd(x, y)), np.gcd(a, b))  # noqa: B023
            with np.errstate(over="ignore"):
                same_bits(often(lambda: torch.lcm(x, y)), np.lcm(a, b))  # noqa: B023
            same_bits(often(lambda: x.clone().gcd_(y)), np.gcd(a, b))  # noqa: B023
    a = of_integers(24, dtype).reshape(4, 6)
    x = torch.from_numpy(a)
    same_bits(often(lambda: torch.gcd(x[:, ::2], x[1, ::2])), np.gcd(a[:, ::2], a[1, ::2]))
    same_bits(often(lambda: torch.gcd(x, torch.tensor(12, dtype=x.dtype))), np.gcd(a, np.dtype(dtype).type(12)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("n", [1, 255, 256, 257, 700])
def test_the_first_greatest_element_and_nans(dtype, n):
    a = (of_floats if dtype.startswith("f") else of_integers)(n, dtype)
    for b in (a, a[::-1].copy(), np.full_like(a, 3), np.nan_to_num(a, nan=2)):
        x = torch.from_numpy(b)
        assert often(lambda: torch.argmax(x)).item() == int(np.argmax(b))  # noqa: B023
        assert often(lambda: torch.argmin(x)).item() == int(np.argmin(b))  # noqa: B023
        assert often(lambda: torch.argmax(x[::2])).item() == int(np.argmax(b[::2]))  # noqa: B023
