"""Graph breaks: what is captured before and after, the reasons, resume functions, and that nothing changes for the user."""

import contextlib
import gc

import numpy as np
import pytest
from helpers import Graphs, check

import flambeau as torch
from flambeau.compiler import compile, disable, explain, graph_break
from flambeau.dynamo import exc
from flambeau.dynamo.config import config
from flambeau.dynamo.tracing import inline_frame

X = torch.tensor([1.0, -2.0, 3.0])
Y = torch.tensor([2.0, 1.0, -1.0])
log = []


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo", end="")
    if b.sum() < 0:
        b = b * -1
    return x * b


def in_the_middle(x, y):
    return (x + 1) * len(gc.get_threshold()) + graph_or(y * 2)


def graph_or(t):
    graph_break()
    return t - 1


def locals_travel(x, y):
    a, b, s = x + 1, [x, y], {"k": y * 2}
    f = lambda t: t + a  # noqa: E731
    graph_break()
    return f(a), b, s["k"] + b[0]


def cells_travel(x, y):
    n = 1

    def inc():
        nonlocal n
        n += 1
        return n

    x = x + inc()
    graph_break()
    x = x * inc()
    return x, n


def in_with(x, y):
    w = y.clone().requires_grad_()
    a = x * 2
    with torch.no_grad():
        b = w * 2
        graph_break()
        c = w * 3
    d = w * 4
    return a, b.requires_grad, c.requires_grad, d.requires_grad, torch.is_grad_enabled()


def in_try(x, y):
    a = x * 2
    try:
        a = a + 1
        raise_it(a)
    except ValueError as e:
        return a, str(e)
    finally:
        log.append(1)
    return x


def raise_it(a):
    if a.sum() > -1e9:
        raise ValueError("caught")


def in_loop(x, y):
    for i in range(3):
        x = x + i
        graph_break()
    return x * 2


def while_on_data(x, y):
    x = x * 1
    while x.sum() < 50:
        x = x.abs() * 2
    return x


def or_and(x, y):
    z = (x.sum() > 100) or (y.sum() > 1) or 7
    return x + 1, z


def nested_call_stack(x, y):
    return torch.add(x * 2, helper(y, graph_or(x))) - 1


def helper(a, b):
    return a * b


def early_return(x, y):
    x = x + 1
    if x.sum() > 0:
        return x * 2
    return x * 3


def unknown_attribute(x, y):
    a = x * 2
    with contextlib.suppress(AttributeError):
        x.does_not_exist  # noqa: B018
    return a + y


def raises(x, y):
    a = x * 2
    raise KeyError(a.shape[0])


def wrong_shapes(x, y):
    return x * 2 + torch.zeros(7)


def item(x, y):
    return x * x.sum().item() + 1


def data_in_list(x, y):
    return [t for t in x.tolist() if t > 0], x + 1


ALL = [
    in_the_middle, locals_travel, cells_travel, in_with, in_try, in_loop, while_on_data, or_and, nested_call_stack, early_return,
    unknown_attribute, raises, wrong_shapes, item, data_in_list,
]  # fmt: skip


@pytest.mark.parametrize("fn", ALL, ids=lambda f: f.__name__)
def test_same_as_plain(fn):
    check(fn, X, Y, calls=3)
    check(fn, -X, Y)


def test_toy_example(capsys):
    check(toy_example, X, Y, ops=[["abs", "add", "truediv"], ["sum", "lt"], ["mul"]])
    check(toy_example, X, -Y, ops=[["abs", "add", "truediv"], ["sum", "lt"], ["mul", "mul"]])
    assert capsys.readouterr().out == "woo" * 8


def test_explain(capsys):
    e = explain(toy_example)(X, Y)
    assert (e.graph_count, e.graph_break_count, e.op_count) == (3, 2, 5)
    first, second = e.break_reasons
    assert first.reason.startswith("builtin: print [<class '") and first.reason.endswith("] True")
    assert second.reason == "generic_jump TensorVariable()"
    assert first.user_stack[-1].name == "toy_example" and first.user_stack[-1].line.startswith("print(")
    line = first.user_stack[-1].lineno
    assert (
        second.user_stack[-1].name == f"torch_dynamo_resume_in_toy_example_at_{line}"
        and second.user_stack[-1].lineno == line + 1
    )
    text = str(e)
    for part in ("Graph Count: 3", "Break Reason 2:", "Ops per Graph:", "Out Guards:", "User Stack:"):
        assert part in text


@pytest.mark.parametrize(
    "fn, words",
    [
        (
            toy_example,
            ["print() is ordinary Python with effects", "builtin: print", "test_breaks.py", "toy_example", "Hint"],
        ),
        (while_on_data, ["The value of a tensor decides", "generic_jump TensorVariable()", "while x.sum() < 50"]),
        (
            lambda x, y: x * y.data_ptr(),
            [".data_ptr() of a tensor isn't captured", "call_method TensorVariable() data_ptr"],
        ),
        (in_the_middle, ["C function gc.get_threshold"]),
        (nested_call_stack, ["graph_break()", "in graph_or", "in nested_call_stack"]),
    ],
)
def test_fullgraph_names_the_line(fn, words):
    g = Graphs()
    compile(fn, backend=g)(X, Y)
    with pytest.raises(exc.Unsupported) as e:
        compile(fn, backend=g, fullgraph=True)(X, Y)
    for w in words:
        assert w in str(e.value)


