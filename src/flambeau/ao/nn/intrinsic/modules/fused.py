"""Layers that follow one another as one module: what ``fuse_modules`` makes, and quantisation treats as a whole."""

from __future__ import annotations

from flambeau import nn

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d",
    "ConvReLU2d", "ConvReLU3d", "LinearReLU",
]  # fmt: skip


class _FusedModule(nn.Sequential):
    """A sequence of layers of the types ``_types``. AssertionError for others."""

    _types: tuple = ()

    def __init__(self, *layers):
        if len(layers) != len(self._types) or not all(isinstance(m, t) for m, t in zip(layers, self._types)):
            raise AssertionError(
                f"{type(self).__name__} takes modules of types {[t.__name__ for t in self._types]}, got {[type(m).__name__ for m in layers]}"
            )
        super().__init__(*layers)


class ConvReLU1d(_FusedModule):
    """Conv1d, ReLU."""

    _types = (nn.Conv1d, nn.ReLU)


class ConvReLU2d(_FusedModule):
    """Conv2d, ReLU."""

    _types = (nn.Conv2d, nn.ReLU)


class ConvReLU3d(_FusedModule):
    """Conv3d, ReLU."""

    _types = (nn.Conv3d, nn.ReLU)


class LinearReLU(_FusedModule):
    """Linear, ReLU."""

    _types = (nn.Linear, nn.ReLU)


class ConvBn1d(_FusedModule):
    """Conv1d, BatchNorm1d."""

    _types = (nn.Conv1d, nn.BatchNorm1d)


class ConvBn2d(_FusedModule):
    """Conv2d, BatchNorm2d."""

    _types = (nn.Conv2d, nn.BatchNorm2d)


class ConvBn3d(_FusedModule):
    """Conv3d, BatchNorm3d."""

    _types = (nn.Conv3d, nn.BatchNorm3d)


class ConvBnReLU1d(_FusedModule):
    """Conv1d, BatchNorm1d, ReLU."""

    _types = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU)


class ConvBnReLU2d(_FusedModule):
    """Conv2d, BatchNorm2d, ReLU."""

    _types = (nn.Conv2d, nn.BatchNorm2d, nn.ReLU)


class ConvBnReLU3d(_FusedModule):
    """Conv3d, BatchNorm3d, ReLU."""

    _types = (nn.Conv3d, nn.BatchNorm3d, nn.ReLU)


class BNReLU2d(_FusedModule):
    """BatchNorm2d, ReLU."""

    _types = (nn.BatchNorm2d, nn.ReLU)


class BNReLU3d(_FusedModule):
    """BatchNorm3d, ReLU."""

    _types = (nn.BatchNorm3d, nn.ReLU)
