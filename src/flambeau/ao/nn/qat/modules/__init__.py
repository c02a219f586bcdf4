"""The layers, under PyTorch's path."""

from flambeau.ao.nn.qat.modules.layers import Conv1d, Conv2d, Conv3d, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]
