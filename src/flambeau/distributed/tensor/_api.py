"""DTensor: a tensor whose elements are spread over the ranks of a mesh; how one is made, moved and taken apart again."""

from __future__ import annotations

from ... import _C
from ...autograd.function import Function
from ...autograd.grad_mode import no_grad
from ...base.dtypes import get_default_dtype
from ...base.shapes import contiguous_strides
from ...core.bindings import function
from ...core.operator import namespace
from ...core.overrides import DisableTorchFunctionSubclass
from ...core.tensor import Tensor
from ...modules.module import Module
from ...modules.parameter import Parameter
from .. import functional_collectives as funcol
from ..device_mesh import DeviceMesh
from . import _dispatch
from ._redistribute import redistribute
from .placement_types import DTensorSpec, Replicate, Shard, local_box, normalized

__all__ = [
    "DTensor",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]

aten = namespace("aten")


class DTensor(Tensor):
    """A tensor of whole ``shape`` of which each rank of ``device_mesh`` holds ``to_local()``, as ``placements`` say, one for each of its dimensions.

    Operators on it are operators on the whole tensor; all ranks call the same ones. Made by ``distribute_tensor``, ``DTensor.from_local`` and the
    factories of this module.
    """

    _local_tensor: Tensor
    _spec: DTensorSpec
    _is_copied_view = False

    @staticmethod
    def __new__(cls, local_tensor, spec: DTensorSpec, *, requires_grad: bool):
        out = Tensor._make_wrapper_subclass(
            cls,
            spec.shape,
            strides=spec.stride,
            dtype=local_tensor.dtype,
            device=local_tensor.device,
            requires_grad=requires_grad,
        )
        out._spec, out._local_tensor = spec, local_tensor
        return out

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with DisableTorchFunctionSubclass(), _dispatch.opening(args, kwargs):
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _dispatch.dispatch(func, args, kwargs or {})

    @property
    def data(self) -> DTensor:
        """The same parts without autograd history."""
        return DTensor(self._local_tensor.detach(), self._spec, requires_grad=False)

    @data.setter
    def data(self, value) -> None:
        if not isinstance(value, DTensor):
            raise TypeError(f"the data of a DTensor have to be a DTensor, got {type(value).__name__}")
        _C.take_place(self, value)
        self._spec, self._local_tensor = value._spec, value._local_tensor

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that hold it."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple:
        """How it lies along each dimension of the mesh."""
        return self._spec.placements

    @staticmethod
    def from_local(
        local_tensor, device_mesh: DeviceMesh, placements=None, *, run_check: bool = False, shape=None, stride=None
    ) -> DTensor:
        """The DTensor of which each rank gives its part; replicated unless ``placements`` say otherwise. Parts of a sharded dimension are of one size
        unless ``shape`` (and ``stride``) tell the whole. ``run_check`` makes replicated tensors those of the mesh's first rank. Differentiable."""
        placements = normalized(placements, device_mesh, local_tensor.dim())
        if shape is None:
            sizes = list(local_tensor.shape)
            for i, p in enumerate(placements):
                if isinstance(p, Shard):
                    sizes[p.dim] *= device_mesh.size(i)
            shape = sizes
        elif local_box(shape, device_mesh, placements)[0] != tuple(local_tensor.shape):
            raise ValueError(
                f"a part of shape {list(local_tensor.shape)} isn't this rank's of {list(shape)} under {placements}"
            )
        spec = DTensorSpec(
            device_mesh,
            placements,
            tuple(shape),
            tuple(stride) if stride is not None else _whole_strides(local_tensor, shape),
            local_tensor.dtype,
        )
        return _FromLocal.apply(local_tensor, spec, run_check)

    def to_local(self, *, grad_placements=None):
        """This rank's part. ``grad_placements``: how the gradients of the parts lie; as the tensor does unless given, summands being replicated."""
        if grad_placements is not None:
            grad_placements = normalized(grad_placements, self.device_mesh, self.dim())
        return _ToLocal.apply(self, grad_placements)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements=None, *, async_op: bool = False
    ) -> DTensor:
        """The same tensor under other placements. RuntimeError for another mesh, and from shards or replicas to summands. Differentiable."""
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("DTensor.redistribute to another mesh isn't built")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placements = normalized(placements, self.device_mesh, self.dim())
        for now, then in zip(self.placements, placements):
            if then.is_partial() and now != then:
                raise RuntimeError(
                    f"Can not redistribute from {now} to {then}, redistributing to Partial is for internal use only!"
                )
        return self if placements == self.placements else _Redistribute.apply(self, placements)

    def full_tensor(self, *, grad_placements=None):
        """The whole tensor, plain, on every rank."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def tolist(self):
        """The elements of the whole tensor."""
        return self.full_tensor().tolist()

    def __repr__(self, *, tensor_contents=None) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"
        )

    def __deepcopy__(self, memo):
        with no_grad():
            out = DTensor(self._local_tensor.detach().clone(), self._spec, requires_grad=self.requires_grad)
        if getattr(self, "_is_param", False):
            out._is_param = True
        memo[id(self)] = out
        return out

    def __reduce_ex__(self, protocol):
        raise TypeError("a DTensor can't be pickled: use full_tensor(), to_local(), or torch.distributed.checkpoint")

    def __tensor_flatten__(self):
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        spec, requires_grad = context
        return DTensor(inner["_local_tensor"], spec, requires_grad=requires_grad)


_dispatch.install(DTensor)


def _whole_strides(local, shape) -> tuple[int, ...]:
    """Strides of the whole without gaps, its dimensions in the order of the part's."""
    order = sorted(range(len(shape)), key=lambda d: (-local.stride(d), d))
    if order == list(range(len(shape))):
        return contiguous_strides(tuple(shape))
    dense = contiguous_strides(tuple(shape[d] for d in order))
    return tuple(dense[order.index(d)] for d in range(len(shape)))


