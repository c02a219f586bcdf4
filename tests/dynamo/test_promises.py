"""What PyTorch's documents on fine-grained tracing and its questions and answers on compile() promise, a function for each promise (its text is the
docstring). Longer tests of the same tools are in test_controls.py, test_stances.py, test_regions.py, test_api.py and tests/debug/test_repro.py."""

import contextlib
import importlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import types
import warnings

import flambeau._dynamo as dynamo
import numpy as np
import pytest
from flambeau._dynamo.comptime import comptime
from flambeau._dynamo.utils import CompileProfiler, compile_times

import flambeau as torch
from flambeau import compiler
from flambeau.utils._debug_mode import DebugMode

X = torch.ones(4)
PROMISES = []


def promise(f):
    PROMISES.append(f)
    return f


def graphs(f, *args, **options):
    """How many graphs calls of ``f`` are captured in."""
    torch._dynamo.reset()
    count = dynamo.testing.CompileCounter()
    torch.compile(f, backend=count, **options)(*args)
    return count.frame_count


def logged(f, *args, **artifacts):
    """What the logs of these artifacts say while ``f`` is captured."""
    torch._dynamo.reset()
    text = io.StringIO()
    logger, handler = logging.getLogger("flambeau"), logging.StreamHandler(text)
    logger.addHandler(handler)
    torch._logging.set_logs(**artifacts)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            torch.compile(f)(*args)
    finally:
        torch._logging.set_logs(**dict.fromkeys(artifacts, False))
        logger.removeHandler(handler)
    return text.getvalue()


def run(code, folder, **env):
    """A program of its own in ``folder``; its errors are those of the test."""
    p = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))), **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert p.returncode == 0, p.stderr
    return p


@pytest.fixture
def module(tmp_path):
    """A module of the program's in a folder of its own."""
    (tmp_path / "promised.py").write_text("import flambeau as torch\n\ndef h(x):\n    return torch.sin(x) + 1\n")
    sys.path.insert(0, str(tmp_path))
    m = importlib.import_module("promised")
    yield m
    sys.path.remove(str(tmp_path))
    del sys.modules["promised"]


def inner(x):
    return x.sin() * 2


def outer(x):
    return inner(x) + 1


@promise
def disable_covers_what_is_called(module, folder):
    """disable: Dynamo is off on the decorated function as well as recursively invoked functions."""
    off = dynamo.disable(outer, reason="a test")
    assert graphs(lambda x: off(x + 1) * 3, X) == 2


@promise
def disable_one_frame_only(module, folder):
    """disable(recursive=False): the function's own frame only; what it calls is traced again."""
    off = dynamo.disable(types.FunctionType(outer.__code__.replace(), globals()), recursive=False)
    assert graphs(lambda x: off(x + 1) * 3, X) == 3


@promise
def disallowed_operator(module, folder):
    """disallow_in_graph: the op breaks the graph and runs in eager mode; allow_in_graph undoes it."""
    dynamo.disallow_in_graph(torch.sub)
    try:
        assert graphs(lambda x: torch.sub(x + 1, 1) + 1, X) == 2
    finally:
        dynamo.allow_in_graph(torch.sub)
        dynamo.trace_rules.forget(torch.sub)
    assert graphs(lambda x: torch.sub(x + 1, 1) + 1, X) == 1


@promise
def disallowed_overload(module, folder):
    """disallow_in_graph of an ATen operator, which PyTorch's doesn't see: also of one inside of a composite."""
    linear = torch.nn.Linear(2, 2)
    with compiler.disallowed(torch.ops.aten.addmm.default):
        assert graphs(lambda x: linear(x.sin()) + 1, torch.ones(3, 2)) == 2


@promise
def disallowed_namespace(module, folder):
    """Wish: disable all the ops inside a namespace."""
    with compiler.disallowed("aten::*"):
        assert graphs(lambda x: (x.sin() + 1).cos(), X) == 0


@promise
def disabled_file_folder_module(module, folder):
    """Wish: disable at a file or directory, in addition to function frames. Scoped too; logs and explain say which rule it was."""
    f = lambda x: module.h(x * 2) * 3  # noqa: E731
    rules = [
        (lambda: compiler.disable_path(module.__file__), "disable_path"),
        (lambda: compiler.disable_path(str(folder)), "disable_path"),
        (lambda: compiler.disable_module("promis*"), "disable_module"),
    ]
    for rule, name in rules:
        with rule():
            assert graphs(f, X) == 2
            assert name in logged(f, X, graph_breaks=True) and name in str(dynamo.explain(f)(X))
        assert graphs(f, X) == 1
    compiler.disable_path(module.__file__)
    assert graphs(f, X) == 2
    compiler.enable_path(module.__file__)
    assert graphs(f, X) == 1


