"""``torch.jit`` as programs use it: script, trace, save, load and call, here and in a process that lacks the program's classes."""

import copy
import io
import pickle
import subprocess
import sys

import pytest

import flambeau as torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x, times: int = 1):
        return self.body(x) * times + self.shift

    @torch.jit.export
    def doubled(self, x):
        return x * 2


X = torch.arange(12.0).view(4, 3)


def saved(f, **kw):
    file = io.BytesIO()
    torch.jit.save(f, file, **kw)
    file.seek(0)
    return file


def test_scripted_modules_stay_modules():
    m = Net()
    s = torch.jit.script(m)
    assert s is m and isinstance(s, torch.jit.ScriptModule) and not isinstance(Net(), torch.jit.ScriptModule)
    assert not isinstance(s, torch.jit.ScriptFunction) and s.original_name == "Net" and "times" in s.code
    for other in (copy.deepcopy(s), pickle.loads(pickle.dumps(s)), torch.jit.load(saved(s))):
        assert torch.equal(other(X, times=2), m(X, 2)) and torch.equal(other.doubled(X), X * 2)
        assert other.save.args[0] is other and isinstance(other, torch.jit.ScriptModule)


def scaled(x, n: int):
    return x * n if n > 2 else x


def test_scripted_functions(tmp_path):
    f = torch.jit.script(scaled)
    assert f is scaled and isinstance(f, torch.jit.ScriptFunction) and "n > 2" in f.code
    f.save(tmp_path / "f.pt")
    assert torch.equal(torch.jit.load(tmp_path / "f.pt")(X, 3), X * 3)


def test_traced_modules_keep_names():
    m = Net()
    t = torch.jit.trace(m, X)
    assert isinstance(t, torch.jit.ScriptModule) and t.original_name == "Net" and "forward" in t.code
    assert list(t.state_dict()) == list(m.state_dict()) and t.body[0].weight is m.body[0].weight and len(t.body) == 2
    assert torch.equal(t(X[:1]), m(X[:1])) and torch.equal(t(x=X), m(X))
    t(X).sum().backward()
    assert m.body[0].weight.grad is not None
    other = Net()
    t.load_state_dict(other.state_dict())
    torch.testing.assert_close(t(X), other(X))
    assert copy.deepcopy(t).to(torch.float64)(X.double()).dtype is torch.float64
    torch.testing.assert_close(torch.compile(t, backend="aot_eager", fullgraph=True)(X), t(X))
    with pytest.raises(RuntimeError, match="Sequential.forward wasn't traced"):
        t.body(X)


def test_a_trace_needs_no_classes(tmp_path):
    m = Net()
    torch.jit.trace(m, X).save(str(tmp_path / "t.pt"))
    torch.save([X, m(X)], tmp_path / "x.pt")
    program = "import flambeau as torch, sys; t = torch.jit.load(sys.argv[1]); x, y = torch.load(sys.argv[2]); assert torch.equal(t(x), y)"
    subprocess.run([sys.executable, "-c", program, tmp_path / "t.pt", tmp_path / "x.pt"], check=True)


CALLS = {
    "same twice": (lambda a, b: a + b * 2, (X, X), (X, X + 1)),
    "tuple": (lambda p: p[0] + p[1], ((X, X + 1),), ((X, X),)),
    "dict": (lambda d: d["a"] + 1, ({"a": X},), ({"a": X + 1},)),
    "several": (lambda a, b: (a + b, [a, b]), (X, X + 1), (X, X)),
}


@pytest.mark.parametrize("name", CALLS)
def test_traced_functions(name):
    f, example, given = CALLS[name]
    t = torch.jit.trace(f, example)
    assert isinstance(t, torch.jit.ScriptFunction) and not isinstance(t, torch.nn.Module)
    for made in (t, torch.jit.load(saved(t))):
        torch.testing.assert_close(made(*given), f(*given))


def test_traces_by_keyword_and_of_methods():
    m = Net()
    assert torch.equal(torch.jit.trace(m, example_kwarg_inputs={"x": X})(x=X + 1), m(X + 1))
    t = torch.jit.trace_module(m, {"forward": X, "doubled": X})
    assert torch.equal(t.doubled(X + 1), X * 2 + 2) and torch.equal(t.forward(X), m(X))
    assert torch.equal(torch.jit.load(saved(t)).doubled(X), X * 2)


def test_extra_files():
    file = saved(torch.jit.script(Net()), _extra_files={"a.txt": "text", "b": b"\0"})
    found = {"a.txt": "", "b": "", "missing": ""}
    torch.jit.load(file, _extra_files=found)
    assert found == {"a.txt": b"text", "b": b"\0", "missing": ""}


WRONG = {
    "dict": (lambda: torch.jit.trace(lambda x: {"k": x}, X), RuntimeError, "Encountering a dict at the output of the tracer"),
    "plain": (lambda: torch.jit.freeze(Net().eval()), RuntimeError, "Freezing expects a ScriptModule as input"),
    "training": (lambda: torch.jit.freeze(torch.jit.script(Net())), RuntimeError, "only implemented for modules in eval mode"),
    "number": (lambda: torch.jit.script(3), TypeError, "is a built-in class"),
    "missing": (lambda: torch.jit.load("/nowhere/m.pt"), ValueError, "The provided filename /nowhere/m.pt does not exist"),
    "garbage": (lambda: torch.jit.load(io.BytesIO(b"abc")), RuntimeError, "no file that torch.jit.save made"),
    "nothing": (lambda: torch.jit.trace(scaled), ValueError, "example_inputs is needed"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    run, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        run()


def test_a_dict_without_strict():
    assert torch.equal(torch.jit.trace(lambda x: {"k": x + 1}, X, strict=False)(X)["k"], X + 1)
    frozen = torch.jit.freeze(torch.jit.trace(Net().eval(), X))
    assert isinstance(frozen, torch.jit.ScriptModule)


class Own(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    @torch.jit.script_method
    def forward(self, x):
        return x * self.w


def test_a_script_module_of_the_programs():
    assert isinstance(Own(), torch.jit.ScriptModule) and torch.equal(Own()(X), X)


def test_traces_under_autocast():
    """As PyTorch's: what is traced is cast where it is called."""
    module, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Softmax(-1)), torch.ones(2, 4)
    traced, function = torch.jit.trace(module, x), torch.jit.trace(lambda x: x @ x.mT, x)
    with torch.autocast("cpu", torch.bfloat16):
        assert traced(x).dtype is module(x).dtype is torch.bfloat16
        assert traced[0].weight.dtype is torch.float32
        assert torch.equal(traced(x), module(x))
        assert function(x).dtype is torch.bfloat16
    assert function(x).dtype is torch.float32
