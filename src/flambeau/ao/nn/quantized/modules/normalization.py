"""Norms of layers, groups and instances on codes."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.core.operator import namespace
from flambeau.ops.affine.tracing import code_parameters

from .utils import output_qparams

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]

ops = namespace("quantized")


class _Norm:
    """``weight`` and ``bias`` are those of the float layer; ``scale`` and ``zero_point`` (buffers) those of the result."""

    def _take(self, weight, bias, scale, zero_point):
        self.weight, self.bias = weight, bias
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("zero_point", torch.tensor(zero_point))

    def _qparams(self):
        return code_parameters(self.scale, self.zero_point)

    def _get_name(self):
        return f"Quantized{type(self).__name__}"


class LayerNorm(_Norm, nn.LayerNorm):
    """Layer norm of codes over the last dimensions, of sizes ``normalized_shape``."""

    def __init__(
        self,
        normalized_shape,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-5,
        elementwise_affine=True,
        device=None,
        dtype=None,
    ):
        nn.LayerNorm.__init__(self, normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        self._take(weight, bias, scale, zero_point)

    def forward(self, input):
        return ops.layer_norm.default(
            input, list(self.normalized_shape), self.weight, self.bias, self.eps, *self._qparams()
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed ``LayerNorm``."""
        return cls(mod.normalized_shape, mod.weight, mod.bias, *output_qparams(mod), mod.eps, mod.elementwise_affine)


class GroupNorm(_Norm, nn.GroupNorm):
    """Group norm of codes (N, C, *sizes)."""

    def __init__(
        self, num_groups, num_channels, weight, bias, scale, zero_point, eps=1e-5, affine=True, device=None, dtype=None
    ):
        nn.GroupNorm.__init__(self, num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self._take(weight, bias, scale, zero_point)

    def forward(self, input):
        return ops.group_norm.default(input, self.num_groups, self.weight, self.bias, self.eps, *self._qparams())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed ``GroupNorm``."""
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, *output_qparams(mod), mod.eps, mod.affine)


class _InstanceNorm(_Norm):
    """Instance norm of codes (N, C, *sizes)."""

    def __init__(
        self,
        num_features,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
    ):
        super(_Norm, self).__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype
        )
        self._take(weight, bias, scale, zero_point)

    def forward(self, input):
        return ops.instance_norm.default(input, self.weight, self.bias, self.eps, *self._qparams())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed instance norm."""
        return cls(mod.num_features, mod.weight, mod.bias, *output_qparams(mod), mod.eps, mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    __doc__ = _InstanceNorm.__doc__


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    __doc__ = _InstanceNorm.__doc__


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    __doc__ = _InstanceNorm.__doc__
