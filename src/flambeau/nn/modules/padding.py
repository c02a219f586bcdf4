"""Padding layers: constant, zero, reflection, replication and circular, in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.nn import functional as F
from flambeau.nn.modules._tuples import _ntuple

__all__ = []


class _Pad(Module):
    """Pads the last dimensions of its input. ``padding``: one number, or (before, after) for each dimension, last first."""

    mode = "constant"
    dimensions: int

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self.dimensions)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    """Pads with the elements of the other end. ``padding``: one number, or (before, after) for each dimension, last first; at most its size."""

    def forward(self, input: Tensor) -> Tensor:
        least = self.dimensions + 1
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ConstantPad(_Pad):
    """Pads with ``value``. ``padding``: one number, or (before, after) for each dimension, last first; negative numbers cut."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """Pads with 0. ``padding``: one number, or (before, after) for each dimension, last first; negative numbers cut."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


for _kind, _mode, _base in (
    ("ConstantPad", "constant", _ConstantPad),
    ("ZeroPad", "constant", _ZeroPad),
    ("ReflectionPad", "reflect", _Pad),
    ("ReplicationPad", "replicate", _Pad),
    ("CircularPad", "circular", _CircularPad),
):
    for _n in (1, 2, 3):
        _name = f"{_kind}{_n}d"
        globals()[_name] = type(
            _name, (_base,), {"mode": _mode, "dimensions": _n, "__module__": __name__, "__doc__": _base.__doc__}
        )
        __all__.append(_name)
