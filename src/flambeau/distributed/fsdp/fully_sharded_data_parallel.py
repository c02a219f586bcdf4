"""FullyShardedDataParallel: ``fully_shard`` as a wrapper around a module."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator

from ...autograd.grad_mode import no_grad
from ...modules.module import Module
from ...modules.parameter import Parameter
from ...nn.utils import clip_grad_norm_
from .. import world
from ..device_mesh import DeviceMesh
from ..replicas import sync_module_states as synchronize_states
from ..tensor import DTensor, distribute_tensor
from . import _optimizer_states
from ._optimizer_states import OptimStateKeyType
from ._policies import MixedPrecisionPolicy
from ._setup import HYBRID, materialize, mesh_of
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .sharding import FSDPModule, fully_shard
from .wrap import recursive_wrap

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]

_KEEPS = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
_NAME = "_fsdp_wrapped_module"


class FullyShardedDataParallel(Module):
    """``module`` with its parameters sharded, those of the submodules that ``auto_wrap_policy`` picks apart from the rest. See ``fully_shard``.

    Parameters are always DTensors under their own names (``use_orig_params``), whole while a module runs. ``state_dict`` holds whole tensors unless
    ``state_dict_type`` says SHARDED_STATE_DICT. ``NO_SHARD`` keeps one part on every rank. The hybrid strategies take a ``device_mesh`` of two
    dimensions, or (group of shards, group of replicas), or shard within each machine (LOCAL_WORLD_SIZE). ``param_init_fn(module)`` gives memory and
    values to modules on the meta device; without it they get ``reset_parameters()``.
    """

    def __init__(
        self,
        module: Module,
        process_group=None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy=None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules=None,
        param_init_fn=None,
        device_id=None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states=None,
        device_mesh: DeviceMesh | None = None,
    ):
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if strategy in HYBRID and device_mesh is not None and device_mesh.ndim != 2:
            raise ValueError(f"FullyShardedDataParallel: {strategy} needs a device_mesh of two dimensions")
        mesh = device_mesh if device_mesh is not None else mesh_of(process_group, strategy)
        group = mesh.get_group(mesh.ndim - 1) if strategy in HYBRID else world.of(process_group)
        ignored_modules = set(ignored_modules or ())
        ignored = {p for m in ignored_modules for p in m.parameters()}
        for state in ignored_states or ():
            ignored |= set(state.parameters()) if isinstance(state, Module) else {state}
        materialize(module, param_init_fn)
        if sync_module_states:
            for d in range(mesh.ndim):
                synchronize_states(module, mesh.get_group(d), 0)
        if auto_wrap_policy is not None:
            options = {
                "process_group": process_group,
                "sharding_strategy": sharding_strategy,
                "mixed_precision": mixed_precision,
                "ignored_states": ignored,
                "device_mesh": mesh,
            }
            recursive_wrap(
                module,
                auto_wrap_policy,
                lambda m, **more: FullyShardedDataParallel(m, **{**options, **more}),
                ignored_modules,
            )
        self.sharding_strategy, self.process_group = strategy, group
        m = mixed_precision or MixedPrecision()
        if m.buffer_dtype is not None:
            for part in module.modules():
                for name, b in part._buffers.items():
                    if b is not None and b.dtype.is_floating_point:
                        part._buffers[name] = b.to(m.buffer_dtype)
        policy = MixedPrecisionPolicy(
            m.param_dtype, m.reduce_dtype, None, m.cast_forward_inputs or m.cast_root_forward_inputs
        )
        if not isinstance(module, FSDPModule):
            frees = False if strategy in _KEEPS else None
            fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=frees, ignored_params=ignored)
        self._modules[_NAME] = module
        self._state_dict_type, self._state_dict_config = StateDictType.FULL_STATE_DICT, FullStateDictConfig()
        self._optim_state_dict_config: OptimStateDictConfig = FullOptimStateDictConfig()

    @property
    def module(self) -> Module:
        """The module inside."""
        return self._modules[_NAME]

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_NAME), name)

    # ---- names without the wrappers

    def named_parameters(self, *args, **kwargs) -> Iterator:
        for name, p in super().named_parameters(*args, **kwargs):
            yield _clean(name), p

    def named_buffers(self, *args, **kwargs) -> Iterator:
        for name, b in super().named_buffers(*args, **kwargs):
            yield _clean(name), b

    def state_dict(self, *args, **kwargs):
        """Whole tensors, or DTensors, by the names of the module without wrappers. All ranks call it."""
        found = super().state_dict(*args, **kwargs)
        if args or kwargs.get("destination") is not None:
            return found  # of a submodule: the outermost cleans
        out = collections.OrderedDict()
        config, kind = self._state_dict_config, self._state_dict_type
        for name, t in found.items():
            whole = t.full_tensor() if kind is StateDictType.FULL_STATE_DICT and isinstance(t, DTensor) else t
            out[_clean(name)] = whole
        out._metadata = getattr(found, "_metadata", None)
        if isinstance(config, FullStateDictConfig) and config.rank0_only and self.process_group.rank():
            out.clear()
        return out

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False):
        """What ``state_dict`` gave; whole tensors are cut."""
        own = {_clean(name): (name, t) for name, t in super().state_dict().items()}
        given = {}
        for name, t in state_dict.items():
            full, mine = own.get(_clean(name), (name, None))
            if isinstance(mine, DTensor) and not isinstance(t, DTensor):
                t = distribute_tensor(t, mine.device_mesh, mine.placements, src_data_rank=None)
            given[full] = t
        return super().load_state_dict(given, strict, assign)

    # ---- what PyTorch's class offers

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in a module."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return found[:1] if root_only else found

    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config=None, optim_state_dict_config=None
    ):
        """What ``state_dict`` gives from now on. NotImplementedError for LOCAL_STATE_DICT."""
        if state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError("LOCAL_STATE_DICT isn't built; SHARDED_STATE_DICT has the parts of this rank")
        for m in FullyShardedDataParallel.fsdp_modules(module):
            m._state_dict_type = state_dict_type
            full = state_dict_type is StateDictType.FULL_STATE_DICT
            m._state_dict_config = state_dict_config or (FullStateDictConfig() if full else ShardedStateDictConfig())
            default = FullOptimStateDictConfig() if full else ShardedOptimStateDictConfig()
            m._optim_state_dict_config = optim_state_dict_config or default

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config=None, optim_state_dict_config=None
    ):
        """As ``set_state_dict_type``, for a block."""
        modules = FullyShardedDataParallel.fsdp_modules(module)
        before = [(m, m._state_dict_type, m._state_dict_config, m._optim_state_dict_config) for m in modules]
        FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for m, kind, config, optimizer_config in before:
                m._state_dict_type, m._state_dict_config = kind, config
                m._optim_state_dict_config = optimizer_config

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What ``set_state_dict_type`` has set."""
        m = FullyShardedDataParallel.fsdp_modules(module, root_only=True)[0]
        return StateDictSettings(m._state_dict_type, m._state_dict_config, m._optim_state_dict_config)

    def gives_whole_states(self) -> bool:
        return self._state_dict_type is StateDictType.FULL_STATE_DICT

    def optimizer_states_on_first_rank_only(self) -> bool:
        config = self._optim_state_dict_config
        return isinstance(config, FullOptimStateDictConfig) and config.rank0_only

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ):
        """In the block parameters are whole, plain tensors, ``with_grads`` with gradients; with ``writeback`` they become the shards behind it. All
        ranks. NotImplementedError for ``writeback`` together with ``rank0_only``."""
        if writeback and rank0_only:
            raise NotImplementedError("writeback=True and rank0_only=True is not supported yet")
        modules = [m for m in (module.modules() if recurse else [module]) if isinstance(m, FSDPModule)]
        if not recurse and isinstance(module, FullyShardedDataParallel):
            modules = [module.module]
        shards = [m._fsdp_state.shards for m in modules if m._fsdp_state.shards is not None]
        for s in shards:
            for p in s.params:
                whole = Parameter(p.p.full_tensor().detach(), p.p.requires_grad)
                if with_grads and p.p.grad is not None:
                    whole.grad = p.p.grad.full_tensor()
                p.register(whole)
        try:
            yield
            if writeback:
                with no_grad():
                    for p in (p for s in shards for p in s.params):
                        whole = p.registered()
                        p.p.copy_(p.cut(whole.detach()))
                        if with_grads:
                            p.p.grad = None if whole.grad is None else p.cut(whole.grad)
        finally:
            for p in (p for s in shards for p in s.params):
                p.register(p.p)

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients of backward passes in the block are kept and not reduced."""
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0):
        """The norm of all gradients over all ranks, to which they are scaled down."""
        norm = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    optim_state_dict = staticmethod(_optimizer_states.optim_state_dict)
    optim_state_dict_to_load = staticmethod(_optimizer_states.optim_state_dict_to_load)
    full_optim_state_dict = staticmethod(_optimizer_states.full_optim_state_dict)
    sharded_optim_state_dict = staticmethod(_optimizer_states.sharded_optim_state_dict)
    shard_full_optim_state_dict = staticmethod(_optimizer_states.shard_full_optim_state_dict)
    scatter_full_optim_state_dict = staticmethod(_optimizer_states.scatter_full_optim_state_dict)
    flatten_sharded_optim_state_dict = staticmethod(_optimizer_states.shard_full_optim_state_dict)
    rekey_optim_state_dict = staticmethod(_optimizer_states.rekey_optim_state_dict)


def _clean(name: str) -> str:
    return name.replace(f"{_NAME}.", "")
