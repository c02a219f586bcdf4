"""``fully_shard``: the parameters of a module are shards, whole only while the module runs.

A call of the module gathers them by an autograd Function whose backward reduces the gradients; the module's names hold the whole tensors meanwhile.
What is saved of them for the backward is saved by name (hooks on saved tensors), so they are freed behind the forward and gathered again when the
backward asks. Zhao et al., "PyTorch FSDP", 2023; Rajbhandari et al., "ZeRO", 2020.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable

from ... import _C
from ...autograd.engine import accumulates_into_leaves, after_backward
from ...autograd.function import Function
from ...autograd.graph import saved_tensors_hooks
from ...base import pytree
from ...core.operator import namespace
from ...modules.module import Module
from .. import world
from ..device_mesh import DeviceMesh
from ..tensor import DTensor, Shard
from ._policies import MixedPrecisionPolicy, OffloadPolicy
from ._reductions import Reduction, observed
from ._shards import ShardedParameter, Shards, find

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]

aten = namespace("aten")
_AS_IT_IS = MixedPrecisionPolicy()
# Modules whose gradients are reduced at the same time.
_FLYING = 2


class _Thread(threading.local):
    """The outermost sharded module that runs in this thread."""

    root: _State | None = None


_thread = _Thread()


class _Whole(Function):
    """The whole parameters of a module from its shards."""

    @staticmethod
    def forward(ctx, shards, *parts):
        ctx.shards = shards
        ctx.set_materialize_grads(False)
        made = tuple(p.handed(t.detach()) for p, t in zip(shards.params, shards.gather()))
        ctx.mark_non_differentiable(*(t for t, p in zip(made, shards.params) if not p.p.requires_grad))
        return made

    @staticmethod
    def backward(ctx, *grads):
        shards = ctx.shards
        later = accumulates_into_leaves() and not any(observed(p.p) for p in shards.params)
        reduction = shards.reduce(list(grads), later)
        shards.state.leave_backward()
        if reduction is not None and not later:
            return None, *reduction.wait()
        if reduction is not None:
            shards.state.root.follow(reduction)
        return (None,) * (1 + len(grads))


class _State:
    """What a sharded module knows: its shards (None when it has no parameters of its own), and the order in which modules ran below it."""

    def __init__(
        self, params: list[ShardedParameter], mesh: DeviceMesh, policy: MixedPrecisionPolicy, frees: bool | None
    ):
        self.shards = Shards(params, mesh, self, policy) if params else None
        self.policy, self.frees = policy, frees
        self.frees_after_backward = True
        self.depth = 0
        self.order: list[Shards] = []
        self.ran: list[Shards] = []
        self.ahead: list[Shards] | None = None  # those that the program asks for ahead in the forward
        self.ahead_in_backward: list[Shards] | None = None
        self.root: _State | None = None
        self.flying: list[Reduction] = []  # of the backward that runs, in order

    # ---- the call

    @contextlib.contextmanager
    def running(self):
        """The module's names hold whole parameters; they are gathered and freed here."""
        outer = _thread.root
        root = self.root = outer or self
        _thread.root = root
        frees = self.frees if self.frees is not None else root is not self
        self.depth += 1
        try:
            if outer is None:
                self.ran = []
            if self.shards is None or self.depth > 1:
                yield
            else:
                with self._whole(root), self._saving(frees):
                    yield
        finally:
            self.depth -= 1
            if not self.depth and self.shards is not None:
                self.shards.register_parts()
                if _C.backward_id() < 0:  # recomputation in a backward: the backward that follows needs them
                    self.shards.free()
            _thread.root = outer
            if outer is None:
                for shards in self.order:
                    shards.free() if shards.pending is not None else None
                self.order = self.ran

    @contextlib.contextmanager
    def _whole(self, root: _State):
        shards = self.shards
        made = _Whole.apply(shards, *(p.p for p in shards.params))
        root.ran.append(shards)
        for p, t in zip(shards.params, made):
            p.register(t)
        self._start_next(root.ran, root.order)
        yield

    def _start_next(self, ran: list[Shards], order: list[Shards]) -> None:
        """Gather the next module's parameters while this one computes, where the last pass went the same way so far."""
        if self.ahead is not None:
            following = self.ahead
        elif ran == order[: len(ran)]:
            following = order[len(ran) : len(ran) + 1]
        else:
            return
        for shards in following:
            shards.start(True)

    # ---- the backward

    def _saving(self, frees: bool):
        if not frees:
            return contextlib.nullcontext()
        outer = _C.innermost("saved_hooks")
        if isinstance(outer, str):
            return contextlib.nullcontext()
        pack, unpack = outer if outer is not None and outer[0] is not _pack else (None, None)
        if pack is None:
            return saved_tensors_hooks(_pack, _unpack)
        return saved_tensors_hooks(functools.partial(_pack, others=pack), functools.partial(_unpack, others=unpack))

    def gathered_for_backward(self) -> list:
        """The whole parameters when the backward needs them; the module that ran before this one is gathered meanwhile."""
        shards, root = self.shards, self.root
        if _C.backward_id() >= 0:
            root.at_end_of_backward()
        whole = shards.gather()
        if self.frees_after_backward and _C.backward_id() >= 0:
            for other in self._before(root):
                other.start(True)
        return whole

    def _before(self, root: _State) -> list[Shards]:
        """The modules to gather ahead in the backward: those that the program names, else the one that ran before this one."""
        if self.ahead_in_backward is not None:
            return self.ahead_in_backward
        shards, order = self.shards, root.order
        at = order.index(shards) if order.count(shards) == 1 else 0
        return [order[at - 1]] if at and order[at - 1].state.freed_behind_forward(root) else []

    def enter_backward(self, grad) -> None:
        """The gradient of a result has come: the names hold whole parameters again, for forwards that the backward repeats (checkpoints)."""
        whole = self.gathered_for_backward()
        for p, t in zip(self.shards.params, whole):
            p.register(p.handed(t.detach()).requires_grad_(p.p.requires_grad))

    def leave_backward(self) -> None:
        """The gradients are reduced."""
        self.shards.register_parts()
        if self.frees_after_backward:
            self.shards.free()

    def freed_behind_forward(self, root: _State) -> bool:
        return self.frees if self.frees is not None else self is not root

    def at_end_of_backward(self) -> None:
        """Have what this pass leaves behind settled at its end: reductions that are under way, parameters that are whole."""
        if after_backward(self._end_of_backward, key=("fully_shard", id(self))):
            self.flying = []  # what a pass that raised has left

    def _end_of_backward(self) -> None:
        while self.flying:
            self.flying.pop(0).accumulate()
        for shards in self.order:
            shards.register_parts()
            shards.free()

    def follow(self, reduction: Reduction) -> None:
        """Let the backward go on while gradients are reduced. Few at a time are under way, because they take memory."""
        self.at_end_of_backward()
        self.flying.append(reduction)
        while len(self.flying) > _FLYING:
            self.flying.pop(0).accumulate()


