"""From a group of nodes to a kernel: loops over the group's domain, values that stay in registers, rows that stay in the cache, and stores."""

from __future__ import annotations

import math

from ...base.expr import (
    Div,
    Expr,
    Mod,
    Prod,
    Var,
    at_least,
    coefficient,
    const,
    floordiv,
    mod,
    of,
    substitute,
    terms,
    variable,
)
from ...base.expr import variables as variables_of
from ..assembly.dtypes import itemsize
from ..codegen.kernel import Kernel, past_cache
from ..codegen.nests import all_nodes, flat_loops, ids, planar_loops, substitute_in
from ..ir.nodes import Buffer, Pointwise, Reduction
from ..ir.values import HEAVY, Value, Values, loaded_atoms, walk, weight
from .fusion import Group, domain_variables, environment

__all__ = ["StoredRow", "build"]

# Bytes of rows kept on the stack.
MAX_SCRATCH = 1 << 18


class _Mapped:
    """A node in the kernel's variables."""

    __slots__ = ("node", "level", "value", "index", "stage")

    def __init__(self, node, level, value, index):
        self.node, self.level, self.value, self.index = node, level, value, index
        self.stage = 0


def build(
    group: Group, buffers: dict[str, Buffer], values: Values, keep: set[str], leaving=frozenset(), threads=False
) -> Kernel:
    """``keep``: buffers that are read outside the group or are outputs; ``leaving``: those that no step reads. ``threads``: it is for a device of
    threads, which has no loops to lay out and keeps no rows."""
    if group.kind == "scatter":
        return _build_scatter(group.nodes[0], buffers, values)
    outer, inner = domain_variables(group.outer, group.inner)
    mapped = _map_nodes(group, outer, inner, values)
    outer, inner, mapped = _split_divisions(group, outer, inner, mapped, values)
    limits = {}
    if group.limit is not None:
        limits = {inner[0]: (outer[0], group.limit[2])}
    has_reduction = group.inner is not None
    if not has_reduction:
        inner = ()
    items, scratch = _stages(mapped, inner, has_reduction, buffers, values, keep, 0 if threads else MAX_SCRATCH)
    if has_reduction:
        outer = _collapse(outer, items, values, limits)
        inner = _collapse(inner, items, values, limits)
        column = _prefers_column(outer, inner, items, limits, values)
    elif threads:
        outer, column = _collapse(outer, items, values, limits), False
    else:
        outer = _collapse(outer, items, values, limits)
        outer, inner, limits = planar_loops(_planar(group, buffers), outer, items, values) or flat_loops(
            outer, items, values, past_cache(group.writes, buffers, leaving)
        )
        column = False
    _flatten_scratch(items, scratch, inner, values)
    return _kernel(outer, inner, column, items, scratch, limits)


def _kernel(outer, inner, column, items, scratch, limits, serial=False) -> Kernel:
    args: list[str] = []
    nodes = [n for kind, what in items for n in (what if kind == "loop" else [what])]
    for n in nodes:
        for v in walk(n.value, *loaded_atoms(n.index)):
            if v.op == "load" and v.args[0] not in args and v.args[0] not in scratch:
                args.append(v.args[0])
    inside = {n.buffer for n in nodes if getattr(n, "internal", False)}
    for n in nodes:
        if n.buffer not in args and n.buffer not in scratch and n.buffer not in inside:
            args.append(n.buffer)
    args = [a for a in args if a not in inside]
    return Kernel(outer, inner, column, items, scratch, limits, args, serial, nodes=nodes)


def _map_nodes(group, outer, inner, values):
    out = []
    for node, level in zip(group.nodes, group.levels):
        env = environment(node, level, outer, inner)
        memo: dict = {}
        value = values.substitute(node.value, env, memo)
        index = substitute(node.index, env, lambda v, env=env, memo=memo: values.substitute(v, env, memo))
        out.append(_Mapped(node, level, value, index))
    return out


def _indices(mapped):
    for m in mapped:
        yield m.index
        for v in walk(m.value, *loaded_atoms(m.index)):
            if v.op in ("load", "index"):
                yield v.args[-1]


def _division_atoms(ix):
    for atom, _ in terms(ix):
        if isinstance(atom, (Div, Mod)):
            yield atom
            yield from _division_atoms(atom.args[0])


