"""Schedules: in which order the ranks of a pipeline run forwards and backwards of microbatches (_orders.py), and the step that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ...autograd.grad_mode import is_grad_enabled
from ...base.public import public_in
from ..fsdp import FSDPModule
from . import _orders
from ._orders import Action, Kind
from .microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks, split_tensor
from .stage import _PipelineStageBase

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "get_schedule_class",
]


class _PipelineSchedule:
    """The step of a pipeline. ``loss_fn(output, target)`` is called on each microbatch in the last stage; without it there is no backward."""

    def __init__(
        self,
        stages: Sequence[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ):
        if n_microbatches < 1:
            raise ValueError(f"a schedule needs at least one microbatch, got {n_microbatches}")
        self._stages, self._n_microbatches, self._loss_fn = stages, n_microbatches, loss_fn
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec, self.scale_grads = output_merge_spec, scale_grads
        self._has_backward = loss_fn is not None
        self._by_index = {s.stage_index: s for s in stages}
        self._num_stages, self._rank, self._ranks = stages[0].num_stages, stages[0].group_rank, stages[0].group_size
        self._order = self._own_order()
        self._last_backwards = {a.stage: a for a in self._order if a.kind in (Kind.BACKWARD, Kind.WEIGHT)}

    def _own_order(self) -> list[Action]:
        raise NotImplementedError

    def step(
        self,
        *args,
        target=None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs,
    ):
        """Run one step on a whole batch: ``args`` on the rank of the first stage, ``target`` on that of the last one, ``kwargs`` for each rank's
        stages.

        Returns the whole output on the rank of the last stage (unless ``return_outputs`` is False), None on the others. ``losses`` becomes the list
        of the microbatches' losses there. Gradients are accumulated in the parameters: of the mean of these losses with ``scale_grads``, else of
        their sum. RuntimeError without gradients enabled."""
        if self._has_backward and not is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under torch.no_grad() context. "
                "Please call eval() instead."
            )
        return self._run(args, kwargs, target, losses, return_outputs, loss_kwargs or {}, self._has_backward)

    def eval(self, *args, target=None, losses: list | None = None, **kwargs):
        """As ``step``, forwards only."""
        return self._run(args, kwargs, target, losses, True, {}, False)

    def _run(self, args, kwargs, target, losses, return_outputs, loss_kwargs, has_backward):
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        n, last = self._n_microbatches, self._by_index.get(self._num_stages - 1)
        first = 0 in self._by_index
        if args and not first:
            raise ValueError(
                f"step() was given positional arguments on rank {self._rank}, which doesn't have the first stage: its stages take what arrives"
            )
        arg_mbs, kwarg_mbs = split_args_kwargs_into_chunks(
            args, kwargs, n, self._args_chunk_spec if args else None, self._kwargs_chunk_spec if kwargs else None
        )
        with_loss = last is not None and self._loss_fn is not None and (has_backward or target is not None)
        if with_loss and target is None:
            raise ValueError("step() needs target= on the rank of the last stage, because the schedule has a loss_fn")
        targets = self._split_target(target) if with_loss else None
        for stage in self._stages:
            stage.clear_runtime_states()
            stage.has_backward = has_backward
        run = _Run(self, arg_mbs, kwarg_mbs, targets, loss_kwargs, has_backward)
        try:
            run.all()
            outputs = last.output_chunks if last is not None else []
        finally:
            for stage in self._stages:
                stage.clear_runtime_states()
        if losses is not None:
            losses[:] = [run.losses[m] for m in sorted(run.losses)]
        return merge_chunks(outputs, self._output_merge_spec) if last is not None and return_outputs else None

    def _split_target(self, target) -> list:
        n = self._n_microbatches
        if isinstance(target, _C.TensorBase):
            return list(split_tensor(target, 0, n, "target"))
        return [args[0] for args in split_args_kwargs_into_chunks((target,), None, n)[0]]


class _Run:
    """One step."""

    def __init__(self, schedule: _PipelineSchedule, arg_mbs, kwarg_mbs, targets, loss_kwargs, has_backward: bool):
        self.schedule, self.arg_mbs, self.kwarg_mbs, self.targets = schedule, arg_mbs, kwarg_mbs, targets
        self.loss_kwargs, self.has_backward = loss_kwargs, has_backward
        self.losses: dict[int, Any] = {}
        self.scale = 1.0 / schedule._n_microbatches if schedule.scale_grads else 1.0

    def all(self) -> None:
        stages = self.schedule._stages
        for action in self.schedule._order:
            if action.kind is Kind.FORWARD:
                self.forward(action)
            elif self.has_backward:
                self.backward(action)
            for stage in stages:
                stage.advance()
        for stage in stages:
            stage.wait_for_sends()

    def forward(self, action: Action) -> None:
        schedule, m = self.schedule, action.microbatch
        stage = schedule._by_index[action.stage]
        out = stage.forward_one_chunk(m, self.arg_mbs[m], self.kwarg_mbs[m])
        if not stage.is_last:
            stage.send_forward(m, schedule._by_index.get(action.stage + 1))
        elif self.targets is not None:
            self.losses[m] = schedule._loss_fn(out, self.targets[m], **self.loss_kwargs)
        if not self.has_backward:
            stage.forget(m)

    def backward(self, action: Action) -> None:
        schedule, m = self.schedule, action.microbatch
        stage = schedule._by_index[action.stage]
        last = schedule._last_backwards[action.stage] == action
        if action.kind is Kind.WEIGHT:
            stage.backward_weight_one_chunk(m, last)
            return
        loss = self.losses.get(m) if stage.is_last else None
        if action.kind is Kind.INPUT:
            stage.backward_input_one_chunk(m, loss, self.scale)
        else:
            stage.backward_one_chunk(m, loss, self.scale, last)
        if not stage.is_first:
            stage.send_backward(m, schedule._by_index.get(action.stage - 1))


class PipelineScheduleSingle(_PipelineSchedule):
    """Schedules of one stage a rank."""

    def __init__(
        self,
        stage: _PipelineStageBase,
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ):
        if stage.num_stages != stage.group_size:
            raise RuntimeError(
                f"{type(self).__name__} runs one stage a rank: there are {stage.num_stages} stages on {stage.group_size} ranks; "
                "ScheduleInterleaved1F1B and ScheduleLoopedBFS take several"
            )
        self._stage = stage
        super().__init__(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )


@public_in("distributed.pipelining.schedules")
class ScheduleGPipe(PipelineScheduleSingle):
    """All forwards, then all backwards."""

    def _own_order(self):
        return _orders.gpipe(self._stage.stage_index, self._n_microbatches)


@public_in("distributed.pipelining.schedules")
class Schedule1F1B(PipelineScheduleSingle):
    """One forward, one backward: a stage holds activations of as many microbatches as there are stages from it on. ValueError for fewer microbatches
    than stages."""

    def _own_order(self):
        if self._n_microbatches < self._num_stages:
            raise ValueError(
                f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of stages ({self._num_stages})."
            )
        return _orders.one_forward_one_backward(self._stage.stage_index, self._num_stages, self._n_microbatches)


@public_in("distributed.pipelining.schedules")
class _ScheduleForwardOnly(PipelineScheduleSingle):
    """Forwards alone. RuntimeError where a loss is asked for."""

    def _own_order(self):
        return _orders.gpipe(self._stage.stage_index, self._n_microbatches)

    def step(self, *args, target=None, losses=None, return_outputs=True, loss_kwargs=None, **kwargs):
        if target is not None or losses is not None:
            raise RuntimeError("Forward-only schedule does not support loss computation")
        return self._run(args, kwargs, None, None, return_outputs, {}, False)


class PipelineScheduleMulti(_PipelineSchedule):
    """Schedules of several stages a rank: stage k is on rank k modulo the number of ranks, so one rank may have all of them."""

    def __init__(
        self,
        stages: Sequence[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ):
        stages = sorted(stages, key=lambda s: s.stage_index)
        if not stages:
            raise ValueError(f"{type(self).__name__} needs the stages of this rank, got none")
        ranks, rank, total = stages[0].group_size, stages[0].group_rank, stages[0].num_stages
        if total % ranks:
            raise ValueError(f"{total} stages can't be spread evenly over {ranks} ranks")
        wanted = list(range(rank, total, ranks))
        if [s.stage_index for s in stages] != wanted:
            raise ValueError(f"rank {rank} of {ranks} has the stages {wanted}, got {[s.stage_index for s in stages]}")
        if not backward_requires_autograd:
            raise NotImplementedError(f"{type(self).__name__}: backward_requires_autograd=False isn't built")
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )


@public_in("distributed.pipelining.schedules")
class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All forwards of a stage before those of the rank's next one, then backwards the other way round."""

    def __init__(
        self,
        stages: Sequence[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ):
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            output_merge_spec=output_merge_spec,
            scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd,
        )

    def _own_order(self):
        return _orders.looped_bfs(sorted(self._by_index), self._n_microbatches)


