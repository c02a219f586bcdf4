"""Exponential families."""

from __future__ import annotations

from ..autograd.engine import grad
from ..autograd.grad_mode import enable_grad
from ..core.tensor import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities exp(<t(x), theta> - A(theta) + k(x)): ``_natural_params`` is theta, ``_log_normalizer`` A, ``_mean_carrier_measure`` E k(x)."""

    @property
    def _natural_params(self) -> tuple:
        raise NotImplementedError(f"{type(self).__name__} doesn't define _natural_params")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__} doesn't define _log_normalizer")

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError(f"{type(self).__name__} doesn't define _mean_carrier_measure")

    def entropy(self) -> Tensor:
        """By the log normalizer and its derivatives (Bregman divergence)."""
        out = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with enable_grad():
            norm = self._log_normalizer(*params)
            means = grad(norm.sum(), params, create_graph=True)
        out = out + norm
        for p, mean in zip(params, means):
            out = out - (p * mean).reshape(tuple(self._batch_shape) + (-1,)).sum(-1)
        return out
