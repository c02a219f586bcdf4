"""PyTorch's settings of capture that nothing here depends on: programs may read and write them."""

from __future__ import annotations

from flambeau.base.config import Knob

__all__ = ["ACCEPTED", "NOT_BUILT"]

ALWAYS, NEVER, ELSEWHERE = "always so here", "there is no such thing here", "concerns how PyTorch itself is made"

_DEFAULTS = {
    ALWAYS: {
        "capture_autograd_function": True,
        "allow_rnn": False,
        "assume_dunder_attributes_remain_unchanged": True,
        "enable_dynamo_decompositions": True,
        "enable_faithful_generator_behavior": True,
        "enable_trace_contextlib": True,
        "guard_nn_modules": True,
        "nested_graph_breaks": False,
        "skip_code_recursive_on_recompile_limit_hit": True,
        "skip_guards_on_constant_func_defaults": False,
        "trace_autograd_ops": False,
        "use_numpy_random_stream": False,  # True and False: NumPy's numbers come from NumPy's generators
    },
    NEVER: {
        "automatic_dynamic_local_pgo": True,
        "automatic_dynamic_remote_pgo": None,
        "cudagraph_backend_keep_input_mutation": False,
        "cudagraph_backend_support_input_mutation": False,
        "enable_compiler_collectives": False,
        "enable_p2p_compilation": False,
        "optimize_ddp_lazy_compile": False,
        "skip_fsdp_guards": True,
        "skip_torchrec": True,
        "traceable_tensor_subclasses": set(),
        "use_graph_deduplication": False,
        "use_lazy_graph_module": True,
    },
    ELSEWHERE: {
        "capture_sparse_compute": True,
        "dead_code_elimination": True,
        "constant_fold_autograd_profiler_enabled": False,
        "enable_cpp_framelocals_guard_eval": True,
        "enable_cpp_guard_manager": True,
        "enable_cpp_symbolic_shape_guards": False,
        "fake_tensor_cache_crosscheck_enabled": False,
        "fake_tensor_cache_enabled": True,
        "guard_nn_modules_using_dict_tags": True,
        "issue_3_13_0_warning": True,
        "log_compilation_metrics": True,
        "max_saved_pointers_for_recursive_dict_tags_check": 256,
        "prefer_deferred_runtime_asserts_over_guards": False,
        "raise_on_ctx_manager_usage": True,
        "record_runtime_overhead": True,
        "report_guard_failures": True,
        "run_gc_after_compile": True,
        "skip_nnmodule_hook_guards": True,
        "skip_tensor_guards_with_matching_dict_tags": True,
        "track_nodes_for_deduplication": False,
        "skip_no_tensor_aliasing_guards_on_parameters": True,
        "use_lamba_guard_for_object_aliasing": True,
        "use_recursive_dict_tags_for_guards": False,
    },
}
ACCEPTED = {
    name: Knob(default, f"accepted for compatibility: {why}")
    for why, defaults in _DEFAULTS.items()
    for name, default in defaults.items()
}

# Settings that ask for what isn't built: only this value may be set.
_ONLY = {
    "caching_precompile": False,
    "compiled_autograd": False,
    "capture_profiler_record_function": False,
    "cprofile": False,
    "do_not_emit_runtime_asserts": False,
    "dont_skip_tracing": False,
    "enable_trace_load_build_class": False,
    "enable_trace_unittest": False,
    "error_on_nested_jit_trace": True,
    "force_compile_during_fx_trace": False,
    "graph_break_on_nn_param_ctor": True,
    "install_free_tensors": False,
    "log_file_name": None,
    "minimum_call_count": 1,
    "only_allow_pt2_compliant_ops": False,
    "prepare_freezing": False,
    "raise_on_unsafe_aot_autograd": False,
    "replay_record_enabled": False,
    "replay_side_effects": True,
    "repro_forward_only": False,
    "repro_ignore_non_fp": False,
    "rewrite_assert_with_torch_assert": True,
    "same_two_models_use_fp64": True,
    "side_effect_replay_policy": "info",
    "wrap_top_frame": False,
}
ACCEPTED |= {name: Knob(value, f"only {value!r} is built", only=True) for name, value in _ONLY.items()}

# What else PyTorch has: switches of its own tests, of how it is debugged, and of what has another name here (``torch._inductor.config.trace``).
NOT_BUILT = frozenset(
    """
    allowed_functions_module_string_ignorelist automatic_dynamic_exclusion_guard base_dir compiled_autograd_kwargs_override
    debug_backend_override debug_disable_compile_counter debug_dynamo_config_override debug_force_graph_break_on_leaf_return
    debug_force_nested_calls debug_inductor_config_override dynamo_profiler enable_aot_compile enable_invoke_subgraph_regional_compile
    error_on_dynamo_callback_in_fullgraph_compiled_code fake_tensor_disable_inference_mode force_unspec_int_unbacked_size_like_on_torchrec_kjt
    generate_pycode graph_deduplication_lint inject_BUILD_SET_unimplemented_TESTING_ONLY inline_invoke_subgraph
    inline_single_use_invoke_subgraph inline_torch_dispatch_torch_compile install_free_tensors_for_export invalidate_compile_context_weakrefs
    leaf_function_check_escaped_gradients leaf_function_validate_outputs log_graph_in_out_metadata pt2_compile_id_prefix
    record_compile_time_instruction_count skip_fwd_side_effects_in_bwd_under_checkpoint strict_precompile
    _autograd_backward_strict_mode_banned_ops _autograd_backward_strict_mode_conditional_banned_ops _custom_ops_profile _save_config_ignore
    _shapes_spec _unsafe_skip_fsdp_module_guards
    """.split()
)
