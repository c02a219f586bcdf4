"""What a loop's kernel is given: its parameters, and the runtime's functions in the places where the runtime puts them."""

import collections
import re

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime
from flambeau.inductor.assembly import instructions as llvm
from flambeau.loops.arguments import DATA, FLOATS, GIVEN, INTS, META, NULL, OUT, RUNTIME
from flambeau.testing.loops import check

R = np.random.RandomState(7)


def own_memory(a):
    for i in range(len(a)):
        b = np.zeros(len(a)) + i
        a = a + b * 0.5
    return a


def whole_arrays(a):
    s = 0.0
    while s < 20:
        a[:] = np.sin(a) * 0.5 + a
        s += abs(a[3]) + 1
    return s


def long_chain(a):
    s = 0.0
    while s < 1e4:
        s += abs(a[int(s) % len(a)]) + 0.5
    return s


def products(a, m):
    s = 0.0
    while s < 200:
        a = m @ a
        a = a / np.sqrt((a * a).sum())
        s += abs(a[1]) + 0.5
    return s, a


def called(a):
    s = 0.0
    for i in range(5, len(a)):
        s += np.median(a[:i])
    return s


def rows(m, out):
    for i in range(m.shape[0]):
        s = 0.0
        for j in range(m.shape[1]):
            s += m[i, j] * m[i, j]
        out[i] = s


def rows_in_turn(m, out):
    for k in range(3):
        for i in range(m.shape[0]):
            s = 0.0
            for j in range(m.shape[1]):
                s += m[i, j] * k
            out[i] = s
        m[0, 0] += out[1]


def queued(a):
    line, first = [], 0
    for i in range(len(a)):
        line.append(i)
        if a[i] > 0.5:
            first += line.pop(0)
        if a[i] > 0.99:
            line.clear()
    return line, first


def queued_in_front(a):
    line = collections.deque()
    for i in range(len(a)):
        if a[i] > 0.5:
            line.appendleft(i)
        else:
            line.append(-i)
    return line.popleft(), len(line)


def counted(a):
    counts = {}
    for i in range(len(a)):
        k = int(a[i] * 10)
        counts[k] = counts.get(k, 0) + 1
        if counts[k] > 5:
            del counts[k]
    return counts


def products_of_columns(m, out):
    for i in range(m.shape[1]):
        out[i, i:] = m[:, i] @ m[:, i:]


A, M = R.rand(300), R.rand(300, 300)
WIDE = R.rand(300000)  # long enough for several threads, and for asking whether Python has been interrupted
# The function that a loop calls, the loop, and what it is called with.
USES = {
    "malloc": (own_memory, A),
    "free": (own_memory, A),
    "parallel": (whole_arrays, WIDE),
    "interrupted": (whole_arrays, WIDE),
    "product": (products, A[:30], M[:30, :30]),
    "turn_product": (products_of_columns, M, np.zeros(M.shape)),
    "python": (called, A),
    "spread": (rows, M, np.zeros(300)),
    "spread_within": (rows_in_turn, M, np.zeros(300)),
    **dict.fromkeys(("container_new", "container_end", "container_clear", "list_append", "list_shift"), (queued, A)),
    "list_prepend": (queued_in_front, A),
    **dict.fromkeys(("table_find", "table_put", "table_remove"), (counted, A)),
}


@pytest.mark.parametrize("name", RUNTIME)
def test_each_function_of_the_runtime_is_the_one_that_is_meant(name, texts):
    """A wrong place would call another function with these operands."""
    f, *args = USES[name]
    check(f, *args)
    used = [t for t in texts if re.search(rf"(call [^\n]*|ptr )%{name}\b[(,)]", t)]
    assert used
    for text in used:
        place = re.search(rf"(%[\w.]+) = getelementptr ptr, ptr %data, i64 {RUNTIME.index(name)}\n\s*%{name} = load ptr, ptr \1\n", text)  # fmt: skip
        assert place, name


def test_arrays_follow_the_functions_of_the_runtime(texts):
    check(rows, M, np.zeros(300))
    for k in range(2):
        assert re.search(
            rf"(%[\w.]+) = getelementptr ptr, ptr %data, i64 {len(RUNTIME) + k}\n\s*%a{k} = load ptr, ptr \1\n",
            texts[0],
        )


def test_the_parameters(texts):
    assert GIVEN == [DATA, META, INTS, FLOATS, OUT] and NULL.text == "null"
    assert all(p.type is llvm.PTR for p in (*GIVEN, NULL))
    check(long_chain, A)
    listed = ", ".join(f"ptr noalias {p.text}" for p in GIVEN)
    assert f"define i64 @KERNEL({listed}) {{" in texts[0]


def test_numbers_that_a_loop_reads(texts):
    """Integers and floats have tables of their own, in the order in which the kernel counts them."""

    def f(a, n, k, x, y):
        s = 0.0
        for i in range(n):
            s += a[(i * k) % len(a)] * x - y
        return s

    check(f, A, 250, 7, 0.5, 0.25)
    check(f, A, 250, 11, 0.25, 0.5)
    assert all(f"ptr {p.text}, i64 " in t for t in texts for p in (INTS, FLOATS))


def writes_base(x, view):
    z = view(x)
    for i in range(50):
        x[i + 5] = z[i % len(z)] + 1
    return x, z


def writes_view(x, view):
    z = view(x)
    for i in range(50):
        z[i % len(z)] = x[(i + 3) % 60] * 2
    return x, z


VIEWS = {
    "a part": (lambda x: x[10:], False),
    "a matrix": (lambda x: x.reshape(6, 10)[:, 3], False),
    "backwards": (lambda x: x[::-1], None),
    "a diagonal": (lambda x: np.diagonal(x[:36].reshape(6, 6)).copy(), True),
    "a copy": (lambda x: x[10:].copy(), True),
    "itself": (lambda x: x, True),
}


