"""Helpers over the parameters of a module: gradient clipping, flattening."""

from flambeau.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from flambeau.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
__all__ += ["parameters_to_vector", "vector_to_parameters"]


def __getattr__(name):
    """The submodules and what they hold, when they are asked for."""
    import importlib

    if name in ("fusion", "parametrizations", "parametrize", "prune", "renewed", "rnn", "stateless"):
        return importlib.import_module(f"flambeau.nn.utils.{name}")
    for module in ("fusion", "renewed", "creation"):
        found = importlib.import_module(f"flambeau.nn.utils.{module}")
        if name in found.__all__:
            return getattr(found, name)
    raise AttributeError(f"module 'torch.nn.utils' has no attribute {name!r}")