@promise
def breadcrumbs_of_disable(module, folder):
    """Wish: breadcrumbs to warn the user about usage of disable: a warning, the logs, explain, each with the reason."""
    off = dynamo.disable(outer)
    with pytest.warns(UserWarning, match="outer .*disable was used"):
        torch.compile(lambda x: off(x) * 2, backend="eager")(X)
    said = dynamo.disable(inner, reason="it prints")
    for text in (logged(lambda x: said(x) * 2, X, graph_breaks=True), str(dynamo.explain(lambda x: said(x) * 2)(X))):
        assert "inner" in text and "it prints" in text


@promise
def graph_break(module, folder):
    """graph_break at the beginning of a function prevents inlining; both sides are captured."""

    def h(x):
        dynamo.graph_break()
        return x * 2

    assert graphs(lambda x: h(x + 1) + 1, X) == 3


@promise
def skip_is_deprecated(module, folder):
    """skip is deprecated in favour of disable(recursive=False)."""
    with pytest.warns(DeprecationWarning, match="recursive=False"):
        dynamo.skip(lambda x: x)


@promise
def frozen(module, folder):
    """run: prior compiled graphs are used, but no new ones are generated."""
    count = dynamo.testing.CompileCounter()
    f = torch.compile(inner, backend=count)
    f(X)
    for n in (4, 5, 6):
        assert torch.equal(dynamo.run(f)(torch.ones(n)), inner(torch.ones(n)))
    assert count.frame_count == 1


@promise
def explain(module, folder):
    """explain: graphs, breaks with reason and stack, operators, guards, as object and as text."""

    def toy_example(a, b):
        x = a / (torch.abs(a) + 1)
        print("", end="")
        if b.sum() < 0:
            b = b * -1
        return x * b

    e = dynamo.explain(toy_example)(X, -X)
    assert (e.graph_count, e.graph_break_count, len(e.break_reasons)) == (3, 2, 2) and e.op_count == 6
    for said in (
        "Graph Count: 3", "Graph Break Count: 2", "Break Reason 2:", "Reason: builtin: print", "Reason: generic_jump TensorVariable()",
        "line ", "in torch_dynamo_resume_in_toy_example_at_", "Ops per Graph:", "Out Guards:",
    ):  # fmt: skip
        assert said in str(e)
    with pytest.raises(dynamo.exc.Unsupported, match="builtin: print"):
        torch.compile(toy_example, fullgraph=True)(X, X)


@promise
def times(module, folder):
    """compile_times returns a string of the compile times spent in each function; also as columns."""
    torch.compile(outer)(X)
    assert re.search(r"outer \(capture\) +0\.\d+", compile_times()) and compile_times("csv", aggregate=True)[0]


@promise
def profiler(module, folder):
    """CompileProfiler sets the cache limit to 1 and records the causes of any guard failures."""
    with CompileProfiler() as prof:
        f = torch.compile(lambda x, k: x * k, backend=prof)
        for k in range(3):
            f(X, k)
    assert prof.frame_count == 1 and "L['k']" in prof.report() and "Recompilation" in prof.report()


@promise
def cache_limit(module, folder):
    """A function is recompiled up to cache_size_limit times, then it runs as it is."""
    count = dynamo.testing.CompileCounter()
    f = torch.compile(inner, backend=count, dynamic=False)
    with dynamo.config.patch(cache_size_limit=2):
        assert [f(torch.ones(n)).shape[0] for n in range(2, 6)] == [2, 3, 4, 5]
    assert count.frame_count == 2


@promise
def dynamic_shapes_by_environment(module, folder):
    """TORCHDYNAMO_DYNAMIC_SHAPES=1: the code won't recompile on shape changes."""
    code = (
        "import flambeau as t\nc = t._dynamo.testing.CompileCounter()\nf = t.compile(lambda x: x.sin() * 2, backend=c)\n"
        "for n in (3, 4, 5): f(t.ones(n))\nprint(c.frame_count)"
    )
    assert run(code, folder, TORCHDYNAMO_DYNAMIC_SHAPES="1").stdout == "1\n"


