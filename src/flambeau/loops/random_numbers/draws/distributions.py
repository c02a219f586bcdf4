"""Distributions: each checks its parameters, and gives a function that draws one number."""

from __future__ import annotations

import numpy as np

from ....inductor.assembly import instructions as llvm
from ....inductor.assembly.instructions import Operand, integer
from ... import arrays
from ...emitter import F64, I64, Emitter, constant
from ...numbers.conversions import cast
from ...values import ArrayView, Declined, Known, Scalar, Size, Stream
from ..streams import BITGEN, address_at
from .bits import below, double, entry, exported, standard_exponential_of, standard_normal_of

__all__ = [
    "BINOMIAL",
    "NO",
    "ONE",
    "REFUSED",
    "ZERO",
    "beta",
    "binomial",
    "choice",
    "exponential",
    "gamma",
    "integer_of",
    "integers",
    "lognormal",
    "normal",
    "poisson",
    "randint",
    "random",
    "standard_exponential",
    "standard_normal",
    "uniform",
]

ZERO, ONE, NO = constant(0.0), constant(1.0), constant(False)
BINOMIAL = 64  # words that NumPy's struct of a binomial distribution is smaller than
REFUSED = "a parameter of a random distribution that NumPy refuses, in a compiled loop"


def _float(e: Emitter, x) -> Scalar:
    if not isinstance(x, Scalar) or x.kind not in "iufb":
        raise Declined("a parameter of a random distribution that isn't a number")
    return cast(e, x, F64)


def _not_negative(e: Emitter, x: Scalar) -> None:
    """By its sign, as NumPy asks; what isn't a number is left to NumPy."""
    if x.const is not None and x.const >= 0 and not np.signbit(x.const):
        return
    sign = e.cmp("sge", e.to("bitcast", x.v, llvm.I64), 0)
    e.check(sign, "ValueError", REFUSED)


def _positive(e: Emitter, x: Scalar) -> None:
    e.check(e.cmp("ogt", x.v, 0.0), "ValueError", REFUSED)


def _at_least(e: Emitter, low: Scalar, by: Scalar, v: Operand) -> Operand:
    return e.op("fadd", low.v, e.op("fmul", by.v, v))


def random(e, s):
    return lambda: double(e, s)


def uniform(e, s, low=ZERO, high=ONE):
    low, high = _float(e, low), _float(e, high)
    span = Scalar(F64, True, e.op("fsub", high.v, low.v))
    size = span if not s.legacy else Scalar(F64, True, e.intrinsic("fabs", span.v))
    e.check(e.cmp("olt", size.v, constant(float("inf")).v), "OverflowError", REFUSED)
    if not s.legacy:
        _not_negative(e, span)
    return lambda: _at_least(e, low, span, double(e, s))


def normal(e, s, loc=ZERO, scale=ONE):
    loc, scale = _float(e, loc), _float(e, scale)
    _not_negative(e, scale)
    return lambda: _at_least(e, loc, scale, standard_normal_of(e, s))


def lognormal(e, s, mean=ZERO, sigma=ONE):
    number = normal(e, s, mean, sigma)
    return lambda: e.external("exp", llvm.DOUBLE, number())


def standard_normal(e, s):
    return lambda: standard_normal_of(e, s)


def exponential(e, s, scale=ONE):
    scale = _float(e, scale)
    _not_negative(e, scale)
    return lambda: e.op("fmul", scale.v, standard_exponential_of(e, s))


def standard_exponential(e, s):
    return lambda: standard_exponential_of(e, s)


def gamma(e, s, shape, scale=ONE):
    shape, scale = _float(e, shape), _float(e, scale)
    _not_negative(e, shape)
    _not_negative(e, scale)
    return lambda: exported(e, s, "random_gamma", shape.v, scale.v)


def beta(e, s, a, b):
    a, b = _float(e, a), _float(e, b)
    _positive(e, a)
    _positive(e, b)
    return lambda: exported(e, s, "random_beta", a.v, b.v)


def poisson(e, s, lam=ONE):
    lam = _float(e, lam)
    _not_negative(e, lam)
    e.check(e.cmp("olt", lam.v, constant(9.2e18).v), "ValueError", REFUSED)
    return lambda: exported(e, s, "random_poisson", lam.v, result=llvm.I64)


