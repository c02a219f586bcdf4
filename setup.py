"""The native core: five extension modules, one for each place where microseconds are counted."""

import glob
import os
import sysconfig

import numpy
from setuptools import Extension, setup

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise SystemExit(
        "flambeau can't be built for the free-threaded build of CPython: its native state is guarded by the GIL. Use an ordinary build."
    )


# CPython's own flags ask for symbols of the debugger: a fifth of the time that an installation compiles. CFLAGS=-g brings them back.
SYMBOLS = [] if "-g" in os.environ.get("CFLAGS", "").split() else ["-g0"]


def extension(name: str, folders: tuple[str, ...], **options) -> Extension:
    return Extension(
        name,
        sorted(path for folder in folders for path in glob.glob(f"csrc/{folder}/*.c")),
        include_dirs=["csrc", numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
        extra_compile_args=[
            "-O2",
            "-std=c11",
            "-fvisibility=hidden",
            "-Wall",
            "-Wno-unused-function",
            "-fno-math-errno",
            *SYMBOLS,
        ],
        depends=glob.glob("csrc/*/*.h") + glob.glob("csrc/*/*.def"),
        **options,
    )


setup(
    ext_modules=[
        # Tensor object, storage, thread-local dispatch state, operator and function call path; the backward graph.
        extension("flambeau._C", ("core", "autograd")),
        # PEP 523 frame evaluator, guard tree, the callable that compile() returns.
        extension("flambeau._frame", ("frame",)),
        # Thread pool, the launch of a compiled graph, native kernels.
        extension("flambeau._runtime", ("runtime", "kernels"), libraries=["pthread", "dl"]),
        # Collectives over shared memory, the watch over ranks; loaded by flambeau.distributed alone.
        extension("flambeau._exchange", ("distributed",), libraries=["pthread"]),
        # The driver interface of a second device; loaded where there is one.
        extension("flambeau._device", ("device",), libraries=["pthread"]),
    ],
    # The modules are compiled side by side.
    options={"build_ext": {"parallel": os.cpu_count()}},
)
