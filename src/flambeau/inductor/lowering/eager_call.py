"""Operators that a compiled graph runs by their eager kernel, on tensors over its buffers."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from ... import _C
from ...base.expr import Expr, Symbol, of
from ...base.relations import symbols
from ..ir.sizes import size
from .lazy import LazyTensor, flatten

__all__ = ["NotLowered", "EagerCall", "NumberCall", "call_rule", "call_schema", "replace", "same_layout"]


class NotLowered(Exception):
    """A node that has no native lowering here; it is run by its eager kernel. Carries the reason."""


def call_schema(op, full):
    pos, kw = [], {}
    for a, v in zip(op._schema.arguments, full):
        if a.kwarg_only:
            if v is not None or not a.has_default:
                kw[a.name] = v
        else:
            pos.append(v)
    return op(*pos, **kw)


def call_rule(op, full):
    """An operator with bodies, which are compiled graphs by now."""
    return op.rules["eager"](op, *full[0], **dict(full[1]))


class EagerCall:
    """Calls an operator on tensors over regions of buffers; they are followed by tensors of one element for the floating-point symbols ``floats``
    among the arguments, and by the values of ``numbers``, the symbolic integers."""

    def __init__(self, call, full, outs, hint, floats=()):
        self.call = call
        self.floats = list(floats)
        # Dimensions of each result from the outermost in memory to the innermost: its strides follow from its shape.
        # None for a number that is the same at each call, which nobody reads here.
        self.orders = [
            None if b is None else sorted(range(len(b.shape)), key=lambda d, b=b: (-hint(b.strides[d]), d))
            for b in outs
        ]
        self.numbers: list = []
        tensors = itertools.count()

        def leave(x):
            if isinstance(x, LazyTensor):
                return ArgumentSlot(next(tensors))
            if hasattr(x, "__sym__") and type(size(x)) is Expr:
                self.numbers.append(size(x))
                return ArgumentSlot(-len(self.numbers))
            if hasattr(x, "__sym__") and hasattr(x.expr, "evaluate"):  # a condition, or a floating-point number
                needed = sorted((s for s in symbols(x.expr) if isinstance(s, Symbol)), key=repr)
                first = len(self.numbers)
                self.numbers += map(of, needed)
                return Late(x.expr, [(s, first + i) for i, s in enumerate(needed)])
            return size(x) if hasattr(x, "__sym__") else x

        self.template = replace(full, leave, object)
        self.count = next(tensors)
        self.prepare()

    @classmethod
    def of(cls, call, template, floats, orders, count) -> EagerCall:
        """One that was made before, from its parts."""
        out = cls.__new__(cls)
        out.call, out.template, out.floats, out.orders, out.count, out.numbers = (
            call,
            template,
            floats,
            orders,
            count,
            [],
        )
        out.prepare()
        return out

    def prepare(self) -> None:
        """An operator may have a call of its own for graphs: ``override("prepared", fn)``, one with bodies a rule of that name. ``fn(template)``,
        in which an ArgumentSlot with k from 0 on is a tensor and one below 0 a number (``ArgumentSlot.place`` says
        where either is among what is given), gives what is called with tensors and numbers and returns a list of
        dense tensors, none of which is one of the operands; or None. ``override("quiet", True)``: it warns of nothing where its frame can be
        run plainly instead."""
        made_by = getattr(self.call, "func", None)
        op = self.call.args[0] if made_by in (call_schema, call_rule) else None
        rules: dict = {}
        if op is not None and not self.floats:
            rules = op.overrides if made_by is call_schema else op.rules
        prepared = rules.get("prepared")
        self.prepared = prepared and functools.partial(prepared, self.template)
        self.quiet = prepared is not None and bool(rules.get("quiet"))
        self.run = None

    def __call__(self, *given):
        if self.prepared is not None:
            self.run, self.prepared = self.prepared(), None
        if self.run is not None:
            return self.run(*given)
        n = self.count + len(self.floats)
        tensors, numbers = given[: self.count], given[n:]
        floats = {s: float(t._array[()]) for s, t in zip(self.floats, given[self.count : n])}
        full = replace(self.template, lambda s: s.look(tensors, numbers, floats), (ArgumentSlot, Late))
        result = self.call(full)
        out = []
        for r, order in zip((r for r in flatten(result) if r is not None), self.orders, strict=True):
            if order is None:
                continue
            if not isinstance(r, _C.TensorBase):
                out.append(_C.from_array(np.array(r)) if isinstance(r, float) else int(r))
                continue
            array = r._array
            want, step = [0] * array.ndim, array.itemsize
            for d in reversed(order):
                want[d] = step
                step *= max(array.shape[d], 1)
            if not same_layout(array.shape, array.strides, want) or any(
                np.may_share_memory(array, t._array) for t in tensors
            ):
                made = np.ndarray(array.shape, array.dtype, np.empty(array.size, array.dtype), 0, want)
                made[...] = array
                array = made
            out.append(_C.from_array(array))
        return out


class ArgumentSlot:
    """Where an argument of the call goes: tensor k, or the number before the end of the negative ones."""

    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    def look(self, tensors, numbers, floats):
        return tensors[self.k] if self.k >= 0 else numbers[-self.k - 1]

    def place(self, count: int) -> int:
        """Where it is among what a call is given: ``count`` tensors, then the numbers."""
        return self.k if self.k >= 0 else count - self.k - 1


class Late:
    """A number or truth value that is computed from symbols at the call."""

    __slots__ = ("expr", "symbols")

    def __init__(self, expr, symbols):
        self.expr, self.symbols = expr, symbols

    def look(self, tensors, numbers, floats):
        return self.expr.evaluate({**floats, **{s: numbers[i] for s, i in self.symbols}})


class NumberCall(EagerCall):
    """Computes a number or truth value that the graph returns."""

    def __init__(self, number, floats):
        super().__init__(None, [number], (), int, floats)

    def __call__(self, *given):
        n = len(self.floats)
        floats = {s: float(t._array[()]) for s, t in zip(self.floats, given)}
        return [self.template[0].look((), given[n:], floats)]


def same_layout(shape, a, b) -> bool:
    return 0 in shape or all(n == 1 or x == y for n, x, y in zip(shape, a, b))


def replace(tree, fn, kind=LazyTensor):
    if isinstance(tree, (tuple, list)):
        return [replace(x, fn, kind) for x in tree]
    return fn(tree) if isinstance(tree, kind) else tree
