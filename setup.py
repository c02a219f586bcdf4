"""The native core: three extension modules, one for each place where microseconds are counted."""

import glob

import numpy
from setuptools import Extension, setup

COMMON = dict(
    include_dirs=["csrc", numpy.get_include()],
    define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
    extra_compile_args=["-O2", "-std=c11", "-fvisibility=hidden", "-Wall", "-Wno-unused-function", "-fno-math-errno"],
    depends=glob.glob("csrc/*.h"),
)

CORE = (
    "state",
    "tensor",
    "operators",
    "allocator",
    "guarded",
    "binder",
    "loops",
    "recipe",
    "recipe_index",
    "recipe_template",
    "interpose",
    "autocast",
    "dispatch",
    "function",
    "subscript",
    "fake",
    "layout",
    "program",
    "opened",
    "kernel",
    "foreach",
    "module",
)
AUTOGRAD = ("node", "saved", "record", "apply", "program", "engine")
FRAME = (
    *("frame_eval", "frame_cache", "frame_call", "guards", "guards_values", "guards_sizes", "guards_build"),
    *(f"interpreter_{v}" for v in (311, 312, 313)),
)
RUNTIME = (
    "thread_pool",
    "gemm",
    "gemv",
    "product",
    "product_bf16",
    "prepack",
    "rows",
    "conv",
    "conv_shift",
    "conv_depthwise",
    "conv_last",
    "planes",
    "winograd",
    "attention",
    "scan",
    "order",
    "extreme",
    "random",
    "lapack",
    "lapack_blocks",
    "triangular",
    "fft",
    "fft_plan",
    "select",
    "sets",
    "special",
    "sparse",
    "recurrent",
    "pool",
    "weight_only",
    "natives",
    "graph",
    "lives",
    "object",
    "emit",
    "loop_call",
    "launch",
)

setup(
    ext_modules=[
        # Tensor object, storage, thread-local dispatch state, operator and function call path.
        Extension(
            "flambeau._C", [f"csrc/{name}.c" for name in (*CORE, *(f"autograd_{part}" for part in AUTOGRAD))], **COMMON
        ),
        # PEP 523 frame evaluator, guard tree, the callable that compile() returns.
        Extension("flambeau._frame", [f"csrc/{name}.c" for name in FRAME], **COMMON),
        # Thread pool and the launch of a compiled graph.
        Extension(
            "flambeau._runtime",
            [f"csrc/{name}.c" for name in RUNTIME],
            libraries=["pthread", "dl"],
            **COMMON,
        ),
    ]
)
