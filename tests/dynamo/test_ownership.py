"""Who owns what capture made: the callable. Threads capture side by side, and a fork in the middle leaves the child able to compile."""

import gc
import os
import signal
import threading
import weakref

import pytest

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile, reset
from flambeau.compiler.backends import lookup_backend

PLAIN = "def f(x):\n    return (x * 2).sin()\n"
BREAKS = "def f(x):\n    y = x * 2\n    torch._dynamo.graph_break()\n    return y.sin()\n"
LOOP = "def f(x):\n    for i in range(3):\n        x = x * 2\n        torch._dynamo.graph_break()\n    return x.sin()\n"
CLOSURE = "def make():\n    k = 2\n    def f(x):\n        y = x * k\n        torch._dynamo.graph_break()\n        return y * k\n    return f\nf = make()\ndel make\n"


def made_of(source):
    scope = {"torch": torch}
    exec(source, scope)
    return scope.pop("f")


class Backend:
    def __init__(self, name):
        self.compile, self.graphs = lookup_backend(name), []

    def __call__(self, gm, examples):
        self.graphs += [weakref.ref(gm), weakref.ref(gm.graph), weakref.ref(next(iter(gm.graph.nodes)))]
        return self.compile(gm, examples)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(
    "source", [PLAIN, BREAKS, LOOP, CLOSURE, "module"], ids=["plain", "breaks", "loop", "closure", "module"]
)
def test_everything_goes_with_the_callable(source, train, backend):
    gc.collect()
    gc.disable()
    try:
        made = Backend(backend)
        fn = torch.nn.Linear(3, 3) if source == "module" else made_of(source)
        x = torch.ones(3, requires_grad=train)
        f = compile(fn, backend=made)
        y = f(x)
        if train:
            y.sum().backward()
        assert made.graphs
        kept = {
            "backend": weakref.ref(made),
            "function": weakref.ref(fn),
            "input": weakref.ref(x),
            "output": weakref.ref(y),
        }
        kept |= {f"graph {i}": r for i, r in enumerate(made.graphs)}
        if source != "module":
            kept["code"] = weakref.ref(fn.__code__)
        del f, fn, x, y, made
        assert [k for k, r in kept.items() if r() is not None] == []
    finally:
        gc.enable()


def test_a_function_outlives_what_was_captured_of_it():
    def fn(x):
        return x + 1

    f = compile(fn, backend="eager")
    f(torch.ones(2))
    assert len(_frame.caches(fn.__code__)) == 1
    g = compile(fn, backend="eager")
    del f
    assert len(_frame.caches(fn.__code__)) == 0  # g has not been called
    g(torch.ones(2))
    again = compile(fn, backend="eager")
    again(torch.ones(2))
    del g
    (cache,) = _frame.caches(fn.__code__).values()
    assert len(cache.entries) == 1 and cache.entries[0][2] == 2  # shared by the two, hit twice


def test_reset_while_captured_code_runs():
    def fn(x):
        y = x + 1
        reset()
        torch._dynamo.graph_break()
        return y * 2

    f = compile(fn, backend="eager")
    for _ in range(3):
        assert f(torch.ones(2)).tolist() == [4.0, 4.0]


def numbered(i):
    return made_of(
        f"def f(x, w):\n    y = (x @ w + {i}).sin() * {i + 1}\n    for k in range({i % 5}):\n        y = y.relu() + k\n    return y.sum()\n"
    )


def check_some(ids, backend, errors):
    try:
        for i in ids:
            g = numbered(i)
            f = compile(g, backend=backend)
            x, x2 = (torch.full((4, 4), 0.5, requires_grad=True) for _ in range(2))
            w = torch.full((4, 4), 0.25)
            a, b = f(x, w), g(x2, w)
            a.backward()
            b.backward()
            assert torch.allclose(a, b) and torch.allclose(x.grad, x2.grad)
    except BaseException as e:
        errors.append(e)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_threads_and_forks(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    errors: list = []
    threads = [threading.Thread(target=check_some, args=(range(k * 10, k * 10 + 3), backend, errors)) for k in range(3)]
    for t in threads:
        t.start()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        mine: list = []
        check_some([100], backend, mine)
        os._exit(bool(mine))
    for t in threads:
        t.join()
    assert not errors
    assert os.waitpid(child, 0)[1] == 0


def test_one_function_in_many_threads():
    f = compile(numbered(3), backend="eager")
    x, w = torch.full((4, 4), 0.5), torch.full((4, 4), 0.25)
    want, got = numbered(3)(x, w), []
    threads = [threading.Thread(target=lambda: got.extend(f(x, w) for _ in range(20))) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 120 and all(torch.equal(v, want) for v in got)
