"""torch.compile, torch.compiler and torch._dynamo as users spell them, and what they say to wrong use."""

import functools
import subprocess
import sys

import flambeau._dynamo as dynamo
import numpy as np
import pytest
from flambeau._dynamo.utils import CompileProfiler, compile_times, counters
from helpers import Graphs

import flambeau as torch

X = torch.tensor([1.0, 2.0, 3.0])


def test_decorator_forms():
    @torch.compile
    def a(x):
        return x * 2

    @torch.compile(backend="eager", fullgraph=True)
    def b(x):
        "doc"
        return x * 3

    assert torch.equal(a(X), X * 2) and torch.equal(b(X), X * 3)
    assert b.__doc__ == "doc" and b.__name__ == "b"
    assert torch.equal(torch.compile(lambda x: x + 1, backend="aot_eager")(X), X + 1)
    assert torch.equal(torch.compile(functools.partial(torch.add, X), backend="eager")(X), X * 2)
    assert torch.equal(torch.compile(torch.sin, backend="eager")(X), torch.sin(X))
    assert torch.compile(b, disable=True) is b


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: torch.compile(3), "expects a callable"),
        (lambda: torch.compile(lambda x: x, backend="nope"), "Invalid backend: 'nope'.*list_backends"),
        (lambda: torch.compile(lambda x: x, backend=3), "name or a callable"),
        (lambda: torch.compile(lambda x: x, mode="fast"), "Unrecognized mode=fast"),
        (lambda: torch.compile(lambda x: x, mode="default", options={"a": 1}), "Either mode or options"),
        (
            lambda: torch.compile(lambda x: x, options={"max_autotun": 1}),
            "option max_autotun; the nearest is 'max_autotune'",
        ),
        (lambda: dynamo.allow_in_graph(3), "expects a callable"),
        (lambda: dynamo.disallow_in_graph("sin"), "expects a callable"),
        (lambda: dynamo.disable(3), "expects a callable"),
        (lambda: setattr(dynamo.config, "no_such", 1), "no_such"),
    ],
)
def test_wrong_use(make, text):
    with pytest.raises((RuntimeError, TypeError, AssertionError, AttributeError), match=text):
        make()


def test_backends():
    assert "inductor" in dynamo.list_backends() and {"eager", "aot_eager"} <= set(dynamo.list_backends(None))

    @dynamo.register_backend(name="doubling_test")
    def backend(gm, example_inputs, **kwargs):
        seen.append((len(example_inputs), kwargs))
        return lambda *a: [2 * t for t in gm.forward(*a)]

    seen = []
    assert torch.equal(torch.compile(lambda x: x + 1, backend="doubling_test", options={"k": 1})(X), (X + 1) * 2)
    assert seen == [(1, {"options": {"k": 1}})]
    with pytest.raises(RuntimeError, match="duplicate"):
        dynamo.register_backend(lambda gm, ex: gm, name="doubling_test")
    with pytest.raises(dynamo.exc.BackendCompilerFailed, match="must return a callable"):
        torch.compile(lambda x: x + 1, backend=lambda gm, ex: 3)(X)


def test_older_spellings():
    def f(x):
        print("", end="")
        return x

    with pytest.raises(dynamo.exc.Unsupported):
        dynamo.optimize("eager", nopython=True)(f)(X + 1)
    assert torch.equal(dynamo.optimize("eager")(f)(X), X)
    with pytest.warns(DeprecationWarning, match="deprecated"):
        dynamo.skip(f)


def test_disable_forms():
    @dynamo.disable(reason="a test")
    class K:
        def __init__(self, x):
            self.x = x * 2

    g = Graphs()
    assert torch.equal(torch.compile(lambda x: K(x + 1).x + 1, backend=g)(X), (X + 1) * 2 + 1)
    assert ["mul"] not in g.names()
    m = dynamo.disable(torch.nn.Linear(3, 3), reason="a test")
    g = Graphs()
    torch.compile(lambda x: m(x + 1) + 1, backend=g)(X)
    assert g.names() == [["add"], ["add"]]
    with dynamo.disable():
        assert torch.equal(torch.compile(lambda x: x + 1, backend=g)(X), X + 1)


