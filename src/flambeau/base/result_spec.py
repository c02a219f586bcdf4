"""What a native kernel is to make: the tensor that a launch gets memory for."""

from __future__ import annotations

from typing import Any

from .records import slotted

__all__ = ["ResultSpec"]


@slotted
class ResultSpec:
    """A result of a launch. ``shape`` and ``strides``, in elements, are of numbers or expressions of symbols."""

    shape: tuple
    strides: tuple
    dtype: Any
    device: Any
