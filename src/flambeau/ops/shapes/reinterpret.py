"""Views of the same memory as elements of another kind: other dtypes, complex numbers as pairs, their parts."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...core.declare import composite, extern
from ...core.definition import TensorMeta
from ...core.lazy import make, plain_of
from ...core.operator import namespace

aten = namespace("aten")


# ---- the two parts as views ----------------------------------------------------------------------------------------------


def _as_real_meta(self):
    if not self.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    strides = self.strides if isinstance(self, TensorMeta) else self.stride()
    offset = self.offset if isinstance(self, TensorMeta) else self._offset
    return TensorMeta((*self.shape, 2), (*[2 * s for s in strides], 1), self.dtype.to_real(), self.device, 2 * offset)


view_as_real = extern(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    meta=_as_real_meta,
    variants="function",
    tags=("own_complex_derivative",),
)(lambda self: self)


_PARTS = {
    np.dtype(c).char: np.dtype(r) for c, r in (("c8", "f4"), ("c16", "f8"))
}  # of complex dtypes, in rows of pairs
_WHOLES = {r.char: np.dtype(c) for c, r in _PARTS.items()}


@view_as_real.override("eager")
def _as_real(self):
    a = self._array
    parts = _PARTS.get(a.dtype.char)
    if parts is not None and a.ndim and a.size and a.flags.c_contiguous:
        return _noted(self, a.view(parts).reshape(*a.shape, 2), aten.view_as_real.default)
    _as_real_meta(self)
    part = a.real
    pairs = np.lib.stride_tricks.as_strided(
        part, (*a.shape, 2), (*a.strides, part.itemsize), writeable=a.flags.writeable
    )
    return _noted(self, pairs, aten.view_as_real.default)


def _noted(self, array, op):
    out = _C.view_of(self, array)
    _C.note_view(out, self, op, ())
    return out


view_as_real.override("reinterprets", True)
view_as_real.derivative(self=lambda ct: aten.view_as_complex.default(aten.contiguous.default(ct)))
view_as_real.override("lower", lambda lowering, val, self: lowering.as_real(self, val))
view_as_real.override("batch", lambda call, self: aten.view_as_real.default(self))
view_as_real.override("write_back", lambda base, contents: aten.view_as_complex.default(_paired(contents)))


def _paired(x):
    """With the parts side by side in memory."""
    return aten.contiguous.default(x)


@view_as_real.override("lazy")
def _lazy_as_real(self):
    plain, conjugated, negated = plain_of(self)
    if conjugated:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as real, use "
            "self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
        )
    return _relate(make(aten.view_as_real.default(plain), False, negated), self, aten.view_as_real.default)


def _relate(out, source, op, *rest):
    _C.forget_view(out)
    _C.note_view(out, source, op, rest)
    return out


def _as_complex_meta(self):
    strides = self.strides if isinstance(self, TensorMeta) else self.stride()
    offset = self.offset if isinstance(self, TensorMeta) else self.storage_offset()
    if self.dtype.name not in ("float32", "float64", "float16"):
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {self.dtype.scalar_type}"
        )
    if not len(self.shape):
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return TensorMeta(
        tuple(self.shape[:-1]), tuple(s // 2 for s in strides[:-1]), self.dtype.to_complex(), self.device, offset // 2
    )


view_as_complex = extern(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    meta=_as_complex_meta,
    variants="function",
    tags=("own_complex_derivative",),
)(lambda self: self)


@view_as_complex.override("eager")
def _as_complex(self):
    a = self._array
    whole = _WHOLES.get(a.dtype.char)
    if (
        whole is not None
        and a.size
        and a.ndim > 1
        and a.shape[-1] == 2
        and a.flags.c_contiguous
        and not self._offset % 2
    ):
        return _noted(self, a.view(whole)[..., 0], aten.view_as_complex.default)
    meta = _as_complex_meta(self)
    if a.size and a.ndim > 1 and a.flags.c_contiguous:
        return _noted(self, a.view(meta.dtype.np)[..., 0], aten.view_as_complex.default)
    if a.size:
        first = _pairs(a, meta.dtype.np)
    else:
        first = np.empty(meta.shape, meta.dtype.np)
    return _noted(self, first, aten.view_as_complex.default)


def _pairs(a, kind):
    start = a.reshape(-1)[:2] if a.flags.c_contiguous else np.lib.stride_tricks.as_strided(a, (2,), (a.itemsize,))
    return np.lib.stride_tricks.as_strided(start.view(kind), a.shape[:-1], a.strides[:-1], writeable=a.flags.writeable)


view_as_complex.override("reinterprets", True)
view_as_complex.derivative(
    self=lambda ct: aten.view_as_real.default(aten.contiguous.default(aten.resolve_conj.default(ct)))
)
view_as_complex.override("lower", lambda lowering, val, self: lowering.as_complex(self, val))
view_as_complex.override("batch", lambda call, self: aten.view_as_complex.default(self))
view_as_complex.override("write_back", lambda base, contents: aten.view_as_real.default(contents))


@view_as_complex.override("lazy")
def _lazy_as_complex(self):
    plain, _, negated = plain_of(self)
    return _relate(make(aten.view_as_complex.default(plain), False, negated), self, aten.view_as_complex.default)


@composite("real(Tensor(a) self) -> Tensor(a)", variants="function")
def real(self):
    if not self.dtype.is_complex:
        return self
    return aten.select.int(aten.view_as_real.default(aten._conj.default(self) if self.is_conj() else self), -1, 0)


@composite("imag(Tensor(a) self) -> Tensor(a)", variants="function")
def imag(self):
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if self.is_conj():
        return aten._neg_view.default(aten.select.int(aten.view_as_real.default(aten._conj.default(self)), -1, 1))
    return aten.select.int(aten.view_as_real.default(self), -1, 1)


# ---- other dtypes ---


def _view_dtype_meta(self, dtype):
    strides = self.strides if isinstance(self, TensorMeta) else self.stride()
    offset = self.offset if isinstance(self, TensorMeta) else self.storage_offset()
    have, want = self.dtype.itemsize, dtype.itemsize
    shape = tuple(self.shape)
    if have == want:
        return TensorMeta(shape, tuple(strides), dtype, self.device, offset)
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 to view {self.dtype} as {dtype} (different element sizes)")
    if strides[-1] != 1:
        raise RuntimeError(
            f"self.stride(-1) must be 1 to view {self.dtype} as {dtype} (different element sizes), but got {strides[-1]}"
        )
    if have > want:
        k = have // want
        return TensorMeta(
            (*shape[:-1], shape[-1] * k), (*[s * k for s in strides[:-1]], 1), dtype, self.device, offset * k
        )
    k = want // have
    if shape[-1] % k:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {k} to view {self.dtype} as {dtype} (different element sizes), but got {shape[-1]}"
        )
    if offset % k:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {k} to view {self.dtype} as {dtype} (different element sizes), but got {offset}"
        )
    odd = next((d for d, s in enumerate(strides[:-1]) if s % k), None)
    if odd is not None:
        raise RuntimeError(
            f"self.stride({odd}) must be divisible by {k} to view {self.dtype} as {dtype} (different element sizes), but got {strides[odd]}"
        )
    return TensorMeta(
        (*shape[:-1], shape[-1] // k), (*[s // k for s in strides[:-1]], 1), dtype, self.device, offset // k
    )


view_dtype = extern(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", meta=_view_dtype_meta, variants="method"
)(lambda self, dtype: self)


@view_dtype.override("eager")
def _view_dtype(self, dtype):
    meta = _view_dtype_meta(self, dtype)
    a = self._array
    out = (
        a.view(dtype.np)
        if a.size and a.ndim
        else np.empty(meta.shape, dtype.np)
        if not a.size
        else a.reshape(1).view(dtype.np).reshape(())
    )
    made = _C.view_of(self, out)
    _C.note_view(made, self, aten.view.dtype, (dtype,))
    return made


view_dtype.override("write_back", lambda base, contents, dtype: aten.view.dtype(contents, base.dtype))


@view_dtype.override("lazy")
def _lazy_view_dtype(self, dtype):
    plain, conjugated, negated = plain_of(self)
    if dtype is not self.dtype:
        kind = "conjugate view tensors" if conjugated else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {kind} when converting to a different dtype.")
    return _relate(make(plain, conjugated, negated), self, aten.view.dtype, dtype)


view_dtype.derivative()
