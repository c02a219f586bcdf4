"""Draws from the generator: uniform, normal and integer ones, permutations, those that fill a tensor, and samples of categories."""

from __future__ import annotations

import math

import numpy as np

from ...base import dtypes, select
from ...base.kernels import Draw, Order
from ...base.quiet import errstate
from ...base.shapes import broadcast_shapes, contiguous_strides, is_contiguous
from ...core.body import TABLE
from ...core.declare import composite, random, written
from ...core.definition import TensorMeta
from ...core.layouts import made_strides
from ...core.operator import namespace
from ..creation.factories import LIKE, OPTIONS, default
from . import draw_rules as rules

aten = namespace("aten")

_size_of = lambda size, *o: size  # noqa: E731


def _normal_values(lowering, val, strides, mean, std, blocks):
    """In a graph: ``Generator.normal``."""
    if blocks:
        return lowering.draw(val, Draw.NORMAL, mean, std, strides)
    drawn = lowering.draw(val, Draw.SEQUENCE, 0.0, 1.0, strides, dtypes.float64)
    return lowering.mapped(lambda s, x: s.add(s.mul(x, std), mean), drawn, val)


def _draw(name, kernel, draw, drawn):
    """``rand(size)``-like operators, their ``_like`` forms included. ``draw(generator, shape, dtype, blocks)``, where ``blocks`` says whether the
    result is row-major; ``drawn(lowering, val, strides, blocks)``: the same in a graph. ``kernel``: what refuses dtypes."""
    known = lambda dtype: rules.only(dtype, rules.FLOATING + rules.COMPLEX, kernel)  # noqa: E731
    plain = lambda gen, shape, dtype, *a: draw(gen, shape, dtype.np, True)  # noqa: E731
    like = lambda gen, shape, dtype, *a: draw(gen, shape, dtype.np, is_contiguous(shape, made_strides(shape, a)))  # noqa: E731
    made = [
        random(
            f"{name}(SymInt[] size, {OPTIONS}) -> Tensor",
            shape=_size_of,
            dtype=lambda size, dtype, *o: known(default(dtype)),
            out=True,
        )(plain),
        random(
            f"{name}_like(Tensor self, {LIKE}) -> Tensor",
            shape=lambda self, *o: self.shape,
            dtype=lambda self, dtype, *o: known(dtype or self.dtype),
        )(like),
        random(
            f"{name}_like.generator(Tensor self, *, Generator? generator, {LIKE[3:]}) -> Tensor",
            shape=lambda self, *o: self.shape,
            dtype=lambda self, g, dtype, *o: known(dtype or self.dtype),
        )(like),
        random(
            f"{name}.generator(SymInt[] size, *, Generator? generator, {OPTIONS[3:]}) -> Tensor",
            shape=_size_of,
            dtype=lambda size, g, dtype, *o: known(default(dtype)),
            out=True,
        )(plain),
    ]
    for op in made:
        op.override(
            "drawn",
            lambda lowering, val, strides, *a: drawn(lowering, val, strides, is_contiguous(val.shape, val.stride())),
        )


_draw(
    "rand",
    "check_uniform_bounds",
    lambda gen, shape, dtype, blocks: gen.uniform(shape, dtype),
    lambda lowering, val, strides, blocks: lowering.draw(val, Draw.UNIFORM, 0.0, 1.0, strides),
)
_draw(
    "randn",
    "normal_kernel_cpu",
    lambda gen, shape, dtype, blocks: gen.normal(shape, dtype, blocks=blocks),
    lambda lowering, val, strides, blocks: _normal_values(lowering, val, strides, 0.0, 1.0, blocks),
)

_INT_OPTIONS = OPTIONS.replace("dtype=None", "dtype=long")


def _integers(gen, shape, dtype, low, high):
    return gen.integers(shape, low, high).astype(dtype.np)


def _interval_drawn(find):
    """In a graph: integers of the interval that ``find(dtype, *arguments)`` gives, unless it refuses them."""

    def drawn(lowering, val, strides, *args):
        if any(hasattr(a, "__sym__") for a in args):
            raise NotImplementedError("an interval that is known at the call only")
        try:
            low, high = find(val.dtype, *args)
        except RuntimeError as e:
            raise NotImplementedError(str(e)) from e
        return lowering.draw_integers(val, low, high, strides)

    return drawn


