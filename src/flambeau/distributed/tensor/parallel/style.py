"""Styles of tensor parallelism: how the parameters, the inputs and the results of a module lie.

The styles are Megatron-LM's (Shoeybi et al., 2019; Korthikanti et al., 2022, for sequences).
"""

from __future__ import annotations

import abc

from .... import _C
from ....modules.module import Module
from ....modules.parameter import Parameter
from ....nn import Embedding, Linear
from ...device_mesh import DeviceMesh
from .._api import DTensor, distribute_module, distribute_tensor
from ..placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle(abc.ABC):
    """What ``parallelize_module`` does to a module."""

    src_data_rank: int | None = 0

    @abc.abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module: ...


def _as_dtensor(x, mesh: DeviceMesh, layouts, wanted):
    """A plain tensor taken as ``layouts`` say, brought to ``wanted``."""
    if not isinstance(x, _C.TensorBase):
        return x
    if not isinstance(x, DTensor):
        x = DTensor.from_local(x, mesh, layouts)
    return x.redistribute(placements=wanted) if wanted is not None else x


def _result(x, mesh: DeviceMesh, layouts, use_local: bool):
    if not isinstance(x, DTensor):
        return x
    x = x.redistribute(placements=layouts) if layouts is not None else x
    return x.to_local() if use_local else x


class _OfOne(ParallelStyle):
    """Styles of a module with one input and one result."""

    def __init__(self, input_layouts, wanted_input, output_layouts, use_local_output: bool):
        self.input_layouts, self.desired_input_layouts = (input_layouts,), (wanted_input,)
        self.output_layouts, self.use_local_output = (output_layouts,), use_local_output

    def _enter(self, module, inputs, mesh):
        first = _as_dtensor(inputs[0], mesh, self.input_layouts, self.desired_input_layouts)
        return (first, *inputs[1:])

    def _leave(self, module, outputs, mesh):
        return _result(outputs, mesh, self.output_layouts, self.use_local_output)

    def _place(self, name: str, module: Module, mesh: DeviceMesh) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} must say how the parameters of the module {name!r} are placed"
        )

    def _shard(self, module: Module, mesh: DeviceMesh, placements: dict[str, Placement]) -> None:
        for key, p in list(module._parameters.items()):
            if p is not None:
                part = distribute_tensor(p.data, mesh, [placements[key]], src_data_rank=self.src_data_rank)
                module.register_parameter(key, Parameter(part, p.requires_grad))

    def _apply(self, module, device_mesh):
        return distribute_module(module, device_mesh, self._place, self._enter, self._leave)


class ColwiseParallel(_OfOne):
    """Linear: the outputs are cut (weight and bias along dimension 0). Embedding: the columns of its rows are. The input is replicated before, the
    result is cut along its last dimension. NotImplementedError for other modules."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        super().__init__(input_layouts or Replicate(), Replicate(), output_layouts or Shard(-1), use_local_output)

    def _place(self, name, module, mesh):
        if isinstance(module, Linear):
            self._shard(module, mesh, {"weight": Shard(0), "bias": Shard(0)})
        elif isinstance(module, Embedding):
            self._shard(module, mesh, {"weight": Shard(1)})
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")


class RowwiseParallel(_OfOne):
    """Linear: the inputs are cut (weight along dimension 1, the bias replicated), and so is the input's last dimension. Embedding: its rows are. The
    result is summed over the ranks. NotImplementedError for other modules."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        super().__init__(input_layouts or Shard(-1), Shard(-1), output_layouts or Replicate(), use_local_output)

    def _place(self, name, module, mesh):
        if isinstance(module, Linear):
            self.desired_input_layouts = (Shard(-1),)
            self._shard(module, mesh, {"weight": Shard(1), "bias": Replicate()})
        elif isinstance(module, Embedding):
            self.desired_input_layouts = (Replicate(),)
            self._shard(module, mesh, {"weight": Shard(0)})
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")


class SequenceParallel(_OfOne):
    """Norms, dropout and other modules that treat positions apart: parameters replicated, input and result cut along ``sequence_dim``."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        super().__init__(Shard(sequence_dim), Shard(sequence_dim), None, use_local_output)
        self.output_layouts = None

    def _place(self, name, module, mesh):
        self._shard(module, mesh, dict.fromkeys(module._parameters, Replicate()))


def _listed(x) -> tuple:
    return tuple(x) if isinstance(x, list | tuple) else (x,)


class PrepareModuleInput(ParallelStyle):
    """Bring the inputs of a module from ``input_layouts`` to ``desired_input_layouts`` (None: leave one alone), keyword ones by name."""

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_output: bool = False,
    ):
        self.input_layouts = None if input_layouts is None else _listed(input_layouts)
        self.desired_input_layouts = None if desired_input_layouts is None else _listed(desired_input_layouts)
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.kwarg_layouts = dict(input_kwarg_layouts or {})
        self.desired_kwarg_layouts = dict(desired_input_kwarg_layouts or {})
        if self.kwarg_layouts.keys() != self.desired_kwarg_layouts.keys():
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")
        self.use_local_output = use_local_output

    def _one(self, x, mesh, layout, wanted):
        if layout is None:
            return x
        x = _as_dtensor(x, mesh, (layout,), None if wanted is None else (wanted,))
        return x.to_local() if self.use_local_output and isinstance(x, DTensor) else x

    def _enter(self, module, args, kwargs, mesh):
        if self.input_layouts is not None:
            if len(args) != len(self.input_layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            args = tuple(
                self._one(x, mesh, a, b) for x, a, b in zip(args, self.input_layouts, self.desired_input_layouts)
            )
        wanted = self.desired_kwarg_layouts
        kwargs = {k: self._one(x, mesh, self.kwarg_layouts.get(k), wanted.get(k)) for k, x in kwargs.items()}
        return args, kwargs

    def _apply(self, module, device_mesh):
        module.register_forward_pre_hook(
            lambda m, args, kwargs: self._enter(m, args, kwargs, device_mesh), with_kwargs=True
        )
        return module


class PrepareModuleOutput(ParallelStyle):
    """Bring the results of a module from ``output_layouts`` to ``desired_output_layouts``."""

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output: bool = True):
        self.output_layouts, self.desired_output_layouts = _listed(output_layouts), _listed(desired_output_layouts)
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")
        self.use_local_output = use_local_output

    def _leave(self, outputs, mesh):
        many = isinstance(outputs, tuple)
        given = outputs if many else (outputs,)
        if len(given) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        out = []
        for x, layout, wanted in zip(given, self.output_layouts, self.desired_output_layouts):
            if layout is not None:
                x = _as_dtensor(x, mesh, (layout,), (wanted,))
                x = x.to_local() if self.use_local_output and isinstance(x, DTensor) else x
            out.append(x)
        return tuple(out) if many else out[0]

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda m, args, outputs: self._leave(outputs, device_mesh))
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """Both."""

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_input: bool = False,
        output_layouts,
        desired_output_layouts,
        use_local_output: bool = True,
    ):
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module, device_mesh):
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
