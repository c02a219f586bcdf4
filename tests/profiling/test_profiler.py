"""torch.profiler records what runs: operators, backward passes, compiled graphs and their kernels; schedules, stacks, files."""

import gc
import gzip
import json
import threading

import numpy as np
import pytest
from flambeau.autograd.profiler import profile as autograd_profile
from flambeau.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)

import flambeau as torch
from flambeau import nn

X, W = torch.randn(8, 16), torch.randn(16, 4, requires_grad=True)


def softmax_sum(x, w):
    scores = x @ w
    scores = scores + 1
    return torch.softmax(scores, -1).square().sum()


FIRST = softmax_sum.__code__.co_firstlineno


def names(prof):
    return [e.name for e in prof.events()]


def by_name(prof, name):
    return next(e for e in prof.events() if e.name == name)


def test_eager_calls_and_backward_are_a_tree():
    with profile() as prof:
        softmax_sum(X, W).backward()
    found = names(prof)
    assert found.count("aten::matmul") == 1 and "MmBackward0" in found and "torch::autograd::AccumulateGrad" in found
    matmul = by_name(prof, "aten::matmul")
    assert [c.name for c in matmul.cpu_children] == ["aten::mm"] and matmul.cpu_children[0].cpu_parent is matmul
    for e in prof.events():
        inside = sum(c.cpu_time_total for c in e.cpu_children)
        assert (
            e.self_cpu_time_total == pytest.approx(e.cpu_time_total - inside, abs=1e-6) and e.cpu_time_total >= inside
        )
        assert all(
            e.time_range.start <= c.time_range.start <= c.time_range.end <= e.time_range.end for c in e.cpu_children
        )


def test_each_call_is_recorded_once_however_it_is_dispatched():
    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        (x * 2).add_(1)
    assert names(prof) == ["aten::mul", "aten::add_"]


def test_compiled_code_runs_compiled_and_shows_its_kernels():
    compiled = torch.compile(softmax_sum)
    compiled(X, W).backward()
    with profile() as prof:
        compiled(X, W).backward()
    found = names(prof)
    assert "compiled softmax_sum" in found and "compiled softmax_sum backward" in found
    assert "CompiledFunctionBackward" in found and "aten::_softmax" not in found and "aten::mm" not in found
    kernels = [e for e in prof.events() if e.category == "kernel"]
    assert {e.cpu_parent.name for e in kernels} == {"compiled softmax_sum", "compiled softmax_sum backward"}
    product = next(e for e in kernels if e.cpu_parent.name == "compiled softmax_sum" and e.name == "product: mm")
    assert [(line.number, line.function) for line in product.lines] == [(FIRST + 1, "softmax_sum")]
    assert product.note.flops == 2 * 8 * 16 * 4 and product.bytes == 4 * (8 * 16 + 16 * 4 + 8 * 4)
    lines = {line.number - FIRST for e in kernels if "backward" in e.cpu_parent.name for line in e.lines}
    assert lines == {1, 3}  # the derivative of an addition is no kernel


def test_the_lines_of_a_graph_from_disk_follow_the_file(tmp_path):
    from flambeau.inductor.ir.notes import Line

    file = tmp_path / "moved.py"
    file.write_text("# one\n# two\ny = x.exp()\n")
    assert Line(str(file), 1, "f", "y = x.exp()").now() == 3 and Line(str(file), 1, "f", "y = x.sin()").now() == 0


def test_compiling_is_a_range():
    torch._dynamo.reset()
    with profile() as prof:
        torch.compile(lambda x: x.exp() + 1)(X)
    compiling = by_name(prof, "compile <lambda>")
    assert compiling.is_user_annotation and compiling.cpu_time_total > 100
    assert "aten::exp" not in names(prof)  # what is traced is not run


def test_native_loops_have_a_name():
    @torch.compile
    def total(a):
        s = 0.0
        for i in range(len(a)):
            s += a[i] * a[i]
        return s

    a = np.arange(1000.0)
    total(a)
    with profile() as prof:
        total(a)
    assert any(e.category == "native_loop" and e.name.startswith("native loop") for e in prof.events())


