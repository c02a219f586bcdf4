"""GraphModule.to_folder: files of Python that make the module again."""

import importlib.util
import sys

import pytest

import flambeau as torch
from flambeau import fx


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((3,), 2.0))
        self.register_buffer("shift", torch.arange(3.0))
        self.seq = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))

    def forward(self, x, *, p: float = float("inf")):
        y = self.seq(self.scale * x + self.shift).clamp(max=float("inf"))
        return torch.nn.functional.gelu(y).to(torch.float64)


def again(folder, name):
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
        sys.modules.pop(f"{name}.module", None)
    return getattr(module, name)()


def test_it_comes_back(tmp_path):
    gm = fx.symbolic_trace(Model()).eval()
    gm.to_folder(tmp_path / "a" / "b", "Again")
    moved = (tmp_path / "a").rename(tmp_path / "c") / "b"
    made = again(moved, "Again").eval()
    x = torch.randn(4, 3)
    assert made(x).equal(gm(x)) and made(x).dtype is torch.float64
    assert {k: v.tolist() for k, v in made.state_dict().items()} == {k: v.tolist() for k, v in gm.state_dict().items()}
    assert [k for k, _ in made.named_parameters()] == [k for k, _ in gm.named_parameters()]
    assert getattr(made.seq, "0").training is False


def test_what_has_no_name_is_refused(tmp_path):
    def local(x):
        return x + 1

    graph = fx.Graph()
    graph.output(graph.call_function(local, (graph.placeholder("x"),)))
    with pytest.raises(ValueError, match="can't be imported"):
        fx.GraphModule({}, graph).to_folder(tmp_path)
