"""Where a kernel's loads and stores lie: integer arithmetic, each part in the outermost scope it can be computed in, and access by lanes."""

from __future__ import annotations

from ..base.expr import Div, Expr, Mod, Prod, Var, at_least, coefficient, const, of, substitute, terms, variable
from ..base.expr import variables as variables_of
from .builder import Builder, compute_type, itemsize
from .processor import asks_ahead_for_writes
from .values import Value, loaded_atoms, walk

__all__ = ["FETCHED", "LINE", "STREAM", "Addressing", "Scope"]


LINE, PAGE = 64, 4096  # bytes of a line of the cache, of a page
AHEAD = 2048  # bytes between what is read and what is asked for
NEXT = 256  # the same where columns are read, a strip of lines at a time
FETCHED = 1 << 19  # bytes of a buffer that isn't likely to be in a near cache
STREAM = " ; past the cache, aligned to "  # marks a store, in the text, until the function is finished


def _runs(atom) -> bool:
    """Whether an atom depends on loop variables or on loaded values; it is a size otherwise."""
    return bool(atom.variables()) or bool(loaded_atoms(of(atom)))


class Scope:
    __slots__ = ("lines", "vars", "cache", "names")

    def __init__(self, lines, variables=()):
        self.lines = lines
        self.vars = set(variables)
        self.cache: dict = {}
        self.names: dict = {}


