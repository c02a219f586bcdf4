"""Adam with the infinity norm (Kingma & Ba 2015)."""

from __future__ import annotations

from types import MappingProxyType

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import ParamsT
from flambeau.optim.rates import count, descend, option
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["Adamax"]

zeros_like, zeros, maximum = map(function, ("zeros_like", "zeros", "maximum"))


class Adamax(SimpleOptimizer):
    """Adam with the infinity norm (Kingma & Ba 2015)."""

    later_options = MappingProxyType(dict(foreach=None, maximize=False, differentiable=False, capturable=False))

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 2e-3,
        betas: tuple[Tensor | float, Tensor | float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        self._start(
            params, defaults, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _init_state(self, state, p, group):
        state["step"], state["exp_avg"], state["exp_inf"] = zeros(()), zeros_like(p), zeros_like(p)

    def _numbers(self, state, group):
        return option(group, "lr") / (1 - group["betas"][0] ** count(state, group))

    def _update(self, p, grad, state, group, rate):
        beta1, beta2 = group["betas"]
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_inf"].copy_(maximum(state["exp_inf"].mul(beta2), grad.abs().add(group["eps"])))
        descend(p, state["exp_avg"], state["exp_inf"], rate)
