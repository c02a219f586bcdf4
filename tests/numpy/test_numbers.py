"""NumPy's numbers: those that a graph computes are numbers where NumPy's are, and those that are passed and vary don't make a variant each."""

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters

A = np.arange(12.0).reshape(3, 4)

OF_A_NUMBER = {
    "asarray": lambda s: np.asarray(s),
    "asarray of a dtype": lambda s: np.asarray(s, dtype=np.float64),
    "asanyarray": lambda s: np.asanyarray(s),
    "roll": lambda s: np.roll(s, 1),
    "reshape": lambda s: np.reshape(s, ()),
    "transpose": lambda s: np.transpose(s),
    "moveaxis": lambda s: np.moveaxis(s, (), ()),
    "squeeze": lambda s: np.squeeze(s),
    "real": lambda s: np.real(s),
    "imag": lambda s: np.imag(s),
    "copy": lambda s: np.copy(s),
    "broadcast_to": lambda s: np.broadcast_to(s, ()),
    "method": lambda s: s.reshape(()),
    "has no __setitem__": lambda s: hasattr(s, "__setitem__"),
}


def described(f, *args):
    try:
        r = f(*args)
    except Exception as e:
        return type(e), str(e)
    return type(r), repr(r), getattr(r, "dtype", None), r.flags.writeable if isinstance(r, np.ndarray) else None


@pytest.mark.parametrize("f", OF_A_NUMBER.values(), ids=OF_A_NUMBER)
def test_functions_of_a_number(f):
    def whole(a):
        return f(a.sum())

    torch._dynamo.reset()
    assert described(torch.compile(whole), A) == described(whole, A)


def test_array_of_a_number_is_an_array_of_its_own():
    def f(a):
        s = a.sum()
        b = np.asarray(s)
        b[...] = 5
        return s, b

    assert repr(torch.compile(f)(A)) == repr(f(A))


def test_number_takes_no_items():
    def f(a):
        s = a.sum()
        s[...] = 1

    for g in (f, torch.compile(f)):
        with pytest.raises(TypeError, match=r"'numpy.float64' object does not support item assignment"):
            g(A)


def loop(a, k):
    total = 0.0
    for i in range(k):
        total += a[0, i % 4]
    return total


VARYING = {  # function of an array and a number, and the variants that seven numbers make
    "a * k + k": (lambda a, k: a * k + k, 2),
    "k + 1": (lambda a, k: (a * 2, k + 1, k / 2, k // 2, k % 3, -k, abs(k)), 2),
    "a[0, k]": (lambda a, k: a[0, k % 4], 2),
    "types": (lambda a, k: (a * 2, type(k), k.dtype, isinstance(k, np.integer), isinstance(k, int), k.ndim), 2),
    "ufuncs": (lambda a, k: (np.maximum(a, k), np.full(3, 1.0) * k, np.where(a > k, a, k)), 2),
    "a size": (lambda a, k: (np.zeros(k), a * k), 7),
    "a slice": (lambda a, k: a.ravel()[:k] * k, 7),
    "a condition": (lambda a, k: a + 1 if k > 3 else k, 7),
    "a range": (loop, 7),
    "a view": (lambda a, k: a[k % 3], 7),
    "a key": (lambda a, k: {1: 2, 2: 3}.get(k), 7),
}


@pytest.mark.parametrize("f, variants", VARYING.values(), ids=VARYING)
def test_integers_that_vary(f, variants):
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(f)
    for k in range(1, 8):
        assert described(compiled, A, np.int64(k)) == described(f, A, np.int64(k))
    assert counters["frames"]["total"] <= variants


def test_index_outside_by_a_number_that_varies():
    def f(a, k):
        return a[k]

    torch._dynamo.reset()
    compiled, a = torch.compile(f), np.arange(6.0)
    for k in (1, 2, -1, -6, 6, -7, 5):
        assert described(compiled, a, np.int64(k)) == described(f, a, np.int64(k))


def test_narrow_integers_stay_known():
    """Their arithmetic overflows often, and NumPy warns."""

    def f(k):
        return -k

    torch._dynamo.reset()
    compiled = torch.compile(f)
    for k in (1, 2, 3):
        with pytest.warns(RuntimeWarning, match="overflow encountered in scalar negative"):
            assert compiled(np.uint8(k)) == 256 - k


def into_an_element(a, b):
    a[1] = b[1]
    return a


def into_a_slice(a, b):
    a[1:] = b[1]
    return a


def into_places(a, b):
    a[np.array([1])] = b[1]
    return a


def filled(a, b):
    a.fill(b[1])
    return a


def of_a_list(a, b):
    return np.array([b[0], b[1]], a.dtype)


def added(a, b):
    a[1] += b[1]
    return a


@pytest.mark.parametrize("f", [into_an_element, into_a_slice, into_places, filled, of_a_list, added])
@pytest.mark.parametrize(
    "number", [np.int64(300), np.uint8(200), np.uint64(2**63 + 5), np.int64(-1), np.float64(300.7)]
)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8])
def test_numbers_that_an_element_cannot_hold(f, number, dtype):
    """NumPy raises where signed integers can't hold a number, and casts into places and into unsigned ones."""
    b = np.full(4, number)
    torch._dynamo.reset()
    assert described(torch.compile(f), np.zeros(4, dtype), b) == described(f, np.zeros(4, dtype), b)


@pytest.mark.parametrize("number", [300, -1, 2**63, -(2**63) - 1, 2**64, 10**400, 1e400, 70000.0, np.nan, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("f", [np.full, np.full_like, np.array, np.asarray], ids=lambda f: f.__name__)
def test_python_numbers_that_an_array_cannot_hold(f, dtype, number):
    """The numbers are constants of the graph."""
    first = {np.full: 2, np.full_like: np.zeros(2)}.get(f)

    def made(x):
        return (f([number], dtype=dtype) if first is None else f(first, number, dtype=dtype)), x + 1

    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert described(torch.compile(made, backend="eager"), A) == described(made, A)


INFINITE = """
np.array([v, x[0, 0]])
np.asarray([v], dtype="float32")
np.nan_to_num(x, posinf=v)
np.pad(x, 1, constant_values=np.float32(v))
np.full(2, v)
np.histogram(x, [-1, 0, 2, abs(v)])[0]
np.sum(x, initial=v)
np.interp(x[0], [0, 1], [0, 1], left=v, right=v)
np.insert(x[0], 1, v)
np.linalg.norm(x, v)
np.array([v + 1j, 1])
np.random.default_rng(0).normal(v, 1, 3)
""".strip().splitlines()


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("text", INFINITE)
def test_infinite_constants_in_calls(text, number):
    scope = {"np": np, "v": number}
    exec(f"def f(x):\n    return {text}, x + 1", scope)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the compiler warns of errors of its own
        assert described(torch.compile(scope["f"], backend="eager"), A) == described(scope["f"], A)
