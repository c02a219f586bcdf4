"""The multivariate normal distribution whose covariance is of low rank plus a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..base.shapes import broadcast_shapes
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["LowRankMultivariateNormal"]

_cholesky, _eye, _randn, _solve = map(function, ("linalg_cholesky", "eye", "randn", "linalg_solve_triangular"))


class LowRankMultivariateNormal(Distribution):
    """N(loc, W W^T + diag(D)) with few columns in W: by the matrix determinant lemma and Woodbury's identity."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.shape[-1:] != (n,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        try:
            batch = broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from e
        self.loc, self.cov_diag = loc.expand((*batch, n)), cov_diag.expand((*batch, n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self._factor, self._diag = cov_factor, cov_diag
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        eye = _eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        self._capacitance = _cholesky(eye + scaled @ cov_factor)
        super().__init__(batch, (n,), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._expanded(batch_shape, ("loc", "cov_factor", "cov_diag"), self._event_shape, _instance)
        out._factor, out._diag, out._capacitance = self._factor, self._diag, self._capacitance
        return out

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        return (self._factor.pow(2).sum(-1) + self._diag).expand(self._batch_shape + self._event_shape)

    def _whole(self, matrix):
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return self._whole(self._factor @ self._factor.mT + self._diag.diag_embed())

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._whole(_cholesky(self._factor @ self._factor.mT + self._diag.diag_embed()))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        half = _solve(self._capacitance, self._factor.mT / self._diag.unsqueeze(-2), upper=False)
        return self._whole(self._diag.reciprocal().diag_embed() - half.mT @ half)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        few = _randn((*shape[:-1], self.cov_factor.shape[-1]), **like)
        each = _randn(shape, **like)
        return self.loc + (self._factor @ few.unsqueeze(-1)).squeeze(-1) + self._diag.sqrt() * each

    def _log_det(self):
        return 2 * self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self._diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        d = value - self.loc
        scaled = d / self._diag
        half = _solve(self._capacitance, self._factor.mT @ scaled.unsqueeze(-1), upper=False).squeeze(-1)
        distance = (d * scaled).sum(-1) - half.pow(2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        out = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return out if len(self._batch_shape) == 0 else out.expand(self._batch_shape)
