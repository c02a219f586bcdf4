"""Factories: tensors made from a rule on the index."""

from __future__ import annotations

import math

import numpy as np

from ... import _C
from ...base import dtypes
from ...base.shape_checks import check
from ...base.symint import SymFloat, check_fits, is_int, is_symbolic, sym_max
from ...core.declare import composite, explicit, factory
from ...core.operator import namespace
from ...core.promotion import refused

aten = namespace("aten")

OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LIKE = OPTIONS + ", MemoryFormat? memory_format=None"


def default(dtype):
    return dtype or dtypes.get_default_dtype()


def _sized(name, value, options=OPTIONS, overload=""):
    """``ones(size)`` and its relatives ``ones_like``, ``new_ones``."""
    factory(
        f"{name}{overload}(SymInt[] size, {options}) -> Tensor",
        shape=lambda size, *o: size,
        dtype=lambda size, dtype, *o: default(dtype),
    )(value)

    def like(self, dtype, layout, device, pin_memory, memory_format):
        return list(self.shape), dtype or self.dtype, device or self.device

    body = None if value is None else lambda s, i, *a: value(s, i, *a)
    factory(
        f"{name}_like(Tensor self, {LIKE}) -> Tensor",
        shape=lambda self, *o: self.shape,
        dtype=lambda self, dtype, *o: dtype or self.dtype,
    )(body)
    factory(
        f"new_{name}(Tensor self, SymInt[] size, {OPTIONS}) -> Tensor",
        shape=lambda self, size, *o: size,
        dtype=lambda self, size, dtype, *o: dtype or self.dtype,
        variants="method",
    )(body)


_sized("ones", lambda s, i, *_: 1)
_sized("zeros", lambda s, i, *_: 0)
_sized("empty", None, LIKE, ".memory_format")


def _full_dtype(value, dtype):
    """``dtype``, or the one of a number. RuntimeError for a number that it can't hold."""
    dtype = dtype or dtypes.of_scalar(value)
    check_fits(value, dtype)
    return dtype


@factory(
    f"full(SymInt[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    shape=lambda size, *o: size,
    dtype=lambda size, fill_value, dtype, *o: _full_dtype(fill_value, dtype),
)
def full(s, i, size, fill_value, *_):
    return fill_value


@factory(
    f"full_like(Tensor self, Scalar fill_value, {LIKE}) -> Tensor",
    shape=lambda self, *o: self.shape,
    dtype=lambda self, v, dtype, *o: _full_dtype(v, dtype or self.dtype),
)
def full_like(s, i, self, fill_value, *_):
    return fill_value


@factory(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    shape=lambda self, size, *o: size,
    dtype=lambda self, size, v, dtype, *o: _full_dtype(v, dtype or self.dtype),
    variants="method",
)
def new_full(s, i, self, size, fill_value, *_):
    return fill_value


@factory(
    f"scalar_tensor(Scalar s, {OPTIONS}) -> Tensor",
    shape=lambda s, *o: (),
    dtype=lambda s, dtype, *o: _full_dtype(s, default(dtype)),
)
def scalar_tensor(s, i, value, *_):
    return value


