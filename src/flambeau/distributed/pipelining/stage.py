"""A stage: a part of a model, run forward and backward on microbatches."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from ... import _C
from ...autograd import backward as run_backward
from ...autograd.grad_mode import no_grad
from ...base.public import public_in
from ...core.bindings import function
from ...modules.module import Module
from ..data_parallel import DistributedDataParallel
from ..fsdp import FSDPModule
from ._place import Forward, Place
from ._split_backward import input_gradients, weight_gradients

__all__ = ["PipeInfo", "PipelineStage", "build_stage"]

zeros_like = function("zeros_like")


class PipeInfo(NamedTuple):
    """What a stage of a traced module knows of the whole."""

    graph: Any
    num_stages: int
    has_loss_and_backward: bool


class _PipelineStageBase(Place):
    """A place among the stages, and the module that is run there."""

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
        self._forwards[microbatch] = Forward(tensors, outputs)
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