def test_allow_and_disallow():
    def opaque(x):
        return torch.sin(x) if type(x).__name__ else x

    def f(x):
        return opaque(torch.sub(x, 1)) + 1

    dynamo.allow_in_graph(opaque)
    dynamo.disallow_in_graph([torch.sub])
    try:
        g = Graphs()
        assert torch.equal(torch.compile(f, backend=g)(X), torch.sin(X - 1) + 1)
        assert g.names() == [["opaque", "add"]]
    finally:
        dynamo.allow_in_graph(torch.sub)
        dynamo.trace_rules.forget(opaque)
        dynamo.trace_rules.forget(torch.sub)
    assert dynamo.trace_rules.explain(opaque)[0] == "inline" and dynamo.trace_rules.explain(subprocess.run)[0] == "skip"


def test_is_compiling_is_seen_by_helpers():
    where = {}

    def here(name):
        where[name] = torch.compiler.is_compiling()

    def f(x):
        here("f")
        return x + 1

    torch.compile(f, backend="eager")(X)
    assert where == {"f": True}
    f(X)
    assert where == {"f": False} and not dynamo.is_compiling()


def test_assume_constant_result():
    calls = []

    @torch.compiler.assume_constant_result
    def k():
        calls.append(1)
        return 3

    c = torch.compile(lambda x: x * k(), backend="eager", fullgraph=True)
    assert torch.equal(c(X), X * 3) and torch.equal(c(X), X * 3) and len(calls) == 1


def test_counters_and_times():
    torch.compile(lambda x: x + 1, backend="eager")(X)
    assert counters["frames"]["ok"] == 1 and counters["stats"]["unique_graphs"] == 1
    assert "<lambda>" in compile_times() and len(compile_times("csv")[0]) == 2  # capture, and the backend
    dynamo.reset()
    assert not counters


def test_profiler():
    with CompileProfiler() as prof:
        c = torch.compile(lambda x, k: x * k, backend=prof)
        for k in range(3):
            assert torch.equal(c(X, k), X * k)
        c(X, 0)
    text = prof.report()
    assert "L['k']" in text and "No graph breaks" in text and len(prof.recompiles) == 2 and prof.frame_count == 1


def test_wrap_numpy():
    @torch.compiler.wrap_numpy
    def f(a, scale=1):
        return {"sum": np.sum(a, axis=0) * scale, "parts": [a, (np.exp(a),)]}

    x = torch.ones(2, 3, requires_grad=True)
    out = torch.compile(f, backend="aot_eager", fullgraph=True)(x, scale=2)
    (out["sum"].sum() + out["parts"][1][0].sum()).backward()
    assert torch.allclose(x.grad, torch.full((2, 3), 2 + float(np.e)))
    plain = f(x.detach(), scale=2)
    assert torch.equal(plain["sum"], out["sum"].detach())


def test_settings_from_the_environment():
    code = (
        "import flambeau as torch, flambeau._dynamo as d\n"
        "print(d.config.strict_guards, torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1)))\n"
    )
    env = {"PYTHONPATH": ":".join(sys.path), "FLAMBEAU_STRICT_GUARDS": "1", "TORCH_LOGS": "graph_code"}
    p = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert p.stdout == "True tensor([2.])\n" and "[__graph_code]" in p.stderr, p.stderr


def test_disable_a_compiled_module():
    """It runs plainly, as the module that was compiled does from then on."""
    counter = dynamo.testing.CompileCounter()
    m = torch.nn.Linear(3, 3)
    plain = dynamo.disable(torch.compile(torch.compile(m, backend=counter), backend=counter), reason="a test")
    x = torch.ones(1, 3)
    assert torch.equal(plain(x), m(x)) and counter.frame_count == 0
