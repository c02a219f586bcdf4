"""Loops of a kernel: how they are written, and the segments of the one that is vectorised."""

from __future__ import annotations

from collections.abc import Callable

from ...base.expr import Expr, Var, coefficient, mod, substitute, variable
from ..assembly.dtypes import compute_type, itemsize
from ..assembly.instructions import I1, I64, PTR, Instruction, Operand, integer
from ..ir.values import Value, Values, loaded_atoms, walk, weight
from ..machine.processor import holds_lines
from .access import Access
from .addressing import Addresses
from .prefetch import LINE
from .scopes import Lanes, Scope, Scopes

__all__ = ["Loops", "Segment", "can_mask", "forwards"]

EXTREMES = ("maximum", "minimum")
EXTREME_BYTES = 256  # of accumulators side by side

COUNTER = Operand('asm "", "=r,0"', PTR)


class Segment:
    """``lanes`` at a time from ``begin`` to ``end`` of the vector variable. ``masked``: once, with the lanes below ``end``. ``bordered``: the index
    of stores that then begin on a border of a cache line."""

    __slots__ = ("begin", "end", "lanes", "masked", "bordered")

    def __init__(self, begin, end, lanes: int, masked: bool = False, bordered: Expr | None = None):
        self.begin, self.end, self.lanes, self.masked, self.bordered = begin, end, lanes, masked, bordered

    @property
    def empty(self) -> bool:
        return type(self.begin) is int and type(self.end) is int and self.begin >= self.end


