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

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_str: TypeAlias = builtins.str
_Number: TypeAlias = builtins.int | builtins.float | builtins.complex
_Tensor: TypeAlias = Tensor

from typing import NamedTuple

class _lu_with_info(NamedTuple):
    LU: _Tensor
    pivots: _Tensor
    info: _Tensor

class aminmax(NamedTuple):
    min: _Tensor
    max: _Tensor

class cummax(NamedTuple):
    values: _Tensor
    indices: _Tensor

class cummin(NamedTuple):
    values: _Tensor
    indices: _Tensor

class frexp(NamedTuple):
    mantissa: _Tensor
    exponent: _Tensor

class geqrf(NamedTuple):
    a: _Tensor
    tau: _Tensor

class histogram(NamedTuple):
    hist: _Tensor
    bin_edges: _Tensor

class kthvalue(NamedTuple):
    values: _Tensor
    indices: _Tensor

class linalg_cholesky_ex(NamedTuple):
    L: _Tensor
    info: _Tensor

class linalg_eig(NamedTuple):
    eigenvalues: _Tensor
    eigenvectors: _Tensor

class linalg_eigh(NamedTuple):
    eigenvalues: _Tensor
    eigenvectors: _Tensor

class linalg_inv_ex(NamedTuple):
    inverse: _Tensor
    info: _Tensor

class linalg_ldl_factor(NamedTuple):
    LD: _Tensor
    pivots: _Tensor

class linalg_ldl_factor_ex(NamedTuple):
    LD: _Tensor
    pivots: _Tensor
    info: _Tensor

class linalg_lstsq(NamedTuple):
    solution: _Tensor
    residuals: _Tensor
    rank: _Tensor
    singular_values: _Tensor

class linalg_lu(NamedTuple):
    P: _Tensor
    L: _Tensor
    U: _Tensor

class linalg_lu_factor(NamedTuple):
    LU: _Tensor
    pivots: _Tensor

class linalg_lu_factor_ex(NamedTuple):
    LU: _Tensor
    pivots: _Tensor
    info: _Tensor

class linalg_qr(NamedTuple):
    Q: _Tensor
    R: _Tensor

class linalg_slogdet(NamedTuple):
    sign: _Tensor
    logabsdet: _Tensor

class linalg_solve_ex(NamedTuple):
    result: _Tensor
    info: _Tensor

class linalg_svd(NamedTuple):
    U: _Tensor
    S: _Tensor
    Vh: _Tensor

class lu_unpack(NamedTuple):
    P: _Tensor
    L: _Tensor
    U: _Tensor

class max(NamedTuple):
    values: _Tensor
    indices: _Tensor

class median(NamedTuple):
    values: _Tensor
    indices: _Tensor

class min(NamedTuple):
    values: _Tensor
    indices: _Tensor

class mode(NamedTuple):
    values: _Tensor
    indices: _Tensor

class nanmedian(NamedTuple):
    values: _Tensor
    indices: _Tensor

class qr(NamedTuple):
    Q: _Tensor
    R: _Tensor

class slogdet(NamedTuple):
    sign: _Tensor
    logabsdet: _Tensor

class sort(NamedTuple):
    values: _Tensor
    indices: _Tensor

class svd(NamedTuple):
    U: _Tensor
    S: _Tensor
    V: _Tensor

class topk(NamedTuple):
    values: _Tensor
    indices: _Tensor

class triangular_solve(NamedTuple):
    solution: _Tensor
    cloned_coefficient: _Tensor

def __getattr__(name: _str) -> Any: ...