def _split_divisions(group, outer, inner, mapped, values):
    """Cut a loop in two where an index divides its variable, so that the index becomes affine."""
    if group.limit is not None:
        return outer, inner, mapped
    for _ in range(8):
        cuts: dict[Var, int] = {}
        for ix in _indices(mapped):
            for atom in _division_atoms(ix):
                num, k = atom.args
                if len(terms(num)) != 1:  # none: a number divided by a size
                    continue
                v, c = terms(num)[0]
                if isinstance(v, Var) and c == 1 and not const(num) and mod(v.extent, k) == 0:
                    cuts.setdefault(v, k)
        if not cuts:
            break
        env, new = {}, []
        for vs in (outer, inner):
            out = []
            for v in vs:
                if v in cuts:
                    hi, lo = Var(next(ids), floordiv(v.extent, cuts[v])), Var(next(ids), cuts[v])
                    env[v] = variable(hi) * cuts[v] + variable(lo)
                    out += [hi, lo]
                else:
                    out.append(v)
            new.append(tuple(out))
        outer, inner = new
        for m in mapped:
            substitute_in(m, env, values)
    return outer, inner, mapped


class StoredRow:
    """A node of a finished kernel: the IR node's data in the kernel's variables. ``internal``: the buffer is never in memory;
    ``reduction``: ``combine`` runs over the inner loops."""

    __slots__ = ("buffer", "value", "index", "combine", "internal", "reduction")

    def __init__(self, buffer, value, index, combine, internal, reduction=False):
        self.buffer, self.value, self.index, self.combine = buffer, value, index, combine
        self.internal, self.reduction = internal, reduction

    def transposed(self, value, index) -> StoredRow:
        """The same node in other variables."""
        return StoredRow(self.buffer, value, index, self.combine, self.internal, self.reduction)


def _expensive(value, inner) -> bool:
    """Whether a value costs more to make again for each inner element than to keep; what is the same along a row is made once a row."""
    along = set(inner)
    ws = [v for v in walk(value) if along & v.variables()]
    return any(v.op in HEAVY or v.op in ("div", "sqrt", "rsqrt", "reciprocal") for v in ws) or weight(ws) > 12


def _stages(mapped, inner, has_reduction, buffers, values, keep, budget):
    """Items of the kernel: the loop of each node, the values that are recomputed and those that are kept in a row. ``budget``: bytes of rows."""
    producers: dict[str, _Mapped] = {}
    rows: dict[str, _Mapped] = {}  # buffers wanted in a later loop than the one that makes them
    inner_size = math.prod(v.extent for v in inner)
    final: dict[str, object] = {}
    stage_nodes: dict[int, list] = {}
    once_nodes: dict[int, list] = {}
    for place, m in enumerate(mapped):
        # Parts of a buffer have a loop each: one after the other they read and write fewer lines at a time.
        stage = place if getattr(m.node, "combine", None) == "part" else 0
        for v in walk(m.value):
            if v.op == "load" and v.args[0] in producers:
                p = producers[v.args[0]]
                stage = max(stage, p.stage + (1 if isinstance(p.node, Reduction) else 0))
        m.stage = stage

        def leaf(v, m=m):
            nonlocal budget
            if v.op == "const":
                return v
            if v.op != "load" or v.args[0] not in producers:
                return None
            name = v.args[0]
            p = producers[name]
            if isinstance(p.node, Reduction) or p.level == "row":
                return v  # bound to a register
            if p.stage == m.stage or m.level == "row" or not _expensive(p.value, inner):
                return p.value
            if name not in keep and name not in rows:
                size = values.hint(inner_size) * itemsize(v.dtype)
                if size > budget:
                    keep.add(name)  # too long for the stack: it stays a buffer
                else:
                    budget -= size
                    rows[name] = p
            return v

        m.value = values.transform(m.value, leaf)
        producers[m.node.buffer] = m
    for m in mapped:
        name = m.node.buffer
        internal = name not in keep
        if isinstance(m.node, Reduction):
            stage_nodes.setdefault(m.stage, []).append(
                StoredRow(name, m.value, m.index, m.node.combine, internal, True)
            )
        elif m.level == "row":
            once_nodes.setdefault(m.stage, []).append(StoredRow(name, m.value, m.index, None, internal))
        elif not internal or name in rows:
            stage_nodes.setdefault(m.stage, []).append(StoredRow(name, m.value, m.index, None, internal))
        final[name] = m
    items = []
    for stage in sorted(stage_nodes.keys() | once_nodes.keys()):
        items += [("once", n) for n in once_nodes.get(stage, [])]
        if stage in stage_nodes:
            items.append(("loop", stage_nodes[stage]))
    return items, {name: buffers[name].dtype for name in rows}


