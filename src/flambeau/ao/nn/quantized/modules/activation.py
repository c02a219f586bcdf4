"""Activations on codes. Those that have bounds of their own, or none that the input hasn't, are functions of ``nn`` and need no layer here."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.core.operator import namespace
from flambeau.ops.affine.tracing import code_parameters

from .utils import output_qparams

__all__ = ["ELU", "Hardswish", "LeakyReLU", "ReLU6", "Sigmoid", "Softmax"]

ops = namespace("quantized")


class ReLU6(nn.ReLU):
    """``min(max(x, 0), 6)``, quantised as the input is."""

    def forward(self, input):
        return ops.relu6.default(input, self.inplace)

    def _get_name(self):
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of a ``ReLU6``."""
        return ReLU6(mod.inplace)


class _Scaled:
    """``scale`` and ``zero_point`` are buffers, those of the result."""

    def _scaled(self, scale, zero_point):
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("zero_point", torch.tensor(zero_point))

    def _qparams(self):
        return code_parameters(self.scale, self.zero_point)

    def _get_name(self):
        return f"Quantized{type(self).__name__}"


class Hardswish(_Scaled, nn.Hardswish):
    """Hardswish, quantised by ``scale`` and ``zero_point``."""

    def __init__(self, scale, zero_point, device=None, dtype=None):
        nn.Hardswish.__init__(self)
        self._scaled(scale, zero_point)

    def forward(self, input):
        return ops.hardswish.default(input, *self._qparams())

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of an observed ``Hardswish``."""
        return Hardswish(*output_qparams(mod))


class ELU(_Scaled, nn.ELU):
    """ELU, quantised by ``scale`` and ``zero_point``."""

    def __init__(self, scale, zero_point, alpha=1.0):
        nn.ELU.__init__(self, alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input):
        return ops.elu.default(input, *self._qparams(), self.alpha)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of an observed ``ELU``."""
        return ELU(*output_qparams(mod), mod.alpha)


class LeakyReLU(_Scaled, nn.LeakyReLU):
    """Leaky ReLU, quantised by ``scale`` and ``zero_point``."""

    def __init__(self, scale, zero_point, negative_slope=1e-2, inplace=False, device=None, dtype=None):
        nn.LeakyReLU.__init__(self, negative_slope, inplace)
        self._scaled(scale, zero_point)

    def forward(self, input):
        return ops.leaky_relu.default(input, self.negative_slope, self.inplace, *self._qparams())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed ``LeakyReLU``."""
        return cls(*output_qparams(mod), mod.negative_slope, mod.inplace)


class Sigmoid(_Scaled, nn.Sigmoid):
    """Sigmoid, quantised by ``output_scale`` and ``output_zero_point``."""

    def __init__(self, output_scale, output_zero_point):
        nn.Sigmoid.__init__(self)
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input):
        return ops.sigmoid.default(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed ``Sigmoid``."""
        return cls(*output_qparams(mod))


class Softmax(_Scaled, nn.Softmax):
    """Softmax along ``dim``, quantised by ``scale`` and ``zero_point``."""

    def __init__(self, dim=None, scale=1.0, zero_point=0):
        nn.Softmax.__init__(self, dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input):
        dim = -1 if self.dim is None else self.dim
        return ops.softmax.default(input, dim, *self._qparams())

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of an observed ``Softmax``."""
        return Softmax(mod.dim, *output_qparams(mod))
