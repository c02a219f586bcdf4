"""Factories: tensors made from a rule on the index, and draws from the generator."""

from __future__ import annotations

import math

import numpy as np

from ..base import dtypes
from ..core.declare import composite, explicit, factory, random
from ..core.operator import namespace

aten = namespace("aten")

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = _OPTIONS + ", MemoryFormat? memory_format=None"


def _default(dtype):
    return dtype or dtypes.get_default_dtype()


def _sized(name, value):
    """``ones(size)`` and its relatives ``ones_like``, ``new_ones``."""
    factory(f"{name}(SymInt[] size, {_OPTIONS}) -> Tensor", shape=lambda size, *o: size, dtype=lambda size, dtype, *o: _default(dtype))(value)

    def like(self, dtype, layout, device, pin_memory, memory_format):
        return list(self.shape), dtype or self.dtype, device or self.device

    body = None if value is None else lambda s, i, *a: value(s, i, *a)
    factory(f"{name}_like(Tensor self, {_LIKE}) -> Tensor", shape=lambda self, *o: self.shape, dtype=lambda self, dtype, *o: dtype or self.dtype)(body)
    factory(f"new_{name}(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor", shape=lambda self, size, *o: size,
            dtype=lambda self, size, dtype, *o: dtype or self.dtype, variants="method")(body)


_sized("ones", lambda s, i, *_: 1)
_sized("zeros", lambda s, i, *_: 0)
_sized("empty", None)


def _full_dtype(value, dtype):
    return dtype or dtypes.of_scalar(value)


@factory(f"full(SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor", shape=lambda size, *o: size,
         dtype=lambda size, fill_value, dtype, *o: _full_dtype(fill_value, dtype))
def full(s, i, size, fill_value, *_):
    return fill_value


@factory(f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor", shape=lambda self, *o: self.shape,
         dtype=lambda self, v, dtype, *o: dtype or self.dtype)
def full_like(s, i, self, fill_value, *_):
    return fill_value


@factory(f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor", shape=lambda self, size, *o: size,
         dtype=lambda self, size, v, dtype, *o: dtype or self.dtype, variants="method")
def new_full(s, i, self, size, fill_value, *_):
    return fill_value


@factory(f"scalar_tensor(Scalar s, {_OPTIONS}) -> Tensor", shape=lambda s, *o: (), dtype=lambda s, dtype, *o: _default(dtype))
def scalar_tensor(s, i, value, *_):
    return value


def _arange_length(start, end, step):
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return (max(math.ceil((end - start) / step), 0),)


def _arange_dtype(*values):
    return dtypes.get_default_dtype() if any(isinstance(v, float) for v in values) else dtypes.int64


@composite(f"arange(Scalar end, {_OPTIONS}) -> Tensor", variants="function")
def arange(end, dtype, layout, device, pin_memory):
    return aten.arange.start_step(0, end, 1, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)


@composite(f"arange.start(Scalar start, Scalar end, {_OPTIONS}) -> Tensor", variants="function")
def arange_start(start, end, dtype, layout, device, pin_memory):
    return aten.arange.start_step(start, end, 1, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)


@factory(f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor", shape=lambda start, end, step, *o: _arange_length(start, end, step),
         dtype=lambda start, end, step, dtype, *o: dtype or _arange_dtype(start, end, step))
def arange_step(s, i, start, end, step, *_):
    return s.add(s.mul(i[0], step), start)


@factory(f"linspace(Scalar start, Scalar end, int steps, {_OPTIONS}) -> Tensor", shape=lambda start, end, steps, *o: (steps,),
         dtype=lambda start, end, steps, dtype, *o: _default(dtype))
