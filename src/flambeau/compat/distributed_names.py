"""Names of ``torch.distributed`` that the package ``flambeau.distributed`` lacks, or has elsewhere. See namespaces.py for the rules."""

__all__ = ["DISTRIBUTED"]

DISTRIBUTED: dict[str, str] = {
    "+distributed": """
why: a name of PyTorch's own machinery
module: fsdp nn algorithms tensor optim checkpoint device_mesh distributed_c10d elastic utils _functional_collectives rpc _tensor
module: _composable _shard pipelining _tools argparse_util c10d_logger _state_dict_utils constants autograd config launcher logging_handlers
from distributed.group_methods: AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions GatherOptions
from distributed.group_methods: ReduceOptions ReduceScatterOptions ScatterOptions
class: Logger ProcessGroupGloo _Backend _ControlCollectives _StoreCollectives
from distributed.remote_device: _remote_device
from distributed.device_mesh: DeviceMesh init_device_mesh
refuses: shrink_group _register_comm_hook _register_builtin_comm_hook _create_process_group_wrapper _test_python_store
refuses: _verify_params_across_processes breakpoint
from distributed.reducer: GradBucket Reducer
from distributed.comm_hooks: BuiltinCommHookType
from distributed.buckets: _DEFAULT_FIRST_BUCKET_BYTES=FIRST_BUCKET_BYTES
from distributed.work: _Work=Work
from distributed.world: _rank_not_in_group
from distributed.coalescing: _CoalescingManager=Manager
from distributed.process_group: GroupName RankType
decorator: record_comm
""",
    "distributed.config": "value False: compile_on_one_rank",
    "distributed.logging_handlers": "",
    "distributed.c10d_logger": "decorator: _exception_logger _time_logger",
    "distributed.argparse_util": "why: the launcher's parser is argparse's\nclass: env check_env",
    "distributed._state_dict_utils": "why: sharded state dicts are not built\nrefuses: _gather_state_dict _offload_state_dict_to_cpu",
    "distributed._tools": "why: estimates of memory and time of sharded modules are not built\nclass: MemTracker FSDPMemTracker RuntimeEstimator",
    "distributed.constants": "from distributed.world: default_pg_timeout\nvalue None: default_pg_nccl_timeout",
    "distributed.rendezvous": "rest distributed",
    "distributed.nn": "from distributed.differentiable: all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter\n"
    "from distributed.rpc.remote_module: RemoteModule\nmodule: functional api",
    "distributed.nn.api": "module: remote_module",
    "distributed.nn.api.remote_module": "from distributed.rpc.remote_module: RemoteModule",
    "distributed.algorithms.ddp_comm_hooks": "module: default_hooks powerSGD_hook post_localSGD_hook debugging_hooks\nclass: DDPCommHookType\nrefuses: register_ddp_comm_hook",
    "distributed.algorithms.ddp_comm_hooks.debugging_hooks": "from distributed.comm_hooks: noop_hook",
    "distributed.distributed_c10d": """
why: a name of PyTorch's own machinery
rest distributed
from distributed.world: _get_default_group=default_group _get_default_store=default_store _rank_not_in_group _world=_process
from distributed.world: _get_default_timeout=default_timeout _get_process_group_name=name_of _resolve_process_group=resolve
from distributed.queries: _get_pg_config=config_of
from distributed.world: _get_group_size=get_world_size _get_global_rank=get_global_rank _group_or_default_group=of
from distributed.coalescing: _CoalescingManager=Manager
from distributed.objects: _object_to_tensor=packed _tensor_to_object=unpacked
returns 'cpu': _get_pg_default_device _get_object_coll_device
from distributed.group_methods: AllgatherOptions AllreduceOptions BroadcastOptions ReduceOptions ReduceScatterOptions
""",
    "distributed.utils": "why: sharded modules are not built\nfrom distributed.replicas: _sync_module_states=sync_module_states "
    "_verify_param_shape_across_processes=check_same_shapes",
    "+distributed.fsdp": "why: it is not built\nmodule: wrap api fully_sharded_data_parallel _fully_shard sharded_grad_scaler\n"
    "class: FlatParameter LocalOptimStateDictConfig",
    "distributed.fsdp._fully_shard": "from distributed.fsdp: fully_shard FSDPModule\nmodule: _fsdp_api _fsdp_init",
    "distributed.fsdp._fully_shard._fsdp_init": "refuses: _get_device_from_mesh",
    "distributed.fsdp._fully_shard._fsdp_api": "from distributed.fsdp: MixedPrecisionPolicy OffloadPolicy CPUOffloadPolicy",
    "distributed.fsdp.sharded_grad_scaler": "class: ShardedGradScaler",
    "distributed.algorithms": "module: join model_averaging ddp_comm_hooks _checkpoint",
    "distributed.algorithms._checkpoint": "module: checkpoint_wrapper",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "from distributed.checkpoint_wrapper: ActivationWrapper CheckpointWrapper CheckpointImpl OffloadWrapper\n"
    "from distributed.checkpoint_wrapper: apply_activation_checkpointing checkpoint_wrapper offload_wrapper",
    "distributed.algorithms.model_averaging": "module: averagers utils hierarchical_model_averager",
    "distributed.algorithms.model_averaging.averagers": "from distributed.local_sgd: ModelAverager PeriodicModelAverager",
    "distributed.algorithms.model_averaging.hierarchical_model_averager": "from distributed.local_sgd: HierarchicalModelAverager",
    "distributed.algorithms.model_averaging.utils": "from distributed.local_sgd: average_parameters average_parameters_or_parameter_groups",
    "+distributed.tensor": "why: it is not built\nmodule: parallel placement_types device_mesh experimental",
    "distributed.tensor.experimental": "from distributed.tensor._dispatch: implicit_replication\nfrom distributed.tensor.local_map: local_map\nrefuses: context_parallel",
    "distributed.tensor.device_mesh": "from distributed.device_mesh: DeviceMesh init_device_mesh",
    "distributed._tensor": "rest distributed.tensor",
    "distributed._tensor.experimental": "rest distributed.tensor.experimental",
    "distributed.optim.post_localSGD_optimizer": "from distributed.local_sgd: PostLocalSGDOptimizer",
    "distributed.optim.apply_optimizer_in_backward": "from distributed.optimizer_in_backward: _apply_optimizer_in_backward=apply_optimizer_in_backward "
    "_get_in_backward_optimizers=get_in_backward_optimizers",
    "distributed.optim.optimizer": "from distributed.rpc.optimizer: DistributedOptimizer",
    "distributed.optim": "from distributed.rpc.optimizer: DistributedOptimizer\nfrom distributed.zero_redundancy: ZeroRedundancyOptimizer\n"
    "module: post_localSGD_optimizer apply_optimizer_in_backward optimizer\nfrom distributed.local_sgd: PostLocalSGDOptimizer\n"
    "from distributed.optimizer_in_backward: _apply_optimizer_in_backward=apply_optimizer_in_backward _get_in_backward_optimizers=get_in_backward_optimizers",
    "+distributed.checkpoint": "why: it is not built\nmodule: state_dict filesystem default_planner optimizer format_utils planner metadata stateful "
    "state_dict_saver state_dict_loader\nclass: LoadPlan LoadPlanner SavePlan SavePlanner StorageReader StorageWriter ReadItem WriteItem "
    "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "distributed.checkpoint.state_dict_saver": "from distributed.checkpoint: save async_save save_state_dict",
    "distributed.checkpoint.state_dict_loader": "from distributed.checkpoint: load load_state_dict",
    "distributed.checkpoint.planner": "class: LoadPlanner SavePlanner LoadPlan SavePlan ReadItem WriteItem",
    "distributed.checkpoint.default_planner": "from distributed.checkpoint: DefaultLoadPlanner DefaultSavePlanner",
    "distributed.checkpoint.optimizer": "refuses: load_sharded_optimizer_state_dict",
    "+distributed.checkpoint.format_utils": "why: it is not built\nclass: _EmptyStateDictLoadPlanner",
    "+distributed.elastic": "why: it is not built\nmodule: metrics timer control_plane",
    "distributed.elastic.control_plane": "refuses: worker_main",
    "distributed.elastic.metrics": "why: metrics go nowhere unless a handler is given, and handlers are not built\nrefuses: configure getStream\n"
    "returns None: put_metric publish_metric initialize_metrics\ndecorator: prof profile\n"
    "class: MetricHandler NullMetricHandler ConsoleMetricHandler MetricData MetricsConfig MetricStream",
    "distributed.elastic.timer": "why: timers of ranks are not built\nrefuses: configure expires\n"
    "class: LocalTimerClient LocalTimerServer FileTimerClient FileTimerRequest FileTimerServer TimerClient TimerRequest TimerServer",
    "distributed._composable": "module: fsdp replicate",
    "distributed._composable.fsdp": "from distributed.fsdp: fully_shard FSDPModule MixedPrecisionPolicy CPUOffloadPolicy",
    "distributed._composable.replicate": "refuses: replicate",
    "distributed._shard": "module: sharded_tensor",
    "distributed._shard.sharded_tensor": "class: ShardedTensor",
}
