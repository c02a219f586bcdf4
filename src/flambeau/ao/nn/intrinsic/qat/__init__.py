"""Fused layers for training with fake quantisation."""

from flambeau.ao.nn.intrinsic.qat.fused import *  # noqa: F403
from flambeau.ao.nn.intrinsic.qat.fused import __all__ as _names

__all__ = list(_names)