class _Saved:
    """A saved tensor that is (a view of) a gathered parameter."""

    def __init__(self, shards: Shards, index: int, t):
        self.shards, self.index = shards, index
        self.spec = t._spec if isinstance(t, DTensor) else None
        t = t if self.spec is None else t._local_tensor
        self.geometry = list(t._shape), list(t._strides), t._offset


def _pack(t, others=None):
    place = find(t)
    if place is not None and place[0].state.freed_behind_forward(place[0].state.root):
        return _Saved(*place, t)
    return t if others is None else others(t)


def _unpack(saved, others=None):
    if isinstance(saved, _Saved):
        whole = saved.shards.state.gathered_for_backward()[saved.index]
        part = aten.as_strided.default(whole.detach(), *saved.geometry)
        return part if saved.spec is None else DTensor(part, saved.spec, requires_grad=False)
    return saved if others is None else others(saved)


# ---- public ------------------------------------------------------------------------------------------------------------


class UnshardHandle:
    """Of ``module.unshard(async_op=True)``."""

    def __init__(self, shards: Shards | None):
        self._shards = shards

    def wait(self) -> None:
        if self._shards is not None:
            self._shards.gather()


class FSDPModule(Module):
    """What the class of a module becomes by ``fully_shard``."""

    def __call__(self, *args, **kwargs):
        return _run(self, super().__call__, args, kwargs)

    def _states(self, recurse: bool) -> list[_State]:
        modules = self.modules() if recurse else [self]
        return [m._fsdp_state for m in modules if isinstance(m, FSDPModule)]

    def reshard(self) -> None:
        """Free the gathered parameters."""
        if self._fsdp_state.shards is not None:
            self._fsdp_state.shards.free()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters for the next call; with ``async_op`` the handle waits for it."""
        shards = self._fsdp_state.shards
        if shards is not None:
            shards.start(async_op)
            if not async_op:
                shards.gather()
        return UnshardHandle(shards) if async_op else None

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """False: the next backward passes keep whole gradients, which the next one with True adds and reduces."""
        for state in self._states(recurse):
            if state.shards is not None:
                state.shards.reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether gradients are reduced over replicas (meshes of two dimensions)."""
        for state in self._states(recurse):
            if state.shards is not None:
                state.shards.reduces_replicas = requires_all_reduce

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide sums of gradients by this number, and not by the number of ranks."""
        if self._fsdp_state.shards is not None:
            self._fsdp_state.shards.factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are freed behind the forward."""
        for state in self._states(recurse):
            state.frees = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether parameters are freed as soon as their module's backward is done (always at the end of the whole one)."""
        for state in self._states(recurse):
            state.frees_after_backward = reshard_after_backward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """PyTorch frees at the last backward only; here each backward frees what it gathered."""

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Gather these modules' parameters while this one runs."""
        self._fsdp_state.ahead = [m._fsdp_state.shards for m in modules if m._fsdp_state.shards is not None]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Gather these modules' parameters while the backward of this one runs; the module that ran before it unless told."""
        shards = [m._fsdp_state.shards for m in modules]
        self._fsdp_state.ahead_in_backward = [s for s in shards if s is not None]


