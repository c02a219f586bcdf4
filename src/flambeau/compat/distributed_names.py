"""Names of ``torch.distributed`` that the package ``flambeau.distributed`` lacks, or has elsewhere. See namespaces.py for the rules."""

__all__ = ["DISTRIBUTED"]

DISTRIBUTED: dict[str, str] = {
    "+distributed": """
why: a name of PyTorch's own machinery
module: fsdp nn algorithms tensor optim checkpoint device_mesh distributed_c10d elastic utils _functional_collectives rpc _tensor
module: _composable _shard pipelining _tools argparse_util c10d_logger _state_dict_utils
class: DeviceMesh
refuses: init_device_mesh
""",
    "distributed.fsdp": "module: fully_sharded_data_parallel wrap _fully_shard api sharded_grad_scaler\n"
    "class: FullyShardedDataParallel FSDPModule ShardingStrategy MixedPrecision CPUOffload BackwardPrefetch StateDictType FullStateDictConfig "
    "FullOptimStateDictConfig ShardedStateDictConfig ShardedOptimStateDictConfig LocalStateDictConfig MixedPrecisionPolicy CPUOffloadPolicy OffloadPolicy "
    "OptimStateDictConfig StateDictConfig\nrefuses: fully_shard register_fsdp_forward_method",
    "distributed.fsdp.fully_sharded_data_parallel": "from distributed.fsdp: FullyShardedDataParallel ShardingStrategy MixedPrecision CPUOffload "
    "BackwardPrefetch StateDictType FullStateDictConfig FullOptimStateDictConfig ShardedStateDictConfig ShardedOptimStateDictConfig StateDictConfig OptimStateDictConfig",
    "distributed.fsdp._fully_shard": "from distributed.fsdp: fully_shard FSDPModule\nmodule: _fsdp_api _fsdp_init",
    "distributed.fsdp._fully_shard._fsdp_api": "from distributed.fsdp: MixedPrecisionPolicy OffloadPolicy CPUOffloadPolicy",
    "distributed.fsdp._fully_shard._fsdp_init": "refuses: _get_device_from_mesh",
    "distributed.fsdp.api": "from distributed.fsdp: ShardingStrategy MixedPrecision CPUOffload BackwardPrefetch StateDictType FullStateDictConfig",
    "distributed.fsdp.sharded_grad_scaler": "class: ShardedGradScaler",
    "distributed.fsdp.wrap": "refuses: size_based_auto_wrap_policy transformer_auto_wrap_policy "
    "lambda_auto_wrap_policy enable_wrap wrap always_wrap_policy\nclass: ModuleWrapPolicy CustomPolicy _Policy",
    "distributed.nn": "refuses: all_reduce all_gather\nmodule: functional",
    "distributed.nn.functional": "refuses: all_reduce all_gather broadcast",
    "distributed.algorithms": "module: join model_averaging ddp_comm_hooks _checkpoint",
    "distributed.algorithms._checkpoint": "module: checkpoint_wrapper",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "class: CheckpointWrapper CheckpointImpl\n"
    "refuses: apply_activation_checkpointing checkpoint_wrapper offload_wrapper",
    "distributed.algorithms.join": "class: Join Joinable JoinHook",
    "distributed.algorithms.model_averaging": "module: averagers",
    "distributed.algorithms.model_averaging.averagers": "class: ModelAverager PeriodicModelAverager",
    "distributed.algorithms.ddp_comm_hooks": "module: default_hooks powerSGD_hook debugging_hooks\nclass: DDPCommHookType",
    "distributed.algorithms.ddp_comm_hooks.default_hooks": "refuses: allreduce_hook fp16_compress_hook bf16_compress_hook fp16_compress_wrapper bf16_compress_wrapper",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "class: PowerSGDState\nrefuses: powerSGD_hook batched_powerSGD_hook",
    "distributed.algorithms.ddp_comm_hooks.debugging_hooks": "refuses: noop_hook",
    "distributed.tensor": "class: DTensor DeviceMesh Shard Replicate Partial Placement\nrefuses: distribute_tensor "
    "distribute_module init_device_mesh\nmodule: parallel placement_types device_mesh experimental",
    "distributed.tensor.experimental": "refuses: context_parallel local_map implicit_replication",
    "distributed.tensor.placement_types": "from distributed.tensor: Placement Shard Replicate Partial",
    "distributed.tensor.device_mesh": "from distributed: DeviceMesh init_device_mesh",
    "distributed.tensor.parallel": "class: ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput "
    "PrepareModuleOutput ParallelStyle\nrefuses: parallelize_module loss_parallel",
    "distributed._tensor": "rest distributed.tensor",
    "distributed._tensor.experimental": "rest distributed.tensor.experimental",
    "distributed.optim": "class: ZeroRedundancyOptimizer DistributedOptimizer PostLocalSGDOptimizer",
    "distributed.checkpoint": "refuses: save load async_save save_state_dict load_state_dict\nmodule: state_dict "
    "filesystem default_planner optimizer format_utils planner metadata stateful\nclass: FileSystemReader FileSystemWriter DefaultLoadPlanner DefaultSavePlanner",
    "distributed.checkpoint.state_dict": "refuses: get_model_state_dict get_optimizer_state_dict get_state_dict "
    "set_model_state_dict set_optimizer_state_dict set_state_dict\nclass: StateDictOptions",
    "distributed.checkpoint.stateful": "class: Stateful",
    "distributed.checkpoint.planner": "class: LoadPlanner SavePlanner",
    "distributed.checkpoint.metadata": "class: Metadata TensorStorageMetadata",
    "distributed.checkpoint.filesystem": "from distributed.checkpoint: FileSystemReader FileSystemWriter",
    "distributed.checkpoint.default_planner": "from distributed.checkpoint: DefaultLoadPlanner DefaultSavePlanner",
    "distributed.checkpoint.optimizer": "refuses: load_sharded_optimizer_state_dict",
    "distributed.checkpoint.format_utils": "class: _EmptyStateDictLoadPlanner\nrefuses: dcp_to_torch_save torch_save_to_dcp",
    "distributed.device_mesh": "from distributed: DeviceMesh init_device_mesh",
    "distributed.distributed_c10d": "from distributed: ProcessGroup ReduceOp Store is_initialized get_rank get_world_size is_nccl_available\n"
    "refuses: _get_default_group _get_pg_default_device _get_default_store\nclass: PrefixStore",
    "distributed.elastic": "module: multiprocessing",
    "distributed.elastic.multiprocessing": "module: errors",
    "distributed.elastic.multiprocessing.errors": "decorator: record\nclass: ChildFailedError",
    "distributed.utils": "refuses: _sync_module_states",
    "distributed._functional_collectives": "refuses: all_reduce all_gather_tensor reduce_scatter_tensor wait_tensor\nclass: AsyncCollectiveTensor",
    "distributed.rpc": "returns False: is_available\nrefuses: init_rpc rpc_sync rpc_async remote shutdown\nclass: RRef",
    "distributed._composable": "module: fsdp replicate",
    "distributed._composable.fsdp": "from distributed.fsdp: fully_shard FSDPModule MixedPrecisionPolicy CPUOffloadPolicy",
    "distributed._composable.replicate": "refuses: replicate",
    "distributed._shard": "module: sharded_tensor",
    "distributed._shard.sharded_tensor": "class: ShardedTensor",
    "distributed.pipelining": "class: SplitPoint PipelineStage ScheduleGPipe Schedule1F1B\nrefuses: pipeline pipe_split",
}
