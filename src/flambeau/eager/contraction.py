"""Contraction kernels: BLAS through np.matmul where the letters are a matrix product, np.einsum otherwise."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..core.contractions import check
from ..core.operator import OpOverload
from .backend import rule

_MATMUL = {"mk,kn->mn", "bmk,bkn->bmn", "mk,k->m", "k,k->"}


@rule("contraction")
def contraction(op: OpOverload):
    letters = op.definition.letters
    from_array = _C.from_array

    def run(*tensors):
        check(op, tensors)
        arrays = [t._array for t in tensors]
        dtype = arrays[0].dtype
        if dtype.itemsize < 4 and dtype.kind not in "biu":
            arrays = [a.astype(np.float32) for a in arrays]
        out = np.matmul(*arrays) if letters in _MATMUL else np.einsum(letters, *arrays, optimize=True)
        out = np.asarray(out)
        return from_array(out if out.dtype == dtype else out.astype(dtype))

    return run
