"""``torch.nn.parallel``: on one device parallel is a call, in several processes it is DistributedDataParallel."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from flambeau.base.device import Device
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

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Device | str | int] | None = None,
        output_device: Device | str | int | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module, self.device_ids, self.dim = module, [], dim

    def forward(self, *inputs, **kwargs) -> Any:
        return self.module(*inputs, **kwargs)


def __getattr__(name):
    """DistributedDataParallel lives with the process groups, which are loaded when it is asked for."""
    if name == "DistributedDataParallel":
        return importlib.import_module("flambeau.distributed.data_parallel").DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Device | str | int] | None = None,
    output_device: Device | str | int | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """``module(*inputs, **module_kwargs)``: all devices are one here."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


def replicate(network: Module, devices: Sequence[Device | str | int] | None, detach: bool = False) -> list:
    """``network`` itself for each of ``devices``: they are one here."""
    return [network for _ in devices]


def scatter(inputs: Any, target_gpus: Sequence[Device | str | int], dim: int = 0) -> list:
    """``[inputs]``: there is one device."""
    return [inputs]


def gather(outputs: Any, target_device: Device | str | int | None, dim: int = 0) -> Any:
    """The first of ``outputs``: there is one device."""
    return outputs[0]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Device | str | int] | None = None,
) -> list:
    """``modules[i](*inputs[i], **kwargs_tup[i])`` for each, one after the other."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    return [m(*(x if isinstance(x, tuple) else (x,)), **k) for m, x, k in zip(modules, inputs, kwargs_tup)]
