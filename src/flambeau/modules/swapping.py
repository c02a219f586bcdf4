"""Parameters that change their kind in place: ``torch.utils.swap_tensors`` and the switches of ``torch.__future__``."""

from __future__ import annotations

import weakref

from .. import _C
from ..core.tensor import Tensor
from .parameter import Parameter

__all__ = [
    "exchange",
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "is_wrapper",
    "overwrites",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
    "swap_tensors",
    "swaps",
]

_switches = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions of modules (``to``, ``half``) put new parameters in place of the old ones, which keep their values."""
    _switches["overwrite"] = bool(value)


def get_overwrite_module_params_on_conversion() -> bool:
    """What :func:`set_overwrite_module_params_on_conversion` was last told; False at first."""
    return _switches["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and ``load_state_dict`` exchange parameters by :func:`swap_tensors`, so that their class may change."""
    _switches["swap"] = bool(value)


def get_swap_module_params_on_conversion() -> bool:
    """What :func:`set_swap_module_params_on_conversion` was last told; False at first."""
    return _switches["swap"]


overwrites, swaps = get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion


def is_wrapper(t) -> bool:
    """Whether a tensor is of a subclass that holds other tensors in place of data of its own."""
    return type(t) is not Tensor and hasattr(type(t), "__tensor_flatten__")


def swap_tensors(t1, t2) -> None:
    """Exchange what two tensors are: memory, gradient, hooks, attributes, class. Every reference to one of them then sees the other's values.

    RuntimeError when one of them has weak references or is part of a graph of autograd.
    """
    for t in (t1, t2):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap t{1 if t is t1 else 2} because it has weakref associated with it")
        if t._grad_fn is not None:
            raise RuntimeError("swap_tensors: only leaves can be exchanged")
    kept = [
        (_C.alias(t, type(t)), t._payload, t._keys, t._requires_grad, t._grad, dict(vars(t)), _hooks_of(t))
        for t in (t1, t2)
    ]
    for t, (data, payload, keys, asks, grad, attributes, hooks) in ((t1, kept[1]), (t2, kept[0])):
        t._grad = None
        Tensor.requires_grad_.impl(t, False)
        _C.take_place(t, data)
        t._payload, t._keys = payload, keys
        Tensor.requires_grad_.impl(t, asks)
        t._grad = grad
        for post, held in hooks.items():
            _C.leaf_hooks(t, post, held)
        vars(t).clear()
        vars(t).update(attributes)
    if type(t1) is not type(t2):
        t1.__class__, t2.__class__ = type(t2), type(t1)


def _hooks_of(t) -> dict[bool, dict]:
    """The dicts of its hooks, of those behind the accumulation by True: handles know these dicts."""
    held = {post: _C.leaf_hooks(t, post) for post in (False, True)} if t._requires_grad else {}
    return {post: hooks for post, hooks in held.items() if hooks}


def exchange(param, made) -> None:
    """``param`` becomes what ``made`` is, a parameter that asks for a gradient as before where it is one."""
    if isinstance(param, Parameter) and not isinstance(made, Parameter):
        made = Parameter(made, requires_grad=param._requires_grad)
    elif isinstance(param, Parameter):
        made.requires_grad_(param._requires_grad)
    swap_tensors(param, made)
