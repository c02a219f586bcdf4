"""The fused modules, under PyTorch's path."""

from flambeau.ao.nn.intrinsic.modules.fused import *  # noqa: F403
