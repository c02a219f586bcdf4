"""From a fused kernel to LLVM assembly.

A kernel is ``void f(ptr args, i64 begin, i64 end)``; ``args`` are the buffers, the status words and the sizes it reads (``params``). For
each parallel iteration p in [begin, end) it runs its items in order, a loop over the inner variables each, or a computation once per p. The
text is explicit vector code: one variable (the last inner one of a row kernel, the last outer one of a column kernel) advances by ``lanes``
elements, and the remainder is run with fewer. Lanes may be more than a register holds; LLVM then uses several, which gives reductions their
independent accumulators.

Each expression is emitted in the innermost scope that one of its variables is bound in (entry, p, inner loops), once per scope, as a
scalar unless it depends on the vector variable. So loop-invariant code never enters a loop and needs no pass to be moved out.
"""

from __future__ import annotations

import math
import platform

from ...base.expr import Expr, Var, floordiv, mod
from ...base.expr import variables as variables_of
from ...base.records import made_by, slotted
from ..assembly.code import Code, Names
from ..assembly.dtypes import compute_type, itemsize, stored_type
from ..assembly.instructions import (
    I1,
    I64,
    PTR,
    VOID,
    Function,
    Instruction,
    Operand,
    ParameterOperand,
    aggregate,
    constant,
)
from ..assembly.instructions import label as named
from ..ir.nodes import Buffer
from ..ir.values import DEEPEST, Value, Values, loaded_atoms, walk, weight
from ..machine.processor import reads_wide_strips
from ..settings import config
from .accumulators import Accumulators
from .column_blocks import ColumnBlocks, columns_of_block
from .expressions import Expressions
from .loop_code import Loops, forwards
from .prefetch import FETCHED, LINE, WIDE
from .row_groups import RowGroups, rows_of_group
from .scalar_ops import emit_scalar
from .scopes import Lanes, Scope, Scopes
from .tiles import Tiles

__all__ = ["Kernel", "past_cache", "weight", "write_kernel"]


@slotted(frozen=False)
class Kernel:
    """A fused loop nest. ``items``: ("loop", [nodes run for every inner iteration]) or ("once", node), in order. ``scratch``: buffers that
    only live during one p (name -> dtype), addressed by inner position. ``limits``: inner variable -> (outer variable, n): the loop
    stops where ``outer * extent + inner`` reaches n. ``args``: the buffers passed, in order; ``params``: the sizes passed, when some are symbols
    (then ``total`` and ``grain`` may be expressions too)."""

    outer: tuple[Var, ...]
    inner: tuple[Var, ...]
    column: bool
    items: list
    scratch: dict[str, str]
    limits: dict
    args: list[str]
    serial: bool = False  # inner iterations depend on each other (a scatter)
    name: str = ""
    text: str = ""
    total: int = 1
    grain: int = 1
    cost: float = 0.0
    nodes: list = made_by(list)
    params: list = made_by(list)
    renamed: dict = made_by(dict)  # of a duplicate: buffers in the values of its nodes -> its own
    in_table: bool = False  # one of many that share code and may share a launch (scheduling/tables.py)
    threads: int = (
        0  # of a block, where it is for a device of threads (threads.py): then sizes stand among the arguments
    )
    by_rows: bool = False  # there: a block makes a row
    shared: int = 0  # bytes that the threads of a block share


ARGS, BEGIN, END = (
    ParameterOperand("%args", PTR, "noalias nocapture readonly"),
    Operand("%begin", I64),
    Operand("%end", I64),
)


def _streamed(kernel: Kernel, buffers: dict[str, Buffer], leaving, reads: set[str]) -> set[str]:
    """The buffers that a kernel, which reads those, may store past the cache."""
    if kernel.serial or platform.machine() not in ("x86_64", "AMD64"):
        return set()
    return past_cache({n.buffer for n in kernel.nodes} - reads, buffers, leaving)


