"""The base of the schedules of the learning rate. ``scheduler.step()`` after each epoch (or step) sets ``lr`` in the optimizer's groups.

A schedule is ``get_lr()``: the new rates, from ``self.last_epoch``, ``self.base_lrs`` and the present ``lr`` of each group. Schedules are
written recursively in the present ``lr``, as PyTorch's are, so that several of them can be chained.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau.base.public import public_in
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import Optimizer, wrap_step

_EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use `scheduler.step()` "
    "to step the scheduler. During the deprecation, if epoch is different from None, the closed form is used instead of the new chainable "
    "form, where available."
)


@public_in("optim.lr_scheduler")
class LRScheduler:
    """Base class. ``last_epoch``: index of the last epoch when training is resumed, -1 to begin."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
                    "This typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly loaded "
                    "the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.optimizer = optimizer
        self.base_lrs = [_copy(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._step_count = 0
        # get_lr of users' schedules look at these.
        self._is_initial = self._get_lr_called_within_step = False
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        raise NotImplementedError(f"{type(self).__name__}.get_lr() is not defined")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            text = "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."
            warnings.warn(text, UserWarning, stacklevel=3)

    def get_last_lr(self) -> list[float]:
        """The rates set by the last step."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or, deprecated, to ``epoch``) and set its rates."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in "
                "the opposite order: `optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in skipping the "
                "first value of the learning rate schedule.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch, or of ``epoch``."""
        if epoch is None:
            self.last_epoch += 1
            rates = self._rates(self.get_lr)
        else:
            self.last_epoch = epoch
            rates = self._rates(getattr(self, "_get_closed_form_lr", None) or self.get_lr)
        self._set(rates)

    def _rates(self, get: Callable[[], list]) -> list:
        """What a step sets: ``get_lr`` doesn't warn here."""
        self._get_lr_called_within_step = True
        try:
            return get()
        finally:
            self._get_lr_called_within_step = False

    def _set(self, rates: list) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates):
            set_rate(group, lr)
        self._last_lr = rates_of(self.optimizer)

    def _current(self) -> list:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict) -> None:
        self.__dict__.update(state_dict)


def _copy(rate):
    return rate.clone() if isinstance(rate, Tensor) else rate


def set_rate(group: dict, rate: Tensor | float, name: str = "lr") -> None:
    """Set a group's rate. One that is a tensor stays that tensor, which compiled steps read, and gets another value."""
    if isinstance(group.get(name), Tensor):
        group[name].fill_(rate.squeeze() if isinstance(rate, Tensor) else rate)
    else:
        group[name] = rate


def rates_of(optimizer: Optimizer) -> list:
    """The rates of the groups. One that is a tensor is copied, for the next step overwrites it."""
    return [_copy(group["lr"]) for group in optimizer.param_groups]


def _note_steps(optimizer: Optimizer) -> None:
    """Let the optimizer remember that it has stepped: for the warning about the order of the two steps."""
    if not hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        # The attribute is PyTorch's: trainers look for it.
        wrap_step(optimizer, _noting)._wrapped_by_lr_sched = True  # type: ignore[attr-defined]


def _noting(optimizer: Optimizer, step: Callable, args: tuple, kwargs: dict) -> Any:
    optimizer._opt_called = True
    return step(*args, **kwargs)


_OTHER_LENGTH = (
    "{name} must have the same length as optimizer.param_groups. {name} has {own} values, param_groups has {groups}."
)


def _per_group(value, optimizer: Optimizer, name: str, text: str | None = None) -> list:
    """A value for each group. ValueError for as many as there aren't groups, with the words of ``text``."""
    if not isinstance(value, list | tuple):
        return [value] * len(optimizer.param_groups)
    if len(value) != len(optimizer.param_groups):
        raise ValueError((text or _OTHER_LENGTH).format(name=name, own=len(value), groups=len(optimizer.param_groups)))
    return list(value)


def _attributes(f: Callable | None) -> dict | None:
    """What state dicts keep of a function of the user's: the attributes of an object that can be called, nothing of a plain function."""
    return None if f is None or hasattr(f, "__code__") else dict(f.__dict__)


def _set_attributes(f: Callable | None, saved: dict | None) -> None:
    if saved is not None:
        f.__dict__.update(saved)
