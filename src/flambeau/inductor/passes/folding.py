"""Factors and summands a channel that follow a convolution or a product with a constant weight, moved into weight and bias.

Batch norm in evaluation is such a chain, as one operator or in its parts (sizes decide which of them a graph has), and
so is a normalisation or scale that a program writes by hand.
"""

from __future__ import annotations

import operator
from typing import Any

from ... import _C
from ...base import dtypes
from ...base.symint import NUMBERS
from ...core import modes
from ...core.operator import namespace
from ...fx import Graph, Node
from ...fx.targets import kind_of

__all__ = ["Writer", "fold", "follows", "number"]

aten = namespace("aten")
_PURE = {"pointwise", "reduction", "view", "contraction", "composite", "factory"}


def follows(n: Node, constant: set[Node]) -> bool:
    """Whether a node's result follows from ``constant`` alone (and from one at least)."""
    if n.op != "call_function" or not n.all_input_nodes or not all(a in constant for a in n.all_input_nodes):
        return False
    if n.target is operator.getitem:
        return True
    if getattr(n.target, "_opname", None) == "_prepack":
        return True
    pure = kind_of(n.target) in _PURE and not n.is_impure()
    return pure and not {"nondeterministic_seeded", "has_side_effects"} & set(n.target.tags)


def fold(graph: Graph, constant: set[Node]) -> int:
    """Fold what can be; the number of nodes that are gone. What has another reader than the chain stays as it is."""
    frozen, count = set(constant), 0
    for n in list(graph.nodes):
        if follows(n, frozen):
            frozen.add(n)
            continue
        step = _step(n, frozen) if n.op == "call_function" else None
        if step is None:
            continue
        source, made, scale, shift = step
        channels = _channels(source, frozen)
        if channels is None or len(source.users) != 1 or not _alike(source, made):
            continue
        with graph.inserting_before(n):
            write = Writer(graph, frozen)
            parts = scale(write, channels), shift(write, channels)
            if None not in parts:
                new = _folded(write, source, channels, *parts)
                new.meta = dict(made.meta)
                made.replace_all_uses_with(new)
                count += 1
    return count


def number(n) -> int | None:
    """A size as a number, also where that was found out later (a size of a buffer that had to be equal to a constant)."""
    if type(n) is int:
        return n
    found = n.env.simplify(n.expr) if isinstance(n, NUMBERS) else None
    return found if type(found) is int else None


class Writer:
    """Adds calls to a graph; all but the last one of a fold follow from constants."""

    def __init__(self, graph: Graph, frozen: set[Node]):
        self.graph, self.frozen = graph, frozen

    def __call__(self, op, *args, **kwargs) -> Node:
        node = self.graph.call_function(op, args, kwargs)
        values = [a.meta["val"] if isinstance(a, Node) else a for a in args]
        with modes.disabled("function"), _C.Guard(grad_enabled=0):
            node.meta["val"] = op(*values, **kwargs)
        self.frozen.add(node)
        return node

    def wide(self, t: Node) -> Node:
        """16-bit numbers in float32: what is folded is rounded once."""
        return self.cast(t, dtypes.float32) if t.meta["val"].dtype.itemsize == 2 else t

    def cast(self, t: Node, dtype) -> Node:
        return t if t.meta["val"].dtype == dtype else self(aten._to_copy.default, t, dtype=dtype)


def _alike(a: Node, b: Node) -> bool:
    """Whether results have one dtype and layout, a floating one."""
    x, y = a.meta["val"], b.meta["val"]
    same = [str(n) for n in (*x.shape, *x.stride())] == [str(n) for n in (*y.shape, *y.stride())]
    return same and x.dtype == y.dtype and x.dtype.is_floating_point


def _channels(source: Any, frozen: set[Node]) -> int | None:
    """Results a place of a convolution, or columns of a product, whose weight (and bias) is constant."""
    if not isinstance(source, Node) or source.op != "call_function":
        return None
    if source.target is aten.convolution.default and not source.kwargs and len(source.args) == 9:
        _, weight, bias, *_, transposed, _, groups = source.args
        if weight not in frozen or not (bias is None or bias in frozen):
            return None
        shape = weight.meta["val"].shape
        if source.meta["val"].ndim != len(shape) or isinstance(groups, NUMBERS):
            return None
        return shape[1] * groups if transposed else shape[0]
    if source.target is aten.mm.default and source.args[1] in frozen:
        return source.args[1].meta["val"].shape[1]
    if source.target is aten.addmm.default and not source.kwargs and len(source.args) == 3:
        bias, _, weight = source.args
        n = weight.meta["val"].shape[1]
        return n if weight in frozen and bias in frozen and tuple(bias.meta["val"].shape) == (n,) else None
    return None


