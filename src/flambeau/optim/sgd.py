"""Stochastic gradient descent with momentum (Sutskever et al. 2013, in the variant that scales the velocity by lr)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from flambeau.base.compiling import is_compiling
from flambeau.core.tensor import Tensor
from flambeau.eager import backend
from flambeau.inductor.inplace import update
from flambeau.optim import each
from flambeau.optim.optimizer import (
    Optimizer,
    ParamsT,
    check_option,
    check_rate,
    check_ways,
)
from flambeau.optim.rates import move, number, option, scaled

__all__ = ["SGD"]


class SGD(Optimizer):
    """``v = momentum * v + (1 - dampening) * g``; ``p -= lr * v`` (Nesterov: ``g + momentum * v``)."""

    takes_sparse = True
    complex_as_pairs = False

    later_options = MappingProxyType(
        dict(nesterov=False, maximize=False, foreach=None, differentiable=False, fused=False)
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_option("learning rate", lr, not number(lr) < 0.0)
        check_option("momentum value", momentum, not momentum < 0.0)
        check_option("weight_decay value", weight_decay, not weight_decay < 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_ways(foreach, fused, differentiable)
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

    def _has_state(self, group: dict) -> bool:
        return group["momentum"] != 0

    def step(self, closure: Callable[[], Tensor | float] | None = None) -> Tensor | float | None:
        return self._updated(_update, closure)


def _update(group: dict, rows: list[tuple]) -> None:
    lr = option(group, "lr")
    momentum, dampening, weight_decay = group["momentum"], group["dampening"], option(group, "weight_decay")
    if not (is_compiling() or group["differentiable"]) and _update_compiled(group, rows, lr):
        return
    if not rows:
        return
    params, grads = [p for p, _, _ in rows], [grad for _, grad, _ in rows]
    if group["fused"] and any(grad.is_sparse for grad in grads):
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    if group["maximize"]:
        grads = each.neg(grads)
    if weight_decay != 0:
        if isinstance(weight_decay, Tensor):
            grads = [grad + scaled(p.clone(), weight_decay) for p, grad in zip(params, grads)]
        else:
            grads = each.add(grads, params, alpha=weight_decay)
    if momentum != 0:
        kept = [state.get("momentum_buffer") is not None for _, _, state in rows]
        buffers = [state["momentum_buffer"] for (_, _, state), there in zip(rows, kept) if there]
        if buffers:
            each.mul_(buffers, momentum)
            each.add_(buffers, [grad for grad, there in zip(grads, kept) if there], alpha=1 - dampening)
        for (_, _, state), grad, there in zip(rows, grads, kept):
            if not there:
                state["momentum_buffer"] = grad.detach().clone()  # in a recorded step, too, as in PyTorch
        buffers = [state["momentum_buffer"] for _, _, state in rows]
        grads = each.add(grads, buffers, alpha=momentum) if group["nesterov"] else buffers
    if isinstance(lr, Tensor):
        for p, grad in zip(params, grads):
            move(p, grad, lr)
    else:
        each.add_(params, grads, alpha=-lr)


def _update_compiled(group: dict, rows: list[tuple], lr: float) -> bool:
    """The same arithmetic on all parameters by compiled kernels that write in place; False when that isn't for this group (yet)."""
    if group["maximize"] or backend.accelerate is None or sum(p.numel() for p, _, _ in rows) < backend.LARGE:
        return False
    momentum, dampening, weight_decay = group["momentum"], group["dampening"], number(group["weight_decay"])
    nesterov = group["nesterov"]
    if momentum != 0 and any(state.get("momentum_buffer") is None for _, _, state in rows):
        return False  # the first step makes them
    count = 3 if momentum != 0 else 2
    tensors = [t for p, grad, state in rows for t in (p, grad, state.get("momentum_buffer"))[:count]]
    if any(t.dtype is not rows[0][0].dtype or not t.dtype.is_floating_point or t.is_sparse for t in tensors):
        return False

    def compute(tensors: Sequence[Tensor], numbers: Sequence[Tensor]) -> list[tuple[int, Tensor]]:
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
