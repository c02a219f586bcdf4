"""Namespaces that only rename, and names without meaning here (TorchScript, quantised and vendor operators). See namespaces.py for the rules."""

_SCRIPT = """
AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig BenchmarkExecutionStats Block BoolType BufferDict CallStack Capsule
ClassType Code CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable
DeserializationStorageContext DeviceObjType DictType DispatchKeySet EnumType ErrorReport ExcludeDispatchKeyGuard ExecutionPlan FileCheck
FloatType FunctionSchema FutureType Gradient Graph GraphExecutorState IODescriptor InferredType IntType InterfaceType ListType LiteScriptModule
LockingLogger ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType ParameterDict PyObjectType PyTorchFileReader
PyTorchFileWriter RRefType ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptList
ScriptListIterator ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext StaticModule
StreamObjType StringType SymBoolType SymIntType TensorType ThroughputBenchmark TracingState TupleType Type UnionType Use Value
""".replace("\n", " ")

_VENDOR = """
cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose
cudnn_grid_sampler miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose
miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights
mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16
fbgemm_pack_quantized_matrix batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats
""".replace("\n", " ")

_QUANTISED = """
choose_qparams_optimized empty_quantized fused_moving_avg_obs_fake_quant quantized_batch_norm quantized_gru_cell quantized_lstm_cell
quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell
""".replace("\n", " ")

_SPARSE = "ccol_indices_copy col_indices_copy crow_indices_copy row_indices_copy indices_copy values_copy"

_POOL = (
    "Array AuthenticationError Barrier BoundedSemaphore BufferTooShort Condition Event JoinableQueue Lock Manager Pipe"
)

