"""Settings of the compiler, ``torch._inductor.config``."""

from __future__ import annotations

import importlib
from typing import Any

from ..base.config import Config, Knob

__all__ = ["config"]

_DEBUG = ("TORCH_COMPILE_DEBUG",)

KNOBS = {
    "fusion": Knob(True, "put several loop nests into one kernel", ("FLAMBEAU_FUSION",)),
    "epilogue_fusion": Knob(
        True, "take blocks of rows through products and the kernels beside them", ("FLAMBEAU_EPILOGUE_FUSION",)
    ),
    "parallel_branches": Knob(
        True, "run small launches that don't depend on one another side by side", ("FLAMBEAU_PARALLEL_BRANCHES",)
    ),
    "tables": Knob(
        True,
        "run loops that differ in their buffers and sizes only (rows of list operators) by one kernel, as one launch",
        ("FLAMBEAU_TABLES",),
    ),
    "reduction_piece": Knob(
        4096, "elements of a piece of a reduction that is done in two steps", in_key=True, type=int
    ),
    "streamed_bytes": Knob(
        32 << 20,
        "size from which a result is stored past the cache: its readers won't find it there",
        in_key=True,
        type=int,
    ),
    "own_bytes": Knob(
        1 << 18,
        "size from which an intermediate result lives by itself instead of in the graph's arena",
        ("FLAMBEAU_OWN_BYTES",),
        in_key=True,
        type=int,
    ),
    "planes_bytes": Knob(
        600_000,
        "size of a convolution's result from which its planes go through the kernels behind it as they are finished: a smaller "
        "one is in the cache anyway",
        in_key=True,
        type=int,
    ),
    "native_loop_tape_bytes": Knob(
        0,
        "memory for the tape of a native loop's derivative, 0 for half of the machine's: beyond it the loop runs again from checkpoints",
        ("FLAMBEAU_NATIVE_LOOP_TAPE_BYTES",),
        type=int,
    ),
    "force_disable_caches": Knob(
        False, "neither read nor write the cache on disk", ("TORCHINDUCTOR_FORCE_DISABLE_CACHES",)
    ),
    "fallback_random": Knob(
        False, "draw random numbers as eager does; compiled code always does", ("TORCHINDUCTOR_FALLBACK_RANDOM",)
    ),
    "freezing": Knob(
        False,
        "parameters and buffers of modules count as constant where no gradient is asked for: what follows from them is computed once and batch norm "
        "folded. Writes by operators, optimizers, load_state_dict, .data or storages and new tensors are noticed at the next call; writes through "
        "memory that is shared behind the tensor's back are not (NumPy arrays over it, other processes, pointers)",
        ("TORCHINDUCTOR_FREEZING",),
    ),
    "freezing_discard_parameters": Knob(False, "accepted for compatibility: modules keep their parameters"),
    "fx_graph_cache": Knob(True, "accepted for compatibility: kernels are cached, not graphs"),
    # What tunes Triton's and C++'s kernels: programs set these for speed.
    "coordinate_descent_tuning": Knob(False, "accepted for compatibility, without effect"),
    "coordinate_descent_check_all_directions": Knob(False, "accepted for compatibility, without effect"),
    "force_fuse_int_mm_with_mul": Knob(False, "accepted for compatibility, without effect"),
    "shape_padding": Knob(True, "accepted for compatibility: products need no padding"),
    "conv_1x1_as_mm": Knob(False, "accepted for compatibility, without effect"),
    "aggressive_fusion": Knob(False, "accepted for compatibility, without effect"),
    "max_autotune": Knob(
        False,
        "choose how products and convolutions are made by measuring, at compile time (inductor/tuning/products.py)",
        ("TORCHINDUCTOR_MAX_AUTOTUNE",),
    ),
    "autotune_seconds": Knob(2.0, "seconds of measuring for a graph, at most; what was measured is kept", type=float),
    "compile_threads": Knob(
        0,
        "threads that generate code while Python goes on (0: one a core; 1: none, the caller does)",
        ("TORCHINDUCTOR_COMPILE_THREADS",),
        type=int,
    ),
    "cpp.threads": Knob(-1, "accepted for compatibility: see torch.set_num_threads"),
    "cpp.inject_relu_bug_TESTING_ONLY": Knob(
        None, "break maximum(x, 0): compile_error or accuracy (to test the minifier)"
    ),
    "triton.cudagraphs": Knob(False, "record a graph's launches on a CUDA device, and replay them as a whole"),
    "triton.unique_kernel_names": Knob(True, "accepted for compatibility, without effect on CPU"),
    "trace.enabled": Knob(False, "write a debug directory for each compiled graph", _DEBUG),
    "trace.debug_dir": Knob(None, "where, instead of torch._dynamo.config.debug_dir_root"),
    "trace.debug_log": Knob(True, "times of the passes, counts, eager kernels"),
    "trace.info_log": Knob(False, "accepted for compatibility, nothing more is written"),
    "trace.fx_graph": Knob(True, "the graph, and a script that compiles it again"),
    "trace.fx_graph_transformed": Knob(True, "the flat program after opening composites"),
    "trace.ir_pre_fusion": Knob(True, "the loop IR before fusion"),
    "trace.ir_post_fusion": Knob(True, "the loop IR by kernel"),
    "trace.output_code": Knob(True, "launches and LLVM assembly"),
    "trace.graph_diagram": Knob(
        False, "a drawing of the launches and the buffers between them (SVG)", ("INDUCTOR_POST_FUSION_SVG",)
    ),
    "trace.compile_profile": Knob(False, "a profile of the passes (for pstats), from compiling once more"),
}


def _accepted() -> dict[str, Any]:
    return importlib.import_module("flambeau.inductor.accepted").accepted()


# Lists of settings, for PyTorch's own caches and reports.
NOT_BUILT = frozenset(["_cache_config_ignore_prefix", "_save_config_ignore"])
config = Config("torch._inductor.config", KNOBS, not_built=NOT_BUILT, accepted=_accepted)
