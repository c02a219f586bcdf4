"""The gamma family: Gamma, Chi2, Beta, Dirichlet, Student's t, F, inverse gamma; counts: Poisson, Binomial, NegativeBinomial, Multinomial."""

from __future__ import annotations

import math

from ..autograd.grad_mode import no_grad
from ..base.shapes import Size
from ..core.bindings import function
from . import constraints
from .discrete import Categorical, logits_to_probs, probs_to_logits
from .distribution import Distribution, ExponentialFamily, broadcast_all, lazy_property

__all__ = [
    "Beta",
    "Binomial",
    "Chi2",
    "Dirichlet",
    "FisherSnedecor",
    "Gamma",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
]
__all__ += ["StudentT"]

_gamma, _dirichlet, _poisson, _binomial = map(function, ("_standard_gamma", "_sample_dirichlet", "poisson", "binomial"))
_normal, _stack, _xlogy = map(function, ("randn", "stack", "xlogy"))
lgamma, digamma = map(function, ("lgamma", "digamma"))
_gammainc, _argmax, _one_hot = map(function, ("special_gammainc", "argmax", "one_hot"))
_arange, _log_sigmoid, _ones_like = map(function, ("arange", "log_sigmoid", "ones_like"))


def _checked(method):
    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return method(self, value)

    return log_prob


class Gamma(ExponentialFamily):
    """x^(a - 1) exp(-b x), concentration a and rate b."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x, y):
        return lgamma(x + 1) + (x + 1) * (-y.reciprocal()).log()

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("concentration", "rate"), (), _instance)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        value = _gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=_tiny(value))
        return value

    @_checked
    def log_prob(self, value):
        a, b = self.concentration, self.rate
        return _xlogy(a, b) + _xlogy(a - 1, value) - b * value - lgamma(a)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1.0 - a) * digamma(a)

    def cdf(self, value):
        return _gammainc(self.concentration, self.rate * value)


def _tiny(t) -> float:
    from ..base.dtypes import finfo

    return finfo(t.dtype).tiny


class Chi2(Gamma):
    """Gamma(df / 2, 1 / 2)."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("concentration", "rate"), (), self._get_checked_instance(Chi2, _instance))

    df = property(lambda self: self.concentration * 2)