def _integer_draw(name, sizes, bounds, **kw):
    """``randint`` in a variant: ``bounds(*arguments)`` gives the interval."""
    op = random(
        name,
        dtype=lambda *args: sizes(*args)[1] or dtypes.int64,
        shape=lambda *args: sizes(*args)[0],
        out=not name.startswith("randint_like"),
        **kw,
    )(lambda gen, shape, dtype, *args: _integers(gen, shape, dtype, *rules.interval(dtype, *bounds(*args))))
    op.override("drawn", lambda lowering, val, strides, *args: _randint_drawn(lowering, val, strides, *bounds(*args)))


def _randint_drawn(lowering, val, strides, low, high):
    """Bounds may be symbols in int64, which holds them all."""
    if val.dtype is dtypes.int64:
        return lowering.draw_integers(val, low, high, strides)
    return _interval_drawn(rules.interval)(lowering, val, strides, low, high)


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
    f"randint_like(Tensor self, SymInt high, {LIKE}) -> Tensor",
    lambda self, high, dtype, *o: (self.shape, dtype or self.dtype),
    lambda self, high, *o: (0, high),
)
_integer_draw(
    f"randint_like.generator(Tensor self, SymInt high, *, Generator? generator, {LIKE[3:]}) -> Tensor",
    lambda self, high, g, dtype, *o: (self.shape, dtype or self.dtype),
    lambda self, high, *o: (0, high),
)
_integer_draw(
    f"randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, {LIKE[3:]}) -> Tensor",
    lambda self, low, high, g, dtype, *o: (self.shape, dtype or self.dtype),
    lambda self, low, high, *o: (low, high),
)
_integer_draw(
    f"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, {LIKE}) -> Tensor",
    lambda self, low, high, dtype, *o: (self.shape, dtype or self.dtype),
    lambda self, low, high, *o: (low, high),
)


@composite(f"randint_like.Tensor(Tensor self, Tensor high, {LIKE}) -> Tensor", variants="function", has_out=False)
def randint_below(self, high, dtype, layout, device, pin_memory, memory_format):
    return aten.randint_like.default(self, int(high), dtype=dtype, device=device, memory_format=memory_format)


@composite(
    f"randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, {LIKE[3:]}) -> Tensor",
    variants="function",
    has_out=False,
)
def randint_below_by(self, high, generator, dtype, layout, device, pin_memory, memory_format):
    kept = {"generator": generator, "dtype": dtype, "device": device, "memory_format": memory_format}
    return aten.randint_like.generator(self, int(high), **kept)


@random(
    f"randperm(SymInt n, {_INT_OPTIONS}) -> Tensor",
    shape=lambda n, *o: (n,),
    dtype=lambda n, dtype, *o: dtype or dtypes.int64,
    out=True,
)
def randperm(gen, shape, dtype, n, *_):
    """Fisher and Yates from the front: element i changes place with one of those from i on."""
    rules.check_permutation(n, dtype)
    return gen.permutation(n).astype(dtype.np, copy=False)


randperm_from = random(
    f"randperm.generator(SymInt n, *, Generator? generator, {_INT_OPTIONS[3:]}) -> Tensor",
    shape=lambda n, *o: (n,),
    dtype=lambda n, generator, dtype, *o: dtype or dtypes.int64,
    out=True,
)(randperm.definition.draw)


def _permutation_drawn(lowering, val, strides, n, *_):
    if val.dtype is not dtypes.int64:
        raise NotImplementedError("a permutation in a dtype that may not hold it")
    return lowering.permutation(val)


for _op in (randperm, randperm_from):
    _op.override("drawn", _permutation_drawn)


