"""What a hook may give back in place of a gradient: a tensor of the same dtype, layout, kind of device and shape."""

from __future__ import annotations

from ..base import shapes
from ..core.conversion import type_
from ..core.tensor import Tensor

__all__ = ["check_count", "check_result"]


def _name(hook) -> str:
    return getattr(hook, "__name__", "<unknown>")


def check_result(hook, before, got) -> None:
    """TypeError or RuntimeError where ``got`` can't replace the gradient ``before``, which may be None."""
    if not isinstance(got, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{_kind(got)}'")
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if got._dtype is not before._dtype or got.layout is not before.layout or got._device.type != before._device.type:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value (was {_type(before)} got {_type(got)})")
    if not shapes.same_shape(got._shape, before._shape):
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")


def check_count(hook, got, expected: int) -> None:
    """TypeError or RuntimeError where ``got``, what a hook of a node returned, isn't a tuple of so many gradients."""
    if not isinstance(got, tuple):
        raise TypeError(f"expected tuple, but hook returned '{_kind(got)}'")
    if len(got) != expected:
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(got)}, but expected {expected})"
        )


def _kind(value) -> str:
    own = type(value)
    return own.__qualname__ if own.__module__ in ("builtins", "flambeau") else f"{own.__module__}.{own.__qualname__}"


def _type(tensor) -> str:
    where = tensor._device.type
    return type_(tensor) if where in ("cpu", "cuda") else f"{type_(tensor)} on {where}"
