"""Adagrad (Duchi et al. 2011)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import Optimizer, ParamsT, check_option, check_rate, check_ways
from flambeau.optim.rates import count, descend, number, option
from flambeau.optim.sparse_adam import like

__all__ = ["Adagrad"]

full_like = function("full_like")
zeros = function("zeros")


class Adagrad(Optimizer):
    """Divides the gradient by the root of the sum of all its squares. Sparse gradients change only the rows they name."""

    takes_sparse = True

    later_options = MappingProxyType(dict(foreach=None, maximize=False, differentiable=False, fused=None))

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("lr_decay value", lr_decay, lr_decay >= 0.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_option("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        check_option("epsilon value", eps, eps >= 0.0)
        check_ways(foreach, fused, differentiable)
        defaults = dict(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                self._init_state(self.state[p], p, group)

    def _init_state(self, state: dict, p, group: dict) -> None:
        state["step"] = zeros(())
        # Of the constructor, whatever a group says. The parts of a complex number are summed apart.
        start = self.defaults["initial_accumulator_value"]
        state["sum"] = full_like(p, complex(start, start) if p.dtype.is_complex else start)

    def step(self, closure: Callable[[], Tensor | float] | None = None) -> Tensor | float | None:
        for group in self.param_groups:
            if group["fused"] and any(p.grad is not None and p.grad.is_sparse for p in group["params"]):
                raise RuntimeError("`fused` does not support sparse grad or complex param")
        return self._updated(_update, closure)


def _update(group: dict, rows: list[tuple]) -> None:
    lr, lr_decay = option(group, "lr"), group["lr_decay"]
    # First for all parameters: captured, they are one kernel then.
    rates = [lr / (1 + (count(state, group) - 1) * lr_decay) for _, _, state in rows]
    for (p, grad, state), rate in zip(rows, rates):
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(p, alpha=group["weight_decay"])
        if grad.is_sparse:
            grad = grad.coalesce()
            values = grad._values()
            state["sum"].add_(like(grad, values.pow(2)))
            denom = state["sum"].sparse_mask(grad)._values().sqrt_().add_(group["eps"])
            p.add_(like(grad, values / denom), alpha=-rate)
            continue
        total = state["sum"].addcmul_(grad, grad, value=1)
        denom = total.sqrt().add(group["eps"])
        descend(p, grad, denom, rate)
