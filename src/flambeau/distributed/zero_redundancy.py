"""ZeroRedundancyOptimizer: each rank keeps the optimizer's state of its share of the parameters (Rajbhandari et al., "ZeRO", 2020, stage 1)."""

from __future__ import annotations

import copy

from ..autograd.grad_mode import enable_grad
from ..optim import Optimizer
from . import objects, world
from .join import Joinable
from .replicas import synchronize

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """``ZeroRedundancyOptimizer(params, optimizer_class=torch.optim.Adam, lr=...)``. Parameters go to the rank with the fewest elements so far, the
    largest first; after a step each rank sends the parameters that it updated. ``state_dict`` needs ``consolidate_state_dict(to)`` on all ranks
    before. RuntimeError without it."""

    def __init__(
        self,
        params,
        optimizer_class,
        process_group=None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults,
    ):
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp isn't built")
        self.process_group = world.of(process_group)
        self.optimizer_class, self._ready = optimizer_class, False
        super().__init__(params, defaults)
        self._ready = True
        self._split()

    def _split(self) -> None:
        """Make the optimizer of this rank's share."""
        size, rank = self.process_group.size(), self.process_group.rank()
        totals = [0] * size
        self.owner: dict[int, int] = {}  # by the parameter's number
        numbered = [p for g in self.param_groups for p in g["params"]]
        for k in sorted(range(len(numbered)), key=lambda k: (-numbered[k].numel(), k)):
            to = totals.index(min(totals))
            totals[to] += numbered[k].numel()
            self.owner[k] = to
        own, k = [], 0
        for g in self.param_groups:
            options = {name: value for name, value in g.items() if name != "params"}
            mine = [p for i, p in enumerate(g["params"], k) if self.owner[i] == rank]
            k += len(g["params"])
            own.append({**options, "params": mine})
        self.optim = (
            self.optimizer_class([g for g in own if g["params"]] or own[:1], **self.defaults)
            if any(g["params"] for g in own)
            else None
        )
        self._own_groups = [k for k, g in enumerate(own) if g["params"]]
        self._gathered: dict | None = None

    def add_param_group(self, param_group: dict) -> None:
        super().add_param_group(param_group)
        if self._ready:
            self._split()

    def _follow_options(self) -> None:
        """Learning rates that a scheduler set here hold there."""
        for place, k in enumerate(self._own_groups):
            for name, value in self.param_groups[k].items():
                if name != "params":
                    self.optim.param_groups[place][name] = value

    def step(self, closure=None, **kwargs):
        """One step of all parameters; the value of ``closure``."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if self.optim is not None:
            self._follow_options()
            self.optim.step(**kwargs)
        numbered = [p for g in self.param_groups for p in g["params"]]
        for rank in range(self.process_group.size()):
            synchronize([p for k, p in enumerate(numbered) if self.owner[k] == rank], self.process_group, rank)
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all ranks on rank ``to``."""
        own = {}
        if self.optim is not None:
            numbers = {id(p): k for k, p in enumerate(p for g in self.param_groups for p in g["params"])}
            own = {numbers[id(p)]: state for p, state in self.optim.state.items()}
        every = [None] * self.process_group.size()
        objects.all_gather_object(every, own, self.process_group)
        if self.process_group.rank() == to:
            self._gathered = {k: state for part in every for k, state in part.items()}

    def state_dict(self) -> dict:
        """As an optimizer's of all parameters."""
        if self._gathered is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=...)` on all ranks beforehand if you "
                "meant to save the global state."
            )
        plain = super().state_dict()
        return {**plain, "state": dict(sorted(self._gathered.items()))}

    def load_state_dict(self, state_dict: dict) -> None:
        """Each rank takes its share."""
        state_dict = copy.deepcopy(state_dict)
        super().load_state_dict({**state_dict, "state": {}})
        self._split()
        numbered = [p for g in self.param_groups for p in g["params"]]
        for k, state in state_dict["state"].items():
            if self.owner[int(k)] == self.process_group.rank():
                self.optim.state[numbered[int(k)]] = state
        self._gathered = None

    @property
    def join_device(self):
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self):
        return self.process_group

    def join_hook(self, **kwargs):
        raise NotImplementedError("ZeroRedundancyOptimizer in a Join isn't built")


Joinable.register(ZeroRedundancyOptimizer)
