"""Layers for training with fake quantisation: floats, with weights rounded to what codes stand for."""

from flambeau.ao.nn.qat.modules.layers import Conv1d, Conv2d, Conv3d, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]