def _without_summands(placements) -> tuple:
    return tuple(Replicate() if p.is_partial() else p for p in placements)


def _respec(spec: DTensorSpec, placements) -> DTensorSpec:
    return DTensorSpec(spec.mesh, tuple(placements), spec.shape, spec.stride, spec.dtype)


class _ToLocal(Function):
    @staticmethod
    def forward(ctx, x, grad_placements):
        ctx.spec, ctx.grad_placements = x._spec, grad_placements
        return x._local_tensor.detach()

    @staticmethod
    def backward(ctx, grad):
        placements = ctx.grad_placements or _without_summands(ctx.spec.placements)
        spec = _respec(ctx.spec, placements)
        return DTensor.from_local(grad, spec.mesh, placements, shape=spec.shape, stride=spec.stride), None


class _FromLocal(Function):
    @staticmethod
    def forward(ctx, local, spec, run_check):
        ctx.spec = spec
        local = local.detach()
        if run_check:
            for i, p in enumerate(spec.placements):
                if p.is_replicate():
                    local = funcol.broadcast(local, 0, spec.mesh.get_group(i))
        return DTensor(local, spec, requires_grad=False)

    @staticmethod
    def backward(ctx, grad):
        return grad.redistribute(placements=_without_summands(ctx.spec.placements)).to_local(), None, None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx, x, placements):
        ctx.before = x.placements
        local = redistribute(x._local_tensor, tuple(x.shape), x.device_mesh, x.placements, placements)
        if local._storage is x._local_tensor._storage:
            local = local.clone()
        return DTensor(local, _respec(x._spec, placements), requires_grad=False)

    @staticmethod
    def backward(ctx, grad):
        return grad.redistribute(placements=_without_summands(ctx.before)), None


# ---- making ------------------------------------------------------------------------------------------------------------


