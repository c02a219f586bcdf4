"""Schedules: in which order (_orders.py, _v_orders.py) the ranks of a pipeline run forwards and backwards of microbatches; _step.py runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.public import public_in
from ..fsdp import FSDPModule
from . import _orders, _v_orders
from ._orders import Kind, Order
from ._step import PipelineSchedule
from .microbatch import TensorChunkSpec
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


class PipelineScheduleSingle(PipelineSchedule):
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


class PipelineScheduleMulti(PipelineSchedule):
    """Schedules of several stages a rank: stage k is on rank k modulo the number of ranks, so one rank may have all of them."""

    @staticmethod
    def _stages_of(rank: int, ranks: int, total: int) -> list[int]:
        """The stages of a rank. ValueError where they can't be placed."""
        if total % ranks:
            raise ValueError(f"{total} stages can't be spread evenly over {ranks} ranks")
        return list(range(rank, total, ranks))

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
        wanted = self._stages_of(rank, ranks, total)
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


class _Ordered(PipelineScheduleMulti):
    """Schedules whose order is ``_make(rank, stages, ranks, microbatches)``."""

    _make: Callable[[int, Sequence[int], int, int], Order]

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
        order = type(self)._make(self._rank, sorted(self._by_index), self._ranks, self._n_microbatches)
        in_parts = any(a.kind is Kind.WEIGHT for a in order)
        if in_parts and any(isinstance(m, FSDPModule) for s in self._stages for m in s.submod.modules()):
            raise NotImplementedError(
                f"{type(self).__name__} of modules of fully_shard isn't built: their backward isn't split in two"
            )
        return order


@public_in("distributed.pipelining.schedules")
class ScheduleInterleaved1F1B(_Ordered):
    """One forward, one backward, the rank's stages in turn. ValueError when the microbatches make no whole rounds."""

    _make = staticmethod(_orders.interleaved_1f1b)


@public_in("distributed.pipelining.schedules")
class ScheduleInterleavedZeroBubble(_Ordered):
    """ScheduleInterleaved1F1B with gradients of parameters computed later than those of inputs, where ranks would idle."""

    _make = staticmethod(_orders.interleaved_zero_bubble)


class _InV(_Ordered):
    """Schedules of two stages a rank in a V: of P ranks, rank r has the stages r and 2P - 1 - r, so rank 0 has the first and the last one.

    ValueError for other numbers of stages."""

    @staticmethod
    def _stages_of(rank: int, ranks: int, total: int) -> list[int]:
        if total != 2 * ranks:
            raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {total} stages on {ranks} ranks.")
        return [rank, total - 1 - rank]

    def _own_order(self):
        ranks = {k: r for r in range(self._ranks) for k in self._stages_of(r, self._ranks, self._num_stages)}
        for stage in self._stages:
            stage.stage_index_to_group_rank = ranks
        return super()._own_order()


@public_in("distributed.pipelining.schedules")
class ScheduleZBVZeroBubble(_InV):
    """Two stages a rank in a V, each backward in two parts: ranks don't idle where a forward and both parts take the same time."""

    _make = staticmethod(_v_orders.zero_bubble_v)


@public_in("distributed.pipelining.schedules")
class ScheduleDualPipeV(_InV):
    """Two stages a rank in a V, forwards of one direction beside backwards of the other, which are run one behind the other. ValueError for fewer
    microbatches than stages."""

    _make = staticmethod(_v_orders.dual_pipe_v)


_NAMES: dict[str, type[PipelineSchedule]] = {
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


def get_schedule_class(schedule_name: str) -> type[PipelineSchedule]:
    """The schedule of that name, in any case. ValueError for another name."""
    found = {name.lower(): cls for name, cls in _NAMES.items()}.get(schedule_name.lower())
    if found is None:
        raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(_NAMES)}")
    return found
