"""SparseAdam: Adam for sparse gradients, which moves only the rows that a gradient names (their moments, too)."""

from __future__ import annotations

import math
from collections.abc import Callable

from flambeau.autograd.grad_mode import no_grad
from flambeau.core.bindings import function
from flambeau.core.operator import namespace
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import Optimizer, ParamsT, check_option, check_rate
from flambeau.optim.rates import number

__all__ = ["SparseAdam"]

aten = namespace("aten")
zeros_like = function("zeros_like")


def like(grad: Tensor, values: Tensor) -> Tensor:
    """The coalesced sparse ``grad`` with other values."""
    return aten._values_backward.default(values, grad)


class SparseAdam(Optimizer):
    """A masked Adam (Kingma and Ba 2015) for sparse gradients. RuntimeError for a dense gradient; ValueError for parameters that
    are sparse or complex."""

    takes_sparse = True

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-3,
        betas: tuple[Tensor | float, Tensor | float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        check_option("learning rate", lr, number(lr) > 0.0)
        check_option("epsilon value", eps, eps > 0.0)
        for k in range(2):
            check_option(f"beta parameter at index {k}", betas[k], 0.0 <= betas[k] < 1.0)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        at = [([i, j], p) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"])]
        if sparse := [k for k, p in at if p.is_sparse]:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if pairs := [k for k, p in at if p.is_complex()]:
            raise ValueError(f"Complex params at indices {pairs}: SparseAdam does not support complex parameters")

    def _init_state(self, state: dict, p, group: dict) -> None:
        state["step"] = 0
        state["exp_avg"], state["exp_avg_sq"] = zeros_like(p), zeros_like(p)

    def step(self, closure: Callable[[], Tensor | float] | None = None) -> Tensor | float | None:
        loss = self._loss(closure)
        gathered = self._gather()
        if any(not grad.is_sparse for _, rows in gathered for _, grad, _ in rows):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        with no_grad():
            for group, rows in gathered:
                for p, grad, state in rows:
                    _update(group, p, -grad if group["maximize"] else grad, state)
        return loss


def _update(group: dict, p, grad, state: dict) -> None:
    beta1, beta2 = group["betas"]
    state["step"] += 1
    grad = grad.coalesce()
    values = grad._values()
    if not values.numel():
        return
    first, second = (state[name].sparse_mask(grad)._values() for name in ("exp_avg", "exp_avg_sq"))
    change = values.sub(first).mul_(1 - beta1)
    state["exp_avg"].add_(like(grad, change))
    change_sq = values.pow(2).sub_(second).mul_(1 - beta2)
    state["exp_avg_sq"].add_(like(grad, change_sq))
    numerator, denominator = change.add(first), change_sq.add(second).sqrt_().add_(group["eps"])
    step = state["step"]
    step_size = number(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    p.add_(like(grad, numerator.div_(denominator).mul_(-step_size)))
