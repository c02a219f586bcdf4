"""Which public callables have a signature and a docstring: ``python tools/documented.py [--list]`` counts them, by module, or lists what lacks one.

Public is what PyTorch has as public (``tests/names/pytorch_2_13.json``) and flambeau has, without what refuses at the use or answers neutrally.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import get_origin

NAMES = Path(__file__).parents[1] / "tests" / "names" / "pytorch_2_13.json"
# Their names are tables: devices and libraries that aren't here, settings, the interpreter's own.
TABLES = (
    "cuda",
    "xpu",
    "mps",
    "mtia",
    "backends",
    "accelerator",
    "multiprocessing",
    "monitor",
    "quantization",
    "_inductor",
)

# Public callables whose signature is ``(*args, **kwargs)`` in truth, or is nobody's here to say.
UNSIGNED = {
    "Module": "passes on what it is given, where call_super_init asks for it",
    "Container": "another name of Module",
    "Identity": "takes and ignores whatever another layer takes",
    "StackDataset": "datasets side by side, or by name",
    "GraphModule": "derived classes have an __init__ of their own, and __new__ makes a class for each graph",
    "Function": "made by apply, with what forward takes",
    "NestedIOFunction": "made by apply",
    "CheckpointFunction": "made by apply",
    "KeyErrorMessage": "a str",
    "FlexKernelOptions": "a dict",
    "PyTreeSpec": "optree's",
}

# How the documentation of what does nothing begins.
NEUTRAL = ("Can't be made", "Refuses:", "Answers ", "A block that changes nothing", "Gives the function back")


def _module(name: str):
    if name == "Tensor":
        return importlib.import_module("flambeau").Tensor
    return importlib.import_module("flambeau" if name == "torch" else f"flambeau.{name}")


def has_signature(value) -> bool:
    """Whether ``inspect.signature`` tells parameters; ``(*args, **kwargs)`` alone tells none."""
    try:
        kinds = [p.kind for p in inspect.signature(value).parameters.values() if p.name != "self"]
    except (TypeError, ValueError):
        return False
    return kinds != [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]


def documentation(value) -> str:
    """Its docstring; of a class the one of its own, which libraries add theirs to."""
    return (value.__doc__ if isinstance(value, type) else inspect.getdoc(value)) or ""


def rows() -> dict[str, dict[str, tuple[bool, bool]]]:
    """{module: {name: (has a signature, has a docstring)}} of public callables."""
    found: dict[str, dict[str, tuple[bool, bool]]] = {}
    for module, names in json.loads(NAMES.read_text()).items():
        if module.startswith(TABLES):
            continue
        where = _module(module)
        for name in names.split():
            if name.startswith("_") or not hasattr(where, name):
                continue
            value = getattr(where, name)
            doc = documentation(value) if callable(value) else ""
            # Unions of types are no callables, and what exceptions take is BaseException's.
            error = isinstance(value, type) and issubclass(value, BaseException)
            if not callable(value) or get_origin(value) is not None or error or doc.startswith(NEUTRAL):
                continue
            found.setdefault(module, {})[name] = (name in UNSIGNED or has_signature(value), bool(doc))
    return found


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore")
    table = rows()
    if "--list" in arguments:
        for module, names in table.items():
            for label, which in (("no signature", 0), ("no docstring", 1)):
                lacking = [n for n, have in names.items() if not have[which]]
                if lacking:
                    print(f"{module} ({label}): {' '.join(lacking)}")
        return 0
    for module, names in table.items():
        signatures, docs = (sum(have[i] for have in names.values()) for i in (0, 1))
        print(f"{module:<34}{len(names):>5}{signatures:>6}{docs:>6}")
    every = [have for names in table.values() for have in names.values()]
    print(
        f"{len(every)} callables, {sum(not s for s, _ in every)} without a signature, {sum(not d for _, d in every)} without a docstring"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
