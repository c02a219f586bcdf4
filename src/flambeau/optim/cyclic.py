"""Schedules in cycles, and by a polynomial."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flambeau.base.public import public_in
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.schedule import (
    LRScheduler,
    _attributes,
    _per_group,
    _set_attributes,
    set_rate,
)

__all__ = [
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "OneCycleLR",
    "PolynomialLR",
]


@public_in("optim.lr_scheduler")
class PolynomialLR(LRScheduler):
    """(1 - epoch / total_iters)^power of the initial rate, then zero."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left = 1.0 - self.last_epoch / self.total_iters
        factor = (left / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power
        return [lr * factor for lr in self._current()]

    def _get_closed_form_lr(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


@public_in("optim.lr_scheduler")
class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing with restarts after T_0, T_0 T_mult, ... epochs. Loshchilov & Hutter, arXiv:1608.03983."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:  # noqa: N803
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, int | float):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_step()
        shape = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * shape for base in self.base_lrs]

    def step(self, epoch: int | None = None) -> None:
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            if epoch < self.T_0:
                self.T_i, self.T_cur = self.T_0, epoch
            elif self.T_mult == 1:
                self.T_i, self.T_cur = self.T_0, epoch % self.T_0
            else:
                n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._set(self._rates(self.get_lr))


@public_in("optim.lr_scheduler")
class CyclicLR(LRScheduler):
    """Between two rates, up and down. Smith, arXiv:1506.01186."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        for lr, group in zip(_per_group(base_lr, optimizer, "base_lr"), optimizer.param_groups):
            if last_epoch == -1:
                set_rate(group, lr)
        self.max_lrs = _per_group(max_lr, optimizer, "max_lr")
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self.cycle_momentum, self._scale_fn_custom = mode, gamma, cycle_momentum, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = _per_group(base_momentum, optimizer, "base_momentum")
            self.max_momentums = _per_group(max_momentum, optimizer, "max_momentum")
            if last_epoch == -1:
                for low, high, group in zip(self.base_momentums, self.max_momentums, optimizer.param_groups):
                    _set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = _per_group(base_lr, optimizer, "base_lr")

    def scale_fn(self, x: float) -> float:
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / (2.0 ** (x - 1)), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[float]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        at = cycle if self.scale_mode == "cycle" else self.last_epoch
        scale = self.scale_fn(at)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                _set_momentum(group, high - (high - low) * height * scale)
        return [base + (top - base) * height * scale for base, top in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict:
        """Everything but the optimizer. Of ``scale_fn`` the attributes, where it is an object and no function."""
        state = super().state_dict()
        return {**state, "_scale_fn_custom": _attributes(state["_scale_fn_custom"])}

    def load_state_dict(self, state_dict: dict) -> None:
        _set_attributes(self._scale_fn_custom, state_dict["_scale_fn_custom"])
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})


def _set_momentum(group: dict, value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


# What a phase of one cycle is: its last step, and the keys of the parameter groups between whose values it goes.
_PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")


@public_in("optim.lr_scheduler")
class OneCycleLR(LRScheduler):
    """Up to ``max_lr`` and down to far below the start, once. Smith & Topin, arXiv:1708.07120."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
                if value <= 0 or not isinstance(value, int):
                    raise ValueError(f"Expected positive integer {name}, but got {value}")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps, self._anneal_func_type, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        up = float(pct_start * total_steps) - 1
        phases = [
            (up, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
            (2 * up, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
            (total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
        ]
        if not three_phase:
            phases[1:] = [(total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        self._schedule_phases = [dict(zip(_PHASE, phase)) for phase in phases]
        if last_epoch == -1:
            for top, group in zip(_per_group(max_lr, optimizer, "max_lr"), optimizer.param_groups):
                group["initial_lr"] = top / div_factor
                set_rate(group, group["initial_lr"])
                group["max_lr"], group["min_lr"] = top, top / div_factor / final_div_factor
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            if last_epoch == -1:
                highs, lows = (
                    _per_group(max_momentum, optimizer, "max_momentum"),
                    _per_group(base_momentum, optimizer, "base_momentum"),
                )
                for high, low, group in zip(highs, lows, optimizer.param_groups):
                    _set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def _between(self, a: float, b: float, t: float) -> float:
        if self._anneal_func_type == "cos":
            return b + (a - b) / 2.0 * (math.cos(math.pi * t) + 1)
        return (b - a) * t + a

    def get_lr(self) -> list[float]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        out = []
        for group in self.optimizer.param_groups:
            start = 0.0
            for phase in self._schedule_phases:
                end = phase["end_step"]
                if step <= end or phase is self._schedule_phases[-1]:
                    t = (step - start) / (end - start)
                    out.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], t))
                    if self.cycle_momentum:
                        _set_momentum(
                            group, self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], t)
                        )
                    break
                start = end
        return out
