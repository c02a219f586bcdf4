"""What is left out of tracing, put in as it is, or traced by other rules: for operators, namespaces, files, modules, regions."""

import operator
import sys
import types
import warnings

import pytest

import flambeau as torch
from flambeau import compiler
from flambeau.compiler import dynamo_api as dynamo
from flambeau.dynamo.exc import Unsupported

X = torch.ones(3)


class Graphs:
    def __init__(self):
        self.names = []

    def __call__(self, gm, inputs):
        self.names.append(
            [getattr(n.target, "__name__", str(n.target)) for n in gm.graph.nodes if n.op.startswith("call")]
        )
        return gm.forward


def graphs(fn, *args):
    torch.compiler.reset()
    found = Graphs()
    torch.compile(fn, backend=found)(*args)
    return found.names


@pytest.mark.parametrize("what", [torch.ops.aten.add.Tensor, torch.ops.aten.add, "aten::*", torch.ops.aten])
def test_operators_are_disallowed(what):
    with compiler.disallowed(what):
        names = graphs(lambda x: (x.sin() + 1).cos(), X)
    assert not any("add" in n for g in names for n in g)
    assert len(graphs(lambda x: (x.sin() + 1).cos(), X)) == 1


def test_scopes_nest_and_forget_captured_code():
    found = Graphs()
    f = torch.compile(lambda x: torch.sin(x + 1) * 2, backend=found)
    f(X)
    with compiler.disallowed(torch.sin):
        f(X)
        assert len(found.names) == 3
        with compiler.allowed(torch.sin):
            f(X)
            assert len(found.names) == 4
    f(X)
    assert found.names[-1] == ["add", "sin", "mul"]


def test_user_functions_are_for_disable():
    with pytest.raises(RuntimeError, match="Use torch._dynamo.disable"):
        dynamo.disallow_in_graph(lambda x: x)


@pytest.fixture
def module():
    m = types.ModuleType("somepackage.part")
    exec("import flambeau as torch\ndef h(x): return torch.sin(x)\n", m.__dict__)
    sys.modules[m.__name__] = m
    yield m
    del sys.modules[m.__name__]


@pytest.mark.parametrize("pattern", ["somepackage.*", "somepackage.part", "*part"])
def test_modules_are_disabled(module, pattern):
    def f(x):
        return module.h(x + 1) * 2

    compiler.disable_module(pattern)
    try:
        assert graphs(f, X) == [["add"], ["mul"]]
        assert dynamo.trace_rules.explain(module.h) == ("skip", f"disable_module({pattern!r})")
    finally:
        compiler.enable_module(pattern)
    assert graphs(f, X) == [["add", "sin", "mul"]]


def test_nothing_is_captured_inside_disable():
    found = Graphs()
    with compiler.disable():
        torch.compile(lambda x: x * 2, backend=found)(X)
    assert found.names == []


def breaks(x):
    dynamo.graph_break()
    return x


@pytest.mark.parametrize("how", ["with", "decorator", "nested", "off"])
def test_error_on_graph_break(how):
    @dynamo.error_on_graph_break(True)
    def decorated(x):
        return breaks(x + 1)

    def inside(x):
        with dynamo.error_on_graph_break(True):
            return breaks(x + 1)

    def off_again(x):
        with dynamo.error_on_graph_break(True):
            y = x * 2
            with dynamo.error_on_graph_break(False):
                y = breaks(y)
        return y

    fn = {"with": inside, "decorator": decorated, "nested": lambda x: inside(x) * 2, "off": off_again}[how]
    assert torch.equal(fn(X), X + 1) or how in ("nested", "off")
    f = torch.compile(fn, backend="eager")
    if how == "off":
        assert torch.equal(f(X), X * 2)
        return
    with pytest.raises(Unsupported):
        f(X)


def test_nonstrict_trace():
    k = {"a": 2}

    @dynamo.nonstrict_trace
    def h(d, ys):
        dynamo.graph_break()
        return {"sum": d["x"] * k["a"] + sum(ys)}

    names = graphs(lambda x: h({"x": x}, [x, x])["sum"] * 2, X)
    assert len(names) == 1
    assert torch.equal(torch.compile(lambda x: h({"x": x}, [x, x])["sum"], backend="aot_eager")(X), X * 4)


def test_substitute_in_graph():
    def original(a, n):
        raise AssertionError("capture looks into it")

    @dynamo.substitute_in_graph(original)
    def traced(a, n):
        return a * n

    @compiler.substitute_in_graph(operator.indexOf)
    def index_of(a, b):
        for i, v in enumerate(a):
            if v == b:
                return i
        raise ValueError

    assert torch.equal(torch.compile(lambda x: original(x, 3), backend="eager", fullgraph=True)(X), X * 3)
    assert torch.equal(
        torch.compile(lambda x: x * operator.indexOf([1, 2, 3], 3), backend="eager", fullgraph=True)(X), X * 2
    )
    with pytest.raises(RuntimeError, match="not meant to be called"):
        traced(X, 3)
    with pytest.raises(TypeError, match="expects a callable"):
        dynamo.substitute_in_graph(3)


