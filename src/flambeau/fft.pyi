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

def fft(
    input: _Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def fft2(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] = ...,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def fftfreq(
    n: _int,
    d: _float = ...,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def fftn(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def fftshift(input: _Tensor, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
def hfft(
    input: _Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def hfft2(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] = ...,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def hfftn(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def ifft(
    input: _Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def ifft2(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] = ...,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def ifftn(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def ifftshift(input: _Tensor, dim: _int | Sequence[_int] | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
def ihfft(
    input: _Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def ihfft2(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] = ...,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def ihfftn(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def irfft(
    input: _Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def irfft2(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] = ...,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def irfftn(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def rfft(
    input: _Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def rfft2(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] = ...,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def rfftfreq(
    n: _int,
    d: _float = ...,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def rfftn(
    input: _Tensor,
    s: _int | Sequence[_int] | None = None,
    dim: _int | Sequence[_int] | None = None,
    norm: _str | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