def integer_of(e: Emitter, x) -> Scalar:
    if not isinstance(x, Scalar) or x.kind not in "iu" or x.dtype == np.uint64:
        raise Declined("an end of random integers that isn't an integer")
    return cast(e, x, I64)


def integers(e, s, low, high=None, endpoint=NO):
    if high is None or (isinstance(high, Known) and high.value is None):
        low, high = constant(0), low
    if type(getattr(endpoint, "const", None)) is not bool:
        raise Declined("endpoint= that isn't known")
    low, high = integer_of(e, low), integer_of(e, high)
    some = e.cmp("sle" if endpoint.const else "slt", low.v, high.v)
    e.check(some, "ValueError", REFUSED)
    most = e.sub(e.sub(high.v, low.v), 0 if endpoint.const else 1)
    return lambda: e.op("add", low.v, below(e, s, most))


def randint(e, s, low, high=None):
    return integers(e, s, low, high)


def binomial(e, s, n, p):
    n, p = integer_of(e, n), _float(e, p)
    e.check(e.cmp("sge", n.v, 0), "ValueError", REFUSED)
    inside = [e.cmp(op, p.v, end.v) for op, end in (("oge", ZERO), ("ole", ONE))]
    e.check(e.op("and", inside[0], inside[1]), "ValueError", REFUSED)
    place = address_at("random_binomial")
    if place is None:
        raise Declined("random_binomial, which this NumPy doesn't export")
    # What NumPy computes of the parameters; it says first whether there is something in it.
    kept = e.slot("binomial", llvm.aggregate(f"[{BINOMIAL} x i64]"))

    def number() -> Operand:
        e.write(0, kept)
        return e.call(llvm.I64, entry(e, s, place), entry(e, s, BITGEN), p.v, n.v, kept)

    return number


def _weighted(e: Emitter, s: Stream, p: ArrayView, count: Size):
    """Which of ``count`` things is chosen with probabilities ``p``: the first whose share of the running sum exceeds a number in [0, 1)."""
    if p.ndim != 1 or p.dtype.kind not in "iuf":
        raise Declined("probabilities that aren't a vector")
    n = p.sizes[0]
    e.check(e.cmp("eq", n, count), "ValueError", REFUSED)
    these = e.unique("weights")
    total, running, at = (f"{these}.{name}" for name in ("total", "running", "chosen"))

    def add(slot: str, k) -> tuple[Operand, Operand]:
        x = cast(e, arrays.load(e, p, k), F64).v
        e.set(slot, llvm.DOUBLE, e.op("fadd", e.get(slot, llvm.DOUBLE), x))
        return e.get(slot, llvm.DOUBLE), x

    e.set(total, llvm.DOUBLE, ZERO.v)
    for k in e.loop((n,)):
        _, x = add(total, k)
        e.check(e.cmp("oge", x, 0.0), "ValueError", REFUSED)
    off = e.intrinsic("fabs", e.op("fsub", e.get(total, llvm.DOUBLE), ONE.v))
    e.check(e.cmp("olt", off, constant(1e-08).v), "ValueError", REFUSED)  # NumPy allows a little more

    def number() -> Operand:
        u = double(e, s)
        e.set(running, llvm.DOUBLE, ZERO.v)
        e.set(at, llvm.I64, 0)
        for k in e.loop((n,)):
            share = e.op("fdiv", add(running, k)[0], e.get(total, llvm.DOUBLE))
            below = e.to("zext", e.cmp("ole", share, u), llvm.I64)
            e.set(at, llvm.I64, e.op("add", e.get(at, llvm.I64), below))
        return e.get(at, llvm.I64)

    return number


def choice(e, s, a, p=None):
    if p is not None and not (isinstance(p, Known) and p.value is None):
        of_array = isinstance(a, ArrayView) and a.ndim == 1
        if not isinstance(p, ArrayView) or not (of_array or isinstance(a, Scalar)):
            raise Declined("choice with these probabilities")
        number = _weighted(e, s, p, a.sizes[0] if of_array else integer_of(e, a).v)
        return (lambda: arrays.load(e, a, (number(),)).v) if of_array else number
    if isinstance(a, ArrayView) and a.ndim == 1:
        number = integers(e, s, Scalar(I64, True, integer(a.sizes[0]), e.bounds_of(a.sizes[0])))
        return lambda: arrays.load(e, a, (number(),)).v
    return integers(e, s, a)
