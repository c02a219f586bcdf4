"""Groups that differ only in their buffers and in how many elements these have: rows of list operators (`_foreach_*`), updates of many parameters.

:class:`SizedGroups` finds them: groups without reductions whose nodes touch each buffer in the order in which its elements lie in memory, or at its
first element, and that don't wait for one another. Rows that fusion put into one kernel because their shapes are equal are taken apart. All groups
of a form get one kernel, with the number of elements as a parameter; ``tables.py`` makes their launches one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.expr import Expr, Symbol, Var, of, symbols, terms, variable
from ...base.expr_walks import evaluate
from ...base.records import replace
from ..codegen.kernel import Kernel, past_cache
from ..codegen.nests import CHUNK, ids
from ..ir.nodes import Buffer, ExternCall, Pointwise
from ..ir.values import Value, Values, walk
from .building import build
from .duplicates import Form, renamed_kernel
from .fusion import Group, regrouped

__all__ = ["SizedGroups"]

LEAST = 4  # groups of a form that are worth a kernel for all sizes
SHARED = 6  # readers of a single element from which on it says nothing about who belongs together
LARGEST = 1 << 48
ANY = "*"


class _Unfit(Exception):
    """A group whose elements aren't read and written in the order of memory."""


def _flat_size(node: Pointwise) -> int:
    """The number of elements of a node that stores them in the order of memory."""
    size = 1
    for atom, c in sorted(terms(node.index), key=lambda t: t[1] if type(t[1]) is int else -1):
        if not isinstance(atom, Var) or type(atom.extent) is not int or (c != size and atom.extent != 1):
            raise _Unfit
        size *= atom.extent
    whole = 1
    for v in node.loops:
        if type(v.extent) is not int:
            raise _Unfit
        whole *= v.extent
    start = node.index.const if type(node.index) is Expr else node.index
    if start or size != whole or not size:
        raise _Unfit
    return size


class _FlatForm(Form):
    """The form of a group without its size. ``size``: of the group; ``places``: whether each load is at the element ("i") or at the first one ("0").
    Where the size is 1 they are the same."""

    def __init__(self, group: Group, buffers: dict[str, Buffer], keep: set[str]):
        self.size = _flat_size(group.nodes[0])
        self.places: list[str] = []
        self._flat: Any = None
        super().__init__(group, buffers, keep)

    def _node(self, node, level) -> tuple:
        if not isinstance(node, Pointwise) or node.combine is not None or node.after or _flat_size(node) != self.size:
            raise _Unfit
        # A value that two nodes share stands for another place in each.
        self._flat, self._values = node.index, {}
        return super()._node(node, level)

    def _extents(self, extents) -> tuple:
        return ()

    def _loops(self, loops) -> tuple:
        return ()

    def _index(self, e) -> str:
        if e == self._flat:
            self.places.append("i")
        elif type(e) is int and e == 0:
            self.places.append("0")
        else:
            raise _Unfit
        return ANY

    def _number(self, e) -> Any:
        if isinstance(e, (Expr, Var, Symbol)):
            raise _Unfit
        return super()._number(e)

    def _value(self, root: Value) -> int:
        if any(v.op in ("checked", "index") for v in walk(root)):
            raise _Unfit
        return super()._value(root)


class _Row:
    """A group that may be one of many. ``level``: how many groups it waits for at most, one for the other."""

    __slots__ = ("form", "group", "level")

    def __init__(self, group: Group, form: _FlatForm, level: int):
        self.group, self.form, self.level = group, form, level


