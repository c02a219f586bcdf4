"""Factories: tensors made from a rule on the index, and draws from the generator."""

from __future__ import annotations

import math

import numpy as np

from .. import _C
from ..base import dtypes, order, select
from ..base.shapes import broadcast_shapes, contiguous_strides, is_contiguous
from ..base.symint import SymFloat, is_int, sym_max
from ..core.declare import composite, explicit, factory, random, written
from ..core.definition import TensorMeta
from ..core.generator import BERNOULLI, NORMAL, SEQUENCE, UNIFORM
from ..core.layouts import made_strides
from ..core.operator import namespace

aten = namespace("aten")

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = _OPTIONS + ", MemoryFormat? memory_format=None"


def _default(dtype):
    return dtype or dtypes.get_default_dtype()


def _sized(name, value, options=_OPTIONS, overload=""):
    """``ones(size)`` and its relatives ``ones_like``, ``new_ones``."""
    factory(
        f"{name}{overload}(SymInt[] size, {options}) -> Tensor",
        shape=lambda size, *o: size,
        dtype=lambda size, dtype, *o: _default(dtype),
    )(value)

    def like(self, dtype, layout, device, pin_memory, memory_format):
        return list(self.shape), dtype or self.dtype, device or self.device

    body = None if value is None else lambda s, i, *a: value(s, i, *a)
    factory(
        f"{name}_like(Tensor self, {_LIKE}) -> Tensor",
        shape=lambda self, *o: self.shape,
        dtype=lambda self, dtype, *o: dtype or self.dtype,
    )(body)
    factory(
        f"new_{name}(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor",
        shape=lambda self, size, *o: size,
        dtype=lambda self, size, dtype, *o: dtype or self.dtype,
        variants="method",
    )(body)


_sized("ones", lambda s, i, *_: 1)
_sized("zeros", lambda s, i, *_: 0)
_sized("empty", None, _LIKE, ".memory_format")


def _full_dtype(value, dtype):
    return dtype or dtypes.of_scalar(value)


@factory(
    f"full(SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    shape=lambda size, *o: size,
    dtype=lambda size, fill_value, dtype, *o: _full_dtype(fill_value, dtype),
)
def full(s, i, size, fill_value, *_):
    return fill_value


@factory(
    f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor",
    shape=lambda self, *o: self.shape,
    dtype=lambda self, v, dtype, *o: dtype or self.dtype,
)
def full_like(s, i, self, fill_value, *_):
    return fill_value


@factory(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    shape=lambda self, size, *o: size,
    dtype=lambda self, size, v, dtype, *o: dtype or self.dtype,
    variants="method",
)
def new_full(s, i, self, size, fill_value, *_):
    return fill_value


@factory(
    f"scalar_tensor(Scalar s, {_OPTIONS}) -> Tensor", shape=lambda s, *o: (), dtype=lambda s, dtype, *o: _default(dtype)
)
def scalar_tensor(s, i, value, *_):
    return value