@pytest.mark.parametrize("fn", [writes_base, writes_view])
@pytest.mark.parametrize("view", VIEWS)
def test_views_of_what_is_written(fn, view):
    """Two operands in one memory are none of a native loop's, if one is written."""
    of, native = VIEWS[view]
    check(lambda x: fn(x, of), R.rand(60), native=native)


def planes(u, n):
    a, b = u[0], u[1]
    for i in range(1, n):
        a[i] = b[i - 1] + 1.0
        b[i] = a[i] * 0.5
    return a, b


def test_parts_side_by_side():
    check(planes, R.rand(2, 50), 50)
    compiled = torch.compile(planes, dynamic=True)
    for n in (40, 50, 60):
        x = R.rand(2, n)
        y = x.copy()
        compiled(x, n), planes(y, n)
        np.testing.assert_array_equal(x, y)


def _running(a, b):
    """Writes ``a``, reads ``b``, and gives a number back."""
    total = 0.0
    for i in range(1, len(a)):
        a[i] = a[i - 1] * 0.5 + b[i]
        total += a[i]
    return total


def _overlapping():
    whole = np.arange(20.0)
    return whole[1:13], whole[:12]


def _apart():
    return np.arange(12.0), np.arange(12.0)


def _by_steps():
    return np.arange(24.0)[::2], np.arange(24.0)[::-2]


def _only_read():
    a, b = _apart()
    b.flags.writeable = False
    return a, b


@pytest.mark.parametrize("made", [_apart, _by_steps, _overlapping, _only_read])
def test_later_calls_are_handed_the_arrays_themselves(made):
    """From the second call on a graph hands its native loop what it was given, without tensors around it."""
    compiled = torch.compile(_running)
    for _ in range(4):
        wanted, given = made(), made()
        assert compiled(*given) == _running(*wanted)
        for x, y in zip(given, wanted):
            np.testing.assert_array_equal(x, y)


def test_an_array_that_may_not_be_written():
    compiled = torch.compile(_running)
    for _ in range(2):
        compiled(*_apart())
    a, b = _apart()
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(a, b)
    np.testing.assert_array_equal(a, np.arange(12.0))


def test_memory_that_cannot_be_written_and_is_not(tmp_path):
    """A kernel may write back what it has read where nothing changes, but not there."""

    def clipped(x):
        for i in range(len(x)):
            if x[i] > 50.0:
                x[i] = 50.0
        return x.sum()

    compiled = torch.compile(clipped)
    assert compiled(np.full(4096, 60.0)) == 50.0 * 4096
    np.ones(4096).tofile(tmp_path / "ones")
    assert compiled(np.memmap(tmp_path / "ones", mode="r", dtype=np.float64)) == 4096.0


@pytest.mark.parametrize("arguments", [(), ((), ()), ([], (), ()), ((), (), (), ())])
def test_a_loop_is_called_with_three_tuples(arguments):
    loop = _runtime.Loop(1, [], [], [], [], (), False, None, None, (), 0, 0)
    with pytest.raises(TypeError, match="tuples of arrays, integers and floats"):
        loop(*arguments)


@pytest.mark.parametrize(
    "arrays, ints, floats, error",
    [
        ((), (1, 2), (0.5,), ValueError),
        ((np.zeros(3),) * 2, (1, 2), (0.5,), ValueError),
        ((np.zeros(3),), (1,), (0.5,), ValueError),
        ((np.zeros(3),), (1, 2, 3), (0.5,), ValueError),
        ((np.zeros(3),), (1, 2), (), ValueError),
        ((np.zeros((3, 1)),), (1, 2), (0.5,), ValueError),
        ((np.zeros(2),), (1, 2), (0.5,), ValueError),
        ((np.zeros(3, np.float32),), (1, 2), (0.5,), TypeError),
        ((np.zeros(3, ">f8"),), (1, 2), (0.5,), TypeError),
        ((3.0,), (1, 2), (0.5,), TypeError),
    ],
)
def test_a_kernel_is_given_what_it_reads(arrays, ints, floats, error):
    """A wrong call is refused before the kernel, whose address here is none, is run."""
    loop = _runtime.Loop(1, [0], [0], [3], [], (), False, None, None, (np.dtype(float),), 2, 1)
    with pytest.raises(error, match="a compiled loop"):
        loop(arrays, ints, floats)
    with pytest.raises(error, match="a compiled loop"):
        loop.with_numbers(ints, floats)(*arrays)


@pytest.mark.parametrize("written, fresh", [([1], []), ([0], [1])])
def test_a_loop_writes_operands_that_it_has(written, fresh):
    with pytest.raises(ValueError, match="operands that it has"):
        _runtime.Loop(1, written, [0], [3], fresh, (), False, None, None, (np.dtype(float),), 0, 0)


def through_the_transpose(a, b):
    a.T[0] += b
    t = 0.0
    for i in range(len(b)):
        if b[i] > 0:
            t += 1
        t += a[i].sum()
    return t


def with_gaps(a, b):
    a = a * 2
    a.T[1] = b
    a = a[:, :2]
    t = 0.0
    for i in range(len(b)):
        if b[i] > 0:
            t += 1
        t += a[i].sum()
    return t


@pytest.mark.parametrize("f", [through_the_transpose, with_gaps])
def test_arrays_lie_as_the_kernel_was_made_for(f):
    """Inside a graph a result may lie in another order than plainly."""
    a, b = R.rand(5, 4), R.rand(5) - 0.5
    assert torch.compile(f)(a.copy(), b) == pytest.approx(f(a.copy(), b))
