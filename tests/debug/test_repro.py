"""Scripts for failures: written at each level, made smaller, and really failing when they are run."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import flambeau as torch
from flambeau.debug import minify as minifier
from flambeau.debug import scripts
from flambeau.debug.compare import AccuracyError, difference
from flambeau.debug.verify import first_difference
from flambeau.proxy import make_fx

PROGRAM = """
    import flambeau as torch
    import flambeau._inductor.config as c
    c.cpp.inject_relu_bug_TESTING_ONLY = "{bug}"
    linear = torch.nn.Linear(4, 4)
    @torch.compile
    def f(x):
        a, b = torch.cos(linear(x)).split(2, 1)
        return torch.exp(torch.relu(a - b)) * 2
    f(torch.randn(3, 4))
"""


def run(folder, script, **env):
    env = {**os.environ, "TORCH_COMPILE_DEBUG_DIR": str(folder), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", **env}
    return subprocess.run([sys.executable, str(script)], cwd=folder, env=env, capture_output=True, text=True)


# Each level and each place; level 2 does what level 1 does and starts the minifier as level 4 does.
@pytest.mark.parametrize(
    "level, bug, after",
    [
        (1, "compile_error", "aot"),
        pytest.param(1, "compile_error", "dynamo", marks=pytest.mark.slow),
        pytest.param(2, "compile_error", "aot", marks=pytest.mark.slow),
        (2, "compile_error", "dynamo"),
        (4, "accuracy", "aot"),
        (4, "accuracy", "dynamo"),
    ],
)
def test_a_failure_leaves_a_script_that_fails_alone(tmp_path, level, bug, after):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM.format(bug=bug)))
    done = run(tmp_path, program, TORCHDYNAMO_REPRO_AFTER=after, TORCHDYNAMO_REPRO_LEVEL=str(level))
    assert done.returncode == 1
    if level > 1:
        (launcher,) = tmp_path.rglob("minifier_launcher.py")
        assert str(launcher) in done.stderr
        made = run(tmp_path, launcher)
        assert made.returncode == 0, made.stderr
    (repro,) = tmp_path.rglob("repro.py")
    forward = repro.read_text().split("def forward")[1].split("return")[0]
    assert "relu" in forward
    if level > 1:
        assert not any(name in forward for name in ("cos", "exp", "linear", "split", "addmm"))
    alone = run(tmp_path, repro)
    assert alone.returncode == 1
    assert ("injected" if bug == "compile_error" else "AccuracyError") in alone.stderr
    repro.write_text(repro.read_text().replace(repr(bug), "None"))
    assert run(tmp_path, repro).returncode == 0


def test_level_3_writes_before_compiling(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM.replace('"{bug}"', "None")))
    done = run(tmp_path, program, TORCHDYNAMO_REPRO_AFTER="aot", TORCHDYNAMO_REPRO_LEVEL="3")
    assert done.returncode == 0, done.stderr
    (launcher,) = tmp_path.rglob("minifier_launcher.py")
    assert "nothing fails" in run(tmp_path, launcher).stdout


def test_minify_keeps_only_the_operators_that_matter():
    def f(x, y):
        a, b = torch.ops.aten.split.Tensor(torch.sin(x), 2, 1)
        c = torch.exp(a) @ torch.tanh(b)
        return torch.relu(c) + y, y * 3

    gm = make_fx(f, tracing_mode="fake")(torch.ones(2, 4), torch.ones(2, 2))

    def fails(candidate, inputs):
        candidate.forward(*inputs)
        names = [n.name for n in candidate.graph.nodes if n.op == "call_function"]
        return "mm" in names and "tanh" in names

    small, inputs = minifier.minify(gm, [torch.ones(2, 4), torch.ones(2, 2)], fails)
    assert [n.name for n in small.graph.nodes if n.op == "call_function"] == ["tanh", "mm"]
    assert fails(small, inputs)
    with pytest.raises(RuntimeError, match="does not fail"):
        minifier.minify(gm, [torch.ones(2, 4), torch.ones(2, 2)], lambda gm, inputs: False)


@pytest.mark.parametrize("n, at", [(1, 0), (7, 0), (7, 3), (7, 6), (7, None), (0, None)])
def test_first(n, at):
    assert minifier.first(list(range(n)), lambda k: at is not None and k >= at) == at


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_script_tensors_keep_layout_and_bits(dtype):
    t = torch.from_numpy(np.arange(24).reshape(4, 6) % 5).to(getattr(torch, dtype)).t()[::2]
    shape, stride = list(t.shape), list(t.stride())
    back = scripts.tensor(shape, stride, t.dtype, scripts._bytes(t))
    assert back.dtype is t.dtype and list(back.stride()) == stride and torch.equal(back, t)
    made = scripts.tensor(shape, stride, t.dtype)
    assert list(made.shape) == shape and torch.equal(made, scripts.tensor(shape, stride, t.dtype))


@pytest.mark.parametrize(
    "got, want, agree",
    [
        ([1.0, float("nan")], [1.0, float("nan")], True),
        ([1.0, 2.0], [1.0, 2.001], True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([1.0, float("inf")], [1.0, 2.0], False),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 3], False),
    ],
)
def test_difference(got, want, agree):
    assert (difference([torch.tensor(got)], [torch.tensor(want)]) is None) == agree


def test_the_float64_result_judges():
    exact = torch.tensor([1.0, 2.0], dtype=torch.float64)
    plain, compiled = torch.tensor([1.01, 2.0]), torch.tensor([0.99, 2.0])
    assert difference([compiled], [plain]) is not None
    assert difference([compiled], [plain], [exact]) is None


def test_verify_names_the_operator():
    linear = torch.nn.Linear(4, 4)

    @torch.compile(verify=True)
    def f(x):
        return torch.exp(torch.relu(torch.cos(linear(x)) - 0.5)) * 2

    x = torch.randn(3, 4)
    f(x).sum().backward()
    torch._dynamo.reset()
    with torch._inductor.config.patch("cpp.inject_relu_bug_TESTING_ONLY", "accuracy"):
        with pytest.raises(AccuracyError, match="first operator that differs is .*relu"):
            f(x)


def test_verify_sees_random_numbers_and_writes():
    @torch.compile(verify=True, backend="eager")
    def f(x):
        x.add_(1)
        return x * torch.rand(3)

    torch.manual_seed(0)
    got = f(torch.zeros(3)), torch.rand(1)
    torch.manual_seed(0)
    want = torch.rand(3), torch.rand(1)
    assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])

    def forgets_to_write(gm, inputs):
        return lambda *args: gm.forward(*(a.clone() for a in args))

    g = torch.compile(lambda x: x.add_(1) * 2, verify=True, backend=forgets_to_write)
    with pytest.raises(AccuracyError, match="written into the inputs"):
        g(torch.zeros(3))


def test_first_difference_is_none_for_a_right_compiler():
    gm = make_fx(lambda x: torch.sin(x) * 2, tracing_mode="fake")(torch.ones(3))
    assert first_difference(gm, [torch.ones(3)], lambda gm, inputs: gm.forward) is None
