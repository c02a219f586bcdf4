"""Which nodes share a kernel, and how a kernel's loops are laid out.

:func:`fuse` walks the nodes in order and puts each into the latest group it can join: vertical fusion when it reads what the group makes at
the same element (or the same row), horizontal fusion when it runs over the same elements. A group's *domain* is its outer shape and, once
it has a reduction, its inner shape; the shapes of its nodes may cut the same elements differently, and the domain is their common
refinement. :func:`build` turns a group into a :class:`~.codegen.Kernel`: loops over the domain, values that stay in registers, rows that
stay in cache, and what is stored.
"""

from __future__ import annotations

import itertools
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
from ..ir.nodes import Buffer, ExternCall, Pointwise, Reduction, loads, stores
from ..ir.values import HEAVY, Value, Values, loaded_atoms, walk, weight
from ..settings import config
from .orders import transposed, transposed_group

__all__ = ["Group", "build", "fuse", "merge"]

WINDOW = 6  # how many groups back an unrelated node may be fused
MAX_NODES = 48  # in a group
MAX_BUFFERS = 24  # that a group touches, for unrelated nodes
PARTS = 8  # of a buffer, made by one kernel
MAX_SCRATCH = 1 << 18  # bytes of rows kept on the stack


def refine(a, b, values: Values) -> tuple | None:
    """The coarsest shape that both shapes are groupings of; None when there is none."""
    if math.prod(a) != math.prod(b):
        return None
    cuts = set(itertools.accumulate(reversed(a), lambda x, y: x * y)) | set(
        itertools.accumulate(reversed(b), lambda x, y: x * y)
    )
    out, last = [], 1
    for c in sorted(cuts | {1}, key=lambda c: (values.hint(c), repr(c))):
        if mod(c, last) != 0:
            return None
        if c != last:
            out.append(floordiv(c, last))
            last = c
    return tuple(reversed(out))


def spread(loops, variables) -> dict | None:
    """Each loop as an index over a run of ``variables``; None when the extents don't line up."""
    env, k = {}, 0
    for v in loops:
        ix, n = 0, 1
        while n != v.extent and k < len(variables):
            ix = ix * variables[k].extent + variable(variables[k])
            n = n * variables[k].extent
            k += 1
        if n != v.extent:
            return None
        env[v] = ix
    return env if k == len(variables) else None


class Group:
    """Nodes of one kernel. ``outer``, ``inner``: the domain's extents (``inner`` None: no reduction yet). ``level[i]``: node i runs for
    each inner element ("full") or once a row ("row")."""

    def __init__(self, kind: str):
        self.kind = kind  # "loops", "scatter", "extern"
        self.nodes: list = []
        self.levels: list[str] = []
        self.outer: tuple[int, ...] = ()
        self.inner: tuple[int, ...] | None = None
        self.limit = None
        self.closed = False
        self.reads: set[str] = set()
        self.writes: dict[str, object] = {}

    def add(self, node, level="full"):
        self.nodes.append(node)
        self.levels.append(level)
        self.reads |= loads(node)
        for name in stores(node):
            self.writes[name] = node


def _extents(variables) -> tuple[int, ...]:
    return tuple(v.extent for v in variables if v.extent != 1)


def _domain_variables(outer, inner):
    return tuple(Var(next(ids), n) for n in outer), tuple(Var(next(ids), n) for n in inner or ())


def _environment(node, level, outer, inner):
    """Loop variables of a node in terms of the domain's."""
    if isinstance(node, Reduction):
        a, b = spread(node.loops, outer), spread(node.reduced, inner)
        return None if a is None or b is None else {**a, **b}
    return spread(node.loops, (*outer, *inner) if level == "full" else outer)


