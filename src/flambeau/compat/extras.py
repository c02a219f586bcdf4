"""Names that modules with code of their own lack: by module (of aliases.EXTENDED), after a plus sign. See namespaces.py for the rules."""

__all__ = ["EXTRAS"]

_SHAPES = """
CURRENT_NODE_KEY ConvertIntKey SHAPEENV_EVENT_KEY SYMPY_INTERP Specialization StatefulSymbolicContext
SubclassSymbolicContext SymIntEqByExpr SymIntSymbolicContext TrackedFake ValueRangesSLoc RelaxedUnspecConstraint
StrictMinMaxConstraint EqualityConstraint DimConstraints PropagateUnbackedSymInts
"""

EXTRAS: dict[str, str] = {
    "+autograd": "from compat.legacy: Variable\nfrom autograd.node: SavedTensor=Saved\nreturns False: _profiler_enabled\n"
    "returns None: _disable_profiler enforce_grad_layout_policy",
    "+autograd.graph": "returns None: set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch\n"
    "context: region_activation_memory_budget",
    "+aot.api": "from export.aot_export: GraphSignature aot_export_joint_simple aot_export_module",
    "+compiler": """
why: PyTorch's caches of artifacts and graphs of a GPU are not built
returns None: cudagraph_mark_step_begin load_cache_artifacts save_cache_artifacts set_enable_guard_collectives
refuses: load_compiled_function
""",
    "+compiler.dynamo_api": """
why: an internal of PyTorch's compiler
returns None: mark_static_address override_cudagraphs override_optimization_hint reset_recompile_user_contexts set_recursion_limit
returns False: is_dynamo_disable_recursive
decorator: disable_nested_graph_breaks dont_skip_tracing skip_frame
class: allow_c_slot bytecode_debugger
refuses: replay step_unsupported
""",
    "+distributions.transforms": "from distributions.transforms: _InverseTransform=_Inverse _clipped_sigmoid=_sigmoid",
    "+fake.fake_tensor": "from compat.queries: is_fake\nfrom base.errors: DynamicOutputShapeException UnsupportedOperatorException\n"
    "from base.errors: UnsupportedFakeTensorException=Uncaptured\n"
    "from fake.converter: FakeCopyMode unset_fake_temporarily maybe_get_fake_mode",
    "+fake": "from testing.cross_ref: CrossRefFakeMode\nfrom base.errors: DynamicOutputShapeException UnsupportedOperatorException",
    "+dynamo.exc": "class: TensorifyScalarRestartAnalysis\nfrom dynamo.exc: UncapturedHigherOrderOpError=Unsupported\n"
    "from compiler.backends: InvalidBackend",
    "+func": "from compat.queries: debug_unwrap\nfrom func.einops: rearrange\nfrom compat.composed: replace_all_batch_norm_modules_",
    "+inductor.settings": "",
    "+library": "why: kernels written in Triton are not built\nrefuses: get_kernel triton_op wrap_triton register_autocast register_torch_dispatch\n"
    "from library.registry: _scoped_library=scoped_library",
    "+base.shape_env": f"why: PyTorch's own classes of symbolic shapes\nclass fx.experimental.symbolic_shapes: {' '.join(_SHAPES.split())}\n"
    "from base.symbolic_context: DimDynamic StatelessSymbolicContext SymbolicContext\n"
    "from base.symbolic_queries: free_symbols guard_int guard_or_false guard_or_true guard_size_oblivious has_static_value hint_int "
    "statically_known_true\nfrom base.shape_checks: constrain_as_size\n"
    "from compat.symbolic: guard_float guard_scalar guarding_hint_or_throw has_free_symbols has_free_unbacked_symbols "
    "free_unbacked_symbols has_symbolic_sizes_strides is_concrete_bool is_concrete_float is_concrete_int is_nested_int "
    "optimization_hint statically_known_false "
    "sym_and sym_or sym_eq is_symbol_binding_fx_node is_accessor_node\n"
    "refuses: canonicalize_bool_expr check_consistent compute_unbacked_bindings create_contiguous rebind_unbacked resolve_unbacked_bindings",
    "+proxy": "why: an internal of PyTorch's tracing\nfrom base.shape_settings: _config=config\nclass fx.experimental.proxy_tensor: PythonKeyTracer\n"
    "from proxy.decomposing: DecompositionInterpreter\n"
    "from proxy.make_fx: get_isolated_graphmodule disable_proxy_modes_tracing\n"
    "from proxy.tracing: get_proxy_mode=current_proxy_mode get_innermost_proxy_mode=current_proxy_mode\n"
    "context: maybe_disable_thunkify maybe_enable_thunkify\nrefuses: dispatch_trace handle_sym_dispatch selective_decompose\n"
    "from compat.symbolic: py_sym_types",
    "+nn": "from nn: Container=Module",
    "+nn.modules": "from nn: Container=Module",
    "+nn.functional": """
from compat.older_functions: conv_tbc
why: scaled 8-bit products and grouped products of a GPU are not built
from compat.types: BroadcastingList1 BroadcastingList2 BroadcastingList3
from core.tensor: Tensor
from base.dtypes: DType
class: ScalingType SwizzleType
refuses: scaled_mm grouped_mm scaled_grouped_mm
from overrides: has_torch_function_unary=has_torch_function has_torch_function_variadic=has_torch_function
decorator: boolean_dispatch
value {}: reproducibility_notes sparse_support_notes tf32_notes
value False: TYPE_CHECKING
from compat.functions: assert_int_or_pair
""",
    "+nn.init": "from nn.init: _calculate_correct_fan=_fan\nfrom compat.composed: _no_grad_uniform_ _no_grad_normal_",
    "+nn.modules.transformer": "from nn.modules.transformer: _get_activation_fn=_activation",
    "+optim": "value False: swap_in_optimizer_params_and_state",
    "+serialization": """
value 2: DEFAULT_PROTOCOL
class: StorageType
from compat.composed: location_tag default_restore_location normalize_storage_type
refuses: storage_to_tensor_type validate_cuda_device validate_hpu_device check_module_version_greater_or_equal
""",
    "+sparse": "from compat.legacy_sparse: FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor",
    "+utils": """
why: extensions of PyTorch's native part are not built
class utils.throughput_benchmark: ThroughputBenchmark
value '': cmake_prefix_path
refuses: generate_methods_for_privateuse1_backend rename_privateuse1_backend
returns '': get_cpp_backtrace
from compat.utils: set_module
from modules.swapping: swap_tensors
""",
    "+utils._python_dispatch": """
why: an internal of PyTorch's dispatcher
class: AliasInfo SchemaInfo TensorWithFlatten TraceableWrapperSubclass
from compat.legacy: DispatchKey
value False: TYPE_CHECKING
returns False: any_torch_dispatch_mode_on_stack autograd_would_have_decomposed is_in_any_mode_without_ignore_compile_internals
refuses: get_alias_info
returns None: set_is_in_mode_without_ignore_compile_internals
from compat.queries: is_traceable_wrapper_subclass_type
""",
    "+utils.data": """
why: data pipes are not built
from utils.data.datapipes: IterDataPipe MapDataPipe
class utils.data.datapipes.datapipe: DFIterDataPipe DataChunk
decorator: functional_datapipe argument_validation runtime_validation non_deterministic
context utils.data.datapipes._decorator: guaranteed_datapipes_determinism runtime_validation_disabled
from utils.data.loader: _DatasetKind
""",
    "+utils.data.loader": "value None: _collate_fn_t _worker_init_fn_t _T_co\nfrom utils.data: get_worker_info\n"
    "returns None: _sharding_worker_init_fn _share_dist_seed",
    "+utils.data.collate": "from utils.data.collate: np_str_obj_array_pattern=_TEXT\nfrom compat.utils: collate_tensor_fn",
    "+utils.data.worker": "value None: _worker_info\nfrom utils.data.worker: _generate_state=numpy_seed",
    "+testing": "from: FileCheck",
    "+return_types": "value []: all_return_types\nreturns None: pytree_register_structseq",
    "+compat.jit": "from compat.legacy: TracerWarning\nfrom compat.jit_traced: _get_trace_graph=trace_graph",
    "+compat.utils": "returns None: _get_available_device_type\nfrom compat.defaults: _get_device_module=get_device_module\n"
    "value {}: IMPORT_MAPPING NAME_MAPPING\nvalue False: TYPE_CHECKING\nvalue None: P",
    "+ao.quantization": "why: quantisation of TorchScript and of embeddings is not built; the flows of linear layers, convolutions and "
    "recurrences are\nmodule: quantize_jit\n"
    "refuses: QConfigDynamic quantize_jit quantize_dynamic_jit\n"
    "refuses: prepare_jit convert_jit prepare_dynamic_jit convert_dynamic_jit script_qconfig script_qconfig_dict fuse_conv_bn_jit\n"
    "refuses: fuse_convtranspose_bn float_qparams_weight_only_qconfig float_qparams_weight_only_qconfig_4bit default_embedding_qat_qconfig\n"
    "refuses: default_embedding_qat_qconfig_4bit default_embedding_fake_quant default_embedding_fake_quant_4bit\n"
    "refuses: default_float_qparams_observer default_float_qparams_observer_4bit get_default_compare_output_module_list get_fuser_method\n"
    "refuses: get_quantized_operator _convert_ondevice_dynamic_jit _prepare_ondevice_dynamic_jit _quantize_ondevice_dynamic_jit\n"
    "class ao.quantization.quant_type: QuantType\nclass: WeightObserver",
    "+compat.masked": "from compat.masked_tensor: MaskedTensor as_masked_tensor is_masked_tensor masked_tensor",
}
