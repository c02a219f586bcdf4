"""``torch.overrides``: the ``__torch_function__`` protocol."""

from __future__ import annotations

import functools

from . import _C
from .core import keys
from .core.modes import BaseTorchFunctionMode, TorchFunctionMode
from .core.overrides import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    handle_torch_function,
    has_torch_function,
)
from .core.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function_unary(x) -> bool:
    return has_torch_function((x,))


def has_torch_function_variadic(*xs) -> bool:
    return has_torch_function(xs)


def is_tensor_like(x) -> bool:
    """A Tensor, or an instance of a class with ``__torch_function__``."""
    return isinstance(x, _C.TensorBase) or hasattr(type(x), "__torch_function__")


def wrap_torch_function(dispatcher):
    """Decorator: a Python function with the protocol; ``dispatcher(*args, **kwargs)`` gives the arguments that may override."""

    def wrap(fn):
        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(tuple(relevant)):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        return wrapped

    return wrap


@functools.cache
def _namespaces():
    import flambeau as torch

    return [("torch", torch), ("torch.nn.functional", torch.nn.functional), ("torch.Tensor", Tensor)]


@functools.cache
def get_overridable_functions() -> dict:
    """Namespace -> functions that go through ``__torch_function__``."""
    out = {}
    for _, space in _namespaces():
        values = [v for c in (space.__mro__ if isinstance(space, type) else [space]) for v in vars(c).values()]
        out[space] = [f for f in values if isinstance(f, _C.Function)]
    return out


@functools.cache
def _names() -> dict:
    return {
        id(f): f"{prefix}.{n}"
        for prefix, space in reversed(_namespaces())
        for c in (space.__mro__ if isinstance(space, type) else [space])
        for n, f in vars(c).items()
        if isinstance(f, _C.Function)
    }


def resolve_name(f) -> str | None:
    """Qualified public name of a function given to ``__torch_function__``, or None."""
    if hasattr(f, "_schema"):
        return f"torch.ops.{f}"
    return _names().get(id(f))


def is_tensor_method_or_property(f) -> bool:
    name = resolve_name(f)
    return getattr(f, "__name__", "") == "__get__" or (name or "").startswith("torch.Tensor.")


def get_ignored_functions() -> set:
    """Public functions that don't take part, since no argument could override."""
    import flambeau as torch

    return {
        torch.is_tensor,
        torch.manual_seed,
        torch.seed,
        torch.get_default_dtype,
        torch.set_default_dtype,
        torch.promote_types,
        torch.no_grad,
        torch.enable_grad,
        torch.set_grad_enabled,
        torch.is_grad_enabled,
    }


def get_testing_overrides() -> dict:
    """Function -> a dummy with a compatible signature, for every overridable function."""
    return {f: (lambda *args, **kwargs: -1) for fs in get_overridable_functions().values() for f in fs}


def get_default_nowrap_functions() -> set:
    """Functions whose results the default ``__torch_function__`` leaves as they are."""
    return {_C.TensorBase.__dict__[n].__get__ for n in ("grad", "shape", "dtype", "device")}


def enable_reentrant_dispatch():
    """Context manager inside ``__torch_dispatch__``: calls start from the top again, autograd included."""
    return _C.Guard(readmit=keys.AUTOGRAD | keys.TRANSFORM)
