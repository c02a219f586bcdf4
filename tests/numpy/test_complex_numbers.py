"""Python's complex numbers beside NumPy's: whose the result is, and whose the errors are."""

import operator

import numpy as np
import pytest

import flambeau as torch

LEFT = [0.5 + 0.5j, 2.0, True, np.float64(0.5), np.complex128(1 + 2j), np.float32(0.25)]
DTYPES = ["f8", "c16", "f4", "c8", "i8", "u1", "?"]
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq, operator.ne, operator.iadd]  # fmt: skip


def told(f, *args):
    try:
        with np.errstate(all="ignore"):
            return [(type(x), repr(x)) for x in f(*args)]
    except Exception as e:
        return type(e), str(e)


def same(f, *args):
    torch._dynamo.reset()
    compiled = torch.compile(f, backend="eager")
    want = told(f, *args)
    for _ in range(2):
        assert told(compiled, *args) == want


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of", OPERATORS, ids=lambda of: of.__name__)
def test_whose_the_result_is(of, dtype):
    a = np.array([1, 0]).astype(dtype)

    def both(a, z):
        return of(z, a[0]), of(a[0], z)

    for z in LEFT:
        same(both, a, z)


def scaled(a):
    z = 2j * a[1]
    return np.exp(z), z * a, z + a[0], z + 1, 1 - z, z


def negated(a):
    return np.abs(-(1j * a[0])), 1j * a[0] == 1j


def written(a):
    out = np.zeros(3, complex)
    out[1] = 1j * a[1]
    return out.tolist(), out


def divided(a):
    return (1j / a[0],)


def refused(a):
    a[0] = 1j * a[1]
    return (a,)


def horner(a):
    r = 0j
    for c in a[::-1]:
        r = r * (0.5 + 0.5j) + c
    return (r,)


@pytest.mark.parametrize("f", [scaled, negated, written, divided, refused, horner], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16", "c8"])
def test_programs(f, dtype):
    same(f, np.array([0, 1, 2]).astype(dtype))


def test_one_graph():
    @torch.compile(fullgraph=True)
    def f(a):
        out = np.empty(3, complex)
        for k in range(3):
            out[k] = np.exp(1j * a[k]) + 1j * a[k]
        return out

    a = np.arange(3.0)
    np.testing.assert_allclose(f(a), np.exp(1j * a) + 1j * a, rtol=1e-14)


def as_python(a):
    return a.tolist(), a[1].item(), a.item(0), a.reshape(2, 2)[1:].tolist()


def computed_on(a):
    return [x * 2 for x in a.tolist()], a.sum().item(), a.sum() + a[0].item()


@pytest.mark.parametrize("dtype", ["u8", "u4", "u1", "c16", "c8", "i8", "f4", "?"])
@pytest.mark.parametrize("f", [as_python, computed_on], ids=lambda f: f.__name__)
def test_numbers_of_pythons(f, dtype):
    a = np.array([1, 0, 3, 250], "u1").astype(dtype)
    a[3:] += a[3:]
    if dtype == "u8":
        a[1] = (1 << 64) - 1
    same(f, a)
    same(f, a * a.dtype.type(1))


@pytest.mark.parametrize("dtype", ["u8", "u1", "c16", "c8"])
def test_numbers_of_pythons_in_one_graph(dtype):
    a = np.arange(4).astype(dtype)
    torch._dynamo.reset()
    assert told(torch.compile(as_python, fullgraph=True), a) == told(as_python, a)