def test_shapes_and_flops():
    with profile(record_shapes=True, with_flops=True) as prof:
        torch.mm(X, torch.ones(16, 4))
        torch.nn.functional.linear(X, torch.ones(3, 16), torch.ones(3))
        torch.cat([X, X])
    mm = by_name(prof, "aten::mm")
    assert mm.input_shapes == [[8, 16], [16, 4]] and mm.input_dtypes == ["float32", "float32"]
    assert (
        by_name(prof, "aten::cat").input_shapes[0] == [[8, 16], [8, 16]]
        and by_name(prof, "aten::cat").concrete_inputs[1] == 0
    )
    assert mm.flops == 2 * 8 * 16 * 4
    assert (
        prof.events().total_average().flops == 2 * 8 * 16 * 4 + 2 * 8 * 16 * 3
    )  # a whole and its part are counted once


def test_memory():
    gc.disable()  # garbage of other tests that is collected meanwhile would be counted
    try:
        with profile(profile_memory=True) as prof:
            big = torch.empty(1 << 20)
            del big
            kept = torch.ones(1 << 18)
    finally:
        gc.enable()
    assert by_name(prof, "aten::empty").self_cpu_memory_usage == 4 << 20
    assert by_name(prof, "aten::ones").cpu_memory_usage == kept.nbytes


def test_stacks_and_their_file(tmp_path):
    def inner(x):
        return x.exp()

    with profile(with_stack=True) as prof:
        for _ in range(50):
            inner(W).sum().backward()
    exp = by_name(prof, "aten::exp")
    assert exp.stack[0].endswith("): inner") and exp.stack[1].endswith("): test_stacks_and_their_file")
    assert by_name(prof, "ExpBackward0").stack == exp.stack  # where the forward call stands
    prof.export_stacks(tmp_path / "stacks.txt")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert any(line.rpartition(" ")[0].endswith(":_inner") and int(line.rpartition(" ")[2]) > 0 for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "stacks.txt", "count")


def test_averages():
    with profile(record_shapes=True) as prof:
        for n in (4, 4, 9):
            torch.ones(n).exp()
    (exp,) = [e for e in prof.key_averages() if e.key == "aten::exp"]
    assert exp.count == 3 and exp.cpu_time == pytest.approx(exp.cpu_time_total / 3)
    by_shape = {
        str(e.input_shapes): e.count for e in prof.key_averages(group_by_input_shape=True) if e.key == "aten::exp"
    }
    assert by_shape == {"[[4]]": 2, "[[9]]": 1}
    table = prof.key_averages().table(sort_by="count", row_limit=1)
    assert (
        "# of Calls" in table and "Input Shapes" in table and "1 more rows" in table and "Self CPU time total" in table
    )


def test_group_by_stack():
    def one():
        return torch.ones(3).exp()

    def two():
        return torch.ones(3).exp()

    with profile(with_stack=True) as prof:
        one(), two(), two()
    counts = sorted(e.count for e in prof.key_averages(group_by_stack_n=1) if e.key == "aten::exp")
    assert counts == [1, 2]


def test_schedule_and_steps(tmp_path):
    seen = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    actions = [plan(i) for i in range(9)]
    N, V, R, S = ProfilerAction
    assert actions == [N, V, R, S, N, V, R, S, N]
    with profile(schedule=plan, on_trace_ready=lambda p: seen.append((p.step_num, names(p)))) as prof:
        for _ in range(9):
            torch.ones(2).exp()
            prof.step()
    one = ["aten::ones", "aten::exp"]
    assert seen == [
        (4, ["ProfilerStep#2", *one, "ProfilerStep#3", *one]),
        (8, ["ProfilerStep#6", *one, "ProfilerStep#7", *one]),
    ]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_chrome_trace(tmp_path, name):
    def other():
        with record_function("elsewhere"):
            torch.ones(3).exp()

    compiled = torch.compile(softmax_sum)
    compiled(X, W)
    with profile(record_shapes=True) as prof:
        softmax_sum(X, W).backward()
        compiled(X, W)
        thread = threading.Thread(target=other, name="second")
        thread.start()
        thread.join()
    prof.add_metadata("note", "a text")
    path = tmp_path / name
    prof.export_chrome_trace(str(path))
    data = json.loads(gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_text())
    events = [e for e in data["traceEvents"] if e["ph"] == "X"]
    assert data["note"] == "a text" and {"cpu_op", "autograd", "compiled_graph", "kernel", "user_annotation"} == {
        e["cat"] for e in events
    }
    assert len({e["tid"] for e in events}) == 2
    starts = [e for e in data["traceEvents"] if e["ph"] == "s"]
    assert starts and len(starts) == sum(e["ph"] == "f" for e in data["traceEvents"])
    mm = next(e for e in events if e["name"] == "aten::mm")
    assert mm["args"]["Input Dims"] == [[8, 16], [16, 4]] and mm["dur"] > 0
    kernel = next(e for e in events if e["cat"] == "kernel")
    assert kernel["args"]["Bytes moved"] > 0 and "softmax_sum" in kernel["args"]["Call stack"]


