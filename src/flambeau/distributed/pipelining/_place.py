"""A stage's place among the others, and what crosses to its neighbours.

Activations go to the next stage's rank and gradients back, each as messages of their own tag, so that the order in which ranks send and receive
doesn't matter. A message of activations begins with a number: 0 when shapes and dtypes are those of the message before, else the length of a
description that follows. So sizes may differ between microbatches and between training and evaluation."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...autograd.grad_mode import is_grad_enabled
from ...core.bindings import function
from ...modules.module import Module
from .. import world
from ..objects import counts, packed, unpacked
from ..point_to_point import irecv, isend
from ..work import Work
from ._split_backward import Later

__all__ = ["Forward", "Place"]

empty = function("empty")
_BYTES = packed(None).dtype
# Above what programs use for messages of their own.
_TAG = 1 << 13


class _Spec(NamedTuple):
    """A tensor that crosses to the next stage."""

    shape: tuple[int, ...]
    dtype: Any
    requires_grad: bool


class Forward(NamedTuple):
    """What the backward of one microbatch needs."""

    inputs: tuple
    outputs: tuple


class Place:
    """Stage ``stage_index`` of ``num_stages``, on this rank of ``group``."""

    def __init__(self, submodule: Module, stage_index: int, num_stages: int, device, group=None, dw_builder=None):
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if dw_builder is not None:
            raise NotImplementedError("PipelineStage: dw_builder isn't built: backward passes are split by the graph")
        self.submod, self.stage_index, self.num_stages, self.device = submodule, stage_index, num_stages, device
        self.group = group
        alone = group is None and not world.is_initialized()
        self.group_rank, self.group_size = (0, 1) if alone else (world.get_rank(group), world.get_world_size(group))
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.stage_index_to_group_rank = {k: k % self.group_size for k in range(num_stages)}
        self.has_backward = False
        self.inputs_meta: tuple[_Spec, ...] | None = None
        self._outputs_meta: tuple[_Spec, ...] | None = None
        self.clear_runtime_states()

    @property
    def is_first(self) -> bool:
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self) -> None:
        """Forget what a step left."""
        self.output_chunks: list[Any] = []
        self._forwards: dict[int, Forward] = {}
        # From a stage of this rank: inputs, by microbatch.
        self._arrived: dict[int, tuple] = {}
        self._arrived_gradients: dict[int, tuple] = {}
        self._gradients: dict[int, tuple] = {}
        self._split: dict[int, Later] = {}
        self._sending: list[tuple[Work, Any]] = []

    # ---- messages --------------------------------------------------------------------------------------------------

    def _rank_of(self, stage: int) -> int:
        return self.stage_index_to_group_rank[stage]

    def _send(self, t, to: int, tag: int) -> None:
        t = t.detach().contiguous()
        self._sending.append((isend(t, group=self.group, group_dst=to, tag=_TAG + tag), t))

    def _receive(self, t, source: int, tag: int):
        irecv(t, group=self.group, group_src=source, tag=_TAG + tag).wait()
        return t

    def advance(self) -> None:
        """Move messages on, and give back the memory of those that are gone."""
        self._sending = [(work, t) for work, t in self._sending if not work.is_completed()]

    def wait_for_sends(self) -> None:
        while self._sending:
            self._sending.pop()[0].wait()

    def _described(self, outputs: tuple) -> tuple[_Spec, ...]:
        keeps = self.has_backward
        return tuple(_Spec(tuple(t.shape), t.dtype, keeps and t.requires_grad) for t in outputs)

    def send_forward(self, microbatch: int, next_stage: Place | None) -> None:
        """Hand the outputs to the next stage; ``next_stage`` where it is of this process."""
        outputs = self._forwards[microbatch].outputs
        if next_stage is not None:
            next_stage._arrived[microbatch] = tuple(t.detach() for t in outputs), self._described(outputs)
            return
        to, tag = self._rank_of(self.stage_index + 1), 2 * (self.stage_index + 1)
        meta = self._described(outputs)
        if meta == self._outputs_meta:
            self._send(counts([0]), to, tag)
        else:
            description = packed(meta)
            self._send(counts([description.numel()]), to, tag)
            self._send(description, to, tag)
            self._outputs_meta = meta
        for t in outputs:
            self._send(t, to, tag)

    def _receive_forward(self, microbatch: int) -> tuple:
        """The inputs, as leaves of this stage's graph."""
        if microbatch in self._arrived:
            values, meta = self._arrived.pop(microbatch)
        else:
            source, tag = self._rank_of(self.stage_index - 1), 2 * self.stage_index
            length = int(self._receive(counts([0]), source, tag).item())
            if length:
                description = self._receive(empty(length, dtype=_BYTES), source, tag)
                self.inputs_meta = unpacked(description, length)
            meta = self.inputs_meta
            values = tuple(self._receive(empty(s.shape, dtype=s.dtype), source, tag) for s in meta)
        return tuple(t.requires_grad_(s.requires_grad and is_grad_enabled()) for t, s in zip(values, meta))

    def send_backward(self, microbatch: int, previous_stage: Place | None) -> None:
        """Hand the gradients of the inputs to the stage before."""
        gradients = self._gradients.pop(microbatch)
        if previous_stage is not None:
            previous_stage._arrived_gradients[microbatch] = gradients
            return
        for g in gradients:
            self._send(g, self._rank_of(self.stage_index - 1), 2 * self.stage_index + 1)

    def _receive_backward(self, microbatch: int, outputs: list) -> tuple:
        if microbatch in self._arrived_gradients:
            return self._arrived_gradients.pop(microbatch)
        source, tag = self._rank_of(self.stage_index + 1), 2 * (self.stage_index + 1) + 1
        return tuple(self._receive(empty(t.shape, dtype=t.dtype), source, tag) for t in outputs)
