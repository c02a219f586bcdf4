"""Stochastic gradient descent with momentum (Sutskever et al. 2013, in the variant that scales the velocity by lr)."""

from __future__ import annotations

from flambeau.autograd.grad_mode import no_grad
from flambeau.base.compiling import is_compiling
from flambeau.eager import backend
from flambeau.inductor.inplace import update
from flambeau.optim import each
from flambeau.optim.optimizer import Optimizer, check_option, number, refuse

__all__ = ["SGD"]


class SGD(Optimizer):
    """``v = momentum * v + (1 - dampening) * g``; ``p -= lr * v`` (Nesterov: ``g + momentum * v``)."""

    takes_sparse = True

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
    if not is_compiling() and _update_compiled(group, rows, lr):
        return
    if not rows:
        return
    params, grads = [p for p, _, _ in rows], [grad for _, grad, _ in rows]
    if group["maximize"]:
        grads = each.neg(grads)
    if weight_decay != 0:
        grads = each.add(grads, params, alpha=weight_decay)
    if momentum != 0:
        kept = [state.get("momentum_buffer") is not None for _, _, state in rows]
        buffers = [state["momentum_buffer"] for (_, _, state), there in zip(rows, kept) if there]
        if buffers:
            each.mul_(buffers, momentum)
            each.add_(buffers, [grad for grad, there in zip(grads, kept) if there], alpha=1 - dampening)
        for (_, _, state), grad, there in zip(rows, grads, kept):
            if not there:
                state["momentum_buffer"] = grad.detach().clone()
        buffers = [state["momentum_buffer"] for _, _, state in rows]
        grads = each.add(grads, buffers, alpha=momentum) if group["nesterov"] else buffers
    each.add_(params, grads, alpha=-lr)


def _update_compiled(group: dict, rows: list[tuple], lr: float) -> bool:
    """The same arithmetic on all parameters by compiled kernels that write in place; False when that isn't for this group (yet)."""
    if group["maximize"] or backend.accelerate is None or sum(p.numel() for p, _, _ in rows) < backend.LARGE:
        return False
    momentum, dampening, weight_decay = group["momentum"], group["dampening"], group["weight_decay"]
    nesterov = group["nesterov"]
    if momentum != 0 and any(state.get("momentum_buffer") is None for _, _, state in rows):
        return False  # the first step makes them
    count = 3 if momentum != 0 else 2
    tensors = [t for p, grad, state in rows for t in (p, grad, state.get("momentum_buffer"))[:count]]
    if any(t.dtype is not rows[0][0].dtype or not t.dtype.is_floating_point or t.is_sparse for t in tensors):
        return False

    def compute(tensors, numbers):
        (step_size,) = numbers
        out = []
        for k in range(0, len(tensors), count):
            p, grad = tensors[k], tensors[k + 1]
            if weight_decay != 0:
                grad = grad.add(p, alpha=weight_decay)
            if momentum != 0:
                buf = (tensors[k + 2] * momentum).add(grad, alpha=1 - dampening)
                out.append((k + 2, buf))
                grad = grad.add(buf, alpha=momentum) if nesterov else buf
            out.append((k, p + grad * step_size))
        return out

    return update(("sgd", momentum, dampening, weight_decay, nesterov), compute, tensors, [-lr])
