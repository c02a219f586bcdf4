"""Floating-point errors of captured NumPy code: NumPy's warnings and errors, text and line, as its error state asks, and none beside them."""

import functools
import itertools
import operator
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.config import config
from flambeau.dynamo.numpy import floating_errors
from flambeau.dynamo.utils import counters

INF, NAN = np.inf, np.nan


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def told(f, *args, action="always"):
    """(class and text of the error, else the result; warnings with their lines; the arguments afterwards)"""
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        try:
            out = f(*args)
        except (ArithmeticError, RuntimeWarning) as e:
            out = type(e).__name__, str(e)
    return repr(out), [(w.category, str(w.message), w.filename, w.lineno) for w in caught], repr(args)


def compare(f, *args, backend="inductor", calls=2, warns=None):
    """``f`` compiled tells what ``f`` does, at each of some calls; ``warns``: how often, where that is known."""
    compiled = torch.compile(f, backend=backend)
    want = told(f, *args)
    if warns is not None:
        assert len(want[1]) == warns
    for _ in range(calls):
        assert told(compiled, *args) == want
    return want


# --- functions -------------------------------------------------------------------------------------------------------
UNARY = (
    "negative sqrt square exp exp2 expm1 log log2 log10 log1p sin tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh reciprocal "
    "rint isnan sign".split()
)
BINARY = (
    "add subtract multiply divide power arctan2 hypot maximum fmin remainder floor_divide less equal logaddexp".split()
)
QUIRKS = {("power", "float64"), ("power", "float32")}
"""Of infinite exponents, where NumPy's library raises an overflow of an exact result."""


def values(dtype):
    of = np.finfo(dtype)
    return [0.0, -0.0, -1.0, -2.5, INF, -INF, NAN, float(of.max), float(of.tiny)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name, dtype):
    u = getattr(np, name)

    def f(x):
        return u(x)

    compiled = torch.compile(f)
    for v in values(dtype):
        x = np.full(11, 0.75, dtype)
        x[9] = v
        assert told(compiled, x)[1] == told(f, x)[1], v


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name, dtype):
    u = getattr(np, name)

    def f(x, y):
        return u(x, y)

    compiled = torch.compile(f)
    for v, w in itertools.product(values(dtype)[1:], repeat=2):
        if (name, np.dtype(dtype).name) in QUIRKS and np.isinf(w):
            continue
        x, y = np.full((2, 11), 0.75, dtype)
        x[9], y[9] = v, w
        assert told(compiled, x, y)[1] == told(f, x, y)[1], (v, w)


# --- programs --------------------------------------------------------------------------------------------------------
def two_lines(x):
    y = x + 1
    z = 1.0 / x
    return np.log(x) + z * y


def between_breaks(x):
    y = 1.0 / x
    print(end="")
    return np.log(y - y)


def ignored_inside(x):
    with np.errstate(divide="ignore"):
        r = 1.0 / x
    return np.where(x == 0, 0.0, r)


def warned_inside(x):
    with np.errstate(under="warn"):
        return x * np.float64(1e-300) * np.float64(1e-300)


def nested_blocks(x):
    with np.errstate(all="ignore"):
        a = 1.0 / x
        with np.errstate(divide="warn"):
            b = 2.0 / x
        c = 3.0 / x
    return a + b + c


def raised_inside(x):
    with np.errstate(divide="raise"):
        try:
            return 1.0 / x
        except FloatingPointError as e:
            return str(e)


