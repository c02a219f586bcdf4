"""Normalisation over the features of each sample: LayerNorm, RMSNorm, GroupNorm."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from flambeau.base.device import Device
from flambeau.base.dtypes import DType
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules._made import layer

__all__ = [
    "CrossMapLRN2d",
    "GroupNorm",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]

LocalResponseNorm = layer(
    "LocalResponseNorm",
    lambda input, size, alpha, beta, k: F.local_response_norm(input, size, alpha, beta, k),
    "size, alpha=1e-4, beta=0.75, k=1.0",
    shown="*size alpha beta k",
    doc="""x / (k + alpha mean of squares over neighbouring channels)^beta.

    >>> torch.nn.LocalResponseNorm(2)(torch.ones(1, 4, 5)).shape
    torch.Size([1, 4, 5])
    """,
)


CrossMapLRN2d = layer(
    "CrossMapLRN2d",
    lambda input, size, alpha, beta, k: F.local_response_norm(input, size, alpha, beta, k),
    "size, alpha=1e-4, beta=0.75, k=1",
    "LocalResponseNorm of (N, C, H, W) under its old name.",
    shown="*size alpha beta k",
)


empty = function("empty")


def _affine(module: Module, shape, weight: bool, bias: bool | None, device, dtype) -> None:
    """The factor and the term of each feature, registered as None where they aren't wanted; no term at all with ``bias=None``."""
    for name, wanted in (("weight", weight), ("bias", bias)):
        if wanted is not None:
            new = Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None
            module.register_parameter(name, new)


def _reset_affine(module: Module) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if getattr(module, "bias", None) is not None:
        init.zeros_(module.bias)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last ``len(normalized_shape)`` dimensions (biased variance).

    >>> torch.nn.LayerNorm(3)(torch.tensor([1., 2., 3.])).detach()
    tensor([-1.2247,  0.0000,  1.2247])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _affine(self, self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last ``len(normalized_shape)`` dimensions.

    >>> torch.nn.RMSNorm(2)(torch.tensor([3., 4.])).detach()
    tensor([0.8485, 1.1314])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _affine(self, self.normalized_shape, elementwise_affine, None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalises each of ``num_groups`` groups of channels of (N, C, *).

    >>> torch.nn.GroupNorm(2, 6)(torch.ones(4, 6, 8)).shape
    torch.Size([4, 6, 8])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        _affine(self, num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"
