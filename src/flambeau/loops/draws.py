"""Random numbers in a native loop: NumPy's own bit generator is asked, and NumPy's own distributions are called, so that the numbers are NumPy's.

The stream is an operand, the generator's table (see streams.py). What NumPy computes from the bits of its generator around the calls it exports
(ends of an interval, location and scale, integers below a bound, orders, shares of probabilities, RandomState's normal numbers) is computed here, by
the algorithms that NumPy documents: integers of Generator by Lemire's method (Lemire 2019, "Fast random integer generation in an interval"), those
of RandomState, and places in a shuffle, by masks and rejection, RandomState's normal numbers by Marsaglia's polar method, of which it keeps the
second. A parameter that NumPy would refuse ends the loop, and plain code tells the error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..base.records import replace, slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, Type, integer
from . import arrays
from .conversions import cast
from .emitter import F64, I64, Emitter, constant
from .streams import BITGEN, GAUSS, HAS_GAUSS, ZIGGURAT, address_at, ziggurat_tables
from .values import ArrayView, Declined, Expression, Known, Scalar, Size, Stream, Tuple
from .ziggurat import FUNCTIONS

__all__ = ["NORMALS", "draw"]

NORMALS = frozenset(("normal", "standard_normal", "randn", "lognormal"))
"""Draws for which RandomState keeps a number."""
ZERO, ONE, NO = constant(0.0), constant(1.0), constant(False)
BINOMIAL = 64  # words that NumPy's struct of a binomial distribution is smaller than
REFUSED = "a parameter of a random distribution that NumPy refuses, in a compiled loop"

# --- bits -------------------------------------------------------------------------------------------------------------------


def _field(e: Emitter, s: Stream, n: int) -> Operand:
    """Field ``n`` of the bit generator's struct: its state, next_uint64, next_uint32, next_double."""
    bits = _entry(e, s, BITGEN)
    return e.field_at_entry(bits, n, llvm.PTR)


def _entry(e: Emitter, s: Stream, n: int) -> Operand:
    """An address in the stream's table."""
    return e.field_at_entry(s.ptr, n)


def _double(e: Emitter, s: Stream) -> Operand:
    """In [0, 1)."""
    return e.call(llvm.DOUBLE, _field(e, s, 3), _field(e, s, 0))


_BELOW = """
define internal i64 @flb_below(ptr %state, ptr %next64, ptr %next32, i64 %most) {
  %none = icmp eq i64 %most, 0
  br i1 %none, label %zero, label %some
zero:
  ret i64 0
some:
  %small = icmp ult i64 %most, 4294967295
  br i1 %small, label %short, label %notshort
notshort:
  %word = icmp eq i64 %most, 4294967295
  br i1 %word, label %plain32, label %long
plain32:
  %w = call i32 %next32(ptr %state)
  %w64 = zext i32 %w to i64
  ret i64 %w64
short:
  %n = add i64 %most, 1
  %r = sub i64 4294967295, %most
  %threshold = urem i64 %r, %n
  br label %again
again:
  %x = call i32 %next32(ptr %state)
  %x64 = zext i32 %x to i64
  %m = mul i64 %x64, %n
  %left = and i64 %m, 4294967295
  %no = icmp ult i64 %left, %threshold
  br i1 %no, label %again, label %done
done:
  %out = lshr i64 %m, 32
  ret i64 %out
long:
  %all = icmp eq i64 %most, -1
  br i1 %all, label %plain64, label %wide
plain64:
  %q = call i64 %next64(ptr %state)
  ret i64 %q
wide:
  %N = add i64 %most, 1
  %R = sub i64 -1, %most
  %limit = urem i64 %R, %N
  %N128 = zext i64 %N to i128
  br label %repeat
repeat:
  %y = call i64 %next64(ptr %state)
  %y128 = zext i64 %y to i128
  %M = mul i128 %y128, %N128
  %low = trunc i128 %M to i64
  %not = icmp ult i64 %low, %limit
  br i1 %not, label %repeat, label %end
end:
  %high = lshr i128 %M, 64
  %result = trunc i128 %high to i64
  ret i64 %result
}"""
_MASKED = """
declare i64 @llvm.ctlz.i64(i64, i1)
define internal i64 @flb_masked(ptr %state, ptr %next64, ptr %next32, i64 %most) {
  %none = icmp eq i64 %most, 0
  br i1 %none, label %zero, label %some
zero:
  ret i64 0
some:
  %zeros = call i64 @llvm.ctlz.i64(i64 %most, i1 false)
  %mask = lshr i64 -1, %zeros
  %small = icmp ule i64 %most, 4294967295
  br i1 %small, label %short, label %long
short:
  %x = call i32 %next32(ptr %state)
  %x64 = zext i32 %x to i64
  %v = and i64 %x64, %mask
  %no = icmp ugt i64 %v, %most
  br i1 %no, label %short, label %done
done:
  ret i64 %v
long:
  %y = call i64 %next64(ptr %state)
  %w = and i64 %y, %mask
  %not = icmp ugt i64 %w, %most
  br i1 %not, label %long, label %end
end:
  ret i64 %w
}"""
_GAUSS = f"""
declare double @log(double)
declare double @llvm.sqrt.f64(double)
define internal double @flb_gauss(ptr %table, ptr %state, ptr %nextdouble) {{
  %has = getelementptr i64, ptr %table, i64 {HAS_GAUSS}
  %kept = getelementptr double, ptr %table, i64 {GAUSS}
  %h = load i64, ptr %has
  %is = icmp ne i64 %h, 0
  br i1 %is, label %take, label %make
take:
  %g = load double, ptr %kept
  store i64 0, ptr %has
  store double 0.0, ptr %kept
  ret double %g
make:
  %u = call double %nextdouble(ptr %state)
  %u2 = fmul double %u, 2.0
  %x = fsub double %u2, 1.0
  %v = call double %nextdouble(ptr %state)
  %v2 = fmul double %v, 2.0
  %y = fsub double %v2, 1.0
  %xx = fmul double %x, %x
  %yy = fmul double %y, %y
  %r = fadd double %xx, %yy
  %far = fcmp oge double %r, 1.0
  %no = fcmp oeq double %r, 0.0
  %bad = or i1 %far, %no
  br i1 %bad, label %make, label %done
done:
  %l = call double @log(double %r)
  %l2 = fmul double %l, -2.0
  %q = fdiv double %l2, %r
  %f = call double @llvm.sqrt.f64(double %q)
  %spare = fmul double %f, %x
  store double %spare, ptr %kept
  store i64 1, ptr %has
  %out = fmul double %f, %y
  ret double %out
}}"""


