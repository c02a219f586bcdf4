"""The BLAS that NumPy already holds in the process, handed to the runtime: matrix products and convolutions are made with it.

NumPy's wheels bundle OpenBLAS under prefixed names; where it isn't found, SciPy's exported function pointers serve. One BLAS in the process
means one set of BLAS threads. Where Intel's MKL is installed beside (``pip install 'flambeau[mkl]'``), it makes the products that go to a
library, and the rest stays with OpenBLAS.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import os
import sys

import numpy

from .. import _runtime
from . import kernels
from .dtypes import bfloat16
from .expr import at_least
from .foreign import address_of
from .kernels import Conv, Way, element
from .memory_format import is_last
from .sizes import sizes

__all__ = [
    "added_bf16",
    "attention",
    "bf16_products",
    "convolve",
    "function",
    "gemm_address",
    "matmul",
    "matmul_bf16",
    "native_matmul",
    "product_library",
    "scan",
    "share_threads",
    "takes_bf16",
    "wide",
]

_BF16 = bfloat16.np


def matmul(a, b):
    """The product of two matrices, or of two stacks of as many (ndarrays), split over the thread pool; None for what the runtime has no way to:
    other dtypes than float32 and float64 (and bfloat16 where the CPU multiplies such), strides that BLAS doesn't read."""
    share_threads()
    return matmul_bf16(a, b) if a.dtype == _BF16 else _runtime.matmul(a, b)


def matmul_bf16(a, b):
    """:func:`matmul` of bfloat16, summed in float32 and rounded once: csrc/kernels/product_bf16.c."""
    if (
        not bf16_products()
        or b.dtype != _BF16
        or a.ndim not in (2, 3)
        or a.ndim != b.ndim
        or a.shape[-1] != b.shape[-2]
    ):
        return None
    if a.shape[:-2] != b.shape[:-2] or not a.size or not b.size or not all(_lies_by_lines(x) for x in (a, b)):
        return None
    out = numpy.empty((*a.shape[:-1], b.shape[-1]), _BF16)
    kernels.product_bf16([a, b], [out], alpha=1.0, beta=0.0)
    return out


BF16_WORTH = 32768  # multiply-adds from which the CPU's own product of bfloat16 beats one in float32 that fuses with its neighbours
_UNKNOWN = 32  # what a size that only the call knows counts for


def takes_bf16(a, b, *more) -> bool:
    """Whether csrc/kernels/product_bf16.c makes the product of two matrices, or of two stacks of them, to which others may be added: all
    bfloat16, none empty, large enough, sums of more than one term, and a CPU that multiplies such."""
    if any(x.dtype is not bfloat16 for x in (a, b, *more)) or not bf16_products() or a.ndim not in (2, 3):
        return False
    loops = sizes((*a.shape, b.shape[-1]))
    work = math.prod(n if type(n) is int else _UNKNOWN for n in loops)
    return a.ndim == b.ndim and loops[-2] != 1 and all(at_least(n, 1) for n in loops) and work >= BF16_WORTH


def added_bf16(addend, a, b, beta, alpha):
    """``alpha * a @ b + beta * addend`` of bfloat16, rounded once; None for what :func:`matmul_bf16` doesn't multiply, and for an addend that
    doesn't spread to the product."""
    shape = (*a.shape[:-1], b.shape[-1])
    lead = len(shape) - addend.ndim
    fits = (
        bf16_products()
        and a.size
        and b.size
        and a.shape[:-2] == b.shape[:-2]
        and a.shape[-1] == b.shape[-2]
        and lead >= 0
        and all(n in (1, m) for n, m in zip(addend.shape, shape[lead:]))
    )
    if not fits or not addend.flags.aligned:
        return None
    a, b = (x if _lies_by_lines(x) else numpy.ascontiguousarray(x) for x in (a, b))
    out = numpy.empty(shape, _BF16)
    kernels.product_bf16([a, b, numpy.broadcast_to(addend, shape)], [out], alpha=alpha, beta=beta)
    return out


def _lies_by_lines(x) -> bool:
    """Whether the rows or the columns of matrices lie side by side."""
    return x.flags.aligned and any(x.strides[d] == x.itemsize or x.shape[d] == 1 for d in (-1, -2))


def bf16_products() -> int:
    """How products of bfloat16 are made: 0 in float32, 1 by AVX512_BF16, 2 by AMX."""
    return _runtime.bf16_products()


def native_matmul():
    """The function behind :func:`matmul`, ready to be called."""
    share_threads()
    return _runtime.matmul


