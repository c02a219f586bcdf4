"""Written by tools/stubs.py."""

# ruff: noqa
# mypy: ignore-errors
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false, reportOverlappingOverload=false
# pyright: reportPropertyTypeMismatch=false, reportInvalidTypeVarUse=false

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from flambeau.base.device import Device as _Device
from flambeau.base.dtypes import DType as _DType
from flambeau.base.memory_format import MemoryFormat as _MemoryFormat
from flambeau.base.shapes import Size as _Size
from flambeau.core.generator import Generator as _Generator
from flambeau.core.tensor import Tensor as Tensor
from flambeau import return_types as _returns

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_str: TypeAlias = builtins.str
_Number: TypeAlias = builtins.int | builtins.float | builtins.complex
_Tensor: TypeAlias = Tensor

def cholesky(input: _Tensor, *, upper: _bool = False, out: _Tensor | None = None) -> _Tensor: ...
def cholesky_ex(
    input: _Tensor, *, upper: _bool = False, check_errors: _bool = False, out: Sequence[_Tensor] | None = None
) -> _returns.linalg_cholesky_ex: ...
@overload
def cond(input: _Tensor, p: _Number | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def cond(input: _Tensor, p: _str, *, out: _Tensor | None = None) -> _Tensor: ...
def cross(input: _Tensor, other: _Tensor, *, dim: _int = -1, out: _Tensor | None = None) -> _Tensor: ...
def det(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def diagonal(A: _Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> _Tensor: ...
def eig(input: _Tensor, *, out: Sequence[_Tensor] | None = None) -> _returns.linalg_eig: ...
def eigh(input: _Tensor, UPLO: _str = "L", *, out: Sequence[_Tensor] | None = None) -> _returns.linalg_eigh: ...
def eigvals(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def eigvalsh(input: _Tensor, UPLO: _str = "L", *, out: _Tensor | None = None) -> _Tensor: ...
def householder_product(input: _Tensor, tau: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def inv(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def inv_ex(
    A: _Tensor, *, check_errors: _bool = False, out: Sequence[_Tensor] | None = None
) -> _returns.linalg_inv_ex: ...
def ldl_factor(
    input: _Tensor, *, hermitian: _bool = False, out: Sequence[_Tensor] | None = None
) -> _returns.linalg_ldl_factor: ...
def ldl_factor_ex(
    input: _Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: Sequence[_Tensor] | None = None
) -> _returns.linalg_ldl_factor_ex: ...
def ldl_solve(
    LD: _Tensor, pivots: _Tensor, B: _Tensor, *, hermitian: _bool = False, out: _Tensor | None = None
) -> _Tensor: ...
def lstsq(
    input: _Tensor,
    b: _Tensor,
    rcond: _float | None = None,
    *,
    driver: _str | None = None,
    out: Sequence[_Tensor] | None = None,
) -> _returns.linalg_lstsq: ...
def lu(A: _Tensor, *, pivot: _bool = True, out: Sequence[_Tensor] | None = None) -> _returns.linalg_lu: ...
def lu_factor(
    A: _Tensor, *, pivot: _bool = True, out: Sequence[_Tensor] | None = None
) -> _returns.linalg_lu_factor: ...
def lu_factor_ex(
    A: _Tensor, *, pivot: _bool = True, check_errors: _bool = False, out: Sequence[_Tensor] | None = None
) -> _returns.linalg_lu_factor_ex: ...
def lu_solve(
    LU: _Tensor, pivots: _Tensor, B: _Tensor, *, left: _bool = True, adjoint: _bool = False, out: _Tensor | None = None
) -> _Tensor: ...
def matmul(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def matrix_exp(input: _Tensor) -> _Tensor: ...
@overload
def matrix_norm(
    input: _Tensor,
    ord: _Number,
    dim: Sequence[_int] = ...,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def matrix_norm(
    input: _Tensor,
    ord: _str = "fro",
    dim: Sequence[_int] = ...,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def matrix_power(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def matrix_rank(
    input: _Tensor,
    *,
    atol: _Tensor | None = None,
    rtol: _Tensor | None = None,
    hermitian: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def matrix_rank(
    input: _Tensor,
    *,
    atol: _float | None = None,
    rtol: _float | None = None,
    hermitian: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def matrix_rank(input: _Tensor, tol: _float, hermitian: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def matrix_rank(input: _Tensor, tol: _Tensor, hermitian: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
def multi_dot(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def norm(
    input: _Tensor,
    ord: _Number | None = None,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def norm(
    input: _Tensor,
    ord: _str,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def pinv(
    input: _Tensor,
    *,
    atol: _Tensor | None = None,
    rtol: _Tensor | None = None,
    hermitian: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def pinv(
    input: _Tensor,
    *,
    atol: _float | None = None,
    rtol: _float | None = None,
    hermitian: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def pinv(input: _Tensor, rcond: _float, hermitian: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def pinv(input: _Tensor, rcond: _Tensor, hermitian: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
def qr(A: _Tensor, mode: _str = "reduced", *, out: Sequence[_Tensor] | None = None) -> _returns.linalg_qr: ...
def slogdet(A: _Tensor, *, out: Sequence[_Tensor] | None = None) -> _returns.linalg_slogdet: ...
def solve(A: _Tensor, B: _Tensor, *, left: _bool = True, out: _Tensor | None = None) -> _Tensor: ...
def solve_ex(
    A: _Tensor, B: _Tensor, *, left: _bool = True, check_errors: _bool = False, out: Sequence[_Tensor] | None = None
) -> _returns.linalg_solve_ex: ...
def solve_triangular(
    input: _Tensor,
    B: _Tensor,
    *,
    upper: _bool,
    left: _bool = True,
    unitriangular: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def svd(
    A: _Tensor, full_matrices: _bool = True, *, driver: _str | None = None, out: Sequence[_Tensor] | None = None
) -> _returns.linalg_svd: ...
def svdvals(A: _Tensor, *, driver: _str | None = None, out: _Tensor | None = None) -> _Tensor: ...
def tensorinv(input: _Tensor, ind: _int = 2, *, out: _Tensor | None = None) -> _Tensor: ...
def tensorsolve(
    input: _Tensor, other: _Tensor, *dims: _int | Sequence[_int], out: _Tensor | None = None
) -> _Tensor: ...
def vander(x: _Tensor, *, N: _int | None = None, out: _Tensor | None = None) -> _Tensor: ...
def vecdot(x: _Tensor, y: _Tensor, *, dim: _int = -1, out: _Tensor | None = None) -> _Tensor: ...
def vector_norm(
    input: _Tensor,
    ord: _Number = 2,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
