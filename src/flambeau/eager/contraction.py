"""Contraction kernels: a matrix product where the letters are one, np.einsum otherwise.

Products of float32 and float64 matrices, unless both are small, are split over the runtime's one thread pool; all others go to np.matmul. It sums
products of one term (gradients of weights by one row) without BLAS, in ten times as long: these are multiplied element by element.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base import blas
from ..base.dtypes import saturated
from ..core.contractions import check, keeps_zeros
from ..core.operator import OpOverload
from .backend import PRODUCTS, rule

_MATMUL = {*PRODUCTS, "mk,k->m", "k,k->"}

SMALL = 4096  # elements below which np.matmul has less to do before it starts


def of_one_term(a, b) -> bool:
    """Whether the elements of a product of matrices, or of stacks of them, are single products."""
    return a.shape[-1] == 1 == b.shape[-2]


def _single_products(a, b, dtype):
    """:func:`of_one_term`'s product, for results of a dtype."""
    out = np.multiply(a, b, order="C")
    return out if dtype.kind in "biu" or keeps_zeros(dtype, out.shape) else np.add(out, 0, out=out)


@rule("contraction")
def contraction(op: OpOverload):
    letters = op.definition.letters
    from_array = _C.computed

    def run(*tensors):
        check(op, tensors)
        arrays = [t._array for t in tensors]
        dtype = arrays[0].dtype
        matrices = letters in PRODUCTS
        single = matrices and of_one_term(*arrays)
        large = matrices and not single and max(arrays[0].size, arrays[1].size) >= SMALL
        out = blas.matmul(*arrays) if large else None
        if out is None and dtype.itemsize < 4 and dtype.kind not in "biu":
            arrays = [a.astype(np.float32) for a in arrays]
            out = blas.matmul(*arrays) if large else None
        if out is None and single:
            out = _single_products(*arrays, dtype)
        elif out is None:
            out = np.matmul(*arrays) if letters in _MATMUL else np.einsum(letters, *arrays, optimize=True)
            out = np.asarray(out)
        return from_array(out if out.dtype == dtype else saturated(out, dtype).astype(dtype))

    return run