NAMES: dict[str, str] = {
    "functional": """
from : atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors cartesian_prod block_diag cdist chain_matmul einsum istft lu norm
from : meshgrid pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index
""",
    # The rest of the root namespace: names without code in flambeau/__init__.py.
    "": f"""
why: TorchScript, quantised, sparse and vendor-library names exist so that programs can be imported
class: {_SCRIPT}
from compat.streams: Event Stream
from compat.jit: CompilationUnit ScriptFunction
refuses: {_VENDOR}
refuses: {_QUANTISED}
refuses: {_SPARSE}
from sparse: sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor sparse_coo_tensor
from : spmm=mm dsmm=mm hsmm=hspmm saddmm=addmm
from core.tensor: sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc layout=Layout
refuses: parse_ir parse_schema parse_type_comment merge_type_from_type_comment unify_type_list import_ir_module import_ir_module_from_buffer
returns False: cudnn_is_acceptable is_vulkan_available is_distributed _nnpack_available
value 0: SUM
value 1: AVG
value True: has_lapack has_openmp has_spectral
value False: has_mkl
returns None: init_num_threads sym_constrain_range sym_constrain_range_for_size
from jit: fork wait JITException=Error
from compiler: _disable_dynamo=disable
from futures: Future
from amp: autocast GradScaler
from core.overrides: DisableTorchFunction DisableTorchFunctionSubclass
from serialization: save load
from random: get_rng_state set_rng_state initial_seed thread_safe_generator
from compat.defaults: get_default_device set_default_device get_device_module set_default_tensor_type set_flush_denormal
from compat.defaults: get_float32_matmul_precision set_float32_matmul_precision get_num_interop_threads set_num_interop_threads
from compat.defaults: are_deterministic_algorithms_enabled use_deterministic_algorithms is_deterministic_algorithms_warn_only_enabled
from compat.defaults: get_deterministic_debug_mode set_deterministic_debug_mode is_warn_always_enabled set_warn_always
from autograd.anomaly: is_anomaly_enabled set_anomaly_enabled is_anomaly_check_nan_enabled
from amp.state: autocast_increment_nesting autocast_decrement_nesting clear_autocast_cache is_autocast_enabled set_autocast_enabled
from amp.state: is_autocast_cache_enabled set_autocast_cache_enabled get_autocast_dtype set_autocast_dtype
from amp.state: get_autocast_cpu_dtype set_autocast_cpu_dtype is_autocast_cpu_enabled set_autocast_cpu_enabled
from amp.state: get_autocast_gpu_dtype set_autocast_gpu_dtype
from compat.legacy: StorageBase=UntypedStorage
from base.errors: OutOfMemoryError
from compat.legacy: AcceleratorError
returns False: is_autocast_ipu_enabled is_autocast_xla_enabled
refuses: get_autocast_ipu_dtype get_autocast_xla_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled
from compat.queries: is_complex is_conj is_inference is_neg is_nonzero is_same_size is_signed is_storage typename can_cast result_type
from fx.tracer: _assert
from compat.queries: _assert_async get_device is_inference_mode_enabled unravel_index
from compat.composed: cartesian_prod block_diag combinations tensordot chain_matmul broadcast_shapes vander range=range_ frombuffer
from compat.composed: from_dlpack to_dlpack from_file
from compat.lowrank: svd_lowrank pca_lowrank
from compat.lobpcg: lobpcg
from compat.functions: broadcast_tensors meshgrid
from compat.older_functions: alpha_dropout_ conv_tbc detach_ dropout_ embedding_renorm_ feature_alpha_dropout_ feature_dropout_
from compat.older_functions: native_channel_shuffle norm_except_dim rrelu_
from compat.legacy: BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor IntTensor LongTensor ShortTensor HalfTensor BFloat16Tensor
from compat.legacy: BoolStorage ByteStorage CharStorage DoubleStorage FloatStorage IntStorage LongStorage ShortStorage HalfStorage BFloat16Storage
from compat.legacy: ComplexFloatStorage ComplexDoubleStorage TypedStorage UntypedStorage
from compat.legacy: Tag DispatchKey FatalError
from base.dtypes: float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float4_e2m1fn_x2 float8_e8m0fnu
from base.dtypes: complex32 chalf=complex32 bit bits16 bits1x8 bits2x4 bits4x2 bits8 int1 int2 int3 int4 int5 int6 int7
from base.dtypes: uint1 uint2 uint3 uint4 uint5 uint6 uint7 qint32 qint8 quint2x4 quint4x2 quint8
from core.tensor: jagged
from nested.strided: _nested_from_padded _nested_from_padded_and_nested_example _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned
from compat.legacy: _mkldnn Storage=FloatStorage
from core.quantized: qscheme=QScheme per_tensor_affine per_channel_affine per_channel_affine_float_qparams per_tensor_symmetric per_channel_symmetric
value None: newaxis
value 'contiguous_format': legacy_contiguous_format
from compat.composed: _shape_as_tensor
from compat.queries: _check_with _check_tensor_all_with _check_tensor_all
from functionalize.switch: _to_functional_tensor=to_functional _from_functional_tensor=from_functional _is_functional_tensor=is_functional
from functionalize.switch: _enable_functionalization=enable _disable_functionalization=disable _sync=sync _freeze_functional_tensor=freeze
""",
    "jit._script": "from jit: Attribute script ScriptModule ScriptFunction export ignore",
    "jit._trace": "from jit: trace trace_module is_tracing\nclass: TopLevelTracedModule",
    "jit.annotations": "from compat.types: BroadcastingList1 BroadcastingList2 BroadcastingList3 List Dict Optional Tuple Module=Any\nwhy: TorchScript's type comments\nrefuses: get_signature",
    "jit.frontend": "why: TorchScript's parser\nclass: NotSupportedError",
    "jit.mobile": "why: the mobile interpreter of TorchScript\nrefuses: _load_for_lite_interpreter",
    # Names of PyTorch's native module that libraries touch; flambeau's own answers first.
    "_C": f"""
why: PyTorch's native module; flambeau's is another
class: {_SCRIPT}
from compat.jit: CompilationUnit ScriptFunction
from compat.legacy: DispatchKey DispatchKeySet
from compat.dispatch_guards: _ExcludeDispatchKeyGuard _IncludeDispatchKeyGuard _AutoDispatchBelowAutograd _DisableTorchDispatch
from compat.dispatch_guards: _DisableFuncTorch
context: _EnablePythonDispatcher
from core.overrides: DisableTorchFunctionSubclass DisableTorchFunction _EnableTorchFunction=EnableTorchFunction
from core.overrides: _is_torch_function_enabled=is_torch_function_enabled
from core.overrides: _is_torch_function_all_disabled=is_torch_function_all_disabled
from amp.state: _is_any_autocast_enabled=is_any_autocast_enabled
from core.generator: Generator
from linalg: _LinAlgError=LinAlgError
from base.shapes: Size
class: Function _NodeBase
returns None: _get_tracing_state _log_api_usage_once _get_privateuse1_backend_name _jit_set_texpr_fuser_enabled _jit_set_profiling_mode
returns None: _jit_set_profiling_executor _jit_override_can_fuse_on_gpu _jit_set_nvfuser_enabled _jit_override_can_fuse_on_cpu
returns None: _jit_set_nvfuser_guard_mode _cuda_clearCublasWorkspaces _set_math_sdp_allow_fp16_bf16_reduction
from autograd.grad_mode: _set_grad_enabled is_grad_enabled
from autograd.forward: _set_fwd_grad_enabled=set_enabled _is_fwd_grad_enabled=is_enabled
from compat.weak: _WeakTensorRef
from compat.queries: _storage_id
from library.fallback: _get_autograd_fallback_mode=get_mode _set_autograd_fallback_mode=set_mode
from compat.convolution_kinds: _ConvBackend=ConvBackend _select_conv_backend=select_conv_backend
from autograd.steps: _current_graph_task_id=current_graph_task_id _will_engine_execute_node=will_engine_execute_node
returns False: _are_functorch_transforms_active _llvm_enabled _jit_can_fuse_on_gpu _jit_can_fuse_on_cpu _cuda_isInBadFork _has_mps _has_cuda has_cuda _is_tracing
returns 'cpu': _get_accelerator
from compat.defaults: _get_default_device=get_default_device
module: _nn _functorch _distributed_c10d _distributed_rpc _profiler _autograd _functions
from core.tensor: _TensorBase=Tensor
from compat.legacy: _TensorMeta
from library.registry: _dispatch_has_kernel_for_dispatch_key=has_kernel
from batching.fallback: _debug_only_are_vmap_fallback_warnings_enabled=is_warning_enabled
from batching.fallback: _debug_only_display_vmap_fallback_warnings=set_warning_enabled
""",
    "_C._nn": "from nn.functional: gelu pad scaled_dot_product_attention linear\nfrom compat.legacy: _parse_to",
    "nn.parallel.distributed": "from nn.parallel: DistributedDataParallel\nfrom distributed.data_parallel_facts: _dump_DDP_relevant_env_vars=dump_environment",
    "nn.parallel.data_parallel": "from nn.parallel: DataParallel data_parallel",
    "nn.parallel.scatter_gather": "from nn.parallel: scatter gather",
    "_custom_ops": "from library.older: custom_op=make impl impl_abstract impl_save_for_backward impl_backward _destroy=destroy get_op\n"
    "from library.older: SUPPORTED_DEVICE_TYPE_TO_KEY RESERVED_NS",
    "_custom_op": "module: impl",
    "_custom_op.impl": "rest library.older\nfrom library: get_ctx\nfrom library.infer: infer_schema",
    "testing._utils": "from testing.seeds: wrapper_set_seed freeze_rng_state",
    "_C._autograd": "from profiling.events: DeviceType\nfrom autograd.node: SavedTensor=Saved\nfrom autograd.graph: _saved_tensors_hooks_is_enabled\n"
    "from profiling.profiler: ProfilerActivity",
    "_C._functions": "from autograd.node: AccumulateGrad\nfrom autograd.steps: DelayedError UndefinedGrad",
    "_vmap_internals": "from func: vmap _vmap=vmap",
    "_C._functorch": "why: functorch's native levels\n"
    "from batching.fallback: _is_vmap_fallback_enabled=is_fallback_enabled _set_vmap_fallback_enabled=set_fallback_enabled\n"
    "from core.dimensions: reshape_dim_into reshape_dim_outof\n"
    "from batching.by_name: _add_batch_dim=add_batch_dim _remove_batch_dim=remove_batch_dim get_unwrapped is_batchedtensor\n"
    "from batching.by_name: is_functorch_wrapped_tensor=is_batchedtensor\n"
    "returns False: is_legacy_batchedtensor is_gradtrackingtensor\n"
    "returns None: peek_interpreter_stack maybe_get_level",
    "_C._profiler": "why: PyTorch's native profiler\nfrom compat.tracebacks: CapturedTraceback gather_traceback symbolize_tracebacks\nfrom profiling.profiler: ProfilerActivity",
    "_export": "rest export\nmodule: wrappers",
    "_export.wrappers": "why: an internal of PyTorch's export\ndecorator: mark_subclass_constructor_exportable_experimental",
    "_C._distributed_rpc": "from distributed.rpc: PyRRef WorkerInfo\nclass: RpcAgent TensorPipeAgent",
    "_C._distributed_c10d": "class: Store ProcessGroup",
    "_functorch.apis": "from func: vmap grad grad_and_value\nfrom func.mapping: chunk_vmap",
    "_functorch.vmap": "from func: vmap\nfrom func.mapping: restore_vmap _get_name=_name _maybe_remove_batch_dim=maybe_remove_batch_dim\n"
    "from batching.by_name: _add_batch_dim=add_batch_dim _remove_batch_dim=remove_batch_dim\nfrom base.pytree: _broadcast_to_and_flatten\n"
    "rest utils._pytree\nfrom core.tensor: Tensor",
    "_functorch.make_functional": "rest func.make_functional",
    "_functorch.eager_transforms": "from func: grad grad_and_value hessian jacfwd jacrev jvp vjp functionalize linearize",
    "_functorch.deprecated": "from func: functionalize grad grad_and_value hessian jacfwd jacrev jvp vjp vmap\n"
    "from func.make_functional: combine_state_for_ensemble make_functional make_functional_with_buffers",
    "_functorch.python_key": "from proxy: make_fx",
    # The package functorch, for programs that import it.
    "functorch": "from func: functional_call functionalize grad grad_and_value hessian jacfwd jacrev jvp linearize stack_module_state vjp vmap\n"
    "from func.mapping: chunk_vmap\nfrom func.make_functional: FunctionalModule FunctionalModuleWithBuffers combine_state_for_ensemble\n"
    "from func.make_functional: make_functional make_functional_with_buffers\nfrom proxy: make_fx\nfrom version: __version__\nmodule: compile experimental einops",
    # Kernels written in Python come first here at any time.
    "_dispatch": "module: python",
    "_dispatch.python": "context: enable_python_dispatcher\nfrom functionalize.switch: enable_crossref_functionalize=crossref_functionalize",
    "functorch.compile": "rest aot\nfrom library.decompositions: default_decompositions\nfrom aot: compiled_function=aot_function compiled_module=aot_module\nfrom aot.partitioners: default_partition min_cut_rematerialization_partition\nfrom aot.settings: config",
    "functorch.experimental": "from func: functionalize hessian jacfwd jvp\nfrom func.mapping: chunk_vmap\nmodule: control_flow ops",
    "functorch.experimental.control_flow": "rest aot.control_flow",
    "functorch.experimental.ops": "rest core.operator",
    "functorch.einops": "from func.einops: rearrange\nmodule: _parsing",
    "functorch.einops._parsing": "rest func.einops",
    "_logging": """
from compat.logging: set_logs getArtifactLogger warning_once hide_warnings LazyString trace_structured dtrace_structured DEFAULT_LOGGING
returns 0.0: get_structured_logging_overhead
module: _internal
""",
    "_logging._internal": "from compat.logging: getArtifactLogger set_logs warning_once trace_structured LazyString",
    "_dynamo._trace_wrapped_higher_order_op": "from compat.legacy: TransformGetItemToIndex",
    "_inductor.decomposition": "from library.decompositions: decompositions select_decomp_table core_aten_decompositions get_decompositions "
    "register_decomposition remove_decompositions",
    "_dynamo.eval_frame": "from compiler: OptimizedModule disable\nreturns True: is_dynamo_supported is_inductor_supported",
    "_dynamo.decorators": "from compiler: disable allow_in_graph",
    "_dynamo.external_utils": "from base.compiling: is_compiling",
    "_dynamo.variables": "why: PyTorch's own classes of traced values\nclass: TensorVariable ConstantVariable",
    "classes": "why: classes of C++ extensions are not built\nrefuses: load_library",
    "_utils_internal": "from compat.queries: get_file_path get_file_path_2\nreturns None: log_torch_jit_trace_exportability\nreturns False: justknobs_check justknobs_getval_int is_fb_unit_test",
    "__config__": "returns 'flambeau on NumPy and LLVM': show\nreturns '': parallel_info\nreturns '': _cxx_flags",
    "__future__": "from modules.swapping: set_overwrite_module_params_on_conversion set_swap_module_params_on_conversion\n"
    "from modules.swapping: get_overwrite_module_params_on_conversion get_swap_module_params_on_conversion",
    "compiler.config": "value '': job_id\nvalue False: dynamic_sources",
    "futures": "from distributed.futures: Future collect_all wait_all",
    "profiler": "from profiling.profiler: profile record_function schedule ProfilerActivity ProfilerAction tensorboard_trace_handler "
    "supported_activities _KinetoProfile\nfrom profiling.events: DeviceType\nfrom compat.profiler: kineto_available ExecutionTraceObserver\n"
    "module: itt profiler",
    "profiler.profiler": "from compat.profiler: ExecutionTraceObserver\n"
    "from profiling.profiler: profile schedule ProfilerActivity tensorboard_trace_handler record_function "
    "ProfilerAction _default_schedule_fn _KinetoProfile",
    "profiler.itt": "returns False: is_available\nreturns None: mark range_push range_pop\ncontext: range",
    "autograd.profiler": "from profiling.legacy: profile\nfrom profiling.profiler: record_function\nfrom profiling.events: EventList FunctionEvent\n"
    "from compat.profiler: emit_nvtx emit_itt load_nvprof parse_nvprof_trace KinetoStepTracker EnforceUnique MemRecordsAcc\n"
    "value False: _is_profiler_enabled",
    "autograd.profiler_util": "from profiling.events: EventList FunctionEvent FunctionEventAvg Interval\nfrom compat.profiler: MemRecordsAcc",
    "_awaits": "why: TorchScript's awaitables\nclass: Await",
    "monitor": """
why: monitoring needs a service of PyTorch's own
class _C._monitor: Aggregation Event EventHandlerHandle Stat data_value_t
class: TensorboardEventHandler
value 0: VALUE
value 1: MEAN
value 2: COUNT
value 3: SUM
value 4: MAX
value 5: MIN
value False: TYPE_CHECKING
value '': STAT_EVENT
refuses: log_event register_event_handler unregister_event_handler
""",
    "nested._internal": "module: nested_tensor ops",
    "nested._internal.ops": "from nested.converters: extract_kwargs",
    "onnx": "why: export to ONNX is not built\nmodule: symbolic_opset11 symbolic_helper\nrefuses: export\n"
    "returns None: register_custom_op_symbolic unregister_custom_op_symbolic\n"
    "returns False: is_in_onnx_export is_onnxrt_backend_supported\nclass: ONNXProgram OperatorExportTypes",
    "onnx.symbolic_opset11": "why: export to ONNX is not built\nrefuses: select unsqueeze squeeze _cast_Long _cast_Float",
    "onnx.symbolic_opset9": "why: export to ONNX is not built\nrefuses: select unsqueeze squeeze",
    "onnx.symbolic_helper": "why: export to ONNX is not built\ndecorator: parse_args\nrefuses: _unimplemented",
    "ao.quantization.quantize_jit": "why: quantisation of TorchScript is not built; the eager flow is: prepare(), convert()\n"
    "refuses: quantize_jit quantize_dynamic_jit prepare_jit convert_jit",
    "sparse.semi_structured": """
why: semi-structured sparsity is for kernels of a GPU
class: SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS
refuses: to_sparse_semi_structured solve
""",
    "utils.data._utils": "module: collate worker",
    "utils.backend_registration": "why: devices other than the CPU are not built\nrefuses: rename_privateuse1_backend generate_methods_for_privateuse1_backend",
    "utils.cpp_extension": """
why: flambeau loads no C++ extensions; operators are defined in Python (torch.library, flambeau.core.declare)
class: BuildExtension
refuses: CUDAExtension CppExtension SyclExtension check_compiler_ok_for_platform get_compiler_abi_compatibility_and_version get_cxx_compiler
refuses: get_default_build_root include_paths library_paths load load_inline remove_extension_h_precompiler_headers verify_ninja_availability
returns False: is_ninja_available check_compiler_is_gcc
value None: CUDA_HOME ROCM_HOME CUDNN_HOME
""",
    "utils._triton": "returns False: has_triton has_triton_package has_triton_tma",
    "utils.mkldnn": "why: oneDNN tensors are not built\nrefuses: to_mkldnn",
    "utils.mobile_optimizer": "why: TorchScript for mobile devices is not built\nrefuses: optimize_for_mobile",
    "utils.tensorboard._convert_np": "from utils.tensorboard.arrays: make_np",
    "utils.tensorboard._utils": "from utils.tensorboard.arrays: convert_to_HWC figure_to_image make_grid _prepare_video=video_frames",
    "utils.tensorboard._pytorch_graph": "from utils.tensorboard.graph: graph",
    "utils.viz": "why: memory visualisation is not built",
    "storage": "from compat.legacy: TypedStorage UntypedStorage\nfrom compat.queries: is_storage\nfrom compat.legacy: _LegacyStorage=TypedStorage _StorageBase=UntypedStorage",
    "multiprocessing": f"""
from compat.multiprocessing: {_POOL} Pool Process ProcessError Queue RLock RawArray RawValue Semaphore SimpleQueue TimeoutError Value
from compat.multiprocessing: active_children allow_connection_pickling cpu_count current_process freeze_support get_all_sharing_strategies
from compat.multiprocessing: get_all_start_methods get_context get_logger get_sharing_strategy get_start_method log_to_stderr parent_process reducer
from compat.multiprocessing: set_executable set_forkserver_preload set_sharing_strategy set_start_method spawn start_processes SpawnContext
from compat.multiprocessing: ProcessContext ProcessRaisedException ProcessExitedException queues connection
""",
    "multiprocessing.reductions": "returns None: init_reductions\nfrom compat.weak: StorageWeakRef",
    "multiprocessing.spawn": "from compat.multiprocessing: spawn start_processes SpawnContext ProcessContext ProcessRaisedException ProcessExitedException",
    "_tensor": "from core.tensor: Tensor\nfrom core.rebuild: _rebuild_from_type_v2\nfrom _utils: _rebuild_tensor_v2",
    "_tensor_str": "from core.printing: set_printoptions tensor_str\nfrom core.printing: _tensor_str=tensor_str printoptions get_printoptions "
    "PRINT_OPTS _add_suffixes _str_intern=tensor_str",
    "_jit_internal": "from jit: ignore export unused\ndecorator: boolean_dispatch _overload _overload_method _copy_to_script_wrapper\nreturns False: is_scripting\n"
    "from compat.types: BroadcastingList1 BroadcastingList2 BroadcastingList3\nreturns True: _isinstance",
    "_six": "value None: inf",
    "_subclasses.functional_tensor": "why: functionalize's tensors are others here\nclass: FunctionalTensor\nrefuses: mb_unwrap_functional_tensor",
    "_guards": "class: Guard Source\nwhy: PyTorch's guard objects; flambeau's are in flambeau.dynamo\nfrom fake.active: active_fake_mode detect_fake_mode",
    "_higher_order_ops.invoke_subgraph": "from compiler.regions: mark_compile_region=nested_compile_region\nfrom aot.regions: invoke_subgraph",
    "_ops": "from core.operator: OpOverload OpOverloadPacket=Packet\nfrom core.higher_order: HigherOrderOperator",
    "_decomp": "from library.decompositions: get_decompositions core_aten_decompositions decomposition_table register_decomposition remove_decompositions",
    "_prims_common": "module: wrappers\nfrom compat.queries: is_contiguous_or_false",
    "_prims_common.wrappers": "decorator: out_wrapper",
    "_linalg_utils": "why: PyTorch's helpers of linear algebra",
    "_weights_only_unpickler": "from serialization.unpickler: Unpickler load",
}