def test_fullgraph_user_error():
    with pytest.raises(RuntimeError, match="7"):
        compile(wrong_shapes, backend="eager", fullgraph=True)(X, Y)


def test_inner_break_is_its_own_graph():
    def outer(x):
        return inner(x * 2) * 3

    def inner(x):
        graph_break()
        return torch.sin(x) + 1

    check(outer, X, ops=[["mul"], ["sin", "add"], ["mul"]])


def test_disable_recursive_and_not():
    @disable(reason="a test")
    def a(x):
        return b(x) + 1

    def b(x):
        return torch.sin(x)

    check(lambda x: a(x * 2) * 3, X, ops=[["mul"], ["mul"]])

    def c(x):
        return b(x) + 1

    d = disable(c, recursive=False, reason="a test")
    check(lambda x: d(x * 2) * 3, X, ops=[["mul"], ["sin"], ["mul"]])


def test_backend_errors_name_the_backend():
    def broken(gm, example_inputs):
        raise ZeroDivisionError("no")

    with pytest.raises(exc.BackendCompilerFailed, match="'broken' raised:\nZeroDivisionError: no"):
        compile(lambda x: x + 1, backend=broken)(X)
    with config.patch(suppress_errors=True):
        assert torch.equal(compile(lambda x: x + 1, backend=broken)(X), X + 1)


def test_generated_and_library_frames_are_left_alone():
    import json

    def f(x):
        json.dumps({"a": [1, 2]})
        return x + 1

    g = check(f, X)
    assert g.names() == [["add"]]


def test_a_disabled_function_left_behind_is_mentioned_once():
    @disable
    def left_behind(x):
        return x + 1

    c = compile(lambda x: left_behind(x) * 2, backend="eager")
    with pytest.warns(UserWarning, match="left_behind.*test_breaks.py.*disable") as seen:
        c(X)
        c(X[:2])
    assert len(seen) == 1


def test_fullgraph_never_runs_a_frame_plainly_in_silence():
    def f(x):
        exec("pass")
        return x + 1

    assert torch.equal(compile(f, backend="eager")(X), X + 1)
    with pytest.raises(exc.Unsupported, match=r"exec\(\)"):
        compile(f, backend="eager", fullgraph=True)(X)
    assert compile(lambda n: n + 1, backend="eager", fullgraph=True)(1) == 2


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@torch._dynamo.config.patch(native_loops=False)
def test_a_recursion_that_branches_runs_plainly(monkeypatch):
    """Its calls are 1.6 times as many with each level: no trace inlines all of them."""
    monkeypatch.setattr(inline_frame, "MAX_RECURSIVE_CALLS", 50)
    assert torch.compile(fibonacci, backend="eager")(15) == 610
    g = torch.compile(lambda x: x * fibonacci(15) + 1, backend="eager")
    assert torch.equal(g(torch.ones(2)), torch.full((2,), 611.0))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="more than 50 recursive calls"):
        torch.compile(fibonacci, backend="eager", fullgraph=True)(15)


def _asks(x):
    y = x * 2

    if y > 1:
        return 1
    return 0


def _asks_again(x):
    y = x * 2
    z = y > 0 and x
    return z


def _asserts(x):
    y = x + 1
    while y:
        y = y - 1
    return y


@pytest.mark.parametrize("f", [_asks, _asks_again, _asserts])
@pytest.mark.parametrize("make", [np.arange, torch.arange])
def test_an_ambiguous_truth_is_at_its_line(f, make):
    lines = []
    for call in (f, torch.compile(f, backend="eager")):
        with pytest.raises((ValueError, RuntimeError), match="ambiguous") as raised:
            call(make(3))
        lines.append([e.lineno for e in raised.traceback if e.name == f.__name__])
    assert lines[0] == lines[1]


def squares_by_hand(n):
    s = 0
    for i in map(int, range(n)):
        s += i * i % 7
    return s


@pytest.mark.parametrize("n, captures", [(10, 8), (2_000, 4), (40_000, 1)])
def test_a_long_trace_without_a_tensor_isnt_made_again_and_again(n, captures):
    f, before = torch.compile(squares_by_hand, backend="eager"), torch._dynamo.utils.counters["frames"]["total"]
    for _ in range(12):
        assert f(n) == squares_by_hand(n)
    assert torch._dynamo.utils.counters["frames"]["total"] - before <= captures


def test_a_long_table_in_front_of_tensors_is_still_captured():
    def table(x):
        return x * squares_by_hand(30_000)

    graphs = Graphs()
    assert torch.equal(torch.compile(table, backend=graphs)(X), table(X))
    assert len(graphs.gms) == 1
