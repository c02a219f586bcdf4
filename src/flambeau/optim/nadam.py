"""Adam with Nesterov momentum (Dozat 2016)."""

from __future__ import annotations

from types import MappingProxyType

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.adam_like import AdamLike
from flambeau.optim.optimizer import ParamsT, check_option
from flambeau.optim.rates import count, descend, option, value_of

__all__ = ["NAdam"]

ones = function("ones")


class NAdam(AdamLike):
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

    counts = ("step", "mu_product")
    later_options = MappingProxyType(
        dict(maximize=False, foreach=None, capturable=False, differentiable=False, decoupled_weight_decay=False)
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 2e-3,
        betas: tuple[Tensor | float, Tensor | float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
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

    def _numbers(self, state, group):
        """The bias of the mean square, and the rates of the gradient and of the mean."""
        (beta1, beta2), lr, psi = group["betas"], option(group, "lr"), group["momentum_decay"]
        t = count(state, group)
        mu, following = (beta1 * (1.0 - 0.5 * 0.96 ** (k * psi)) for k in (t, t + 1))
        # The state's dtype says where the product is rounded.
        kept = state["mu_product"]
        product = value_of(kept.mul_(mu.to(kept.dtype) if isinstance(mu, Tensor) else mu), group)
        return 1 - beta2**t, lr * (1.0 - mu) / (1.0 - product), lr * following / (1.0 - product * following)

    def _update(self, p, grad, state, group, numbers):
        bias2, of_grad, of_mean = numbers
        grad = self._moments(p, grad, state, group)
        denominator = state["exp_avg_sq"].div(bias2).sqrt().add(group["eps"])
        descend(p, grad, denominator, of_grad)
        descend(p, state["exp_avg"], denominator, of_mean)
