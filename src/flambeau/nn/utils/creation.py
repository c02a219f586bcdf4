"""Making and reshaping modules."""

from __future__ import annotations

import inspect

__all__ = ["remove_spectral_norm", "remove_weight_norm", "skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """The module without initialised parameters: made on the meta device, then given memory."""
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


def _remove(module, name: str):
    from flambeau.nn.utils.parametrize import remove_parametrizations

    return remove_parametrizations(module, name)


def remove_weight_norm(module, name: str = "weight"):
    """The tensor as an ordinary parameter again."""
    return _remove(module, name)


def remove_spectral_norm(module, name: str = "weight"):
    return _remove(module, name)
