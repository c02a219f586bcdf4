"""Layers on codes: what ``convert`` puts in the places of observed ones."""

from flambeau.ao.nn.quantized import functional, modules
from flambeau.ao.nn.quantized.modules import *  # noqa: F403

__all__ = ["functional"]
__all__ += modules.__all__


def __getattr__(name):
    """``dynamic`` is imported when it is asked for."""
    import importlib

    if name == "dynamic":
        return importlib.import_module("flambeau.ao.nn.quantized.dynamic")
    raise AttributeError(f"module 'torch.ao.nn.quantized' has no attribute {name!r}")