def test_trace_handler(tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "w")):
        torch.ones(3)
    (file,) = (tmp_path / "log").iterdir()
    assert file.name.startswith("w.") and file.name.endswith(".pt.trace.json")


def test_record_function_is_a_decorator_that_may_recurse():
    @record_function("f")
    def f(n):
        return n if n == 0 else f(n - 1)

    with profile() as prof:
        f(2)
    assert names(prof) == ["f"] * 3 and prof.key_averages()[0].cpu_time_total < 3 * prof.events()[0].cpu_time_total


def test_autograd_profiler():
    with autograd_profile(record_shapes=True) as prof:
        X.exp()
    assert [e.key for e in prof.function_events] == ["aten::exp"] and "aten::exp" in prof.table(
        sort_by="cpu_time_total"
    )
    with autograd_profile(enabled=False) as nothing:
        X.exp()
    assert nothing is None


def test_an_exception_ends_the_recording():
    with pytest.raises(ZeroDivisionError), profile() as prof:
        with record_function("block"):
            torch.mm(X, X.t())
            raise ZeroDivisionError
    assert names(prof)[0] == "block"
    with profile() as again:
        X.exp()
    assert names(again) == ["aten::exp"]


REFUSED = [
    (lambda: profile(with_modules=True), NotImplementedError, "with_modules=True"),
    (lambda: profile(experimental_config=object()), NotImplementedError, "experimental_config"),
    (lambda: profile(execution_trace_observer=object()), NotImplementedError, "execution_trace_observer"),
    (lambda: autograd_profile(use_cuda=True), NotImplementedError, "use_cuda=True"),
    (lambda: profile().events(), RuntimeError, "didn't finish"),
    (lambda: profile().export_stacks("x"), RuntimeError, "with_stack=True"),
    (lambda: profile().export_memory_timeline("x"), NotImplementedError, "memory_timeline"),
    (lambda: schedule(wait=1, warmup=1, active=0), AssertionError, "active=0 .need > 0"),
]


@pytest.mark.parametrize("make, error, text", REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_refuses(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_other_activities():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.raises(ValueError, match="No valid profiler activities"), pytest.warns(UserWarning):
        profile(activities=[ProfilerActivity.CUDA])


def test_two_at_once():
    with profile(), pytest.raises(RuntimeError, match="already enabled"), profile():
        pass
    with profile() as prof:
        X.exp()
    with pytest.raises(ValueError, match="should be one of"):
        prof.key_averages().table(sort_by="age")
    assert "aten::exp" in prof.key_averages().table(sort_by="cuda_time_total")  # nothing took time of a device


def test_modules_run_as_they_do_without():
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    x = torch.randn(5, 4)
    want = model(x)
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True):
        assert torch.equal(model(x), want) and torch.allclose(torch.compile(model)(x), want, atol=1e-6)


def _of_numpy(x, n):
    y = np.zeros(n)
    for i in range(1, n):
        y[i] = 0.5 * y[i - 1] + x[i]
    return np.sum(np.histogram(y, bins=5)[0])


def test_no_time_is_counted_twice():
    """What a step of compiled code runs, a function of NumPy or a native loop, is within the step: the graph's own time isn't below zero."""
    compiled, x = torch.compile(_of_numpy), np.random.default_rng(0).random(3000)
    compiled(x, 3000)
    with profile() as prof:
        for _ in range(3):
            compiled(x, 3000)
    events = prof.events()
    assert all(e.self_cpu_time_total >= 0 for e in events)
    for e in events:
        if e.cpu_parent is not None:
            outer, inner = e.cpu_parent.time_range, e.time_range
            assert outer.start <= inner.start and inner.end <= outer.end
            assert events.index(e.cpu_parent) < events.index(e)
    within = {e.name.split(" (")[0]: e.cpu_parent.name for e in events if e.cpu_parent is not None}
    assert "call: numpy::call" in within
    assert within["native loop _of_numpy"] == "call: flambeau::loop"
    total = sum(e.self_cpu_time_total for e in events)
    assert total == pytest.approx(sum(e.cpu_time_total for e in events if e.cpu_parent is None))
