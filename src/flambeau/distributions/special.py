"""Less frequent continuous distributions: on the circle, on the unit interval, of tails, and of many correlated variables."""

from __future__ import annotations

import math

from ..autograd.grad_mode import no_grad
from ..base.dtypes import bool_, finfo, float64
from ..base.shapes import Size, broadcast_shapes
from ..core.bindings import function
from . import constraints
from .discrete import _Binary
from .distribution import Distribution, broadcast_all, lazy_property
from .gamma import Chi2

__all__ = ["ContinuousBernoulli", "GeneralizedPareto", "LowRankMultivariateNormal", "VonMises", "Wishart"]

_rand, _randn, _where, _eye, _ones = map(function, ("rand", "randn", "where", "eye", "ones"))
_arange, _tril_indices, _zeros = map(function, ("arange", "tril_indices", "zeros"))
_i0e, _i1e, _mvlgamma, _digamma = map(function, ("special_i0e", "special_i1e", "mvlgamma", "digamma"))
_cholesky, _solve, _cholesky_inverse = map(function, ("linalg_cholesky", "linalg_solve_triangular", "cholesky_inverse"))


class VonMises(Distribution):
    """On the circle: proportional to exp(concentration cos(x - loc)). Draws: Best & Fisher, "Efficient simulation of the von Mises
    distribution", 1979 (rejection from a wrapped Cauchy distribution)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("loc", "concentration"), (), _instance)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 1 - _i1e(self.concentration) / _i0e(self.concentration))  # of the direction

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - (_i0e(k).log() + k)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with no_grad():
            k = self.concentration.to(float64).expand(shape)
            tau = 1 + (1 + 4 * k.pow(2)).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            # For small k the quotient loses its digits; its series begins so.
            r = _where(k < 1e-5, 1 / k + k, (1 + rho.pow(2)) / (2 * rho))
            angle, done = _zeros(shape, dtype=float64), k != k
            while not bool(done.all()):
                u1, u2, u3 = _rand((3, *shape), dtype=float64).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = _where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
            angle = (angle + math.pi + self.loc.to(float64)) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)


class ContinuousBernoulli(_Binary):
    """On [0, 1]: proportional to p^x (1 - p)^(1 - x). Loaiza-Ganem & Cunningham, arXiv:1907.06845. Between ``lims`` series about
    p = 1/2 replace the formulas, which are 0/0 there."""

    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        super().__init__(probs, logits, validate_args=validate_args)
        self._lims = lims
        if probs is not None:
            eps = finfo(self.probs.dtype).eps
            self.probs = self.probs.clamp(eps, 1 - eps)

    def expand(self, batch_shape, _instance=None):
        out = super().expand(batch_shape, _instance)
        out._lims = self._lims
        return out

    def _outside(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self):
        """The probabilities, with a harmless one where the series are meant."""
        return _where(self._outside(), self.probs, self._lims[0])

    def _log_norm(self):
        p = self._cut()
        x = (self.probs - 0.5).pow(2)
        exact = (2 * (1 - 2 * p).atanh() / (1 - 2 * p)).log()
        return _where(self._outside(), exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self):
        p, x = self._cut(), self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / (2 * (1 - 2 * p).atanh())
        return _where(self._outside(), exact, 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def variance(self):
        p, x = self._cut(), (self.probs - 0.5).pow(2)
        exact = p * (p - 1) / (1 - 2 * p).pow(2) + 1 / (2 * (1 - 2 * p).atanh()).pow(2)
        return _where(self._outside(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def sample(self, sample_shape=()):
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(_rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        p, value = broadcast_all(self.probs, value)
        return value * p.log() + (1 - value) * (-p).log1p() + self._log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut()
        exact = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        inside = _where(self._outside(), exact, value)
        return _where(value <= 0, 0.0, _where(value >= 1, 1.0, inside))

    def icdf(self, value):
        p = self._cut()
        exact = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return _where(self._outside(), exact, value)

    def entropy(self):
        low, high = (-self.probs).log1p(), self.probs.log()
        return self.mean * (low - high) - self._log_norm() - low


class GeneralizedPareto(Distribution):
    """1 - (1 + concentration z)^(-1 / concentration) below loc + scale z; exponential for a concentration of 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("loc", "scale", "concentration"), (), _instance)

    def _parts(self):
        """Where the concentration counts as 0, and one that isn't."""
        none = self.concentration.abs() < finfo(self.concentration.dtype).eps
        return none, _where(none, 1.0, self.concentration)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        none, c = self._parts()
        z = (value - self.loc) / self.scale
        return -self.scale.log() - _where(none, z, (1 + 1 / c) * (c * z).log1p())

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        none, c = self._parts()
        z = (value - self.loc) / self.scale
        return -_where(none, -z, -(c * z).log1p() / c).expm1()

    def icdf(self, value):
        none, c = self._parts()
        left = (-value).log1p()
        return self.loc + self.scale * _where(none, -left, (-c * left).expm1() / c)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(_rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    @property
    def mean(self):
        c = self.concentration
        return _where(c < 1, self.loc + self.scale / (1 - _where(c < 1, c, 0.0)), math.inf)

    @property
    def variance(self):
        c = _where(self.concentration < 0.5, self.concentration, 0.0)
        return _where(self.concentration < 0.5, self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c)), math.inf)

    mode = property(lambda self: self.loc)

    def entropy(self):
        return self.scale.log() + self.concentration + 1

    @property
    def support(self):
        upper = self.loc - self.scale / _where(self.concentration < 0, self.concentration, -1.0)
        if bool((self.concentration < 0).all()):
            return constraints.interval(self.loc, upper)
        return constraints.greater_than_eq(self.loc)


