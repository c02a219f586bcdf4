"""Values of the loop IR as loops are written by hand: loads by coordinates, comparisons that know nan, choices."""

from __future__ import annotations

from ...base.expr import Expr, linear, of
from ..assembly.dtypes import compute_type, is_float
from ..ir.nodes import Region
from ..ir.values import Value, short

__all__ = ["Elements"]


class Elements:
    """``lowering``: whose values are made."""

    def __init__(self, lowering):
        self.lowering, self.values = lowering, lowering.values

    def at(self, region: Region, coords) -> Value:
        """An element, in the type it is computed in. A coordinate may be a Value."""
        t = self.lowering.buffers[region.buffer].dtype
        coords = [of(c) if isinstance(c, Value) else c for c in coords]
        v = self.values.load(region.buffer, linear(coords, region.strides, region.offset), t)
        return self.values.cast(v, compute_type(t))

    def within(self, region: Region, coords, otherwise=0) -> Value:
        """The same, or a number where a coordinate is outside of the region."""
        inside, safe = None, []
        for c, n in zip(coords, region.shape):
            if isinstance(c, Expr) and (c.bounds()[0] < 0 or type(n) is Expr or c.bounds()[1] >= n):
                place = self.values.index(c)
                ok = self.both(self.compare("ge", place, 0), self.compare("lt", place, self.values.index(n)))
                inside = ok if inside is None else self.both(inside, ok)
                safe.append(self.choose(ok, place, 0))
            else:
                safe.append(c)
        v = self.at(region, safe)
        return v if inside is None else self.choose(inside, v, otherwise)

    def number(self, x, t: str) -> Value:
        return x if isinstance(x, Value) else self.values.const(x, t)

    def make(self, op: str, *args) -> Value:
        """An operation on operands of one type, at least one of which is a Value."""
        t = next(a.dtype for a in args if isinstance(a, Value))
        return self.values.make(op, tuple(self.number(a, t) for a in args), t)

    def compare(self, op: str, a, b) -> Value:
        t = next(x.dtype for x in (a, b) if isinstance(x, Value))
        return self.values.make(op, (self.number(a, t), self.number(b, t)), "bool")

    def both(self, a: Value, b: Value) -> Value:
        return self.values.make("logical_and", (a, b), "bool")

    def either(self, a: Value, b: Value) -> Value:
        return self.values.make("logical_or", (a, b), "bool")

    def flip(self, a: Value) -> Value:
        return self.values.make("logical_not", (a,), "bool")

    def choose(self, c: Value, a, b) -> Value:
        t = next(x.dtype for x in (a, b) if isinstance(x, Value))
        return self.values.make("where", (c, self.number(a, t), self.number(b, t)), t)

    def refused(self, bad: Value, tag: int, x: Value) -> Value:
        """``x``, with an error of a message's number where ``bad`` holds."""
        seen = self.values.make("checked", (self.values.cast(bad, "i64"), 1, tag, False), "i64")
        return self.choose(self.compare("eq", seen, 0), x, 0)

    def is_nan(self, a: Value) -> Value | None:
        """None where the type has none."""
        return self.compare("ne", a, a) if is_float(a.dtype) else None

    def ordered(self, a: Value) -> Value:
        """A value that can be compared: truth values as numbers."""
        return self.values.cast(a, "i32") if a.dtype == "bool" else a

    def less(self, a: Value, b: Value) -> Value:
        """Whether a comes before b in ascending order: nan is the greatest."""
        lt, nan = self.compare("lt", a, b), self.is_nan(b)
        return lt if nan is None else self.either(lt, self.both(nan, self.flip(self.is_nan(a))))

    def result(self, out, at):
        """A result, whose ResultSpec is given, and ``at`` gives the elements."""
        t = short(out.dtype)
        made = lambda c: self.values.cast(at(tuple(c)), t)  # noqa: E731
        return self.lowering.lazy(out.shape, out.dtype, made, strides=out.strides, device=out.device)
