"""Switches of libraries that aren't used here: programs set and read them, and nothing depends on them."""

from __future__ import annotations

from ..base import accelerator

__all__ = ["cudnn", "cufft_plan_cache", "is_built", "matmul"]


def is_built() -> bool:
    """Whether this process has a CUDA device."""
    return accelerator.count() > 0


class _Switches:
    """Attributes that remember what they were set to."""

    def __init__(self, **values):
        self.__dict__.update(values)


matmul = _Switches(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
    fp32_precision="none",
)
cufft_plan_cache = _Switches(size=0, max_size=0)
cudnn = _Switches(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
