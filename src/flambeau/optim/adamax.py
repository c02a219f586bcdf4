"""Adamax, and Adam with Nesterov momentum (NAdam, Dozat 2016) or a rectified start (RAdam, Liu et al., arXiv:1908.03265)."""

from __future__ import annotations

import math

from flambeau.core.bindings import function
from flambeau.optim.optimizer import check_option, move, number, option
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["Adamax", "NAdam", "RAdam"]

zeros_like, zeros, ones, maximum = function("zeros_like"), function("zeros"), function("ones"), function("maximum")


class Adamax(SimpleOptimizer):
    """Adam with the infinity norm (Kingma & Ba 2015)."""

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0, foreach=None, *, maximize: bool = False,
        differentiable: bool = False, capturable: bool = False,
    ):  # fmt: skip
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        self._start(
            params, defaults, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _init_state(self, state, p, group):
        state["step"], state["exp_avg"], state["exp_inf"] = zeros(()), zeros_like(p), zeros_like(p)

    def _update(self, p, grad, state, group):
        beta1, beta2 = group["betas"]
        state["step"].add_(1)
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_inf"].copy_(maximum(state["exp_inf"].mul(beta2), grad.abs().add(group["eps"])))
        rate = option(group, "lr") / (1 - beta1 ** state["step"].item())
        if group["differentiable"]:
            move(p, state["exp_avg"] / state["exp_inf"], rate)
        else:
            p.addcdiv_(state["exp_avg"], state["exp_inf"], value=-rate)


class _AdamLike(SimpleOptimizer):
    """Coupled or decoupled weight decay, and the running means."""

    coupled_decay = False

    def _init_state(self, state, p, group):
        state["step"], state["exp_avg"], state["exp_avg_sq"] = zeros(()), zeros_like(p), zeros_like(p)

    def _moments(self, p, grad, state, group) -> int:
        """Update the means; the number of this step."""
        beta1, beta2 = group["betas"]
        decay = group["weight_decay"]
        if decay and group["decoupled_weight_decay"]:
            p.mul_(1 - number(group["lr"]) * decay)
        elif decay:
            grad = grad.add(p, alpha=decay)
        state["step"].add_(1)
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        self._grad = grad
        return int(state["step"].item())


class NAdam(_AdamLike):
    """Adam that looks ahead by its momentum, with a warming schedule of the momentum."""

    first_options = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "momentum_decay",
        "decoupled_weight_decay",
        "maximize",
        "foreach",
        "capturable",
    )

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, *, foreach=None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        check_option("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        self._start(
            params, defaults, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _init_state(self, state, p, group):
        super()._init_state(state, p, group)
        rest = {name: state.pop(name) for name in list(state) if name != "step"}
        state.update(mu_product=ones(()), **rest)

    def _update(self, p, grad, state, group):
        t = self._moments(p, grad, state, group)
        beta1, beta2 = group["betas"]
        lr, psi = number(group["lr"]), group["momentum_decay"]
        mu, following = (beta1 * (1.0 - 0.5 * 0.96 ** (k * psi)) for k in (t, t + 1))
        state["mu_product"].mul_(mu)
        product = state["mu_product"].item()
        denominator = state["exp_avg_sq"].div(1 - beta2**t).sqrt().add(group["eps"])
        p.addcdiv_(self._grad, denominator, value=-lr * (1.0 - mu) / (1.0 - product))
        p.addcdiv_(state["exp_avg"], denominator, value=-lr * following / (1.0 - product * following))


class RAdam(_AdamLike):
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
        self, params, lr=1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
        foreach=None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
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
