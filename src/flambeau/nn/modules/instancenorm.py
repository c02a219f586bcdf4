"""Instance and local response normalisation."""

from __future__ import annotations

from flambeau.base.device import Device
from flambeau.base.dtypes import DType
from flambeau.core.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.batchnorm import _NormBase
from flambeau.nn.modules.lazy import LazyNormMixin, lazy_layer

__all__ = [
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """Each channel of each sample by its own statistics (Ulyanov et al., arXiv:1607.08022); the batch may be absent."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        x = input.unsqueeze(0) if input.dim() == self.ranks[0] else input
        if x.size(1) != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={input.dim() - self.ranks[0]} to match num_features ({self.num_features}), but got: {x.size(1)}."
            )
        out = F.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out.squeeze(0) if x is not input else out


class InstanceNorm1d(_InstanceNorm):
    """(N, C, L) or (C, L).

    >>> torch.nn.InstanceNorm1d(2)(torch.ones(1, 2, 3)).sum().item()
    0.0
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """(N, C, H, W) or (C, H, W).

    >>> torch.nn.InstanceNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """(N, C, D, H, W) or (C, D, H, W).

    >>> torch.nn.InstanceNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    ranks = (4, 5)


LazyInstanceNorm1d = lazy_layer(LazyNormMixin, InstanceNorm1d, "features")
LazyInstanceNorm2d = lazy_layer(LazyNormMixin, InstanceNorm2d, "features")
LazyInstanceNorm3d = lazy_layer(LazyNormMixin, InstanceNorm3d, "features")
