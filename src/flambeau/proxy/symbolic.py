"""Symbolic tracing by comparison: sizes of the inputs are varied, and what varies in the trace is expressed through them.

Sizes are plain ints in this version, so a trace can't see where a size is read. Instead the function is traced on fake
tensors of several sizes (data is never touched, so large ones cost nothing). Equal sizes of the inputs vary together,
sizes 0 and 1 stay, as in PyTorch. The traces must have the same operators. An int that differs between them must be
``a*s + b`` for a size, or a product of two sizes, ``s``, and a float ``c * s**p``; it becomes that arithmetic on
``input.size(d)``. Whatever else differs is an error that names the operator: nothing is specialised silently.
"""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

from .. import _C
from ..base import pytree
from ..base.shapes import contiguous_strides
from ..core.definition import TensorMeta
from ..fake import FakeTensor, FakeTensorMode
from ..fake.meta import meta_of
from ..fx import GraphModule, Node

__all__ = ["trace_symbolically"]

# What a size is replaced with: far apart, without common factors, the last above any threshold a program is likely to
# compare with.
_SAMPLES = (1009, 5003, 1000003)


def trace_symbolically(f, args: tuple, decomposition_table=None, record_stack: bool = False) -> GraphModule:
    """A graph that holds for all sizes (above one) of the inputs, or RuntimeError saying where sizes were built in."""
    from .make_fx import trace

    leaves, spec = pytree.tree_flatten(args)
    sizes = sorted({n for t in leaves if isinstance(t, _C.TensorBase) for n in t.shape if n > 1})
    gm = trace(f, args, decomposition_table, "fake", record_stack)
    if not sizes:
        return gm
    # In every round each distinct size gets a value of its own; the rounds assign them differently.
    rounds = [{n: sample + 2 * i * (r + 1) for i, n in enumerate(sizes)} for r, sample in enumerate(_SAMPLES)]
    variants = []
    for values in rounds:
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        inputs = pytree.tree_unflatten([_resized(mode, t, values) for t in leaves], spec)
        try:
            variants.append(trace(f, inputs, decomposition_table, "fake", record_stack))
        except Exception as e:
            raise RuntimeError(
                f"make_fx(tracing_mode='symbolic'): the function runs with sizes {sizes} but not with "
                f"{list(values.values())} in their place, so its graph would hold for these sizes only "
                f"({type(e).__name__}: {e}). Use tracing_mode='fake' to specialise."
            ) from e
    tables = [{n: n for n in sizes}, *rounds]
    _generalise(gm, variants, tables, _where(leaves))
    gm.graph.lint()
    gm.recompile()
    return gm


def _resized(mode: FakeTensorMode, t: Any, values: dict[int, int]) -> Any:
    if not isinstance(t, _C.TensorBase):
        return t
    meta = meta_of(t)
    shape = tuple(values.get(n, n) for n in meta.shape)
    # The order of the strides is kept, their gaps are not.
    order = sorted(range(len(shape)), key=lambda d: (-meta.strides[d], d))
    dense = contiguous_strides([shape[d] for d in order])
    strides = [0] * len(shape)
    for d, s in zip(order, dense):
        strides[d] = 0 if meta.strides[d] == 0 else s
    out = FakeTensor(mode, TensorMeta(shape, tuple(strides), meta.dtype, meta.device, 0))
    return out.requires_grad_(True) if t.requires_grad else out


def _where(leaves: list) -> dict[int, tuple[int, int]]:
    """For each size an input and a dimension that has it."""
    found: dict[int, tuple[int, int]] = {}
    for i, t in enumerate(leaves):
        if isinstance(t, _C.TensorBase):
            for d, n in enumerate(t.shape):
                found.setdefault(n, (i, d))
    return found


