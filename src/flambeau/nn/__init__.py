"""Neural networks: Module and Parameter, layers, losses, initialisation and the functions behind them.

``modules/`` holds the classes (a file to a family), ``functional.py`` the functions, ``init.py`` the initialisers.
Invariant: a layer computes nothing itself; its ``forward`` calls one function of ``functional``.
"""

import sys

from flambeau.modules import parameter
from flambeau.modules.parameter import Buffer, Parameter
from flambeau.nn import functional, init, modules, utils
from flambeau.nn.modules import *  # noqa: F403

sys.modules["flambeau.nn.parameter"] = parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "parameter", "utils"]
__all__ += modules.__all__


def __getattr__(name):
    """Parts that are imported when they are asked for."""
    import importlib

    if name in ("attention", "parallel"):
        return importlib.import_module(f"flambeau.nn.{name}")
    if name in ("UninitializedBuffer", "UninitializedParameter"):
        return getattr(parameter, name)
    if name in ("DataParallel",):
        return importlib.import_module("flambeau.nn.parallel").DataParallel
    raise AttributeError(f"module 'torch.nn' has no attribute {name!r}")
