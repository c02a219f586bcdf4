"""Join: ranks with fewer batches than others keep up with the collectives of those that go on."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod

from ..core.bindings import function
from . import collectives, world

__all__ = ["Join", "JoinHook", "Joinable"]

tensor_zeros, tensor_ones = function("zeros"), function("ones")


class JoinHook:
    """What a rank that has no more input does for the others: ``main_hook`` in each of their iterations, ``post_hook`` once all have joined."""

    def main_hook(self) -> None:
        """Shadow one iteration's collectives."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Once, at the end."""


class Joinable(ABC):
    """What takes part in a :class:`Join`."""

    _join_config = None

    @abstractmethod
    def join_hook(self, **kwargs) -> JoinHook: ...

    @property
    @abstractmethod
    def join_device(self): ...

    @property
    @abstractmethod
    def join_process_group(self): ...


class Join:
    """``with Join([model]): ...``: the block may run a different number of iterations on each rank. With ``throw_on_early_termination`` all ranks
    raise RuntimeError once one has no more input."""

    def __init__(self, joinables: list, enable: bool = True, throw_on_early_termination: bool = False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self.joinables, self.enable, self.throw = joinables, enable, throw_on_early_termination
        self.hooks = [j.join_hook(**kwargs) for j in joinables]
        self.group, self.going = joinables[0].join_process_group, 0  # ranks that have input
        if any(j.join_process_group is not self.group for j in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        for k, j in enumerate(joinables):
            j._join_config = (self, k == 0)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for j in self.joinables:
            j._join_config = None
        if not self.enable or kind:
            return
        all_done, warned, last, iterations = False, False, True, 0
        while not all_done:
            going = self._going(0)
            if going == 0:
                all_done = True
                continue
            if self.throw:
                self._throw(1)
                raise RuntimeError(f"Rank {world.get_rank(self.group)} exhausted all inputs.")
            last = False
            iterations += 1
            if iterations > 1000 and not warned:
                warned = True
                warnings.warn(
                    "Detected uneven input skew of greater than 1000: one rank has many more batches than another",
                    stacklevel=2,
                )
            for hook in self.hooks:
                hook.main_hook()
        for hook in self.hooks:
            hook.post_hook(last)

    def _going(self, mine: int) -> int:
        flag = tensor_ones(1) * mine
        collectives.all_reduce(flag, group=self.group)
        return int(flag.item())

    def _throw(self, mine: int) -> int:
        return self._going(mine)

    @staticmethod
    def notify_join_context(joinable):
        """Called at the beginning of each iteration, before its collectives."""
        config = getattr(joinable, "_join_config", None)
        if config is None or not config[1] or not config[0].enable:
            return None
        join = config[0]
        join.going = join._going(1)
        if join.throw and join._throw(0) > 0:
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return None
