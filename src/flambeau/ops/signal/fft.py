"""Fourier transforms: three operators, and ``torch.fft`` made of them.

Kernels are csrc/kernels/fft.c (base/fft.py), SciPy's pocketfft for lengths with a prime factor above 13 and for few long lines that don't split over a vector."""

from __future__ import annotations

import math
import os

import numpy as np

from ...base import dtypes
from ...base import fft as native
from ...base.kernels import Transform
from ...base.shapes import are_products, contiguous_strides, normalize_dim
from ...base.symint import is_symbolic, sym_max
from ...core.declare import COMPLEX, composite, extern
from ...core.definition import TensorMeta
from ...core.layouts import copy_strides, empty_strided, in_order, strides_of
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from ..creation.factories import OPTIONS

aten = namespace("aten")
_OWN = ("own_complex_derivative",)
_LARGE = 1 << 16  # elements from which the transform runs on all cores
_FORWARD, _INVERSE = (
    ("backward", "ortho", "forward"),
    ("forward", "ortho", "backward"),
)  # SciPy's names of no factor, 1/sqrt(n), 1/n


# ---- the order of results ----------------------------------------------------------------------------------------------------
#
# PyTorch lays a result out as MKL wrote it: the dimensions that weren't transformed outside, in the order they have in memory, the transformed
# ones inside.


def _outside(ndim, dims) -> list[int]:
    """The dimensions that aren't transformed, where two strides tie in the order that ``std::partition`` leaves them in: it swaps from both ends."""
    order, low, high = list(range(ndim)), 0, ndim
    while True:
        while low < high and order[low] not in dims:
            low += 1
        while low < high and order[high - 1] in dims:
            high -= 1
        if low == high:
            return order[:low]
        order[low], order[high - 1] = order[high - 1], order[low]


def _from_outside(dims, like) -> list[int]:
    """``dims`` in the order of decreasing strides."""
    strides = strides_of(like)
    if is_symbolic((*like.shape, *strides)) and are_products(like.shape, strides):
        return sorted(dims)  # without a question about sizes
    return sorted(dims, key=lambda d: strides[d], reverse=True)


def _written(shape, like, dims) -> tuple[int, ...]:
    """Strides of a result of this shape, ``dims`` of ``like`` transformed in this order."""
    out, step = [0] * len(shape), 1
    for d in reversed([*_from_outside(_outside(len(shape), dims), like), *dims]):
        out[d] = step
        step = step * sym_max(shape[d], 1)
    return tuple(out)


def _c2c_strides(self, dim):
    return _written(self.shape, self, _from_outside(dim, self)) if dim else copy_strides(self.shape, strides_of(self))


def _r2c_strides(self, dim, shape):
    return _written(shape, self, [*_from_outside(dim[:-1], self), dim[-1]])


def _c2r_strides(self, dim, shape):
    """All dimensions but the last are transformed first, by themselves."""
    first = self if len(dim) == 1 else TensorMeta(self.shape, _c2c_strides(self, dim[:-1]), self.dtype, None)
    return _written(shape, first, [dim[-1]])


def _by_scipy(fn, a, dim, norm, strides, **kw):
    import scipy.fft

    workers = os.cpu_count() if a.size >= _LARGE else 1
    return in_order(getattr(scipy.fft, fn)(a, axes=dim, norm=norm, workers=workers, **kw), strides)


def _factor(normalization, shape, dim) -> float:
    n = math.prod(shape[d] for d in dim)
    return (1.0, 1 / math.sqrt(n), 1 / n)[normalization]


def _natively(kind, dims, shape, strides, dtype, scale):
    """The transform of arrays of one description, for the dimensions in the order of csrc/kernels/fft.c."""

    def run(a):
        out = empty_strided(shape, strides, dtype)
        native.run(a, out, kind, dims, scale)
        return out

    return run


# ---- the three -------------------------------------------------------------------------------------------------------------


@extern(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    meta=lambda self, dim, normalization, forward: TensorMeta(
        self.shape, _c2c_strides(self, dim), self.dtype, self.device
    ),
    variants="function",
    has_out=True,
    tags=_OWN,
)
def _fft_c2c(a, dim, normalization, forward):
    found = _native_c2c(a, dim, normalization, forward)
    if found is not None:
        return found(a)
    strides = _c2c_strides(a, dim)
    if not dim or not a.size:
        return in_order(a.copy(), strides)
    norm = (_FORWARD if forward else _INVERSE)[normalization]
    return _by_scipy("fftn" if forward else "ifftn", a, dim, norm, strides)