def distribute_tensor(tensor, device_mesh: DeviceMesh, placements=None, *, src_data_rank: int | None = 0) -> DTensor:
    """Spread a tensor that all ranks have, replicated unless ``placements`` say otherwise. The data are those of the mesh's first rank; with
    ``src_data_rank=None`` each rank cuts its own. A leaf. RuntimeError for a tensor with a history."""
    placements = normalized(placements, device_mesh, tensor.dim())
    if any(p.is_partial() for p in placements):
        raise RuntimeError(f"distribute_tensor: expected Shard or Replicate, got {placements}")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != device_mesh or tensor.placements != placements:
            raise ValueError("Cannot distribute a DTensor to another mesh or other placements; use redistribute")
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    with no_grad():
        whole = tensor.detach()
        if src_data_rank is not None:
            for i in range(device_mesh.ndim):
                whole = funcol.broadcast(whole.contiguous(), src_data_rank, device_mesh.get_group(i))
        sizes, offsets = local_box(tensor.shape, device_mesh, placements)
        for d, (start, size) in enumerate(zip(offsets, sizes)):
            whole = whole.narrow(d, start, size)
        local = (
            whole.clone(memory_format=None)
            if whole._storage is tensor._storage or sizes != tuple(tensor.shape)
            else whole
        )
    spec = DTensorSpec(device_mesh, placements, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
    return DTensor(local, spec, requires_grad=tensor.requires_grad)


def distribute_module(
    module: Module, device_mesh: DeviceMesh, partition_fn=None, input_fn=None, output_fn=None
) -> Module:
    """Make the parameters and buffers of a module DTensors: ``partition_fn(name, submodule, mesh)`` those that it likes, all others replicated.
    ``input_fn(module, inputs, mesh)`` and ``output_fn(module, outputs, mesh)`` go before and behind its forward."""
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, device_mesh)
        for key, p in part._parameters.items():
            if p is not None and not isinstance(p, DTensor):
                part.register_parameter(key, Parameter(distribute_tensor(p.data, device_mesh), p.requires_grad))
        for key, b in part._buffers.items():
            if b is not None and not isinstance(b, DTensor):
                part._buffers[key] = distribute_tensor(b, device_mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, device_mesh))
    return module


def _made(fill, size, device_mesh, placements, dtype, requires_grad) -> DTensor:
    """``fill(sizes of the part, dtype)``."""
    if len(size) == 1 and isinstance(size[0], list | tuple):
        size = size[0]
    size = tuple(size)
    if device_mesh is None:
        raise RuntimeError("a DTensor needs a device_mesh")
    placements = normalized(placements, device_mesh, len(size))
    dtype = dtype or get_default_dtype()
    with no_grad():
        local = fill(list(local_box(size, device_mesh, placements)[0]), dtype)
    spec = DTensorSpec(device_mesh, placements, size, contiguous_strides(size), dtype)
    return DTensor(local, spec, requires_grad=requires_grad)


def zeros(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
    """Zeros of the whole ``size``."""
    return _made(lambda s, t: function("zeros")(s, dtype=t), size, device_mesh, placements, dtype, requires_grad)


def ones(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
    """Ones of the whole ``size``; summands or factors of ones aren't made."""
    return full(size, 1, dtype=dtype, device_mesh=device_mesh, placements=placements, requires_grad=requires_grad)


def empty(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
    """A tensor of the whole ``size`` with whatever is in memory."""
    return _made(lambda s, t: function("empty")(s, dtype=t), size, device_mesh, placements, dtype, requires_grad)


def full(
    size, fill_value, *, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None
) -> DTensor:
    """``fill_value`` everywhere. RuntimeError for summands."""
    if placements is not None and any(p.is_partial() for p in placements):
        raise RuntimeError("a DTensor of Partial placement can't be filled: each rank would have a summand")
    return _made(
        lambda s, t: function("full")(s, fill_value, dtype=t), size, device_mesh, placements, dtype, requires_grad
    )


def _drawn(name: str, size, device_mesh, placements, dtype, requires_grad) -> DTensor:
    out = empty(*size, dtype=dtype, device_mesh=device_mesh, placements=placements)
    with no_grad():
        getattr(aten, name).default(out)
    return out.requires_grad_(requires_grad)


def rand(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
    """Uniform numbers in [0, 1), those that the mesh's first rank draws."""
    return _drawn("uniform_", size, device_mesh, placements, dtype, requires_grad)


def randn(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
    """Normal numbers, those that the mesh's first rank draws."""
    return _drawn("normal_", size, device_mesh, placements, dtype, requires_grad)
