"""Which FakeTensorMode a program is in, and which one its tensors are of."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from .. import _C
from ..base.pytree import tree_leaves
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["active_fake_mode", "detect_fake_mode", "handing_over"]


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost FakeTensorMode that is on; None when there is none."""
    return next((mode for mode in reversed(_C.stack("dispatch_modes")) if isinstance(mode, FakeTensorMode)), None)


class _Capture(threading.local):
    mode: FakeTensorMode | None = None


_capture = _Capture()


@contextlib.contextmanager
def handing_over(mode: FakeTensorMode) -> Iterator[None]:
    """A graph that was captured in ``mode`` is handed to a backend, which may ask for the mode though it is off."""
    before, _capture.mode = _capture.mode, mode
    try:
        yield
    finally:
        _capture.mode = before


def detect_fake_mode(inputs=None) -> FakeTensorMode | None:
    """The one mode of the fake tensors among ``inputs`` and of the block that runs (in a backend: of the graph that it is given); None when there is
    none. AssertionError for two."""
    found = active_fake_mode() or _capture.mode
    for x in tree_leaves(inputs):
        if isinstance(x, FakeTensor) and x.fake_mode is not found:
            if found is not None:
                raise AssertionError("fake mode from the inputs doesn't match that of the active context")
            found = x.fake_mode
    return found
