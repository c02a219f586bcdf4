"""Fake tensors whose value is known: numbers that a program wrote into tensors while a FakeTensorMode is on.

``torch.tensor(4.0)`` under the mode is fake and has a ``constant``, the real tensor; so do results of operators on such tensors alone, as
long as they are one element. A write that isn't known makes the value of everything in that memory unknown. With
``torch._functorch.config.fake_tensor_propagate_real_tensors`` each fake tensor made from a real one has the value in ``real_tensor``, of any size.
"""

from __future__ import annotations

import weakref
from typing import Any

from .. import _C
from ..base.records import slotted
from ..core import modes

__all__ = [
    "LIMIT",
    "Constants",
    "allow_meta",
    "real_propagation",
    "run_for_real",
    "allow_data_ptr",
    "set_allow_data_ptr",
    "set_allow_meta",
    "set_real_propagation",
]

LIMIT = 1  # elements of a constant; PyTorch's bound


@slotted(frozen=False, eq=False)
class _Setting:
    propagate: bool = False
    meta: bool = True
    data_ptr: bool = True


_setting = _Setting()


def set_real_propagation(on: bool) -> None:
    """Whether modes that are made from now on keep the values of what their tensors were made from."""
    _setting.propagate = bool(on)


def real_propagation() -> bool:
    """What :func:`set_real_propagation` said last; False at the start."""
    return _setting.propagate


def set_allow_meta(on: bool) -> None:
    """Whether modes may make tensors of the device meta."""
    _setting.meta = bool(on)


def allow_meta() -> bool:
    """What :func:`set_allow_meta` said last; True at the start."""
    return _setting.meta


def set_allow_data_ptr(on: bool) -> None:
    """Whether ``data_ptr()`` of a fake tensor is 0 where nothing is traced; an error otherwise."""
    _setting.data_ptr = bool(on)


def allow_data_ptr() -> bool:
    """What :func:`set_allow_data_ptr` said last; True at the start."""
    return _setting.data_ptr


class Constants:
    """The constants of a mode, by the fake storage they lie in."""

    def __init__(self):
        self._by_storage: Any = weakref.WeakKeyDictionary()

    def __bool__(self) -> bool:
        return len(self._by_storage) > 0

    def add(self, fake, value) -> None:
        """``fake`` is the constant ``value``."""
        fake.constant = value
        self._by_storage.setdefault(fake._storage, []).append(weakref.ref(fake))

    def forget(self, storage) -> None:
        """What lies in ``storage`` is unknown from now on."""
        for reference in self._by_storage.pop(storage, ()):
            fake = reference()
            if fake is not None:
                fake.constant = None


def _replaced(x, name):
    if isinstance(x, _C.TensorBase):
        return getattr(x, name, x) if getattr(x, "_payload", None) is not None else x
    if isinstance(x, (list, tuple)):
        return [_replaced(y, name) for y in x]
    return x


def run_for_real(func, args, kwargs, name: str):
    """``func`` on the real tensors that the fake ones hold under ``name``, without any mode."""
    args = [_replaced(x, name) for x in args]
    kwargs = {k: _replaced(v, name) for k, v in kwargs.items()}
    with modes.disabled("dispatch"), _C.Guard(grad_enabled=False):
        return func(*args, **kwargs)
