"""Settings of capture, ``torch._dynamo.config``."""

from __future__ import annotations

from flambeau._frame import set_strict_guards, set_watcher
from flambeau.base import debug_folder, upper_levels
from flambeau.base.config import Config, Knob
from flambeau.base.records import replace

from .accepted import ACCEPTED, NOT_BUILT

__all__ = ["config"]

KNOBS = {
    "cache_size_limit": Knob(8, "variants kept of one frame before it runs plainly"),
    "accumulated_cache_size_limit": Knob(256, "the same, over all configurations of one code object"),
    "error_on_recompile": Knob(False, "raise RecompileError when a frame would be compiled again"),
    "fail_on_recompile_limit_hit": Knob(False, "raise instead of running plainly when the limit is hit"),
    "suppress_errors": Knob(
        False, "run plainly when the backend or capture itself fails", ("TORCHDYNAMO_SUPPRESS_ERRORS",)
    ),
    "verbose": Knob(False, "show the traceback of capture with each break", ("TORCHDYNAMO_VERBOSE",)),
    "disable": Knob(False, "compile() does nothing", ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")),
    "strict_guards": Knob(False, "run each guard's Python mirror too and compare", ("FLAMBEAU_STRICT_GUARDS",)),
    "strict_capture": Knob(
        False, "a defect of capture raises instead of running the frame plainly", ("FLAMBEAU_STRICT_CAPTURE",)
    ),
    "strict_calls": Knob(
        False, "every call also runs plainly, on copies, and what both did is compared", ("FLAMBEAU_STRICT_CALLS",)
    ),
    "check_allow_in_graph": Knob(
        False,
        "warn when what a function of allow_in_graph reads beside its arguments has changed since it was captured",
        ("FLAMBEAU_CHECK_ALLOW_IN_GRAPH",),
    ),
    "trace_numpy": Knob(True, "capture NumPy functions and arrays"),
    "capture_func_transforms": Knob(True, "accepted for compatibility; transforms are captured"),
    "capture_scalar_outputs": Knob(
        False,
        "item() gives a symbol instead of breaking the graph (always with fullgraph)",
        ("TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS",),
    ),
    "capture_dynamic_output_shape_ops": Knob(
        False,
        "sizes that depend on data are symbols instead of breaking the graph (always with fullgraph)",
        ("TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS",),
    ),
    "inline_inbuilt_nn_modules": Knob(True, "modules are traced through; their parameters are graph inputs"),
    "specialize_int": Knob(False, "integers are guarded by value even when they vary"),
    "specialize_float": Knob(False, "floats are guarded by value even when they vary"),
    "assume_static_by_default": Knob(True, "sizes are constants until they are seen to vary"),
    "error_on_nested_fx_trace": Knob(
        True, "a compiled function that torch.fx traces is an error, else it is traced as it was written"
    ),
    "automatic_dynamic_shapes": Knob(True, "sizes and numbers that vary become symbols"),
    "automatic_dynamic_shapes_mark_as": Knob("dynamic", "what they become: only dynamic is built", only=True),
    "allow_ignore_mark_dynamic": Knob(False, "what mark_dynamic names may be made constant by the program"),
    "allow_unspec_int_on_nn_module": Knob(True, "integers among the attributes of modules that vary become symbols"),
    "force_parameter_static_shapes": Knob(True, "sizes of parameters are constants unless they are marked"),
    "force_nn_module_property_static_shapes": Knob(
        False, "sizes of tensors among the attributes of modules are constants unless they are marked"
    ),
    "dynamic_shapes": Knob(None, "the default of compile(dynamic=): all sizes are symbols, or none"),
    "skipfiles_inline_module_allowlist": Knob(None, "deprecated, without effect"),
    "numpy_floating_point_errors": Knob(
        "auto",
        "NumPy's warnings of divisions by zero and their kin: auto (where Python shows one once, not of each call), exact (loops' integers too), off",
        ("FLAMBEAU_NUMPY_FLOATING_POINT_ERRORS",),
    ),
    "numpy_default_float": Knob("float64", "default floating dtype of NumPy factories in captured code"),
    "numpy_default_complex": Knob("complex128", "default complex dtype of NumPy factories in captured code"),
    "numpy_default_int": Knob("int64", "default integer dtype of NumPy factories in captured code"),
    "optimize_ddp": Knob(
        True, "graphs of a module in DistributedDataParallel are split at the boundaries of its buckets"
    ),
    "repro_after": Knob(
        None, "leave a script when a graph fails after this stage: dynamo or aot", ("TORCHDYNAMO_REPRO_AFTER",)
    ),
    "repro_level": Knob(
        2, "1 script, 2 minifier, 3 minifier always, 4 minifier also for wrong values", ("TORCHDYNAMO_REPRO_LEVEL",)
    ),
    "repro_tolerance": Knob(1e-3, "how far compiled values may be from plain ones (repro_level 4, verify)"),
    "debug_dir_root": Knob(
        None,
        "where the folders of TORCH_COMPILE_DEBUG=1 and of the minifier are made, instead of ./torch_compile_debug",
        ("TORCH_COMPILE_DEBUG_DIR",),
    ),
    "verify": Knob(
        False, "run every compiled graph beside the plain one and compare, at each call", ("FLAMBEAU_VERIFY",)
    ),
    "small_arrays_plainly": Knob(
        True, "a function that makes one call of NumPy's on small arrays, or touches a few elements, serves itself"
    ),
    "native_loops": Knob(
        True,
        "long loops over arrays and numbers become native ones instead of being unrolled",
        ("FLAMBEAU_NATIVE_LOOPS",),
    ),
    "native_loop_gradients": Knob(
        True,
        "such loops are native where a gradient is asked for, too: derivatives run them again and note each operation",
        ("FLAMBEAU_NATIVE_LOOP_GRADIENTS",),
    ),
    "capture_empty_graphs": Knob(
        False, "keep captured code that has no tensor operation (to test the executor on plain Python)"
    ),
    "ignore_logging_functions": Knob(set(), "functions and methods whose calls captured code leaves out"),
    "reorderable_logging_functions": Knob(
        set(), "functions whose calls, of tensors, constants and texts of them, captured code makes behind the graph"
    ),
    "nontraceable_tensor_subclasses": Knob(set(), "tensor subclasses that break the graph"),
    "max_traced_instructions": Knob(2_000_000, "instructions interpreted for one frame before it is given up"),
    "max_traced_instructions_without_tensors": Knob(
        100_000, "instructions interpreted for a frame that has met no tensor before it runs plainly for good"
    ),
}
KNOBS |= ACCEPTED
_DIAGNOSTIC = """
accumulated_cache_size_limit cache_size_limit debug_dir_root error_on_recompile fail_on_recompile_limit_hit replay_record_enabled
report_guard_failures repro_after repro_forward_only repro_ignore_non_fp repro_level repro_tolerance same_two_models_use_fp64 verbose verify
"""
KNOBS |= {name: replace(KNOBS[name], diagnostic=True) for name in _DIAGNOSTIC.split()}
ALIASES = {
    "accumulated_recompile_limit": "accumulated_cache_size_limit",
    "allow_empty_graphs": "capture_empty_graphs",
    "fail_on_cache_limit_hit": "fail_on_recompile_limit_hit",
    "ignore_logger_methods": "ignore_logging_functions",
    "recompile_limit": "cache_size_limit",
    "skip_code_recursive_on_cache_limit_hit": "skip_code_recursive_on_recompile_limit_hit",
    "verify_correctness": "verify",
}

config = Config("torch._dynamo.config", KNOBS, ALIASES, NOT_BUILT)
set_strict_guards(config.strict_guards)


def _watched_call(compiled, /, *args, **kwargs):
    """Each call under ``config.strict_calls``."""
    return upper_levels.ask("strict calls")(compiled, *args, **kwargs)


set_watcher(_watched_call if config.strict_calls else None)


def _strict_guards(name, value) -> None:
    if name == "strict_guards":
        set_strict_guards(value)
    if name == "strict_calls":
        set_watcher(_watched_call if value else None)
    if name == "debug_dir_root":
        debug_folder.set_root(value)


config._listeners.append(_strict_guards)