def _arange_length(start, end, step):
    for v in (start, end, step):
        if v.__class__ is complex:
            dtypes.check_number(v, dtypes.float64)
        dtypes.of_scalar(v)
    if any(isinstance(v, float) and not math.isfinite(v) for v in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    check((end - start) * step >= 0, "upper bound and lower bound inconsistent with step sign")
    if all(map(is_int, (start, end, step))):
        return (sym_max(-((start - end) // step), 0),)
    return (max(math.ceil((end - start) / step), 0),)


def _in_kind(dtype, *values):
    """The bounds of a range of integers are integers."""
    return values if dtype is None or dtype.category >= 2 else [v if is_int(v) else math.trunc(v) for v in values]


def _steps_length(start, end, step, dtype):
    if dtype is not None and dtype.category in (0, 3):
        refused("arange", dtype)
    if step != 0 and _in_kind(dtype, step)[0] == 0:
        raise ValueError("step must be nonzero")
    finite = all(not isinstance(v, float) or math.isfinite(v) for v in (start, end))
    # NOTE: of narrower integers PyTorch counts the steps before it cuts the bounds.
    cut = finite and dtype is dtypes.int64
    return _arange_length(*(_in_kind(dtype, start, end, step) if cut else (start, end, step)))


def _arange_dtype(*values):
    return dtypes.get_default_dtype() if any(isinstance(v, (float, SymFloat)) for v in values) else dtypes.int64


@factory(
    f"arange(Scalar end, {OPTIONS}) -> Tensor",
    shape=lambda end, dtype, *o: _steps_length(0, end, 1, dtype),
    dtype=lambda end, dtype, *o: dtype or _arange_dtype(end),
)
def arange(s, i, end, *_):
    return i[0]


@factory(
    f"arange.start(Scalar start, Scalar end, {OPTIONS}) -> Tensor",
    shape=lambda start, end, dtype, *o: _steps_length(start, end, 1, dtype),
    dtype=lambda start, end, dtype, *o: dtype or _arange_dtype(start, end),
)
def arange_start(s, i, start, end, dtype, *_):
    return s.add(i[0], *_in_kind(dtype, start))


@factory(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
    shape=lambda start, end, step, dtype, *o: _steps_length(start, end, step, dtype),
    dtype=lambda start, end, step, dtype, *o: dtype or _arange_dtype(start, end, step),
)
def arange_step(s, i, start, end, step, dtype, *_):
    start, step = _in_kind(dtype, start, step)
    return s.add(s.mul(i[0], step), start)


def ends_dtype(name, start, end, dtype):
    """The dtype of points between two numbers. RuntimeError for complex ones among real points."""
    if dtype is dtypes.bool_:
        refused(name, dtype)
    if not any(isinstance(v, complex) for v in (start, end)):
        made = default(dtype)
        for v in (start, end):
            check_fits(v, made)
        as_ends(start, end, made)  # here, where guards are still made
        return made
    found = dtypes.get_default_dtype().to_complex()
    if dtype is not None and not dtype.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {found} can't be safely cast to passed dtype {dtype}")
    return dtype or found


def as_ends(start, end, dtype):
    """The ends of points of ``dtype``: among integers they are integers of that dtype. RuntimeError for ends that it doesn't hold."""
    if dtype is None or dtype.category != 1:
        return start, end
    start, end = (
        float(v) if isinstance(v, SymFloat) else v for v in (start, end)
    )  # kernels count with whole symbols only
    for v in (start, end):
        check_fits(v, dtype)
    if is_symbolic((start, end)):
        return _in_kind(dtype, start, end)
    return tuple(int(dtypes.as_element(v, dtype)) for v in (start, end))


def _points(steps):
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return steps


@factory(
    f"linspace(Scalar start, Scalar end, int steps, {OPTIONS}) -> Tensor",
    shape=lambda start, end, steps, *o: (_points(steps),),
    dtype=lambda start, end, steps, dtype, *o: ends_dtype("linspace", start, end, dtype),
    out_rules="dtype",
)
def linspace(s, i, start, end, steps, dtype, *_):
    """From both ends, so that the last value is exactly ``end``."""
    start, end = as_ends(start, end, dtype)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    low, high = s.add(s.mul(i[0], step), start), s.sub(end, s.mul(s.sub(steps - 1, i[0]), step))
    return s.where(s.lt(i[0], steps // 2), low, high) if steps > 1 else s.add(s.mul(i[0], 0.0), start)


def _end(x, made, wide):
    """An end that is a tensor, in the dtype that points are computed in."""
    if made.category == 1:
        x = aten._to_copy.default(x, dtype=made)
    return aten.detach.default(aten._to_copy.default(x, dtype=wide))


def _between(start, end, steps, dtype, layout, device, pin_memory):
    """linspace of ends that are tensors without dimensions."""
    if any(hasattr(x, "ndim") and x.ndim for x in (start, end)):
        raise RuntimeError("linspace only supports 0-dimensional start and end tensors")
    is_complex = any(isinstance(x, complex) or (hasattr(x, "dtype") and x.dtype.is_complex) for x in (start, end))
    made = ends_dtype("linspace", 0j if is_complex else 0, 0, dtype)
    wide = made if made.category >= 2 else dtypes.float64
    start, end = (_end(x, made, wide) if hasattr(x, "dtype") else as_ends(x, x, made)[0] for x in (start, end))
    given = (x.device for x in (start, end) if hasattr(x, "device"))
    real = dtypes.float64 if wide.is_complex else wide
    k = aten.arange.default(_points(steps), dtype=real, device=device or next(given, None))
    step = aten.div.Tensor(end - start, max(steps - 1, 1))
    low, high = (
        aten.add.Tensor(aten.mul.Tensor(k, step), start),
        end - aten.mul.Tensor(aten.rsub.Scalar(k, steps - 1), step),
    )
    out = aten.where.self(aten.lt.Scalar(k, steps // 2), low, high) if steps > 1 else low
    out = aten._to_copy.default(out, dtype=wide) if real is not wide else out
    return out if made is wide else aten._to_copy.default(out, dtype=made)


for _overload, _first, _second in (
    ("Tensor_Tensor", "Tensor", "Tensor"),
    ("Tensor_Scalar", "Tensor", "Scalar"),
    ("Scalar_Tensor", "Scalar", "Tensor"),
):
    composite(
        f"linspace.{_overload}({_first} start, {_second} end, int steps, {OPTIONS}) -> Tensor",
        variants="function",
        out_rules="dtype exact",
    )(_between)


def _eye_shape(n, m):
    for name, k in (("n", n), ("m", m)):
        if k < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {k}")
    return n, m


@factory(
    f"eye.m(SymInt n, SymInt m, {OPTIONS}) -> Tensor",
    shape=lambda n, m, *o: _eye_shape(n, m),
    dtype=lambda n, m, dtype, *o: default(dtype),
)
def eye_m(s, i, n, m, *_):
    return s.where(s.eq(i[0], i[1]), 1, 0)


@factory(
    f"eye(SymInt n, {OPTIONS}) -> Tensor",
    shape=lambda n, *o: _eye_shape(n, n),
    dtype=lambda n, dtype, *o: default(dtype),
)
def eye(s, i, n, *_):
    return s.where(s.eq(i[0], i[1]), 1, 0)


def _ones_on_the_diagonal(n, m, dtype):
    n, m = _eye_shape(n, m)
    out = np.zeros((n, m), default(dtype).np)
    out.reshape(-1)[: min(n, m) * m : m + 1] = 1
    return _C.from_array(out)


eye_m.override("eager", lambda n, m, dtype, *_: _ones_on_the_diagonal(n, m, dtype))
eye.override("eager", lambda n, dtype, *_: _ones_on_the_diagonal(n, n, dtype))
for _op in (eye_m, eye):
    _op.override("template", True)


def _triangle(name, keep):
    def fn(self, diagonal):
        if self.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        rows, columns = self.shape[-2:]
        i = aten.unsqueeze.default(aten.arange.default(rows, device=self.device), -1)
        j = aten.arange.default(columns, device=self.device)
        zero = aten.scalar_tensor.default(0, dtype=self.dtype, device=self.device)
        return aten.where.self(keep(aten.sub.Tensor(j, i), diagonal), aten.contiguous.default(self), zero)

    return fn


tril = explicit("tril(Tensor self, int diagonal=0) -> Tensor", variants="function method", inplace=True)(
    _triangle("tril", lambda d, k: d <= k)
)
triu = explicit("triu(Tensor self, int diagonal=0) -> Tensor", variants="function method", inplace=True)(
    _triangle("triu", lambda d, k: d >= k)
)
tril.derivative(self=lambda ct, diagonal: aten.tril.default(ct, diagonal))
triu.derivative(self=lambda ct, diagonal: aten.triu.default(ct, diagonal))
