"""The linear layer with weights of codes, on floats."""

from __future__ import annotations

import flambeau as torch
from flambeau.ao.nn import intrinsic as nni
from flambeau.ao.nn import quantized as nnq
from flambeau.ao.nn.quantized.modules.utils import observed_weight
from flambeau.core.operator import namespace

__all__ = ["Linear", "LinearReLU"]

ops = namespace("quantized")


class Linear(nnq.Linear):
    """``x W^T + b`` of floats (..., in_features): floats (..., out_features). Weights are qint8."""

    def forward(self, x):
        # Seven bits of the input, as PyTorch's layer takes.
        return ops._linear_dynamic.default(x.float(), *self._weight_bias(), True, self._relu).to(x.dtype)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={torch.qint8}, qscheme={self.weight().qscheme()}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of a layer with a ``qconfig``."""
        layer = mod[0] if isinstance(mod, nni.LinearReLU) else mod
        layer.qconfig = mod.qconfig
        made = cls(layer.in_features, layer.out_features)
        made.set_weight_bias(
            observed_weight(layer, layer.weight.float()), None if layer.bias is None else layer.bias.detach().float()
        )
        return made


class LinearReLU(Linear):
    """Linear and ReLU."""

    _relu = True

    def _get_name(self):
        return "DynamicQuantizedLinearReLU"
