"""What compiled functions do instead of compiling: stances, limits, guards left out, callbacks, default backends."""

import pytest

import flambeau as torch
from flambeau.compiler import dynamo_api as dynamo
from flambeau.compiler import set_stance

X = torch.ones(2)
compiler = torch.compiler


class Seven:
    """A backend whose graphs give 7, so that captured code can be told from plain code, and that counts them."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, gm, inputs):
        self.graphs += 1
        return lambda *args: (torch.tensor(7.0),)


def plus(x):
    return x + 1


def steps(f, sizes):
    """For each call whether it ran captured code, and the number of graphs."""
    return ["captured" if f(torch.ones(n)).ndim == 0 else "plain" for n in sizes]


@pytest.mark.parametrize(
    "stance, before, calls, graphs",
    [
        ("default", [2], ["captured"] * 3, 2),
        ("force_eager", [2], ["plain"] * 3, 1),
        ("force_eager", [], ["plain"] * 3, 0),
        ("eager_on_recompile", [2], ["captured", "plain", "plain"], 1),
        ("eager_on_recompile", [], ["plain"] * 3, 0),
        ("eager_then_compile", [], ["plain", "captured", "captured"], 1),
        ("aot_eager_then_compile", [], ["plain", "captured", "captured"], 1),
    ],
)
@pytest.mark.parametrize("form", ["with", "decorator", "for good"])
def test_stances(stance, before, calls, graphs, form):
    backend = Seven()
    f = torch.compile(plus, backend=backend)
    steps(f, before)
    if form == "with":
        with set_stance(stance):
            got = steps(f, [2, 3, 4])
    elif form == "decorator":
        got = set_stance(stance)(steps)(f, [2, 3, 4])
    else:
        set_stance(stance)
        try:
            got = steps(f, [2, 3, 4])
        finally:
            set_stance("default")
    assert got == calls and backend.graphs == graphs
    assert steps(f, [5]) == ["captured"]


def test_fail_on_recompile():
    f = torch.compile(plus, backend=Seven())
    f(X)
    with set_stance("fail_on_recompile"):
        assert steps(f, [2]) == ["captured"]
        with pytest.raises(RuntimeError, match="recompile of plus .*size=\\[2\\]"):
            f(torch.ones(3))
        with set_stance("force_eager"):
            assert steps(f, [3]) == ["plain"]
    assert steps(f, [3]) == ["captured"]


def test_a_backend_for_everything():
    backend = Seven()
    f = torch.compile(plus, backend="eager")
    f(X)
    with set_stance("default", force_backend=backend):
        assert steps(f, [2]) == ["captured"]
    assert steps(f, [2]) == ["plain"]
    for wrong in (lambda: set_stance("nope"), lambda: set_stance("force_eager", force_backend="eager")):
        with pytest.raises(RuntimeError):
            wrong()
    assert steps(torch.compile(plus, backend=Seven()), [2]) == ["captured"]


def test_nothing_captured_is_used_inside_disable():
    f = torch.compile(plus, backend=Seven())
    f(X)
    with compiler.disable():
        assert steps(f, [2]) == ["plain"]


def test_what_may_not_be_called():
    @torch.compile(backend="eager")
    def f(x):
        set_stance("force_eager")
        return x

    with pytest.raises(AssertionError, match="forbidden callable"):
        f(X)

    def bad(x):
        return x

    dynamo.forbid_in_graph(bad)
    with pytest.raises(AssertionError, match="forbid_in_graph"):
        torch.compile(lambda x: bad(x), backend="eager")(X)


GLOBAL = 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 2
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) * self.k


def by_global(x):
    return x * GLOBAL


@pytest.mark.parametrize(
    "fn, change, unsafe",
    [
        (by_global, lambda: globals().update(GLOBAL=3), "skip_guard_on_globals_unsafe"),
        (by_global, lambda: globals().update(GLOBAL=3), "keep_tensor_guards_unsafe"),
        (by_global, lambda: globals().update(GLOBAL=3), "skip_all_guards_unsafe"),
        (by_global, lambda: globals().update(GLOBAL=3), None),
        (Model(), lambda m: setattr(m, "k", 3), "skip_guard_on_all_nn_modules_unsafe"),
        (Model(), lambda m: setattr(m, "k", 3), None),
        (Model(), lambda m: setattr(m.inner, "bias", None), "skip_guard_on_inbuilt_nn_modules_unsafe"),
        (Model(), lambda m: setattr(m.inner, "bias", None), None),
        (Model(), lambda m: setattr(m, "inner", torch.nn.Linear(2, 2)), "keep_portable_guards_unsafe"),
    ],
)
def test_guards_that_a_program_does_without(fn, change, unsafe):
    globals()["GLOBAL"] = 2
    backend = dynamo.testing.CompileCounter()
    options = {"guard_filter_fn": getattr(compiler, unsafe)} if unsafe else None
    f = torch.compile(fn, backend=backend, options=options)
    f(torch.ones(1, 2))
    change(fn) if isinstance(fn, Model) else change()
    f(torch.ones(1, 2))
    assert backend.frame_count == (1 if unsafe else 2)
    if unsafe and unsafe != "skip_all_guards_unsafe":  # what tensors are is still guarded
        f(torch.ones(1, 2, dtype=torch.float64)) if fn is by_global else None
        assert backend.frame_count == (2 if fn is by_global else 1)


def test_what_filters_are_told():
    seen = []

    def keep(entries):
        seen.extend(entries)
        return [True] * len(entries)

    torch.compile(by_global, backend="eager", options={"guard_filter_fn": keep})(X)
    (g,) = [e for e in seen if "GLOBAL" in e.name]
    assert g.is_global and g.value in (2, 3) and g.guard_type == "EQUALS_MATCH"
    assert any(e.guard_type == "TENSOR_MATCH" and e.name == "L['x']" and not e.is_global for e in seen)
    with pytest.raises(dynamo.exc.UserError, match="0 answers"):
        torch.compile(by_global, backend="eager", options={"guard_filter_fn": lambda e: []})(X)


@pytest.mark.parametrize("isolated, graphs", [(False, 2), (True, 4)])
def test_limits_of_one_callable(isolated, graphs, caplog):
    backend = dynamo.testing.CompileCounter()
    fs = [torch.compile(plus, backend=backend, recompile_limit=2, isolate_recompiles=isolated) for _ in range(2)]
    for dtype in (torch.float32, torch.float64, torch.int64):
        for f in fs:
            assert torch.equal(f(torch.ones(2, dtype=dtype)), torch.ones(2, dtype=dtype) + 1)
    assert backend.frame_count == graphs
    assert "recompile_limit (2)" in caplog.text or not caplog.records


def test_recompiling_is_an_error():
    f = torch.compile(plus, backend="eager")
    f(X)
    with dynamo.config.patch(error_on_recompile=True):
        f(X)
        with pytest.raises(dynamo.exc.RecompileError, match="float32"):
            f(X.double())


def test_callbacks():
    seen = []
    dynamo.callback.on_compile_start(lambda a: seen.append(("start", a.callback_trigger)))
    dynamo.on_compile_end(lambda a: seen.append(("end", a.compile_id.split("/")[1])))
    try:
        f = torch.compile(plus, backend="eager")
        f(X)
        f(X)
        f(X.double())
    finally:
        dynamo.callback.clear()
    assert seen == [("start", "DYNAMO"), ("end", "0"), ("start", "DYNAMO"), ("end", "1")]


def test_default_backend():
    backend = Seven()
    assert compiler.get_default_backend() == "inductor"
    compiler.set_default_backend(backend)
    try:
        assert steps(torch.compile(plus), [2]) == ["captured"]
    finally:
        compiler.set_default_backend("inductor")
    with pytest.raises(RuntimeError, match="Invalid backend"):
        compiler.set_default_backend("nope")


def test_disabled_classes():
    @compiler.disable(reason="a test")
    class Disabled(torch.nn.Module):
        def forward(self, x):
            return x.sin()

    m, backend = Disabled(), dynamo.testing.CompileCounter()
    x = torch.ones(2)
    assert torch.equal(torch.compile(lambda x: m(x * 2) + 1, backend=backend)(x), (x * 2).sin() + 1)
    assert backend.frame_count == 2 and backend.op_count == 2
