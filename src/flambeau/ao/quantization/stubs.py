"""Where floats become codes and codes floats, as modules in a model: placeholders that conversion replaces."""

from __future__ import annotations

from flambeau import nn

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class _Stub(nn.Module):
    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Stub):
    """Observed before conversion, quantises after it; ``qconfig`` as of any module."""


class DeQuantStub(_Stub):
    """Nothing before conversion, dequantises after it."""


class QuantWrapper(nn.Module):
    """``module`` between a :class:`QuantStub` and a :class:`DeQuantStub`."""

    def __init__(self, module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