class _Interleaved(PipelineScheduleMulti):
    _make: Callable

    def __init__(
        self,
        stages: Sequence[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ):
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd,
        )

    def _own_order(self):
        return type(self)._make(self._rank, sorted(self._by_index), self._ranks, self._n_microbatches)


@public_in("distributed.pipelining.schedules")
class ScheduleInterleaved1F1B(_Interleaved):
    """One forward, one backward, the rank's stages in turn. ValueError when the microbatches make no whole rounds."""

    _make = staticmethod(_orders.interleaved_1f1b)


@public_in("distributed.pipelining.schedules")
class ScheduleInterleavedZeroBubble(_Interleaved):
    """ScheduleInterleaved1F1B with gradients of parameters computed later than those of inputs, where ranks would idle."""

    _make = staticmethod(_orders.interleaved_zero_bubble)

    def _own_order(self):
        if any(isinstance(m, FSDPModule) for s in self._stages for m in s.submod.modules()):
            raise NotImplementedError(
                "ScheduleInterleavedZeroBubble of modules of fully_shard isn't built: their backward isn't split in two"
            )
        return super()._own_order()


class _NotBuilt(PipelineScheduleMulti):
    def __init__(self, stages, n_microbatches: int, loss_fn: Callable | None = None, **options):
        raise NotImplementedError(
            f"{type(self).__name__} isn't built: it needs stages placed in a V; ScheduleInterleavedZeroBubble is"
        )


@public_in("distributed.pipelining.schedules")
class ScheduleZBVZeroBubble(_NotBuilt):
    """Not built."""


@public_in("distributed.pipelining.schedules")
class ScheduleDualPipeV(_NotBuilt):
    """Not built."""


_NAMES: dict[str, type[_PipelineSchedule]] = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
    "ZBVZeroBubble": ScheduleZBVZeroBubble,
    "DualPipeV": ScheduleDualPipeV,
}


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """The schedule of that name, in any case. ValueError for another name."""
    found = {name.lower(): cls for name, cls in _NAMES.items()}.get(schedule_name.lower())
    if found is None:
        raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(_NAMES)}")
    return found
