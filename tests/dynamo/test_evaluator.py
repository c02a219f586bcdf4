"""Frames reached from plain code after a graph break are captured by the evaluator: arguments of all kinds, closures, methods, errors."""

import functools

import pytest
from helpers import Graphs, check

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile, disable, graph_break

X = torch.tensor([1.0, -2.0, 3.0])
K = 3


@disable(recursive=False, reason="a test")
def plain(fn, *args, **kwargs):
    """Runs as ordinary Python; what it calls is captured."""
    return fn(*args, **kwargs)


def signature(a, /, b, *rest, c=2, d, **kw):
    return (a * b + c) * d + sum(rest) + sum(kw.values())


def defaults(a, b=K):
    return a * b


def recursive(x, n):
    return x if n == 0 else plain(recursive, x * 2, n - 1) + 1


class Thing:
    def __init__(self, n):
        self.n = n

    def method(self, x):
        return x * self.n

    @classmethod
    def cm(cls, x):
        return x + 1

    @staticmethod
    def sm(x):
        return x - 1

    @property
    def prop(self):
        return X * self.n

    def __call__(self, x):
        return x / self.n


def closure_over(n, y):
    def f(x):
        nonlocal n
        n += 1
        return x * n + y

    return f


def failing(x):
    y = x + 1
    raise ValueError(f"no {y.shape[0]}")


def gen(x):
    for i in range(2):
        yield x * i


@pytest.mark.parametrize(
    "call",
    [
        lambda x: plain(signature, x, 2, 5, 6, d=1, z=4),
        lambda x: plain(signature, x, b=x, d=2),
        lambda x: plain(defaults, x) + plain(defaults, x, b=5),
        lambda x: plain(recursive, x, 4),
        lambda x: plain(Thing(2).method, x) + plain(Thing(3).method, x),
        lambda x: plain(Thing.cm, x) * plain(Thing.sm, x),
        lambda x: plain(lambda t: t.prop, Thing(4)),
        lambda x: plain(Thing(2), x),
        lambda x: [plain(f, x) for f in [closure_over(1, x)] * 3],
        lambda x: plain(failing, x * 2),
        lambda x: plain(list, gen(x)),
        lambda x: plain(functools.partial(defaults, b=7), x),
        lambda x: plain(sorted, [3, 1, 2], key=lambda v: -v),
        lambda x: plain(signature, x),
    ],
)
def test_same_as_plain(call):
    g = check(call, X, calls=3)
    assert _frame.get_context() is None
    assert len(g.gms) <= 12


def test_the_called_frames_are_captured():
    g = check(lambda x: plain(defaults, x + 1) - 1, X)
    assert g.names() == [["add"], ["mul"], ["sub"]]
    g = check(lambda x: plain(lambda t: plain(defaults, t) + 1, x), X)
    assert g.names() == [["mul"], ["add"]]


def test_variants_by_closure():
    g = Graphs()

    def outer(x, f):
        graph_break()
        return plain(f, x)

    def make(n):
        return lambda x: x * n

    c = compile(outer, backend=g)
    for n in (2, 3, 2, 3):
        assert torch.equal(c(X, make(n)), X * n)
    assert len(g.gms) == 2


def test_the_context_is_restored_after_an_error():
    def f(x):
        graph_break()
        raise KeyError("x")

    with pytest.raises(KeyError):
        compile(f, backend="eager")(X)
    assert _frame.get_context() is None


def test_compiled_graphs_run_with_the_evaluator_off():
    seen = []

    def backend(gm, example_inputs):
        def run(*args):
            seen.append(_frame.get_context())
            return gm.forward(*args)

        return run

    def f(x):
        x = x + 1
        graph_break()
        return x * 2

    compile(f, backend=backend)(X)
    assert seen == [None, None]


def test_disabled_function_turns_it_off():
    seen = []

    @disable(reason="a test")
    def look(x):
        seen.append(_frame.get_context())
        return x

    compile(lambda x: look(x + 1) * 2, backend="eager")(X)
    assert seen == [None]


def test_autograd_function_is_guarded():
    scale = 2

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * scale

        @staticmethod
        def backward(ctx, g):
            return g * scale

    g = Graphs()
    c = compile(lambda x: Twice.apply(x) + 1, backend=g, fullgraph=True)
    assert torch.equal(c(X), X * 2 + 1)
    scale = 5
    assert torch.equal(c(X), X * 5 + 1) and len(g.gms) == 2


def test_transforms_are_guarded():
    global K
    from flambeau.func import vmap

    g = Graphs()
    c = compile(lambda x: vmap(lambda t: t * K)(x), backend=g, fullgraph=True)
    assert torch.equal(c(X), X * 3)
    K = 4
    try:
        assert torch.equal(c(X), X * 4) and len(g.gms) == 2
    finally:
        K = 3
    check(lambda x: vmap(lambda t: t * X.sum())(x), X)


class SinToCos(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return (torch.cos if func is torch.sin else func)(*args, **(kwargs or {}))


def under_mode(x):
    with SinToCos() as m:
        y = torch.sin(x) * 2
    return torch.sin(y.sum()), m.seen[:1]


def under_mode_with_break(x):
    with SinToCos():
        y = torch.sin(x)
        graph_break()
        y = torch.sin(y)
    return torch.sin(y)


def test_function_modes_inside():
    check(under_mode, X, fullgraph=True, ops=[["cos", "mul", "sum", "sin"]])
    check(under_mode_with_break, X)
