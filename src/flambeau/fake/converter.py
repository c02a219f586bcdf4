"""What tools ask a FakeTensorMode for besides fake tensors: its converter, copies that keep tensors fake, code that must see no fake mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import _C
from ..base.pytree import tree_leaves
from ..core import modes
from ..core.modes import BaseTorchFunctionMode
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeCopyMode", "maybe_get_fake_mode", "unset_fake_temporarily"]


class FakeCopyMode(BaseTorchFunctionMode):
    """While it is on, ``copy.deepcopy`` of a real tensor gives its fake twin in ``fake_mode``."""

    def __init__(self, fake_mode: FakeTensorMode):
        super().__init__()
        self.fake_mode = fake_mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name == "clone" and args and isinstance(args[0], _C.TensorBase):
            return func(self.fake_mode.from_tensor(args[0]), **(kwargs or {}))
        if name == "__deepcopy__" and len(args) == 2:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
            return memo[id(tensor)]
        return super().__torch_function__(func, types, args, kwargs)


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """No FakeTensorMode is on within the block; yields the innermost that was. Other modes stay."""
    with modes.without(FakeTensorMode) as off:
        yield off[-1] if off else None


def maybe_get_fake_mode(value: Any) -> FakeTensorMode | None:
    """The mode of the first fake tensor in ``value``, None when there is none."""
    return next((x.fake_mode for x in tree_leaves(value) if isinstance(x, FakeTensor)), None)
