"""TorchScript archives that PyTorch wrote (``archives/``, made by ``script_archives.py``): loaded, run, trained, compiled, copied and written again."""

import copy
import enum
import io
import pickle
import random
import zipfile
from pathlib import Path

import pytest

import flambeau as torch

FOLDER = Path(__file__).parent / "archives"
NAMES = sorted(path.stem for path in FOLDER.glob("*.pt"))


def plain(value):
    """A result as files hold it."""
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value)) if not hasattr(value, "_fields") else tuple(map(plain, value))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, torch.device):
        return str(value)
    return value.name if isinstance(value, enum.Enum) else value


def loaded(name, **kw):
    extra = {"calls": ""}
    module = torch.jit.load(FOLDER / f"{name}.pt", _extra_files=extra, **kw)
    return module, torch.load(io.BytesIO(extra["calls"]), weights_only=False)


def same(found, expected, path="result"):
    """Equal containers, numbers and text; tensors within rounding, of equal dtype."""
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-4, atol=1e-5)
    elif isinstance(expected, tuple | list | dict):
        assert type(found) is type(expected) and len(found) == len(expected), path
        keys = expected if isinstance(expected, dict) else range(len(expected))
        for k in keys:
            same(found[k], expected[k], f"{path}[{k!r}]")
    else:
        assert type(found) is type(expected) and (found == expected or expected != expected), (
            f"{path}: {found!r}, expected {expected!r}"
        )


def check(module, calls, call=None):
    for method, args, expected in calls:
        torch.manual_seed(1)
        with torch.no_grad():
            found = getattr(module, method)(*args) if call is None or method != "forward" else call(*args)
        same(plain(found), expected)


@pytest.mark.parametrize("name", NAMES)
def test_results(name):
    check(*loaded(name))


# Their data say how often a loop runs, or are asked for as numbers.
BY_DATA = {"language", "detector", "packed", "codes_sequences"}


@pytest.mark.parametrize("name", [n for n in NAMES if n not in BY_DATA])
def test_captured_without_a_break(name):
    module, calls = loaded(name)
    check(module, calls, torch.compile(module, backend="eager", fullgraph=True))


@pytest.mark.parametrize(
    "name", ["conv_scripted", "encoder_traced", "lstm", "sizes", "detector", "codes_frozen", "codes_linear"]
)
def test_compiled(name):
    module, calls = loaded(name)
    check(module, calls, torch.compile(module))


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_written_again(name):
    module, calls = loaded(name)
    file = io.BytesIO()
    torch.jit.save(copy.deepcopy(module), file)
    file.seek(0)
    again = torch.jit.load(file)
    assert list(again.state_dict()) == list(module.state_dict()) and [n for n, _ in again.named_modules()] == [
        n for n, _ in module.named_modules()
    ]
    for own in (again, copy.deepcopy(module)):
        check(own, copy.deepcopy(calls))


def gradients(module, *args):
    for p in module.parameters():
        p.grad = None
    out = module(*args)
    (out[0] if isinstance(out, tuple) else out).square().mean().backward()
    return {n: p.grad for n, p in module.named_parameters()}


TRAINED = [
    "conv_training",
    "mlp_scripted",
    "attention",
    "encoder_traced",
    "lstm",
    "gru_traced",
    "tied",
    "norms",
    "deconv",
]


@pytest.mark.parametrize("name", TRAINED)
def test_trained(name):
    module, calls = loaded(name)
    args = calls[0][1]
    plainly = gradients(module, *args)
    assert plainly and all(g is not None for g in plainly.values())
    for k, g in gradients(torch.compile(module, backend="aot_eager", fullgraph=True), *args).items():
        torch.testing.assert_close(g, plainly[k.removeprefix("_orig_mod.")], rtol=1e-4, atol=1e-5)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        out = module(*args)
        loss = (out[0] if isinstance(out, tuple) else out).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0]


def changed(name, record, old, new):
    """An archive with other bytes in one of its records."""
    out = io.BytesIO()
    with zipfile.ZipFile(FOLDER / f"{name}.pt") as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.namelist():
            data = source.read(entry)
            if entry.partition("/")[2] == record:
                assert old in data, (entry, data)
                data = data.replace(old, new, 1)
            target.writestr(entry, data)
    out.seek(0)
    return out


