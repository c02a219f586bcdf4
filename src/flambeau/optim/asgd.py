"""Averaged stochastic gradient descent (Polyak & Juditsky 1992)."""

from __future__ import annotations

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import ParamsT, number
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["ASGD"]

zeros_like, zeros, ones, full = map(function, ("zeros_like", "zeros", "ones", "full"))


class ASGD(SimpleOptimizer):
    """SGD whose parameters are averaged in ``state["ax"]`` from step ``t0`` on."""

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

    def _update(self, p, grad, state, group):
        lr, lambd = number(group["lr"]), group["lambd"]
        state["step"].add_(1)
        t, eta, mu = state["step"].item(), state["eta"].item(), state["mu"].item()
        p.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
        if mu == 1:
            state["ax"].copy_(p)
        else:
            state["ax"].add_(p.sub(state["ax"]).mul(mu))
        state["eta"].fill_(lr / (1 + lambd * lr * t) ** group["alpha"])
        state["mu"].fill_(1 / max(1, t - group["t0"]))
