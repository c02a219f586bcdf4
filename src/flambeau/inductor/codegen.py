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
from dataclasses import dataclass, field

from ..base.expr import Expr, Var, coefficient, floordiv, mod, variable
from .addressing import LINE, STREAM, Scope
from .builder import Builder, Names, compute_type, is_float, is_unsigned, itemsize
from .ir import Buffer
from .lazy import DEEPEST
from .scalar_ops import emit_scalar
from .settings import config
from .tiles import Tiles
from .values import Value, Values, loaded_atoms, walk, weight

__all__ = ["Kernel", "identity", "write_kernel"]


@dataclass(slots=True)
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
    nodes: list = field(default_factory=list)
    params: list = field(default_factory=list)
    renamed: dict = field(default_factory=dict)  # of a twin: buffers in the values of its nodes -> its own


PARAMETERS = "ptr noalias nocapture readonly %args, i64 %begin, i64 %end"


def streamed(kernel: Kernel, buffers: dict[str, Buffer], leaving) -> set[str]:
    """The buffers that a kernel may store past the cache."""
    if kernel.serial or platform.machine() not in ("x86_64", "AMD64"):
        return set()
    loaded = {v.args[0] for n in kernel.nodes for v in walk(n.value, *loaded_atoms(n.index)) if v.op == "load"}
    return past_cache({n.buffer for n in kernel.nodes} - loaded, buffers, leaving)


def past_cache(names, buffers: dict[str, Buffer], leaving) -> set[str]:
    """Those that are large and that no step reads."""
    sizes = {name: buffers[name].size for name in names if name in leaving}
    return {
        name
        for name, size in sizes.items()
        if type(size) is not Expr and size * itemsize(buffers[name].dtype) >= config.streamed_bytes
    }


def _streaming(line: str) -> str:
    """A line of the function that stores past the cache."""
    store, mark, align = line.partition(STREAM)
    return f"{store.rsplit(', align', 1)[0]}, align {align}, !nontemporal !1" if mark else line


_INT_MIN = {"i8": -(1 << 7), "i16": -(1 << 15), "i32": -(1 << 31), "i64": -(1 << 63)}


def identity(combine: str, t: str):
    """The element that leaves ``combine`` unchanged, for a type."""
    if combine in ("add", "logical_or", "bitwise_or", "bitwise_xor", "logical_xor"):
        return 0
    if combine in ("mul", "logical_and", "multiply"):
        return 1
    if combine in ("maximum", "argmax"):
        if is_float(t):
            return -math.inf
        return 0 if is_unsigned(t) or t == "bool" else _INT_MIN[t]
    if combine in ("minimum", "argmin"):
        if is_float(t):
            return math.inf
        return 1 if t == "bool" else (1 << (itemsize(t) * 8)) - 1 if is_unsigned(t) else -_INT_MIN[t] - 1
    raise NotImplementedError(f"reduction by {combine}")


def write_kernel(kernel: Kernel, buffers: dict[str, Buffer], values: Values, leaving=frozenset()) -> None:
    """Fill in ``text`` (with the name ``KERNEL`` still to be replaced), ``total``, ``grain`` and ``cost``. ``leaving``: buffers that no step reads;
    large ones are stored past the cache."""
    _Writer(kernel, buffers, values, leaving).run()


