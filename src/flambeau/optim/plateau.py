"""A schedule by a measured quantity."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import SupportsFloat

from flambeau.base.public import public_in
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.schedule import (
    _EPOCH_WARNING,
    LRScheduler,
    _per_group,
    rates_of,
    set_rate,
)

__all__ = ["ReduceLROnPlateau"]


@public_in("optim.lr_scheduler")
class ReduceLROnPlateau(LRScheduler):
    """The rate falls by ``factor`` when ``step(metric)`` hasn't improved for ``patience`` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.factor, self.optimizer, self.patience, self.cooldown, self.eps = factor, optimizer, patience, cooldown, eps
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = _per_group(min_lr, optimizer, "min_lrs", "expected {groups} {name}, got {own}")
        self.mode, self.threshold, self.threshold_mode, self.last_epoch = mode, threshold, threshold_mode, 0
        self._last_lr = rates_of(optimizer)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            return sign * a < sign * best * (1 - sign * self.threshold if sign > 0 else 1 + self.threshold)
        return sign * a < sign * best - self.threshold

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        current = float(metrics)
        if epoch is not None:
            warnings.warn(_EPOCH_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._check_groups()
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                new = max(float(group["lr"]) * self.factor, least)
                if float(group["lr"]) - new > self.eps:
                    set_rate(group, new)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = rates_of(self.optimizer)

    def _check_groups(self) -> None:
        """A bound for each group, also for those that the optimizer got later."""
        groups = len(self.optimizer.param_groups)
        if groups == len(self.min_lrs):
            return
        if self.default_min_lr is None:
            raise RuntimeError(
                f"The number of param groups in the `optimizer` ({groups}) differs from when `ReduceLROnPlateau` was initialized "
                f"({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. Please modify the `min_lrs` field to "
                "match the length of the `optimizer` param groups."
            )
        self.min_lrs = [self.default_min_lr] * groups
