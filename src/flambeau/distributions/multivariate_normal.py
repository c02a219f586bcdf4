"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..base.shapes import Size, broadcast_shapes
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["MultivariateNormal"]

_cholesky, _eye, _normal, _solve = map(function, ("linalg_cholesky", "eye", "randn", "linalg_solve_triangular"))


class MultivariateNormal(Distribution):
    """N(loc, covariance), given by the covariance, the precision or the covariance's Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {k: v for k, v in given.items() if v is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = _cholesky(covariance_matrix)
        else:
            flipped = _cholesky(precision_matrix.flip((-2, -1))).flip((-2, -1)).mT
            self._unbroadcasted_scale_tril = _solve(
                flipped, _eye(loc.shape[-1], dtype=loc.dtype, device=loc.device), upper=False
            )

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        out = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = Size(batch_shape)
        out.loc = self.loc.expand((*batch_shape, *self.event_shape))
        out._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                out.__dict__[name] = self.__dict__[name].expand((*batch_shape, *self.event_shape, *self.event_shape))
        Distribution.__init__(out, batch_shape, self.event_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    def _whole(self, matrix):
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        return self._whole(lower @ lower.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        inverse = _solve(lower, _eye(lower.shape[-1], dtype=lower.dtype, device=lower.device), upper=False)
        return self._whole(inverse.mT @ inverse)

    mean = mode = property(lambda self: self.loc)
    variance = property(
        lambda self: self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)
    )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ eps.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        d = value - self.loc
        white = _solve(self._unbroadcasted_scale_tril, d.unsqueeze(-1), upper=False).squeeze(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + white.pow(2).sum(-1)) - self._half_log_det()

    def entropy(self) -> Tensor:
        out = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return out if len(self._batch_shape) == 0 else out.expand(self._batch_shape)