@promise
def transforms(module, folder):
    """vmap and grad inside of compiled functions; what the document lists as limitations (tuples, keywords, effects, strides) is captured too."""
    pair = (torch.ones(3, 3), torch.ones(3, 3))
    assert torch.equal(
        torch.compile(lambda p: torch.func.vmap(lambda q: q[0] + q[1])(p), fullgraph=True)(pair), pair[0] * 2
    )
    grad = torch.compile(lambda x, y: torch.func.grad(lambda x, y: (x * y).sum())(x, y=y), fullgraph=True)
    assert torch.equal(grad(X, X * 2), X * 2)
    seen = []

    def noted(x):
        seen.append(1)
        return x + x.stride(0)

    f = torch.compile(lambda x: torch.func.vmap(noted)(x), backend="eager")
    assert torch.equal(f(torch.ones(2, 3)), f(torch.ones(2, 3))) and len(seen) == 2
    assert torch.allclose(torch.func.grad(torch.compile(lambda x: torch.sin(x).sum()))(X), torch.cos(X))


@promise
def allowed_inside(module, folder):
    """allow_in_graph of a transformed function, inside of the compiled function."""
    f = torch.compile(lambda x: torch._dynamo.allow_in_graph(torch.vmap(torch.sum))(x), fullgraph=True)
    assert torch.equal(f(torch.ones(2, 3)), torch.full((2,), 3.0))


@promise
def numpy_functions(module, folder):
    """NumPy functions compile and give arrays; wrap_numpy makes them take, give and differentiate tensors; trace_numpy=False leaves them."""

    def products(a, b):
        return np.sum(a[:, :, None] * b[:, None, :], axis=(-2, -1))

    a, b = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    out = torch.compile(products, fullgraph=True)(a, b)
    assert isinstance(out, np.ndarray) and np.allclose(out, products(a, b))
    x = torch.ones(2, 3, requires_grad=True)
    z = torch.compile(compiler.wrap_numpy(products), fullgraph=True)(x, torch.ones(2, 3))
    z.sum().backward()
    assert torch.equal(x.grad, torch.full((2, 3), 3.0))
    with dynamo.config.patch(trace_numpy=False):
        assert graphs(lambda v: np.sin(v) + 1, np.ones(3)) == 0


@promise
def verified(module, folder):
    """verify=True: every compiled graph runs beside the plain one; the error names the first operator that differs."""
    f = torch.compile(lambda x: torch.relu(x - 0.5) * 2, verify=True)
    f(X)
    torch._dynamo.reset()
    with torch._inductor.config.patch("cpp.inject_relu_bug_TESTING_ONLY", "accuracy"):
        with pytest.raises(Exception, match="first operator that differs is .*relu"):
            f(X)


PROGRAM = """
import flambeau as t

def f(x, k=1.0):
    print(end="")
    return (t.sin(x) * k).sum()

c = t.compile(f)
for x in (t.ones(3, requires_grad=True), t.ones(4, requires_grad=True), t.ones(5, dtype=t.float64)):
    y = c(x)
    if y.requires_grad:
        y.backward()
"""
ARTIFACTS = (
    "graph_breaks guards recompiles graph_code graph graph_sizes aot_graphs aot_joint_graph aot_forward_graph output_code schedule bytecode "
    "sym_shapes dynamo aot"
).split()


@promise
def logs_by_environment(module, folder):
    """TORCH_LOGS: each artifact that is asked for is written, under its name; help lists them, an unknown one is an error."""
    said = run(PROGRAM, folder, TORCH_LOGS=",".join(ARTIFACTS), TORCHINDUCTOR_FORCE_DISABLE_CACHES="1").stderr
    assert [a for a in ARTIFACTS if f"[__{a}]" not in said] == []
    assert "__perf_hints" not in said
    with pytest.raises(AssertionError, match="Unrecognized log artifact 'nope'"):
        run(PROGRAM, folder, TORCH_LOGS="nope")


@promise
def logs_of_side_effects(module, folder):
    """side_effects: what captured code writes outside of it."""

    class Kept:
        last = None

    kept, seen = Kept(), []

    def f(x):
        kept.last = x.sin()
        seen.append(1)
        return x * 2

    text = logged(f, X, side_effects=True)
    assert text.count("Mutating ObjectVariable at closure['kept']") == text.count("Mutating ListVariable") == 1


@promise
def logs_by_interface(module, folder):
    """torch._logging.set_logs does the same while the program runs."""
    text = logged(lambda x: x.sin() * 2, X, graph_code=True, guards=True, aot_graphs=True, output_code=True)
    assert "graph of" in text and "TENSOR_MATCH: L['x']" in text and "forward graph" in text
    with pytest.raises(ValueError, match="Unrecognized log artifact"):
        torch._logging.set_logs(nope=True)


