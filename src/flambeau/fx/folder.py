"""A GraphModule as a package of Python files: ``GraphModule.to_folder``."""

from __future__ import annotations

import pickle
import types
from pathlib import Path
from typing import Any

from ..core.tensor import Tensor
from ..modules.parameter import Parameter

__all__ = ["write_folder"]

MODULE = '''"""Written by GraphModule.to_folder."""

import pickle
from pathlib import Path

{imports}

HERE = Path(__file__).parent


def loaded(name):
    return pickle.loads((HERE / name).read_bytes())


class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in {children!r}:
            setattr(self, name, loaded(name + ".pickle"))
        for name, value in loaded("tensors.pickle").items():
            if isinstance(value, torch.nn.Parameter):
                self.register_parameter(name, value)
            else:
                self.register_buffer(name, value)
{code}
'''


def import_line(name: str, value: Any) -> str:
    """What makes ``name`` mean ``value`` in a file. ValueError for an object that no module has under a name."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}"
    module, known = getattr(value, "__module__", None), getattr(value, "__qualname__", getattr(value, "__name__", None))
    if value is type(None):
        return f"{name} = type(None)"
    if isinstance(value, float):
        return f'{name} = float("{value}")'
    if not isinstance(module, str) or not isinstance(known, str) or "<" in known:
        raise ValueError(f"to_folder: {name} = {value!r} can't be imported by a name")
    outer, _, rest = known.partition(".")
    line = f"from {module} import {outer} as {name}"
    return line if not rest else f"{line}\n{name} = {name}.{rest}"


def write_folder(module: Any, folder: str | Path, name: str) -> None:
    """Files that make the module ``name`` again: ``module.py`` with the code, each child and the module's own tensors pickled beside it, and
    ``__init__.py``. The files go where the folder goes."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    code = module.graph.python_code("self")
    given = {"torch": None, **code.globals}
    lines = [import_line(key, value) for key, value in given.items() if value is not None and key != "torch"]
    children = dict(module.named_children())
    for key, child in children.items():
        (folder / f"{key}.pickle").write_bytes(pickle.dumps(child))
    tensors = {
        key: value
        for table in (module._parameters, module._buffers, vars(module))
        for key, value in table.items()
        if isinstance(value, Parameter | Tensor)
    }
    (folder / "tensors.pickle").write_bytes(pickle.dumps(tensors))
    body = "\n".join("    " + line if line.strip() else "" for line in code.src.strip("\n").splitlines())
    imports = "\n".join(["import flambeau as torch", *lines])
    text = MODULE.format(imports=imports, name=name, children=list(children), code="\n" + body)
    (folder / "module.py").write_text(text)
    (folder / "__init__.py").write_text("from .module import *\n")
