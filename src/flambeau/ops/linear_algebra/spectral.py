"""What eigenvalues and singular values share: routines that don't converge, and parts of derivatives."""

from __future__ import annotations

import numpy as np

from ...base import dtypes, lapack
from ...base.errors import LinAlgError
from ...core.device_memory import elements
from ...core.operator import namespace

aten = namespace("aten")


def column(x):
    return aten.unsqueeze.default(x, -1)


def row(x):
    return aten.unsqueeze.default(x, -2)


def conj(x):
    return aten.conj_physical.default(x) if x.dtype.is_complex else x


def diagonal(x):
    return aten.diagonal.default(x, 0, -2, -1)


def gaps(values, fill):
    """values_j - values_i, ``fill`` on the diagonal."""
    e = aten.sub.Tensor(row(values), column(values))
    eye = aten.eye.default(values.shape[-1], dtype=dtypes.bool_, device=values.device)
    return aten.masked_fill.Scalar(e, eye, fill)


def converged(name, info):
    """LinAlgError for the first matrix that the routine gave up."""
    bad = np.flatnonzero(info)
    if bad.size:
        code = int(info.reshape(-1)[bad[0]])
        where = f"(Batch element {int(bad[0])}): " if info.ndim else ""
        why = (
            "contained non-finite values."
            if code == lapack.NOT_FINITE
            else f"is ill-conditioned or has too many repeated {'singular' if 'svd' in name else 'eigen'}values (error code: {code})."
        )
        raise LinAlgError(f"{name}: {where}The algorithm failed to converge because the input matrix {why}")


def refuse_unconverged(lowering, name, info) -> None:
    """``converged`` in a compiled graph."""
    where = "(Batch element {size}): " if info.ndim else ""
    kind = "singular" if "svd" in name else "eigen"
    words = f"{name}: {where}The algorithm failed to converge because the input matrix "
    lowering.refuse(
        info,
        f"{words}is ill-conditioned or has too many repeated {kind}values (error code: {{value}}).",
        f"{words}contained non-finite values.",
    )


def over(x, gap):
    """x / gap, and 0 where both are 0: nobody asked for these vectors, and values that are repeated, or zero, have derivatives of their own."""
    nobody = aten.logical_and.default(aten.eq.Scalar(gap, 0), aten.eq.Scalar(x, 0))
    return aten.div.Tensor(x, aten.where.ScalarSelf(nobody, 1, gap))


def refuse_phases(diagonal, name, vectors="eigenvectors", what="quantity, so it is ill-defined") -> None:
    """RuntimeError when a loss depends on the phase of complex vectors, which nothing determines. ``diagonal``: of V^H gV; a trace has no elements to ask."""
    transposed = aten.imag.default(diagonal) if diagonal.dtype.is_complex else None
    values = None if transposed is None else elements(transposed)
    if values is not None and (np.abs(values) > 1e-2).any():
        raise RuntimeError(
            f"{name}: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function "
            f"depends on this {what}."
        )
