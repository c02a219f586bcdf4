"""``torch._utils``: helpers that libraries take from there, and how PyTorch's checkpoints name the rebuilding of tensors."""

from __future__ import annotations

import importlib
import logging

from ..base.public import public_in
from ..core.bindings import function
from ..core.rebuild import _rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3
from ..modules.parameter import _rebuild_parameter, _rebuild_parameter_with_state
from ..utils.data.errors import ExceptionWrapper, KeyErrorMessage

__all__ = [
    "ExceptionWrapper",
    "KeyErrorMessage",
    "_flatten_dense_tensors",
    "_get_device_index",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_unflatten_dense_tensors",
    "classproperty",
    "is_compiling",
    "render_call",
    "try_import",
]

_cat = function("cat")
logger = logging.getLogger("flambeau")


def _element_size(dtype) -> int:
    """Bytes of one element."""
    return dtype.itemsize


def is_compiling() -> bool:
    """Whether the code is being captured by ``torch.compile`` or ``torch.export``."""
    from ..base.compiling import is_compiling

    return is_compiling()


def try_import(name: str):
    """The module, or None where it isn't installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


class classproperty:  # noqa: N801
    """A read-only property of a class."""

    def __init__(self, func):
        self.func = func

    def __get__(self, instance, owner):
        return self.func(owner)


def cpu_count() -> int:
    """Number of processors that this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def get_current_device_index() -> int:
    """The index of the current accelerator: -1, there is none."""
    return -1


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    from ..base.device import as_device

    device = as_device(device)
    if device.type == "cpu" and not (optional or allow_cpu):
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    return -1 if device.type == "cpu" else device.index or 0


def _flatten_dense_tensors(tensors):
    """One vector of all elements, in order."""
    return _cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Views of ``flat`` with the shapes of ``tensors``."""
    out, at = [], 0
    for t in tensors:
        out.append(flat.narrow(0, at, t.numel()).view_as(t))
        at += t.numel()
    return tuple(out)


def get_tensor_metadata(tensor) -> dict:
    """What a tensor's pickle says beside its elements: {"conj": True} and {"neg": True} of flagged views, {} of others."""
    return {}


def set_tensor_metadata(tensor, metadata) -> None:
    """Put what :func:`get_tensor_metadata` gave on a tensor that was read."""
    if metadata:
        raise RuntimeError(f"tensor metadata {sorted(metadata)} can't be set")


def render_call(fn, args, kwargs) -> str:
    """ "name(args)" for messages."""
    parts = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
    return f"{getattr(fn, '__name__', fn)}({', '.join(parts)})"


@public_in("_utils")
class CallbackRegistry:
    """Functions to be called with the same arguments."""

    def __init__(self, name: str):
        self.name, self.callback_list = name, []

    def add_callback(self, cb) -> None:
        self.callback_list.append(cb)

    def fire_callbacks(self, *args, **kwargs) -> None:
        for cb in self.callback_list:
            try:
                cb(*args, **kwargs)
            except Exception:
                logger.exception("Exception in callback for %s registered with gpu trace", self.name)


def set_module(obj, mod: str) -> None:
    """Give ``obj`` the module that it says it is from."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """A batch of tensors as one."""
    from ..utils.data.collate import default_collate

    return default_collate(batch)
