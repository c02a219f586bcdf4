"""The step of a pipeline: what a rank does for a whole batch, in the order that its schedule says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ...autograd.grad_mode import is_grad_enabled
from ._orders import Action, Kind
from .microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks, split_tensor
from .stage import _PipelineStageBase

__all__ = ["PipelineSchedule"]


class PipelineSchedule:
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
        """What this rank does, one action after the other. A schedule is a subclass that says it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no order of its own: use one of the schedules, as ScheduleGPipe"
        )

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

    def __init__(self, schedule: PipelineSchedule, arg_mbs, kwarg_mbs, targets, loss_kwargs, has_backward: bool):
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
