"""Layers that compare two tensors: distances and cosine similarity."""

from __future__ import annotations

from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.nn import functional as F
from flambeau.nn.modules._made import layer

__all__ = [
    "CosineSimilarity",
    "PairwiseDistance",
]


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        # Not called p: whole modules in files have the attributes that PyTorch's have.
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


CosineSimilarity = layer(
    "CosineSimilarity",
    lambda x1, x2, dim, eps: F.cosine_similarity(x1, x2, dim, eps),
    "dim=1, eps=1e-8",
    """Cosine of the angle along ``dim``.

    >>> torch.nn.CosineSimilarity(dim=0)(torch.tensor([1., 0.]), torch.tensor([1., 1.]))
    tensor(0.7071)
    """,
    inputs="x1, x2",
    shown="",
)
