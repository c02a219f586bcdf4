"""A stage: a part of a model, its neighbours, and what crosses to them.

Activations go to the next stage's rank and gradients back, each as messages of their own tag, so that the order in which ranks send and receive
doesn't matter. A message of activations begins with a number: 0 when shapes and dtypes are those of the message before, else the length of a
description that follows. So sizes may differ between microbatches and between training and evaluation."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from ... import _C
from ...autograd import backward as run_backward
from ...autograd.grad_mode import is_grad_enabled, no_grad
from ...base.public import public_in
from ...core.bindings import function
from ...modules.module import Module
from .. import world
from ..data_parallel import DistributedDataParallel
from ..fsdp import FSDPModule
from ..objects import counts, packed, unpacked
from ..point_to_point import irecv, isend
from ..work import Work
from ._split_backward import Later, input_gradients, weight_gradients

__all__ = ["PipeInfo", "PipelineStage", "build_stage"]

empty, zeros_like = function("empty"), function("zeros_like")
_BYTES = packed(None).dtype
# Above what programs use for messages of their own.
_TAG = 1 << 13


class _Spec(NamedTuple):
    """A tensor that crosses to the next stage."""

    shape: tuple[int, ...]
    dtype: Any
    requires_grad: bool


class PipeInfo(NamedTuple):
    """What a stage of a traced module knows of the whole."""

    graph: Any
    num_stages: int
    has_loss_and_backward: bool


class _Forward(NamedTuple):
    """What the backward of one microbatch needs."""

    inputs: tuple
    outputs: tuple


class _PipelineStageBase:
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
        self._forwards: dict[int, _Forward] = {}
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

    def send_forward(self, microbatch: int, next_stage: _PipelineStageBase | None) -> None:
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

    def send_backward(self, microbatch: int, previous_stage: _PipelineStageBase | None) -> None:
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

    # ---- computation -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _without_reduction(self):
        """Gradients are reduced once a step, in the last backward."""
        with self.submod.no_sync() if isinstance(self.submod, DistributedDataParallel) else contextlib.nullcontext():
            yield

    def forward_one_chunk(self, microbatch: int, args: tuple, kwargs: dict[str, Any] | None = None) -> Any:
        """Run the module on one microbatch: ``args`` in the first stage, what arrived in the others; ``kwargs`` in all."""
        inputs = args if self.is_first else self._receive_forward(microbatch)
        try:
            with self._without_reduction():
                out = self.submod(*inputs, **(kwargs if kwargs and self._takes_kwargs() else {}))
        except Exception as error:
            error.add_note(f"in the forward of stage {self.stage_index}, microbatch {microbatch}")
            raise
        outputs = self._checked(out)
        if self.is_last:
            self.output_chunks.append(out)
        tensors = tuple(t for t in inputs if isinstance(t, _C.TensorBase))
        self._forwards[microbatch] = _Forward(tensors, outputs)
        return out

    def _takes_kwargs(self) -> bool:
        return True

    def _checked(self, out: Any) -> tuple:
        outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if not self.is_last and not all(isinstance(t, _C.TensorBase) for t in outputs):
            raise TypeError(
                f"stage {self.stage_index} must return a tensor or a tuple of tensors for the next stage, got {[type(t).__name__ for t in outputs]}"
            )
        return outputs

    def forget(self, microbatch: int) -> None:
        """Give back what a backward would need."""
        self._forwards.pop(microbatch)

    def _roots(self, microbatch: int, loss, scale: float) -> tuple[list, list]:
        """Tensors that the backward starts from, and their gradients."""
        forward = self._forwards[microbatch]
        if self.is_last:
            outputs = [loss] if loss is not None else []
            gradients = [zeros_like(t.detach()).fill_(scale) for t in outputs]
        else:
            outputs = [t for t in forward.outputs if t.requires_grad]
            gradients = list(self._receive_backward(microbatch, outputs))
        return outputs, gradients

    def _reduce_at_last(self, last: bool, outputs: tuple) -> None:
        for m in self.submod.modules():
            if isinstance(m, FSDPModule):
                m.set_requires_gradient_sync(last, recurse=False)
        if last and isinstance(self.submod, DistributedDataParallel):
            self.submod.reducer.prepare_for_backward([t for t in outputs if isinstance(t, _C.TensorBase)])

    def _keep_input_gradients(self, microbatch: int, inputs: list, gradients: list) -> None:
        if not self.is_first:
            with no_grad():
                self._gradients[microbatch] = tuple(
                    zeros_like(t.detach()) if g is None else g for t, g in zip(inputs, gradients, strict=True)
                )

    def backward_one_chunk(self, microbatch: int, loss=None, scale: float = 1.0, last: bool = False) -> None:
        """The backward of one microbatch: from ``loss``, times ``scale``, in the last stage, else from the gradients that arrive. ``last``: it is the
        last of this stage in the step, and reduces the gradients of data-parallel modules."""
        roots, gradients = self._roots(microbatch, loss, scale)
        forward = self._forwards.pop(microbatch)
        self._reduce_at_last(last, forward.outputs)
        if roots:
            run_backward(roots, gradients)
        inputs = [] if self.is_first else [t for t in forward.inputs if t.requires_grad]
        self._keep_input_gradients(microbatch, inputs, [t.grad for t in inputs])

    def backward_input_one_chunk(self, microbatch: int, loss=None, scale: float = 1.0) -> None:
        """The first part of a backward: the gradients of the inputs."""
        roots, gradients = self._roots(microbatch, loss, scale)
        forward = self._forwards[microbatch]
        self._reduce_at_last(False, ())
        inputs = [] if self.is_first else [t for t in forward.inputs if t.requires_grad]
        found, self._split[microbatch] = input_gradients(roots, gradients, inputs)
        self._keep_input_gradients(microbatch, inputs, found)

    def backward_weight_one_chunk(self, microbatch: int, last: bool = False) -> None:
        """The second part: the gradients of the parameters."""
        self._reduce_at_last(last, self._forwards.pop(microbatch).outputs)
        weight_gradients(self._split.pop(microbatch))


@public_in("distributed.pipelining.stage")
class PipelineStage(_PipelineStageBase):
    """One stage of a pipeline: ``submodule`` is run here on what the stage before returns, a tensor or a tuple of tensors.

    Stage k lives on rank k modulo the size of ``group`` (the default group; one process where there is none). Shapes are told by the stage before
    with the first microbatch; ``input_args`` and ``output_args``, which PyTorch takes them from, are accepted, and the outputs are compared with
    ``output_args``. A submodule may be a DistributedDataParallel or sharded by ``fully_shard`` over another group. ValueError for an index out of
    range, RuntimeError for fewer stages than ranks."""

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device=None,
        input_args=None,
        output_args=None,
        output_grads=None,
        input_grads=None,
        group=None,
        dw_builder=None,
        get_mesh=None,
    ):
        if get_mesh is not None:
            raise NotImplementedError("PipelineStage: get_mesh isn't built: DTensors don't cross stages")
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        given = (output_args,) if isinstance(output_args, _C.TensorBase) else output_args
        self._promised = None if given is None else [(tuple(t.shape), t.dtype) for t in given]

    def _checked(self, out: Any) -> tuple:
        outputs = super()._checked(out)
        found = [(tuple(t.shape), t.dtype) for t in outputs if isinstance(t, _C.TensorBase)]
        if self._promised is not None and found != self._promised:
            raise RuntimeError(f"stage {self.stage_index} returned {found}, its output_args are {self._promised}")
        return outputs


class _TracedStage(PipelineStage):
    """A stage of a traced module: whatever later stages need of the arguments comes to them by the first one."""

    def _takes_kwargs(self) -> bool:
        return self.is_first


def build_stage(stage_module: Module, stage_index: int, pipe_info: PipeInfo, device, group=None) -> PipelineStage:
    """A stage of a traced module; see ``Pipe.build_stage``."""
    return _TracedStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
