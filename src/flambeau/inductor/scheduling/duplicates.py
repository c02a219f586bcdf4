"""Groups that differ only in which buffers they read and write: repeated layers, the updates of many parameters. The first is built and written, and
its kernel serves all."""

from __future__ import annotations

from typing import Any

from ...base.expr import Expr, Symbol, Var
from ...base.records import replace
from ..codegen.kernel import Kernel
from ..ir.nodes import Reduction
from ..ir.values import Value
from .building import StoredRow
from .fusion import Group

__all__ = ["Duplicates", "Form", "renamed_kernel"]


class Form:
    """A group with buffers and loop variables numbered as they are met. Equal forms are equal but for these."""

    def __init__(self, group: Group, buffers: dict, keep: set[str]):
        self.buffers: dict[str, int] = {}
        self._vars: dict[Var, int] = {}
        self._values: dict[Value, int] = {}
        self._rows: list[tuple] = []  # of the values, operands first
        nodes = [self._node(node, level) for node, level in zip(group.nodes, group.levels)]
        facts = tuple((buffers[n].dtype, n in keep, buffers[n].planar) for n in self.buffers)
        shape = (self._extents(group.outer), None if group.inner is None else self._extents(group.inner))
        limit = group.limit and tuple(self._number(x) for x in group.limit)
        self.key = (group.kind, *shape, limit, facts, tuple(self._rows), tuple(nodes))

    def _node(self, node, level) -> tuple:
        reduced = ()
        if isinstance(node, Reduction):
            limit = node.limit and tuple(self._number(x) for x in node.limit)
            reduced = (tuple(map(self._var, node.reduced)), repr(node.init), limit)
        return (
            level,
            self._loops(node.loops),
            reduced,
            node.combine,
            self._value(node.value),
            self._index(node.index),
            self._buffer(node.buffer),
        )

    def _buffer(self, name: str) -> int:
        return self.buffers.setdefault(name, len(self.buffers))

    def _var(self, v: Var) -> tuple:
        return self._vars.setdefault(v, len(self._vars)), self._number(v.extent)

    def _loops(self, loops) -> tuple:
        return tuple(map(self._var, loops))

    def _extents(self, extents) -> tuple:
        return tuple(map(self._number, extents))

    def _number(self, e) -> Any:
        """A size or an index."""
        if type(e) is Expr:
            return (e.const, *((self._atom(a), c) for a, c in e.terms))
        return self._atom(e)

    def _index(self, e) -> Any:
        """Where an element is loaded from, or stored."""
        return self._number(e)

    def _atom(self, a) -> Any:
        if isinstance(a, Var):
            return ("i", *self._var(a))
        if isinstance(a, Value):
            return "v", self._value(a)
        args = getattr(a, "args", None)
        if args is not None and not isinstance(a, Symbol):
            return (type(a).__name__, *map(self._number, args))
        return type(a).__name__, repr(a) if type(a) is float else a  # zeros have signs

    def _value(self, root: Value) -> int:
        known, stack = self._values, [root]
        while stack:
            v = stack[-1]
            if v in known:
                stack.pop()
                continue
            todo = [a for a in v.args if isinstance(a, Value) and a not in known]
            if todo:
                stack += todo
                continue
            stack.pop()
            if v.op == "load":
                args = (self._buffer(v.args[0]), self._index(v.args[1]))
            else:
                args = tuple(known[a] if isinstance(a, Value) else self._number(a) for a in v.args)
            known[v] = len(self._rows)
            self._rows.append((v.op, v.dtype, args))
        return known[root]


class Duplicates:
    """The kernels of one program by the forms of their groups."""

    def __init__(self, buffers: dict):
        self.buffers = buffers
        self.built: dict[tuple, tuple[Kernel, list[str]]] = {}

    def kernel(self, group: Group, keep: set[str], make) -> Kernel:
        """The kernel of a group: ``make()`` builds and writes it, unless there is one for a group of its form."""
        form = Form(group, self.buffers, keep)
        names = list(form.buffers)
        found = self.built.get(form.key)
        if found is None:
            kernel = make()
            self.built[form.key] = kernel, names
            return kernel
        kernel, theirs = found
        return renamed_kernel(kernel, dict(zip(theirs, names)))


def renamed_kernel(kernel: Kernel, renamed: dict[str, str], **changes: Any) -> Kernel:
    """A kernel on other buffers."""
    nodes = [StoredRow(renamed[n.buffer], n.value, n.index, n.combine, n.internal, n.reduction) for n in kernel.nodes]
    return replace(kernel, args=[renamed[a] for a in kernel.args], nodes=nodes, renamed=renamed, **changes)
