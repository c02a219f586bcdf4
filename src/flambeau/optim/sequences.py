"""Schedules made of others: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from flambeau.base.public import public_in
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.plateau import ReduceLROnPlateau
from flambeau.optim.schedule import LRScheduler, rates_of, set_rate

__all__ = ["ChainedScheduler", "SequentialLR"]


@public_in("optim.lr_scheduler")
class SequentialLR(LRScheduler):
    """Schedulers one after the other, changing at the milestones."""

    def __init__(self, optimizer: Optimizer, schedulers: list, milestones: list[int], last_epoch: int = -1) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got number of "
                f"schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones, self.last_epoch, self.optimizer = (
            schedulers,
            milestones,
            last_epoch + 1,
            optimizer,
        )
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self._undo(self)  # as if none of them had begun
        first = schedulers[sum(m <= 0 for m in milestones)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _check(self, schedulers: Sequence, optimizer: Optimizer) -> None:
        """TypeError or ValueError for what is no scheduler, needs more than ``step()``, or has another optimizer."""
        name = type(self).__name__
        for k, s in enumerate(schedulers):
            if not hasattr(s, "optimizer"):
                raise TypeError(f"{name} at index {k} should have `optimizer` as its attribute.")
            if isinstance(s, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified when calling "
                    f"`step`, but got one at index {k} in the given schedulers sequence."
                )
            if s.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler {type(s).__name__} at index {k} has "
                    f"{s.optimizer}, which is different from {optimizer}."
                )

    def _undo(self, scheduler) -> None:
        for s in getattr(scheduler, "_schedulers", ()):
            self._undo(s)
        if not hasattr(scheduler, "_schedulers"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[k]
        if k > 0 and self._milestones[k - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict:
        out = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**out, "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict) -> None:
        parts = state_dict["_schedulers"]
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for s, part in zip(self._schedulers, parts):
            s.load_state_dict(part)


@public_in("optim.lr_scheduler")
class ChainedScheduler(LRScheduler):
    """Several schedulers that act on the rate at once."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        schedulers = list(schedulers)
        if not schedulers:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, optimizer)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = rates_of(optimizer)

    def step(self) -> None:  # type: ignore[override]
        for s in self._schedulers:
            s.step()
        self._last_lr = rates_of(self.optimizer)

    _check, state_dict, load_state_dict = SequentialLR._check, SequentialLR.state_dict, SequentialLR.load_state_dict
