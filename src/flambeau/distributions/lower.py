"""Lower triangles as vectors, row by row."""

from __future__ import annotations

from ..core.bindings import function

__all__ = ["tril_matrix_to_vec", "vec_to_tril_matrix"]

_indices = function("tril_indices")


def vec_to_tril_matrix(vec, diag: int = 0):
    """The matrix whose lower triangle, up to diagonal ``diag``, holds the vectors (..., N)."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > 1e-6:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    out = vec.new_zeros((*vec.shape[:-1], n, n))
    rows, columns = _indices(n, n, diag)
    out[..., rows, columns] = vec
    return out


def tril_matrix_to_vec(mat, diag: int = 0):
    """The lower triangle, up to diagonal ``diag``, of matrices (..., D, D) as vectors."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = _indices(n, n, diag)
    return mat[..., rows, columns]
