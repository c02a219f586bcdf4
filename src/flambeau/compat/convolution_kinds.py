"""``torch._C._ConvBackend``: the kinds of convolutions that PyTorch's kernels are for. Here one kernel computes them all, so a kind only says what
the arguments ask for: transposed, dilated, of how many dimensions, or empty.
"""

from __future__ import annotations

import enum

__all__ = ["ConvBackend", "select_conv_backend"]

ConvBackend = enum.Enum(
    "_ConvBackend",
    "CudaDepthwise2d CudaDepthwise3d Cudnn CudnnTranspose Empty Miopen MiopenDepthwise MiopenTranspose Mkldnn MkldnnTranspose MkldnnEmpty "
    "NnpackSpatial Overrideable Slow2d Slow3d SlowDilated2d SlowDilated3d SlowTranspose2d SlowTranspose3d Winograd3x3Depthwise Xnnpack2d Mps "
    "MpsTranspose",
)


def select_conv_backend(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, bias_sizes=None
) -> ConvBackend:
    """The kind of ``aten.convolution`` of these arguments, as PyTorch names it where oneDNN is off. RuntimeError for other than 1 to 3 dimensions."""
    dims = weight.dim() - 2
    if dims not in (1, 2, 3):
        raise RuntimeError(f"unsupported ConvNd parameters: a weight of {weight.dim()} dimensions")
    if input.size(0) == 0 or input.size(1) == 0:
        return ConvBackend.Empty
    n = max(dims, 2)
    if transposed:
        return ConvBackend[f"SlowTranspose{n}d"]
    if any(d != 1 for d in dilation):
        return ConvBackend[f"SlowDilated{n}d"]
    return ConvBackend[f"Slow{n}d"]