class SizedGroups:
    """The groups of one program that share kernels whatever their sizes. ``leaving``: buffers that no step reads. ``over``: those that are wanted
    in the memory of an input."""

    def __init__(self, buffers: dict[str, Buffer], values: Values, leaving: set[str], over: set[str]):
        self.buffers, self.values, self.leaving, self.over = buffers, values, leaving, over
        self._rows: dict[int, list[_Row]] = {}  # id of a group -> all that share its kernel
        self._row: dict[int, _Row] = {}
        self._kernels: dict[int, tuple[Kernel, list[str]]] = {}

    def separate(self, groups: list[Group], keep: Callable[[Group], set[str]]) -> list[Group]:
        """The groups, those that are several rows taken apart. ``keep``: what of a group stays in memory."""
        parts = self._parts(groups, keep)
        classes = _classes([row for rows in parts.values() for row in rows])
        for rows in classes:
            for row in rows:
                self._rows[id(row.group)], self._row[id(row.group)] = rows, row
        out = []
        for i, group in enumerate(groups):
            found = [row.group for row in parts.get(i, ()) if id(row.group) in self._row]
            if not found or found == [group]:
                out.append(group)
                continue
            taken = {id(n) for g in found for n in g.nodes}
            rest = [n for n in group.nodes if id(n) not in taken]
            out += [*found, *([regrouped(rest)] if rest else [])]
        return out

    def _parts(self, groups, keep) -> dict[int, list[_Row]]:
        """What may be rows, by the places of the groups."""
        level: dict[str, int] = {}
        heavy: set[str] = set()  # results that kernels go on with in the cache
        out = {}

        def raised(part: Group) -> int:
            own = 1 + max((level.get(n, 0) for n in part.reads), default=0)
            for name in part.writes:
                level[name] = max(own, level.get(name, 0))
            return own

        for i, group in enumerate(groups):
            if group.kind == "extern":
                raised(group)
                call = group.nodes[0]
                if isinstance(call, ExternCall) and call.what in ("gemm", "native"):
                    heavy |= set(call.outputs)
                continue
            if not self._may_be(group, heavy):
                raised(group)
                continue
            kept, rows = keep(group), []
            for part in _independent(group):
                own = raised(part)
                try:
                    rows.append(_Row(part, _FlatForm(part, self.buffers, kept), own))
                except _Unfit:
                    continue
            out[i] = rows
        return out

    def _may_be(self, group: Group, heavy: set[str]) -> bool:
        if group.kind != "loops" or group.inner is not None or group.closed or group.limit is not None:
            return False
        if group.reads & heavy and not group.writes.keys() & self.over:
            return False  # it may go on with a product's rows
        names = group.writes.keys() | group.reads
        if any(self.buffers[n].width != 1 or self.buffers[n].planar for n in names):
            return False
        return not past_cache(group.writes, self.buffers, self.leaving)

    def kernel(self, group: Group, keep: set[str], write: Callable[[Kernel], None]) -> Kernel | None:
        """The kernel of a group that is one of many, else None. ``write``: what writes a kernel that is new."""
        rows = self._rows.get(id(group))
        if rows is None:
            return None
        form = self._row[id(group)].form
        names = list(form.buffers)
        found = self._kernels.get(id(rows))
        if found is None:
            # Of the largest, since what is asked for ahead follows from sizes.
            first = max(rows, key=lambda row: row.form.size)
            theirs = list(first.form.buffers)
            kept = {a for a, b in zip(theirs, names) if b in keep}
            found = self._kernels[id(rows)] = self._template(first, kept, write), theirs
        kernel, theirs = found
        renamed = dict(zip(theirs, names))
        if not kernel.params:
            return renamed_kernel(kernel, renamed, in_table=True)
        (symbol,) = symbols(kernel.total)
        most = self.values.hints[symbol]
        total = evaluate(kernel.total, {symbol: form.size})
        sizes = {v.id: n for v, n in zip((*kernel.outer, *kernel.inner), (total, min(form.size, CHUNK)))}
        outer, inner = (tuple(Var(v.id, sizes[v.id]) for v in vs) for vs in (kernel.outer, kernel.inner))
        cost = kernel.cost * form.size / most
        changes = dict(outer=outer, inner=inner, params=[form.size], total=total, cost=cost)
        return renamed_kernel(kernel, renamed, in_table=True, **changes)

    def _template(self, row: _Row, keep: set[str], write: Callable[[Kernel], None]) -> Kernel:
        group = row.group
        if row.form.size > 1:
            symbol = Symbol(f"n{len(self._kernels)}", 1, LARGEST)
            self.values.hints[symbol] = row.form.size
            group = regrouped([self._of_any_size(n, of(symbol)) for n in group.nodes])
        kernel = build(group, self.buffers, self.values, keep, self.leaving)
        write(kernel)
        return kernel

    def _of_any_size(self, node: Pointwise, size: Expr) -> Pointwise:
        """The node as a single loop over the elements in the order of memory."""
        v = Var(next(ids), size)

        def leaf(x: Value):
            if x.op == "load" and x.args[1] == node.index:
                return self.values.load(x.args[0], variable(v), x.dtype)
            return x

        return replace(node, loops=(v,), value=self.values.transform(node.value, leaf), index=variable(v))


def _classes(rows: list[_Row]) -> list[list[_Row]]:
    """Rows that can share a kernel and a launch: of one form, at one level. Those of a single element go with any others of their form."""
    found: dict[tuple, dict[tuple | None, list[_Row]]] = {}
    for row in rows:
        places = tuple(row.form.places) if row.form.size > 1 else None
        found.setdefault((row.level, row.form.key), {}).setdefault(places, []).append(row)
    out = []
    for classes in found.values():
        single = classes.pop(None, [])
        if classes:
            next(iter(classes.values())).extend(single)
        else:
            out.append(single)
        out += classes.values()
    return [c for c in out if len(c) >= LEAST]


def _independent(group: Group) -> list[Group]:
    """The parts of a group that have nothing to do with one another: that read what another makes, or the same elements, belongs together."""
    nodes = group.nodes
    parent = list(range(len(nodes)))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    touching: dict[str, list[int]] = {}
    for i, node in enumerate(nodes):
        single = not terms(node.index)
        for v in walk(node.value):
            if v.op == "load" and (single or terms(v.args[1]) or v.args[0] in group.writes):
                touching.setdefault(v.args[0], []).append(i)
        touching.setdefault(node.buffer, []).append(i)
    for name, places in touching.items():
        if name not in group.writes and len(places) > SHARED and not terms(nodes[places[0]].index):
            continue
        first = root(places[0])
        for i in places[1:]:
            parent[root(i)] = first
    if len({root(i) for i in range(len(nodes))}) == 1:
        return [group]
    parts: dict[int, list] = {}
    for i, node in enumerate(nodes):
        parts.setdefault(root(i), []).append(node)
    return [regrouped(part) for part in parts.values()]