def test_patch_dynamo_config():
    seen = []

    @dynamo.patch_dynamo_config(max_traced_instructions=123_456)
    def h(x):
        return note(x) + 1

    @compiler.assume_constant_result
    def value():
        seen.append(dynamo.config.max_traced_instructions)
        return 1

    def note(x):
        return x * value()

    before = dynamo.config.max_traced_instructions
    torch.compile(lambda x: h(x) * 2, backend="eager")(X)
    assert seen == [123_456]
    assert dynamo.config.max_traced_instructions == before

    def broken(x):
        with dynamo.patch_dynamo_config(max_traced_instructions=123_456):
            dynamo.graph_break()
            return x

    torch.compile(broken, backend="eager")(X)
    assert dynamo.config.max_traced_instructions == before


def test_checked_allow_in_graph():
    k, t = [1], torch.ones(3)

    def h(x):
        return x + k[0] + t

    dynamo.allow_in_graph(h)
    try:
        with dynamo.config.patch(check_allow_in_graph=True):
            f = torch.compile(lambda x: h(x) * 2, backend="aot_eager")
            f(X)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                f(X)
            t.add_(1)
            with pytest.warns(UserWarning, match="allow_in_graph: .*h .* reads t, which changed"):
                f(X)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                f(X)
    finally:
        dynamo.trace_rules.forget(h)


def test_what_to_disallow_for_an_operator():
    found = dynamo.dynamo_ops_for(torch.ops.aten.add)
    assert {torch.add, torch.Tensor.add, torch.Tensor.__add__} <= found
    assert torch.mul not in found
    assert torch.add in dynamo.dynamo_ops_for(torch.ops.aten.add.Tensor)


def test_nested_compile_region():
    @compiler.nested_compile_region
    def h(x):
        return x + 1

    assert graphs(lambda x: h(h(x)) * 2, X) == [["invoke_subgraph", "getitem", "invoke_subgraph", "getitem", "mul"]]


def test_functions_whose_calls_are_left_out():
    said = []

    class Logger:
        def info(self, text, *args):
            said.append(text)
            torch._dynamo.graph_break()

    logger, other = Logger(), Logger()

    def shout(x):
        said.append("shout")

    def f(x):
        logger.info("a %s", x)
        shout(*[x])
        print("b", x)
        return x + 1

    for ignored in ({logger.info, shout, print}, {Logger.info, shout, print}):
        torch._dynamo.reset()
        with torch._dynamo.config.patch(ignore_logging_functions=ignored):
            g = torch.compile(f, backend="eager", fullgraph=True)
            assert g(torch.ones(1)).item() == 2 and said == []
    with torch._dynamo.config.patch(ignore_logging_functions={other.info, print}):
        assert torch.compile(lambda x: f(x), backend="eager")(torch.ones(1)).item() == 2
    assert said == ["a %s", "shout"]


def test_subclasses_that_are_not_traced():
    class T(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(T)
    with torch._dynamo.config.patch(nontraceable_tensor_subclasses={T}):
        with pytest.raises(torch._dynamo.exc.Unsupported, match="nontraceable_tensor_subclasses"):
            torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)(x)
    assert type(torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)(x)) is T


def test_settings_of_pytorch_have_a_meaning_or_refuse():
    config = torch._dynamo.config
    with config.patch(verify_correctness=True, allow_empty_graphs=True, recompile_limit=3):
        assert config.verify and config.capture_empty_graphs and config.cache_size_limit == 3
    with pytest.raises(NotImplementedError, match="wrap_top_frame = True is not built"):
        config.wrap_top_frame = True
    for act in (lambda: config.debug_force_nested_calls, lambda: setattr(config, "generate_pycode", True)):
        with pytest.raises(AttributeError, match="is a setting of PyTorch that is not built here"):
            act()
    with pytest.raises(AttributeError, match="does not exist"):
        config.no_such_setting = 1
    assert not hasattr(config, "generate_pycode")


def test_a_disabled_module_keeps_its_hooks_to_itself():
    import copy
    import pickle

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.last(self.inner(torch.sin(x)))

    model, graphs = Outer(), []
    model.inner.register_forward_pre_hook(lambda module, args: (args[0].sigmoid(),))
    model.inner.register_forward_hook(lambda module, args, out: out.exp())
    x = torch.randn(4)
    want = model(x)
    model.inner = torch._dynamo.disable(model.inner, reason="asked for")
    run = torch.compile(model, backend=lambda gm, ex: graphs.append([n.target for n in gm.graph.nodes]) or gm)
    assert torch.equal(run(x), want) and torch.equal(model(x), want)
    assert len(graphs) == 2 and torch.sin in graphs[0] and torch.nn.functional.linear in graphs[1]
    plain = torch._dynamo.disable(torch.nn.Linear(2, 2))
    for other in (copy.deepcopy(plain), pickle.loads(pickle.dumps(plain))):
        assert torch.equal(other(torch.ones(2)), plain(torch.ones(2)))
        assert other.forward._torchdynamo_orig_callable.__self__ is other
