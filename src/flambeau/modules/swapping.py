"""Parameters that change their kind in place: ``torch.utils.swap_tensors`` and the switches of ``torch.__future__``."""

from __future__ import annotations

import copyreg
import gc
import sys
import weakref

from .. import _C
from ..core import keys as K
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

_OF_CLASS = K.PARAMETER | K.FUNCTION
"""The bits of ``_flags`` that say what the class says."""

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

    RuntimeError when one of them has weak references or live views. A history and what it is a view of go along. The backward pass of a graph
    that leads to one of them as a leaf, or that saved it, raises.
    """
    for t in (t1, t2):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap t{1 if t is t1 else 2} because it has weakref associated with it")
        if views := _live_views(t):
            raise RuntimeError(
                f"Expected use_count of t{1 if t is t1 else 2} to be 1 or 2 with an AccumulateGrad node but got {2 + views} "
                "make sure you are not holding references to the tensor in other places."
            )
    if set(copyreg._slotnames(type(t1))) != set(copyreg._slotnames(type(t2))):  # type: ignore[attr-defined]
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    if t1 is t2:
        return
    for t in (t1, t2):
        node = _C.part_leaf(t)
        if node is not None:
            node.register_prehook(_poisoned)
    if any(t._grad_fn is not None or isinstance(t._autograd, _C.View) for t in (t1, t2)):
        _C.swap(t1, t2)
        attributes = dict(vars(t1))
        for t, new in ((t1, dict(vars(t2))), (t2, attributes)):
            vars(t).clear()
            vars(t).update(new)
    else:
        _swap_leaves(t1, t2)
    _C.outdate(t1, t2)
    if type(t1) is not type(t2):
        t1.__class__, t2.__class__ = type(t2), type(t1)


def _live_views(t) -> int:
    """How many tensors are views of ``t``. Nobody keeps a list of them, so the collector is asked where the memory is shared at all."""
    if sys.getrefcount(t._storage) <= 2:
        return 0
    return sum(isinstance(holder, _C.View) for holder in gc.get_referrers(t))


def _swap_leaves(t1, t2) -> None:
    kept = [
        (
            _C.alias(t, type(t)),
            t._payload,
            t._keys,
            t._flags & _OF_CLASS,
            t._requires_grad,
            t._grad,
            dict(vars(t)),
            _hooks_of(t),
        )
        for t in (t1, t2)
    ]
    for t, (data, payload, keys, flag, asks, grad, attributes, hooks) in ((t1, kept[1]), (t2, kept[0])):
        t._grad = None
        Tensor.requires_grad_.impl(t, False)
        _C.take_place(t, data)
        t._payload, t._keys, t._flags = payload, keys, t._flags & ~_OF_CLASS | flag
        Tensor.requires_grad_.impl(t, asks)
        t._grad = grad
        for post, held in hooks.items():
            _C.leaf_hooks(t, post, held)
        vars(t).clear()
        vars(t).update(attributes)


def _poisoned(grad_outputs):
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on a tensor that "
        "was swapped. For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype "
        "of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only change the device/dtype "
        "before running forward (or after both forward and backward)."
    )


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
