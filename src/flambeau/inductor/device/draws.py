"""Draws of a device: Philox 4x32-10, a block of four words for each element.

A call of a graph takes a key of two words from the device's generator, so its states and seeds are the host's; the counter is the number of the
draw in the graph and that of the element, so a value doesn't depend on which thread makes it, or how often.
"""

from __future__ import annotations

from ...base.expr import linear
from ...base.kernels import Draw
from ..ir.nodes import Buffer, BufferKind, dense_strides
from ..ir.values import Value
from .elements import Elements
from .ordering import order

__all__ = ["KEY", "draw", "draw_bits", "draw_integers", "draw_permutation"]

KEY = "philox"  # the buffer of a call's two words
_WORD = (1 << 32) - 1
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10


class _Words:
    """The words of a draw's elements, i64 below 2 ** 32."""

    def __init__(self, lowering, shape):
        if KEY not in lowering.buffers:
            lowering.buffers[KEY] = Buffer(KEY, (2,), (1,), "i64", BufferKind.INPUT)
        self.e, self.strides, self.number = Elements(lowering), dense_strides(shape), lowering.draws
        lowering.draws += 1

    def _product(self, x: Value, factor: int) -> tuple[Value, Value]:
        """The high and the low word of a product."""
        e = self.e
        whole = e.make("mul", x, factor)
        return e.make("bitwise_and", e.make("rshift", whole, 32), _WORD), e.make("bitwise_and", whole, _WORD)

    def __call__(self, coords) -> list[Value]:
        e = self.e
        place = e.values.index(linear(coords, self.strides))
        zero = e.values.const(0, "i64")
        keys = [e.values.load(KEY, k, "i64") for k in (0, 1)]
        c = [e.make("bitwise_and", place, _WORD), e.make("rshift", place, 32), e.number(self.number, "i64"), zero]
        for _ in range(_ROUNDS):
            (high, low), (other_high, other_low) = (self._product(c[k], m) for k, m in zip((0, 2), _MULTIPLIERS))
            c = [
                e.make("bitwise_xor", e.make("bitwise_xor", other_high, c[1]), keys[0]),
                other_low,
                e.make("bitwise_xor", e.make("bitwise_xor", high, c[3]), keys[1]),
                low,
            ]
            keys = [e.make("bitwise_and", e.make("add", k, step), _WORD) for k, step in zip(keys, _STEPS)]
        return c


def _uniform(words: _Words, coords, t: str, middle: bool = False) -> Value:
    """In [0, 1), or with ``middle`` in the middles of as many intervals."""
    e, (a, b, *_) = words.e, words(coords)
    if t == "f64":
        high = e.make("mul", e.make("rshift", a, 5), 1 << 26)
        whole, bits = e.make("add", high, e.make("rshift", b, 6)), 53
    else:
        whole, bits = e.make("rshift", a, 8), 24
        if middle:  # of 23 bits: half of an interval more is exact
            whole, bits = e.make("rshift", a, 9), 23
    x = e.values.cast(whole, t)
    return e.make("mul", e.make("add", x, 0.5) if middle else x, 2.0**-bits)


def _normal(words: _Words, coords, t: str) -> Value:
    return words.e.make("ndtri", _uniform(words, coords, t, middle=True))


def draw(lowering, operands, outs, what, f64, narrow, first, second):
    (out,) = outs
    words, what = _Words(lowering, out.shape), Draw(what)
    e, t = words.e, "f64" if f64 or what in (Draw.SEQUENCE, Draw.BERNOULLI) else "f32"

    def at(c):
        if what == Draw.BERNOULLI:
            return e.compare("lt", _uniform(words, c, t), first)
        if what == Draw.SEQUENCE:
            return _normal(words, c, t)
        if what == Draw.NORMAL:
            return e.make("add", e.make("mul", _normal(words, c, t), second), first)
        x = e.make("add", e.make("mul", _uniform(words, c, t), second - first), first)
        return x if first == second else e.choose(e.compare("lt", x, second), x, first)  # rounding may reach the end

    return [e.result(out, at)]


def draw_integers(lowering, operands, outs, wide, low, span):
    (out,) = outs
    if type(span) is int and span <= 0:
        raise NotImplementedError("an interval of more than 2 ** 63 integers")
    words = _Words(lowering, out.shape)
    e = words.e

    def at(c):
        a, b, *_ = words(c)
        word = e.make("bitwise_or", e.make("lshift", e.make("bitwise_and", b, _WORD >> 1), 32), a) if wide else a
        return e.make("add", e.make("remainder", word, e.values.index(span)), e.values.index(low))

    return [e.result(out, at)]


def draw_bits(lowering, operands, outs, columns, p):
    """Eight truth values to a byte, the first one lowest."""
    (out,) = outs
    *rows, _ = out.shape
    words = _Words(lowering, (*rows, out.shape[-1] * 8))
    e = words.e

    def at(c):
        total = None
        for k in range(8):
            place = c[-1] * 8 + k
            kept = e.compare("lt", _uniform(words, (*c[:-1], place), "f64"), p)
            inside = e.compare("lt", e.values.index(place), e.values.index(columns))
            bit = e.values.cast(e.both(kept, inside), "i64")
            bit = e.make("lshift", bit, k) if k else bit
            total = bit if total is None else e.make("bitwise_or", total, bit)
        return total

    return [e.result(out, at)]


def draw_permutation(lowering, operands, outs):
    """The order of as many random numbers."""
    (out,) = outs
    words = _Words(lowering, out.shape)
    e = words.e

    def number(c):
        a, b, *_ = words(c)
        return e.make("bitwise_or", e.make("lshift", e.make("bitwise_and", b, _WORD >> 1), 32), a)

    if 0 in out.shape:
        return [lowering.full(out.shape, out.dtype, 0, out.device)]
    keys = lowering.realize(
        lowering.lazy(out.shape, out.dtype, number, strides=dense_strides(out.shape), device=out.device)
    )
    return [order(lowering, [keys], [out, out], 0, 0, 0, False, True, None)[1]]
