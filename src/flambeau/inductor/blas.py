"""Addresses of the matrix products of the BLAS that NumPy already holds in the process.

NumPy's wheels bundle OpenBLAS under prefixed names; where it isn't found, SciPy's exported function pointers serve. One BLAS in the process
means one set of BLAS threads.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os

import numpy

from .. import _runtime

__all__ = ["gemm_address"]


@functools.cache
def _library():
    """(library, suffix of its Fortran names), or None."""
    place = os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), "numpy.libs", "libscipy_openblas*")
    for path in glob.glob(place):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in ("scipy_{}gemm_64_", "scipy_{}gemm_"):
            if hasattr(library, name.format("s")):
                return library, name
    return None


@functools.cache
def gemm_address(t: str) -> int:
    """Address of sgemm or dgemm with Fortran's calling convention. Integers are passed by reference as 64-bit little-endian ones, which
    the 32-bit interface reads correctly too."""
    letter = {"f32": "s", "f64": "d"}[t]
    found = _library()
    if found is not None:
        library, name = found
        _share_threads(library)
        return ctypes.cast(getattr(library, name.format(letter)), ctypes.c_void_p).value
    import scipy.linalg.cython_blas as blas

    capsule = blas.__pyx_capi__[f"{letter}gemm"]
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
    ctypes.pythonapi.PyCapsule_GetName.argtypes = [ctypes.py_object]
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return ctypes.pythonapi.PyCapsule_GetPointer(capsule, ctypes.pythonapi.PyCapsule_GetName(capsule))


def _share_threads(library) -> None:
    """Let launches set BLAS to one thread while they run: they split products over their own pool."""
    for suffix in ("64_", ""):
        get, put = (getattr(library, f"scipy_openblas_{verb}_num_threads{suffix}", None) for verb in ("get", "set"))
        if get is not None and put is not None:
            _runtime.use_blas(*(ctypes.cast(f, ctypes.c_void_p).value for f in (get, put)))
            return
