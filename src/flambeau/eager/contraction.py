"""Contraction kernels: a matrix product where the letters are one, np.einsum otherwise.

Products of float32 and float64 matrices, unless both are small, are split over the runtime's one thread pool; all others go to np.matmul.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base import blas
from ..base.dtypes import saturated
from ..core.contractions import check
from ..core.operator import OpOverload
from .backend import PRODUCTS, rule

_MATMUL = {*PRODUCTS, "mk,k->m", "k,k->"}

SMALL = 4096  # elements below which np.matmul has less to do before it starts


@rule("contraction")
def contraction(op: OpOverload):
    letters = op.definition.letters
    from_array = _C.computed

    def run(*tensors):
        check(op, tensors)
        arrays = [t._array for t in tensors]
        dtype = arrays[0].dtype
        large = letters in PRODUCTS and max(arrays[0].size, arrays[1].size) >= SMALL
        out = blas.matmul(*arrays) if large else None
        if out is None and dtype.itemsize < 4 and dtype.kind not in "biu":
            arrays = [a.astype(np.float32) for a in arrays]
            out = blas.matmul(*arrays) if large else None
        if out is None:
            out = np.matmul(*arrays) if letters in _MATMUL else np.einsum(letters, *arrays, optimize=True)
            out = np.asarray(out)
        return from_array(out if out.dtype == dtype else saturated(out, dtype).astype(dtype))

    return run
