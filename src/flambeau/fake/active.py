"""Which FakeTensorMode a program is in, and which one its tensors are of."""

from __future__ import annotations

from .. import _C
from ..base.pytree import tree_leaves
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost FakeTensorMode that is on; None when there is none."""
    return next((mode for mode in reversed(_C.stack("dispatch_modes")) if isinstance(mode, FakeTensorMode)), None)


def detect_fake_mode(inputs=None) -> FakeTensorMode | None:
    """The one mode of the fake tensors among ``inputs`` and of the block that runs; None when there is none. AssertionError for two."""
    found = active_fake_mode()
    for x in tree_leaves(inputs):
        if isinstance(x, FakeTensor) and x.fake_mode is not found:
            if found is not None:
                raise AssertionError("fake mode from the inputs doesn't match that of the active context")
            found = x.fake_mode
    return found