def _normal(e: Emitter, s: Stream) -> Operand:
    if s.legacy:
        e.function("flb_gauss", _GAUSS)
        return e.call(llvm.DOUBLE, "@flb_gauss", s.ptr, _field(e, s, 0), _field(e, s, 3))
    if ziggurat_tables() is None:
        return _exported(e, s, "random_standard_normal")
    e.function("flb_normal", FUNCTIONS)
    given = (
        _entry(e, s, ZIGGURAT),
        _entry(e, s, BITGEN),
        _field(e, s, 0),
        _field(e, s, 1),
        _entry(e, s, address_at("random_standard_normal")),
    )
    return e.call(llvm.DOUBLE, "@flb_normal", *given)


def _exponential(e: Emitter, s: Stream) -> Operand:
    if s.legacy:
        rest = e.op("fsub", constant(1.0).v, _double(e, s))
        return e.neg(e.external("log", llvm.DOUBLE, rest))
    return _exported(e, s, "random_standard_exponential")


def _exported(e: Emitter, s: Stream, name: str, *parameters: Operand, result: Type = llvm.DOUBLE) -> Operand:
    """A distribution of NumPy's that takes the bit generator and floating-point parameters."""
    place = address_at(name)
    if place is None:
        raise Declined(f"{name}, which this NumPy doesn't export")
    return e.call(result, _entry(e, s, place), _entry(e, s, BITGEN), *parameters)


@functools.cache
def _integers_are_known() -> bool:
    """Whether this NumPy's Generator draws integers as is done here (its stream may change between versions)."""
    rng = np.random.Generator(np.random.PCG64(1234))
    drawn = [int(rng.integers(0, n)) for n in (1000, 3, 1 << 33, 1 << 32, (1 << 63) - 1, 7)]
    bits, want = np.random.PCG64(1234), []
    c = bits.ctypes
    for n in (1000, 3, 1 << 33, 1 << 32, (1 << 63) - 1, 7):
        if n == 1 << 32:
            want.append(c.next_uint32(c.state))
            continue
        width, ask = (32, c.next_uint32) if n < 1 << 32 else (64, c.next_uint64)
        while True:
            m = ask(c.state) * n
            if m % (1 << width) >= ((1 << width) - n) % n:
                break
        want.append(m >> width)
    return drawn == want


