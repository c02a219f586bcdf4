"""``torch.nn.parallel``: on one device parallel is a call, in several processes it is DistributedDataParallel."""

from __future__ import annotations

import importlib

from flambeau.base.public import public_in
from flambeau.modules.module import Module

__all__ = [
    "DataParallel",
    "DistributedDataParallel",  # noqa: F822
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


__path__: list = []  # torch.nn.parallel.distributed and its like are rows of a table


@public_in("nn.parallel.data_parallel")
class DataParallel(Module):
    """Holds the module as ``module`` and calls it: there is one device."""

    def __init__(self, module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        self.module, self.device_ids, self.dim = module, [], dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def __getattr__(name):
    """DistributedDataParallel lives with the process groups, which are loaded when it is asked for."""
    if name == "DistributedDataParallel":
        return importlib.import_module("flambeau.distributed.data_parallel").DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim: int = 0, module_kwargs=None):
    """``module(*inputs, **module_kwargs)``: all devices are one here."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


def replicate(network, devices, detach: bool = False) -> list:
    """``network`` itself for each of ``devices``: they are one here."""
    return [network for _ in devices]


def scatter(inputs, target_gpus, dim: int = 0) -> list:
    """``[inputs]``: there is one device."""
    return [inputs]


def gather(outputs, target_device, dim: int = 0):
    """The first of ``outputs``: there is one device."""
    return outputs[0]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list:
    """``modules[i](*inputs[i], **kwargs_tup[i])`` for each, one after the other."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    return [m(*(x if isinstance(x, tuple) else (x,)), **k) for m, x, k in zip(modules, inputs, kwargs_tup)]
