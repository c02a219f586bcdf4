"""Arrays that a graph takes as they are, and inputs that native code writes: values, identity, errors, whatever the layout."""

import sys
import traceback
import warnings
import weakref

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C, _runtime


def add(a, b):
    return a + b


def in_place(a, b):
    a += b
    return a


def twice(a, b):
    a += b
    b *= 2
    return a + b


def handed_back(a, b):
    return a, a + b


def part(a, b):
    a[1:] += b[1:]
    return a[1:]


@pytest.mark.parametrize("fn", [add, in_place, twice, handed_back, part])
@pytest.mark.parametrize("dynamic", [False, True])
def test_as_plain(fn, dynamic):
    compiled = torch.compile(fn, fullgraph=True, dynamic=dynamic)
    rng = np.random.default_rng(0)
    for shape in ((8, 8), (3,), (70, 70)):
        for order in "CF":
            a, b = np.asarray(rng.random(shape), order=order), rng.random(shape)
            mine = [a.copy(order="K"), b.copy()]
            for _ in range(3):
                want, got = fn(a, b), compiled(*mine)
                for x, y in zip(want if type(want) is tuple else (want,), got if type(got) is tuple else (got,)):
                    assert type(x) is type(y) and np.array_equal(x, y)
                    assert (x is a) == (y is mine[0])
                assert np.array_equal(a, mine[0]) and np.array_equal(b, mine[1])


@pytest.mark.parametrize("fn", [add, in_place])
def test_no_tensor_is_made_of_an_argument(fn, monkeypatch):
    """from_array is a constant of the captured code, where it is one at all."""
    asked = []
    before = _C.from_array
    monkeypatch.setattr(_C, "from_array", lambda a: asked.append(a) or before(a))
    compiled = torch.compile(fn, fullgraph=True)
    a, b = np.ones((8, 8)), np.ones((8, 8))
    compiled(a, b)
    asked.clear()
    compiled(a, b)
    assert not asked


def test_the_same_array_twice_and_a_read_only_one():
    compiled = torch.compile(in_place)
    a = np.ones((4, 4))
    assert compiled(a, a) is a and (a == 2).all()
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(a, np.ones((4, 4)))
    assert (a == 2).all()


def test_overflow_is_told_and_written():
    a = np.full(4, 1e308)
    with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
        torch.compile(in_place)(a, a.copy())
    assert np.isinf(a).all()
    a = np.full(4, 1e308)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        torch.compile(in_place)(a, a.copy())
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(in_place)(a, a.copy())


def test_writes_to_tensors_are_counted_and_checked():
    compiled = torch.compile(lambda a, b: a.add_(b), fullgraph=True)
    a, b = torch.rand(4, 4), torch.rand(4, 4)
    before, want = a._version, a + b
    assert compiled(a, b) is a and torch.equal(a, want) and a._version == before + 1
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        compiled(torch.rand(4, 4, requires_grad=True), b)
    with pytest.raises(RuntimeError, match="read-only"):
        frozen = np.ones((4, 4), np.float32)
        frozen.flags.writeable = False
        compiled(torch.from_numpy(frozen), b)


def test_what_writing_refuses():
    with pytest.raises(TypeError):
        _runtime.Writing(None, (), (), (), None, None)


def second_of(a, b):
    return b * 2 + a


def swapped(a, b):
    return b - a


def total(a, b):
    return (a * b).sum()


def both(a, b):
    a += 1
    b -= a


def tensor_of_the_second(x, y):
    return y.exp() - x


# The same frame, with and without the interpreter: a tracer makes it run (csrc/frame/frame_eval.c, run_direct).
@pytest.mark.parametrize("fn", [add, in_place, second_of, swapped, total, both])
def test_a_call_without_a_frame_gives_what_the_frame_gives(fn):
    compiled, seen = torch.compile(fn, fullgraph=True), []
    a, b = np.linspace(0, 1, 16).reshape(4, 4), np.linspace(2, 5, 16).reshape(4, 4)
    compiled(a.copy(), b.copy())

    def outcome(call):
        x, y = a.copy(), b.copy()
        r = call(x, y)
        return type(r), r is x, r is y, np.array(r), x, y

    plain, direct = outcome(fn), outcome(compiled)

    def tracer(frame, event, arg):
        seen.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        traced = outcome(compiled)
    finally:
        sys.settrace(before)
    assert fn.__name__ in seen
    for got in (direct, traced):
        assert got[:3] == plain[:3] and all(np.array_equal(g, p) for g, p in zip(got[3:], plain[3:]))


def test_tensors_go_the_same_way():
    compiled = torch.compile(tensor_of_the_second, fullgraph=True)
    x, y = torch.ones(3), torch.zeros(3)
    assert all(torch.equal(compiled(x, y), torch.zeros(3)) for _ in range(3))
    y.requires_grad_()
    compiled(x, y).sum().backward()
    assert torch.equal(y.grad, torch.ones(3))


def first_rows(x, at):
    return x[at] + torch.rand(2)  # not called again at an error: it has drawn


def test_an_error_of_a_call_without_a_frame_names_its_function():
    compiled = torch.compile(first_rows, fullgraph=True)
    x = torch.arange(4.0)
    compiled(x, torch.tensor([0, 1]))
    with pytest.raises(IndexError) as told:
        compiled(x, torch.tensor([0, 9]))
    names = [f.name for f in traceback.extract_tb(told.value.__traceback__) if f.filename == __file__]
    assert names == ["test_an_error_of_a_call_without_a_frame_names_its_function", "first_rows"]


def test_what_is_returned_by_a_call_without_a_frame_is_fresh_and_freed():
    compiled = torch.compile(add, fullgraph=True)
    a, b = np.ones((8, 8)), np.ones((8, 8))
    compiled(a, b)
    first, second = compiled(a, b), compiled(a, b)
    assert first is not second and not np.shares_memory(first, second) and first.base is None and first.flags.owndata
    held = sys.getrefcount(a)
    for _ in range(100):
        compiled(a, b)
    assert sys.getrefcount(a) == held
    gone = weakref.ref(compiled(a, b))
    assert gone() is None