def _below(e: Emitter, s: Stream, most: Size) -> Operand:
    """An integer from 0 to ``most``, taken as an unsigned number."""
    if not s.legacy and not _integers_are_known():
        raise Declined("integers of this NumPy's Generator")
    name = "flb_masked" if s.legacy else "flb_below"
    e.function(name, _MASKED if s.legacy else _BELOW)
    return e.call(llvm.I64, f"@{name}", *(_field(e, s, n) for n in range(3)), integer(most))


# --- distributions ------------------------------------------------------------------------------------------------------------


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
    return lambda: _double(e, s)


def uniform(e, s, low=ZERO, high=ONE):
    low, high = _float(e, low), _float(e, high)
    span = Scalar(F64, True, e.op("fsub", high.v, low.v))
    size = span if not s.legacy else Scalar(F64, True, e.intrinsic("fabs", span.v))
    e.check(e.cmp("olt", size.v, constant(float("inf")).v), "OverflowError", REFUSED)
    if not s.legacy:
        _not_negative(e, span)
    return lambda: _at_least(e, low, span, _double(e, s))


def normal(e, s, loc=ZERO, scale=ONE):
    loc, scale = _float(e, loc), _float(e, scale)
    _not_negative(e, scale)
    return lambda: _at_least(e, loc, scale, _normal(e, s))


def lognormal(e, s, mean=ZERO, sigma=ONE):
    number = normal(e, s, mean, sigma)
    return lambda: e.external("exp", llvm.DOUBLE, number())


def standard_normal(e, s):
    return lambda: _normal(e, s)


def exponential(e, s, scale=ONE):
    scale = _float(e, scale)
    _not_negative(e, scale)
    return lambda: e.op("fmul", scale.v, _exponential(e, s))


def standard_exponential(e, s):
    return lambda: _exponential(e, s)


def gamma(e, s, shape, scale=ONE):
    shape, scale = _float(e, shape), _float(e, scale)
    _not_negative(e, shape)
    _not_negative(e, scale)
    return lambda: _exported(e, s, "random_gamma", shape.v, scale.v)


def beta(e, s, a, b):
    a, b = _float(e, a), _float(e, b)
    _positive(e, a)
    _positive(e, b)
    return lambda: _exported(e, s, "random_beta", a.v, b.v)


def poisson(e, s, lam=ONE):
    lam = _float(e, lam)
    _not_negative(e, lam)
    e.check(e.cmp("olt", lam.v, constant(9.2e18).v), "ValueError", REFUSED)
    return lambda: _exported(e, s, "random_poisson", lam.v, result=llvm.I64)


def _integer(e: Emitter, x) -> Scalar:
    if not isinstance(x, Scalar) or x.kind not in "iu" or x.dtype == np.uint64:
        raise Declined("an end of random integers that isn't an integer")
    return cast(e, x, I64)


def integers(e, s, low, high=None, endpoint=NO):
    if high is None or (isinstance(high, Known) and high.value is None):
        low, high = constant(0), low
    if type(getattr(endpoint, "const", None)) is not bool:
        raise Declined("endpoint= that isn't known")
    low, high = _integer(e, low), _integer(e, high)
    some = e.cmp("sle" if endpoint.const else "slt", low.v, high.v)
    e.check(some, "ValueError", REFUSED)
    most = e.sub(e.sub(high.v, low.v), 0 if endpoint.const else 1)
    return lambda: e.op("add", low.v, _below(e, s, most))


def randint(e, s, low, high=None):
    return integers(e, s, low, high)


def binomial(e, s, n, p):
    n, p = _integer(e, n), _float(e, p)
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
        return e.call(llvm.I64, _entry(e, s, place), _entry(e, s, BITGEN), p.v, n.v, kept)

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
        u = _double(e, s)
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
        number = _weighted(e, s, p, a.sizes[0] if of_array else _integer(e, a).v)
        return (lambda: arrays.load(e, a, (number(),)).v) if of_array else number
    if isinstance(a, ArrayView) and a.ndim == 1:
        number = integers(e, s, Scalar(I64, True, integer(a.sizes[0]), e.bounds_of(a.sizes[0])))
        return lambda: arrays.load(e, a, (number(),)).v
    return integers(e, s, a)


@slotted
class Draw:
    """``of(e, stream, *parameters)``: checks the parameters and gives a function that draws one number. ``size``: which argument is the size
    by position, None where it is no argument."""

    of: Callable
    dtype: np.dtype = F64
    size: int | None = None