FUNCTION = "code/__torch__.py"
BODY = b"    return _1"
# Code: what stands in the place of the last line of `function`, and what is said about it.
CODE = {
    "an import": (b"    import os\n    return x", "Import isn't TorchScript"),
    "an operator that nobody has": (b"    return torch.no_such_thing(x)", "Unknown builtin op: aten::no_such_thing"),
    "an operator of a library": (b"    return ops.torchvision.nms(x, x, 0.5)", "Unknown builtin op: torchvision::nms"),
    "a builtin": (b"    return eval(\"1\")", "undefined function eval"),
    "another builtin": (b"    return __import__(\"os\")", "the name __import__ isn't one of TorchScript's"),
    "a name": (b"    return nothing", "undefined value nothing"),
    "an attribute of a tensor": (b"    return x.__class__", "nonexistent attribute or method '__class__' of type 'Tensor'"),
    "a method of a tensor": (b"    return (x).numpy()", "nonexistent attribute or method 'numpy' of type 'Tensor'"),
    "an attribute of the module": (b"    return self.__dict__", "nonexistent attribute or method '__dict__'"),
    "a deeper module": (b"    return torch.utils.data.x(x)", "isn't|undefined value torch"),
    "a lambda": (b"    return (lambda: x)()", "Lambda isn't TorchScript"),
    "a comprehension": (b"    return [y for y in x]", "ListComp isn't TorchScript"),
    "a global": (b"    global x\n    return x", "Global isn't TorchScript|can't be parsed"),
    "text that is no code": (b"    return (", "the code can't be parsed"),
    "arguments that don't fit": (b"    return torch.relu(x, \"a\")", "Arguments for call are not valid"),
    "a condition": (b"    if \"a\":\n      pass\n    else:\n      pass\n    return x", "Expected a boolean expression"),
    "a type": (b"    return annotate(Something, x)", "Unknown type name 'Something'"),
    "a constant": (b"    return CONSTANTS.c7", "CONSTANTS has no c7"),
    "a loop over a tensor": (b"    for y in x:\n      pass\n    return x", "TorchScript counts by range"),
    "a name of the compiler": (b"    return _ts_add_1(x, x)", "the name _ts_add_1 isn't one of TorchScript's"),
    "a class that isn't there": (b"    return __torch__.Nothing.__new__(__torch__.Nothing)", "Unknown type name '__torch__.Nothing'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CODE)
def test_code_outside_of_the_grammar(name):
    new, text = CODE[name]
    with pytest.raises(RuntimeError, match=text) as caught:
        torch.jit.load(changed("function", FUNCTION, BODY, new))
    assert "code/__torch__.py" in str(caught.value)


def test_an_operator_that_only_pytorch_has():
    module = torch.jit.load(
        changed("function", FUNCTION, BODY, b"    return torch._nnpack_spatial_convolution(x, x, None, [1])")
    )
    with pytest.raises(
        NotImplementedError,
        match=r"aten::_nnpack_spatial_convolution .* \(code/__torch__.py, class PlaceholderModule, method forward",
    ):
        module(torch.ones(2), 2, False)


CLASSES = {
    "a base": (
        b"class PlaceholderModule(Module)",
        b"class PlaceholderModule(object)",
        "the base object isn't one of TorchScript's",
    ),
    "a decorator": (b"  def forward", b"  @x\n  def forward", "a decorator isn't TorchScript"),
    "an attribute": (
        b"  training : bool",
        b"  training : bool\n  more : int",
        "declares the attribute more, which its data doesn't have",
    ),
    "another type": (b"  training : bool", b"  training : str", "training is declared str, and its data is a bool"),
    "a statement": (b"class PlaceholderModule", b"x = 1\nclass PlaceholderModule", "Assign outside of a class"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_outside_of_the_grammar(name):
    old, new, text = CLASSES[name]
    with pytest.raises(RuntimeError, match=text):
        torch.jit.load(changed("function", FUNCTION, old, new))


# What PyTorch has and isn't built: what stands in the place of a line of `function`, and what is said.
UNBUILT = {
    "hooks": (
        b"  training : bool",
        b"  __forward_hooks__ = ['_hook', ]\n  training : bool",
        "scripted hooks aren't built",
    ),
    "a dtype": (
        BODY,
        b"    return torch.zeros([1], dtype=8)",
        r"dtype number 8 \(complex32\), which flambeau doesn't have",
    ),
}


@pytest.mark.parametrize("name", UNBUILT)
def test_what_is_not_built(name):
    old, new, text = UNBUILT[name]
    with pytest.raises(NotImplementedError, match=text):
        torch.jit.load(changed("function", FUNCTION, old, new))(torch.ones(2), 2, False)


def test_files_that_are_no_archives(tmp_path):
    whole = (FOLDER / "conv_scripted.pt").read_bytes()
    for cut in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        with pytest.raises(RuntimeError):
            torch.jit.load(io.BytesIO(whole[:cut]))
    for record, old, new, text in (
        ("data.pkl", b"__torch__\nPlaceholderModule", b"os\nsystem", "Unsupported global"),
        ("data.pkl", b"PlaceholderModule", b"Other", "the archive has no class __torch__.Other"),
        ("data.pkl", b"__torch__\nPlaceholderModule", b"__torch__.torch.classes.quantized\nX", "a class of C\\+\\+"),
        ("version", b"3", b"99", "maximum supported version for reading is 10"),
        ("version", b"3", b"x", "the archive's version is"),
        ("constants.pkl", b"\x80\x02)", b"\x80\x02]", None),
    ):
        file = changed("function", record, old, new)
        if text is None:
            torch.jit.load(file)
            continue
        with pytest.raises((RuntimeError, NotImplementedError), match=text):
            torch.jit.load(file)
    with pytest.raises(ValueError, match="map_location must be a device or a string"):
        torch.jit.load(FOLDER / "tied.pt", map_location={})


ARGUMENTS = {
    "type": (lambda m: m(3, 3, True), "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'.\nPosition: 1\nValue: 3\nDeclaration: forward"),
    "missing": (lambda m: m(torch.ones(2)), "forward\\(\\) is missing value for argument 'n'. Declaration: forward\\(__torch__.PlaceholderModule self, Tensor x, int n, bool flag\\) -> Tensor"),
    "more": (lambda m: m(torch.ones(2), 2, True, 3), "expected at most 4 argument\\(s\\) but received 5 argument\\(s\\)"),
    "keyword": (lambda m: m(torch.ones(2), 2, flag=True, other=3), "Unknown keyword argument 'other'"),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments(name):
    call, text = ARGUMENTS[name]
    with pytest.raises(RuntimeError, match=text):
        call(loaded("function")[0])


def test_exceptions_of_the_archive():
    module, _ = loaded("voice")
    with pytest.raises(
        torch.jit.Error,
        match="Traceback of TorchScript.*\n.*in forward\nbuiltins.ValueError: Supported sampling rates: 8000, 16000",
    ):
        module(torch.ones(1, 64), 7)
    with pytest.raises(torch.jit.Error, match="Too many dimensions for input audio chunk 3"):
        torch.compile(module, backend="eager")(torch.ones(1, 1, 64), 8000)


def test_what_a_module_is_asked():
    module, calls = loaded("language")
    assert (
        isinstance(module, torch.jit.ScriptModule)
        and type(module).__name__ == "RecursiveScriptModule"
        and module.original_name == "Language"
    )
    assert (
        repr(module).startswith("RecursiveScriptModule(\n  original_name=Language\n")
        and torch.jit.script(module) is module
    )
    assert (
        module.names == {"é": 1, 'q"\n': 2}
        and module.color.name == "BLUE"
        and module.missing is None
        and module.empty == []
    )
    assert list(module.state_dict()) == ["shift", "parts.a b.weight", "parts.a b.bias"] and "relu" in module.parts
    assert module.early.code.startswith(
        "def early(self,\n    x: Tensor,\n    n: int) -> Tensor:\n  "
    ) and module.code.startswith("def forward(self,")
    assert module.early.schema == "early(__torch__.Language self, Tensor x, int n) -> Tensor"
    assert (
        module.training and not module.eval().parts.training and module.to(torch.float64).shift.dtype is torch.float64
    )
    with pytest.raises(RuntimeError, match="Tried to serialize object __torch__.Language"):
        pickle.dumps(module)
    with pytest.raises(AttributeError):
        module.nothing  # noqa: B018
    assert module.graph.findNode("prim::If") is not None


def test_weights_that_are_one_stay_one():
    tied = loaded("tied")[0]
    assert getattr(tied, "0").weight is getattr(tied, "1").weight and len(list(tied.parameters())) == 3
    lstm = loaded("lstm")[0].rnn
    assert lstm._flat_weights[0] is lstm.weight_ih_l0 and isinstance(lstm.weight_ih_l0, torch.nn.Parameter)
    assert loaded("state")[0].ready and list(loaded("state")[0].state_dict()) == ["weight"]


def test_where_tensors_go():
    module = torch.jit.load(FOLDER / "conv_scripted.pt", map_location="meta")
    assert {p.device.type for p in module.parameters()} == {"meta"}


def test_whole_numbers_divided_before_version_4():
    text = b"    return torch.div(x, 2)"
    for version, expected in ((b"3", [0, 1]), (b"4", [0.5, 1.5])):
        file = changed("function", FUNCTION, BODY, text)
        with zipfile.ZipFile(file) as source:
            held = {n: source.read(n) for n in source.namelist()}
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as target:
            for n, data in held.items():
                target.writestr(n, version if n.endswith("/version") else data)
        module = torch.jit.load(io.BytesIO(out.getvalue()))
        assert module(torch.tensor([1, 3]), 1, False).tolist() == expected


def _fuzzed(data: bytes, rng: random.Random) -> bytes:
    """Bytes with a few places changed: other bytes, pieces of the same text, or nothing."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not out:
            break
        at, n = rng.randrange(len(out)), rng.randint(0, 6)
        other = rng.randrange(len(data))
        out[at : at + n] = rng.choice((data[other : other + rng.randint(1, 12)], bytes([rng.randrange(256)]), b""))
    return bytes(out)


@pytest.mark.parametrize("name", ["function", "language", "state", "tied", "codes_frozen", "codes_lstm"])
def test_broken_archives_are_refused(name):
    """Whatever is in a record, loading is an error of the file, or gives a module."""
    rng = random.Random(name)
    with zipfile.ZipFile(FOLDER / f"{name}.pt") as source:
        held = {n: source.read(n) for n in source.namelist()}
    records = [n for n in held if n.endswith((".py", ".pkl"))]
    refused = 0
    for _ in range(40):
        record = rng.choice(records)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as target:
            for n, data in held.items():
                target.writestr(n, _fuzzed(data, rng) if n == record else data)
        try:
            assert isinstance(torch.jit.load(io.BytesIO(out.getvalue())), torch.jit.ScriptModule)
        except (RuntimeError, NotImplementedError):
            refused += 1
    assert refused > 5
