"""Muon (Jordan et al. 2024): momentum of matrices, made orthogonal by Newton and Schulz's iteration."""

from __future__ import annotations

import math

from flambeau.base.dtypes import bfloat16
from flambeau.base.public import public_in
from flambeau.core.bindings import function
from flambeau.optim.optimizer import Optimizer, ParamsT, check_at_least, check_rate
from flambeau.optim.rates import move, option
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["Muon"]

addmm, zeros_like = function("addmm"), function("zeros_like")


def _orthogonal(grad, coefficients, steps: int, eps: float):
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = grad.to(bfloat16)
    turned = grad.size(0) > grad.size(1)
    if turned:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        update = addmm(gram, gram, gram, beta=b, alpha=c)
        x = addmm(x, update, x, beta=a)
    return x.T if turned else x


@public_in("optim")
class Muon(SimpleOptimizer):
    """For the matrices of hidden layers; other parameters need another optimizer. ValueError for other shapes and for options out of
    range; RuntimeError at a step for complex parameters and sparse gradients."""

    coupled_decay = takes_complex = False

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        check_at_least("Learning rate", lr, 0)
        check_at_least("momentum", momentum, 0)
        check_at_least("weight decay", weight_decay, 0)
        if adjust_lr_fn is not None and adjust_lr_fn not in ("original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = dict(
            lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov, ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
        )  # fmt: skip
        Optimizer.__init__(self, params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def _numbers(self, state, group):
        return None

    def _init_state(self, state, p, group):
        state["momentum_buffer"] = zeros_like(p)

    def _update(self, p, grad, state, group, numbers):
        buffer = state["momentum_buffer"].lerp_(grad, 1 - group["momentum"])
        update = grad.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr, (rows, columns) = option(group, "lr"), p.shape
        kind = group["adjust_lr_fn"]
        ratio = 0.2 * math.sqrt(max(rows, columns)) if kind == "match_rms_adamw" else math.sqrt(max(1, rows / columns))
        p.mul_(1 - lr * group["weight_decay"])
        move(p, update.to(p.dtype), lr * ratio)