def convolve(direction: Conv, a, b, bias, sizes, stride, padding, dilation, groups, last=False):
    """A convolution of float32 or float64 ndarrays in C or channels-last order (the result: by ``last``), or an adjoint, over the thread pool.
    FORWARD: output (N, O, *S') of input (N, C, *S) and weight (O, C / groups, *K); INPUT: cotangent of the input, whose spatial shape is ``sizes``,
    from that of the output and the weight; WEIGHT: cotangent of the weight, whose spatial shape is ``sizes``, from that of the output and the input.
    None without a BLAS library; ValueError for shapes that don't fit."""
    n, kind = a.ndim - 2, a.dtype
    fits = (
        direction in tuple(Conv)
        and 1 <= n <= 3
        and b.ndim == n + 2
        and kind.char in "fd"
        and b.dtype == kind
        and groups >= 1
    )
    if not fits or not (_in_image_order(a) and _in_image_order(b)):
        raise ValueError(
            "convolve: float32 or float64 arrays of 3 to 5 dimensions in C or channels-last order are expected"
        )
    if {len(stride), len(padding), len(dilation), len(sizes) or n} != {n}:
        raise ValueError(f"convolve: {n} integers are expected")
    if bias is not None and not (
        bias.dtype == kind and bias.ndim == 1 and bias.flags.c_contiguous and bias.flags.aligned
    ):
        raise ValueError("convolve: the bias is a vector of the operands' dtype")
    if not gemm_address("f64" if kind.char == "d" else "f32"):
        return None
    shape = _convolved(direction, a.shape, b.shape, sizes, stride, padding, dilation, groups)
    if bias is not None and len(bias) != shape[1]:
        raise ValueError("convolve: shapes don't fit")
    if last and n > 1:
        out = numpy.empty((shape[0], *shape[2:], shape[1]), kind).transpose(0, n + 1, *range(1, n + 1))
    else:
        out = numpy.empty(shape, kind)
    how = (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1))
    numbers = {name: (*[fill] * (3 - n), *given) for name, given, fill in how}
    numbers |= {"direction": direction, "f64": kind.char == "d", "groups": groups, "way": Way.USUAL}
    kernels.convolution([a, b, bias], [out], **numbers)
    return out