def _arange_length(start, end, step):
    if any(isinstance(v, float) and not math.isfinite(v) for v in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if all(map(is_int, (start, end, step))):
        return (sym_max(-((start - end) // step), 0),)
    return (max(math.ceil((end - start) / step), 0),)


def _in_kind(dtype, *values):
    """The bounds of a range of integers are integers."""
    return values if dtype is None or dtype.category >= 2 else [v if is_int(v) else math.trunc(v) for v in values]


def _steps_length(start, end, step, dtype):
    if step != 0 and _in_kind(dtype, step)[0] == 0:
        raise ValueError("step must be nonzero")
    finite = all(not isinstance(v, float) or math.isfinite(v) for v in (start, end))
    # NOTE: of narrower integers PyTorch counts the steps before it cuts the bounds.
    cut = finite and dtype is dtypes.int64
    return _arange_length(*(_in_kind(dtype, start, end, step) if cut else (start, end, step)))


def _arange_dtype(*values):
    return dtypes.get_default_dtype() if any(isinstance(v, (float, SymFloat)) for v in values) else dtypes.int64


@factory(
    f"arange(Scalar end, {_OPTIONS}) -> Tensor",
    shape=lambda end, dtype, *o: _steps_length(0, end, 1, dtype),
    dtype=lambda end, dtype, *o: dtype or _arange_dtype(end),
)
def arange(s, i, end, *_):
    return i[0]


@factory(
    f"arange.start(Scalar start, Scalar end, {_OPTIONS}) -> Tensor",
    shape=lambda start, end, dtype, *o: _steps_length(start, end, 1, dtype),
    dtype=lambda start, end, dtype, *o: dtype or _arange_dtype(start, end),
)
def arange_start(s, i, start, end, dtype, *_):
    return s.add(i[0], *_in_kind(dtype, start))


@factory(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor",
    shape=lambda start, end, step, dtype, *o: _steps_length(start, end, step, dtype),
    dtype=lambda start, end, step, dtype, *o: dtype or _arange_dtype(start, end, step),
)
def arange_step(s, i, start, end, step, dtype, *_):
    start, step = _in_kind(dtype, start, step)
    return s.add(s.mul(i[0], step), start)


def _points(steps):
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return steps


@factory(
    f"linspace(Scalar start, Scalar end, int steps, {_OPTIONS}) -> Tensor",
    shape=lambda start, end, steps, *o: (_points(steps),),
    dtype=lambda start, end, steps, dtype, *o: _default(dtype),
    out_rules="dtype",
)
def linspace(s, i, start, end, steps, *_):
    """From both ends, so that the last value is exactly ``end``."""
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    low, high = s.add(s.mul(i[0], step), start), s.sub(end, s.mul(s.sub(steps - 1, i[0]), step))
    return s.where(s.lt(i[0], steps // 2), low, high) if steps > 1 else s.add(s.mul(i[0], 0.0), start)


def _between(start, end, steps, dtype, layout, device, pin_memory):
    """linspace of ends that are tensors without dimensions."""
    if any(hasattr(x, "ndim") and x.ndim for x in (start, end)):
        raise RuntimeError("linspace only supports 0-dimensional start and end tensors")
    made = _default(dtype)
    wide = made if made.category >= 2 else dtypes.float64
    start, end = (
        aten.detach.default(aten._to_copy.default(x, dtype=wide)) if hasattr(x, "dtype") else x for x in (start, end)
    )
    given = (x.device for x in (start, end) if hasattr(x, "device"))
    k = aten.arange.default(_points(steps), dtype=wide, device=device or next(given, None))
    step = aten.div.Tensor(end - start, max(steps - 1, 1))
    low, high = (
        aten.add.Tensor(aten.mul.Tensor(k, step), start),
        end - aten.mul.Tensor(aten.rsub.Scalar(k, steps - 1), step),
    )
    out = aten.where.self(aten.lt.Scalar(k, steps // 2), low, high) if steps > 1 else low
    return out if made is wide else aten._to_copy.default(out, dtype=made)


for _overload, _first, _second in (
    ("Tensor_Tensor", "Tensor", "Tensor"),
    ("Tensor_Scalar", "Tensor", "Scalar"),
    ("Scalar_Tensor", "Scalar", "Tensor"),
):
    composite(
        f"linspace.{_overload}({_first} start, {_second} end, int steps, {_OPTIONS}) -> Tensor",
        variants="function",
        out_rules="dtype exact",
    )(_between)


def _eye_shape(n, m):
    for name, k in (("n", n), ("m", m)):
        if k < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {k}")
    return n, m


@factory(
    f"eye.m(SymInt n, SymInt m, {_OPTIONS}) -> Tensor",
    shape=lambda n, m, *o: _eye_shape(n, m),
    dtype=lambda n, m, dtype, *o: _default(dtype),
)
def eye_m(s, i, n, m, *_):
    return s.where(s.eq(i[0], i[1]), 1, 0)


@factory(
    f"eye(SymInt n, {_OPTIONS}) -> Tensor",
    shape=lambda n, *o: _eye_shape(n, n),
    dtype=lambda n, dtype, *o: _default(dtype),
)
def eye(s, i, n, *_):
    return s.where(s.eq(i[0], i[1]), 1, 0)


def _ones_on_the_diagonal(n, m, dtype):
    n, m = _eye_shape(n, m)
    out = np.zeros((n, m), _default(dtype).np)
    out.reshape(-1)[: min(n, m) * m : m + 1] = 1
    return _C.from_array(out)


eye_m.override("eager", lambda n, m, dtype, *_: _ones_on_the_diagonal(n, m, dtype))
eye.override("eager", lambda n, dtype, *_: _ones_on_the_diagonal(n, n, dtype))


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

# ---- random ----------------------------------------------------------------------------------------------------------------

_size_of = lambda size, *o: size  # noqa: E731


def _draw(name, method, what):
    """``rand(size)``-like operators, their ``_like`` forms included."""
    draw = lambda gen, shape, dtype, *a: getattr(gen, method)(shape, dtype.np)  # noqa: E731
    made = [
        random(
            f"{name}(SymInt[] size, {_OPTIONS}) -> Tensor",
            shape=_size_of,
            dtype=lambda size, dtype, *o: _default(dtype),
            out=True,
        )(draw),
        random(
            f"{name}_like(Tensor self, {_LIKE}) -> Tensor",
            shape=lambda self, *o: self.shape,
            dtype=lambda self, dtype, *o: dtype or self.dtype,
        )(draw),
        random(
            f"{name}.generator(SymInt[] size, *, Generator? generator, {_OPTIONS[3:]}) -> Tensor",
            shape=_size_of,
            dtype=lambda size, g, dtype, *o: _default(dtype),
            out=True,
        )(draw),
    ]
    for op in made:
        op.override("drawn", lambda lowering, val, strides, *a: lowering.draw(val, what, 0.0, 1.0, strides))


_draw("rand", "uniform", UNIFORM)
_draw("randn", "normal", NORMAL)

_INT_OPTIONS = _OPTIONS.replace("dtype=None", "dtype=long")


def _integer_draw(name, sizes, bounds, **kw):
    """``randint`` in a variant: ``bounds(*arguments)`` gives the interval."""

    def draw(gen, shape, dtype, *args):
        low, high = bounds(*args)
        if low >= high:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
        return gen.integers(shape, low, high).astype(dtype.np)

    op = random(
        name,
        dtype=lambda *args: sizes(*args)[1] or dtypes.int64,
        shape=lambda *args: sizes(*args)[0],
        out=not name.startswith("randint_like"),
        **kw,
    )(draw)
    op.override("drawn", lambda lowering, val, strides, *a: lowering.draw_integers(val, *bounds(*a), strides))


_integer_draw(
    f"randint(SymInt high, SymInt[] size, {_INT_OPTIONS}) -> Tensor",
    lambda high, size, dtype, *o: (size, dtype),
    lambda high, *o: (0, high),
)
_integer_draw(
    f"randint.low(SymInt low, SymInt high, SymInt[] size, {_INT_OPTIONS}) -> Tensor",
    lambda low, high, size, dtype, *o: (size, dtype),
    lambda low, high, *o: (low, high),
)
_integer_draw(
    f"randint.generator(SymInt high, SymInt[] size, *, Generator? generator, {_INT_OPTIONS[3:]}) -> Tensor",
    lambda high, size, g, dtype, *o: (size, dtype),
    lambda high, *o: (0, high),
)
_integer_draw(
    f"randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, {_INT_OPTIONS[3:]}) -> Tensor",
    lambda low, high, size, g, dtype, *o: (size, dtype),
    lambda low, high, *o: (low, high),
)
_integer_draw(
    f"randint_like(Tensor self, SymInt high, {_LIKE}) -> Tensor",
    lambda self, high, dtype, *o: (self.shape, dtype or self.dtype),
    lambda self, high, *o: (0, high),
)
_integer_draw(
    f"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, {_LIKE}) -> Tensor",
    lambda self, low, high, dtype, *o: (self.shape, dtype or self.dtype),
    lambda self, low, high, *o: (low, high),
)


@random(
    f"randperm(SymInt n, {_INT_OPTIONS}) -> Tensor",
    shape=lambda n, *o: (n,),
    dtype=lambda n, dtype, *o: dtype or dtypes.int64,
    out=True,
)
def randperm(gen, shape, dtype, n, *_):
    """Fisher and Yates from the front: element i changes place with one of those from i on."""
    return gen.permutation(n).astype(dtype.np, copy=False)


randperm_from = random(
    f"randperm.generator(SymInt n, *, Generator? generator, {_INT_OPTIONS[3:]}) -> Tensor",
    shape=lambda n, *o: (n,),
    dtype=lambda n, generator, dtype, *o: dtype or dtypes.int64,
)(randperm.definition.draw)
for _op in (randperm, randperm_from):
    _op.override("drawn", lambda lowering, val, *a: lowering.permutation(val))


def _filled(functional, inplace, draw, drawn, *, variants="method", refuse=None):
    """A draw of the shape of ``self``, and the operator that writes it into ``self`` (``normal_functional``, ``normal_``). The values come in the
    order of memory. ``drawn(lowering, val, strides, *arguments)``: the same in a compiled graph, for parameters
    that ``draw`` doesn't refuse. ``refuse(dtype)``: the error for a dtype that it isn't defined for, or None."""

    def dtype(self, *rest):
        error = None if refuse is None else refuse(self.dtype)
        if error is not None:
            raise error
        return self.dtype

    op = random(
        functional,
        shape=lambda self, *o: self.shape,
        dtype=dtype,
        variants="",
        tags=("memory_order",),
    )(draw)
    # The old values don't matter: no gradient flows to them.
    op.derivative(self=lambda ct: aten.zeros_like.default(ct))
    op.override("drawn", drawn)
    written(
        inplace.replace("(Tensor self", "(Tensor(a!) self").replace("-> Tensor", "-> Tensor(a!)"), op, variants=variants
    )
    return op


def _bernoulli_of(gen, shape, dtype, p):
    p = p.numpy(force=True)
    if not np.all((p >= 0) & (p <= 1)):
        raise RuntimeError(_NO_PROBABILITY)
    return gen.bernoulli(shape, np.broadcast_to(p, shape)).astype(dtype.np)


def _continuous(name: str, distribution: str = ""):
    """What refuses integers and booleans: of a distribution with a name, or of a kernel."""

    def refuse(dtype):
        if dtype.category >= 2:
            return None
        if distribution:
            return RuntimeError(
                f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point but you specified {dtype}"
            )
        return NotImplementedError(f"{name}: not implemented for {dtype}")

    return refuse


_G = "*, Generator? generator=None) -> Tensor"
_F64 = dtypes.float64.np


def _checking(holds, text, draw, drawn=None):
    """``draw`` after a look at its parameters; (that, ``drawn`` after the same look) where the latter is given."""

    def checked(gen, shape, dtype, self, *parameters):
        if not holds(*parameters[:-1]):
            raise RuntimeError(text.format(*parameters))
        return draw(gen, shape, dtype, self, *parameters)

    def lowered(lowering, val, strides, self, *parameters):
        if any(hasattr(p, "__sym__") for p in parameters) or not holds(*parameters[:-1]):
            raise NotImplementedError("its parameters are refused, or known at the call only")
        return drawn(lowering, val, strides, self, *parameters)

    return checked, lowered


def _by_inversion(fn):
    """In a graph: ``fn(handler, u, *parameters)`` of uniform doubles."""

    def drawn(lowering, val, strides, self, *parameters):
        u = lowering.draw(val, UNIFORM, 0.0, 1.0, strides, dtypes.float64)
        return lowering.mapped(lambda s, x: fn(s, x, *parameters[:-1]), u, val)

    return drawn


def _bernoulli_in_order(gen, shape, dtype, self, p, generator):
    """In the order of the memory of ``self``."""
    p = np.broadcast_to(p.numpy(force=True), shape)
    strides = made_strides(shape, (self, None))
    p = p.transpose(sorted(range(len(shape)), key=lambda k: -strides[k]))
    return _bernoulli_of(gen, p.shape, dtype, _C.from_array(p)).reshape(shape)


def _bernoulli_of_drawn(lowering, val, strides, self, p):
    if not p.dtype.is_floating_point:
        raise NotImplementedError("probabilities that are integers")
    wide = dtypes.float64 if p.dtype is dtypes.float64 else dtypes.float32
    u = lowering.draw(val, UNIFORM, 0.0, 1.0, strides, wide)

    def below(s, u, p):
        fits = lowering.expect(s.logical_and(s.ge(p, 0.0), s.le(p, 1.0)), _NO_PROBABILITY)
        return s.logical_and(fits, s.lt(u, p))

    return lowering.mapped(below, u, val, p)


_NO_PROBABILITY = "Expected p_in >= 0 && p_in <= 1 to be true, but got false."


def _log_normal(gen, shape, dtype, self, mean, std, generator):
    return np.exp(gen.normal_sequence(shape) * std + mean).astype(dtype.np)


def _exact_integers(dtype) -> int:
    """How many integers from 0 on the dtype counts exactly."""
    bits = {"float32": 25, "float64": 54, "float16": 12, "bfloat16": 9, "bool": 1}.get(dtype.name)
    if bits is None:
        return int(np.iinfo(dtype.np).max) + 1
    return 2 ** (bits - 1) + 1 if bits > 1 else 2


def _normal_into(gen, shape, dtype, self, mean, std, generator):
    """NOTE: blocks of 16 only for contiguous memory, as in PyTorch; else one by one."""
    if self.is_contiguous() or dtype.is_complex:
        return gen.normal(shape, dtype.np, mean, std)
    return (gen.normal_sequence(shape) * std + mean).astype(dtype.np)


def _normal_drawn(lowering, val, strides, self, mean, std, generator):
    if is_contiguous(self.shape, self.stride()):
        return lowering.draw(val, NORMAL, mean, std, strides)
    return lowering.mapped(
        lambda s, x: s.add(s.mul(x, std), mean), lowering.draw(val, SEQUENCE, 0.0, 1.0, strides, dtypes.float64), val
    )


_filled(
    f"normal_functional(Tensor self, float mean=0, float std=1, {_G}",
    f"normal_(Tensor self, float mean=0, float std=1, {_G}",
    *_checking(
        lambda mean, std: std >= 0,
        "normal expects std >= 0.0, but found std {1}",
        _normal_into,
        _normal_drawn,
    ),
    refuse=_continuous("normal_"),
)
_filled(
    f"uniform(Tensor self, float from=0, float to=1, {_G}",
    f"uniform_(Tensor self, float from=0, float to=1, {_G}",
    *_checking(
        lambda a, b: a <= b,
        "uniform_ expects to return a [from, to) range, but found from={} > to={}",
        lambda gen, shape, dtype, self, a, b, g: gen.uniform(shape, dtype.np, a, b),
        lambda lowering, val, strides, self, a, b, g: lowering.draw(val, UNIFORM, a, b - a, strides),
    ),
    refuse=_continuous("uniform_"),
)
_filled(
    f"bernoulli.p(Tensor self, float p, {_G}",
    f"bernoulli_.float(Tensor self, float p=0.5, {_G}",
    *_checking(
        lambda p: not isinstance(p, (int, float)) or 0 <= p <= 1,
        "bernoulli_ expects p to be in [0, 1], but got p={}",
        lambda gen, shape, dtype, self, p, g: gen.bernoulli(shape, p).astype(dtype.np),
        lambda lowering, val, strides, self, p, g: lowering.mapped(
            lambda s, x: x, lowering.draw(val, BERNOULLI, p, 0.0, strides), val
        ),
    ),
)
_filled(
    f"bernoulli.Tensor(Tensor self, Tensor p, {_G}",
    f"bernoulli_.Tensor(Tensor self, Tensor p, {_G}",
    _bernoulli_in_order,
    lambda lowering, val, strides, self, p, g: _bernoulli_of_drawn(lowering, val, strides, self, p),
)
_filled(
    f"exponential(Tensor self, float lambd=1, {_G}",
    f"exponential_(Tensor self, float lambd=1, {_G}",
    *_checking(
        lambda lambd: lambd > 0,
        "exponential_ expects lambda > 0.0, but found lambda={}",
        lambda gen, shape, dtype, self, lambd, g: (-np.log1p(-gen.uniform(shape, _F64)) / lambd).astype(dtype.np),
        _by_inversion(lambda s, u, lambd: s.div(s.neg(s.log1p(s.neg(u))), lambd)),
    ),
    refuse=_continuous("exponential_", "Exponential"),
)
_filled(
    f"geometric(Tensor self, float p, {_G}",
    f"geometric_(Tensor self, float p, {_G}",
    *_checking(
        lambda p: 0 < p < 1,
        "geometric_ expects p to be in (0, 1), but got p={}",
        lambda gen, shape, dtype, self, p, g: np.ceil(np.log(gen.uniform(shape, _F64)) / math.log1p(-p)).astype(
            dtype.np
        ),
        _by_inversion(lambda s, u, p: s.ceil(s.div(s.log(u), math.log1p(-p)))),
    ),
    refuse=lambda dtype: (
        NotImplementedError("geometric_: not implemented for torch.bool") if dtype.category == 0 else None
    ),
)
_filled(
    f"cauchy(Tensor self, float median=0, float sigma=1, {_G}",
    f"cauchy_(Tensor self, float median=0, float sigma=1, {_G}",
    *_checking(
        lambda median, sigma: sigma > 0,
        "cauchy_ expects sigma > 0.0, but found sigma={1}",
        lambda gen, shape, dtype, self, median, sigma, g: (
            median + sigma * np.tan(math.pi * (gen.uniform(shape, _F64) - 0.5))
        ).astype(dtype.np),
        _by_inversion(lambda s, u, median, sigma: s.add(s.mul(s.tan(s.mul(s.sub(u, 0.5), math.pi)), sigma), median)),
    ),
    refuse=_continuous("cauchy_", "Cauchy"),
)
_filled(
    f"log_normal(Tensor self, float mean=1, float std=2, {_G}",
    f"log_normal_(Tensor self, float mean=1, float std=2, {_G}",
    *_checking(
        lambda mean, std: std > 0,
        "log_normal_ expects std > 0.0, but found std={1}",
        _log_normal,
        lambda lowering, val, strides, self, mean, std, g: lowering.mapped(
            lambda s, x: s.exp(s.add(s.mul(x, std), mean)),
            lowering.draw(val, SEQUENCE, 0.0, 1.0, strides, dtypes.float64),
            val,
        ),
    ),
    refuse=_continuous("log_normal_"),
)
_filled(
    f"random(Tensor self, {_G}",
    f"random_(Tensor self, {_G}",
    lambda gen, shape, dtype, *_: gen.integers(shape, 0, _exact_integers(dtype)).astype(dtype.np),
    lambda lowering, val, strides, *_: lowering.draw_integers(val, 0, _exact_integers(val.dtype), strides),
)
_filled(
    f"random.to(Tensor self, int to, {_G}",
    f"random_.to(Tensor self, int to, {_G}",
    lambda gen, shape, dtype, self, to, g: gen.integers(shape, 0, to).astype(dtype.np),
    lambda lowering, val, strides, self, to, g: lowering.draw_integers(val, 0, to, strides),
)


@random(
    f"random.from(Tensor self, int from, int? to, {_G}",
    shape=lambda self, *o: self.shape,
    dtype=lambda self, *o: self.dtype,
    variants="",
    tags=("memory_order",),
)
def random_from(gen, shape, dtype, self, low, high, generator):
    return gen.integers(shape, low, int(np.iinfo(dtype.np).max) + 1 if high is None else high).astype(dtype.np)


@random_from.override("drawn")
def _random_from_drawn(lowering, val, strides, self, low, high, generator):
    return lowering.draw_integers(val, low, int(np.iinfo(val.dtype.np).max) + 1 if high is None else high, strides)


written("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)", random_from)


@random(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    shape=lambda self, *o: self.shape,
    dtype=lambda self, *o: self.dtype,
    variants="function method",
    out=True,
    out_rules="any apart",
)
def bernoulli(gen, shape, dtype, self, generator):
    return _bernoulli_of(gen, shape, dtype, self)


bernoulli.derivative(self=lambda ct: aten.zeros_like.default(ct))
bernoulli.override(
    "drawn", lambda lowering, val, strides, self, generator: _bernoulli_of_drawn(lowering, val, strides, self, self)
)


def _nothing(like):
    """The gradient by a parameter of what is drawn."""
    return aten.zeros.default(list(like.shape), dtype=like.dtype, device=like.device)


def _normal_of(gen, shape, dtype, mean, std, *_):
    values = gen.normal(shape, dtype.np)
    as_array = lambda x: x.numpy(force=True) if hasattr(x, "numpy") else x  # noqa: E731
    return (values * as_array(std) + as_array(mean)).astype(dtype.np)


def _normal_of_drawn(lowering, val, strides, mean, std, *_):
    if val.dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"mean and deviation in {val.dtype}")
    tensors = [x for x in (mean, std) if hasattr(x, "dtype")]
    if any(x.dtype is not val.dtype for x in tensors):
        raise NotImplementedError("mean and deviation of several dtypes")

    def scaled(s, x, *given):
        given = list(given)
        m, d = (given.pop(0) if hasattr(p, "dtype") else float(p) for p in (mean, std))
        return s.add(s.mul(x, d), m)

    return lowering.mapped(scaled, lowering.draw(val, NORMAL, 0.0, 1.0, None), val, *tensors)


for _mean, _std, _name in (("Tensor mean", "Tensor std", "Tensor_Tensor"), ("Tensor mean", "float std=1", "Tensor_float"),
                           ("float mean", "Tensor std", "float_Tensor")):  # fmt: skip
    _op = random(
        f"normal.{_name}({_mean}, {_std}, *, Generator? generator=None) -> Tensor",
        shape=lambda m, s, *o: broadcast_shapes(*(x.shape for x in (m, s) if hasattr(x, "shape"))),
        dtype=lambda m, s, *o: (m if hasattr(m, "dtype") else s).dtype,
        variants="function",
        out=True,
        out_rules="apart",
    )(_normal_of)
    _op.override("drawn", _normal_of_drawn)
    _op.derivative(mean=lambda ct, mean_like: _nothing(mean_like), std=lambda ct, std_like: _nothing(std_like))
random(
    f"normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, {_OPTIONS[3:]}) -> Tensor",
    shape=lambda m, s, size, *o: size,
    dtype=lambda m, s, size, g, dtype, *o: _default(dtype),
    variants="function",
    out=True,
    out_rules="apart",
)(lambda gen, shape, dtype, mean, std, *_: gen.normal(shape, dtype.np, mean, std)).override(
    "drawn", lambda lowering, val, strides, mean, std, *_: lowering.draw(val, NORMAL, mean, std)
)


@random(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    shape=lambda self, n, *o: (*self.shape[:-1], n),
    dtype=lambda self, *o: dtypes.int64,
    variants="function method",
    out=True,
    out_rules="exact",
)
def multinomial(gen, shape, dtype, self, num_samples, replacement, *_):
    """With replacement, more than one sample: the first category whose cumulative probability reaches a uniform draw. Else: an exponential race, in which
    category i wins when E_i / p_i is the smallest of independent exponential draws E_i."""
    p = self.detach().numpy()
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {self.dtype}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if p.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if p.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if not np.isfinite(p).all() or (p < 0).any():
        if not replacement or num_samples == 1:
            raise RuntimeError(_NO_PROBABILITIES)
        found = "entry < 0" if (p < 0).any() else "entry = infinity or NaN"
        raise RuntimeError(_NO_ENTRY.format(found))
    if (p.sum(-1) <= 0).any():
        raise RuntimeError(_NO_MASS)
    if not replacement and num_samples > p.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if replacement and num_samples != 1:
        rows = p.reshape(-1, p.shape[-1])
        draws = gen.uniform((len(rows), num_samples), _F64)
        return select.categories(rows, draws).reshape(shape)
    draws = -np.log1p(-gen.uniform((1, *p.shape), _F64))
    with np.errstate(divide="ignore"):
        times = draws / p
    return np.ascontiguousarray(np.argsort(times[0], axis=-1, kind="stable")[..., :num_samples])


_NO_ENTRY = "invalid multinomial distribution (encountering probability {})"
_NO_PROBABILITIES = "probability tensor contains either `inf`, `nan` or element < 0"
_NO_MASS = "invalid multinomial distribution (sum of probabilities <= 0)"


@multinomial.override("drawn")
def _multinomial_drawn(lowering, val, strides, self, num_samples, replacement, *_):
    """The exponential race; what the eager draw refuses for its sizes or its dtype is left to it."""
    if not self.dtype.is_floating_point or self.ndim not in (1, 2):
        raise NotImplementedError("draws that are refused")
    n = self.sizes[-1]
    if replacement and num_samples != 1:
        if type(n) is not int or type(num_samples) is not int or num_samples < 1 or not 1 <= n <= 1 << 24:
            raise NotImplementedError("as many samples as may be refused")
        rows = (
            self if self.ndim == 2 else lowering.lazy((1, n), self.dtype, lambda c: self.at((c[1],)), device=val.device)
        )
        shape = (rows.sizes[0], num_samples)
        draws = lowering.draw(
            TensorMeta(shape, contiguous_strides(shape), dtypes.float64, val.device), UNIFORM, dtype=dtypes.float64
        )
        made = lowering.special.categories(
            lowering, rows, draws, (*map(_NO_ENTRY.format, ("entry < 0", "entry = infinity or NaN")), _NO_MASS)
        )
        return (
            made
            if self.ndim == 2
            else lowering.lazy(shape[1:], dtypes.int64, lambda c: made.at((0, *c)), device=val.device)
        )
    if type(n) is not int or type(num_samples) is not int or not 1 <= num_samples <= n <= 1 << 24:
        raise NotImplementedError("as many samples as may be refused")
    times = TensorMeta(self.sizes, contiguous_strides(self.sizes), dtypes.float64, val.device)

    def time(s, u, p):
        holds = lowering.expect(s.logical_and(s.ge(p, 0.0), s.lt(p, math.inf)), _NO_PROBABILITIES)
        wins = s.logical_and(holds, s.gt(p, 0.0))
        return s.where(wins, s.div(s.neg(s.log1p(s.neg(u))), s.where(wins, p, 1.0)), math.inf)

    race = lowering.mapped(time, lowering.draw(times, UNIFORM, dtype=dtypes.float64), times, self)
    first, places = lowering.arrange((times, times), order.FIRST, race, -1, k=num_samples)
    begin = lowering.lazy(places.sizes, first.dtype, lambda c: first.at((*c[:-1], 0)), device=val.device)
    return lowering.mapped(
        lambda s, place, least: s.where(lowering.expect(s.lt(least, math.inf), _NO_MASS), place, 0), places, val, begin
    )
