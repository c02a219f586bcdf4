"""Layers with weights of codes that take and give floats: a scale for the input is chosen at each call."""

from flambeau.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from flambeau.ao.nn.quantized.dynamic.modules import __all__ as __all__
