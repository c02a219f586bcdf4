"""``torch.ao``: quantisation of models, and the layers that it puts in the places of others."""

from flambeau.ao import nn, quantization

__all__ = ["nn", "quantization"]
