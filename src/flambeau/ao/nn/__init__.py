"""Layers that quantisation puts in the places of others: fused (``intrinsic``), for training (``qat``), on codes (``quantized``)."""

from flambeau.ao.nn import intrinsic, qat, quantized

__all__ = ["intrinsic", "qat", "quantized"]
