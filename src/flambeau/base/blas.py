"""The BLAS that NumPy already holds in the process, handed to the runtime: matrix products and convolutions are made with it.

NumPy's wheels bundle OpenBLAS under prefixed names; where it isn't found, SciPy's exported function pointers serve. One BLAS in the process
means one set of BLAS threads.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os

import numpy

from .. import _runtime

__all__ = [
    "attention",
    "convolve",
    "function",
    "gemm_address",
    "matmul",
    "native_matmul",
    "scan",
    "share_threads",
    "wide",
]


def matmul(a, b):
    """The product of two matrices, or of two stacks of as many (ndarrays), split over the thread pool; None for what the runtime has no way to:
    other dtypes than float32 and float64, strides that BLAS doesn't read."""
    share_threads()
    return _runtime.matmul(a, b)


def native_matmul():
    """The function behind :func:`matmul`, ready to be called."""
    share_threads()
    return _runtime.matmul


def convolve(what: int, a, b, bias, sizes, stride, padding, dilation, groups):
    """A convolution of float32 or float64 ndarrays in C order, or an adjoint, over the thread pool. ``what`` 0: output (N, O, *S') of input
    (N, C, *S) and weight (O, C / groups, *K); 1: cotangent of the input, whose spatial shape is ``sizes``, from that of the output and the
    weight; 2: cotangent of the weight, whose spatial shape is ``sizes``, from that of the output and the input. ValueError for shapes that
    don't fit."""
    share_threads()
    return _runtime.convolve(what, a, b, bias, sizes, stride, padding, dilation, groups)


def attention(q, k, v, mask, causal: bool, scale: float, *backward):
    """softmax(scale q k^T + mask) v of float32 or float64 ndarrays q (B, H, T, E), k and v (B, H / group, S, E), none empty, rows in C order, and
    the logarithm of each row's sum (B, H, T), -inf where a row sees nothing (its output is 0). ``mask``: None or (B, H, T, S), any strides. With
    ``backward``, the cotangent of the output, the output and the logarithms: the cotangents of q, k and v. ValueError for shapes that don't fit."""
    share_threads()
    return _runtime.attention(q, k, v, mask, causal, scale, *backward)


def scan(a, dim: int, product: bool):
    """Running sums or products of an ndarray (float32, float64 or int64, not empty) along a dimension, a fresh one in C order; float32 is carried
    on in float64."""
    a = numpy.ascontiguousarray(a)
    out = numpy.empty(a.shape, a.dtype)
    _runtime.native("scan", (a, out), (dim, product, _SCANNED[a.dtype.char]))
    return out


_SCANNED = {"f": 0, "d": 1, "l": 2, "q": 2}


@functools.cache
def _library():
    """(library, suffix of its Fortran names), or None."""
    folder = os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), "numpy.libs")
    for file in os.listdir(folder) if os.path.isdir(folder) else ():
        if not file.startswith("libscipy_openblas"):
            continue
        try:
            library = ctypes.CDLL(os.path.join(folder, file))
        except OSError:
            continue
        for form in ("scipy_{}_64_", "scipy_{}_"):
            if hasattr(library, form.format("sgemm")):
                return library, form
    return None


def gemm_address(t: str) -> int:
    """Address of the function that makes products of "f32" or "f64", called like Fortran's sgemm and dgemm: our own where it is the better one
    (csrc/product.c), else the library's. Integers are passed by reference as 64-bit little-endian ones, which the library's 32-bit interface
    reads correctly too."""
    share_threads()
    return _runtime.gemm_address(t == "f64")


def wide() -> bool:
    """Whether the library's integers have 64 bits."""
    found = _library()
    return found is not None and "64" in found[1]


def function(name: str, lapack: bool = False) -> int:
    """Address of "sgemm", "dgemv", ...; of "sgetrf", ... with ``lapack``."""
    found = _library()
    if found is not None:
        library, form = found
        return ctypes.cast(getattr(library, form.format(name)), ctypes.c_void_p).value
    pointers = importlib.import_module(f"scipy.linalg.cython_{'lapack' if lapack else 'blas'}")
    capsule = pointers.__pyx_capi__[name]
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
    ctypes.pythonapi.PyCapsule_GetName.argtypes = [ctypes.py_object]
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return ctypes.pythonapi.PyCapsule_GetPointer(capsule, ctypes.pythonapi.PyCapsule_GetName(capsule))


@functools.cache
def share_threads() -> None:
    """Hand the library's products to the runtime, which splits them over its own pool, and set the library to one thread: two pools with
    spinning threads would fight for the cores. ``FLAMBEAU_BLAS_THREADS=keep`` leaves its threads alone."""
    found = _library()
    threads = [0, 0]
    if found is not None and os.environ.get("FLAMBEAU_BLAS_THREADS") != "keep":
        for suffix in ("64_", ""):
            fs = [getattr(found[0], f"scipy_openblas_{verb}_num_threads{suffix}", None) for verb in ("get", "set")]
            if None not in fs:
                threads = [ctypes.cast(f, ctypes.c_void_p).value for f in fs]
                break
    _runtime.use_blas(*map(function, ("sgemm", "dgemm", "sgemv", "dgemv")), *threads)
