"""A graph as a program that runs alone: its code as a module, its inputs from a file or made up, the settings it was compiled under."""

from __future__ import annotations

import ast
import os
from typing import Any

import numpy as np

import flambeau as torch
from flambeau.dynamo.config import config as dynamo_config
from flambeau.fx import GraphModule
from flambeau.inductor.settings import config as inductor_config

__all__ = ["load", "settings_lines", "tensor", "write"]

LIMIT = 256 << 20  # bytes of input data that are kept beside a script; larger inputs are made up
_SKIPPED = ("repro_", "trace.", "verify", "strict_")  # what looks at a program, not what changes it


def settings_lines() -> list[str]:
    """Statements that set what differs from the defaults."""
    lines = []
    for name, config in (("_dynamo", dynamo_config), ("_inductor", inductor_config)):
        for knob, value in config.changed().items():
            if not knob.startswith(_SKIPPED) and _literal(value):
                lines.append(f"torch.{name}.config.set({knob!r}, {value!r})")
    return lines


def _literal(value) -> bool:
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError):
        return False


def tensor(shape, stride, dtype, data=None, requires_grad: bool = False):
    """A tensor of this layout. ``data``: its elements in row-major order as a flat array of bytes; without it they are made up
    (uniform in [-1, 1), integers 0 or 1), the same ones in every run."""
    size = 1 + sum((n - 1) * s for n, s in zip(shape, stride)) if all(shape) else 0
    memory = np.zeros(size, dtype.np)
    view = np.lib.stride_tricks.as_strided(memory, shape, [s * dtype.itemsize for s in stride])
    if data is not None:
        view[...] = np.ascontiguousarray(data).view(dtype.np).reshape(shape)
    else:
        made = np.random.default_rng(0).random(view.shape)
        view[...] = ((2 * made - 1) if dtype.category >= 2 else made < 0.5).astype(dtype.np)
    return torch.from_numpy(view).requires_grad_(requires_grad)


def load(script: str) -> dict[str, Any]:
    """The data that was written beside ``script`` (its ``__file__``): name -> array of bytes."""
    path = os.path.splitext(script)[0] + ".npz"
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _bytes(t) -> np.ndarray:
    return np.ascontiguousarray(t.detach().numpy()).reshape(-1).view(np.uint8)


def _has_data(t) -> bool:
    return type(t) in (torch.Tensor, torch.nn.Parameter) and t.device.type == "cpu"


def _module(gm: GraphModule, name: str, data: dict, data_name: str) -> list[str]:
    """Source of a class for ``gm``; tensors that it holds go to ``data``, graphs that it holds become classes too."""
    before, init = [], []
    for node in gm.graph.nodes:
        if node.op == "call_module":
            raise TypeError(f"a graph that calls the module {node.target} can't be written as a script")
        if node.op != "get_attr" or any(line.startswith(f"self.{node.target} =") for line in init):
            continue
        value = gm
        for part in node.target.split("."):
            value = getattr(value, part)
        if isinstance(value, GraphModule):
            inner = f"{name}_{node.target.replace('.', '_')}"
            before += _module(value, inner, data, data_name)
            init.append(f"self.{node.target} = {inner}()")
        elif isinstance(value, torch.Tensor):
            key = f"{name}.{node.target}"
            data[key] = _bytes(value)
            init.append(f"self.{node.target} = {_tensor_text(value, f'{data_name}[{key!r}]')}")
        else:
            init.append(f"self.{node.target} = {value!r}")
    lines = [f"class {name}(torch.nn.Module):"]
    if init:
        lines += ["    def __init__(self):", "        super().__init__()", *("        " + line for line in init), ""]
    code = gm.code.strip().splitlines()
    return [*gm.graph.python_code().imports, *before, *lines, *("    " + line for line in code), "", ""]


def _tensor_text(t, data: str | None) -> str:
    shape, stride = [int(n) for n in t.shape], [int(n) for n in t.stride()]
    extra = (f", {data}" if data else "") + (", requires_grad=True" if t.requires_grad else "")
    return f"tensor({shape}, {stride}, {t.dtype}{extra})"


def write(path: str, gm: GraphModule, inputs, entry: str, comment: str, **options) -> str:
    """Write the script: it calls ``flambeau.debug.repro.<entry>(module, args, **options)``. Returns ``path``."""
    data: dict[str, np.ndarray] = {}
    classes = _module(gm, "Repro", data, "data")
    args = []
    keep = sum(t.numel() * t.element_size() for t in inputs if isinstance(t, torch.Tensor) and _has_data(t)) <= LIMIT
    for i, x in enumerate(inputs):
        if isinstance(x, torch.Tensor):
            name = None
            if keep and _has_data(x):
                data[f"input {i}"] = _bytes(x)
                name = f"data['input {i}']"
            args.append(_tensor_text(x, name))
        else:
            args.append(repr(x))
    lines = [
        *(f"# {line}".rstrip() for line in comment.splitlines()),
        "import flambeau as torch",
        "from math import inf, nan",
        "from flambeau import device",
        "from flambeau.debug import repro",
        "from flambeau.debug.scripts import load, tensor",
        "",
        *settings_lines(),
        "",
        *(["data = load(__file__)"] if data else []),
        "",
        "",
        *classes,
        'if __name__ == "__main__":',
        f"    args = [{', '.join(args)}]",
        f"    repro.{entry}(Repro(), args, path=__file__, {', '.join(f'{k}={v!r}' for k, v in options.items())})",
        "",
    ]
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as f:
        f.write("\n".join(lines))
    if data:
        np.savez(os.path.splitext(path)[0] + ".npz", **data)
    return path
