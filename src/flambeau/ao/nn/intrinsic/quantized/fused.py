"""Fused layers on codes: what is negative is kept at the code of 0."""

from __future__ import annotations

from flambeau.ao.nn import quantized as nnq

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]


class LinearReLU(nnq.Linear):
    """Linear and ReLU."""

    _relu = True

    def _get_name(self):
        return "QuantizedLinearReLU"


class ConvReLU1d(nnq.Conv1d):
    """Conv1d and ReLU."""

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU1d"


class ConvReLU2d(nnq.Conv2d):
    """Conv2d and ReLU."""

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU2d"


class ConvReLU3d(nnq.Conv3d):
    """Conv3d and ReLU."""

    _relu = True

    def _get_name(self):
        return "QuantizedConvReLU3d"


class BNReLU2d(nnq.BatchNorm2d):
    """BatchNorm2d and ReLU."""

    _relu = True

    def _get_name(self):
        return "QuantizedBNReLU2d"


class BNReLU3d(nnq.BatchNorm3d):
    """BatchNorm3d and ReLU."""

    _relu = True

    def _get_name(self):
        return "QuantizedBNReLU3d"
