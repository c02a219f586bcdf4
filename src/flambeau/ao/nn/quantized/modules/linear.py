"""The linear layer on codes."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic as nni
from flambeau.core.operator import namespace

from .utils import WeightedQuantizedModule, observed_weight, output_qparams

__all__ = ["Linear", "LinearPackedParams"]

ops = namespace("quantized")


class LinearPackedParams(nn.Module):
    """Weight and bias, saved as PyTorch saves them: ``dtype``, and both as a pair ``_packed_params``."""

    _version = 3

    def __init__(self, dtype=torch.qint8):
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(torch.quantize_per_tensor(torch.zeros(1, 1), 1.0, 0, torch.qint8), None)

    def set_weight_bias(self, weight, bias):
        """Take a weight of qint8 and a bias of floats, or None."""
        self._weight, self._bias = weight, bias

    def _weight_bias(self):
        return self._weight, self._bias

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.dtype = state_dict.pop(f"{prefix}dtype")
        self.set_weight_bias(*state_dict.pop(f"{prefix}_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, *args)


class Linear(WeightedQuantizedModule):
    """``x W^T + b`` of codes (..., in_features): codes (..., out_features) with ``scale`` and ``zero_point``. Weights are qint8."""

    _relu = False
    _version = 3

    def __init__(self, in_features, out_features, bias_=True, dtype=torch.qint8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point = 1.0, 0
        self._packed_params = LinearPackedParams(dtype)
        weight = torch.quantize_per_tensor(torch.zeros(out_features, in_features), 1.0, 0, torch.qint8)
        self.set_weight_bias(weight, torch.zeros(out_features) if bias_ else None)

    def set_weight_bias(self, w, b):
        """Take a weight of qint8 and a bias of floats, or None."""
        self._packed_params.set_weight_bias(w, b)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def forward(self, x):
        return ops._linear.default(x, *self._weight_bias(), self.scale, self.zero_point, self._relu)

    def _get_name(self):
        return "QuantizedLinear"

    def __repr__(self):
        # The pair of weight and bias is a module for the names in files alone.
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, zero_point={self.zero_point}, "
            f"qscheme={self.weight().qscheme()}"
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed layer, one with a ReLU, or one trained with fake quantisation."""
        scale, zero_point = output_qparams(mod)
        layer = mod[0] if type(mod) is nni.LinearReLU else mod
        if layer is not mod:
            layer.qconfig = mod.qconfig
        made = cls(layer.in_features, layer.out_features)
        made.set_weight_bias(
            observed_weight(layer, layer.weight.float()), None if layer.bias is None else layer.bias.detach().float()
        )
        made.scale, made.zero_point = scale, zero_point
        return made