def _try_join(group: Group, node, values: Values, merging=False):
    """(outer, inner, limit, level) of the group with the node, or None. ``merging``: the node belongs to a group that shares its elements
    with this one, so it needs no relation of its own."""
    if group.kind != "loops" or group.closed or len(group.nodes) >= MAX_NODES:
        return None
    dependent = bool(loads(node) & group.writes.keys())
    related = merging or dependent or bool(loads(node) & group.reads)
    outer, inner, limit, level = group.outer, group.inner, group.limit, "full"
    if isinstance(node, Reduction):
        p, r = _extents(node.loops), _extents(node.reduced)
        if not related:
            return None
        if inner is None:
            if not (dependent or merging) or node.limit is not None:
                return None
            both = refine(outer, (*p, *r), values)
            if both is None:
                return None
            cut = _cut(both, math.prod(r))
            outer, inner = both[:cut], both[cut:]
            limit = node.limit
        else:
            if (node.limit is None) != (limit is None) or (
                limit is not None and (p, r, node.limit[2]) != (outer, inner, limit[2])
            ):
                return None
            outer, inner = refine(outer, p, values), refine(inner, r, values)
            if outer is None or inner is None:
                return None
    else:
        shape = _extents(node.loops)
        if inner is None:
            outer = refine(outer, shape, values)
            if outer is None or (not related and len(group.reads | group.writes.keys() | loads(node)) > MAX_BUFFERS):
                return None
        elif limit is not None or not related:
            return None
        elif math.prod(shape) == math.prod(outer) * math.prod(inner) and not (math.prod(inner) == 1):
            both = refine((*outer, *inner), shape, values)
            if both is None:
                return None
            cut = _cut(both, math.prod(inner))
            outer, inner = both[:cut], both[cut:]
        elif dependent and math.prod(shape) == math.prod(outer):
            outer, level = refine(outer, shape, values), "row"
            if outer is None:
                return None
        else:
            return None
    if dependent and not _same_elements(group, node, level, outer, inner, values):
        return None
    # Extents tell nothing of the order: sums of rows and of columns of a square matrix have the same.
    if inner is not None and not (dependent or merging) and not _meets(group, node, level, outer, inner, values):
        return None
    return outer, inner, limit, level


def _join(group: Group, node, values: Values, merging=False) -> Group | None:
    """The group with the node, its loops or the group's transposed where that is what it takes; None: it doesn't belong there."""
    found = _try_join(group, node, values, merging)
    if found is None and (other := transposed(group, node, values.hint)) is not None:
        node, found = other, _try_join(group, other, values, merging)
    elif found is None and (nodes := transposed_group(group, node, values.hint)) is not None:
        group = _regrouped(nodes)
        found = _try_join(group, node, values, merging)
    if found is None:
        return None
    group.outer, group.inner, group.limit, level = found
    group.add(node, level)
    return group


def _regrouped(nodes) -> Group:
    """A group of pointwise nodes that run over the same loops."""
    group = Group("loops")
    group.outer = _extents(nodes[0].loops)
    for n in nodes:
        group.add(n)
    return group


def _cut(shape, inner_size) -> int:
    """Where a refined shape divides into outer and inner."""
    n, k = 1, len(shape)
    while n != inner_size:
        k -= 1
        n = n * shape[k]
    return k


def _same_elements(group, node, level, outer, inner, values) -> bool:
    """Whether the node reads what the group writes at the very element it was written for."""
    ov, iv = _domain_variables(outer, inner)
    env = _environment(node, level, ov, iv)
    if env is None:
        return False
    value = values.substitute(node.value, env)
    wanted: dict[str, set] = {}
    for v in walk(value):
        if v.op == "load" and v.args[0] in group.writes:
            wanted.setdefault(v.args[0], set()).add(v.args[1])
    if any(v.args[0] in group.writes for v in walk(*loaded_atoms(node.index)) if v.op == "load"):
        return False
    for name, indices in wanted.items():
        producer = group.writes[name]
        plevel = group.levels[group.nodes.index(producer)]
        penv = _environment(producer, plevel, ov, iv)
        if penv is None or indices != {substitute(producer.index, penv)}:
            return False
        if level == "row" and plevel == "full" and not isinstance(producer, Reduction):
            return False
    return True