_COMMON = {
    "random": Draw(random, size=0), "uniform": Draw(uniform, size=2), "normal": Draw(normal, size=2), "lognormal": Draw(lognormal, size=2),
    "standard_normal": Draw(standard_normal, size=0), "exponential": Draw(exponential, size=1),
    "standard_exponential": Draw(standard_exponential, size=0), "choice": Draw(choice, I64, 1),
}  # fmt: skip
DRAWS = {
    np.random.Generator: {
        **_COMMON, "integers": Draw(integers, I64, 2), "gamma": Draw(gamma, size=2), "beta": Draw(beta, size=2), "poisson": Draw(poisson, I64, 1),
        "binomial": Draw(binomial, I64, 2),
    },
    np.random.RandomState: {
        **_COMMON, "random_sample": Draw(random, size=0), "rand": Draw(random), "randn": Draw(standard_normal), "randint": Draw(randint, I64, 2),
    },
}  # fmt: skip


@functools.cache
def _gives_python(legacy: bool, name: str) -> bool:
    """Whether NumPy gives one number as Python's."""
    rng = np.random.RandomState(0) if legacy else np.random.default_rng(0)
    given = {
        "choice": (1,),
        "randint": (1,),
        "integers": (1,),
        "gamma": (1.0,),
        "beta": (1.0, 1.0),
        "binomial": (1, 0.5),
    }.get(name, ())
    return not isinstance(getattr(rng, name)(*given), np.generic)


# --- orders -----------------------------------------------------------------------------------------------------------------


def shuffle(e: Emitter, s: Stream, x) -> Known:
    """NumPy's, of an array along its first dimension: each element from the last on changes places with one of those up to it."""
    if not isinstance(x, ArrayView) or x.ndim == 0:
        raise Declined("a shuffle of something that isn't an array")
    e.function("flb_masked", _MASKED)
    last = e.sub(x.sizes[0], 1)
    for (k,) in e.loop((e.larger(last, 0),)):
        i = e.op("sub", last, k)
        j = e.call(llvm.I64, "@flb_masked", *(_field(e, s, n) for n in range(3)), i)
        for rest in e.loop(x.sizes[1:]):
            first, second = (arrays.load(e, x, (at, *rest)).v for at in (i, j))
            for at, v in ((i, second), (j, first)):
                e.store(arrays.address(e, x, (at, *rest)), x.dtype, v, x.origins)
    return Known(None)


def permutation(e: Emitter, s: Stream, x, place: str) -> ArrayView:
    """NumPy's: the numbers below ``x``, or the elements of an array along its first dimension, shuffled."""
    if isinstance(x, Scalar):
        n = e.larger(_integer(e, x).v, 0)
        x = Expression(I64, (n,), lambda indices: Scalar(I64, False, integer(indices[0])))
    elif not isinstance(x, ArrayView) or x.ndim == 0:
        raise Declined("a permutation of something that is neither an integer nor an array")
    out = arrays.temporary(e, x.dtype, x.sizes, place)
    arrays.fill(e, out, arrays.as_expression(e, x))
    shuffle(e, s, out)
    return out


ORDERS = frozenset(("shuffle", "permutation"))


def draw(e: Emitter, s: Stream, name: str, args: list, kwargs: dict, place: str):
    """A call of a method of a generator: a number, or an array of numbers drawn one after another."""
    if name in ORDERS:
        if len(args) != 1 or kwargs:
            raise Declined(f"{name} with these arguments")
        return shuffle(e, s, *args) if name == "shuffle" else permutation(e, s, *args, place)
    known = DRAWS[np.random.RandomState if s.legacy else np.random.Generator].get(name)
    if known is None:
        raise Declined(f"{name} of a random generator")
    args, kwargs = list(args), dict(kwargs)
    size = kwargs.pop("size", None)
    if name in ("rand", "randn"):
        size, args = (Tuple(tuple(args)) if args else None), []
    elif known.size is not None and len(args) > known.size:
        if len(args) > known.size + 1 or size is not None:
            raise Declined(f"{name} with these arguments")
        size = args.pop()
    try:
        number = known.of(e, s, *args, **kwargs)
    except TypeError:
        raise Declined(f"{name} with these arguments") from None
    dtype = args[0].dtype if name == "choice" and isinstance(args[0], ArrayView) else known.dtype
    if size is None or (isinstance(size, Known) and size.value is None):
        weak = _gives_python(s.legacy, name) and not (name == "choice" and isinstance(args[0], ArrayView))
        return Scalar(dtype, weak, number())
    sizes = arrays.given_sizes(e, size)
    out = arrays.temporary(e, dtype, tuple(sizes), place)
    for indices in e.loop(out.sizes):
        e.store(arrays.address(e, out, indices), dtype, number())
    return replace(out)
