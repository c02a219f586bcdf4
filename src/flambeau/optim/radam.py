"""Adam with a rectified start (Liu et al., arXiv:1908.03265)."""

from __future__ import annotations

import math

from flambeau.core.tensor import Tensor
from flambeau.optim.adam_like import AdamLike
from flambeau.optim.optimizer import ParamsT, number

__all__ = ["RAdam"]


class RAdam(AdamLike):
    """Adam whose first steps, while the variance is uncertain, are plain momentum."""

    first_options = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "maximize",
        "foreach",
        "capturable",
        "decoupled_weight_decay",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-3,
        betas: tuple[Tensor | float, Tensor | float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, decoupled_weight_decay=decoupled_weight_decay
        )
        self._start(
            params, defaults, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _update(self, p, grad, state, group):
        t = self._moments(p, grad, state, group)
        beta1, beta2 = group["betas"]
        bias1, bias2 = 1 - beta1**t, 1 - beta2**t
        mean = state["exp_avg"] / bias1
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * t * beta2**t / bias2
        if rho > 5.0:
            rectify = math.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
            adaptive = math.sqrt(bias2) / state["exp_avg_sq"].sqrt().add(group["eps"])
            p.add_(mean * number(group["lr"]) * adaptive * rectify, alpha=-1.0)
        else:
            p.add_(mean * number(group["lr"]), alpha=-1.0)
