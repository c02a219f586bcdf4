"""Which sizes of a tensor become symbols when it is made fake: ``fake_mode.from_tensor(t, symbolic_context=StatelessSymbolicContext(...))``."""

from __future__ import annotations

import enum
from typing import Any

from .public import public_in

__all__ = ["DimDynamic", "StatelessSymbolicContext", "SymbolicContext"]


class DimDynamic(enum.Enum):
    """How a size is treated: a symbol of its own, one shared with equal sizes, or the number it is."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2


@public_in("fx.experimental.symbolic_shapes")
class SymbolicContext:
    """Called with a dimension: keywords of ``ShapeEnv.create_size``, or None for a size that stays a number."""

    def __call__(self, dim: int) -> dict[str, Any] | None:
        raise NotImplementedError(f"{type(self).__name__} must say how sizes are treated")


@public_in("fx.experimental.symbolic_shapes")
class StatelessSymbolicContext(SymbolicContext):
    """One :class:`DimDynamic` for each dimension. NotImplementedError for constraints, which torch.export's ``dynamic_shapes`` states."""

    def __init__(self, dynamic_sizes: list[DimDynamic], constraint_sizes: list | None = None):
        if any(c is not None for c in constraint_sizes or ()):
            raise NotImplementedError(
                "StatelessSymbolicContext: constraint_sizes are not built; use dynamic_shapes of torch.export"
            )
        self.dynamic_sizes, self.constraint_sizes = list(dynamic_sizes), constraint_sizes

    def __call__(self, dim: int) -> dict[str, Any] | None:
        how = self.dynamic_sizes[dim]
        return None if how is DimDynamic.STATIC else {"duck": how is DimDynamic.DUCK}