def _run(module: FSDPModule, call: Callable, args, kwargs):
    policy = module._fsdp_state.policy
    if policy.param_dtype is not None and policy.cast_forward_inputs:
        args, kwargs = _cast((args, kwargs), policy.param_dtype)
    with module._fsdp_state.running():
        out = call(*args, **kwargs)
    if module._fsdp_state.shards is not None and _C.tls("grad_enabled"):
        for x in pytree.tree_leaves(out):
            if isinstance(x, _C.TensorBase) and x._requires_grad:
                x.register_hook(module._fsdp_state.enter_backward)
    return out if policy.output_dtype is None else _cast(out, policy.output_dtype)


def _cast(tree, dtype):
    def of(x):
        return x.to(dtype) if isinstance(x, _C.TensorBase) and x.dtype.is_floating_point else x

    return pytree.tree_map(of, tree)


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method of a sharded module run as its forward does, on whole parameters. Nothing for other modules."""
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name)

    @functools.wraps(method)
    def whole(*args, **kwargs):
        return _run(module, method, args, kwargs)

    object.__setattr__(module, method_name, whole)


@functools.cache
def _sharded_class(cls: type[Module]) -> type[Module]:
    return type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})


def _own_parameters(module: Module, ignored: set[int]) -> dict[int, tuple]:
    """{id: (parameter, [(module, name)])} of those that no sharded module below has."""
    found: dict[int, tuple] = {}

    def visit(m: Module) -> None:
        for name, p in m._parameters.items():
            if p is not None and id(p) not in ignored:
                found.setdefault(id(p), (p, []))[1].append((m, name))
        for child in m.children():
            if not isinstance(child, FSDPModule):
                visit(child)

    visit(module)
    return found


def fully_shard(
    module: Module | list[Module],
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable | None = None,
    mp_policy: MixedPrecisionPolicy = _AS_IT_IS,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set | None = None,
) -> Module | list[Module]:
    """Shard the parameters of ``module`` that no ``fully_shard`` below it has, in place: call it for the layers, then for the whole model.

    Parameters become DTensors, cut along dimension 0 (``shard_placement_fn(parameter)`` may say another Shard) over ``mesh`` (all ranks; of two
    dimensions: replicas of shards). ``reshard_after_forward``: free them behind the forward; True but for the outermost module unless given. The
    optimizer is made afterwards. Of a list each module is sharded, with a gather of its own. ValueError for a module that is sharded already or is
    only a container.
    """
    if isinstance(module, list | tuple):
        options = {
            "mesh": mesh,
            "reshard_after_forward": reshard_after_forward,
            "shard_placement_fn": shard_placement_fn,
        }
        options |= {"mp_policy": mp_policy, "offload_policy": offload_policy, "ignored_params": ignored_params}
        return [fully_shard(m, **options) for m in module]
    if isinstance(module, FSDPModule):
        raise ValueError(f"{type(module).__name__} is sharded already")
    if type(module).forward is Module.forward:
        raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        raise NotImplementedError("fully_shard: reshard_after_forward as a number of ranks isn't built")
    if mesh is None:
        mesh = DeviceMesh("cpu", list(range(world.get_world_size())))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    ignored = {id(p) for p in ignored_params or ()}
    params = []
    for p, owners in _own_parameters(module, ignored).values():
        placement = shard_placement_fn(p) if shard_placement_fn is not None else None
        params.append(ShardedParameter(p, owners, mesh, placement or Shard(0)))
    module._fsdp_state = _State(params, mesh, mp_policy, reshard_after_forward)
    module.__class__ = _sharded_class(type(module))
    return module
