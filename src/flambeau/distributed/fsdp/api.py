"""Options of FullyShardedDataParallel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from ...base.dtypes import DType

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(Enum):
    """FULL_SHARD frees parameters behind the forward, SHARD_GRAD_OP keeps them until the backward; the HYBRID ones do it in each row of a mesh of two
    dimensions; NO_SHARD has whole parameters on every rank."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """The next parameters are gathered while a module's backward runs, in either case."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """dtypes of the gathered parameters, of the reduced gradients, of buffers."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    buffer_dtype: DType | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: tuple = ()


@dataclass
class CPUOffload:
    """Shards are on the CPU anyway."""

    offload_params: bool = False


class StateDictType(Enum):
    """FULL: whole tensors; SHARDED: DTensors; LOCAL isn't built."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """Base of the following."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """``rank0_only``: the other ranks get an empty dictionary."""

    rank0_only: bool = False


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of SHARDED_STATE_DICT."""


@dataclass
class OptimStateDictConfig:
    """Base of the following."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """``rank0_only``: the other ranks get an empty dictionary."""

    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of SHARDED_STATE_DICT."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What ``FullyShardedDataParallel.set_state_dict_type`` has set."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of LOCAL_STATE_DICT."""
