"""Lowering of complex tensors: pairs of values (see complex_values.py) in loops and in memory."""

from __future__ import annotations

from ..ir.nodes import Buffer, Pointwise
from ..ir.sizes import sizes
from ..ir.values import Typed, is_complex, short
from .complex_values import ComplexTyped
from .lazy import Lazy

__all__ = ["ComplexLowering"]


class ComplexLowering:
    """The part of the lowering that knows complex numbers."""

    def handler(self, t: str) -> Typed:
        """What scalar bodies run on to compute in type ``t``."""
        return ComplexTyped(self.values, t) if is_complex(t) else Typed(self.values, t)

    def store(self, buffer: Buffer, loops, value, where, combine=None) -> None:
        """A loop nest that stores ``value``, a complex one in two halves."""
        if not is_complex(value.dtype):
            self.add(Pointwise(buffer.name, loops, value, where, combine))
            return
        if combine not in (None, "part"):
            raise NotImplementedError("complex numbers in a scatter")
        for k, part in enumerate(value.args):
            self.add(Pointwise(buffer.name, loops, part, where * 2 + k, "half"))

    def refuse_complex(self, op, full, val) -> None:
        """NotImplementedError where kernels don't compute with complex numbers."""
        made = val if isinstance(val, (tuple, list)) else (val,)
        if not any(getattr(x, "dtype", None) is not None and x.dtype.is_complex for x in (*_tensors(full), *made)):
            return
        d = op.definition
        if "lower" in op.overrides or d.kind in ("view", "pointwise", "extern"):
            return
        if d.kind == "index" and d.mode == "read" or d.kind == "factory":
            return
        if d.kind == "reduction" and (d.combine == "add" or not val.dtype.is_complex):
            return
        raise NotImplementedError(f"kind {d.kind} of complex numbers")

    def reduce_pairs(self, d, x, kept, dims, element):
        """A sum of complex numbers: the function from kept coordinates to it."""

        def half(k):
            return self.reduce(d.combine, d.init, x.sizes, kept, dims, lambda coords: element(coords).args[k])

        halves = half(0), half(1)
        return lambda c: self.values.make("complex", tuple(h(c) for h in halves), short(x.dtype))

    def as_real(self, x, val) -> Lazy:
        """The parts of complex numbers along a new last dimension."""

        def at(coords):
            parts = x.at(tuple(coords[:-1])).args
            which = coords[-1]
            if type(which) is int:
                return parts[which]
            first = self.values.make("eq", (self.values.index(which), self.values.const(0, "i64")), "bool")
            return self.values.make("where", (first, *parts), parts[0].dtype)

        return self.lazy(sizes(val.shape), val.dtype, at, strides=sizes(val.stride()), device=val.device)

    def as_complex(self, x, val) -> Lazy:
        """Complex numbers of pairs along the last dimension."""
        t = short(val.dtype)

        def at(coords):
            return self.values.make("complex", tuple(x.at((*coords, k)) for k in (0, 1)), t)

        return self.lazy(sizes(val.shape), val.dtype, at, strides=sizes(val.stride()), device=val.device)


def _tensors(tree):
    if isinstance(tree, (tuple, list)):
        for x in tree:
            yield from _tensors(x)
    elif isinstance(tree, Lazy):
        yield tree
