"""Bits and standard numbers of a generator: what NumPy's struct of a bit generator gives, and what is made of it."""

from __future__ import annotations

import functools

import numpy as np

from ....inductor.assembly import instructions as llvm
from ....inductor.assembly.instructions import Operand, Type, integer
from ...emitter import Emitter, constant
from ...values import Declined, Size, Stream
from ..streams import BITGEN, GAUSS, HAS_GAUSS, ZIGGURAT, address_at, ziggurat_tables
from ..ziggurat import FUNCTIONS

__all__ = [
    "MASKED",
    "below",
    "double",
    "entry",
    "exported",
    "field",
    "standard_exponential_of",
    "standard_normal_of",
]


class Field:
    """Numbers of the fields of NumPy's struct of a bit generator (numpy/random/bitgen.h)."""

    STATE, NEXT_UINT64, NEXT_UINT32, NEXT_DOUBLE = range(4)


def field(e: Emitter, s: Stream, n: int) -> Operand:
    """A field of the bit generator's struct."""
    bits = entry(e, s, BITGEN)
    return e.field_at_entry(bits, n, llvm.PTR)


def integer_fields(e: Emitter, s: Stream) -> list[Operand]:
    """What functions that draw integers are given: the state and the functions that give 64 and 32 bits."""
    return [field(e, s, n) for n in (Field.STATE, Field.NEXT_UINT64, Field.NEXT_UINT32)]


def entry(e: Emitter, s: Stream, n: int) -> Operand:
    """An address in the stream's table."""
    return e.field_at_entry(s.ptr, n)


def double(e: Emitter, s: Stream) -> Operand:
    """In [0, 1)."""
    return e.call(llvm.DOUBLE, field(e, s, Field.NEXT_DOUBLE), field(e, s, Field.STATE))


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


MASKED = """
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


def standard_normal_of(e: Emitter, s: Stream) -> Operand:
    if s.legacy:
        e.function("flb_gauss", _GAUSS)
        return e.call(llvm.DOUBLE, "@flb_gauss", s.ptr, field(e, s, Field.STATE), field(e, s, Field.NEXT_DOUBLE))
    if ziggurat_tables() is None:
        return exported(e, s, "random_standard_normal")
    e.function("flb_normal", FUNCTIONS)
    given = (
        entry(e, s, ZIGGURAT),
        entry(e, s, BITGEN),
        field(e, s, Field.STATE),
        field(e, s, Field.NEXT_UINT64),
        entry(e, s, address_at("random_standard_normal")),
    )
    return e.call(llvm.DOUBLE, "@flb_normal", *given)


def standard_exponential_of(e: Emitter, s: Stream) -> Operand:
    if s.legacy:
        rest = e.op("fsub", constant(1.0).v, double(e, s))
        return e.neg(e.external("log", llvm.DOUBLE, rest))
    return exported(e, s, "random_standard_exponential")


def exported(e: Emitter, s: Stream, name: str, *parameters: Operand, result: Type = llvm.DOUBLE) -> Operand:
    """A distribution of NumPy's that takes the bit generator and floating-point parameters."""
    place = address_at(name)
    if place is None:
        raise Declined(f"{name}, which this NumPy doesn't export")
    return e.call(result, entry(e, s, place), entry(e, s, BITGEN), *parameters)


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


def below(e: Emitter, s: Stream, most: Size) -> Operand:
    """An integer from 0 to ``most``, taken as an unsigned number."""
    if not s.legacy and not _integers_are_known():
        raise Declined("integers of this NumPy's Generator")
    name = "flb_masked" if s.legacy else "flb_below"
    e.function(name, MASKED if s.legacy else _BELOW)
    return e.call(llvm.I64, f"@{name}", *integer_fields(e, s), integer(most))
