"""Stochastic gradient descent with momentum (Sutskever et al. 2013, in the variant that scales the velocity by lr)."""

from __future__ import annotations

from flambeau.autograd.grad_mode import no_grad
from flambeau.optim.optimizer import Optimizer, check_option, number, refuse

__all__ = ["SGD"]


class SGD(Optimizer):
    """``v = momentum * v + (1 - dampening) * g``; ``p -= lr * v`` (Nesterov: ``g + momentum * v``)."""

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("momentum value", momentum, momentum >= 0.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        refuse("SGD", differentiable=differentiable)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            foreach=foreach,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, defaults)

    def step(self, closure=None):
        loss = self._loss(closure)
        gathered = self._gather()
        with no_grad():
            for group, rows in gathered:
                _update(group, rows)
        return loss


def _update(group: dict, rows: list[tuple]) -> None:
    lr = number(group["lr"])
    momentum, dampening, weight_decay = group["momentum"], group["dampening"], group["weight_decay"]
    for p, grad, state in rows:
        if group["maximize"]:
            grad = -grad
        if weight_decay != 0:
            grad = grad.add(p, alpha=weight_decay)
        if momentum != 0:
            buf = state.get("momentum_buffer")
            if buf is None:
                buf = state["momentum_buffer"] = grad.detach().clone()
            else:
                buf.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buf, alpha=momentum) if group["nesterov"] else buf
        p.add_(grad, alpha=-lr)
