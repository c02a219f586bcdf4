"""What ``fully_shard`` is told of dtypes and of where shards are kept."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.dtypes import DType

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """``param_dtype``: of the gathered parameters, and so of the computation; ``reduce_dtype``: of the gradients that are reduced; ``output_dtype``:
    of the module's floating results; ``cast_forward_inputs``: whether floating inputs are cast to ``param_dtype``. None: as it is."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards stay on the device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards are kept by the CPU, which is where they are anyway."""

    pin_memory: bool = True
