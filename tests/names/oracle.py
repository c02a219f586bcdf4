"""Writes ``pytorch_2_13.json``, the public names of PyTorch's modules by module, ``homes_2_13.json``, the public classes by ``__module__``, and
``operators_2_13.json``, the operators by name that are found as functions of the root and as methods of Tensor. Run with an interpreter that has PyTorch.

A public name is one of ``__all__`` where a module has it, else what doesn't begin with an underscore and isn't a module or something
of another library. ``Tensor`` stands for the class. Names only: nothing is copied but the spelling.
"""

import importlib
import inspect
import json
import sys
import types
import warnings
from pathlib import Path

MODULES = """
torch nn nn.functional nn.init nn.parameter nn.modules nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations nn.utils.prune
nn.utils.stateless nn.utils.fusion nn.attention nn.attention.flex_attention nn.attention.bias nn.parallel optim optim.lr_scheduler optim.swa_utils
autograd autograd.functional autograd.forward_ad autograd.graph autograd.profiler func fx fx.experimental.proxy_tensor
fx.experimental.symbolic_shapes fx.passes fx.passes.shape_prop fx.passes.split_module fx.passes.infra.pass_base utils utils.data utils.checkpoint
utils.hooks utils.weak utils._pytree utils.dlpack utils.benchmark utils.model_zoo utils.cpp_extension utils._python_dispatch utils.data.distributed
utils.flop_counter utils.module_tracker overrides library compiler _dynamo _inductor.config _functorch profiler distributions
distributions.constraints distributions.transforms distributions.kl random amp amp.autocast_mode amp.grad_scaler backends backends.cpu
backends.cuda backends.cudnn backends.mkl backends.mkldnn backends.mps backends.openmp backends.opt_einsum testing export hub jit cuda cuda.amp mps
xpu accelerator cpu cpu.amp sparse masked signal signal.windows multiprocessing futures types return_types serialization storage _logging special
linalg fft nested quantization _utils version monitor mtia
""".split()


def public(module) -> list[str]:
    if hasattr(module, "__all__"):
        return sorted(set(module.__all__))
    out = []
    for name, value in vars(module).items():
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        home = getattr(value, "__module__", None) if inspect.isclass(value) or callable(value) else "torch"
        if (
            home is None
            or str(home).split(".")[0] in ("torch", "_operator", "builtins")
            or str(home).startswith("torch")
        ):
            out.append(name)
    return sorted(out)


def homes(names: dict[str, list[str]]) -> dict[str, list[str]]:
    """{``__module__``: public classes as ``module:name``}, both below torch."""
    found: dict[str, list[str]] = {}
    for where, these in names.items():
        module = sys.modules["torch" if where == "torch" else f"torch.{where}"]
        for name in these:
            value = getattr(module, name, None)
            home = getattr(value, "__module__", None)
            if inspect.isclass(value) and str(home).partition(".")[0] == "torch":
                found.setdefault(home.partition(".")[2], []).append(f"{where}:{name}")
    return found


def operators() -> dict[str, list[str]]:
    """The names of ATen's operators that the root namespace has, and that Tensor has."""
    torch = sys.modules["torch"]
    path = Path(__file__).parents[2] / "src/flambeau/ops/aten_names.py"
    table: dict = {}
    exec(path.read_text(), table)
    places = {"torch": torch, "Tensor": torch.Tensor}
    return {place: sorted(n for n in table["NAMES"] if hasattr(space, n)) for place, space in places.items()}


def written(name: str, table: dict[str, list[str]]) -> None:
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(' '.join(v))}" for k, v in sorted(table.items()))
    Path(__file__).with_name(name).write_text("{\n" + rows + "\n}\n")


def main():
    warnings.simplefilter("ignore")
    import torch

    found = {}
    for name in MODULES:
        path = name if name == "torch" else f"torch.{name}"
        try:
            found[name] = public(importlib.import_module(path))
        except ImportError as error:
            print("absent:", path, error, file=sys.stderr)
    written("homes_2_13.json", homes(found))
    written("operators_2_13.json", operators())
    found["Tensor"] = sorted(n for n in dir(torch.Tensor) if not n.startswith("_") or n.startswith("__"))
    written("pytorch_2_13.json", found)
    print(sum(map(len, found.values())), "names in", len(found), "modules")


if __name__ == "__main__":
    main()