def _native_c2c(a, dim, normalization, forward):
    if not dim or not a.size or not native.suits(a.shape, dim, False):
        return None
    kind, scale = Transform.FORWARD if forward else Transform.INVERSE, _factor(normalization, a.shape, dim)
    return _natively(kind, dim, a.shape, _c2c_strides(a, dim), a.dtype, scale)


_fft_c2c.derivative(
    self=lambda ct, dim, normalization, forward: aten._fft_c2c.default(ct, dim, normalization, not forward)
)


def _half(shape, dim, onesided):
    shape = list(shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    return shape


def _r2c_meta(self, dim, normalization, onesided):
    shape = _half(self.shape, dim, onesided)
    return TensorMeta(tuple(shape), _r2c_strides(self, dim, shape), self.dtype.to_complex(), self.device)


@extern(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    refuse=COMPLEX,
    meta=_r2c_meta,
    variants="function",
    has_out=True,
    tags=_OWN,
)
def _fft_r2c(a, dim, normalization, onesided):
    found = _native_r2c(a, dim, normalization, onesided)
    if found is not None:
        return found(a)
    shape = _half(a.shape, dim, onesided)
    strides = _r2c_strides(a, dim, shape)
    if not a.size:
        return in_order(np.zeros(shape, np.result_type(a, np.complex64)), strides)
    return _by_scipy("rfftn" if onesided else "fftn", a, dim, _FORWARD[normalization], strides)


def _native_r2c(a, dim, normalization, onesided):
    order = [dim[-1], *dim[:-1]]
    if not a.size or not native.suits(a.shape, order, True):
        return None
    kind, shape = Transform.FROM_REAL if onesided else Transform.FROM_REAL_WHOLE, _half(a.shape, dim, onesided)
    scale, dtype = _factor(normalization, a.shape, dim), np.result_type(a, np.complex64)
    return _natively(kind, order, shape, _r2c_strides(a, dim, shape), dtype, scale)


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


def _c2r_meta(self, dim, normalization, last_dim_size):
    shape = _whole(self.shape, dim, last_dim_size)
    return TensorMeta(tuple(shape), _c2r_strides(self, dim, shape), self.dtype.to_real(), self.device)


@extern(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    meta=_c2r_meta,
    variants="function",
    has_out=True,
    tags=_OWN,
)
def _fft_c2r(a, dim, normalization, last_dim_size):
    found = _native_c2r(a, dim, normalization, last_dim_size)
    if found is not None:
        return found(a)
    shape = _whole(a.shape, dim, last_dim_size)
    strides = _c2r_strides(a, dim, shape)
    if not a.size or not math.prod(shape):
        return in_order(np.zeros(shape, a.real.dtype), strides)
    return _by_scipy("irfftn", a, dim, _INVERSE[normalization], strides, s=[shape[d] for d in dim])


def _native_c2r(a, dim, normalization, last_dim_size):
    shape, (*others, last) = _whole(a.shape, dim, last_dim_size), dim
    if not a.size or not math.prod(shape) or a.shape[last] != last_dim_size // 2 + 1:
        return None
    if not native.suits(shape, [last, *others], True):
        return None
    scale = _factor(normalization, shape, dim)
    real = _natively(Transform.TO_REAL, [last], shape, _c2r_strides(a, dim, shape), a.real.dtype, scale)
    if not others:
        return real
    first = _natively(Transform.INVERSE, others, a.shape, _c2c_strides(a, others), a.dtype, 1.0)
    return lambda a: real(first(a))


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


def _batch(op):
    def rule(call, self, dim, *rest):
        return op(self, [d + 1 for d in dim], *rest)

    op.override("batch", rule)


for _op in (_fft_c2c, _fft_r2c, _fft_c2r):
    _batch(_op)


# ---- in compiled graphs ----------------------------------------------------------------------------------------------------


def _lower(h, val, kind, x, dims, real, normalization, shape):
    """``shape``: of the real lines, or the complex ones; ``dims``: in the order of csrc/kernels/fft.c."""
    if not dims or not all(type(n) is int for n in shape) or not native.suits(shape, dims, real):
        raise NotImplementedError("transforms of these lengths are made by SciPy")
    scale = _factor(normalization, shape, dims)
    return h.transform(kind, x, dims, val.shape, val.stride(), val.dtype, scale)


@_fft_c2c.override("lower")
def _lower_c2c(h, val, self, dim, normalization, forward):
    kind = Transform.FORWARD if forward else Transform.INVERSE
    return _lower(h, val, kind, self, dim, False, normalization, self.sizes)


@_fft_r2c.override("lower")
def _lower_r2c(h, val, self, dim, normalization, onesided):
    kind = Transform.FROM_REAL if onesided else Transform.FROM_REAL_WHOLE
    return _lower(h, val, kind, self, [dim[-1], *dim[:-1]], True, normalization, self.sizes)


@_fft_c2r.override("lower")
def _lower_c2r(h, val, self, dim, normalization, last_dim_size):
    *others, last = dim
    if type(last_dim_size) is not int or self.sizes[last] != last_dim_size // 2 + 1:
        raise NotImplementedError("there is no kernel for real transforms of other halves")
    shape = val.shape
    if not all(type(n) is int for n in shape) or not native.suits(shape, [last, *others], True):
        raise NotImplementedError("transforms of these lengths are made by SciPy")
    x, scale = self, _factor(normalization, shape, dim)
    if others:
        x = h.transform(Transform.INVERSE, x, others, x.sizes, contiguous_strides(x.sizes), x.dtype, 1.0)
    return h.transform(Transform.TO_REAL, x, [last], shape, val.stride(), val.dtype, scale)


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
    rules = "rows real" if name.startswith(("irfft", "hfft")) else "rows"
    composite(f"fft_{name}(Tensor self, {tail}, str? norm=None) -> Tensor", variants="", out_rules=rules)(fn)


_ONE, _TWO, _N = (
    "SymInt? n=None, int dim=-1",
    "SymInt[1]? s=None, int[1] dim=[-2,-1]",
    "SymInt[1]? s=None, int[1]? dim=None",
)

# ---- one dimension ---------------------------------------------------------------------------------------------------------


def _fft(self, n, dim, norm, forward=True):
    d = _one(self, n, dim)
    if n is None:
        _check_points(self.shape[d])
    x = _sized(_floating(self), [d], [n])
    if x.dtype.is_complex:
        return aten._fft_c2c.default(x, [d], _norm(norm, forward), forward)
    out = aten._fft_r2c.default(x, [d], _norm(norm, forward), False)
    return out if forward else aten.conj.default(out)


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
    return aten.conj.default(aten._fft_r2c.default(_sized(x, [d], [n]), [d], _norm(norm, False), True))


_declare("fft", _ONE, _fft)
_declare("ifft", _ONE, lambda self, n, dim, norm: _fft(self, n, dim, norm, False))
_declare("rfft", _ONE, _rfft)
_declare("irfft", _ONE, lambda self, n, dim, norm: _to_real(self, n, dim, _norm(norm, False), False))
_declare("hfft", _ONE, lambda self, n, dim, norm: _to_real(self, n, dim, _norm(norm, True), True))
_declare("ihfft", _ONE, _ihfft)

# ---- two and more ----------------------------------------------------------------------------------------------------------


def _fftn(self, s, dim, norm, forward=True):
    dims, sizes = _many(self, s, dim)
    x = _sized(_floating(self, need_complex=True), dims, sizes)
    return aten._fft_c2c.default(x, dims, _norm(norm, forward), forward)


def _halved(self, s, dim, norm, name, inverse):
    x = _real_input(self, name)
    dims, sizes = _many(self, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x, norm = _sized(x, dims, sizes), _norm(norm, not inverse)
    if not inverse:
        return aten._fft_r2c.default(x, dims, norm, True)
    out = aten._fft_r2c.default(x, dims[-1:], norm, True)
    if len(dims) == 1:
        return aten.conj.default(out)
    return aten._fft_c2c.default(aten.conj_physical.default(out), dims[:-1], norm, False)


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
    if not conjugated:
        return aten._fft_c2r.default(x, dims, norm, last)
    if len(dims) > 1:
        x = aten._fft_c2c.default(x, dims[:-1], norm, True)
    return aten._fft_c2r.default(aten.conj_physical.default(x), dims[-1:], norm, last)


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
    return aten.mul.Tensor(steps, 1.0 / (n * d) if n * d != 0 else math.inf)


for _name, _half_only in (("fftfreq", False), ("rfftfreq", True)):
    composite(f"fft_{_name}(int n, float d=1.0, {OPTIONS}) -> Tensor", variants="")(
        lambda n, d, dtype, layout, device, pin_memory, half=_half_only: _frequencies(n, d, half, dtype, device)
    )
