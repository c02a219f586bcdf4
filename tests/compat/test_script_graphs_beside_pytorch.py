"""Graphs of ``torch.jit`` beside PyTorch's: the operators with what they take, in order, and the text."""

import re
import warnings

import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
import scripted_functions  # noqa: E402
from test_script_archives import FOLDER, NAMES  # noqa: E402

import flambeau  # noqa: E402

SHAPE = (2, 4)
FUNCTIONS = {
    "arithmetic": lambda lib: lambda a, b: (a + b * 2.5 - 1) / (b.abs() + 1),
    "reductions": lambda lib: lambda a, b: (a.sum(dim=0, keepdim=True), b.mean(), a.amax(1), lib.softmax(a, -1)),
    "shapes": lambda lib: lambda a, b: (a.view(-1), b.transpose(0, 1), lib.cat([a, b], 1), a.unsqueeze(0), b.flatten()),
    "products": lambda lib: lambda a, b: (a @ b.t(), lib.matmul(a, b.t()), lib.nn.functional.gelu(a)),
    "several": lambda lib: lambda a, b: (a.topk(2), b.split(1)),
}
MODULES = {
    "linear": lambda nn: nn.Sequential(nn.Linear(4, 3), nn.ReLU()),
    "nested": lambda nn: nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), nn.Dropout(), nn.GELU()),
    "embedding": lambda nn: nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.Sigmoid()),
}


# Named tuples are classes here, and a fork is a block.
UNLIKE = {"codes_sequences", "language", "packed"}


def shown(graph) -> list[str]:
    """The lines of a graph without places, and without whether results need gradients."""
    text = re.sub(r" # .*|requires_grad=\d, ", "", str(graph))
    return text.splitlines()


def operators(graph) -> list[tuple]:
    """Each operator: its kind, what kinds of values it takes, the sizes it gives, and its scope."""
    rows = []
    for n in graph.nodes():
        if n.kind().startswith("aten::"):
            taken = [v.type().kind() for v in n.inputs()]
            given = [v.type().sizes() if v.type().kind() == "TensorType" else str(v.type()) for v in n.outputs()]
            rows.append((n.kind(), taken, given, n.scopeName()))
    return rows


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced_functions(name):
    texts = []
    for lib in (torch, flambeau):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            texts.append(shown(lib.jit.trace(FUNCTIONS[name](lib), (lib.ones(SHAPE), lib.ones(SHAPE))).graph))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", MODULES)
def test_traced_modules(name):
    rows = []
    for lib in (torch, flambeau):
        module = MODULES[name](lib.nn).eval()
        rows.append(operators(lib.jit.trace(module, lib.ones(SHAPE)).inlined_graph))
    assert rows[0] == rows[1]


def described(graph) -> list[str]:
    """The lines of a graph without places; values are numbered in order, and constants stand where they are used: of tensors of several elements and
    packed weights only that they are."""
    constants, numbers, lines = {}, {}, []
    for line in re.sub(r" # .*", "", str(graph)).splitlines():
        found = re.match(r"\s*%([\w.]+) : (.*) = prim::Constant(.*)\(\)$", line)
        if found is None:
            lines.append(line)
            continue
        name, kind, value = found.groups()
        whole = ".classes." in kind or kind == "Tensor" and not value.startswith("[value={")
        constants[name] = f"<{kind}{'' if whole else value}>"

    def renamed(match):
        name = match[1]
        return constants[name] if name in constants else numbers.setdefault(name, f"%{len(numbers)}")

    return [re.sub(r"%([\w.]+)", renamed, line) for line in lines]


@pytest.mark.parametrize("name", sorted(set(NAMES) - UNLIKE))
def test_archives(name):
    path = str(FOLDER / f"{name}.pt")
    there, here = (described(lib.jit.load(path).graph) for lib in (torch, flambeau))
    assert there == here


@pytest.mark.parametrize("name", scripted_functions.made(flambeau))
def test_scripted_functions(name):
    there, here = (described(lib.jit.script(scripted_functions.made(lib)[name]).graph) for lib in (torch, flambeau))
    assert there == here
