"""Local SGD after some steps: gradients are reduced within a machine only, and parameters are averaged over all ranks every few steps
(Lin, Stich, Patel, Jaggi: "Don't Use Large Mini-Batches, Use Local SGD", 2018)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ..autograd.grad_mode import no_grad
from ..core.bindings import function
from ..optim import Optimizer
from . import collectives, world
from .comm_hooks import allreduce_hook, noop_hook
from .futures import Future
from .groups import new_subgroups
from .reduce_op import ReduceOp

__all__ = [
    "HierarchicalModelAverager",
    "ModelAverager",
    "PeriodicModelAverager",
    "PostLocalSGDOptimizer",
    "PostLocalSGDState",
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "post_localSGD_hook",
]

cat = function("cat")


class PostLocalSGDState:
    """Gradients are reduced over ``process_group`` for ``start_localSGD_iter`` steps, then over ``subgroup`` (by default the ranks of one machine),
    or not at all with ``post_local_gradient_allreduce=False``."""

    def __init__(
        self,
        process_group,
        subgroup,
        start_localSGD_iter: int,  # noqa: N803
        post_local_gradient_allreduce: bool = True,
    ):
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket) -> None:
        """Count a step behind its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket) -> Future:  # noqa: N802
    """The mean of a bucket over the group that is its turn."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)


def average_parameters(params: Iterable, process_group) -> None:
    """Make parameters their means over the ranks of a group, by one collective a dtype."""
    by_dtype: dict = {}
    for p in params:
        by_dtype.setdefault(p.dtype, []).append(p)
    with no_grad():
        for members in by_dtype.values():
            flat = cat([p.detach().reshape(-1) for p in members])
            collectives.all_reduce(flat, ReduceOp.AVG, world.of(process_group))
            for p, part in zip(members, flat.split([p.numel() for p in members])):
                p.copy_(part.view_as(p))


def average_parameters_or_parameter_groups(params: Iterable, process_group) -> None:
    """As ``average_parameters``, of the parameters that have gradients; groups of an optimizer are taken too."""
    flat = [p for x in params for p in (x["params"] if isinstance(x, dict) else [x])]
    average_parameters([p for p in flat if p.grad is not None], process_group)


class ModelAverager:
    """Base of averagers. ``step`` counts the calls of ``average_parameters``."""

    def __init__(self, process_group=None):
        self.process_group = process_group if process_group is not None else world.of(None)
        self.step = 0

    def average_parameters(self, params) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no average_parameters")


class PeriodicModelAverager(ModelAverager):
    """Averages every ``period`` calls after the first ``warmup_steps``. ValueError for a negative number of steps or no period."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period <= 0:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params) -> None:
        """Average when it is time, and count."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1


class HierarchicalModelAverager(ModelAverager):
    """Averages over groups of several sizes, {period: size of its groups} from the smallest on: at each step over the largest whose period divides
    it. ValueError for no periods, a period below 1, and a last group that isn't the whole one."""

    def __init__(self, period_group_size_dict=None, warmup_steps: int = 0, process_group=None):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        periods, sizes = list(period_group_size_dict), list(period_group_size_dict.values())
        whole = self.process_group.size()
        if periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if periods[-1] == 1:
            warnings.warn(
                "When the maximum period in arg ``period_group_size_dict`` is 1, no need to use model averaging because the communication "
                "cost of all-reducing parameters will be no less than the cost of all-reducing gradients by DistributedDataParallel in the "
                "backward pass. Therefore, only DistributedDataParallel should be used for this case.",
                stacklevel=2,
            )
        if sizes[-1] != whole:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {sizes[-1]} must be equal to the size of arg ``process_group`` {whole}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        self.period_process_group_dict = {
            period: self.process_group if size == whole else new_subgroups(size, self.process_group)[0]
            for period, size in zip(periods, sizes)
        }

    def average_parameters(self, params) -> None:
        """Average over the group whose turn it is, and count."""
        if self.step >= self.warmup_steps:
            groups = reversed(self.period_process_group_dict.items())
            group = next((g for period, g in groups if self.step % period == 0), None)
            if group is not None:
                average_parameters_or_parameter_groups(params, group)
        self.step += 1


class PostLocalSGDOptimizer(Optimizer):
    """``optim`` whose steps are followed by ``averager.average_parameters``. The averager's count is part of the state dict."""

    def __init__(self, optim: Optimizer, averager: ModelAverager):
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self):
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict:
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict) -> None:
        """What ``state_dict`` gave; without a count the averager begins anew, with a warning."""
        self.optim.load_state_dict(state_dict)
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
            return
        warnings.warn(
            "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
            stacklevel=2,
        )
        self.averager.step = 0

    def step(self):  # noqa: D102
        self.optim.step()
        self.averager.average_parameters(self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict) -> None:
        self.optim.add_param_group(param_group)
