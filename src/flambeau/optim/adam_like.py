"""What optimizers with the moments of Adam share."""

from __future__ import annotations

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.rates import option
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["AdamLike"]

zeros_like, zeros = map(function, ("zeros_like", "zeros"))


class AdamLike(SimpleOptimizer):
    """Coupled or decoupled weight decay, and the running means."""

    coupled_decay = False

    def _init_state(self, state, p, group):
        state["step"], state["exp_avg"], state["exp_avg_sq"] = zeros(()), zeros_like(p), zeros_like(p)

    def _moments(self, p, grad, state, group) -> Tensor:
        """Shrink the parameter and update the means; the gradient, with the parameter's share."""
        beta1, beta2 = group["betas"]
        decay = group["weight_decay"]
        if decay and group["decoupled_weight_decay"]:
            p.mul_(1 - option(group, "lr") * decay)
        elif decay:
            grad = grad.add(p, alpha=decay)
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        return grad
