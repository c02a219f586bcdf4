"""How a program says with what its layers would be quantised: pairs of constructors, and constructors with arguments. Nothing quantises modules here,
so the constructors themselves refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.public import public_in

__all__ = ["FakeQuantize", "FakeQuantizeBase", "QConfig"]


@public_in("ao.quantization.qconfig")
class QConfig(NamedTuple):
    """The constructors of what quantises a layer's results (``activation``) and its weights."""

    activation: Callable[..., Any]
    weight: Callable[..., Any]


class _Partial:
    """A constructor with some of its arguments; ``with_args`` adds to them."""

    def __init__(self, cls: Callable[..., Any], given: dict[str, Any]):
        self.cls, self.given = cls, given

    def __call__(self, *args, **kwargs):
        return self.cls(*args, **{**self.given, **kwargs})

    def with_args(self, **kwargs) -> _Partial:
        return _Partial(self.cls, {**self.given, **kwargs})


@public_in("ao.quantization.fake_quantize")
class FakeQuantizeBase:
    """Can't be made: modules aren't quantised in flambeau."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__}: modules aren't quantised in flambeau")

    @classmethod
    def with_args(cls, **kwargs) -> _Partial:
        """A constructor that gives these arguments; ``with_args`` of it adds more."""
        return _Partial(cls, kwargs)


@public_in("ao.quantization.fake_quantize")
class FakeQuantize(FakeQuantizeBase):
    """Can't be made: modules aren't quantised in flambeau."""