class Addressing:
    """Part of the kernel writer."""

    def set_mask(self, end: str | None) -> None:
        """From here on only lanes below ``end`` count (None: all do). Loads of the others give 1, which no operation minds."""
        self.mask = self.last = None
        if end is None:
            return
        b = Builder(self.names, self.lanes, self.scopes[-1].lines)
        here = self._atom_vector(self.vv, b)
        self.mask = b.cmp("slt", "i64", here, b.splat("i64", end))
        last = self._line(self.scopes[-1], f"sub i64 {end}, 1")
        self.last = b.intrinsic("smin", "i64", here, b.splat("i64", last))

    def size(self, e) -> str:
        """An int or an expression of symbols, as an operand."""
        return self._index(e) if type(e) is Expr else str(e)

    def _parameter(self, atom) -> str:
        """A size that is passed at the call."""
        key = ("parameter", atom)
        if key not in self.entry.cache:
            if not self.k.params:
                at = self._line(self.entry, f"getelementptr ptr, ptr %args, i64 {len(self.k.args) + 1}")
                self.entry.cache["parameters"] = self._line(self.entry, f"load ptr, ptr {at}, !noundef !0")
            at = self._line(
                self.entry, f"getelementptr i64, ptr {self.entry.cache['parameters']}, i64 {len(self.k.params)}"
            )
            self.k.params.append(of(atom))
            self.entry.cache[key] = self._line(self.entry, f"load i64, ptr {at}, !noundef !0", "n")
        return self.entry.cache[key]

    def _line(self, scope, text, prefix="v"):
        name = self.names.fresh(prefix)
        scope.lines.append(f"{name} = {text}")
        return name

    def scope_of(self, variables) -> Scope:
        for scope in reversed(self.scopes):
            if scope.vars & variables:
                return scope
        return self.entry

    def _variable(self, v: Var) -> str:
        if v.extent == 1:
            return "0"
        for scope in reversed(self.scopes):
            if v in scope.names:
                return scope.names[v]
        raise AssertionError(f"loop variable {v} is not bound here")

    def _index(self, ix: Expr | int) -> str:
        """A scalar i64; partial sums are emitted scope by scope, so that the outer part is computed outside."""
        groups: dict[int, list] = {}
        for atom, c in terms(ix):
            groups.setdefault(self.scopes.index(self._atom_scope(atom)), []).append((atom, c))
        text = str(const(ix))
        so_far: tuple = ()
        for level in sorted(groups):
            scope = self.scopes[level]
            so_far = (*so_far, *groups[level])
            key = ("index", so_far, const(ix))
            if key in scope.cache:
                text = scope.cache[key]
                continue
            for atom, c in groups[level]:
                part = self._atom(atom, scope)
                if c != 1:
                    part = self._line(scope, f"mul nsw i64 {part}, {c}")
                text = part if text == "0" else self._line(scope, f"add nsw i64 {text}, {part}")
            scope.cache[key] = text
        return text

    def _atom_scope(self, atom):
        if isinstance(atom, Var):
            return self.scope_of({atom})
        if isinstance(atom, Value):
            return self.value_scope(atom)
        if not _runs(atom):
            return self.entry
        parts = atom.args if isinstance(atom, Prod) else [a for e in atom.args for a, _ in terms(e)]
        return max(map(self._atom_scope, parts), key=self.scopes.index)

    def _atom(self, atom, scope) -> str:
        if isinstance(atom, Var):
            return self._variable(atom)
        if isinstance(atom, Prod):
            return self._product(atom)
        if isinstance(atom, Value):
            name, vec = self.emit(atom)
            assert not vec, "a loaded index that varies along the lanes is not a scalar"
            return name
        if not _runs(atom):
            return self._parameter(atom)
        if isinstance(atom, (Div, Mod)):
            num, den = (self._index(a) for a in atom.args)
            if at_least(atom.args[0], 0):
                word = "udiv" if isinstance(atom, Div) else "urem"
                return self._line(scope, f"{word} i64 {num}, {den}")
            rest = self._line(scope, f"srem i64 {num}, {den}")  # rounded down; divisors are positive
            sign = self._line(scope, f"ashr i64 {rest}, 63")
            if isinstance(atom, Div):
                return self._line(scope, f"add i64 {self._line(scope, f'sdiv i64 {num}, {den}')}, {sign}")
            return self._line(scope, f"add i64 {rest}, {self._line(scope, f'and i64 {sign}, {den}')}")
        raise NotImplementedError(f"inductor: an index with {atom!r}")

    def _product(self, atom) -> str:
        """The factors of outer scopes first, each product in the innermost scope of its factors."""
        parts = sorted(atom.args, key=lambda a: self.scopes.index(self._atom_scope(a)))
        name, so_far = None, ()
        for part in parts:
            scope = self._atom_scope(part)
            so_far = (*so_far, part)
            key = ("product", so_far)
            if key in scope.cache:
                name = scope.cache[key]
                continue
            text = self._atom(part, scope)
            name = text if name is None else self._line(scope, f"mul nsw i64 {name}, {text}")
            scope.cache[key] = name
        return name

    def _index_vector(self, ix: Expr, b: Builder) -> str:
        """The index in every lane, i64."""
        uniform, total = [], None
        for atom, c in terms(ix):
            if self.vv not in atom.variables():
                uniform.append((atom, c))
                continue
            part = self._atom_vector(atom, b)
            if c != 1:
                part = b.mul("i64", part, b.const("i64", c))
            total = part if total is None else b.add("i64", total, part)
        rest = const(ix)
        for atom, c in uniform:
            rest = of(atom) * c + rest
        if total is None:
            return self._spread(rest, b)
        if isinstance(rest, Expr) or rest:
            total = b.add("i64", total, self._spread(rest, b))
        return total

    def _spread(self, e, b: Builder) -> str:
        """An index that is the same in all lanes."""
        return b.splat("i64", self._index(e)) if isinstance(e, Expr) else b.const("i64", e)

    def _atom_vector(self, atom, b: Builder) -> str:
        if self.vv not in atom.variables():
            return self._spread(of(atom), b)
        if isinstance(atom, Var):
            if self.last is not None:
                return self.last
            steps = "<" + ", ".join(f"i64 {i}" for i in range(b.lanes)) + ">"
            return b.add("i64", b.splat("i64", self._variable(atom)), steps)
        if isinstance(atom, Prod):
            name = None
            for part in atom.args:
                x = self._atom_vector(part, b)
                name = x if name is None else b.mul("i64", name, x)
            return name
        if isinstance(atom, (Div, Mod)):
            num, den = (self._index_vector(e, b) if type(e) is Expr else b.const("i64", e) for e in atom.args)
            if at_least(atom.args[0], 0):
                return b.op("udiv" if isinstance(atom, Div) else "urem", "i64", num, den)
            rest = b.op("srem", "i64", num, den)
            sign = b.op("ashr", "i64", rest, b.const("i64", 63))
            if isinstance(atom, Div):
                return b.add("i64", b.op("sdiv", "i64", num, den), sign)
            return b.add("i64", rest, b.op("and", "i64", sign, den))
        return self.operand(atom, b)

    def _pointer(self, buffer: str, position: str, scope) -> str:
        t = self.k.scratch.get(buffer) or self.buffers[buffer].dtype
        scalar = Builder(self.names, 1, []).memory_type(t)
        return self._line(scope, f"getelementptr inbounds {scalar}, ptr {self.pointers[buffer]}, i64 {position}")

    def _load(self, v: Value, b: Builder) -> str:
        buffer, ix = v.args
        scope_lines = Scope(b.out)
        if b.lanes == 1:
            return b.load(v.dtype, self._pointer(buffer, self._index(ix), scope_lines))
        step = coefficient(ix, self.vv)
        if step is not None:
            position = self._index(ix)
            if step == 1:
                pointer = self._pointer(buffer, position, scope_lines)
                self._fetch_ahead(buffer, ix, b, v.dtype, pointer, 0)
                return b.load(v.dtype, pointer) if self.mask is None else b.load_masked(v.dtype, pointer, self.mask)
        if step == -1 and self.mask is None:
            first = self._line(scope_lines, f"add nsw i64 {position}, {1 - b.lanes}")
            pointer = self._pointer(buffer, first, scope_lines)
            self._fetch_ahead(buffer, ix, b, v.dtype, pointer, 0, -1)
            return b.reversed(v.dtype, b.load(v.dtype, pointer))
        if step == 2 and self.mask is None and v.dtype in ("f32", "f64"):
            return b.load_alternate(v.dtype, self._pointer(buffer, position, scope_lines))
        if step is not None and self.mask is None:
            positions = [position]
            for i in range(1, b.lanes):
                if type(step) is Expr:
                    positions.append(self._line(scope_lines, f"add nsw i64 {positions[-1]}, {self._index(step)}"))
                else:
                    positions.append(self._line(scope_lines, f"add nsw i64 {position}, {i * step}"))
        else:
            whole = self._index_vector(ix, b)
            positions = [b.extract("i64", whole, i) for i in range(b.lanes)]
        one = Builder(self.names, 1, b.out)
        memory = b.memory_type(v.dtype)
        raw = "poison"
        for i, position in enumerate(positions):
            x = b.emit(
                f"load {one.memory_type(v.dtype)}, ptr {self._pointer(buffer, position, scope_lines)}, align {itemsize(v.dtype)}"
            )
            raw = b.emit(f"insertelement {memory} {raw}, {one.memory_type(v.dtype)} {x}, i64 {i}")
        return b.from_memory(v.dtype, raw)

    def _fetch_ahead(self, buffer, ix, b: Builder, t, pointer, write: int, step: int = 1) -> None:
        """Ask for the lines that a loop will meet soon: the processor guesses no further than to the end of a page. Once for each run of memory.
        What is read is asked into the second-level cache: lines on their way into the first would hold up the loads that miss it."""
        k, item = self.k, itemsize(t)
        if self.mask is not None or buffer in k.scratch or (buffer, ix) in self.fetched or b.lanes * item < LINE:
            return
        if self.values.hint(self.buffers[buffer].size) * item < FETCHED or (write and not asks_ahead_for_writes()):
            return
        if k.column:  # a strip of the next columns: more lines are read in turn than the processor foresees
            if k.inner and not write:
                self.fetched.add((buffer, ix))
                self._fetch(b, b.emit(f"getelementptr i8, ptr {pointer}, i64 {NEXT}"), item)
            return
        if self.vv not in k.inner:
            return
        around, extent = k.outer[-1:] if self.by_rows else (*k.outer, *k.inner)[-2:-1], self.vv.extent
        if self.tiled:  # the same lines of the next tile
            step = coefficient(ix, k.inner[0])
            if not write and type(step) is int and step:
                self._fetch(b, b.emit(f"getelementptr i8, ptr {pointer}, i64 {step * k.inner[0].extent * item}"), item)
            return
        goes_on = bool(around) and coefficient(ix, around[0]) == extent * step
        if goes_on or write or not around:
            if not goes_on and self.values.hint(extent) * item < PAGE:
                return
            self.fetched.add((buffer, ix))
            self._fetch(b, b.emit(f"getelementptr i8, ptr {pointer}, i64 {AHEAD * step}"), item, write)
            return
        width = self.values.hint(extent) * item
        if width < 2 * LINE:
            return
        line = self._line_ahead(buffer, ix, step, around[0], max(1, AHEAD // width), b.lanes, item)
        if line is None:
            return
        self.fetched.add((buffer, ix))
        here = self._variable(self.vv)
        if width < PAGE:
            place = b.emit(f"getelementptr i8, ptr {line}, i64 {b.emit(f'mul i64 {here}, {item * step}')}")
        else:
            near = b.emit(f"getelementptr i8, ptr {pointer}, i64 {AHEAD * step}")
            past = b.emit(f"add i64 {here}, {AHEAD // item - extent}")
            there = b.emit(f"getelementptr i8, ptr {line}, i64 {b.emit(f'mul i64 {past}, {item * step}')}")
            place = b.emit(f"select i1 {b.emit(f'icmp slt i64 {past}, 0')}, ptr {near}, ptr {there}")
        self._fetch(b, place, item)

    @staticmethod
    def _fetch(b: Builder, place: str, item: int, write: int = 0) -> None:
        for at in range(0, b.lanes * item, LINE):
            this = b.emit(f"getelementptr i8, ptr {place}, i64 {at}") if at else place
            b.out.append(f"call void @llvm.prefetch.p0(ptr {this}, i32 {write}, i32 {3 if write else 2}, i32 1)")

    def _line_ahead(self, buffer, ix, step: int, around: Var, turns: int, lanes: int, item: int) -> str | None:
        """Where the loop along the lanes begins some turns of the one around it later. Rows by index: by what is loaded for that turn, unchecked."""
        if type(around.extent) is Expr or type(self.vv.extent) is Expr or around.extent == 1:
            return None
        loaded = loaded_atoms(ix)
        if any(self._depends(v) or self.vv in v.variables() for v in loaded) or coefficient(ix, around) == 0:
            return None
        scope = self.scope_of({around})
        then = Var(-1 - around.id, around.extent)
        key = ("later", around, turns)
        if key not in scope.cache:
            after = self._line(scope, f"add nsw i64 {self._variable(around)}, {turns}")
            scope.cache[key] = self._line(scope, f"call i64 @llvm.smin.i64(i64 {after}, i64 {around.extent - 1})")
        scope.names[then] = scope.cache[key]
        scope.vars.add(then)
        env = {around: variable(then)}

        def atom(v):
            v = self.values.substitute(v, env)
            return v.args[0] if v.op == "checked" else v

        begin = substitute(ix - variable(self.vv) * step, env, atom)
        position = self._index(begin + (1 - lanes if step < 0 else 0))
        far = self._line(scope, f"mul i64 {position}, {item}")
        return self._line(scope, f"getelementptr i8, ptr {self.pointers[buffer]}, i64 {far}")

    def _stream(self, buffer, ix, b: Builder, t) -> None:
        """Mark the store just written where it may go past the cache: a vector at a place that is a multiple of its size, or of a line's, by its
        index or since the loop begins there (``_peeled``)."""
        nbytes = b.lanes * itemsize(t)
        align = min(nbytes, LINE)
        if buffer not in self.streamed or nbytes < 32:
            return
        step = align // itemsize(t)
        if ix == self.bordered or self._on_border(ix, step):
            b.out[-1] += f"{STREAM}{align}"
            self.streams = True

    def forwards(self, items):
        """The kernel's parts, with a loop turned round that reads backwards: the processor foresees reading that goes up, and doesn't mind where
        is written."""
        v = self.vv
        if v is None or v not in self.k.inner or type(v.extent) is Expr or v in self.k.limits or self.k.scratch:
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
        if any(x.args[0] in self.produced for x in loads):
            return items
        env = {v: v.extent - 1 - variable(v)}

        def atom(x):
            return self.values.substitute(x, env)

        turned = [n.turned(self.values.substitute(n.value, env), substitute(n.index, env, atom)) for n in nodes]
        return [("loop", turned)]

    def _on_border(self, ix, step: int) -> bool:
        """Whether a loop along the lanes begins at a multiple of ``step`` elements."""
        rest = [const(ix), *(c for atom, c in terms(ix) if atom is not self.vv)]
        return all(type(c) is not Expr and c % step == 0 for c in rest)

    def _peeled(self, nodes, segments):
        """(begin, end, lanes, masked, index) that cover the vector variable: the segments, or, where a store past the cache begins anywhere, what is
        left to the next border of a cache line, whole vectors from there, and the rest. ``index``: of the stores that then lie on borders."""
        plain = [(*s, None) for s in segments]
        stores = {(n.index, itemsize(self.buffers[n.buffer].dtype)) for n in nodes if n.buffer in self.streamed}
        v, lanes = self.vv, self.row_lanes
        if len(stores) != 1 or any(n.reduction or n.combine is not None for n in nodes) or v in self.k.limits:
            return plain
        ((ix, item),) = stores
        step = min(lanes * item, LINE) // item
        if lanes * item < 32 or coefficient(ix, v) != 1 or type(v.extent) is Expr or v.extent < 4 * lanes:
            return plain
        if self._on_border(ix, step):
            return plain
        scope, n = self.scopes[-1], v.extent
        begin = self._index(ix - variable(v))
        head = self._line(scope, f"and i64 {self._line(scope, f'sub i64 0, {begin}')}, {step - 1}")
        whole = self._line(scope, f"and i64 {self._line(scope, f'sub i64 {n}, {head}')}, {-lanes}")
        whole = self._line(scope, f"add i64 {head}, {whole}")
        ends = (lanes, True, None) if self._can_mask(nodes) else (1, False, None)
        return [("0", head, *ends), (head, whole, lanes, False, ix), (whole, str(n), *ends)]

    def _store(self, buffer, ix, value):
        vec = self.lanes > 1 and (self.is_vector(value) or (self.vv is not None and self.vv in variables_of(ix)))
        b = Builder(self.names, self.lanes if vec else 1, self.scopes[-1].lines)
        self._store_name(buffer, ix, self.operand(value, b), vec, value.dtype)

    def _store_name(self, buffer, ix, name, vec, t):
        """Store a value of type ``t`` (the buffer's own, by construction of the IR)."""
        lines = self.scopes[-1].lines
        scope = Scope(lines)
        b = Builder(self.names, self.lanes if vec else 1, lines)
        if not vec:
            b.store(t, name, self._pointer(buffer, self._index(ix), scope))
            return
        step = coefficient(ix, self.vv)
        if step == 1:
            pointer = self._pointer(buffer, self._index(ix), scope)
            if self.mask is None:
                if buffer not in self.streamed:
                    self._fetch_ahead(buffer, ix, b, t, pointer, 1)
                b.store(t, name, pointer)
                self._stream(buffer, ix, b, t)
            else:
                b.store_masked(t, name, pointer, self.mask)
            return
        if step == -1 and self.mask is None:
            ix = ix + (1 - b.lanes)
            pointer = self._pointer(buffer, self._index(ix), scope)
            if buffer not in self.streamed:
                self._fetch_ahead(buffer, ix, b, t, pointer, 1, -1)
            b.store(t, b.reversed(t, name), pointer)
            self._stream(buffer, ix, b, t)
            return
        if step == 2 and self.mask is None and t in ("f32", "f64"):
            b.store_alternate(t, name, self._pointer(buffer, self._index(ix), scope))
            return
        one = Builder(self.names, 1, lines)
        whole = self._index_vector(ix, b)
        for i in range(b.lanes):
            one.store(t, b.extract(compute_type(t), name, i), self._pointer(buffer, b.extract("i64", whole, i), scope))
