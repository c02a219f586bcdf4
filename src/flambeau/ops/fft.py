"""Fourier transforms, by SciPy's pocketfft: three operators, and ``torch.fft`` made of them."""

from __future__ import annotations

import math
import os

import numpy as np

from ..base import dtypes
from ..base.shapes import contiguous_strides, normalize_dim
from ..core.declare import COMPLEX, composite, extern
from ..core.definition import TensorMeta
from ..core.operator import namespace
from ..core.promotion import _scalar_name
from .factories import _OPTIONS

aten = namespace("aten")
_OWN = ("own_complex_derivative",)
_LARGE = 1 << 16  # elements from which the transform runs on all cores
_FORWARD, _INVERSE = (
    ("backward", "ortho", "forward"),
    ("forward", "ortho", "backward"),
)  # SciPy's names of no factor, 1/sqrt(n), 1/n


def _dense(shape, like, dtype):
    shape = tuple(shape)
    return TensorMeta(shape, contiguous_strides(shape), dtype, like.device)


def _run(fn, a, dim, norm, **kw):
    import scipy.fft

    workers = os.cpu_count() if a.size >= _LARGE else 1
    return np.ascontiguousarray(getattr(scipy.fft, fn)(a, axes=dim, norm=norm, workers=workers, **kw))


# ---- the three -------------------------------------------------------------------------------------------------------------


@extern(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    meta=lambda self, dim, normalization, forward: _dense(self.shape, self, self.dtype),
    variants="function",
    has_out=True,
    tags=_OWN,
)
def _fft_c2c(a, dim, normalization, forward):
    if not dim or not a.size:
        return a.copy()
    return _run("fftn" if forward else "ifftn", a, dim, (_FORWARD if forward else _INVERSE)[normalization])


_fft_c2c.derivative(
    self=lambda ct, dim, normalization, forward: aten._fft_c2c.default(ct, dim, normalization, not forward)
)


