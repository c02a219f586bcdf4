"""The native core: five extension modules, one for each place where microseconds are counted."""

import glob
import os
import sysconfig
from multiprocessing.pool import ThreadPool

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

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


class SideBySide(build_ext):
    """Compiles the files of all modules side by side, as many as there are cores: the kernels take longer than everything else together."""

    def build_extensions(self):
        compile_files = self.compiler.compile
        with ThreadPool(os.cpu_count()) as pool:

            def compile_side_by_side(sources, **options):
                # The largest first: none is left to run alone at the end.
                order = sorted(sources, key=os.path.getsize, reverse=True)
                return sum(pool.map(lambda path: compile_files([path], **options), order, chunksize=1), [])

            self.compiler.compile = compile_side_by_side
            super().build_extensions()


setup(
    cmdclass={"build_ext": SideBySide},
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
    # So many modules wait for their files at once.
    options={"build_ext": {"parallel": os.cpu_count()}},
)