class _Writer(Tiles):
    def __init__(self, kernel, buffers, values, leaving):
        self.k, self.buffers, self.values = kernel, buffers, values
        self.streamed = streamed(kernel, buffers, leaving)
        self.streams = False  # whether a store goes past the cache
        self.names = Names()
        self.entry = Scope([])
        self.scopes = [self.entry]
        self.lanes = 1
        self.vv = (
            kernel.outer[-1]
            if kernel.column and kernel.outer
            else kernel.inner[-1]
            if kernel.inner and not kernel.column
            else None
        )
        if kernel.serial and not kernel.column:
            self.vv = None
        self.items = kernel.items
        self.bound: dict[str, tuple[str, bool]] = {}
        self.pointers: dict[str, str] = {}
        self.produced = {n.buffer for n in self._nodes()}
        self.items = self.forwards(kernel.items)
        self.dependent: dict[Value, bool] = {}
        self.once = self.entry  # the scope that is entered for each p
        self.freed: list[str] = []  # rows on the heap
        self.mask = self.last = None
        self.staged: dict[Value, str] = {}
        self.tiled = self.by_rows = (
            False  # whether the loops at hand turn a tile of some operand, go through several rows by turns
        )
        self.bordered: Expr | None = None  # the index of stores that begin on a border of a cache line
        self.fetched: set[tuple] = set()  # (buffer, index) of what is asked for ahead

    # --- structure ----------------------------------------------------------------------------------------------------
    def run(self):
        k = self.k
        for i, name in enumerate(k.args):
            at = self._line(self.entry, f"getelementptr ptr, ptr %args, i64 {i}")
            self.pointers[name] = self._line(self.entry, f"load ptr, ptr {at}, !noundef !0")
        status = self._line(self.entry, f"getelementptr ptr, ptr %args, i64 {len(k.args)}")
        self.status = None
        if any(v.op == "checked" for n in self._nodes() for v in walk(n.value, *loaded_atoms(n.index))):
            self.status = self._line(self.entry, f"load ptr, ptr {status}")
        inner = math.prod(v.extent for v in k.inner)
        for name, t in k.scratch.items():
            scalar = Builder(self.names, 1, []).memory_type(t)
            self.pointers[name] = self._row(scalar, itemsize(t), inner)
        lanes = self.vector_lanes()
        outer = list(k.outer)
        block = 1
        if k.column:
            block = lanes
            last = outer[-1]
            blocks = floordiv(last.extent + (block - 1), block)
            total = math.prod(v.extent for v in outer[:-1]) * blocks
        else:
            total = math.prod(v.extent for v in outer)
        k.total = total
        p_lines: list[str] = []
        scope = Scope(p_lines, outer)
        self.scopes.append(scope)
        self.once = scope
        p = "%p"
        if k.column:
            count = self.size(blocks)
            cb = p if len(outer) == 1 else self._line(scope, f"urem i64 {p}, {count}")
            base = self._line(scope, f"mul i64 {cb}, {block}") if blocks != 1 else "0"
            rest = p if blocks == 1 else self._line(scope, f"udiv i64 {p}, {count}") if len(outer) > 1 else p
            self._decompose(scope, outer[:-1], rest)
            if mod(last.extent, block) == 0:
                scope.names[last] = base
                self.lanes = block
                self._items()
            else:
                self._column_with_tail(scope, last, block, base)
        else:
            self._decompose(scope, outer, p)
            self.row_lanes = lanes
            self._items()
        self._finish(p_lines)

    def _row(self, scalar, item, inner) -> str:
        """Memory of a row: on the stack, on the heap when its length is known at the call only."""
        if type(inner) is not Expr:
            slot = self.names.fresh("row")
            self.names.entry.append(f"{slot} = alloca [{inner} x {scalar}], align 64")
            return slot
        self.names.declares["malloc"] = "declare noalias ptr @malloc(i64)"
        self.names.declares["free"] = "declare void @free(ptr)"
        nbytes = self._line(self.entry, f"mul i64 {self.size(inner)}, {item}")
        slot = self._line(self.entry, f"call ptr @malloc(i64 {nbytes})", "row")
        self.freed.append(slot)
        return slot

    def _nodes(self):
        for kind, what in self.items:
            yield from (what if kind == "loop" else [what])

    def vector_lanes(self) -> int:
        """As many lanes as give the latencies something to hide behind without spilling: fewer for long bodies and wide types."""
        if self.vv is None:
            return 1
        size, longest = 1, 0.0
        for kind, what in self.items:
            nodes = what if kind == "loop" else [what]
            vs = walk(*[n.value for n in nodes])
            longest = max(longest, weight(vs))
            for v in vs:
                if v.op != "const" and self.vv in v.variables():
                    size = max(size, itemsize(compute_type(v.dtype)) if v.op != "index" else 8)
        lanes = 128 // size if longest <= 8 else 64 // size
        lanes = max(4, min(lanes, 32))
        extent = self.values.hint(self.vv.extent)
        while lanes > 4 and lanes > extent:
            lanes //= 2
        return lanes if extent >= 4 else 1

    def _decompose(self, scope, variables, p):
        """Names of the outer variables from the parallel index."""
        live = [v for v in variables if v.extent != 1]
        for n, v in enumerate(reversed(live)):
            if n == len(live) - 1:
                scope.names[v] = p
            else:
                extent = self.size(v.extent)
                scope.names[v] = self._line(scope, f"urem i64 {p}, {extent}")
                p = self._line(scope, f"udiv i64 {p}, {extent}")

    def _column_with_tail(self, scope, last, block, base):
        end = self._line(scope, f"add i64 {base}, {block}")
        extent = self.size(last.extent)
        full = self._line(scope, f"icmp sle i64 {end}, {extent}")
        yes, no, join = (self.names.fresh(x) for x in ("full", "tail", "join"))
        scope.lines.append(f"br i1 {full}, label {yes}, label {no}")
        scope.lines.append(f"{yes[1:]}:")
        self._with_column(scope, last, block, base)
        scope.lines += [f"br label {join}", f"{no[1:]}:"]
        body = Scope([], {last})
        self._loop_text(
            scope,
            last,
            base,
            extent,
            1,
            body,
            lambda: self._with_column(body, last, 1, body.names[last], same=True),
        )
        scope.lines += [f"br label {join}", f"{join[1:]}:"]

    def _with_column(self, scope, last, lanes, base, same=False):
        """The items for columns [base, base + lanes), in a scope of their own so that nothing cached leaks out."""
        self.lanes = lanes
        self.bound = {}
        self._apart(scope, self._items, {last: base})

    def _apart(self, scope, write, names=()):
        """What ``write`` writes, in a scope of its own that holds the outer variables, so that nothing cached leaks out."""
        fresh = Scope(scope.lines, self.k.outer)
        for s in self.scopes:
            fresh.names.update(s.names)
        fresh.names.update(names)
        once, self.once = self.once, fresh
        self.scopes.append(fresh)
        write()
        self.scopes.pop()
        self.once = once

    def _items(self):
        for kind, what in self.items:
            if kind == "once":
                self._once(what)
            else:
                self._nest(what)

    def _once(self, node):
        name, vec = self.emit(node.value)
        self.bound[node.buffer] = (name, vec)
        if node.buffer in self.pointers:
            self._store(node.buffer, node.index, node.value)

    # --- loops --------------------------------------------------------------------------------------------------------
    def _loop_text(self, outer, var, begin, end, step, body, fill):
        """A loop at the end of ``outer``; ``fill`` writes the body with ``var`` bound. Nothing when it is statically empty."""
        static = begin.isdigit() and end.isdigit()
        if static and int(begin) < int(end) <= int(begin) + step:  # one turn
            body.names[var] = begin
            self.scopes.append(body)
            fill()
            self.scopes.pop()
            outer.lines += body.lines
            return
        slot = self.names.slot("i64")
        inside, done = (self.names.fresh(x) for x in ("body", "done"))
        counter, i = self.names.fresh("i"), self.names.fresh("i")
        # NOTE: LLVM doesn't see that it counts. Else strength reduction, which has nothing to gain in loops over vectors that begin at any address,
        # takes a quarter of the time that code generation takes.
        body.lines += [f"{counter} = load i64, ptr {slot}", f'{i} = call i64 asm "", "=r,0"(i64 {counter})']
        body.names[var] = i
        self.scopes.append(body)
        fill()
        self.scopes.pop()
        after = self.names.fresh("n")
        more = self.names.fresh("c")
        outer.lines.append(f"store i64 {begin}, ptr {slot}")
        if not static:
            first = self.names.fresh("c")
            outer.lines += [f"{first} = icmp slt i64 {begin}, {end}", f"br i1 {first}, label {inside}, label {done}"]
        else:
            outer.lines.append(f"br label {inside}")
        outer.lines += [
            f"{inside[1:]}:",
            *body.lines,
            f"{after} = add nsw i64 {i}, {step}",
            f"store i64 {after}, ptr {slot}",
            f"{more} = icmp slt i64 {after}, {end}",
            f"br i1 {more}, label {inside}, label {done}",
            f"{done[1:]}:",
        ]

    def _nest(self, nodes):
        """The loops over the inner variables with all ``nodes`` inside; reductions end up bound."""
        found = self.find_staged(nodes)
        self.tiled, self.by_rows = bool(found), self.goes_by_rows(nodes)
        if self.by_rows:
            self.move_rows(nodes)
        elif self.moves_squares(nodes, found):
            self.squares(nodes, found[0], lambda: self._loops(nodes, found))
        else:
            self._loops(nodes, found)

    def _loops(self, nodes, found):
        """The same, loop by loop; ``found``: what is staged first."""
        k = self.k
        accs = {}
        base = self.scopes[-1]
        for v in found:
            self.stage(v)
        if self.vv in k.inner:
            segments = self._segments(nodes)
        else:
            segments = [(None, None, self.lanes, False)]
        for node in nodes:
            if node.reduction:
                for lanes in sorted({s[2] for s in segments}, reverse=True):
                    accs[id(node), lanes] = self._new_accumulator(node, lanes, base)

        def innermost():
            if self.vv not in k.inner:
                self._statements(nodes, accs)
                return
            for begin, end, lanes, masked, bordered in self._peeled(nodes, segments):
                self.lanes, self.bordered = lanes, bordered
                body = Scope([], {self.vv})
                if begin.isdigit() and end.isdigit() and int(begin) >= int(end):
                    continue

                def fill(end=end if masked else None):
                    self.set_mask(end)
                    self._statements(nodes, accs)
                    self.set_mask(None)

                self._loop_text(self.scopes[-1], self.vv, begin, end, lanes, body, fill)

        plain = [v for v in k.inner if v is not self.vv]
        self._nested(plain, innermost)
        for node in nodes:
            if node.reduction:
                self._finish_reduction(
                    node, [(lanes, accs[id(node), lanes]) for lanes in sorted({s[2] for s in segments}, reverse=True)]
                )

    def _nested(self, variables, innermost):
        if not variables:
            innermost()
            return
        v = variables[0]
        if v.extent == 1:
            self._nested(variables[1:], innermost)
            return
        body = Scope([], {v})
        self._loop_text(self.scopes[-1], v, "0", self._end(v), 1, body, lambda: self._nested(variables[1:], innermost))

    def _end(self, v) -> str:
        """Where a loop ends: its extent, or less in the last piece of a split one."""
        if v not in self.k.limits:
            return self.size(v.extent)
        outer, n = self.k.limits[v]
        scope = self.scope_of({outer})
        key = ("end", v)
        if key not in scope.cache:
            extent, n = self.size(v.extent), self.size(n)
            done = self._line(scope, f"mul i64 {self._variable(outer)}, {extent}")
            left = self._line(scope, f"sub i64 {n}, {done}")
            scope.cache[key] = self._line(scope, f"call i64 @llvm.smin.i64(i64 {left}, i64 {extent})")
        return scope.cache[key]

    def _segments(self, nodes):
        """(begin, end, lanes, masked) that together cover the vector variable; a masked one runs once, with the lanes below ``end``."""
        v, lanes = self.vv, self.row_lanes
        end = self._end(v)
        if lanes == 1:
            return [("0", end, 1, False)]
        if not end.isdigit():
            scope = self.scope_of({self.k.limits[v][0]}) if v in self.k.limits else self.entry
            if v not in self.k.limits and mod(v.extent, lanes) == 0:
                return [("0", end, lanes, False)]
            out, at, least = [], "0", min(lanes, 8)
            for n in (lanes, 8) if lanes > 8 else (lanes,):
                key = ("whole", v, n)
                if key not in scope.cache:
                    scope.cache[key] = self._line(scope, f"and i64 {end}, {-n}")
                out.append((at, scope.cache[key], n, False))
                at = scope.cache[key]
            return [*out, (at, end, least, True) if self._can_mask(nodes) else (at, end, 1, False)]
        n, at, out = v.extent, 0, []
        while lanes > 1:
            whole = at + (n - at) // lanes * lanes
            if whole > at:
                out.append((str(at), str(whole), lanes, False))
                at = whole
            if at == n:
                break
            lanes = min(lanes // 2, 8) if lanes > 8 else lanes // 2 if lanes > 4 else 1
        if at < n:
            out.append((str(at), str(n), 1, False))
        return out

    def _can_mask(self, nodes) -> bool:
        """Whether lanes can be left out: everything is stored side by side, and no loaded index is checked (one that isn't wanted might be bad)."""
        for n in nodes:
            if n.combine is not None and not n.reduction:
                return False
            if not n.reduction and coefficient(n.index, self.vv) != 1:
                return False
            if any(v.op == "checked" for v in walk(n.value, *loaded_atoms(n.index))):
                return False
        return True

    def _statements(self, nodes, accs):
        for node in nodes:
            parts = walk(node.value)
            if (
                len(parts) > DEEPEST
            ):  # NOTE: an operand is a call of Python's within another: from the leaves on, none is deep
                for part in parts:
                    self._depends(part)
                    self.emit(part)
            if node.reduction:
                self._accumulate(node, accs[id(node), self.lanes])
            elif node.combine is not None:
                self._scatter(node)
            else:
                self._store(node.buffer, node.index, node.value)

    # --- reductions ---------------------------------------------------------------------------------------------------
    def _new_accumulator(self, node, lanes, scope):
        t = compute_type(node.value.dtype)
        b = Builder(self.names, lanes, scope.lines)
        slot = self.names.slot(b.ty(t))
        scope.lines.append(f"store {b.ty(t)} {b.const(t, identity(node.combine, t))}, ptr {slot}")
        if node.combine not in ("argmax", "argmin"):
            return slot, None
        at = self.names.slot(b.ty("i64"))
        scope.lines.append(f"store {b.ty('i64')} {b.const('i64', 0)}, ptr {at}")
        return slot, at

    def _accumulate(self, node, acc):
        t = compute_type(node.value.dtype)
        slot, at = acc
        b = Builder(self.names, self.lanes, self.scopes[-1].lines)
        x = self.operand(node.value, b)
        if self.mask is not None:
            x = b.select(t, self.mask, x, b.const(t, identity(node.combine, t)))
        ty = b.ty(t)
        old = b.emit(f"load {ty}, ptr {slot}")
        if at is None:
            b.out.append(f"store {ty} {emit_scalar(b, node.combine, t, [old, x])}, ptr {slot}")
            return
        position = 0
        for v in self.k.inner:
            position = position * v.extent + variable(v)
        here = self.operand(self.values.index(position), b)
        oldat = b.emit(f"load {b.ty('i64')}, ptr {at}")
        best, where = self._better(b, node.combine, t, old, oldat, x, here, tie=False)
        b.out += [f"store {ty} {best}, ptr {slot}", f"store {b.ty('i64')} {where}, ptr {at}"]

    @staticmethod
    def _better(b, combine, t, x, i, y, j, tie):
        """(value, index) of the winner; NaN wins, equal values keep the earlier index."""
        pred = ("o" if is_float(t) else "u" if is_unsigned(t) or t == "bool" else "s") + (
            "gt" if combine == "argmax" else "lt"
        )
        win = b.cmp(pred, t, y, x)
        same = None
        if is_float(t):
            xnan, ynan = b.cmp("uno", t, x, x), b.cmp("uno", t, y, y)
            fresh = b.op("and", "bool", ynan, b.op("xor", "bool", xnan, b.const("bool", True)))
            win = b.op("or", "bool", win, fresh)
            if tie:
                same = b.op("or", "bool", b.cmp("oeq", t, x, y), b.op("and", "bool", xnan, ynan))
        elif tie:
            same = b.cmp("eq", t, x, y)
        if tie:
            win = b.op("or", "bool", win, b.op("and", "bool", same, b.cmp("slt", "i64", j, i)))
        return b.select(t, win, y, x), b.select("i64", win, j, i)

    def _finish_reduction(self, node, parts):
        """Combine the accumulators of all lanes (a tree) and bind the result."""
        t = compute_type(node.value.dtype)
        scope = self.scopes[-1]
        if self.k.column:
            ((lanes, (slot, at)),) = parts
            b = Builder(self.names, lanes, scope.lines)
            ty, source = (b.ty(t), slot) if at is None else (b.ty("i64"), at)
            self._bind(node, b.emit(f"load {ty}, ptr {source}"), lanes > 1)
            return
        total = where = None
        for lanes, (slot, at) in parts:
            b = Builder(self.names, lanes, scope.lines)
            x = b.emit(f"load {b.ty(t)}, ptr {slot}")
            i = b.emit(f"load {b.ty('i64')}, ptr {at}") if at else None
            while b.lanes > 1:
                half = Builder(self.names, b.lanes // 2, scope.lines)
                (x, y) = self._halves(b, t, x)
                if at:
                    i, j = self._halves(b, "i64", i)
                    x, i = self._better(half, node.combine, t, x, i, y, j, tie=True)
                else:
                    x = emit_scalar(half, node.combine, t, [x, y])
                b = half
            if total is None:
                total, where = x, i
            elif at:
                total, where = self._better(b, node.combine, t, total, where, x, i, tie=True)
            else:
                total = emit_scalar(b, node.combine, t, [total, x])
        self._bind(node, where if where is not None else total, False)

    def _halves(self, b, t, x):
        n = b.lanes // 2
        if n == 1:
            return b.extract(t, x, 0), b.extract(t, x, 1)
        out = []
        for start in (0, n):
            mask = ", ".join(f"i32 {start + i}" for i in range(n))
            out.append(b.emit(f"shufflevector {b.ty(t)} {x}, {b.ty(t)} poison, <{n} x i32> <{mask}>"))
        return out

    def _bind(self, node, name, vec):
        self.bound[node.buffer] = (name, vec)
        if node.buffer in self.pointers:
            self._store_name(node.buffer, node.index, name, vec, self.buffers[node.buffer].dtype)

    # --- expressions --------------------------------------------------------------------------------------------------
    def value_scope(self, v: Value) -> Scope:
        """Where a value is computed: not before the loop of a reduction that it depends on, even if it has no variables."""
        scope = self.scope_of(v.variables())
        return self.once if scope is self.entry and self._depends(v) else scope

    def _depends(self, v: Value) -> bool:
        found = self.dependent.get(v)
        if found is None:
            if v.op == "load" and v.args[0] in self.produced:
                found = True
            else:
                parts = [a for a in v.args if isinstance(a, Value)]
                parts += [x for a in v.args if isinstance(a, Expr) for x in loaded_atoms(a)]
                found = any([self._depends(p) for p in parts])
            self.dependent[v] = found
        return found

    def is_vector(self, v: Value) -> bool:
        return self.lanes > 1 and self.vv in v.variables()

    def operand(self, v: Value, b: Builder) -> str:
        """The value as an operand for ``b``: constants inline, scalars spread over the lanes."""
        if v.op == "const":
            return b.const(v.dtype, v.args[0])
        name, vec = self.emit(v)
        if vec or b.lanes == 1:
            return name
        scope = self.value_scope(v)
        key = ("splat", name, b.lanes)
        if key not in scope.cache:
            scope.cache[key] = Builder(self.names, b.lanes, scope.lines).splat(compute_type(v.dtype), name)
        return scope.cache[key]

    def emit(self, v: Value) -> tuple[str, bool]:
        """(name, is it a vector)."""
        if v.op == "load" and v.args[0] in self.bound:
            return self.bound[v.args[0]]
        vec = self.is_vector(v)
        scope = self.value_scope(v)
        found = scope.cache.get(v)
        if found is not None:
            return found
        b = Builder(self.names, self.lanes if vec else 1, scope.lines)
        if v.op == "const":
            return b.const(v.dtype, v.args[0]), False
        if v.op == "load":
            name = self.load_staged(v, b) if v in self.staged else self._load(v, b)
        elif v.op == "index":
            name = self._index_vector(v.args[0], b) if vec else self._index(v.args[0])
        elif v.op == "cast":
            source = v.args[0]
            name = b.cast(source.dtype, self.operand(source, b), v.dtype)
        elif v.op == "checked":
            name = self._checked(v, b)
        else:
            args = [self.operand(a, b) for a in v.args]
            # NOTE: operands may have opened blocks; the scope's list is the same, so order is kept
            t = v.args[0].dtype if v.dtype == "bool" else v.dtype
            t = v.args[-1].dtype if v.op == "where" else t
            name = emit_scalar(b, v.op, t, args)
        scope.cache[v] = (name, vec)
        return name, vec

    def _scatter(self, node):
        """``buffer[index] = combine(buffer[index], value)``; only one lane may meet an element."""
        lines = self.scopes[-1].lines
        vec = self.lanes > 1
        b = Builder(self.names, self.lanes if vec else 1, lines)
        t = node.value.dtype
        x = self.operand(node.value, b)
        if node.combine != "assign":
            pointer = self._pointer(node.buffer, self._index(node.index), Scope(lines))
            old = b.load(t, pointer)
            op = {"multiply": "mul"}.get(node.combine, node.combine)
            x = emit_scalar(b, op, t, [old, x])
            if t == "bf16" or t == "f16":
                x = b.round_half(x, t)
            b.store(t, x, pointer)
            return
        self._store_name(node.buffer, node.index, x, vec, t)

    def _checked(self, v: Value, b: Builder) -> str:
        """A loaded index: negative ones count from the end if ``wrap``; one out of range is reported in the status words and read as 0."""
        source, size, tag, wrap = v.args
        x = wrapped = self.operand(source, b)
        limit = self._spread(size, b)
        if wrap:
            wrapped = b.select("i64", b.cmp("slt", "i64", x, b.const("i64", 0)), b.add("i64", x, limit), x)
        bad = b.cmp("uge", "i64", wrapped, limit)
        rare, done = self.names.fresh("bad"), self.names.fresh("fine")
        b.branch(b.any(bad), rare, done)
        b.label(rare)
        one = Builder(self.names, 1, b.out)
        value = b.extract("i64", x, 0)
        for i in range(1, b.lanes):
            value = one.select("i64", b.extract("bool", bad, i), b.extract("i64", x, i), value)
        for slot, what in enumerate((str(tag + 1), value, self.size(size))):
            at = one.emit(f"getelementptr i64, ptr {self.status}, i64 {slot}")
            b.out.append(f"store i64 {what}, ptr {at}")
        b.branch(None, done)
        b.label(done)
        return b.select("i64", bad, b.const("i64", 0), wrapped)

    def _rows_there(self):
        """Nothing is computed when the heap had no memory for a row: the status words say so."""
        if not self.freed:
            return
        at = self._line(self.entry, f"getelementptr ptr, ptr %args, i64 {len(self.k.args)}")
        missing = "false"
        lines = [self.entry.lines.pop()]
        lines.append(f"%status = load ptr, ptr {at}")
        for i, row in enumerate(self.freed):
            lines += [f"%null{i} = icmp eq ptr {row}, null", f"%none{i} = or i1 {missing}, %null{i}"]
            missing = f"%none{i}"
        yield from lines
        yield f"br i1 {missing}, label %nomemory, label %start"
        yield "nomemory:"
        yield "store i64 -1, ptr %status"
        yield "br label %exit"
        yield "start:"

    # --- the function -------------------------------------------------------------------------------------------------
    def _finish(self, p_lines):
        k = self.k
        inner = math.prod(v.extent for v in k.inner)
        per_item = (
            sum(weight(walk(*[n.value for n in what])) if kind == "loop" else 0.2 for kind, what in self.items) + 1
        )
        width = max(self.vector_lanes(), 1) if k.column else 1
        speed = 8.0 if self.vv is not None else 1.0
        share = per_item * width / speed
        per_p = share * self.values.hint(inner) + 5
        k.cost = per_p * self.values.hint(k.total) / 3000.0  # microseconds, roughly
        if type(inner) is Expr:
            k.grain = floordiv(12 * 3000 * 64, inner * max(1, round(64 * share)) + 5 * 64) + 1
        else:
            k.grain = max(1, math.ceil(12.0 * 3000.0 / per_p))  # pieces of at least about 12 us
        out = []
        if type(k.total) is Expr or type(inner) is Expr:
            out.append(f"; sizes at {len(k.args) + 1}: {len(k.params)}")
        else:
            k.grain = min(k.total, k.grain) or 1
            out.append(f"; parallel over {k.total} iterations, in pieces of at least {k.grain}")
        reads = {v.args[0] for n in self._nodes() for v in walk(n.value, *loaded_atoms(n.index)) if v.op == "load"}
        writes = {n.buffer for n in self._nodes()}
        described, n_in, n_out = [], 0, 0
        for name in k.args:
            t = self.buffers[name].dtype
            if name in writes:
                described.append(f"{'inout' if name in reads else 'out'}_ptr{n_out}: {t}")
                n_out += 1
            else:
                described.append(f"in_ptr{n_in}: {t}")
                n_in += 1
        out.append(f"; {', '.join(described)}")
        head, out = [*out, *self.names.declares.values()], []
        out += ["entry:"]
        out += ["  " + line for line in self.names.entry]
        out += ["  %pslot = alloca i64", "  store i64 %begin, ptr %pslot"]
        out += ["  " + line if not line.endswith(":") else line for line in self.entry.lines]
        out += ["  " + line for line in self._rows_there()]
        out += [
            "  %some = icmp slt i64 %begin, %end",
            "  br i1 %some, label %each, label %exit",
            "each:",
            "  %p = load i64, ptr %pslot",
        ]
        out += ["  " + line if not line.endswith(":") else line for line in p_lines]
        out += [
            "  %pnext = add nsw i64 %p, 1",
            "  store i64 %pnext, ptr %pslot",
            "  %pmore = icmp slt i64 %pnext, %end",
            "  br i1 %pmore, label %each, label %exit",
            "exit:",
            *(f"  call void @free(ptr {row})" for row in self.freed),
            "  ret void",
            "}",
        ]
        k.text = "\n".join([*head, *self._function(out), "!0 = !{}"]) + "\n"

    def _function(self, body) -> list[str]:
        """The function, twice where stores go past the cache: that needs memory on the borders of cache lines, which only the call knows."""
        if not self.streams:
            return [f"define void @KERNEL({PARAMETERS}) nounwind {{", *body]
        out = [f"define internal void @KERNEL.plain({PARAMETERS}) nounwind {{", *(s.split(STREAM)[0] for s in body)]
        out += [f"define internal void @KERNEL.stream({PARAMETERS}) nounwind {{", *(_streaming(s) for s in body)]
        out += [f"define void @KERNEL({PARAMETERS}) nounwind {{", "entry:"]
        places = [f"%at{i}" for i, name in enumerate(self.k.args) if name in self.streamed]
        for i, name in enumerate(self.k.args):
            if name in self.streamed:
                out.append(f"  %place{i} = getelementptr ptr, ptr %args, i64 {i}")
                out.append(f"  %ptr{i} = load ptr, ptr %place{i}")
                out.append(f"  %at{i} = ptrtoint ptr %ptr{i} to i64")
        whole = places[0]
        for i, place in enumerate(places[1:]):
            out.append(f"  %all{i} = or i64 {whole}, {place}")
            whole = f"%all{i}"
        out += [
            f"  %over = and i64 {whole}, {LINE - 1}",
            "  %aligned = icmp eq i64 %over, 0",
            "  br i1 %aligned, label %stream, label %plain",
            "stream:",
            "  call void @KERNEL.stream(ptr %args, i64 %begin, i64 %end)",
            "  call void @llvm.x86.sse.sfence()",  # such stores are ordered by nothing else
            "  ret void",
            "plain:",
            "  call void @KERNEL.plain(ptr %args, i64 %begin, i64 %end)",
            "  ret void",
            "}",
            "declare void @llvm.x86.sse.sfence()",
            "!1 = !{i32 1}",
        ]
        return out