# -- what follows ---------------------------------------------------------------------------------------------------------------------


def _nothing(write: Writer, channels: int):
    return ()


def _step(n: Node, frozen: set[Node]):
    """(source, what takes its place, scale, shift) of a node that scales or shifts each channel of ``source``; the last two make, for a
    number of channels, a tensor of them, ``()`` for nothing, or None where they can't."""
    if n.target is aten._native_batch_norm_legit_no_training.default:
        return _normalised(n, frozen)
    if n.kwargs or len(n.args) != 2:
        return None
    a, b = n.args
    if n.target in (aten.mul.Tensor, aten.add.Tensor) and a in frozen:
        a, b = b, a
    if not isinstance(a, Node) or not isinstance(b, Node) or b not in frozen or a in frozen:
        return None
    if not hasattr(a.meta.get("val"), "dtype") or a.meta["val"].dtype != b.meta["val"].dtype:
        return None

    def each(write, channels):
        return _a_channel(write, b, a.meta["val"].ndim, channels)

    def inverse(write, channels):
        c = each(write, channels)
        return c and write(aten.reciprocal.default, c)

    def negative(write, channels):
        c = each(write, channels)
        return c and write(aten.neg.default, c)

    if n.target is aten.mul.Tensor:
        return a, n, each, _nothing
    if n.target is aten.div.Tensor:
        return a, n, inverse, _nothing
    if n.target is aten.add.Tensor:
        return a, n, _nothing, each
    if n.target is aten.sub.Tensor:
        return a, n, _nothing, negative
    return None


def _a_channel(write: Writer, c: Node, ndim: int, channels: int) -> Node | None:
    """A constant as one number a channel (dimension 1 of ``ndim``), None where it has others."""
    shape = list(c.meta["val"].shape)
    if len(shape) > ndim:
        return None
    full = [1] * (ndim - len(shape)) + shape
    if any(s != 1 for d, s in enumerate(full) if d != 1) or full[1] not in (1, channels):
        return None
    flat = write(aten.reshape.default, write.wide(c), [-1])
    return flat if full[1] == channels else write(aten.expand.default, flat, [channels])


def _normalised(n: Node, frozen: set[Node]):
    source, weight, bias, mean, var, _, eps = n.args
    first = [u for u in n.users if u.target is operator.getitem and u.args[1] == 0]
    if len(first) != 1 or any(u is not first[0] and u.users for u in n.users):
        return None
    if any(t is not None and t not in frozen for t in (weight, bias, mean, var)):
        return None

    def scale(write, channels):
        rstd = write(aten.rsqrt.default, write(aten.add.Tensor, write.wide(var), eps))
        return rstd if weight is None else write(aten.mul.Tensor, rstd, write.wide(weight))

    def shift(write, channels):
        moved = write(aten.neg.default, write(aten.mul.Tensor, write.wide(mean), scale(write, channels)))
        return moved if bias is None else write(aten.add.Tensor, moved, write.wide(bias))

    return source, first[0], scale, shift


# -- into weight and bias ----------------------------------------------------------------------------------------------------------------


def _folded(write: Writer, source: Node, channels: int, scale, shift) -> Node:
    """The convolution or product with its result's channels scaled and shifted."""
    dtype = source.meta["val"].dtype
    convolution = source.target is aten.convolution.default
    if convolution:
        x, weight, bias, *rest = source.args
    else:
        bias, x, weight = source.args if source.target is aten.addmm.default else (None, *source.args)
        rest = []
    if scale != ():
        shape = list(weight.meta["val"].shape)
        wide = write.wide(weight)
        if not convolution:
            weight = write(aten.mul.Tensor, wide, scale)
        elif rest[3]:  # transposed: inputs of all groups, then results of one
            groups = rest[5]
            split = write(aten.reshape.default, wide, [groups, shape[0] // groups, *shape[1:]])
            factor = write(aten.reshape.default, scale, [groups, 1, shape[1], *[1] * (len(shape) - 2)])
            weight = write(aten.reshape.default, write(aten.mul.Tensor, split, factor), shape)
        else:
            weight = write(aten.mul.Tensor, wide, write(aten.reshape.default, scale, [-1, *[1] * (len(shape) - 1)]))
        weight = write.cast(weight, dtype)
        bias = None if bias is None else write(aten.mul.Tensor, write.wide(bias), scale)
    if shift != ():
        bias = shift if bias is None else write(aten.add.Tensor, write.wide(bias), shift)
    bias = None if bias is None else write.cast(bias, dtype)
    if convolution:
        return write.graph.call_function(source.target, (x, weight, bias, *rest))
    if bias is None:
        return write.graph.call_function(aten.mm.default, (x, weight))
    return write.graph.call_function(aten.addmm.default, (bias, x, weight))
