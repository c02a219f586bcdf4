"""Which nodes share a kernel.

:func:`fuse` walks the nodes in order and puts each into the latest group that it can join. Fusion is vertical where a node reads what the
group makes at the same element or in the same row, horizontal where it runs over the same elements. A group's *domain* is its outer shape
and, with a reduction, its inner shape. The shapes of its nodes may cut the same elements differently: the domain is their common refinement.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Set

from ...base.expr import (
    Expr,
    Var,
    floordiv,
    mod,
    substitute,
    terms,
    variable,
)
from ..assembly.dtypes import itemsize
from ..codegen.nests import ids
from ..ir.nodes import Buffer, ExternCall, Pointwise, Reduction, loads, stores
from ..ir.values import Values, loaded_atoms, walk
from ..settings import config
from .orders import transposed, transposed_group

__all__ = ["Group", "domain_variables", "environment", "fuse", "merge", "regrouped"]

WINDOW = 6  # how many groups back an unrelated node may be fused
MAX_NODES = 48  # in a group
MAX_BUFFERS = 24  # that a group touches, for unrelated nodes
PARTS = 8  # of a buffer, made by one kernel


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


def domain_variables(outer, inner):
    return tuple(Var(next(ids), n) for n in outer), tuple(Var(next(ids), n) for n in inner or ())


def environment(node, level, outer, inner):
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
        group = regrouped(nodes)
        found = _try_join(group, node, values, merging)
    if found is None:
        return None
    group.outer, group.inner, group.limit, level = found
    group.add(node, level)
    return group


def regrouped(nodes) -> Group:
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
    ov, iv = domain_variables(outer, inner)
    env = environment(node, level, ov, iv)
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
        penv = environment(producer, plevel, ov, iv)
        if penv is None or indices != {substitute(producer.index, penv)}:
            return False
        if level == "row" and plevel == "full" and not isinstance(producer, Reduction):
            return False
    return True


def fuse(
    nodes, buffers: dict[str, Buffer], values: Values, enabled: bool = True, copies: Set[str] = frozenset()
) -> list[Group]:
    """``copies``: buffers that begin as copies of an input that they may lie over, by kernels of their own, which can be left out then."""
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
        if isinstance(node, Pointwise) and node.buffer in copies:
            group = Group("loops")
            group.outer, group.closed = _extents(node.loops), True
            group.add(node)
            groups.append(group)
            last_writer[node.buffer] = len(groups) - 1
            continue
        chosen, reads = None, loads(node)
        low = max(need, 0)
        # The group that makes the operands first, then later ones that read some of them too, then any others; the newest first.
        candidates = [need] if need >= 0 else []
        later = [g for g in range(len(groups) - 1, low - 1, -1) if g != need]
        candidates += sorted(later, key=lambda g: not (reads & groups[g].reads))
        for g in candidates if enabled else ():
            group = groups[g]
            if g != need and len(groups) - g > WINDOW and not (reads & group.reads):
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
    """Whether the order of the two groups matters: one writes a buffer that the other reads or writes too (a scatter into a filled buffer)."""
    return bool((after.reads | after.writes.keys()) & before.writes.keys() or before.reads & after.writes.keys())


def _places(node, level, domain, values) -> set | None:
    """Buffers and indices that the node reads and writes in an iteration, None where it doesn't fit into the domain's variables."""
    env = environment(node, level, *domain)
    if env is None:
        return None
    found = {
        (v.args[0], v.args[1]) for v in walk(values.substitute(node.value, env)) if v.op == "load" and terms(v.args[1])
    }
    found.add((node.buffer, substitute(node.index, env)))
    return found


def _meets(group, node, level, outer, inner, values) -> bool:
    """Whether the node reads some buffer at a place where the group does in the same iteration."""
    domain = domain_variables(outer, inner)
    wanted = _places(node, level, domain, values)
    common = loads(node) & group.reads
    return wanted is not None and any(
        wanted & (_places(n, at, domain, values) or set())
        for n, at in zip(group.nodes, group.levels)
        if loads(n) & common
    )


def _shares_elements(out, a, b, values) -> bool:
    """Whether the two parts read some buffer at the same place in the same iteration."""
    domain = domain_variables(out.outer, out.inner)
    parts: list[set] = [set(), set()]
    for node, level in zip(out.nodes, out.levels):
        found = _places(node, level, domain, values)
        if found is None:
            return False
        parts[0 if any(node is n for n in a.nodes) else 1] |= found
    return bool(parts[0] & parts[1])