def of_integers(n):
    return (7 // n, 7 % n, n / 0, n.astype(float) / n)


def casts(x):
    y = np.empty(len(x), np.float32)
    y[:] = x * 1e39
    return x.astype(np.float32), (x * 1e30).astype(np.int64), (x * NAN).astype(np.int64), y


def reductions(x):
    big = x + 1e308
    return big.sum(), big.prod(), np.cumsum(big), np.mean(big), np.var(big), big @ big, np.linalg.norm(big)


def called(x):
    return np.cbrt(x), np.interp(x, x, 1 / x), np.add.reduce(x * INF), np.float_power(x, -1)


def of_scalars(x):
    s = x.sum() - x.sum()
    return x[0] / s, np.float64(1) / s


def elements(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = 1.0 / x[i]
    return out


def exponentials(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = np.exp(x[i] * 1000) - np.log(x[i])
    return out


def entered_twice(x):
    block = np.errstate(divide="ignore")
    with block:
        y = 1.0 / x
    try:
        with block:
            return y
    except TypeError as e:
        return 1.0 / x, str(e)


def entered_again_after_a_break(x):
    block = np.errstate(divide="ignore")
    with block:
        y = 1.0 / x
    print(end="")
    try:
        with block:
            return y
    except TypeError as e:
        return 1.0 / x, str(e)


@np.errstate(divide="ignore")
def decorated(x):
    return 1.0 / x


def on_a_view(x):
    return np.sqrt(x[::-2] - 1), np.reciprocal(x.reshape(-1, 1))


def in_a_nested_function(x):
    def inverse(v):
        return 1 / v

    return inverse(x) + inverse(x + 1)


def complex_quotient(x):
    return (x + 1j * x) / (x * 0)


def tidy(x):
    return np.sqrt(x * x + 1) / (x * x + 2) + np.exp(-x * x) * np.maximum(x, 0) - np.log1p(x * x)


X = np.array([1.0, 0.0, 2.0, 3.0, 4.0])
LONG = np.concatenate([np.arange(1.0, 60.0), np.zeros(3)])
PROGRAMS = [
    (two_lines, X), (between_breaks, X), (ignored_inside, X), (warned_inside, X), (nested_blocks, X), (raised_inside, X),
    (of_integers, np.array([1, 0, -3])), (casts, X), (reductions, X), (called, X), (of_scalars, X), (elements, LONG), (exponentials, LONG),
    (entered_twice, X), (entered_again_after_a_break, X), (decorated, X), (on_a_view, X), (in_a_nested_function, X), (complex_quotient, X), (tidy, X),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("f, x", PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_programs(f, x, backend):
    for how in ({}, {"all": "ignore"}, {"divide": "ignore"}, {"all": "warn"}, {"all": "raise"}):
        with np.errstate(**how):
            compare(f, x, backend=backend)


def test_quiet_programs_make_no_second_call(monkeypatch):
    """No flag comes from lanes that are masked, from neutral elements or from what a compiled function does inside."""
    flags = []
    monkeypatch.setattr(floating_errors.Watch, "__call__", lambda self, raised: flags.append(raised))
    compiled = torch.compile(tidy)
    for n in (1, 3, 7, 8, 9, 31, 1000, 100003):
        compiled(np.linspace(-3, 3, n))
    assert flags == []


def written_by_kernels(x):
    x += 1.0 / (x - 1)


def written_beside_a_call(x):
    y = np.cbrt(x)
    x += 1.0 / (x - 1)
    return y


def written_by_a_loop(x):
    for i in range(len(x)):
        x[i] = x[i] + 1.0 / (x[i] - 1)


def written_after_a_loop(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = 1.0 / (x[i] - 1)
    x += y
    return y


def written_at_both_ends(x):
    x[:3] = np.log(x[:3] - 1)
    x[::-2] /= x[::-2]


def written_in_a_block(x):
    with np.errstate(divide="raise"):
        x *= 2
        try:
            x += 1.0 / (x - 2)
        except FloatingPointError as e:
            return str(e)


def several_written(x):
    a, b, c, d, e = x[:10], x[10:20], x[20:30], x[30:40], x[40:50]
    fill(a, b, c, d, e)
    return x


def fill(a, b, c, d, e):
    for out in (a, b, c, d, e):
        out /= out - 11
    return e


def drawn(x):
    x += np.random.default_rng(3).random(len(x)) / (x - 1)
    return np.random.RandomState(3).rand(2) / 0


def drawn_from_the_global(x):
    np.random.seed(4)
    y = np.random.rand(len(x)) / (x - 1)
    return y, np.random.rand()


WRITING = (
    written_by_kernels, written_beside_a_call, written_by_a_loop, written_after_a_loop, written_at_both_ends, written_in_a_block, several_written,
    drawn, drawn_from_the_global,
)  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", WRITING, ids=lambda f: f.__name__)
def test_arguments_that_are_written(f, backend):
    """What has been written when an error is told of is put back before the plain call."""
    for how in ({}, {"all": "ignore"}, {"all": "raise"}):
        with np.errstate(**how):
            compare(f, LONG, backend=backend)


@pytest.mark.parametrize("view", [np.s_[::1], np.s_[::-1], np.s_[::3], np.s_[5:]], ids=str)
def test_views_that_are_written(view):
    def through_the_view(x):
        written_by_kernels(x[view])

    compiled = torch.compile(written_by_kernels)
    for _ in range(2):
        assert told(lambda x: compiled(x[view]), LONG)[1:] == told(through_the_view, LONG)[1:]


def test_large_arguments_that_are_written():
    """Where keeping them would cost as much as the call, they are kept as often as Python shows warnings: each time, or at calls 1, 2, 4, 8."""
    compiled = torch.compile(written_by_kernels)
    large = np.resize(LONG, 100_000)
    for action, shown in (("always", 1), ("default", 1), ("ignore", 0)):  # with filters made anew for each call
        assert [len(told(compiled, large, action=action)[1]) for _ in range(5)] == [shown] * 5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(9):
            compiled(large.copy())
    assert len(caught) == 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for n in range(1, 12):  # call 5 isn't kept, so 6 is
            compiled(large.copy() if n >= 5 else np.full(100_000, 2.0))
            assert len(caught) == (n > 5)
    with np.errstate(divide="raise"):
        assert compare(written_by_kernels, large, calls=5)[0].startswith("('FloatingPointError'")


def unused_quotient(x):
    1.0 / x
    np.log(x).reshape(-1, 1)
    return x + 1


def unused_writes(x):
    a = np.empty(len(x), np.float32)
    a[:] = x * 1e300
    b = np.zeros(len(x))
    c = b.sum()
    np.divide(1, x, out=b)
    x.astype(np.int8) * 3
    return c


def unused_and_written(x):
    y = np.sqrt(x - 5)
    x += 1
    y[:] = 1 / (x - 1)


def unused_in_a_block(x):
    try:
        with np.errstate(divide="raise"):
            1.0 / x
    except FloatingPointError as e:
        return str(e)


def remainder_of_integers(x):
    return x.astype(np.int64) % np.array([1, 2, 0, 4, 0])


def nothing_but_unused(x):
    np.array([1e300, 2]).astype(np.float32)
    1 / np.zeros(3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "f",
    [unused_quotient, unused_writes, unused_and_written, unused_in_a_block, nothing_but_unused, remainder_of_integers],
    ids=lambda f: f.__name__,
)
def test_results_that_nothing_uses(f, backend):
    for how in ({}, {"all": "ignore"}, {"all": "raise"}):
        with np.errstate(**how):
            compare(f, X, backend=backend)


def test_flags_of_other_threads():
    def f(x):
        return 1.0 / x

    x = np.ones(3_000_000)
    x[-1] = 0
    assert compare(f, x[::-1].copy(), warns=1) and compare(f, x, warns=1)


def test_seterr():
    def f(x):
        return 1.0 / x

    before = np.seterr(divide="raise")
    try:
        assert compare(f, X)[0].startswith("('FloatingPointError'")
    finally:
        np.seterr(**before)
    compare(f, X, warns=1)


def in_blocks_of_all_kinds(x, how):
    with np.errstate(divide=how, invalid="ignore"):
        y = 1.0 / x
        with np.errstate(divide="ignore"):
            z = np.log(x)
    return y, z, y - y


@pytest.mark.parametrize("how", ["ignore", "warn", "raise"])
def test_blocks(how):
    compare(lambda x: in_blocks_of_all_kinds(x, how), X)


def test_print(capfd):
    compiled = torch.compile(in_blocks_of_all_kinds)
    with np.errstate(invalid="ignore"):
        compiled(X, "print")
    assert capfd.readouterr().err == "Warning: divide by zero encountered in divide\n"


def test_log():
    class Log:
        def __init__(self):
            self.lines = []

        def write(self, line):
            self.lines.append(line)

    def f(x, log):
        with np.errstate(divide="log", call=log):
            return 1.0 / x

    logs = Log(), Log()
    f(X, logs[0])
    compiled = torch.compile(f)
    assert not torch._dynamo.explain(f)(np.ones(3), logs[1]).graph_break_count
    compiled(X, logs[1])
    assert logs[0].lines == logs[1].lines == ["Warning: divide by zero encountered in divide\n"]


@pytest.mark.parametrize("how", ["raise", "call", "print", "log"])
def test_every_state_is_compiled(how, monkeypatch):
    """A call that raises no flag isn't made again."""
    flags = []
    monkeypatch.setattr(floating_errors.Watch, "__call__", lambda self, raised: flags.append(raised))
    compiled = torch.compile(tidy, fullgraph=True)
    with np.errstate(all=how):
        for n in (1, 8, 1001):
            assert np.allclose(compiled(np.linspace(-3, 3, n)), tidy(np.linspace(-3, 3, n)))
    assert flags == [] and torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0


def test_seterrcall():
    calls = []

    def f(x):
        return 1.0 / x

    compiled = torch.compile(f)
    with np.errstate(divide="call", call=lambda *what: calls.append(what)):
        f(X)
        compiled(X)
    assert calls == [("divide by zero", 1)] * 2


# --- how often -------------------------------------------------------------------------------------------------------
def counted(monkeypatch):
    """How often a call is made again."""
    count = []
    due = floating_errors.Watch.due
    monkeypatch.setattr(floating_errors.Watch, "due", lambda self: count.append(due(self)) or count[-1])
    return count


@pytest.mark.parametrize(
    "action, again",
    [("always", 9), ("error", 9), ("ignore", 0), ("default", 4), ("once", 4)],  # calls 1, 2, 4, 8
)
def test_calls_made_again(monkeypatch, action, again):
    count = counted(monkeypatch)

    def f(x):
        return 1.0 / x

    compiled = torch.compile(f)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter(action)
        for _ in range(9):
            try:
                compiled(X)
            except RuntimeWarning:
                pass
    assert sum(count) == again


def test_a_new_filter_shows_again():
    def f(x):
        return 1.0 / x

    compiled = torch.compile(f)
    for _ in range(5):
        assert len(told(compiled, X, action="default")[1]) == 1


def test_off():
    def f(x):
        return 1.0 / x

    with config.patch(numpy_floating_point_errors="off"):
        assert told(torch.compile(f), X)[1] == []


def test_tensors_tell_nothing():
    def f(x):
        return 1.0 / x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.compile(f)(torch.zeros(3)).isinf().all()


# --- integer scalars --------------------------------------------------------------------------------------------------
INTEGER_OPERATORS = {
    "add": lambda a, b: a[0] + b[0],
    "sub": lambda a, b: a[0] - b.max(),
    "mul": lambda a, b: a[0] * b[0],
    "neg": lambda a, b: -a[0],
    "abs": lambda a, b: abs(a.sum(dtype=a.dtype)),
    "floor_divide": lambda a, b: a[0] // b[0],
    "remainder": lambda a, b: a[0] % b[0],
    "power": lambda a, b: a[0] ** (b[0] & 3),
    "with_a_number": lambda a, b: (a[0] + 1, 2 * b[0], 1 - a[0]),
    "in_place": lambda a, b: functools.reduce(operator.imul, (a[0], b[0], b[0])),
    "unused": lambda a, b: (a[0] * b[0], a + 1)[1],
    "arrays": lambda a, b: (a + b, np.add(a[0], b[0]), -a, a.sum(), np.array(a[0]) + b),
}


# Every operator with one signed and one unsigned dtype, two operators with the other ones: the rest is slow.
@pytest.mark.parametrize("dtype, name", [
    pytest.param(t, n, marks=() if t in ("int8", "uint64") or n in ("mul", "floor_divide") else pytest.mark.slow)
    for t in ("int8", "uint8", "int16", "int32", "int64", "uint64") for n in INTEGER_OPERATORS
])  # fmt: skip
def test_integer_scalars(name, dtype):
    of = np.iinfo(dtype)
    for x, y in itertools.product((of.min, of.max, of.max // 2 + 1, 0, 3), (of.min, of.max, 2, 0)):
        torch._dynamo.reset()
        with np.errstate(all="warn"):
            compare(INTEGER_OPERATORS[name], np.array([x], dtype), np.array([y], dtype), calls=1)


@pytest.mark.parametrize("how", ["raise", "ignore", "warn"])
def test_integer_scalars_heed_the_error_state(how):
    a, b = np.array([100, 2], "i1"), np.array([100, 3], "i1")
    with np.errstate(over=how):
        compare(INTEGER_OPERATORS["add"], a, b)

    def block(a, b):
        with np.errstate(over=how):
            return a[0] * b[0], a[1] * b[1]

    compare(block, a, b)


def test_integer_scalars_warn_once():
    torch._dynamo.reset()
    compiled = torch.compile(INTEGER_OPERATORS["mul"])
    a = np.array([2**62])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(5):
            assert compiled(a, np.array([4])) == 0
    assert [str(w.message) for w in caught] == ["overflow encountered in scalar multiply"]


def quotients(a, b):
    out = np.zeros(len(a), a.dtype)
    for i in range(len(a)):
        out[i] = a[i] // b[i] + a[i] % b[len(b) - 1 - i]
    return out


def rows_of_quotients(a, b):
    out = np.zeros((60, len(a)), a.dtype)
    for i in range(60):
        out[i] = a // b[i]
    return out


@pytest.mark.parametrize("f", [quotients, rows_of_quotients])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers_divided_by_zero_in_native_loops(f, dtype):
    a, b = np.arange(300).astype(dtype) % 7, (np.arange(300) % 5).astype(dtype)
    before = counters["stats"]["native_loops"]
    want = told(f, a, b, action="default")
    assert want[1] and told(torch.compile(f), a, b, action="default") == want
    assert told(torch.compile(f), a, b + 1, action="error") == told(f, a, b + 1)
    assert counters["stats"]["native_loops"] > before


def _sum(a):
    s = a[0]
    for _ in range(200):
        s = s + a[1]
    return s


def _products(a):
    out = np.zeros(200, a.dtype)
    for i in range(200):
        out[i] = a[0] * a[1] - a[2]
    return out


def _generator(a):
    t = a[0]
    for _ in range(200):
        t = t * np.uint32(1664525) + np.uint32(1013904223)
    return t


def _signs(a):
    out = np.zeros(200, a.dtype)
    for i in range(200):
        out[i] = abs(a[0]) // a[1] + -a[2]
    return out


LEAST = -(2**63)


@pytest.mark.parametrize(
    "f, given",
    [
        (_sum, np.array([2**62] * 2)), (_sum, np.array([100, 77], np.uint8)), (_sum, np.array([1, 2])),
        (_products, np.array([2**40, 2**40, 1])), (_products, np.array([2**20, 2**20, 1], np.int32)), (_products, np.array([1, 2, 3], np.uint16)),
        (_products, np.array([3, 4, 5])), (_generator, np.array([7], np.uint32)), (_signs, np.array([LEAST, 1, 1])),
        (_signs, np.array([LEAST + 1, -1, 1])), (_signs, np.array([-5, 1, LEAST])), (_signs, np.array([-5, 2, 3])),
    ],
)  # fmt: skip
def test_native_loops_tell_of_integers_that_wrap_around(f, given):
    """Where errors are told exactly."""
    with torch._dynamo.config.patch(numpy_floating_point_errors="exact"):
        torch._dynamo.reset()
        compiled = torch.compile(f)
        heard = []
        for call in (f, compiled, compiled):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                result = call(given)
            heard.append((repr(result), [(w.category, str(w.message)) for w in told]))
    torch._dynamo.reset()
    assert heard[1] == heard[2] == heard[0]