class LowRankMultivariateNormal(Distribution):
    """N(loc, W W^T + diag(D)) with few columns in W: by the matrix determinant lemma and Woodbury's identity."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
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

    def expand(self, batch_shape, _instance=None):
        out = self._expanded(batch_shape, ("loc", "cov_factor", "cov_diag"), self._event_shape, _instance)
        out._factor, out._diag, out._capacitance = self._factor, self._diag, self._capacitance
        return out

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        return (self._factor.pow(2).sum(-1) + self._diag).expand(self._batch_shape + self._event_shape)

    def _whole(self, matrix):
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self):
        return self._whole(self._factor @ self._factor.mT + self._diag.diag_embed())

    @lazy_property
    def scale_tril(self):
        return self._whole(_cholesky(self._factor @ self._factor.mT + self._diag.diag_embed()))

    @lazy_property
    def precision_matrix(self):
        half = _solve(self._capacitance, self._factor.mT / self._diag.unsqueeze(-2), upper=False)
        return self._whole(self._diag.reciprocal().diag_embed() - half.mT @ half)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        few = _randn((*shape[:-1], self.cov_factor.shape[-1]), **like)
        each = _randn(shape, **like)
        return self.loc + (self._factor @ few.unsqueeze(-1)).squeeze(-1) + self._diag.sqrt() * each

    def _log_det(self):
        return 2 * self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self._diag.log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        d = value - self.loc
        scaled = d / self._diag
        half = _solve(self._capacitance, self._factor.mT @ scaled.unsqueeze(-1), upper=False).squeeze(-1)
        distance = (d * scaled).sum(-1) - half.pow(2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self):
        out = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return out if len(self._batch_shape) == 0 else out.expand(self._batch_shape)


class Wishart(Distribution):
    """Of X = sum of ``df`` outer products of N(0, V) vectors; V by itself, its inverse or its Cholesky factor. Draws by Bartlett's
    decomposition (M. S. Bartlett, "On the theory of statistical regression", 1933)."""

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
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

    def expand(self, batch_shape, _instance=None):
        names = ("df", "_lower", "covariance_matrix", "precision_matrix", "scale_tril")
        out = self._expanded(batch_shape, names, self._event_shape, _instance)
        out._chi2 = self._chi2.expand(Size((*batch_shape, self._event_shape[0])))
        return out

    @lazy_property
    def scale_tril(self):
        return self._lower

    @lazy_property
    def covariance_matrix(self):
        return self._lower @ self._lower.mT

    @lazy_property
    def precision_matrix(self):
        return _cholesky_inverse(self._lower)

    @property
    def mean(self):
        return self.df.view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return _where(factor <= 0, math.nan, factor).view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self.df.view(*self._batch_shape, 1, 1) * (v.pow(2) + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape=(), max_try_correction=None):
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

    def log_prob(self, value):
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

    def entropy(self):
        nu, p = self.df, self._event_shape[0]
        digammas = sum(_digamma((nu - k) / 2) for k in range(p))
        return (
            (p + 1) * (p * math.log(2) / 2 + self._half_log_det())
            + _mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * digammas
            + nu * p / 2
        )