def fuse(nodes, buffers: dict[str, Buffer], values: Values, enabled: bool = True) -> list[Group]:
    groups: list[Group] = []
    last_writer: dict[str, int] = {}
    for node in nodes:
        need = max((last_writer[n] for n in loads(node) if n in last_writer), default=-1)
        if (
            isinstance(node, ExternCall)
            or node.combine in ("assign", "add", "multiply", "minimum", "maximum")
            and isinstance(node, Pointwise)
        ):
            kind = "extern" if isinstance(node, ExternCall) else "scatter"
            group = Group(kind)
            group.add(node)
            groups.append(group)
            for name in stores(node):
                last_writer[name] = len(groups) - 1
            continue
        if node.combine == "part" and isinstance(node, Pointwise):
            # One of the stores that fill a buffer together: nobody can follow a single one of them. Those over the same loops are one kernel, which
            # writes the buffer's lines from end to end.
            if not (enabled and groups and _fills_too(groups[-1], node, buffers)):
                group = Group("loops")
                group.outer, group.closed = _extents(node.loops), True
                groups.append(group)
            groups[-1].add(node)
            last_writer[node.buffer] = len(groups) - 1
            continue
        if node.combine == "half" and isinstance(node, Pointwise):
            # One of the two stores that write complex numbers: they are one kernel, which nobody can follow either. Several such pairs may
            # fill a buffer together.
            before = groups[-1].nodes if groups and groups[-1].kind == "loops" else []
            pair = (
                len(before) == 1 and getattr(before[0], "combine", None) == "half" and before[0].buffer == node.buffer
            )
            if not pair:
                group = Group("loops")
                group.outer, group.closed = _extents(node.loops), True
                groups.append(group)
            groups[-1].add(node)
            last_writer[node.buffer] = len(groups) - 1
            continue
        chosen = None
        low = max(need, 0)
        # The group that makes the operands first, then later ones, the newest first.
        candidates = [need] if need >= 0 else []
        candidates += [g for g in range(len(groups) - 1, low - 1, -1) if g != need]
        for g in candidates if enabled else ():
            group = groups[g]
            if g != need and len(groups) - g > WINDOW and not (loads(node) & group.reads):
                continue
            found = _join(group, node, values)
            if found is not None:
                groups[g], chosen = found, g
                break
        if chosen is None:
            group = Group("loops")
            if isinstance(node, Reduction):
                group.outer, group.inner, group.limit = _extents(node.loops), _extents(node.reduced), node.limit
            else:
                group.outer = _extents(node.loops)
            group.add(node)
            groups.append(group)
            chosen = len(groups) - 1
        last_writer[node.buffer] = chosen
    return groups


def _fills_too(group, node, buffers) -> bool:
    """Whether a group is of parts of a buffer that a part is to be made beside: of one that isn't so large that it is stored past the cache, where
    lines are cut at borders that are each part's own."""
    size = buffers[node.buffer].size
    return (
        group.kind == "loops"
        and len(group.nodes) < PARTS
        and all(getattr(n, "combine", None) == "part" and n.buffer == node.buffer for n in group.nodes)
        and group.outer == _extents(node.loops)
        and len(group.outer) > 1
        and type(size) is not Expr
        and size * itemsize(buffers[node.buffer].dtype) < config.streamed_bytes
        and node.buffer not in loads(node)
    )


def merge(groups: list[Group], values: Values) -> list[Group]:
    """Join groups that run over the same elements and read something in common, when the order allows it: a reduction that came before the
    pointwise nodes it shares its input with, for instance."""
    j = 1
    while j < len(groups):
        for i in range(j - 1, max(j - 1 - WINDOW, -1), -1):
            joined = _merged(groups, i, j, values)
            if joined is not None:
                at, gone, group = joined
                groups[at] = group
                del groups[gone]
                j = max(j - 1, 0)
                break
        j += 1
    return groups


def _merged(groups, i, j, values):
    """(place, place to drop, group) for groups i < j, or None."""
    a, b = groups[i], groups[j]
    if a.kind != "loops" or b.kind != "loops" or a.closed or b.closed:
        return None
    if (a.inner is None and b.inner is None) or (a.limit is None) != (b.limit is None):
        return None
    size = [math.prod(g.outer) * math.prod(g.inner or ()) for g in (a, b)]
    if size[0] != size[1] or len(a.nodes) + len(b.nodes) > MAX_NODES or not (b.reads & (a.reads | a.writes.keys())):
        return None
    between = groups[i + 1 : j]
    later = not any(_depends(g, a) for g in between)  # a can move down to b
    earlier = not any(_depends(b, g) for g in between)  # b can move up to a
    if not (later or earlier):
        return None
    out = Group("loops")
    out.outer, out.inner, out.limit = a.outer, a.inner, a.limit
    for node, level in zip(a.nodes, a.levels):
        out.add(node, level)
    for node in b.nodes:
        joined = _join(out, node, values, merging=True)
        if joined is None:
            return None
        out = joined
    if not _shares_elements(out, a, b, values):
        return None
    return (j, i, out) if later else (i, j, out)


