"""Operators whose meaning changed: archives say by their version which one they mean (``torch/csrc/jit/operator_upgraders``)."""

from __future__ import annotations

from collections.abc import Callable

from ...core.bindings import function
from . import values
from .resolve import Choice
from .types import INT, TENSOR

__all__ = ["choice", "held", "named"]

_SPACE = "older"
_full_of = function("full")


def _div(x, other, rounding_mode=None):
    """Before version 4 a division of whole numbers cuts the remainder off."""
    whole = not x.is_floating_point() and not x.is_complex()
    if (
        isinstance(other, int)
        or hasattr(other, "is_floating_point")
        and not other.is_floating_point()
        and not other.is_complex()
    ):
        return x.div(other, rounding_mode="trunc") if whole else x.div(other)
    return x.div(other)


def _div_(x, other):
    return x.copy_(_div(x, other))


def _full(size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    """Before version 5 the result is of the default dtype, whatever the value is."""
    value = fill_value if dtype is not None or isinstance(fill_value, complex) else float(fill_value)
    return _full_of(size, value, dtype=values.dtype_of(dtype), device=device)


_OLDER: dict[str, tuple[int, Callable]] = {"div": (4, _div), "div_": (4, _div_), "full": (5, _full)}


def named(version: int, space: str, name: str, args: list, kwargs: dict) -> tuple[str, str]:
    """Where the operator is found that an archive of this version means."""
    below = _OLDER.get(name, (0, None))[0] if space == "aten" else 0
    tensors = bool(args) and (args[0] == TENSOR or name == "full" and args[0].name == "List" and args[0].args[0] == INT)
    return (_SPACE if version < below and tensors and "rounding_mode" not in kwargs else space), name


def held(space: str) -> bool:
    """Whether it is one of these."""
    return space == _SPACE


def choice(name: str) -> Choice:
    """The older operator."""
    return Choice(_OLDER[name][1], TENSOR, {})