def _collapse(variables, items, values, limits):
    """Merge neighbouring loops over which every index runs on without a gap."""
    variables = list(variables)
    frozen = set(limits) | {outer for outer, _ in limits.values()}
    k = 0
    while k + 1 < len(variables):
        a, b = variables[k], variables[k + 1]
        if a in frozen or b in frozen or not all(_runs_on(ix, a, b) for ix in _indices(all_nodes(items))):
            k += 1
            continue
        whole = Var(next(ids), a.extent * b.extent)
        env = {a: floordiv(variable(whole), b.extent), b: mod(variable(whole), b.extent)}
        for n in all_nodes(items):
            substitute_in(n, env, values)
        variables[k : k + 2] = [whole]
    return tuple(variables)


def _runs_on(ix, a, b) -> bool:
    ca, cb = coefficient(ix, a), coefficient(ix, b)
    return (
        ca is not None
        and cb is not None
        and ca == cb * b.extent
        and not any(a in v.variables() or b in v.variables() for v in loaded_atoms(ix))
    )


def _unit_strides(variable_, items) -> int:
    """Loads and stores that move by one element with the variable, minus those that jump."""
    score = 0
    for n in all_nodes(items):
        for v in walk(n.value):
            if v.op == "load" and variable_ in variables_of(v.args[1]):
                score += 1 if coefficient(v.args[1], variable_) == 1 else -1
    return score


def _prefers_column(outer, inner, items, limits, values) -> bool:
    if not outer or not inner or values.hint(outer[-1].extent) < 8 or any(v in limits for v in outer):
        return False
    if any(kind == "loop" and any(not n.reduction for n in what) for kind, what in items):
        return False  # a row is stored: row order
    return _unit_strides(outer[-1], items) > max(_unit_strides(inner[-1], items), 0)


def _planar(group, buffers) -> tuple | None:
    """The shape of a convolution's result that the group reads, where planes of it are handed on (planes.py)."""
    return next((buffers[n].shape for n in sorted(group.reads) if buffers[n].planar), None)


def _flatten_scratch(items, scratch, inner, values):
    """Rows are addressed by the position among the inner loops."""
    if not scratch:
        return
    position = 0
    for v in inner:
        position = position * v.extent + variable(v)

    def leaf(v):
        if v.op == "const":
            return v
        return values.load(v.args[0], position, v.dtype) if v.op == "load" and v.args[0] in scratch else None

    for n in all_nodes(items):
        n.value = values.transform(n.value, leaf)
        if n.buffer in scratch:
            n.index = position


def _build_scatter(node: Pointwise, buffers, values) -> Kernel:
    """Loops whose iterations write apart from each other are parallel (the last one along the lanes); the others run in order."""
    apart, rest = [], []
    parts = _parts(node.index)
    for v in node.loops:
        c = coefficient(node.index, v)
        ok = (
            v not in node.ordered
            and (type(c) is Expr or bool(c))
            and not any(v in a.variables() for a in loaded_atoms(node.index))
        )
        ok = ok and parts is not None and all(at_least(k, 1) for _, k in parts)
        ok = ok and all(
            mod(k, c * v.extent) == 0 or (isinstance(a, Var) and at_least(c - k * a.extent, 0))
            for a, k in parts
            if a is not v
        )
        (apart if ok else rest).append(v)
    vector = bool(apart) and coefficient(node.index, apart[-1]) == 1
    stored = StoredRow(node.buffer, node.value, node.index, node.combine, False)
    return _kernel(tuple(apart), tuple(rest), vector, [("loop", [stored])], {}, {}, serial=True)


def _parts(index):
    """Pairs (loop variable, quotient, remainder or loaded index; its coefficient) that an index is the sum of; None for other forms."""
    out = []
    for atom, c in terms(index):
        if isinstance(atom, Prod):
            inside = [a for a in atom.args if a.variables() or isinstance(a, Value)]
            if len(inside) != 1:
                return None
            c = math.prod([of(a) for a in atom.args if a is not inside[0]]) * c
            atom = inside[0]
        if not (isinstance(atom, (Var, Div, Mod)) or (isinstance(atom, Value) and atom.op == "checked")):
            return None
        out.append((atom, c))
    return out