def _filled(functional, inplace, draw, drawn, *, known, variants="method", shape=lambda self, *o: self.shape):
    """A draw of the shape of ``self``, and the operator that writes it into ``self`` (``normal_functional``, ``normal_``). The values come in the
    order of memory. ``drawn(lowering, val, strides, *arguments)``: the same in a compiled graph, for parameters
    that ``draw`` doesn't refuse. ``known(dtype)``: the dtype; it raises for one that the draw isn't defined for. ``shape(*arguments)``: the shape of
    ``self``; it raises for parameters of another."""
    op = random(
        functional,
        shape=shape,
        dtype=lambda self, *o: known(self.dtype),
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
    rules.only(p.dtype, rules.FLOATING, "bernoulli_tensor_cpu_p_")
    p = p.numpy(force=True)
    if not np.all((p >= 0) & (p <= 1)):
        raise RuntimeError(_NO_PROBABILITY)
    return gen.bernoulli(shape, np.broadcast_to(p, shape)).astype(dtype.np)


def _only(names, kernel):
    return lambda dtype: rules.only(dtype, names, kernel)


_G = "*, Generator? generator=None) -> Tensor"
_F64 = dtypes.float64.np


def _checking(check, draw, drawn):
    """``draw`` and ``drawn`` after ``check(dtype, *parameters)``, which raises RuntimeError for parameters that PyTorch refuses."""

    def checked(gen, shape, dtype, self, *parameters):
        check(dtype, *parameters[:-1])
        return draw(gen, shape, dtype, self, *parameters)

    def lowered(lowering, val, strides, self, *parameters):
        if any(hasattr(p, "__sym__") for p in parameters):
            raise NotImplementedError("its parameters are known at the call only")
        try:
            check(val.dtype, *parameters[:-1])
        except RuntimeError as e:
            raise NotImplementedError(str(e)) from e
        return drawn(lowering, val, strides, self, *parameters)

    return checked, lowered


def _holding(holds, text):
    """A check that ``holds(*parameters)``."""

    def check(dtype, *parameters):
        if not holds(*parameters):
            raise RuntimeError(text.format(*(f"{p:g}" if isinstance(p, (int, float)) else p for p in parameters)))

    return check


class _Loops:
    """The scalar table's functions of arrays."""

    def __getattr__(self, name):
        return TABLE[name].numpy


def _by_map(what, fn):
    """A draw, and the same in a graph: ``fn(handler, x, *parameters)`` of doubles, which ``what`` draws."""

    def draw(gen, shape, dtype, self, *parameters):
        x = gen.uniform(shape, _F64) if what == Draw.UNIFORM else gen.normal_sequence(shape)
        return fn(_Loops(), x, *parameters[:-1]).astype(dtype.np)

    def drawn(lowering, val, strides, self, *parameters):
        x = lowering.draw(val, what, 0.0, 1.0, strides, dtypes.float64)
        return lowering.mapped(lambda s, x: fn(s, x, *parameters[:-1]), x, val)

    return draw, drawn


def _bernoulli_in_order(gen, shape, dtype, self, p, generator):
    """In the order of the memory of ``self``."""
    if p.dtype.category >= 2:
        p = aten.expand.default(p, list(shape))
    strides = made_strides(shape, (self, None))
    p = aten.permute.default(p, sorted(range(len(shape)), key=lambda k: -strides[k]))
    return _bernoulli_of(gen, tuple(p.shape), dtype, p).reshape(shape)


def _expanded(self, p, *_):
    aten.expand.default.meta(p, list(self.shape))
    return self.shape


def _bernoulli_of_drawn(lowering, val, strides, self, p):
    if not p.dtype.is_floating_point:
        raise NotImplementedError("probabilities that are integers")
    wide = dtypes.float64 if p.dtype is dtypes.float64 else dtypes.float32
    u = lowering.draw(val, Draw.UNIFORM, 0.0, 1.0, strides, wide)

    def below(s, u, p):
        fits = lowering.expect(s.logical_and(s.ge(p, 0.0), s.le(p, 1.0)), _NO_PROBABILITY)
        return s.logical_and(fits, s.lt(u, p))

    return lowering.mapped(below, u, val, p)


_NO_PROBABILITY = "Expected p_in >= 0 && p_in <= 1 to be true, but got false."


def _normal_into(gen, shape, dtype, self, mean, std, generator):
    """NOTE: blocks of 16 only for contiguous memory, as in PyTorch; else one by one."""
    return gen.normal(shape, dtype.np, mean, std, self.is_contiguous())


def _normal_drawn(lowering, val, strides, self, mean, std, generator):
    return _normal_values(lowering, val, strides, mean, std, is_contiguous(self.shape, self.stride()))


_filled(
    f"normal_functional(Tensor self, float mean=0, float std=1, {_G}",
    f"normal_(Tensor self, float mean=0, float std=1, {_G}",
    *_checking(
        lambda dtype, mean, std: rules.check_deviation(std),
        _normal_into,
        _normal_drawn,
    ),
    known=_only(rules.FLOATING + rules.COMPLEX, "normal_kernel_cpu"),
)
_filled(
    f"uniform(Tensor self, float from=0, float to=1, {_G}",
    f"uniform_(Tensor self, float from=0, float to=1, {_G}",
    *_checking(
        rules.check_bounds,
        lambda gen, shape, dtype, self, a, b, g: gen.uniform(shape, dtype.np, a, b),
        lambda lowering, val, strides, self, a, b, g: lowering.draw(val, Draw.UNIFORM, a, b, strides),
    ),
    known=_only(rules.FLOATING + rules.COMPLEX, "check_uniform_bounds"),
)
_filled(
    f"bernoulli.p(Tensor self, float p, {_G}",
    f"bernoulli_.float(Tensor self, float p=0.5, {_G}",
    *_checking(
        _holding(
            lambda p: not isinstance(p, (int, float)) or 0 <= p <= 1,
            "bernoulli_ expects p to be in [0, 1], but got p={}",
        ),
        lambda gen, shape, dtype, self, p, g: gen.bernoulli(shape, p).astype(dtype.np),
        lambda lowering, val, strides, self, p, g: lowering.mapped(
            lambda s, x: x, lowering.draw(val, Draw.BERNOULLI, p, 0.0, strides), val
        ),
    ),
    known=_only(rules.REAL, "bernoulli_scalar_cpu_"),
)
_filled(
    f"bernoulli.Tensor(Tensor self, Tensor p, {_G}",
    f"bernoulli_.Tensor(Tensor self, Tensor p, {_G}",
    _bernoulli_in_order,
    lambda lowering, val, strides, self, p, g: _bernoulli_of_drawn(lowering, val, strides, self, p),
    known=_only(rules.REAL, "bernoulli_tensor_cpu_self_"),
    shape=_expanded,
).derivative(self=lambda ct: aten.zeros_like.default(ct), p=lambda ct, p_like: _nothing(p_like))
_filled(
    f"exponential(Tensor self, float lambd=1, {_G}",
    f"exponential_(Tensor self, float lambd=1, {_G}",
    *_checking(
        _holding(lambda lambd: lambd > 0, "exponential_ expects lambda > 0.0, but found lambda={}"),
        *_by_map(Draw.UNIFORM, lambda s, u, lambd: s.div(s.neg(s.log1p(s.neg(u))), lambd)),
    ),
    known=lambda dtype: rules.continuous(dtype, "Exponential"),
)
_filled(
    f"geometric(Tensor self, float p, {_G}",
    f"geometric_(Tensor self, float p, {_G}",
    *_checking(
        _holding(lambda p: 0 < p < 1, "geometric_ expects p to be in (0, 1), but got p={}"),
        *_by_map(Draw.UNIFORM, lambda s, u, p: s.ceil(s.div(s.log(u), math.log1p(-p)))),
    ),
    known=_only(rules.REAL[1:], "geometric_cpu"),
)
_filled(
    f"cauchy(Tensor self, float median=0, float sigma=1, {_G}",
    f"cauchy_(Tensor self, float median=0, float sigma=1, {_G}",
    *_checking(
        _holding(lambda median, sigma: sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma={1}"),
        *_by_map(
            Draw.UNIFORM,
            lambda s, u, median, sigma: s.add(s.mul(s.tan(s.mul(s.sub(u, 0.5), math.pi)), sigma), median),
        ),
    ),
    known=lambda dtype: rules.continuous(dtype, "Cauchy"),
)
_filled(
    f"log_normal(Tensor self, float mean=1, float std=2, {_G}",
    f"log_normal_(Tensor self, float mean=1, float std=2, {_G}",
    *_checking(
        _holding(lambda mean, std: std > 0, "log_normal_ expects std > 0.0, but found std={1}"),
        *_by_map(Draw.SEQUENCE, lambda s, x, mean, std: s.exp(s.add(s.mul(x, std), mean))),
    ),
    known=_only(rules.FLOATING, "log_normal_cpu"),
)
_filled(
    f"random(Tensor self, {_G}",
    f"random_(Tensor self, {_G}",
    # NOTE: without ends PyTorch makes numbers of up to 32 bits of one word each.
    lambda gen, shape, dtype, *_: gen.integers(shape, 0, rules.exact_integers(dtype), 2**32).astype(dtype.np),
    lambda lowering, val, strides, *_: lowering.draw_integers(val, 0, rules.exact_integers(val.dtype), strides, 2**32),
    known=_only(rules.REAL, "random_kernel_cpu"),
)


def _between(dtype, low, high=None):
    return rules.until_the_end(dtype, low) if high is None else rules.interval(dtype, low, high)


_filled(
    f"random.to(Tensor self, int to, {_G}",
    f"random_.to(Tensor self, int to, {_G}",
    lambda gen, shape, dtype, self, to, g: _integers(gen, shape, dtype, *_between(dtype, 0, to)),
    _interval_drawn(lambda dtype, self, to, g: _between(dtype, 0, to)),
    known=lambda dtype: dtype,
)
_filled(
    f"random.from(Tensor self, int from, int? to, {_G}",
    f"random_.from(Tensor self, int from, int? to, {_G}",
    lambda gen, shape, dtype, self, low, high, g: _integers(gen, shape, dtype, *_between(dtype, low, high)),
    _interval_drawn(lambda dtype, self, low, high, g: _between(dtype, low, high)),
    known=lambda dtype: dtype,
)


@random(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    shape=lambda self, *o: self.shape,
    dtype=lambda self, *o: rules.only(self.dtype, rules.FLOATING, "bernoulli_tensor_cpu_p_"),
    variants="function method",
    out=True,
    out_rules="any",
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
    if not hasattr(std, "dtype"):
        rules.check_deviation(std)
    elif (std.numpy(force=True) < 0).any():
        raise RuntimeError(_NO_DEVIATION)
    values = gen.normal(shape, dtype.np)
    as_array = lambda x: x.numpy(force=True) if hasattr(x, "numpy") else x  # noqa: E731
    return (values * as_array(std) + as_array(mean)).astype(dtype.np)


_NO_DEVIATION = "normal expects all elements of std >= 0.0"


def _normal_dtype(mean, std, *_):
    if hasattr(std, "dtype") and std.dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    given = (mean if hasattr(mean, "dtype") else std).dtype
    return rules.only(given, rules.FLOATING + rules.COMPLEX, "normal_kernel_cpu")


def _normal_of_drawn(lowering, val, strides, mean, std, *_):
    if not hasattr(std, "dtype") and (hasattr(std, "__sym__") or not std >= 0):
        raise NotImplementedError("a deviation that is refused, or known at the call only")
    if val.dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"mean and deviation in {val.dtype}")
    tensors = [x for x in (mean, std) if hasattr(x, "dtype")]
    if any(x.dtype is not val.dtype for x in tensors):
        raise NotImplementedError("mean and deviation of several dtypes")

    def scaled(s, x, *given):
        given = list(given)
        m, d = (given.pop(0) if hasattr(p, "dtype") else float(p) for p in (mean, std))
        if hasattr(std, "dtype"):
            d = s.where(lowering.expect(s.logical_not(s.lt(d, 0.0)), _NO_DEVIATION), d, 0.0)
        return s.add(s.mul(x, d), m)

    return lowering.mapped(scaled, lowering.draw(val, Draw.NORMAL, 0.0, 1.0, None), val, *tensors)


for _mean, _std, _name in (("Tensor mean", "Tensor std", "Tensor_Tensor"), ("Tensor mean", "float std=1", "Tensor_float"),
                           ("float mean", "Tensor std", "float_Tensor")):  # fmt: skip
    _op = random(
        f"normal.{_name}({_mean}, {_std}, *, Generator? generator=None) -> Tensor",
        shape=lambda m, s, *o: broadcast_shapes(*(x.shape for x in (m, s) if hasattr(x, "shape"))),
        dtype=_normal_dtype,
        variants="function",
        out=True,
    )(_normal_of)
    _op.override("drawn", _normal_of_drawn)
    _op.derivative(mean=lambda ct, mean_like: _nothing(mean_like), std=lambda ct, std_like: _nothing(std_like))


def _normal_of_numbers(gen, shape, dtype, mean, std, *_):
    rules.check_deviation(std)
    rules.only(dtype, rules.FLOATING + rules.COMPLEX, "normal_kernel_cpu")
    return gen.normal(shape, dtype.np, mean, std)


def _normal_of_numbers_drawn(lowering, val, strides, mean, std, *_):
    if hasattr(std, "__sym__") or not std >= 0:
        raise NotImplementedError("a deviation that is refused, or known at the call only")
    return lowering.draw(val, Draw.NORMAL, mean, std)


random(
    f"normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, {OPTIONS[3:]}) -> Tensor",
    shape=lambda m, s, size, *o: size,
    dtype=lambda m, s, size, g, dtype, *o: default(dtype),
    variants="function",
    out=True,
)(_normal_of_numbers).override("drawn", _normal_of_numbers_drawn)


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
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {self.dtype.scalar_type}")
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
    with errstate(divide="ignore"):
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
            TensorMeta(shape, contiguous_strides(shape), dtypes.float64, val.device), Draw.UNIFORM, dtype=dtypes.float64
        )
        made = lowering.categories(
            rows, draws, (*map(_NO_ENTRY.format, ("entry < 0", "entry = infinity or NaN")), _NO_MASS)
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

    race = lowering.mapped(time, lowering.draw(times, Draw.UNIFORM, dtype=dtypes.float64), times, self)
    first, places = lowering.arrange((times, times), Order.FIRST, race, -1, k=num_samples)
    begin = lowering.lazy(places.sizes, first.dtype, lambda c: first.at((*c[:-1], 0)), device=val.device)
    return lowering.mapped(
        lambda s, place, least: s.where(lowering.expect(s.lt(least, math.inf), _NO_MASS), place, 0), places, val, begin
    )
