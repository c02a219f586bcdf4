"""What layers on codes share: weights of codes, and the scale and zero point of results."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn

__all__ = ["ScaledModule", "WeightedQuantizedModule", "output_qparams", "quantized_weight"]


def quantized_weight(weight, observer, dtype=torch.qint8):
    """``weight`` (floats) as codes of ``dtype``, by the observer, which has looked at it. AssertionError where it is for another dtype."""
    if observer.dtype != dtype:
        raise AssertionError(f"Weight observer must have dtype {dtype}, got {observer.dtype}")
    scale, zero_point = observer.calculate_qparams()
    if observer.qscheme is torch.per_channel_affine_float_qparams:
        return torch.quantize_per_channel(weight.detach(), scale.float(), zero_point.float(), observer.ch_axis, dtype)
    if scale.numel() > 1 or observer.qscheme in (torch.per_channel_affine, torch.per_channel_symmetric):
        return torch.quantize_per_channel(
            weight.detach(), scale.double(), zero_point.long(), observer.ch_axis, torch.qint8
        )
    return torch.quantize_per_tensor(weight.detach(), float(scale), int(zero_point), torch.qint8)


def observed_weight(mod, weight):
    """The weight of an observed layer as qint8: by its fake quantisation, or by an observer of its configuration."""
    observer = getattr(mod, "weight_fake_quant", None)
    if observer is None:
        observer = mod.qconfig.weight()
        observer(weight)
    else:
        observer.activation_post_process(weight.detach())
    return quantized_weight(weight, observer)


def output_qparams(mod) -> tuple[float, int]:
    """(scale, zero point) that the observer behind ``mod`` found. AssertionError where there is none."""
    observer = getattr(mod, "activation_post_process", None)
    if observer is None:
        raise AssertionError(
            f"{type(mod).__name__} has no observer: call prepare() on the model, and run data through it, before convert()"
        )
    scale, zero_point = observer.calculate_qparams()
    return float(scale), int(zero_point)


class ScaledModule(nn.Module):
    """A module with ``scale`` and ``zero_point`` of its results, numbers that are saved as tensors."""

    scale: float
    zero_point: int

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}scale"] = torch.tensor(self.scale)
        destination[f"{prefix}zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        super()._load_from_state_dict(state_dict, prefix, *args)


class WeightedQuantizedModule(ScaledModule):
    """A layer with ``weight()`` and ``bias()``."""

    def weight(self):
        """The weight, of qint8."""
        return self._weight_bias()[0]

    def bias(self):
        """The bias, of floats, or None."""
        return self._weight_bias()[1]
