"""Averaged stochastic gradient descent (Polyak & Juditsky 1992)."""

from __future__ import annotations

from types import MappingProxyType

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import ParamsT
from flambeau.optim.rates import choose, count, move, number, option, value_of
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["ASGD"]

zeros_like, zeros, ones, full = map(function, ("zeros_like", "zeros", "ones", "full"))


class ASGD(SimpleOptimizer):
    """SGD whose parameters are averaged in ``state["ax"]`` from step ``t0`` on."""

    counts = ("step", "eta", "mu")
    later_options = MappingProxyType(dict(foreach=None, maximize=False, differentiable=False, capturable=False))

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay)
        self._start(
            params, defaults, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _init_state(self, state, p, group):
        state["step"], state["eta"], state["mu"], state["ax"] = (
            zeros(()),
            full((), number(group["lr"])),
            ones(()),
            zeros_like(p),
        )

    def _numbers(self, state, group):
        """This step's rate, and its weight in the average; the state gets the next one's."""
        lr = option(group, "lr")
        t, eta, mu = count(state, group), value_of(state["eta"], group), value_of(state["mu"], group)
        since = t - group["t0"]
        state["eta"].fill_(lr / (1 + group["lambd"] * lr * t) ** group["alpha"])
        state["mu"].fill_(1 / choose(since > 1, since, 1))
        return eta, mu

    def _update(self, p, grad, state, group, numbers):
        eta, mu = numbers
        p.mul_(1 - group["lambd"] * eta)
        move(p, grad, eta)
        mean = state["ax"]
        starts = mu == 1
        mean.copy_(p if starts is True else choose(starts, p, mean + p.sub(mean).mul(mu)))
