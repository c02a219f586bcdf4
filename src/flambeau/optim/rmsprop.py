"""RMSprop (Hinton's lecture 6e; centered: Graves 2013)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import Optimizer, ParamsT, check_option, check_rate, check_ways
from flambeau.optim.rates import descend, move, number, option

__all__ = ["RMSprop"]

zeros_like = function("zeros_like")
zeros = function("zeros")


class RMSprop(Optimizer):
    """Divides the gradient by a running root mean square of its recent values."""

    later_options = MappingProxyType(
        dict(momentum=0, centered=False, foreach=None, maximize=False, differentiable=False, capturable=False)
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("epsilon value", eps, eps >= 0.0)
        check_option("momentum value", momentum, momentum >= 0.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_option("alpha value", alpha, alpha >= 0.0)
        check_ways(foreach, None, differentiable)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            capturable=capturable,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def _init_state(self, state: dict, p, group: dict) -> None:
        state["step"] = zeros(())
        state["square_avg"] = zeros_like(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)

    def step(self, closure: Callable[[], Tensor | float] | None = None) -> Tensor | float | None:
        return self._updated(_update, closure)


def _update(group: dict, rows: list[tuple]) -> None:
    lr, alpha, momentum = option(group, "lr"), group["alpha"], group["momentum"]
    for p, grad, state in rows:
        state["step"].add_(1)
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square_avg = state["square_avg"]
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            grad_avg = state["grad_avg"]
            grad_avg.lerp_(grad, 1 - alpha)
            avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt()
        else:
            avg = square_avg.sqrt()
        avg = avg.add(group["eps"])
        if momentum > 0:
            buf = state["momentum_buffer"]
            buf.mul_(momentum).addcdiv_(grad, avg)
            move(p, buf, lr)
        else:
            descend(p, grad, avg, lr)
