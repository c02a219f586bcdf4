"""Values of a kernel's loop IR as operands: each is written once, in the innermost scope that binds one of its variables."""

from __future__ import annotations

from ...base.expr import Expr
from ..assembly.builder import Builder
from ..assembly.instructions import I64, PTR, Operand, integer
from ..ir.nodes import Buffer
from ..ir.values import Value, Values, loaded_atoms
from .access import Access
from .addressing import Addresses
from .prefetch import Prefetch
from .scalar_ops import emit_scalar
from .scopes import Lanes, Scope, Scopes

__all__ = ["Expressions"]


class Expressions:
    """``bound``: buffers that are in registers -> (operand, whether it is a vector). ``staged``: loads of a tile -> how they are read, see
    :mod:`.tiles`. ``produced``: the buffers that the kernel fills. ``checked``: whether it looks whether loaded indices are in range."""

    def __init__(
        self,
        kernel,
        buffers: dict[str, Buffer],
        values: Values,
        scopes: Scopes,
        lanes: Lanes,
        produced: set[str],
        checked: bool,
        streamed: set[str],
    ):
        self.scopes, self.lanes = scopes, lanes
        self.produced = produced
        self.bound: dict[str, tuple[Operand, bool]] = {}
        self.staged: dict = {}
        self._dependent: dict[Value, bool] = {}
        self.addresses = Addresses(kernel, buffers, scopes, lanes, self)
        self.prefetch = Prefetch(kernel, self.addresses, scopes, lanes, values)
        self.access = Access(self.addresses, self.prefetch, scopes, lanes, streamed)
        if checked:
            # The words in which an index out of range is reported.
            self._status = scopes.entry.code.read(PTR, self.addresses.status)

    def scope(self, v: Value) -> Scope:
        """Where a value is computed: not before the loop of a reduction that it depends on, even if it has no variables."""
        scopes = self.scopes
        scope = scopes.of(v.variables())
        return scopes.once if scope is scopes.entry and self.depends(v) else scope

    def depends(self, v: Value) -> bool:
        """Whether a value is made of what the kernel itself fills."""
        found = self._dependent.get(v)
        if found is None:
            if v.op == "load" and v.args[0] in self.produced:
                found = True
            else:
                parts = [a for a in v.args if isinstance(a, Value)]
                parts += [x for a in v.args if isinstance(a, Expr) for x in loaded_atoms(a)]
                found = any([self.depends(p) for p in parts])
            self._dependent[v] = found
        return found

    def operand(self, v: Value, b: Builder) -> Operand:
        """The value as an operand for ``b``: constants inline, scalars spread over the lanes."""
        if v.op == "const":
            return b.const(v.dtype, v.args[0])
        made, vector = self.emit(v)
        if vector or b.lanes == 1:
            return made
        scope = self.scope(v)
        key = ("splat", made, b.lanes)
        if key not in scope.cache:
            scope.cache[key] = Builder(self.scopes.names, b.lanes, scope.code.out).splat(made)
        return scope.cache[key]

    def emit(self, v: Value) -> tuple[Operand, bool]:
        """(operand, whether it is a vector)."""
        if v.op == "load" and v.args[0] in self.bound:
            return self.bound[v.args[0]]
        vector = self.lanes.vary(v.variables())
        scope = self.scope(v)
        found = scope.cache.get(v)
        if found is not None:
            return found
        b = Builder(self.scopes.names, self.lanes.count, scope.code.out) if vector else scope.code
        if v.op == "const":
            return b.const(v.dtype, v.args[0]), False
        made = scope.cache[v] = self._made(v, b, vector), vector
        return made

    def _made(self, v: Value, b: Builder, vector: bool) -> Operand:
        if v.op == "load":
            staged = self.staged.get(v)
            return self.access.load(v, b) if staged is None else staged(b)
        if v.op == "index":
            return self.addresses.in_lanes(v.args[0], b) if vector else integer(self.addresses.index(v.args[0]))
        if v.op == "cast":
            (source,) = v.args
            return b.cast(source.dtype, self.operand(source, b), v.dtype)
        if v.op == "checked":
            return self._checked(v, b)
        args = [self.operand(a, b) for a in v.args]
        # NOTE: operands may have opened blocks; the scope's list is the same, so order is kept
        t = v.args[-1].dtype if v.op == "where" else v.args[0].dtype if v.dtype == "bool" else v.dtype
        return emit_scalar(b, v.op, t, args)

    def _checked(self, v: Value, b: Builder) -> Operand:
        """A loaded index: negative ones count from the end if ``wrap``; one out of range is reported in the status words and read as 0."""
        source, size, tag, wrap = v.args
        x = wrapped = self.operand(source, b)
        limit = self.addresses.spread(size, b)
        if wrap:
            wrapped = b.select(b.cmp("slt", x, 0), b.add(x, limit), x)
        bad = b.cmp("uge", wrapped, limit)
        rare, done = b.names.label("bad"), b.names.label("fine")
        b.branch(b.any(bad), rare, done)
        b.label(rare)
        value = b.extract(x, 0)
        for i in range(1, b.lanes):
            value = b.select(b.extract(bad, i), b.extract(x, i), value)
        for slot, what in enumerate((tag + 1, value, self.addresses.size(size))):
            b.write(what, b.place(I64, self._status, slot))
        b.jump(done)
        b.label(done)
        return b.select(bad, 0, wrapped)