def linspace(s, i, start, end, steps, *_):
    """From both ends, so that the last value is exactly ``end``."""
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    low, high = s.add(s.mul(i[0], step), start), s.sub(end, s.mul(s.sub(steps - 1, i[0]), step))
    return s.where(s.lt(i[0], steps // 2), low, high) if steps > 1 else s.add(s.mul(i[0], 0.0), start)


@factory(f"eye.m(SymInt n, SymInt m, {_OPTIONS}) -> Tensor", shape=lambda n, m, *o: (n, m), dtype=lambda n, m, dtype, *o: _default(dtype))
def eye_m(s, i, n, m, *_):
    return s.where(s.eq(i[0], i[1]), 1, 0)


@factory(f"eye(SymInt n, {_OPTIONS}) -> Tensor", shape=lambda n, *o: (n, n), dtype=lambda n, dtype, *o: _default(dtype))
def eye(s, i, n, *_):
    return s.where(s.eq(i[0], i[1]), 1, 0)


def _triangle(keep):
    def fn(self, diagonal):
        rows, columns = self.shape[-2:]
        i = aten.unsqueeze.default(aten.arange.default(rows, device=self.device), -1)
        j = aten.arange.default(columns, device=self.device)
        return aten.where.ScalarOther(keep(aten.sub.Tensor(j, i), diagonal), self, 0)

    return fn


tril = explicit("tril(Tensor self, int diagonal=0) -> Tensor", variants="function method", inplace=True)(_triangle(lambda d, k: d <= k))
triu = explicit("triu(Tensor self, int diagonal=0) -> Tensor", variants="function method", inplace=True)(_triangle(lambda d, k: d >= k))
tril.derivative(self=lambda ct, diagonal: aten.tril.default(ct, diagonal))
triu.derivative(self=lambda ct, diagonal: aten.triu.default(ct, diagonal))

# ---- random ----------------------------------------------------------------------------------------------------------------

_size_of = lambda size, *o: size  # noqa: E731


def _draw(name, extra, method, pick=lambda *a: ()):
    """``rand(size)``-like operators, their ``_like`` forms included."""
    random(f"{name}(SymInt[] size, {_OPTIONS}) -> Tensor", shape=_size_of, dtype=lambda size, dtype, *o: _default(dtype))(
        lambda gen, shape, dtype, *a: getattr(gen, method)(shape, dtype.np))
    random(f"{name}_like(Tensor self, {_LIKE}) -> Tensor", shape=lambda self, *o: self.shape, dtype=lambda self, dtype, *o: dtype or self.dtype)(
        lambda gen, shape, dtype, *a: getattr(gen, method)(shape, dtype.np))
    random(f"{name}.generator(SymInt[] size, *, Generator? generator, {_OPTIONS[3:]}) -> Tensor", shape=_size_of,
           dtype=lambda size, g, dtype, *o: _default(dtype))(lambda gen, shape, dtype, *a: getattr(gen, method)(shape, dtype.np))


_draw("rand", "", "uniform")
_draw("randn", "", "normal")

_INT_OPTIONS = _OPTIONS.replace("dtype=None", "dtype=long")


@random(f"randint(SymInt high, SymInt[] size, *, Generator? generator=None, {_OPTIONS[3:]}) -> Tensor", shape=lambda high, size, *o: size,
        dtype=lambda high, size, g, dtype, *o: dtype or dtypes.int64)
def randint(gen, shape, dtype, high, *_):
    return gen.integers(shape, 0, high).astype(dtype.np)


@random(f"randint.low(SymInt low, SymInt high, SymInt[] size, *, Generator? generator=None, {_OPTIONS[3:]}) -> Tensor", shape=lambda low, high, size, *o: size,
        dtype=lambda low, high, size, g, dtype, *o: dtype or dtypes.int64)
def randint_low(gen, shape, dtype, low, high, *_):
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return gen.integers(shape, low, high).astype(dtype.np)


def _inplace_draw(name, params, draw):
    """``normal_`` and its like: a functional draw of the same shape, and the in-place form derived from it."""
    op = random(f"{name}(Tensor self, {params}, *, Generator? generator=None) -> Tensor", shape=lambda self, *o: self.shape,
                dtype=lambda self, *o: self.dtype, variants="method", inplace=True)(draw)
    # The old values don't matter: no gradient flows to them.
    op.derivative(self=lambda ct: aten.zeros_like.default(ct))
    return op


normal_ = _inplace_draw("normal", "float mean=0, float std=1", lambda gen, shape, dtype, self, mean, std, g: gen.normal(shape, dtype.np, mean, std))
uniform_ = _inplace_draw("uniform", "float from=0, float to=1", lambda gen, shape, dtype, self, a, b, g: gen.uniform(shape, dtype.np, a, b))
bernoulli_p = _inplace_draw("bernoulli.p", "float p=0.5", lambda gen, shape, dtype, self, p, g: (gen.uniform(shape, dtype_f64) < p).astype(dtype.np))
dtype_f64 = dtypes.float64.np
exponential_ = _inplace_draw("exponential", "float lambd=1", lambda gen, shape, dtype, self, lambd, g:
                             (-np.log1p(-gen.uniform(shape, dtype_f64)) / lambd).astype(dtype.np))


@random("multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
        shape=lambda self, n, *o: (*self.shape[:-1], n), dtype=lambda self, *o: dtypes.int64, variants="function method")
def multinomial(gen, shape, dtype, self, num_samples, replacement, *_):
    """An exponential race: category i wins when E_i / p_i is the smallest of independent exponential draws E_i."""
    p = self.numpy()
    if p.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not np.isfinite(p).all() or (p < 0).any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (p.sum(-1) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > p.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    races = num_samples if replacement else 1
    draws = -np.log1p(-gen.uniform((races, *p.shape), dtype_f64))
    with np.errstate(divide="ignore"):
        times = draws / p
    if replacement:
        return np.moveaxis(times.argmin(-1), 0, -1)
    return np.argsort(times[0], axis=-1, kind="stable")[..., :num_samples]