class Loops:
    """``row_lanes``: the most lanes of a loop along the vector variable."""

    def __init__(self, kernel, scopes: Scopes, lanes: Lanes, addresses: Addresses, access: Access, row_lanes: int):
        self.kernel, self.scopes, self.lanes, self.addresses, self.access = kernel, scopes, lanes, addresses, access
        self.row_lanes = row_lanes
        self.opaque = True  # LLVM doesn't see that a loop counts

    def scope(self, variables) -> Scope:
        """A scope for the body of a loop."""
        return Scope(self.scopes.names, variables)

    def write(self, outer: Scope, var, begin, end, step: int, body: Scope, fill: Callable[[], None]) -> None:
        """A loop at the end of ``outer``; ``fill`` writes the body with ``var`` bound."""
        static = type(begin) is int and type(end) is int
        if static and begin < end <= begin + step:  # one turn
            body.names[var] = begin
            self.scopes.inside(body, fill)
            outer.code.out += body.code.out
            return
        names, code = self.scopes.names, outer.code
        slot = names.slot(I64)
        inside, done = names.label("body"), names.label("done")
        # NOTE: LLVM doesn't see that it counts. Else strength reduction, which has nothing to gain in loops over vectors that begin at any address,
        # takes a quarter of the time that code generation takes.
        counter = body.code.read(I64, slot, prefix="i")
        i = body.names[var] = body.code.call(I64, COUNTER, counter, prefix="i") if self.opaque else counter
        self.scopes.inside(body, fill)
        after = Instruction(names.fresh("n"), I64, "add", (i, integer(step)), "nsw")
        more = Instruction(names.fresh("c"), I1, "icmp", (after, integer(end)), "slt")
        code.write(begin, slot)
        if static:
            code.jump(inside)
        else:
            code.branch(code.emit("icmp", I1, (integer(begin), integer(end)), "slt", prefix="c"), inside, done)
        code.label(inside)
        code.out += [*body.code.out, after]
        code.write(after, slot)
        code.out.append(more)
        code.branch(more, inside, done)
        code.label(done)

    def nested(self, variables, innermost: Callable[[], None]) -> None:
        """Loops over whole variables, one in the other."""
        if not variables:
            innermost()
            return
        v, rest = variables[0], variables[1:]
        if v.extent == 1:
            self.nested(rest, innermost)
            return
        self.write(self.scopes.here, v, 0, self.end(v), 1, self.scope({v}), lambda: self.nested(rest, innermost))

    def end(self, v: Var) -> Operand | int:
        """Where a loop ends: its extent, or less in the last piece of a split one."""
        limits, size = self.kernel.limits, self.addresses.size
        if v not in limits:
            return size(v.extent)
        outer, n = limits[v]
        scope = self.scopes.of({outer})
        key = ("end", v)
        if key not in scope.cache:
            code, extent, n = scope.code, size(v.extent), size(n)
            done = code.op("mul", self.scopes.variable(outer), extent)
            scope.cache[key] = code.intrinsic("smin", code.op("sub", n, done), extent)
        return scope.cache[key]

    def either(self, scope: Scope, condition: Operand, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        names, code = self.scopes.names, scope.code
        yes, no, join = (names.label(x) for x in ("block", "part", "joined"))
        code.branch(condition, yes, no)
        code.label(yes)
        then()
        code.jump(join)
        code.label(no)
        otherwise()
        code.jump(join)
        code.label(join)

    # --- the vector variable ------------------------------------------------------------------------------------------
    def along_lanes(self, nodes, segments: list[Segment], statements: Callable[[], None]) -> None:
        """The loops along the vector variable."""
        lanes, v = self.lanes, self.lanes.along
        for s in self._peeled(nodes, segments):
            lanes.count, self.access.bordered = s.lanes, s.bordered
            if s.empty:
                continue

            def fill(s=s):
                if s.masked:
                    b = self.scopes.builder(s.lanes)
                    lanes.limit(self.addresses.atom_in_lanes(v, b), s.end, b)
                statements()
                lanes.all()

            self.write(self.scopes.here, v, s.begin, s.end, s.lanes, self.scope({v}), fill)

    def segments(self, nodes) -> list[Segment]:
        """What together covers the vector variable."""
        v, lanes, limits = self.lanes.along, self._lanes_for(nodes), self.kernel.limits
        end = self.end(v)
        if lanes == 1:
            return [Segment(0, end, 1)]
        if type(end) is not int:
            scope = self.scopes.of({limits[v][0]}) if v in limits else self.scopes.entry
            if v not in limits and mod(v.extent, lanes) == 0:
                return [Segment(0, end, lanes)]
            out, at, least = [], 0, min(lanes, 8)
            for n in (lanes, 8) if lanes > 8 else (lanes,):
                key = ("whole", v, n)
                if key not in scope.cache:
                    scope.cache[key] = scope.code.op("and", end, -n)
                out.append(Segment(at, scope.cache[key], n))
                at = scope.cache[key]
            return [*out, Segment(at, end, least, True) if can_mask(nodes, v) else Segment(at, end, 1)]
        n, at, out = v.extent, 0, []
        while lanes > 1:
            whole = at + (n - at) // lanes * lanes
            if whole > at:
                out.append(Segment(at, whole, lanes))
                at = whole
            if at == n:
                break
            lanes = 16 if lanes > 32 else min(lanes // 2, 8) if lanes > 8 else lanes // 2 if lanes > 4 else 1
        if at < n:
            out.append(Segment(at, n, 1))
        return out

    def _lanes_for(self, nodes) -> int:
        """The lanes of a loop: more than usual where all it does is find extremes, whose comparisons wait for one another longer than sums do."""
        v = self.lanes.along
        if (
            type(v.extent) is Expr
            or not holds_lines()
            or any(n.combine not in EXTREMES or not n.reduction for n in nodes)
        ):
            return self.row_lanes
        parts = walk(*(n.value for n in nodes))
        lanes = EXTREME_BYTES // (len(nodes) * max(itemsize(compute_type(x.dtype)) for x in parts if x.op != "index"))
        return lanes if self.row_lanes < lanes <= v.extent and weight(parts) <= 4 * len(nodes) else self.row_lanes

    def _peeled(self, nodes, segments: list[Segment]) -> list[Segment]:
        """The segments, or, where a store past the cache begins anywhere, what is left to the next border of a cache line, whole vectors from
        there, and the rest."""
        streamed, buffers = self.access.streamed, self.addresses.buffers
        stores = {(n.index, itemsize(buffers[n.buffer].dtype)) for n in nodes if n.buffer in streamed}
        v, lanes = self.lanes.along, self.row_lanes
        if len(stores) != 1 or any(n.reduction or n.combine is not None for n in nodes) or v in self.kernel.limits:
            return segments
        ((ix, item),) = stores
        step = min(lanes * item, LINE) // item
        if lanes * item < 32 or coefficient(ix, v) != 1 or type(v.extent) is Expr or v.extent < 4 * lanes:
            return segments
        if self.access.on_border(ix, step):
            return segments
        code, n = self.scopes.here.code, v.extent
        begin = self.addresses.index(ix - variable(v))
        head = code.op("and", code.op("sub", 0, begin), step - 1)
        whole = code.op("and", code.op("sub", n, head), -lanes)
        whole = code.op("add", head, whole)
        ends = (lanes, True) if can_mask(nodes, v) else (1, False)
        return [Segment(0, head, *ends), Segment(head, whole, lanes, False, ix), Segment(whole, n, *ends)]


def can_mask(nodes, v: Var) -> bool:
    """Whether lanes can be left out: everything is stored side by side, and no loaded index is checked (one that isn't wanted might be bad)."""
    for n in nodes:
        if n.combine is not None and not n.reduction:
            return False
        if not n.reduction and coefficient(n.index, v) != 1:
            return False
        if any(x.op == "checked" for x in walk(n.value, *loaded_atoms(n.index))):
            return False
    return True


def forwards(kernel, v: Var | None, produced: set[str], values: Values) -> list:
    """The kernel's parts, with a loop reversed that reads backwards: the processor foresees reading that goes up, and doesn't mind where is
    written."""
    items = kernel.items
    if v is None or v not in kernel.inner or type(v.extent) is Expr or v in kernel.limits or kernel.scratch:
        return items
    if len(items) != 1 or items[0][0] != "loop":
        return items
    nodes = items[0][1]
    if any(n.reduction or n.combine is not None for n in nodes):
        return items
    loads = [x for x in walk(*(n.value for n in nodes)) if x.op == "load"]
    steps = {coefficient(x.args[1], v) for x in loads}
    if -1 not in steps or not steps <= {-1, 0} or any(coefficient(n.index, v) != 1 for n in nodes):
        return items
    if any(x.args[0] in produced for x in loads):
        return items
    env = {v: v.extent - 1 - variable(v)}

    def atom(x: Value):
        return values.substitute(x, env)

    transposed = [n.transposed(values.substitute(n.value, env), substitute(n.index, env, atom)) for n in nodes]
    return [("loop", transposed)]
