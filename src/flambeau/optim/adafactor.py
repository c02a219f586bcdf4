"""Adafactor (Shazeer & Stern, arXiv:1804.04235): second moments of matrices by rows and columns."""

from __future__ import annotations

from types import MappingProxyType

from flambeau.base.public import public_in
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import Optimizer, ParamsT, check_at_least, check_rate
from flambeau.optim.rates import choose, move, option, value_of
from flambeau.optim.simple import SimpleOptimizer

__all__ = ["Adafactor"]

zeros_like, zeros = function("zeros_like"), function("zeros")


@public_in("optim")
class Adafactor(SimpleOptimizer):
    """The step is relative to the root mean square of the parameter. ValueError for options out of range; RuntimeError at a step for
    complex parameters and sparse gradients."""

    coupled_decay = takes_complex = False

    later_options = MappingProxyType(dict(foreach=None))

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        check_at_least("Learning rate", lr, 0)
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check_at_least("epsilon1", eps[0], 0)
        check_at_least("epsilon2", eps[1], 0)
        check_at_least("Clipping threshold d", d, 1)
        check_at_least("weight_decay", weight_decay, 0)
        defaults = dict(
            lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach, maximize=maximize
        )
        Optimizer.__init__(self, params, defaults)

    def _init_state(self, state, p, group):
        state["step"] = zeros(())
        if p.dim() > 1:
            state["row_var"] = p.new_zeros((*p.shape[:-1], 1))
            state["col_var"] = p.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
        else:
            state["variance"] = zeros_like(p)

    def _update(self, p, grad, state, group, t):
        eps1, eps2 = group["eps"]
        eps1 = _eps(p) if eps1 is None else eps1
        lr = option(group, "lr")
        weight, most = t ** group["beta2_decay"], 1 / t**0.5
        size = value_of(p.norm(2), group) / p.numel() ** 0.5
        alpha = choose(size > eps2, size, eps2) * choose(lr < most, lr, most)
        if isinstance(weight, Tensor):
            weight = weight.to(p.dtype)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if p.dim() > 1:
            square = grad.square()
            state["row_var"].lerp_(square.mean(-1, keepdim=True), weight)
            state["col_var"].lerp_(square.mean(-2, keepdim=True), weight)
            estimate = state["row_var"] @ state["col_var"]
            estimate = estimate.div(state["row_var"].mean(-2, keepdim=True).clamp(min=eps1))
        else:
            state["variance"].lerp_(grad.square(), weight)
            estimate = state["variance"].clone()
        update = estimate.clamp(min=eps1 * eps1).rsqrt().mul(grad)
        clipped = value_of(update.norm(2), group) / (update.numel() ** 0.5 * group["d"])
        move(p, update, alpha / choose(clipped > 1.0, clipped, 1.0))


def _eps(p) -> float:
    from flambeau.base.dtypes import finfo

    return finfo(p.dtype).eps
