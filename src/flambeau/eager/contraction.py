"""Contraction kernels: a matrix product where the letters are one, np.einsum otherwise.

Products of float32 and float64 matrices go to the runtime's own entry (installed from above), which splits them over the one thread pool;
all others to np.matmul.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..core.contractions import check
from ..core.operator import OpOverload
from .backend import accelerated, rule

_PRODUCT = {"mk,kn->mn", "bmk,bkn->bmn"}
_MATMUL = {*_PRODUCT, "mk,k->m", "k,k->"}

product = None


def set_product(fn) -> None:
    """``fn(a, b)`` multiplies two matrices or two stacks of as many (ndarrays), or answers None for those it has no way to."""
    global product
    product = fn


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
        out = product(*arrays) if letters in _PRODUCT and product is not None else None
        if out is None:
            out = np.matmul(*arrays) if letters in _MATMUL else np.einsum(letters, *arrays, optimize=True)
            out = np.asarray(out)
        return from_array(out if out.dtype == dtype else out.astype(dtype))

    return run if letters in _PRODUCT else accelerated(run, op)
