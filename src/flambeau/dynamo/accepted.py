"""PyTorch's settings of capture that nothing here depends on: programs may read and write them."""

from __future__ import annotations

from flambeau.base.config import Knob

__all__ = ["ACCEPTED", "ONLY"]

ALWAYS, NEVER, ELSEWHERE = "always so here", "there is no such thing here", "concerns how PyTorch itself is made"

_DEFAULTS = {
    ALWAYS: {
        "capture_autograd_function": True,
        "enable_trace_contextlib": True,
        "guard_nn_modules": True,
        "nested_graph_breaks": False,
        "skip_code_recursive_on_recompile_limit_hit": True,
        "trace_autograd_ops": False,
    },
    NEVER: {
        "enable_compiler_collectives": False,
        "enable_p2p_compilation": False,
        "optimize_ddp": True,
        "optimize_ddp_lazy_compile": False,
        "skip_fsdp_guards": True,
        "skip_torchrec": True,
        "traceable_tensor_subclasses": set(),
        "use_graph_deduplication": False,
        "use_lazy_graph_module": True,
    },
    ELSEWHERE: {
        "capture_sparse_compute": True,
        "enable_cpp_framelocals_guard_eval": True,
        "enable_cpp_guard_manager": True,
        "enable_cpp_symbolic_shape_guards": False,
        "fake_tensor_cache_crosscheck_enabled": False,
        "fake_tensor_cache_enabled": True,
        "guard_nn_modules_using_dict_tags": True,
        "issue_3_13_0_warning": True,
        "log_compilation_metrics": True,
        "prefer_deferred_runtime_asserts_over_guards": False,
        "raise_on_ctx_manager_usage": True,
        "record_runtime_overhead": True,
        "report_guard_failures": True,
        "run_gc_after_compile": True,
        "skip_nnmodule_hook_guards": True,
        "skip_tensor_guards_with_matching_dict_tags": True,
        "track_nodes_for_deduplication": False,
        "use_lamba_guard_for_object_aliasing": True,
    },
}
ACCEPTED = {
    name: Knob(default, f"accepted for compatibility: {why}")
    for why, defaults in _DEFAULTS.items()
    for name, default in defaults.items()
}

# Settings that ask for what isn't built: only this value may be set.
ONLY = {
    "caching_precompile": False,
    "compiled_autograd": False,
    "cprofile": False,
    "minimum_call_count": 1,
    "only_allow_pt2_compliant_ops": False,
    "replay_record_enabled": False,
    "replay_side_effects": True,
    "use_numpy_random_stream": False,
}
ACCEPTED |= {name: Knob(value, f"only {value!r} is built") for name, value in ONLY.items()}
ONLY["automatic_dynamic_shapes_mark_as"] = "dynamic"
