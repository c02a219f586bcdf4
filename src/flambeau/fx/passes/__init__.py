"""Passes over graphs: what each node gives (shape_prop.py, fake_tensor_prop.py), a graph in parts (split_module.py), passes as objects (infra/)."""

import importlib
from pkgutil import iter_modules


def __getattr__(name):
    """The modules of the folder, when they are asked for."""
    if name in {m.name for m in iter_modules(__path__)}:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.fx.passes' has no attribute {name!r}")