def _half(shape, dim, onesided):
    shape = list(shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    return shape


@extern(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    refuse=COMPLEX,
    meta=lambda self, dim, normalization, onesided: _dense(
        _half(self.shape, dim, onesided), self, self.dtype.to_complex()
    ),
    variants="function",
    has_out=True,
    tags=_OWN,
)
def _fft_r2c(a, dim, normalization, onesided):
    if not a.size:
        return np.zeros(_half(a.shape, dim, onesided), np.result_type(a, np.complex64))
    return _run("rfftn" if onesided else "fftn", a, dim, _FORWARD[normalization])


def _r2c_vjp(ct, self_like, dim, normalization, onesided):
    if onesided:  # the other half of the spectrum is no result of its own
        d = dim[-1]
        missing = self_like.shape[d] - ct.shape[d]
        ct = aten.constant_pad_nd.default(ct, [*[0, 0] * (ct.ndim - d - 1), 0, missing], 0)
    return aten.real.default(aten._fft_c2c.default(ct, dim, normalization, False))


_fft_r2c.derivative(self=_r2c_vjp)


def _whole(shape, dim, n):
    shape = list(shape)
    shape[dim[-1]] = n
    return shape


@extern(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    meta=lambda self, dim, normalization, last_dim_size: _dense(
        _whole(self.shape, dim, last_dim_size), self, self.dtype.to_real()
    ),
    variants="function",
    has_out=True,
    tags=_OWN,
)
def _fft_c2r(a, dim, normalization, last_dim_size):
    shape = _whole(a.shape, dim, last_dim_size)
    if not a.size or not math.prod(shape):
        return np.zeros(shape, a.real.dtype)
    return _run("irfftn", a, dim, _INVERSE[normalization], s=[shape[d] for d in dim])


def _c2r_vjp(ct, self_like, dim, normalization):
    """Each coefficient but the first and, of an even number, the last stands for its conjugate as well."""
    d = dim[-1]
    out = aten._fft_r2c.default(ct, dim, normalization, True)
    twice = ct.shape[d] - out.shape[d]
    if twice > 0:
        parts = [
            aten.slice.Tensor(out, d, 0, 1),
            aten.mul.Tensor(aten.slice.Tensor(out, d, 1, 1 + twice), 2),
            aten.slice.Tensor(out, d, 1 + twice, out.shape[d]),
        ]
        out = aten.cat.default(parts, d)
    return out


_fft_c2r.derivative(self=_c2r_vjp)


def _batch(op, n_more):
    def rule(call, self, dim, *rest):
        return op(self, [d + 1 for d in dim], *rest)

    op.override("batch", rule)


for _op in (_fft_c2c, _fft_r2c, _fft_c2r):
    _batch(_op, 0)

# ---- arguments -------------------------------------------------------------------------------------------------------------


def _norm(norm, forward):
    if norm not in (None, "backward", "ortho", "forward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1
    return (0 if forward else 2) if norm in (None, "backward") else (2 if forward else 0)


def _floating(self, need_complex=False):
    """Integers become the default floating dtype; half precision isn't transformed on a CPU."""
    dtype = self.dtype
    if dtype.category < 2:
        dtype = dtypes.get_default_dtype()
    elif dtype.name in ("float16", "bfloat16"):
        raise RuntimeError(f"Unsupported dtype {_scalar_name(dtype)}")
    if need_complex and not dtype.is_complex:
        dtype = dtype.to_complex()
    return self if dtype is self.dtype else aten._to_copy.default(self, dtype=dtype)


def _sized(x, dim, sizes):
    """Cut or padded with zeros at the end."""
    for d, n in zip(dim, sizes):
        if n is None or n == -1:
            continue
        have = x.shape[d]
        if n < have:
            x = aten.slice.Tensor(x, d, 0, n)
        elif n > have:
            x = aten.constant_pad_nd.default(x, [*[0, 0] * (x.ndim - d - 1), 0, n - have], 0)
    return x


def _check_points(n):
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _one(self, n, dim):
    d = normalize_dim(dim, self.ndim)
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if n is not None:
        _check_points(n)
    return d


def _many(self, s, dim):
    """(dims, sizes): as many as given by either; all of them when neither is."""
    if dim is None:
        dims = list(range(self.ndim)) if s is None else list(range(self.ndim - len(s), self.ndim))
        if s is not None and len(s) > self.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {self.ndim} dimensions.")
    else:
        dims = [normalize_dim(d, self.ndim) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [self.shape[d] if s is None or s[k] == -1 else s[k] for k, d in enumerate(dims)]
    for n in sizes:
        _check_points(n)
    return dims, sizes


def _real_input(self, name):
    if self.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {_scalar_name(self.dtype)}")
    return _floating(self)


def _declare(name, tail, fn):
    composite(f"fft_{name}(Tensor self, {tail}, str? norm=None) -> Tensor", variants="")(fn)


_ONE, _TWO, _N = (
    "SymInt? n=None, int dim=-1",
    "SymInt[1]? s=None, int[1] dim=[-2,-1]",
    "SymInt[1]? s=None, int[1]? dim=None",
)

# ---- one dimension ---------------------------------------------------------------------------------------------------------


def _complex_to_complex(self, dims, sizes, norm, forward):
    x = _sized(_floating(self, need_complex=not dims), dims, sizes)
    if x.dtype.is_complex:
        return aten._fft_c2c.default(x, dims, norm, forward)
    out = aten._fft_r2c.default(x, dims, norm, False)
    return out if forward else aten.conj_physical.default(out)


def _fft(self, n, dim, norm, forward=True):
    d = _one(self, n, dim)
    if n is None:
        _check_points(self.shape[d])
    return _complex_to_complex(self, [d], [n], _norm(norm, forward), forward)


def _rfft(self, n, dim, norm):
    x = _real_input(self, "rfft")
    d = _one(self, n, dim)
    if n is None:
        _check_points(self.shape[d])
    return aten._fft_r2c.default(_sized(x, [d], [n]), [d], _norm(norm, True), True)


def _to_real(self, n, dim, norm, conjugated):
    d = _one(self, n, dim)
    n = 2 * (self.shape[d] - 1) if n is None else n
    _check_points(n)
    x = _sized(_floating(self, True), [d], [n // 2 + 1])
    return aten._fft_c2r.default(aten.conj_physical.default(x) if conjugated else x, [d], norm, n)


def _ihfft(self, n, dim, norm):
    x = _real_input(self, "ihfft")
    d = _one(self, n, dim)
    if n is None:
        _check_points(self.shape[d])
    return aten.conj_physical.default(aten._fft_r2c.default(_sized(x, [d], [n]), [d], _norm(norm, False), True))


_declare("fft", _ONE, _fft)
_declare("ifft", _ONE, lambda self, n, dim, norm: _fft(self, n, dim, norm, False))
_declare("rfft", _ONE, _rfft)
_declare("irfft", _ONE, lambda self, n, dim, norm: _to_real(self, n, dim, _norm(norm, False), False))
_declare("hfft", _ONE, lambda self, n, dim, norm: _to_real(self, n, dim, _norm(norm, True), True))
_declare("ihfft", _ONE, _ihfft)

# ---- two and more ----------------------------------------------------------------------------------------------------------


def _fftn(self, s, dim, norm, forward=True):
    dims, sizes = _many(self, s, dim)
    return _complex_to_complex(self, dims, sizes, _norm(norm, forward), forward)


def _halved(self, s, dim, norm, name, inverse):
    x = _real_input(self, name)
    dims, sizes = _many(self, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    out = aten._fft_r2c.default(_sized(x, dims, sizes), dims, _norm(norm, not inverse), True)
    return aten.conj_physical.default(out) if inverse else out


def _realn(self, s, dim, norm, name, conjugated):
    if dim is None and s is None:
        dims = list(range(self.ndim))
    else:
        dims = _many(self, None if s is None else [1] * len(s), dim)[0]
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    sizes = [self.shape[d] if s is None or s[k] == -1 else s[k] for k, d in enumerate(dims)]
    last = 2 * (self.shape[dims[-1]] - 1) if s is None or s[-1] == -1 else s[-1]
    for n in (*sizes[:-1], last):
        _check_points(n)
    x = _sized(_floating(self, True), dims, [*sizes[:-1], last // 2 + 1])
    return aten._fft_c2r.default(aten.conj_physical.default(x) if conjugated else x, dims, norm, last)


for _suffix, _tail in (("2", _TWO), ("n", _N)):
    _declare(f"fft{_suffix}", _tail, _fftn)
    _declare(f"ifft{_suffix}", _tail, lambda self, s, dim, norm: _fftn(self, s, dim, norm, False))
    _declare(f"rfft{_suffix}", _tail, lambda self, s, dim, norm: _halved(self, s, dim, norm, "rfftn", False))
    _declare(f"ihfft{_suffix}", _tail, lambda self, s, dim, norm: _halved(self, s, dim, norm, "ihfftn", True))
    _declare(
        f"irfft{_suffix}", _tail, lambda self, s, dim, norm: _realn(self, s, dim, _norm(norm, False), "irfftn", False)
    )
    _declare(f"hfft{_suffix}", _tail, lambda self, s, dim, norm: _realn(self, s, dim, _norm(norm, True), "hfftn", True))

# ---- helpers ---------------------------------------------------------------------------------------------------------------


def _shift(self, dim, by):
    dims = list(range(self.ndim)) if dim is None else [normalize_dim(d, self.ndim) for d in dim]
    return aten.roll.default(self, [by(self.shape[d]) for d in dims], dims)


composite("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", variants="")(
    lambda self, dim: _shift(self, dim, lambda n: n // 2)
)
composite("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", variants="")(
    lambda self, dim: _shift(self, dim, lambda n: (n + 1) // 2)
)


def _frequencies(n, d, half, dtype, device):
    kind = dtype or dtypes.get_default_dtype()
    if not kind.is_floating_point and not kind.is_complex:
        raise RuntimeError("fftfreq requires a floating point or complex dtype")
    if half:
        steps = aten.arange.default(n // 2 + 1, dtype=kind, device=device)
    else:
        steps = aten.cat.default(
            [
                aten.arange.default((n + 1) // 2, dtype=kind, device=device),
                aten.arange.start(-(n // 2), 0, dtype=kind, device=device),
            ],
            0,
        )
    return aten.mul.Tensor(steps, 1.0 / (n * d))


for _name, _half_only in (("fftfreq", False), ("rfftfreq", True)):
    composite(f"fft_{_name}(int n, float d=1.0, {_OPTIONS}) -> Tensor", variants="")(
        lambda n, d, dtype, layout, device, pin_memory, half=_half_only: _frequencies(n, d, half, dtype, device)
    )
