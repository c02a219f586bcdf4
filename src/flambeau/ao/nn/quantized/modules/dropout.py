"""Dropout of codes, which leaves them as they are: layers on codes don't train."""

from flambeau import nn

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """The input."""

    def forward(self, input):
        return input

    def _get_name(self):
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of a ``Dropout``."""
        return cls(mod.p, mod.inplace)
