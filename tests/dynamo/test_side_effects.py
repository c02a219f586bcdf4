"""Writes to what existed before the call are replayed, in every call, cached or not; aliasing between arguments holds."""

import collections

import pytest
from helpers import Graphs, check

import flambeau as torch
from flambeau.compiler import compile, graph_break
from flambeau.dynamo.utils import counters

X = torch.tensor([1.0, 2.0])
STATE = {"n": 0}
LOG = []
COUNT = 0


class Obj:
    def __init__(self, v=None):
        self.v = v
        self.items = []


class Checked:
    def __init__(self):
        object.__setattr__(self, "sets", 0)

    def __setattr__(self, name, value):
        object.__setattr__(self, "sets", self.sets + 1)
        object.__setattr__(self, name, value)


def lists(xs, x):
    xs.append(x + 1)
    xs[0] = x * 2
    xs.extend([1, 2])
    del xs[1]
    xs += [len(xs)]
    xs.sort(key=lambda v: 0)
    return xs, xs[-1]


def append_only(xs, x):
    xs.append(x.sum())
    return x + 1


def dicts(d, x):
    d["a"] = x + d["b"]
    d.setdefault("new", []).append(x)
    return d.pop("b"), "zz" in d


def write_only(d, x):
    d["k"] = x * 2
    return x


def objects(o, x):
    o.v = x + 1
    o.items.append(o.v)
    o.other = o
    del o.v
    return o.items


def custom_setattr(o, x):
    o.a = x * 2
    return o.sets


def new_objects(xs, x):
    o = Obj(x * 2)
    o.items.append(x)
    xs.append(o)
    xs.append(o)
    return o


def tensors_in_place(x, y):
    x.add_(1)
    y[0] = x.sum()
    x *= y
    return x


def aliases(a, b, x):
    a.append(1)
    b.append(2)
    return x + len(a)


def swaps(o, x):
    o.v, o.items = o.items, o.v
    return x + 1


def sets_and_deques(s, q, x):
    s.add(5)
    q.append(x)
    q.popleft()
    return x * len(s)


def break_between(o, x):
    o.items.append(x)
    o.v = 1
    graph_break()
    o.items.append(x * 2)
    o.v += 1
    return len(o.items)


@pytest.mark.parametrize(
    "fn, args",
    [
        (lists, ([0, 1], X)),
        (append_only, ([], X)),
        (dicts, ({"b": 1.0}, X)),
        (write_only, ({}, X)),
        (objects, (Obj(), X)),
        (custom_setattr, (Checked(), X)),
        (new_objects, ([], X)),
        (tensors_in_place, (X, X * 3)),
        (aliases, ([], [], X)),
        (swaps, (Obj(3), X)),
        (sets_and_deques, ({1}, collections.deque([1, 2]), X)),
        (break_between, (Obj(), X)),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_arguments(fn, args):
    if fn is objects:
        o, p = Obj(), Obj()
        c = compile(fn, backend="eager")
        for _ in range(2):
            assert len(fn(o, X)) == len(c(p, X))
            assert p.other is p and not hasattr(p, "v")
        return
    check(fn, *args, calls=3)


def test_same_list_twice():
    g = Graphs()
    c = compile(aliases, backend=g)
    a, b = [], []
    assert c(a, b, X)[0] == 2 and (a, b) == ([1], [2])
    s = []
    assert c(s, s, X)[0] == 3 and s == [1, 2]


def test_identity_of_new_objects():
    xs = []
    o = compile(new_objects, backend="eager")(xs, X)
    assert xs[0] is xs[1] is o


def test_globals_and_closures():
    def f(x):
        global COUNT
        COUNT += 1
        STATE["n"] = COUNT * 10
        LOG.append(COUNT)
        return x + COUNT

    n = 0

    def g(x):
        nonlocal n
        n += 1
        return x * n

    c, d = compile(f, backend="eager"), compile(g, backend="eager")
    for k in (1, 2, 3):
        assert torch.equal(c(X), X + k) and torch.equal(d(X), X * k)
    assert COUNT == 3 and STATE == {"n": 30} and LOG == [1, 2, 3] and n == 3


def test_appending_does_not_recompile():
    g, xs = Graphs(), []
    c = compile(append_only, backend=g)
    for _ in range(4):
        c(xs, X)
    assert len(xs) == 4 and len(g.gms) == 1


def test_grad_mode_left_changed():
    def f(x):
        torch.set_grad_enabled(False)
        return x + 1

    c = compile(f, backend="eager")
    try:
        c(X)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_tensor_identity_of_inputs():
    c = compile(lambda x, xs: (x, x.add_(1), xs[0]), backend="eager")
    x = X.clone()
    a, b, d = c(x, [x])
    assert a is x and b is x and d is x


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_inputs_that_share_memory(backend):
    def f(a, b):
        a.add_(1)
        return b * 2

    c = compile(f, backend=backend)
    for overlap in (False, True, False):
        base = torch.arange(6.0)
        a, b = base[:4], (base[2:] if overlap else torch.ones(4))
        base2 = torch.arange(6.0)
        a2, b2 = base2[:4], (base2[2:] if overlap else torch.ones(4))
        assert torch.equal(c(a, b), f(a2, b2)) and torch.equal(base, base2)


def test_inputs_that_share_memory_and_are_only_read():
    def f(a, b):
        c = torch.zeros(3)
        c[0] = 1
        return a + b + c

    def g(a, b):
        a[0] = 5
        return a + b

    for fn, captured in ((f, 1), (g, 1)):
        compiled = torch.compile(fn, backend="eager")
        before = counters["frames"]["ok"]
        for low in (1, 0, 3):
            x, y = torch.arange(6.0), torch.arange(6.0)
            torch.testing.assert_close(compiled(x[:3], x[low : low + 3]), fn(y[:3], y[low : low + 3]))
            torch.testing.assert_close(x, y)
        assert counters["frames"]["ok"] - before == captured