class Dirichlet(ExponentialFamily):
    """Points of the simplex."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    _natural_params = property(lambda self: (self.concentration,))

    def _log_normalizer(self, x):
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("concentration",), self.event_shape, _instance)

    def rsample(self, sample_shape=()):
        return _dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    @_checked
    def log_prob(self, value):
        a = self.concentration
        return _xlogy(a - 1.0, value).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self):
        a = (self.concentration - 1).clamp(min=0.0)
        mode = a / a.sum(-1, True)
        if bool((self.concentration < 1).all(-1).any()):
            flat = (self.concentration < 1).all(-1)
            mode = mode.clone()
            at = _argmax(mode[flat], -1)
            mode[flat] = _one_hot(at, self.concentration.shape[-1]).to(mode.dtype)
        return mode

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self):
        k, a = self.concentration.size(-1), self.concentration
        a0 = a.sum(-1)
        return lgamma(a).sum(-1) - lgamma(a0) - (k - a0) * digamma(a0) - ((a - 1.0) * digamma(a)).sum(-1)


class Beta(ExponentialFamily):
    """x^(a - 1) (1 - x)^(b - 1)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    _natural_params = property(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x, y):
        return lgamma(x) + lgamma(y) - lgamma(x + y)

    def __init__(self, concentration1, concentration0, validate_args=None):
        one, zero = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(_stack([one, zero], -1), validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        out = self._get_checked_instance(Beta, _instance)
        batch_shape = Size(batch_shape)
        out._dirichlet = self._dirichlet.expand(batch_shape)
        Distribution.__init__(out, batch_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    @_checked
    def log_prob(self, value):
        return self._dirichlet.log_prob(_stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()


class StudentT(Distribution):
    """Student's t with ``df`` degrees of freedom, a location and a scale."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        out = self._expanded(batch_shape, ("df", "loc", "scale"), (), _instance)
        out._chi2 = self._chi2.expand(Size(batch_shape))
        return out

    mean = property(lambda self: self.loc.masked_fill(self.df <= 1, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        m = self.df.clone()
        m = (self.scale.pow(2) * self.df / (self.df - 2)).masked_fill(self.df <= 2, math.inf)
        return m.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        x = _normal(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * x * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    @_checked
    def log_prob(self, value):
        y = (value - self.loc) / self.scale
        constant = (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + lgamma(0.5 * self.df)
            - lgamma(0.5 * (self.df + 1.0))
        )  # fmt: skip
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - constant

    def entropy(self):
        half = lgamma(0.5 * self.df) + math.lgamma(0.5) - lgamma(0.5 * (1 + self.df))
        return (
            self.scale.log()
            + 0.5 * (self.df + 1) * (digamma(0.5 * (self.df + 1)) - digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + half
        )


class FisherSnedecor(Distribution):
    """F with ``df1`` and ``df2`` degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        out = self._expanded(batch_shape, ("df1", "df2"), (), _instance)
        out._gamma1, out._gamma2 = self._gamma1.expand(Size(batch_shape)), self._gamma2.expand(Size(batch_shape))
        return out

    mean = property(lambda self: (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, math.nan))
    mode = property(
        lambda self: ((self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)).masked_fill(self.df1 <= 2, math.nan)
    )

    @property
    def variance(self):
        d = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * d.pow(2) * (self.df1 + d - 2) / (self.df1 * (d - 2).pow(2) * (d - 4))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        a, b = self._gamma1.rsample(sample_shape).view(shape), self._gamma2.rsample(sample_shape).view(shape)
        tiny = _tiny(b)
        b.detach().clamp_(min=tiny)
        y = a / b
        y.detach().clamp_(min=tiny)
        return y

    @_checked
    def log_prob(self, value):
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        t1 = lgamma(a + b) - lgamma(a) - lgamma(b)
        return t1 + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()


class Poisson(ExponentialFamily):
    """Counts of events that come at ``rate``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    _natural_params = property(lambda self: (self.rate.log(),))

    def _log_normalizer(self, x):
        return x.exp()

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("rate",), (), _instance)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape=()):
        with no_grad():
            return _poisson(self.rate.expand(self._extended_shape(sample_shape)))

    @_checked
    def log_prob(self, value):
        return _xlogy(value, self.rate) - self.rate - lgamma(value + 1)


class _Counts(Distribution):
    """``total_count`` with ``probs`` or ``logits``."""

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, value = ("probs", probs) if probs is not None else ("logits", logits)
        self.total_count, value = broadcast_all(total_count, value)
        self.__dict__[name] = self._param = value
        self.total_count = self.total_count.type_as(value)
        super().__init__(value.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("total_count", "probs", "logits", "_param"), (), _instance)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    param_shape = property(lambda self: self._param.size())


class Binomial(_Counts):
    """Successes in ``total_count`` trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    support = property(lambda self: constraints.integer_interval(0, self.total_count))
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return _binomial(self.total_count.expand(shape), self.probs.expand(shape))

    @_checked
    def log_prob(self, value):
        n, x = self.total_count, self.logits
        top = n * x.clamp(min=0) + n * (-x.abs()).exp().log1p() - lgamma(n + 1)
        return value * x - lgamma(value + 1) - lgamma(n - value + 1) - top

    def entropy(self):
        if not bool((self.total_count == self.total_count.reshape(-1)[0]).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        each = self.log_prob(self.enumerate_support(False))
        return -(each.exp() * each).sum(0)

    def enumerate_support(self, expand=True):
        n = int(self.total_count.max())
        if not bool((self.total_count == n).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = _arange(1 + n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


class NegativeBinomial(_Counts):
    """Successes before ``total_count`` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    def sample(self, sample_shape=()):
        with no_grad():
            rate = Gamma(self.total_count, (-self.logits).exp(), validate_args=False).sample(sample_shape)
            return _poisson(rate)

    @_checked
    def log_prob(self, value):
        n, x = self.total_count, self.logits
        plain = n * _log_sigmoid(-x) + value * _log_sigmoid(x)
        norm = -lgamma(n + value) + lgamma(1.0 + value) + lgamma(n)
        return plain - norm.masked_fill(n + value == 0.0, 0.0)


def _log_sigmoid(x):
    return _log_sigmoid(x)


class Multinomial(Distribution):
    """Counts of ``total_count`` draws from a Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        out = self._get_checked_instance(Multinomial, _instance)
        batch_shape = Size(batch_shape)
        out.total_count, out._categorical = self.total_count, self._categorical.expand(batch_shape)
        Distribution.__init__(out, batch_shape, self.event_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    support = property(lambda self: constraints.multinomial(self.total_count))
    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        order = list(range(1, drawn.dim())) + [0]
        drawn = drawn.permute(*order)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, _ones_like(drawn))
        return counts.type_as(self.probs)

    @_checked
    def log_prob(self, value):
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + (logits * value).sum(-1)