def _depends(after: Group, before: Group) -> bool:
    """Whether the order of the two groups matters: one writes what the other reads or writes too (a scatter into what was filled)."""
    return bool((after.reads | after.writes.keys()) & before.writes.keys() or before.reads & after.writes.keys())


def _places(node, level, domain, values) -> set | None:
    """Buffers and indices that the node reads and writes in an iteration, None where it doesn't fit into the domain's variables."""
    env = _environment(node, level, *domain)
    if env is None:
        return None
    found = {
        (v.args[0], v.args[1]) for v in walk(values.substitute(node.value, env)) if v.op == "load" and terms(v.args[1])
    }
    found.add((node.buffer, substitute(node.index, env)))
    return found


def _meets(group, node, level, outer, inner, values) -> bool:
    """Whether the node reads some buffer at a place where the group does in the same iteration."""
    domain = _domain_variables(outer, inner)
    wanted = _places(node, level, domain, values)
    common = loads(node) & group.reads
    return wanted is not None and any(
        wanted & (_places(n, at, domain, values) or set())
        for n, at in zip(group.nodes, group.levels)
        if loads(n) & common
    )


def _shares_elements(out, a, b, values) -> bool:
    """Whether the two parts read some buffer at the same place in the same iteration."""
    domain = _domain_variables(out.outer, out.inner)
    parts: list[set] = [set(), set()]
    for node, level in zip(out.nodes, out.levels):
        found = _places(node, level, domain, values)
        if found is None:
            return False
        parts[0 if any(node is n for n in a.nodes) else 1] |= found
    return bool(parts[0] & parts[1])


# --- from a group to a kernel -----------------------------------------------------------------------------------------
class _Mapped:
    """A node in the kernel's variables."""

    __slots__ = ("node", "level", "value", "index", "stage")

    def __init__(self, node, level, value, index):
        self.node, self.level, self.value, self.index = node, level, value, index
        self.stage = 0


def build(group: Group, buffers: dict[str, Buffer], values: Values, keep: set[str], leaving=frozenset()) -> Kernel:
    """``keep``: buffers that are read outside the group or are outputs; ``leaving``: those that no step reads."""
    if group.kind == "scatter":
        return _build_scatter(group.nodes[0], buffers, values)
    outer, inner = _domain_variables(group.outer, group.inner)
    mapped = _map_nodes(group, outer, inner, values)
    outer, inner, mapped = _split_divisions(group, outer, inner, mapped, values)
    limits = {}
    if group.limit is not None:
        limits = {inner[0]: (outer[0], group.limit[2])}
    has_reduction = group.inner is not None
    if not has_reduction:
        inner = ()
    items, scratch = _stages(mapped, inner, has_reduction, buffers, values, keep)
    if has_reduction:
        outer = _collapse(outer, items, values, limits)
        inner = _collapse(inner, items, values, limits)
        column = _prefers_column(outer, inner, items, limits, values)
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
        env = _environment(node, level, outer, inner)
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


def _stages(mapped, inner, has_reduction, buffers, values, keep):
    """Items of the kernel: which loop each node runs in, what is recomputed, what is kept in a row."""
    producers: dict[str, _Mapped] = {}
    rows: dict[str, _Mapped] = {}  # buffers wanted in a later loop than the one that makes them
    inner_size = math.prod(v.extent for v in inner)
    final: dict[str, object] = {}
    stage_nodes: dict[int, list] = {}
    once_nodes: dict[int, list] = {}
    budget = MAX_SCRATCH
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
        ok = (type(c) is Expr or bool(c)) and not any(v in a.variables() for a in loaded_atoms(node.index))
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
