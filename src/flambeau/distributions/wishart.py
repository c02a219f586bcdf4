"""The Wishart distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from ..base.dtypes import bool_, finfo
from ..base.shapes import Size, broadcast_shapes
from ..core.bindings import function
from ..core.tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .constraints import Constraint
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["Wishart"]

_arange, _cholesky, _cholesky_inverse, _digamma = map(
    function, ("arange", "linalg_cholesky", "cholesky_inverse", "digamma")
)
_mvlgamma, _ones, _randn, _tril_indices = map(function, ("mvlgamma", "ones", "randn", "tril_indices"))
_where = function("where")


class Wishart(Distribution):
    """Of X = sum of ``df`` outer products of N(0, V) vectors; V by itself, its inverse or its Cholesky factor. Draws by Bartlett's
    decomposition (M. S. Bartlett, "On the theory of statistical regression", 1933)."""

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {k: v for k, v in given.items() if v is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        n = matrix.shape[-1]
        (df,) = broadcast_all(df) if not hasattr(df, "dim") else (df,)
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        self.df = df.to(matrix.dtype).expand(batch)
        if bool((self.df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        self.__dict__[name] = matrix.expand((*batch, n, n))
        if name == "scale_tril":
            self._lower = matrix
        else:
            self._lower = _cholesky(matrix if name == "covariance_matrix" else _cholesky_inverse(_cholesky(matrix)))
        self._lower = self._lower.expand((*batch, n, n))
        super().__init__(batch, (n, n), validate_args=validate_args)
        steps = self.df.unsqueeze(-1) - _arange(n, dtype=self.df.dtype, device=self.df.device)
        self._chi2 = Chi2(steps, validate_args=False)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        names = ("df", "_lower", "covariance_matrix", "precision_matrix", "scale_tril")
        out = self._expanded(batch_shape, names, self._event_shape, _instance)
        out._chi2 = self._chi2.expand(Size((*batch_shape, self._event_shape[0])))
        return out

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._lower

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return self._lower @ self._lower.mT

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return _cholesky_inverse(self._lower)

    @property
    def mean(self) -> Tensor:
        return self.df.view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return _where(factor <= 0, math.nan, factor).view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self.df.view(*self._batch_shape, 1, 1) * (v.pow(2) + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None) -> Tensor:
        """Draws of the shape ``sample_shape`` and the batch's. Singular ones are drawn anew, at most ``max_try_correction`` times (10).

        NOTE: PyTorch draws all samples and then those again that are definite, which is all of them as a rule; so for the same numbers of
        a seed the first draw is thrown away here too."""
        sample = self._drawn(Size(tuple(sample_shape)))
        again = _ones(tuple(sample_shape), dtype=bool_, device=sample.device)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            drawn = self._drawn(Size((int(again.sum()),)))
            sample = sample.index_put((again,), drawn)
            singular = ~self.support.check(drawn)
            if self._batch_shape:
                singular = singular.flatten(1).any(1)
            if not bool(singular.any()):
                break
            again = again.index_put((again.clone(),), singular)
        return sample

    def _drawn(self, shape):
        n = self._event_shape[0]
        roots = self._chi2.rsample(shape).sqrt().clamp(min=finfo(self._lower.dtype).eps)
        below = _randn((*shape, *self._batch_shape, n * (n - 1) // 2), dtype=roots.dtype, device=roots.device)
        rows, columns = _tril_indices(n, n, -1)
        noise = roots.diag_embed()
        noise[..., rows, columns] = below
        half = self._lower @ noise
        return half @ half.mT

    def _half_log_det(self):
        return self._lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[0]
        logdet = 2 * _cholesky(value).diagonal(dim1=-2, dim2=-1).log().sum(-1)
        inverse = (self.precision_matrix @ value).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -nu * (p * math.log(2) / 2 + self._half_log_det())
            - _mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * logdet
            - inverse / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[0]
        digammas = sum(_digamma((nu - k) / 2) for k in range(p))
        return (
            (p + 1) * (p * math.log(2) / 2 + self._half_log_det())
            + _mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * digammas
            + nu * p / 2
        )
