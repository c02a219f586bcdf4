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
from flambeau.dynamo import convert
from flambeau.dynamo.rules import trace_rules
from flambeau.inductor.machine import cache

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
    assert len(_frame.caches(fn.__code__)) == 1  # g has it, though it has not been called
    del g
    assert len(_frame.caches(fn.__code__)) == 0
    g = compile(fn, backend="eager")
    g(torch.ones(2))
    again = compile(fn, backend="eager")
    again(torch.ones(2))
    del g
    (cache,) = _frame.caches(fn.__code__).values()
    assert len(cache.entries) == 1 and cache.entries[0][2] == 2  # shared by the two, hit twice


def test_a_callable_made_anew_in_a_loop_is_captured_once():
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    def fn(x, i):
        return x + i

    with torch._dynamo.config.patch(recompile_limit=1):
        for i in range(4):
            f = compile(fn, backend=backend)
            assert f(torch.ones(1), i).item() == 1 + i
    assert len(graphs) == 1


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


def test_a_handler_may_compile_while_something_is_captured(monkeypatch):
    made, inside = convert.Resumes.__init__, []

    def made_late(self):
        made(self)
        if not inside:  # as a signal's handler or a finalizer may, at any instruction
            inside.append(compile(lambda x: x * 2, backend="eager")(torch.ones(2)))

    monkeypatch.setattr(convert.Resumes, "__init__", made_late)
    out = compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert out.tolist() == inside[0].tolist() == [2, 2]


class Held:
    def __init__(self):
        self.k = 2.0


def disabled_function(t, w):
    @torch._dynamo.disable(reason="a test")
    def off(x):
        return x * t.k

    return lambda x: off(x + w) * 2, [off]


def breaks_in_calls(t, w):
    def inner(x):
        torch._dynamo.graph_break()
        return x + t.k

    def f(x):
        y = inner(x) * 2
        with torch.no_grad():
            torch._dynamo.graph_break()
            y = y + w
        return y

    return f, [inner]


def transformed(t, w):
    def body(x):
        return (x * t.k * w).sum()

    def f(x):
        rows = torch.func.vmap(lambda r: r * 2)(x)
        return torch.func.grad(body)(rows) + torch.utils.checkpoint.checkpoint(body, x, use_reentrant=False)

    return f, [body]


def custom_function(t, w):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return lambda x: Twice.apply(x * t.k) + w, []


def training_step(t, w):
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters())

    def f(x):
        optimizer.zero_grad()
        loss = (model(x) * t.k + w).sum()
        loss.backward()
        optimizer.step()
        return loss

    return f, [model, model.weight]


def generator(t, w):
    def f(x):
        for i in range(3):
            yield x * t.k + w + i

    return f, []


def made_by_a_call(t, w):
    def inner(x):
        for i in range(3):
            yield x * t.k + i

    def f(x):
        return inner(x + w)

    return f, [inner]


def of_the_program(t, w):
    """An error of the program's own, after tensor operations."""

    def f(x):
        raise ValueError((x * t.k + w).shape)

    return f, []


PROGRAMS = [
    disabled_function,
    breaks_in_calls,
    transformed,
    custom_function,
    training_step,
    generator,
    made_by_a_call,
    of_the_program,
]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
def test_what_a_program_holds_goes_with_it(make, dynamic):
    """With the collector off: what capture knows of functions, classes and objects doesn't keep them."""

    def run():
        t, w, made = Held(), torch.ones(3), Backend("eager")
        fn, more = make(t, w)
        f = compile(fn, backend=made, dynamic=dynamic)
        x = torch.ones(3, 3, requires_grad=True)
        for _ in range(2):
            try:
                out = f(x)
                list(out) if make in (generator, made_by_a_call) else out
            except ValueError:
                assert make is of_the_program
        kept = {"function": fn, "object": t, "tensor": w, "input": x, "backend": made} | dict(enumerate(more))
        return {k: weakref.ref(o) for k, o in kept.items()} | dict(enumerate(made.graphs, 100))

    gc.collect()
    gc.disable()
    try:
        assert [k for k, r in run().items() if r() is not None] == []
    finally:
        gc.enable()


def test_a_callable_may_go_while_it_runs():
    def make(k):
        def f(x):
            y = x * k
            made.clear()
            torch._dynamo.graph_break()
            return y * k

        return compile(f, backend="eager")

    def parts(k):
        def f(x):
            for _ in range(3):
                torch._dynamo.graph_break()
                x = x * k
                yield x

        return compile(f, backend="eager")

    made = [make(3.0)]
    assert made[0](torch.ones(1)).tolist() == [9.0]
    made = [make(3.0)]
    assert made.pop()(torch.ones(1)).tolist() == [9.0]
    g = parts(2.0)(torch.ones(1))  # its callable is gone
    assert [x.item() for x in g] == [2.0, 4.0, 8.0]


