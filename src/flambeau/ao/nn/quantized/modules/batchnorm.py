"""Batch norm on codes, by running statistics."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic as nni
from flambeau.core.operator import namespace
from flambeau.ops.affine.tracing import code_parameters

from .utils import output_qparams

__all__ = ["BatchNorm2d", "BatchNorm3d"]

ops = namespace("quantized")


class _BatchNorm:
    """Codes (N, C, *sizes), normalised by running statistics, to codes with ``scale`` and ``zero_point`` (buffers)."""

    _relu = False

    def _scaled(self):
        self.register_buffer("scale", torch.tensor(1.0))
        self.register_buffer("zero_point", torch.tensor(0))

    def forward(self, input):
        self._check_input_dim(input)
        found = (self.weight, self.bias, self.running_mean, self.running_var, self.eps)
        made = ops.batch_norm.default(input, *found, *code_parameters(self.scale, self.zero_point))
        return torch.relu(made) if self._relu else made

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed batch norm, or one with a ReLU."""
        scale, zero_point = output_qparams(mod)
        norm = mod[0] if isinstance(mod, nni._FusedModule) else mod
        made = cls(norm.num_features, norm.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(norm, name))
        made.scale, made.zero_point = torch.tensor(scale), torch.tensor(zero_point)
        return made.eval()


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    __doc__ = _BatchNorm.__doc__

    def __init__(self, num_features, eps=1e-5, momentum=0.1, device=None, dtype=None):
        nn.BatchNorm2d.__init__(self, num_features, eps, momentum, device=device, dtype=dtype)
        self._scaled()


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    __doc__ = _BatchNorm.__doc__

    def __init__(self, num_features, eps=1e-5, momentum=0.1, device=None, dtype=None):
        nn.BatchNorm3d.__init__(self, num_features, eps, momentum, device=device, dtype=dtype)
        self._scaled()
