"""Compiled functions under dispatch modes, function modes and device contexts: captured, right, and guarded."""

import pytest
from helpers import Graphs

import flambeau as torch
from flambeau.compiler import compile, graph_break
from flambeau.overrides import TorchFunctionMode
from flambeau.utils._python_dispatch import TorchDispatchMode

X = torch.tensor([1.0, -2.0, 3.0])


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Twice(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {})) * 2


class Swap(TorchFunctionMode):
    def __init__(self, factor=1):
        super().__init__()
        self.factor, self.calls = factor, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        out = (torch.cos if func is torch.sin else func)(*args, **(kwargs or {}))
        return out * self.factor if func is torch.sin else out


def f(x):
    return torch.sin(x) + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_dispatch_mode_sees_the_work(backend):
    c = compile(f, backend=backend)
    with Log() as log:
        assert torch.allclose(c(X), f(X))
    assert {"sin.default", "add.Tensor"} <= set(log.ops)
    n = len(log.ops)
    assert torch.allclose(c(X), f(X)) and len(log.ops) == n
    with Twice():
        want, got = f(X), c(X)
    assert torch.allclose(want, got)


def test_one_graph_with_and_one_without():
    g = Graphs()
    c = compile(f, backend=g)
    with Log():
        c(X), c(X)
    c(X), c(X)
    with Twice():
        c(X)
    assert len(g.gms) == 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_function_mode_is_traced(backend):
    c = compile(f, backend=backend, fullgraph=True)
    assert torch.allclose(c(X), X.sin() + 1)
    mode, plain = Swap(), Swap()
    got, want = [], []
    for m, fn, out in ((mode, c, got), (plain, f, want)):
        with m:
            out += [fn(X), fn(X)]
            m.factor = 3
            out.append(fn(X))
    assert all(map(torch.allclose, got, want)) and mode.calls == plain.calls
    with Swap(2), Swap(5):
        want, got = f(X), c(X)
    assert torch.allclose(got, want) and torch.allclose(c(X), X.sin() + 1)


def test_a_function_mode_across_a_break():
    def g(x):
        y = torch.sin(x)
        graph_break()
        return torch.sin(y)

    with Swap():
        assert torch.allclose(compile(g, backend="eager")(X), X.cos().cos())


def test_a_mode_entered_inside():
    def g(x):
        with Log() as log:
            y = torch.sin(x) * 2
        return y + 1, log.ops

    got, want = compile(g, backend="eager")(X), g(X)
    assert torch.allclose(got[0], want[0]) and got[1] == want[1]


def test_the_default_device_is_guarded():
    g = Graphs()
    c = compile(lambda: torch.ones(2) * 3, backend=g)
    assert c().device.type == "cpu"
    with torch.device("meta"):
        assert c().device.type == "meta"
    with torch.device("cpu"):
        assert c().device.type == "cpu"
    assert c().device.type == "cpu" and len(g.gms) == 3


class Asked(TorchFunctionMode):
    """What a mode is asked for, and with which arguments."""

    def __init__(self):
        self.log = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        same = [n for n in ("mul", "add", "__rsub__", "eq", "__getitem__") if func is getattr(torch.Tensor, n)]
        numbers = [a for a in args if isinstance(a, (int, float))]
        self.log.append((getattr(func, "__name__", "?"), same, numbers, sorted(kwargs or {})))
        return func(*args, **(kwargs or {}))


def operators(x):
    y = x.clone()
    y += 1
    y[0] = 5
    return [
        x * 2,
        2 * x,
        2 - x,
        1 / x,
        x**2,
        2**x,
        -x,
        abs(x),
        x == 1,
        x[0],
        y,
        x // 2,
        x @ x,
        ~(x > 1),
        x.mul(2),
        len(x),
    ]


def attributes(x):
    return x.shape[0], x.T * 2, x.ndim, x.requires_grad, x.device.type, x.size(0), x.is_leaf, x.dim()


@pytest.mark.parametrize("f", [operators, attributes], ids=lambda f: f.__name__)
def test_what_a_function_mode_gets(f):
    with Asked() as plain:
        want = f(X)
    with Asked() as captured:
        got = compile(f, backend="eager", fullgraph=True)(X)
    assert captured.log == plain.log and repr(got) == repr(want)


def test_a_function_mode_that_replaces_an_attribute():
    class Shape(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return (7,) if func == torch.Tensor.shape.__get__ else func(*args, **(kwargs or {}))

    c = compile(lambda x: x * x.shape[0], backend="eager")
    with Shape():
        assert torch.equal(c(X), X * 7)
    assert torch.equal(c(X), X * X.shape[0])