def _in_image_order(a) -> bool:
    return a.flags.aligned and (a.flags.c_contiguous or is_last(a.shape, [s // a.itemsize for s in a.strides]))


def _convolved(direction, a, b, sizes, stride, padding, dilation, groups) -> tuple[int, ...]:
    """The shape of what :func:`convolve` makes of operands of shapes ``a`` and ``b``. ValueError where these don't fit."""
    if direction == Conv.FORWARD:
        x, w = a, b
    elif direction == Conv.INPUT:
        x, w = (a[0], b[1] * groups, *sizes), b
    else:
        x, w = b, (a[1], b[1] // groups, *sizes)
    positions = []
    for p, k, s, pad, d in zip(x[2:], w[2:], stride, padding, dilation, strict=True):
        reach, room = d * (k - 1) + 1, p + 2 * pad
        there = min(p, k, s, d) > 0 <= pad and reach <= room < 2**63
        positions.append((room - reach) // s + 1 if there else 0)
    y = (x[0], w[0], *positions) if direction == Conv.FORWARD else a
    # A cotangent may have fewer positions than there are windows: the last ones count as zero.
    fits = x[0] == y[0] and x[1] == w[1] * groups and y[1] == w[0] and w[0] % groups == 0
    if not fits or not all((*x, *w, *y)) or any(m > p for m, p in zip(y[2:], positions)):
        raise ValueError("convolve: shapes don't fit")
    return {Conv.FORWARD: y, Conv.INPUT: x, Conv.WEIGHT: w}[direction]


def attention(q, k, v, mask, causal: bool, scale: float, *backward, kept=None, boost: float = 1.0, of_mask=None):
    """softmax(scale q k^T + mask) v of float32 or float64 ndarrays q (B, H, T, E), k and v (B, H / group, S, E), none empty, rows in C order, and
    the logarithm of each row's sum (B, H, T), -inf where a row sees nothing (its output is 0). ``mask``: None or (B, H, T, S), any strides,
    truth values too; ``kept``: None or bits in C order, uint8 (B, H, T, S / 8 rounded up), the weights that dropout leaves, times ``boost``. With
    ``backward``, the cotangent of the output, the output and the logarithms: the cotangents of q, k and v, and of the mask where its own shape is
    given as ``of_mask``. None without a BLAS library; ValueError for shapes that don't fit."""
    (b, h, t, e), (_, held, s, _), kind = q.shape, k.shape, q.dtype
    cotangent, out, sums = backward or (None, None, None)
    wanted = [
        ("query", q, q.shape),
        ("key", k, (b, held, s, e)),
        ("value", v, k.shape),
        ("the mask", mask, (b, h, t, s)),
    ]
    wanted += [
        ("the cotangent", cotangent, q.shape),
        ("the output", out, q.shape),
        ("the logarithmic sums", sums, (b, h, t)),
    ]
    for name, x, shape in wanted:
        fits = x is None or x.dtype == kind or (x is mask and x.dtype == bool)
        if x is not None and (x.shape != shape or not fits or not x.flags.aligned):
            raise ValueError(f"attention: {name} has not the shape or dtype that is expected, {shape} and {kind}")
    bits = (b, h, t, (s + 7) // 8)
    if kept is not None and (kept.shape != bits or kept.dtype != numpy.uint8 or not kept.flags.c_contiguous):
        raise ValueError(f"attention: what is kept are bits of the shape {bits} in C order")
    if kind.char not in "fd" or not q.size or not k.size or h % held:
        raise ValueError("attention: empty, heads that don't divide, or neither float32 nor float64")
    for x in (q, k, v, cotangent, out):
        if x is not None and not (
            (x.strides[3] == kind.itemsize or e == 1) and (x.strides[2] >= e * kind.itemsize or x.shape[2] == 1)
        ):
            raise ValueError("attention: rows in C order are expected")
    if not gemm_address("f64" if kind.char == "d" else "f32"):
        return None

    def fresh(x):
        return numpy.empty((x.shape[0], x.shape[2], x.shape[1], e), kind).transpose(0, 2, 1, 3)

    if backward:
        made = [*map(fresh, (q, k, v)), *(() if of_mask is None else (numpy.empty(of_mask, kind),))]
    else:
        made = [fresh(q), numpy.empty((b, t, h), kind).transpose(0, 2, 1)]
    kernel = kernels.attention_backward if backward else kernels.attention
    numbers = {"causal": causal, "scale": scale, "boost": boost, "f64": kind.char == "d"}
    kernel([q, k, v, mask, kept, *backward], made, **numbers, truths=mask is not None and mask.dtype == bool)
    return tuple(made)


def scan(a, dim: int, product: bool):
    """Running sums or products of an ndarray (float32, float64 or int64, not empty) along a dimension, a fresh one in C order; float32 is carried
    on in float64."""
    a = numpy.ascontiguousarray(a)
    out = numpy.empty(a.shape, a.dtype)
    kernels.scan([a], [out], dim=dim, product=product, element=element(a.dtype))
    return out


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


@functools.cache
def _mkl():
    """Intel's library, set to one thread for each caller, or None: it isn't installed, doesn't load, or ``FLAMBEAU_BLAS=openblas`` says no.
    ValueError for another name there."""
    wanted = os.environ.get("FLAMBEAU_BLAS", "mkl")
    if wanted not in ("mkl", "openblas"):
        raise ValueError(f"FLAMBEAU_BLAS is {wanted!r}: expected mkl or openblas")
    if wanted == "openblas":
        return None
    for name in ("libmkl_rt.so.3", "libmkl_rt.so.2", "mkl_rt.2.dll"):
        file = os.path.join(sys.prefix, *(("Library", "bin") if name.endswith("dll") else ("lib",)), name)
        if not os.path.exists(file):
            continue
        try:
            library = ctypes.CDLL(file)
        except OSError:
            continue
        library.MKL_Set_Threading_Layer(_MKL_SEQUENTIAL)  # the pieces of a product are on our threads
        return library
    return None


_MKL_SEQUENTIAL = 1


def product_library() -> str:
    """File name of the library whose products are called where our own aren't the better ones; "scipy": what SciPy was built with."""
    mkl, found = _mkl(), _library()
    return os.path.basename(mkl._name if mkl is not None else found[0]._name if found is not None else "scipy")


def gemm_address(t: str) -> int:
    """Address of the function that makes products of "f32" or "f64", called like Fortran's sgemm and dgemm: our own where it is the better one
    (csrc/kernels/product.c), else the library's. Integers are passed by reference as 64-bit little-endian ones, which the library's 32-bit interface
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
        return address_of(getattr(library, form.format(name)))
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
                threads = [address_of(f) for f in fs]
                break
    mkl = _mkl()
    if mkl is not None:
        gemm = [address_of(getattr(mkl, name)) for name in ("sgemm_", "dgemm_")]
    else:
        gemm = list(map(function, ("sgemm", "dgemm")))
    _runtime.use_blas(*gemm, *threads)