@promise
def debug_folder(module, folder):
    """TORCH_COMPILE_DEBUG=1 writes a folder for each run, below config.debug_dir_root."""
    code = PROGRAM.replace("import flambeau as t\n", "import flambeau as t\nt._dynamo.config.debug_dir_root = 'here'\n")
    run(code, folder, TORCH_COMPILE_DEBUG="1")
    found = {p.name for p in (folder / "here").rglob("*") if p.is_file()}
    assert {
        "debug.log",
        "fx_graph_readable.py",
        "fx_graph_runnable.py",
        "ir_post_fusion.txt",
        "output_code.py",
    } <= found
    (log,) = (folder / "here").glob("run_*/torchdynamo/debug.log")
    assert "graph break: print() is ordinary Python" in log.read_text() and "TENSOR_MATCH" in log.read_text()
    (runnable, *_) = sorted((folder / "here").rglob("fx_graph_runnable.py"))
    run(runnable.read_text(), folder)


@promise
def event_file(module, folder):
    """TORCH_TRACE: a file of events for tlparse."""
    run(PROGRAM, folder, TORCH_TRACE=str(folder / "trace"), TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")
    (path,) = (folder / "trace").iterdir()
    events = [json.loads(line.split("] ", 1)[1]) for line in path.read_text().splitlines() if line.startswith("V")]
    kinds = {k for e in events for k in e} | {e["artifact"]["name"] for e in events if "artifact" in e}
    assert {
        "dynamo_start", "dynamo_output_graph", "dynamo_guards", "aot_joint_graph", "aot_forward_graph", "aot_backward_graph", "inductor_output_code",
        "compilation_metrics", "recompile_reasons", "dynamo_graph_break_reason",
    } <= kinds  # fmt: skip
    metrics = [e["compilation_metrics"] for e in events if "compilation_metrics" in e]
    assert {m["co_name"] for m in metrics} >= {"f"} and all(m["capture_time_s"] > 0 for m in metrics)


@promise
def looking_while_tracing(module, folder):
    """comptime: code that runs while a function is captured and looks at locals, graph, guards, stack; plainly it does nothing."""
    text, values = io.StringIO(), []

    def look(ctx):
        values.append(
            (ctx.get_local("y").size(), ctx.get_local("k").as_python_constant(), ctx.get_local("y").is_proxy())
        )
        for show in (
            ctx.print_graph,
            ctx.print_locals,
            ctx.print_guards,
            ctx.print_bt,
            ctx.print_value_stack,
            ctx.print_disas,
        ):
            show(file=text)
        ctx.assert_static(ctx.get_local("y"))

    def f(x, k=3):
        y = torch.sin(x) * k
        comptime(look)
        return y + 1

    assert torch.equal(f(X), torch.compile(f, backend="eager", fullgraph=True)(X))
    assert values == [((4,), 3, True)]
    for said in (
        "sin",
        "k = 3",
        "y = Tensor(shape=(4,), dtype=torch.float32)",
        "-->",
        "TENSOR_MATCH: L['x']",
        "comptime(look)",
        "LOAD_GLOBAL",
    ):
        assert said in text.getvalue()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert graphs(lambda x: (x * 2, comptime.print_graph(), comptime.graph_break())[0] + 1, X) == 2
    assert "mul" in out.getvalue()
    with pytest.raises(dynamo.exc.InternalTorchDynamoError, match="comptime: AssertionError: expected static"):
        torch.compile(lambda x: (x * 2, comptime.assert_static(x))[0], backend="eager", dynamic=True)(torch.ones(3))


@promise
def debug_mode(module, folder):
    """DebugMode: the operators that run, with shapes, as text."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    with DebugMode(
        record_nn_module=True, record_torchfunction=True, record_stack_trace=True, store_original_args=True
    ) as mode:
        net(torch.ones(1, 2))
    text = mode.debug_string()
    names = [c.name for c in mode.operators]
    assert names.index("[nn.Mod] Sequential.0") < names.index("aten::addmm") < names.index("[nn.Mod] Sequential.1")
    assert (
        "torch.relu(t: f32[1, 2], inplace=False)  ->  t: f32[1, 2]" in text
        and "torch.ones(1, 2)" in text
        and "        aten::relu" in text
    )
    assert mode.operators[0].stack[-1].name == "debug_mode" and mode.operators[0].original[0] == (1, 2)
    with DebugMode(record_ids=True, record_output=False) as mode:
        (torch.ones(2) + 1) * 2
    assert mode.debug_string().split("\n")[1:] == [
        "    aten::add.Tensor(t$0: f32[2], 1)",
        "    aten::mul.Tensor(t$1: f32[2], 2)",
    ]


@pytest.mark.parametrize("promised", PROMISES, ids=lambda f: f.__name__)
def test_is_kept(promised, module, tmp_path):
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch._dynamo.disable was used")
        promised(module, tmp_path)
