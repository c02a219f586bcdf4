"""Adadelta (Zeiler, arXiv:1212.5701)."""

from __future__ import annotations

from types import MappingProxyType

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import ParamsT, check_option
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["Adadelta"]

zeros_like, zeros = function("zeros_like"), function("zeros")


class Adadelta(SimpleOptimizer):
    """Steps in the unit of the parameter: root of mean squares of past steps over that of gradients."""

    first_options = ("lr", "rho", "eps", "weight_decay", "maximize", "capturable")

    later_options = MappingProxyType(dict(foreach=None, maximize=False, differentiable=False, capturable=False))

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_option("rho value", rho, 0.0 <= rho <= 1.0)
        defaults = dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        self._start(
            params, defaults, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _init_state(self, state, p, group):
        state["step"], state["square_avg"], state["acc_delta"] = zeros(()), zeros_like(p), zeros_like(p)

    def _update(self, p, grad, state, group, numbers):
        rho, eps = group["rho"], group["eps"]
        square, delta = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        step = delta.add(eps).sqrt().div(square.add(eps).sqrt()).mul(grad)
        delta.mul_(rho).addcmul_(step, step, value=1 - rho)
        p.sub_(step * group["lr"])
