"""Adam with a rectified start (Liu et al., arXiv:1908.03265)."""

from __future__ import annotations

from types import MappingProxyType

from flambeau.core.tensor import Tensor
from flambeau.optim.adam_like import AdamLike
from flambeau.optim.optimizer import ParamsT
from flambeau.optim.rates import choose, count, option

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

    later_options = MappingProxyType(
        dict(foreach=None, maximize=False, differentiable=False, decoupled_weight_decay=False, capturable=False)
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

    def _numbers(self, state, group):
        """The first bias, whether the variance is certain, the root of its bias, and the factor of a step that is divided by it."""
        (beta1, beta2), t = group["betas"], count(state, group)
        bias1, bias2 = 1 - beta1**t, 1 - beta2**t
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * t * beta2**t / bias2
        certain = length > 5.0
        rectify = None
        if certain is not False:
            rectify = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
        return bias1, certain, bias2**0.5, rectify

    def _update(self, p, grad, state, group, numbers):
        bias1, certain, second, rectify = numbers
        self._moments(p, grad, state, group)
        step = state["exp_avg"] / bias1 * option(group, "lr")
        if certain is not False:
            # Captured, both are computed: only the run tells which it is.
            adaptive = second / state["exp_avg_sq"].sqrt().add(group["eps"])
            step = choose(certain, step * adaptive * rectify, step)
        p.add_(step, alpha=-1.0)