@pytest.mark.parametrize("kind", [torch.nn.Module, torch.optim.Optimizer, object], ids=["module", "optimizer", "plain"])
def test_classes_are_not_kept(kind):
    def run():
        class Mine(kind):
            def __init__(self):
                if kind is torch.optim.Optimizer:
                    super().__init__([torch.ones(2)], {})
                else:
                    super().__init__()

            def forward(self, x):
                return x + 1

        o = Mine()
        compile(lambda x: (o.forward(x), isinstance(o, Mine)), backend="eager")(torch.ones(2))
        if kind is torch.nn.Module:
            compile(o, backend="eager")(torch.ones(2))
        return weakref.ref(Mine)

    ref = run()
    gc.collect()  # a class is in a cycle with itself
    assert ref() is None


def test_allowed_and_disallowed_functions_are_not_kept():
    def f(x):
        return x

    torch._dynamo.allow_in_graph(f)
    ref = weakref.ref(f)
    del f
    gc.collect()
    assert ref() is None and not any(
        getattr(g, "__qualname__", "").endswith("kept.<locals>.f") for g in trace_rules.allowed
    )


def compiled_in_place():
    m = torch.nn.Linear(3, 3)
    m.compile(backend="eager")
    assert torch.equal(m(torch.ones(3)), m.forward(torch.ones(3)))
    return m


def forbidden():
    def f(x):
        return x + 1

    return torch._dynamo.forbid_in_graph(f)


def substituted():
    def f(x):
        return x + 1

    @torch.compiler.substitute_in_graph(f)
    def traced(x):
        return x + 2

    assert compile(lambda x: f(x), backend="eager")(torch.ones(1)).tolist() == [3.0]
    return f


@pytest.mark.parametrize("make", [compiled_in_place, forbidden, substituted])
def test_nothing_else_keeps_it(make):
    gc.collect()
    gc.disable()
    try:
        made = make()
        kept = weakref.ref(made)
        del made
        assert kept() is None
    finally:
        gc.enable()


def test_the_compiled_call_of_a_module_is_an_attribute():
    m = compiled_in_place()
    assert torch.equal(m._compiled_call_impl(torch.ones(3)), m.forward(torch.ones(3)))
    m._compiled_call_impl = lambda x: x * 7
    assert m(torch.ones(1)).tolist() == [7.0]
    m._compiled_call_impl = None
    assert m._compiled_call_impl is None and m(torch.ones(3)).shape == (3,)


def test_a_log_that_keeps_its_records_keeps_no_graph(caplog, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "first"))
    compile(made_of(PLAIN))(torch.ones(3))
    # The kernel's code is in the process and on no disk that is asked: the graph isn't kept, and an exception says why.
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "second"))
    monkeypatch.setattr(cache, "_made", {})
    reset()
    with caplog.at_level("INFO", "flambeau.inductor"):
        made = Backend("inductor")
        f = compile(made_of(PLAIN), backend=made)
        f(torch.ones(3))
    assert "is not kept on disk: a kernel's object code" in caplog.text
    kept = {f"graph {i}": r for i, r in enumerate(made.graphs)} | {"backend": weakref.ref(made)}
    del f, made
    assert [k for k, r in kept.items() if r() is not None] == []


class Proxied:
    field = 1


def held_by_nobody_else(x):
    held = Proxied()
    proxy = weakref.proxy(held)
    assert held.field == proxy.field
    held = None
    try:
        proxy.field  # noqa: B018
    except ReferenceError:
        return x + 1
    return x - 1


def held_in_a_list(x):
    held = [Proxied()]
    known = weakref.ref(held[0])
    torch._dynamo.graph_break()
    del held[0]
    torch._dynamo.graph_break()
    return x + 1 if known() is None else x - 1


@pytest.mark.parametrize("fn", [held_by_nobody_else, held_in_a_list], ids=lambda f: f.__name__)
def test_what_follows_a_break_holds_its_values_alone(fn):
    """Also where it runs plainly, as a use of a weak proxy does: nobody else holds what the frame lets go."""
    assert compile(fn, backend="eager")(torch.zeros(1)).item() == fn(torch.zeros(1)).item() == 1
