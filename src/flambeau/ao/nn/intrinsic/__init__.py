"""Layers that follow one another as one module: ``qat`` has their forms for training, ``quantized`` those on codes."""

from flambeau.ao.nn.intrinsic.modules.fused import *  # noqa: F403
from flambeau.ao.nn.intrinsic.modules.fused import __all__ as _names
from flambeau.ao.nn.intrinsic.modules.fused import _FusedModule  # noqa: F401

__all__ = list(_names)
