"""``torch.distributed.fsdp``: modules whose parameters are sharded over the ranks. See docs/design/distributed.md."""

from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictType,
)
from .fully_sharded_data_parallel import FullyShardedDataParallel
from .sharding import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalStateDictConfig",
    "MixedPrecision",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictType",
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]
