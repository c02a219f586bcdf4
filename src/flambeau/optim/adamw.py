"""AdamW (Loshchilov & Hutter 2019): Adam whose weight decay shrinks the parameter directly."""

from __future__ import annotations

from types import MappingProxyType

from flambeau.core.tensor import Tensor
from flambeau.optim.adam import Adam
from flambeau.optim.optimizer import ParamsT

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with decoupled weight decay, by default 0.01."""

    later_options = MappingProxyType({**Adam.later_options, "decoupled_weight_decay": True})

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
