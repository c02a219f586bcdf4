"""Averages of weights: stochastic weight averaging (Izmailov et al., arXiv:1803.05407) and exponential moving averages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.base.device import Device
from flambeau.core.conversion import tensor
from flambeau.core.promotion import REFUSALS
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.nn.modules.batchnorm import _BatchNorm
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.schedule import LRScheduler

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Tensor | int], Tensor]:
    """average = decay * average + (1 - decay) * current."""
    _check_decay(decay)

    def update(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None]:
    """A function for AveragedModel that updates all parameters: average = decay average + (1 - decay) parameter."""
    _check_decay(decay)

    def update(ema_params: Sequence[Tensor], current_params: Sequence[Tensor], _: Tensor | int) -> None:
        with no_grad():
            for ema, current in zip(ema_params, current_params):
                if ema.is_floating_point() or ema.is_complex():
                    ema.lerp_(current, 1 - decay)
                else:
                    ema.copy_(ema * decay + current * (1 - decay))

    return update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Tensor | int], Tensor]:
    """The mean of all models so far."""

    def update(averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        with no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return update


def get_swa_multi_avg_fn() -> Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None]:
    """A function for AveragedModel that updates all parameters to the mean of what was seen."""

    def update(averaged_params: Sequence[Tensor], current_params: Sequence[Tensor], num_averaged: Tensor | int) -> None:
        with no_grad():
            if any(not (p.is_floating_point() or p.is_complex()) for p in averaged_params):
                raise RuntimeError(REFUSALS["addcdiv"])
            for average, current in zip(averaged_params, current_params):
                average.add_((current - average) / (num_averaged + 1))

    return update


class AveragedModel(Module):
    """A copy of a model whose ``update_parameters(model)`` takes it into the average."""

    def __init__(
        self,
        model: Module,
        device: Device | str | int | None = None,
        avg_fn: Callable[[Tensor, Tensor, Tensor | int], Tensor] | None = None,
        multi_avg_fn: Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's parameters into the average, and copy its buffers (``use_buffers``: average them too)."""
        members = (lambda m: [*m.parameters(), *m.buffers()]) if self.use_buffers else (lambda m: list(m.parameters()))
        own, current = [p.detach() for p in members(self.module)], [p.detach() for p in members(model)]
        count = int(self.n_averaged)
        if count == 0:
            for a, b in zip(own, current):
                a.copy_(b)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(own, current, self.n_averaged)
        else:
            average = self.avg_fn or get_swa_avg_fn()
            for a, b in zip(own, current):
                a.copy_(average(a, b, self.n_averaged))
        if not self.use_buffers:
            for a, b in zip(itertools.chain(self.module.buffers()), model.buffers()):
                a.detach().copy_(b.detach())
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Device | str | int | None = None) -> None:
    """Fill the statistics of batch normalisation by one pass over the data."""
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    for m in momenta:
        m.reset_running_stats()
        m.momentum = None
    training = model.training
    model.train()
    with no_grad():
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(batch if device is None else batch.to(device))
    for m, momentum in momenta.items():
        m.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Anneals the rate to ``swa_lr`` over ``anneal_epochs`` and keeps it there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(rates) != len(optimizer.param_groups):
            raise ValueError(
                f"swa_lr must have the same length as optimizer.param_groups. swa_lr has {len(rates)} values, param_groups has "
                f"{len(optimizer.param_groups)}."
            )
        for rate, group in zip(rates, optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _anneal(self, t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[float]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        alpha_before = self._anneal(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        alpha = self._anneal(max(0, min(1, step / max(1, self.anneal_epochs))))
        out = []
        for group in self.optimizer.param_groups:
            start = (
                group["swa_lr"]
                if alpha_before == 1
                else (group["lr"] - alpha_before * group["swa_lr"]) / (1 - alpha_before)
            )
            out.append(group["swa_lr"] * alpha + start * (1 - alpha))
        return out
