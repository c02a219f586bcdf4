"""Arithmetic of integers and truth values with special cases: quotients, powers, shifts, common divisors."""

from __future__ import annotations

from ...assembly.dtypes import bits_of, is_unsigned
from ...assembly.instructions import Operand
from .table import expansion

__all__: list[str] = []


@expansion
def pow_int(b, t, x, y):
    """Square and multiply; a negative exponent gives 0 except for the bases 1 and -1 (integer division of 1)."""
    type = b.ty(t)
    base, power, acc = (b.names.slot(type) for _ in range(3))
    b.write(x, base)
    b.write(b.const(t, 1), acc)
    b.write(y if is_unsigned(t) else b.abs(y), power)
    loop, done = b.names.label("loop"), b.names.label("done")
    b.jump(loop)
    b.label(loop)
    e, v, a = (b.read(type, slot) for slot in (power, base, acc))
    odd = b.cmp("ne", b.op("and", e, 1), 0)
    a = b.select(odd, b.mul(a, v), a)
    e, square = b.op("lshr", e, 1), b.mul(v, v)
    for made, slot in ((e, power), (square, base), (a, acc)):
        b.write(made, slot)
    b.branch(b.any(b.cmp("ne", e, 0)), loop, done)
    b.label(done)
    if is_unsigned(t):
        return a
    unit = b.op("or", b.cmp("eq", x, 1), b.cmp("eq", x, -1))
    dead = b.op("and", b.cmp("slt", y, 0), b.flip(unit))
    return b.select(dead, 0, a)


@expansion
def maximum_int(b, t, x, y):
    return b.intrinsic("umax" if is_unsigned(t) else "smax", x, y)


@expansion
def minimum_int(b, t, x, y):
    return b.intrinsic("umin" if is_unsigned(t) else "smin", x, y)


@expansion
def sign_int(b, t, x):
    if is_unsigned(t):
        return b.intrinsic("umin", x, 1)
    return b.intrinsic("smax", b.intrinsic("smin", x, 1), -1)


@expansion
def negative_int(b, t, x):
    return b.sub(Operand("zeroinitializer", x.type), x)


@expansion
def abs_int(b, t, x):
    return x if is_unsigned(t) else b.abs(x)


@expansion
def bitwise_not(b, t, x):
    return b.op("xor", x, -1)


def _safe_divisor(b, t, y):
    """(y with 0 replaced by 1, is it 0); -1 is replaced too for signed types, as the smallest integer over it traps."""
    zero = b.cmp("eq", y, 0)
    safe = b.select(zero, 1, y)
    if is_unsigned(t):
        return safe, zero, None
    minus = b.cmp("eq", y, -1)
    return b.select(minus, 1, safe), zero, minus


@expansion
def floordiv_int(b, t, x, y):
    safe, zero, minus = _safe_divisor(b, t, y)
    if minus is None:
        return b.select(zero, 0, b.op("udiv", x, safe))
    q = b.op("sdiv", x, safe)
    rest = b.sub(x, b.mul(q, safe))
    down = b.cmp("slt", b.op("xor", rest, safe), 0)
    down = b.op("and", down, b.cmp("ne", rest, 0))
    q = b.select(down, b.sub(q, 1), q)
    q = b.select(minus, b.sub(0, x), q)
    return b.select(zero, 0, q)


@expansion
def remainder_int(b, t, x, y):
    safe, zero, minus = _safe_divisor(b, t, y)
    if minus is None:
        return b.select(zero, 0, b.op("urem", x, safe))
    r = b.op("srem", x, safe)
    wrong = b.op("and", b.cmp("slt", b.op("xor", r, safe), 0), b.cmp("ne", r, 0))
    r = b.select(wrong, b.add(r, safe), r)
    return b.select(zero, 0, r)


@expansion
def truncdiv_int(b, t, x, y):
    safe, zero, minus = _safe_divisor(b, t, y)
    q = b.op("udiv" if minus is None else "sdiv", x, safe)
    q = q if minus is None else b.select(minus, b.sub(0, x), q)
    return b.select(zero, 0, q)


@expansion
def fmod_int(b, t, x, y):
    safe, zero, _ = _safe_divisor(b, t, y)
    return b.select(zero, 0, b.op("urem" if is_unsigned(t) else "srem", x, safe))


def _shift(b, t, op, x, y, beyond):
    """A shift by a number of bits that may be too large, or negative: then ``beyond``."""
    fits = b.cmp("ult", y, bits_of(t))
    return b.select(fits, b.op(op, x, b.select(fits, y, 0)), beyond)


@expansion
def lshift(b, t, x, y):
    return _shift(b, t, "shl", x, y, b.const(t, 0))


@expansion
def rshift(b, t, x, y):
    if is_unsigned(t):
        return _shift(b, t, "lshr", x, y, b.const(t, 0))
    return _shift(b, t, "ashr", x, y, b.op("ashr", x, bits_of(t) - 1))


@expansion
def gcd(b, t, x, y):
    """Euclid's algorithm, of all lanes until the last has ended; as NumPy's, the least number of a signed type stays negative."""
    type = b.ty(t)
    high, low = b.names.slot(type), b.names.slot(type)
    for slot, v in ((high, x), (low, y)):
        b.write(v if is_unsigned(t) else b.abs(v), slot)
    loop, turn, done = (b.names.label(n) for n in ("loop", "turn", "done"))
    b.jump(loop)
    b.label(loop)
    m, n = (b.read(type, slot) for slot in (high, low))
    more = b.cmp("ne", n, 0)
    b.branch(b.any(more), turn, done)
    b.label(turn)
    rest = b.op("urem", m, b.select(more, n, 1))
    b.write(b.select(more, n, m), high)
    b.write(b.select(more, rest, 0), low)
    b.jump(loop)
    b.label(done)
    return m


@expansion
def lcm(b, t, x, y):
    divisor = gcd(b, t, x, y)
    safe = b.select(b.cmp("eq", divisor, 0), 1, divisor)
    first, second = (v if is_unsigned(t) else b.abs(v) for v in (x, y))
    return b.mul(b.op("udiv", first, safe), second)


@expansion
def false(b, t, x):
    return b.const("bool", False)


@expansion
def logical_not(b, t, x):
    return b.flip(x)