def _generalise(gm: GraphModule, variants: list[GraphModule], tables: list[dict[int, int]], where) -> None:
    graphs = [list(g.graph.nodes) for g in (gm, *variants)]
    inputs = [n for n in graphs[0] if n.op == "placeholder"]
    for column in zip(*graphs):
        first = column[0]
        if any((n.op, n.target, len(n.args)) != (first.op, first.target, len(first.args)) for n in column):
            _fail(first, "operators differ from size to size")
    if len({len(g) for g in graphs}) > 1:
        _fail(graphs[0][-1], "the number of operators differs from size to size")
    made: dict[Any, Node] = {}
    last = [inputs[-1]]

    def merge(first: Node, values: list) -> Any:
        v = values[0]
        if isinstance(v, Node):
            return v
        if isinstance(v, (list, tuple)):
            if len({len(x) for x in values}) > 1:
                _fail(first, f"an argument has a different number of elements from size to size: {values}")
            return type(v)(merge(first, list(x)) for x in zip(*values))
        if isinstance(v, dict):
            return {k: merge(first, [x[k] for x in values]) for k in v}
        if all(type(x) is type(v) and x == v for x in values):
            return v
        if type(v) is int:
            return size_node(first, values)
        if type(v) is float:
            return power_node(first, values)
        _fail(first, f"an argument depends on a size: {values}")

    # What an int may be made of: a size, or the product of two.
    symbols = [n for n in where if n in tables[0]]
    terms = [(n,) for n in symbols] + list(itertools.combinations_with_replacement(symbols, 2))

    def size_node(first: Node, values: list[int]) -> Node:
        for term in terms:
            xs = [math.prod(t[n] for n in term) for t in tables]
            a, rest = divmod(values[2] - values[1], xs[2] - xs[1])
            b = values[1] - a * xs[1]
            if rest == 0 and a != 0 and all(a * x + b == y for x, y in zip(xs, values)):
                return expression(term, a, b)
        _fail(first, f"an argument depends on sizes in a way that is not a*size + b: {values}")

    def power_node(first: Node, values: list[float]) -> Node:
        """``c * s**p`` of a size: what scaling by a square root or averaging by hand reads."""
        for n in symbols:
            for p in (1.0, -1.0, 0.5, -0.5):
                scales = [v / t[n] ** p for v, t in zip(values, tables)]
                if all(math.isclose(c, scales[0], rel_tol=1e-12) for c in scales):
                    size = expression((n,), 1, 0)
                    power = emit((size, "**", p), "call_function", operator.pow, (size, p))
                    # The factor carries rounding errors of the division; a short number within them is what was meant.
                    short = float(f"{scales[0]:.12g}")
                    c = short if math.isclose(short, scales[0], rel_tol=2e-15) else scales[0]
                    return power if c == 1 else emit((power, "*", c), "call_function", operator.mul, (power, c))
        _fail(first, f"an argument depends on a size in a way that is not c*size**p: {values}")

    def expression(term, a: int, b: int) -> Node:
        """The node of ``a * product of the sizes in term + b``, made behind the inputs."""
        node = None
        for n in term:
            i, d = where[n]
            size = emit((i, d), "call_method", "size", (inputs[i], d))
            node = size if node is None else emit((node, size), "call_function", operator.mul, (node, size))
        if a != 1:
            node = emit((node, "*", a), "call_function", operator.mul, (node, a))
        if b:
            node = emit((node, "+", b), "call_function", operator.add, (node, b))
        return node

    def emit(key, op, target, args) -> Node:
        if key not in made:
            with gm.graph.inserting_after(last[0]):
                last[0] = made[key] = gm.graph.create_node(op, target, args)
        return made[key]

    for column in zip(*graphs):
        first = column[0]
        if first.op in ("placeholder", "get_attr"):
            continue
        args = merge(first, [n.args for n in column])
        kwargs = merge(first, [dict(n.kwargs) for n in column])
        first.args, first.kwargs = args, kwargs


def _fail(node: Node, why: str):
    raise RuntimeError(
        f"make_fx(tracing_mode='symbolic'): the graph is not the same for all sizes: at {node.format_node()}: {why}. "
        "Use tracing_mode='fake' to specialise to these sizes."
    )
