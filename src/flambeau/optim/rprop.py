"""Resilient propagation (Riedmiller & Braun 1993)."""

from __future__ import annotations

from types import MappingProxyType

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import ParamsT
from flambeau.optim.rates import number
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["Rprop"]

zeros_like, zeros, ones_like, full_like, where = map(
    function, ("zeros_like", "zeros", "ones_like", "full_like", "where")
)


class Rprop(SimpleOptimizer):
    """Only signs of gradients count: a step grows while its sign stays and shrinks when it changes."""

    coupled_decay = False

    later_options = MappingProxyType(dict(foreach=None, maximize=False, differentiable=False, capturable=False))

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = dict(lr=lr, etas=etas, step_sizes=step_sizes)
        self._start(
            params, defaults, foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable
        )

    def _init_state(self, state, p, group):
        lr = number(group["lr"])
        state["step"], state["prev"] = zeros(()), zeros_like(p)
        state["step_size"] = full_like(p, complex(lr, lr) if p.is_complex() else lr)

    def _update(self, p, grad, state, group, numbers):
        (low, high), (least, most) = group["etas"], group["step_sizes"]
        sign = grad.mul(state["prev"]).sign()
        # In the parameter's dtype: numbers alone are float32.
        factor = where(sign > 0, high, where(sign < 0, low, ones_like(sign)))
        size = state["step_size"].mul_(factor).clamp_(least, most)
        grad = where(sign < 0, zeros_like(grad), grad)
        p.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)
