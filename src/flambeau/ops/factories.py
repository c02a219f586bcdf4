"""Factories: tensors made from a rule on the index, and draws from the generator."""

from __future__ import annotations

import math

import numpy as np

from ..base import dtypes
from ..base.shapes import broadcast_shapes
from ..base.symint import SymFloat, is_int, sym_max
from ..core.declare import composite, explicit, factory, random, written
from ..core.operator import namespace

aten = namespace("aten")

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = _OPTIONS + ", MemoryFormat? memory_format=None"


def _default(dtype):
    return dtype or dtypes.get_default_dtype()


def _sized(name, value, options=_OPTIONS):
    """``ones(size)`` and its relatives ``ones_like``, ``new_ones``."""
    factory(
        f"{name}(SymInt[] size, {options}) -> Tensor",
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
_sized("empty", None, _LIKE)


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
    start, end = (aten._to_copy.default(x, dtype=wide) if hasattr(x, "dtype") else x for x in (start, end))
    k = aten.arange.default(_points(steps), dtype=wide, device=device)
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


def _draw(name, extra, method, pick=lambda *a: ()):
    """``rand(size)``-like operators, their ``_like`` forms included."""
    random(
        f"{name}(SymInt[] size, {_OPTIONS}) -> Tensor",
        shape=_size_of,
        dtype=lambda size, dtype, *o: _default(dtype),
        out=True,
    )(lambda gen, shape, dtype, *a: getattr(gen, method)(shape, dtype.np))
    random(
        f"{name}_like(Tensor self, {_LIKE}) -> Tensor",
        shape=lambda self, *o: self.shape,
        dtype=lambda self, dtype, *o: dtype or self.dtype,
    )(lambda gen, shape, dtype, *a: getattr(gen, method)(shape, dtype.np))
    random(
        f"{name}.generator(SymInt[] size, *, Generator? generator, {_OPTIONS[3:]}) -> Tensor",
        shape=_size_of,
        dtype=lambda size, g, dtype, *o: _default(dtype),
        out=True,
    )(lambda gen, shape, dtype, *a: getattr(gen, method)(shape, dtype.np))


_draw("rand", "", "uniform")
_draw("randn", "", "normal")

_INT_OPTIONS = _OPTIONS.replace("dtype=None", "dtype=long")


def _integer_draw(name, sizes, bounds, **kw):
    """``randint`` in a variant: ``bounds(*arguments)`` gives the interval."""

    def draw(gen, shape, dtype, *args):
        low, high = bounds(*args)
        if low >= high:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
        return gen.integers(shape, low, high).astype(dtype.np)

    return random(
        name,
        dtype=lambda *args: sizes(*args)[1] or dtypes.int64,
        shape=lambda *args: sizes(*args)[0],
        out=not name.startswith("randint_like"),
        **kw,
    )(draw)


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
    out = list(range(n))
    for i, word in enumerate(gen.words(n - 1).tolist() if n > 1 else ()):
        j = i + word % (n - i)
        out[i], out[j] = out[j], out[i]
    return np.array(out, dtype=dtype.np)


random(
    f"randperm.generator(SymInt n, *, Generator? generator, {_INT_OPTIONS[3:]}) -> Tensor",
    shape=lambda n, *o: (n,),
    dtype=lambda n, generator, dtype, *o: dtype or dtypes.int64,
)(randperm.definition.draw)


def _filled(functional, inplace, draw, *, variants="method"):
    """A draw of the shape of ``self``, and the operator that writes it into ``self`` (``normal_functional``, ``normal_``). Where nothing but numbers
    decides about it, the values come in the order of memory."""
    order = () if "Tensor p" in functional else ("memory_order",)
    op = random(
        functional, shape=lambda self, *o: self.shape, dtype=lambda self, *o: self.dtype, variants="", tags=order
    )(draw)
    # The old values don't matter: no gradient flows to them.
    op.derivative(self=lambda ct: aten.zeros_like.default(ct))
    written(
        inplace.replace("(Tensor self", "(Tensor(a!) self").replace("-> Tensor", "-> Tensor(a!)"), op, variants=variants
    )
    return op


def _bernoulli_of(gen, shape, dtype, p):
    p = p.numpy(force=True)
    if not np.all((p >= 0) & (p <= 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return gen.bernoulli(shape, np.broadcast_to(p, shape)).astype(dtype.np)


_G = "*, Generator? generator=None) -> Tensor"
_F64 = dtypes.float64.np


def _checking(holds, text, draw):
    """``draw`` after a look at its parameters."""

    def checked(gen, shape, dtype, self, *parameters):
        if not holds(*parameters[:-1]):
            raise RuntimeError(text.format(*parameters))
        return draw(gen, shape, dtype, self, *parameters)

    return checked


def _bernoulli(gen, shape, dtype, self, p, generator):
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return gen.bernoulli(shape, p).astype(dtype.np)


def _log_normal(gen, shape, dtype, self, mean, std, generator):
    return np.exp(gen.normal_sequence(shape) * std + mean).astype(dtype.np)


def _any_integer(gen, shape, dtype, self, generator):
    """Every integer that the dtype counts exactly, starting at 0."""
    bits = {"float32": 25, "float64": 54, "float16": 12, "bfloat16": 9, "bool": 1}.get(dtype.name)
    if bits is None:
        high = np.iinfo(dtype.np).max
        span = int(high) + 1
    else:
        span = 2 ** (bits - 1) + 1 if bits > 1 else 2
    return gen.integers(shape, 0, span).astype(dtype.np)


def _normal_into(gen, shape, dtype, self, mean, std, generator):
    """NOTE: blocks of 16 only for contiguous memory, as in PyTorch; else one by one."""
    if self.is_contiguous() or dtype.is_complex:
        return gen.normal(shape, dtype.np, mean, std)
    return (gen.normal_sequence(shape) * std + mean).astype(dtype.np)


normal_functional = _filled(
    f"normal_functional(Tensor self, float mean=0, float std=1, {_G}",
    f"normal_(Tensor self, float mean=0, float std=1, {_G}",
    _checking(
        lambda mean, std: std >= 0,
        "normal expects std >= 0.0, but found std {1}",
        _normal_into,
    ),
)
_filled(
    f"uniform(Tensor self, float from=0, float to=1, {_G}",
    f"uniform_(Tensor self, float from=0, float to=1, {_G}",
    _checking(
        lambda a, b: a <= b,
        "uniform_ expects to return a [from, to) range, but found from={} > to={}",
        lambda gen, shape, dtype, self, a, b, g: gen.uniform(shape, dtype.np, a, b),
    ),
)
_filled(
    f"bernoulli.p(Tensor self, float p, {_G}",
    f"bernoulli_.float(Tensor self, float p=0.5, {_G}",
    _bernoulli,
    variants="method",
)
_filled(
    f"bernoulli.Tensor(Tensor self, Tensor p, {_G}",
    f"bernoulli_.Tensor(Tensor self, Tensor p, {_G}",
    lambda gen, shape, dtype, self, p, g: _bernoulli_of(gen, shape, dtype, p),
    variants="method",
)
_filled(
    f"exponential(Tensor self, float lambd=1, {_G}",
    f"exponential_(Tensor self, float lambd=1, {_G}",
    _checking(
        lambda lambd: lambd > 0,
        "exponential_ expects lambda > 0.0, but found lambda={}",
        lambda gen, shape, dtype, self, lambd, g: (-np.log1p(-gen.uniform(shape, _F64)) / lambd).astype(dtype.np),
    ),
)
_filled(
    f"geometric(Tensor self, float p, {_G}",
    f"geometric_(Tensor self, float p, {_G}",
    _checking(
        lambda p: 0 < p < 1,
        "geometric_ expects p to be in (0, 1), but got p={}",
        lambda gen, shape, dtype, self, p, g: np.ceil(np.log(gen.uniform(shape, _F64)) / math.log1p(-p)).astype(
            dtype.np
        ),
    ),
)
_filled(
    f"cauchy(Tensor self, float median=0, float sigma=1, {_G}",
    f"cauchy_(Tensor self, float median=0, float sigma=1, {_G}",
    _checking(
        lambda median, sigma: sigma > 0,
        "cauchy_ expects sigma > 0.0, but found sigma={1}",
        lambda gen, shape, dtype, self, median, sigma, g: (
            median + sigma * np.tan(math.pi * (gen.uniform(shape, _F64) - 0.5))
        ).astype(dtype.np),
    ),
)
_filled(
    f"log_normal(Tensor self, float mean=1, float std=2, {_G}",
    f"log_normal_(Tensor self, float mean=1, float std=2, {_G}",
    _checking(lambda mean, std: std > 0, "log_normal_ expects std > 0.0, but found std={1}", _log_normal),
)
_filled(f"random(Tensor self, {_G}", f"random_(Tensor self, {_G}", _any_integer)
_filled(
    f"random.to(Tensor self, int to, {_G}",
    f"random_.to(Tensor self, int to, {_G}",
    lambda gen, shape, dtype, self, to, g: gen.integers(shape, 0, to).astype(dtype.np),
)


@random(
    f"random.from(Tensor self, int from, int? to, {_G}",
    shape=lambda self, *o: self.shape,
    dtype=lambda self, *o: self.dtype,
    variants="",
)
def random_from(gen, shape, dtype, self, low, high, generator):
    return gen.integers(shape, low, int(np.iinfo(dtype.np).max) + 1 if high is None else high).astype(dtype.np)


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


def _normal_of(gen, shape, dtype, mean, std, *_):
    values = gen.normal(shape, dtype.np)
    as_array = lambda x: x.numpy(force=True) if hasattr(x, "numpy") else x  # noqa: E731
    return (values * as_array(std) + as_array(mean)).astype(dtype.np)


random(
    "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    shape=lambda m, s, *o: broadcast_shapes(m.shape, s.shape),
    dtype=lambda m, s, *o: m.dtype,
    variants="function",
    out=True,
    out_rules="apart",
)(_normal_of)
random(
    "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
    shape=lambda m, s, *o: m.shape,
    dtype=lambda m, *o: m.dtype,
    variants="function",
    out=True,
    out_rules="apart",
)(_normal_of)
random(
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    shape=lambda m, s, *o: s.shape,
    dtype=lambda m, s, *o: s.dtype,
    variants="function",
    out=True,
    out_rules="apart",
)(_normal_of)
random(
    f"normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, {_OPTIONS[3:]}) -> Tensor",
    shape=lambda m, s, size, *o: size,
    dtype=lambda m, s, size, g, dtype, *o: _default(dtype),
    variants="function",
    out=True,
    out_rules="apart",
)(lambda gen, shape, dtype, mean, std, *_: gen.normal(shape, dtype.np, mean, std))


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
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        found = "entry < 0" if (p < 0).any() else "entry = infinity or NaN"
        raise RuntimeError(f"invalid multinomial distribution (encountering probability {found})")
    if (p.sum(-1) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > p.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if replacement and num_samples != 1:
        rows = p.reshape(-1, p.shape[-1])
        reach = np.cumsum(rows / rows.sum(-1, keepdims=True), -1, dtype=p.dtype)
        reach[:, -1] = 1
        draws = gen.uniform((len(rows), num_samples), _F64)
        return np.stack([np.searchsorted(r, u) for r, u in zip(reach, draws)]).reshape(shape)
    draws = -np.log1p(-gen.uniform((1, *p.shape), _F64))
    with np.errstate(divide="ignore"):
        times = draws / p
    return np.ascontiguousarray(np.argsort(times[0], axis=-1, kind="stable")[..., :num_samples])
