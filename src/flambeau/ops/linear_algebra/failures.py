"""What a factorisation that failed raises: eagerly, and in compiled graphs."""

from __future__ import annotations

import numpy as np

from ...base.errors import LinAlgError
from ...core.operator import namespace
from .checks import check_info, extern, not_definite, singular, unsolvable

aten = namespace("aten")


@extern(
    "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
    meta=lambda *a: (),
    variants="",
    tags=("has_side_effects",),
)
def _linalg_check_errors(info, api_name, is_matrix):
    if not info.any():
        return ()
    if api_name == "torch.linalg.solve":
        where = "" if is_matrix else f"(Batch element {int(np.flatnonzero(info)[0])}): "
        raise LinAlgError(f"{api_name}: {where}{unsolvable(0)}")
    check_info(api_name, info.reshape(()) if is_matrix else info, _MEANS.get(api_name, singular))
    return ()


@_linalg_check_errors.override("lower")
def _lower_check_errors(lowering, val, info, api_name, is_matrix):
    where = "" if is_matrix else "(Batch element {size}): "
    means = (unsolvable if api_name == "torch.linalg.solve" else _MEANS.get(api_name, singular))("{value}")
    lowering.refuse(info, f"{api_name}: {where}{means}")
    return ()


_MEANS = {
    "linalg.cholesky": not_definite,
    "cholesky": not_definite,
    "linalg.ldl_factor": lambda c: (
        f"The factorization has an exact zero at D[{c},{c}], can't be used to solve systems."
    ),
    "linalg.lu_factor": lambda c: (
        f"U[{c},{c}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, "
        "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    ),
}

_linalg_check_errors.override(
    "batch", lambda call, info, api_name, is_matrix: aten._linalg_check_errors.default(info, api_name, is_matrix=False)
)


def checked(info, name, t):
    """LinAlgError, in a compiled graph too, where ``info`` says that the factorisation of ``t`` failed."""
    aten._linalg_check_errors.default(info, name, is_matrix=t.ndim == 2)