def past_cache(names, buffers: dict[str, Buffer], leaving) -> set[str]:
    """Those that are large and that no step reads."""
    sizes = {name: buffers[name].size for name in names if name in leaving}
    return {
        name
        for name, size in sizes.items()
        if type(size) is not Expr and size * itemsize(buffers[name].dtype) >= config.streamed_bytes
    }


def write_kernel(kernel: Kernel, buffers: dict[str, Buffer], values: Values, leaving=frozenset()) -> None:
    """Fill in ``text`` (with the name ``KERNEL`` still to be replaced), ``total``, ``grain`` and ``cost``. ``leaving``: buffers that no step reads;
    large ones are stored past the cache."""
    _Writer(kernel, buffers, values, leaving).run()


class _Writer:
    """Writes one kernel: its parts in order, each by the objects that know how."""

    def __init__(self, kernel: Kernel, buffers: dict[str, Buffer], values: Values, leaving):
        self.kernel, self.buffers, self.values = kernel, buffers, values
        self.names = Names()
        self.scopes = Scopes(self.names, kernel.outer)
        self.lanes = Lanes(self._along())
        self.items = forwards(kernel, self.lanes.variable, {n.buffer for n in _nodes(kernel.items)}, values)
        nodes = list(_nodes(self.items))
        self.writes = {n.buffer for n in nodes}
        reached = [v for n in nodes for v in walk(n.value, *loaded_atoms(n.index))]
        self.reads = {v.args[0] for v in reached if v.op == "load"}
        checked = any(v.op == "checked" for v in reached)
        # The values of each item, for what they cost.
        self.walked = [walk(*[n.value for n in _nodes([item])]) for item in self.items]
        streamed = _streamed(kernel, buffers, leaving, self.reads)
        self.expressions = Expressions(kernel, buffers, values, self.scopes, self.lanes, self.writes, checked, streamed)
        self.addresses, self.access = self.expressions.addresses, self.expressions.access
        self.loops = Loops(kernel, self.scopes, self.lanes, self.addresses, self.access, self._most_lanes())
        self.accumulators = Accumulators(kernel, self.scopes, self.lanes, self.expressions, values)
        self.block = columns_of_block(
            kernel, self.items, buffers, values, self.loops.row_lanes
        )  # columns; 0: by strips
        self.columns = ColumnBlocks(
            kernel, self.scopes, self.lanes, self.expressions, self.loops, self.accumulators, self._bind, self._item
        )
        self.tiles = Tiles(kernel, self.scopes, self.lanes, self.expressions, self.loops, self._statements)
        self.rows = rows_of_group(kernel, self.items, buffers, values)  # that are done stage by stage
        self.freed: list[Operand] = []  # rows on the heap
        self._parts: dict[Value, list[Value]] = {}

    # --- structure ----------------------------------------------------------------------------------------------------
    def _along(self) -> Var | None:
        """The variable that is vectorised."""
        return _vector_variable(self.kernel)

    def run(self) -> None:
        k, lanes = self.kernel, self.loops.row_lanes
        inner = math.prod(v.extent for v in k.inner)
        for name, t in k.scratch.items():
            self.addresses.pointers[name] = self._row(t, self.rows * inner)
        scope = Scope(self.names, k.outer)
        self.scopes.open.append(scope)
        self.scopes.once = scope
        p = Operand("%p", I64)
        if not k.column:
            k.total = math.prod(v.extent for v in k.outer)
            if self.rows > 1:
                groups = RowGroups(k, self.rows, self.scopes, self.expressions, self.loops, self._item)
                groups.write(self.items, p, END, lambda body, at: self._decompose(body, k.outer, at))
            else:
                self._decompose(scope, k.outer, p)
                self._items()
        elif self.block:
            last = k.outer[-1]
            blocks = -(-last.extent // self.block)
            k.total = math.prod(v.extent for v in k.outer[:-1]) * blocks
            self.columns.write(self.items, self._block(scope, p, blocks, self.block), self.block)
        else:
            last = k.outer[-1]
            blocks = floordiv(last.extent + (lanes - 1), lanes)
            k.total = math.prod(v.extent for v in k.outer[:-1]) * blocks
            base = self._block(scope, p, blocks, lanes)
            if mod(last.extent, lanes) == 0:
                scope.names[last] = base
                self.lanes.count = lanes
                self._items()
            else:
                self._column_with_tail(scope, last, lanes, base)
        self._finish(scope.code.out)

    def _block(self, scope: Scope, p: Operand, blocks, lanes: int) -> Operand | int:
        """Bind the outer variables of a column kernel; the first of the columns that are this iteration's."""
        code, outer, count = scope.code, self.kernel.outer, self.addresses.size(blocks)
        block = p if len(outer) == 1 else code.op("urem", p, count)
        base = code.op("mul", block, lanes) if blocks != 1 else 0
        rest = code.op("udiv", p, count) if blocks != 1 and len(outer) > 1 else p
        self._decompose(scope, outer[:-1], rest)
        return base

    def _row(self, t: str, inner) -> Operand:
        """Memory of a row: on the stack, on the heap when its length is known at the call only."""
        scalar = stored_type(t)
        if type(inner) is not Expr:
            return self.names.slot(aggregate(f"[{inner} x {scalar.text}]"), "row", 64)
        self.names.declares["malloc"] = "declare noalias ptr @malloc(i64)"
        self.names.declares["free"] = "declare void @free(ptr)"
        entry = self.scopes.entry.code
        nbytes = entry.op("mul", self.addresses.size(inner), itemsize(t))
        slot = entry.call(PTR, "@malloc", nbytes, prefix="row")
        self.freed.append(slot)
        return slot

    def _most_lanes(self) -> int:
        """As many lanes as give the latencies something to hide behind without spilling: fewer for long bodies and wide types."""
        v = self.lanes.variable
        if v is None:
            return 1
        size, longest = 1, 0.0
        for vs in self.walked:
            longest = max(longest, weight(vs))
            size = max(size, self._widest(vs, v))
        lanes = 128 // size if longest <= 8 else 64 // size
        lanes = max(4, min(lanes, 32))
        if self._in_wide_strips(lanes, size, longest):
            return WIDE // size
        extent = self.values.hint(v.extent)
        while lanes > 4 and lanes > extent:
            lanes //= 2
        return lanes if extent >= 4 else 1

    @staticmethod
    def _widest(values, v: Var) -> int:
        """The bytes of the widest type that more than a tenth of the work along the lanes is in: the place that an element is compared with is
        twice as wide as the floats of a long body, which shall fill the registers."""
        work: dict[int, float] = {}
        for x in values:
            if x.op != "const" and v in x.variables():
                n = itemsize(compute_type(x.dtype)) if x.op != "index" else 8
                work[n] = work.get(n, 0) + max(weight([x]), 1)
        enough = sum(work.values()) / 10
        return max((n for n, done in work.items() if done > enough), default=1)

    def _in_wide_strips(self, lanes: int, size: int, longest: float) -> bool:
        """Whether a short body sums whole strips of columns of a large operand."""
        k, v = self.kernel, self.lanes.variable
        if not k.column or not k.inner or longest > 2 or size > 8 or not reads_wide_strips():
            return False
        whole = WIDE // size
        large = any(self.values.hint(self.buffers[b].size) * size >= FETCHED for b in self.reads)
        return lanes < whole and large and type(v.extent) is not Expr and v.extent % whole == 0

    def _decompose(self, scope: Scope, variables, p: Operand) -> None:
        """Values of the outer variables from the parallel index."""
        live = [v for v in variables if v.extent != 1]
        for n, v in enumerate(reversed(live)):
            if n == len(live) - 1:
                scope.names[v] = p
            else:
                extent = self.addresses.size(v.extent)
                scope.names[v] = scope.code.op("urem", p, extent)
                p = scope.code.op("udiv", p, extent)

    def _column_with_tail(self, scope: Scope, last: Var, lanes: int, base) -> None:
        code = scope.code
        end = code.op("add", base, lanes)
        extent = self.addresses.size(last.extent)
        full = code.cmp("sle", end, extent)
        yes, no, join = (self.names.label(x) for x in ("full", "tail", "join"))
        code.branch(full, yes, no)
        code.label(yes)
        self._columns(scope, last, lanes, base)
        code.jump(join)
        code.label(no)
        body = Scope(self.names, {last})
        tail = lambda: self._columns(body, last, 1, body.names[last])  # noqa: E731
        self.loops.write(scope, last, base, extent, 1, body, tail)
        code.jump(join)
        code.label(join)

    def _columns(self, scope: Scope, last: Var, lanes: int, base) -> None:
        """The items for columns [base, base + lanes), in a scope of their own so that nothing cached leaks out."""
        self.lanes.count = lanes
        self.expressions.bound = {}
        self.scopes.apart(scope, self._items, {last: base})

    def _items(self) -> None:
        for kind, what in self.items:
            self._item(kind, what)

    def _item(self, kind: str, what) -> None:
        if kind == "once":
            self.expressions.bound[what.buffer] = self.expressions.emit(what.value)
            if what.buffer in self.addresses.pointers:
                self._store(what)
        else:
            self._nest(what)

    # --- loops --------------------------------------------------------------------------------------------------------
    def _nest(self, nodes) -> None:
        """The loops over the inner variables with all ``nodes`` inside; reductions end up bound."""
        tiles, prefetch = self.tiles, self.expressions.prefetch
        found = tiles.staged(nodes)
        prefetch.by_tiles, prefetch.by_rows = bool(found), tiles.goes_by_rows(nodes)
        prefetch.alone = self._only_sums(nodes)
        if prefetch.by_rows:
            tiles.move_rows(nodes)
        elif tiles.moves_squares(nodes, found):
            tiles.squares(nodes, found[0], lambda: self._loops(nodes, found))
        else:
            self._loops(nodes, found)

    def _only_sums(self, nodes) -> bool:
        """Whether these loops, the kernel's only ones, reduce one operand that is read once."""
        only = sum(kind != "once" for kind, _ in self.items) == 1 and all(n.reduction for n in nodes)
        return only and len({v.args for v in walk(*(n.value for n in nodes)) if v.op == "load"}) == 1

    def _loops(self, nodes, found) -> None:
        """The same, loop by loop; ``found``: what is staged first."""
        inner, v = self.kernel.inner, self.lanes.variable
        for load in found:
            self.tiles.stage(load)
        along = v in inner
        segments = self.loops.segments(nodes) if along else []
        counts = sorted({s.lanes for s in segments} or {self.lanes.count}, reverse=True)
        reductions = [n for n in nodes if n.reduction]
        for node in reductions:
            for lanes in counts:
                self.accumulators.open(node, lanes)
        statements = lambda: self._statements(nodes)  # noqa: E731
        innermost = (lambda: self.loops.along_lanes(nodes, segments, statements)) if along else statements
        self.loops.nested([x for x in inner if x is not v], innermost)
        for node in reductions:
            self._bind(node, *self.accumulators.close(node, counts))

    def _statements(self, nodes) -> None:
        for node in nodes:
            for part in self._deep(node.value):
                self.expressions.depends(part)
                self.expressions.emit(part)
            if node.reduction:
                self.accumulators.add(node)
            elif node.combine is not None:
                self._scatter(node)
            else:
                self._store(node)

    def _deep(self, v: Value) -> list[Value]:
        """The parts of a value with very many: an operand is a call of Python's within another, and from the leaves on none is deep."""
        found = self._parts.get(v)
        if found is None:
            parts = walk(v)
            found = self._parts[v] = parts if len(parts) > DEEPEST else []
        return found

    def _store(self, node) -> None:
        lanes = self.lanes
        vector = lanes.vary(node.value.variables()) or lanes.vary(variables_of(node.index))
        x = self.expressions.operand(node.value, self.scopes.builder(lanes.count if vector else 1))
        self.access.store(node.buffer, node.index, x, vector, node.value.dtype)

    def _bind(self, node, x: Operand, vector: bool) -> None:
        """A value that is in a register from here on, and in memory where it is wanted there."""
        self.expressions.bound[node.buffer] = x, vector
        if node.buffer in self.addresses.pointers:
            self.access.store(node.buffer, node.index, x, vector, self.buffers[node.buffer].dtype)

    def _scatter(self, node) -> None:
        """``buffer[index] = combine(buffer[index], value)``; only one lane may meet an element."""
        vector = self.lanes.count > 1
        b, t = self.scopes.builder(self.lanes.count), node.value.dtype
        x = self.expressions.operand(node.value, b)
        if node.combine != "assign":
            pointer = self.addresses.pointer(node.buffer, self.addresses.index(node.index), b)
            old = b.load(t, pointer)
            op = {"multiply": "mul"}.get(node.combine, node.combine)
            x = emit_scalar(b, op, t, [old, x])
            if t == "bf16" or t == "f16":
                x = b.round_half(x, t)
            b.store(t, x, pointer)
            return
        self.access.store(node.buffer, node.index, x, vector, t)

    # --- the function -------------------------------------------------------------------------------------------------
    def _finish(self, each: list[Instruction]) -> None:
        """Fill in the kernel. ``each``: what is done for one parallel iteration."""
        k = self.kernel
        symbolic = self._estimate()
        if symbolic:
            head = [f"; sizes at {len(k.args) + 1}: {len(k.params)}"]
        else:
            head = [f"; parallel over {k.total} iterations, in pieces of at least {k.grain}"]
        head += [f"; {', '.join(self._described())}", *self.names.declares.values()]
        k.text = "\n".join([*head, *self._functions(self._body(each)), "!0 = !{}"]) + "\n"

    def _estimate(self) -> bool:
        """Fill in ``cost`` and ``grain``; whether sizes are symbols."""
        k = self.kernel
        inner = math.prod(v.extent for v in k.inner)
        per_item = sum(weight(vs) if kind == "loop" else 0.2 for (kind, _), vs in zip(self.items, self.walked)) + 1
        width = (self.block or self.loops.row_lanes) if k.column else 1
        speed = 8.0 if self.lanes.variable is not None else 1.0
        share = per_item * width / speed
        per_p = share * self.values.hint(inner) + 5
        k.cost = per_p * self.values.hint(k.total) / 3000.0  # microseconds, roughly
        if type(inner) is Expr:
            k.grain = floordiv(12 * 3000 * 64, inner * max(1, round(64 * share)) + 5 * 64) + 1
            return True
        k.grain = max(1, math.ceil(12.0 * 3000.0 / per_p))  # pieces of at least about 12 us
        if type(k.total) is Expr:
            return True
        k.grain = min(k.total, k.grain) or 1
        return False

    def _described(self) -> list[str]:
        """The buffers in the order of the arguments."""
        described, n_in, n_out = [], 0, 0
        for name in self.kernel.args:
            t = self.buffers[name].dtype
            if name in self.writes:
                described.append(f"{'inout' if name in self.reads else 'out'}_ptr{n_out}: {t}")
                n_out += 1
            else:
                described.append(f"in_ptr{n_in}: {t}")
                n_in += 1
        return described

    def _body(self, each: list[Instruction]) -> list[Instruction]:
        code, names = Code(self.names, []), self.names
        entry, loop, leave = (named(x) for x in ("entry", "each", "exit"))
        code.label(entry)
        code.out += names.entry
        slot = code.named("%pslot", "alloca", PTR, flags="i64")
        code.write(BEGIN, slot)
        code.out += self.scopes.entry.code.out
        if self.freed:
            self._rows_there(code, leave)
        code.branch(code.named("%some", "icmp", I1, BEGIN, END, flags="slt"), loop, leave)
        code.label(loop)
        p = code.named("%p", "load", I64, slot)
        code.out += each
        after = code.named("%pnext", "add", I64, p, constant(I64, self.rows), flags="nsw")
        code.write(after, slot)
        code.branch(code.named("%pmore", "icmp", I1, after, END, flags="slt"), loop, leave)
        code.label(leave)
        for row in self.freed:
            code.call(VOID, "@free", row)
        code.do("ret", flags="void")
        return code.out

    def _rows_there(self, code: Code, leave: Operand) -> None:
        """Nothing is computed when the heap had no memory for a row: the status words say so."""
        status = code.named("%status", "load", PTR, self.addresses.status)
        missing: Operand = constant(I1, False)
        for i, row in enumerate(self.freed):
            none = code.named(f"%null{i}", "icmp", I1, row, Operand("null", PTR), flags="eq")
            missing = code.named(f"%none{i}", "or", I1, missing, none)
        rare, start = named("nomemory"), named("start")
        code.branch(missing, rare, start)
        code.label(rare)
        code.write(-1, status)
        code.jump(leave)
        code.label(start)

    def _functions(self, body: list[Instruction]) -> list[str]:
        """The kernel's text, as two functions where stores go past the cache: that needs memory on the borders of cache lines, which only the call
        knows."""
        past = self.access.past
        if not past:
            return _function("KERNEL", body).lines()
        return [
            *_function("KERNEL.plain", body, "internal").lines(),
            *_function("KERNEL.stream", [_past_cache(i, past) for i in body], "internal").lines(),
            *_function("KERNEL", self._choice()).lines(),
            "declare void @llvm.x86.sse.sfence()",
            "!1 = !{i32 1}",
        ]

    def _choice(self) -> list[Instruction]:
        """Calls the one function or the other."""
        code = Code(self.names, [])
        code.label(named("entry"))
        places = []
        for i, name in enumerate(self.kernel.args):
            if name in self.access.streamed:
                place = code.named(f"%place{i}", "getelementptr", PTR, ARGS, constant(I64, i), flags="ptr")
                pointer = code.named(f"%ptr{i}", "load", PTR, place)
                places.append(code.named(f"%at{i}", "ptrtoint", I64, pointer))
        whole, *rest = places
        for i, place in enumerate(rest):
            whole = code.named(f"%all{i}", "or", I64, whole, place)
        over = code.named("%over", "and", I64, whole, constant(I64, LINE - 1))
        aligned = code.named("%aligned", "icmp", I1, over, constant(I64, 0), flags="eq")
        stream, plain = named("stream"), named("plain")
        code.branch(aligned, stream, plain)
        code.label(stream)
        code.call(VOID, "@KERNEL.stream", ARGS, BEGIN, END)
        code.call(VOID, "@llvm.x86.sse.sfence")  # such stores are ordered by nothing else
        code.do("ret", flags="void")
        code.label(plain)
        code.call(VOID, "@KERNEL.plain", ARGS, BEGIN, END)
        code.do("ret", flags="void")
        return code.out


def _vector_variable(kernel: Kernel) -> Var | None:
    if kernel.column:
        return kernel.outer[-1] if kernel.outer else None
    return kernel.inner[-1] if kernel.inner and not kernel.serial else None


def _nodes(items):
    for kind, what in items:
        yield from (what if kind == "loop" else [what])


def _function(name: str, body: list[Instruction], linkage: str = "") -> Function:
    return Function(name, VOID, (ARGS, BEGIN, END), body, linkage, "nounwind")


def _past_cache(i: Instruction, past: dict[Instruction, int]) -> Instruction:
    """The same store past the cache, where it may go there."""
    if i not in past:
        return i
    return Instruction(i.text, i.type, i.operation, i.args, i.flags, f", align {past[i]}, !nontemporal !1")
