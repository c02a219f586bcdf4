"""Abstract interpretation of a loop's bytecode.

Each block is run on the types of its variables where control enters it; types of paths that meet are joined, until nothing changes. A last
run writes the code. A variable is a stack slot of the kernel (one for each type that it has anywhere); within a block its value is known
better than its type (constants, bounds).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import arithmetic, arrays, bindings, complexes
from .calls import LARGEST, Calls
from .emitter import I64, PIECE, SMALL_SIZE, Emitter
from .inlining import Callee, Inlining
from .instructions import Instructions
from .iteration import Iteration
from .region import Region, find, leads_to
from .tape import Recorder
from .values import (
    CONFLICT,
    RETURNED,
    Array,
    Declined,
    Element,
    Expression,
    Known,
    Method,
    Scalar,
    ScalarType,
    State,
    Stream,
    Symbolic,
    Tuple,
    TupleType,
    View,
    ViewType,
    register_type,
    type_of,
)

__all__ = ["Compiled", "Inputs", "compile_region"]

INNER = 24  # turns that an inner loop is taken to have
_IGNORED = {"RESUME", "NOP", "PRECALL", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL"}


@dataclass
class Inputs:
    """What the loop may read. ``local(name)`` and ``load_global(name)`` give a Scalar constant, Symbolic, an operand's description
    ``(token, dtype, ndim, dense, sizes)`` (see Array; a size that differs between calls is what it is known as) or Known;
    ``attribute(known, name)`` the
    same for an attribute. They raise Declined for
    anything else, and what they give is guarded. ``function(known)``: a Python function that is called. ``trip``: (start, stop, step) of the
    range that the loop runs over, which isn't empty (start and stop may be Symbolic); ("over", item) for arrays: a description, or a call
    (Known, items) of enumerate or zip; None for while. ``turns(p)``: the number of turns modulo p, where that is known before. ``again``: nothing
    that has happened before the loop has an effect, so that all may run again plainly when the loop meets an error."""

    local: Callable[[str], Any]
    load_global: Callable[[str], Any]
    deref: Callable[[str], Any]
    attribute: Callable[[Known, str], Any]
    function: Callable[[Known], Callee]
    trip: tuple | None
    constants: tuple = ()
    again: bool = True
    turns: Callable[[int], int] | None = None


@dataclass(frozen=True)
class Generator:
    """A random generator of the outside, or a method of one: ``token`` and ``sizes`` of its table, as of an array."""

    token: Any
    sizes: tuple
    legacy: bool
    method: str | None = None


@dataclass(frozen=True)
class Items:
    """A tuple of what the loop may read."""

    items: tuple


@dataclass
class Compiled:
    """``text``: the kernel. ``arrays``: tokens of the operands; ``written``: which of them are written; ``fresh``: variables whose arrays
    are results, and the operand that tells the shape; ``same``: variables that are an operand after the loop; ``tuples``: those that are tuples of
    results, with their types; ``ints`` and ``floats``: numbers read; ``sizes``: of each array, sizes that it always has, -1 for others;
    ``results``: (variable, dtype, whether it is Python's number, None where another result, an int8, tells), ``name.k`` for the items of a tuple;
    ``errors``: (type's name, text) by number - 1. ``drawn``: (operand that is a generator's table, whether its spare normal number matters).
    ``returned``: type of what the function returns, named RETURNED among the results, where the region ends with ``return``; else None."""

    text: str
    arrays: list[Any]
    shapes: list[int]
    written: list[int]
    fresh: list[tuple[str, int]]
    same: list[tuple[str, int]]
    tuples: list[tuple[str, TupleType]]
    ints: list[Any]
    floats: list[Any]
    results: list[tuple[str, np.dtype, bool | None]]
    errors: list[tuple[str, str]]
    exit: int | None
    returned: Any
    sizes: list[list[int]]
    drawn: list[tuple[int, bool]]


class Interpreter(Instructions, Calls, Inlining, Iteration):
    def __init__(self, insts, region: Region, inputs: Inputs, names: set[str], live: Callable[[int], frozenset[str]]):
        self.insts, self.region, self.inputs, self.names = list(insts), region, inputs, names
        self.live_out = live(region.exit) if region.exit is not None else frozenset()
        self.carried = region.assigned(insts) & live(
            region.header
        )  # variables whose values are of use in other turns, or later
        self.index = _index_of(insts, region) if inputs.trip is not None and inputs.trip[0] != "over" else None
        self.left = self.spread = (
            False  # whether the loop is left but at its end; whether its turns may be spread over threads
        )
        self.callees: dict[
            int, tuple[int, Callee, int]
        ] = {}  # by first instruction: last, function, instruction that calls
        self.places_of_calls: dict[tuple[int, Known], int] = {}
        self.operands: dict[int, tuple[Any, Array]] = {}
        self.always: list[tuple] = []  # sizes of the operands as they were given
        self.named: dict[int, tuple[str, Any]] = {}  # sizes of operands -> names of these values, and what has that id
        self.ints: dict[str, int] = {}
        self.floats: dict[str, float] = {}
        self.initial: dict[str, Any] = {}
        self.written: set[int] = set()
        self.drawn: dict[
            int, bool
        ] = {}  # tables of generators that are drawn from -> whether RandomState's spare normal number matters
        self.owned: set[str] = set()  # variables that may hold an array made in the loop
        self.fresh: list[tuple[str, int]] = []
        self.same: list[tuple[str, int]] = []
        self.tuples: list[tuple[str, TupleType]] = []
        self.at = 0
        self.states: dict[int, State] = {}
        self.places: dict[int, tuple] = {}  # id of a view -> it, what it is a view of, and the key
        self.sizes: dict[str, tuple[int, int]] = {}  # bounds of the operands' sizes
        self.thresholds: set[int] = {0, 1}  # see bounds.py
        self.joins: dict[int, int] = {}  # how often paths met at a block
        self.tests: dict[int, tuple] = {}  # id of a comparison's result -> it, operator, operands
        self.e = Emitter(self.sizes)
        self.final = self.alike = self.fast = self.recorded = False

    # ---- inputs --------------------------------------------------------------------------------------------------------
    def given(self, what, name: str | None = None):
        """A value from outside as one of ours. Numbers named ``name`` are passed at each call."""
        if isinstance(what, Generator):
            table = self.given((what.token, I64, 1, True, what.sizes))
            stream = Stream(table.whole, table.ptr, what.legacy)
            return stream if what.method is None else Method(stream, what.method)
        if isinstance(what, Items):
            return Tuple(tuple(self.given(item, name and f"{name}.{k}") for k, item in enumerate(what.items)))
        if isinstance(what, tuple):
            token, dtype, ndim, dense, sizes = what
            if id(token) not in self.operands:
                n = len(self.operands)
                self.always.append(sizes)
                self.operands[id(token)] = token, Array(n, dtype, ndim, dense, self.size_texts(n, sizes))
            _, array = self.operands[id(token)]
            whole = arrays.operand(array)
            return arrays.load(self.e, whole, ()) if ndim == 0 else whole
        if isinstance(what, Symbolic):
            table, which, t = (self.ints, "ints", "i64") if what.dtype == I64 else (self.floats, "floats", "double")
            key = f"symbol {id(what.token)}"
            table.setdefault(key, what.token)
            return Scalar(what.dtype, True, self.e.argument(which, list(table).index(key), t))
        if isinstance(what, Scalar) and what.weak and name is not None and not isinstance(what.const, (bool, complex)):
            table, t = (self.ints, "i64") if what.kind == "i" else (self.floats, "double")
            if what.kind == "i" and not -LARGEST < what.const < LARGEST:
                raise Declined("a very large integer")
            table.setdefault(name, what.const)
            at = list(table).index(name)
            v = self.e.argument("ints" if t == "i64" else "floats", at, t)
            if what.kind == "i":
                self.threshold(what.const)
            return Scalar(what.dtype, True, v, (what.const, what.const))
        return what

    def size_texts(self, n: int, sizes) -> tuple[str, ...]:
        """The sizes of operand ``n``. ``sizes``: what each is at every call, a number; or what it is known as."""
        out = []
        for d, size in enumerate(sizes):
            key = size if type(size) is int else id(size)
            if type(size) is int and size <= SMALL_SIZE:
                text = str(size)
            else:
                text, _ = self.named.setdefault(key, (f"%a{n}.n{d}", size))
                if type(size) is int:
                    self.sizes[text] = size, size
                    self.threshold(size)
            out.append(text)
        return tuple(out)

    def threshold(self, n: int) -> None:
        if len(self.thresholds) < 40:
            self.thresholds.update((n - 1, n))

    def entry(self) -> State:
        """Put what variables hold before the loop into their slots; the state in which the loop is entered."""
        types = {}
        for name in sorted(self.names):
            if name not in self.initial:
                try:
                    self.initial[name] = self.inputs.local(name)
                except Declined as reason:
                    self.initial[name] = reason
            what = self.initial[name]
            if isinstance(what, Declined) or what is None:
                continue
            value = self.given(what, name)
            self.keep(name, value)
            types[name] = type_of(value)
        return State(types)

    # ---- variables -----------------------------------------------------------------------------------------------------
    def keep(self, name: str, value) -> None:
        """Store into the slots of a variable."""
        e = self.e
        if isinstance(value, Scalar):
            e.set(name, register_type(value.dtype), value.v)
            e.set(f"{name}.w", "i8", arithmetic.flag_of(e, value) or arithmetic.UNKNOWN)
        elif isinstance(value, View):
            e.set(f"{name}.p", "ptr", value.ptr)
            if value.owner is not None:
                e.set(f"{name}.b", "ptr", value.owner)
            for d, (n, s) in enumerate(zip(value.sizes, value.strides)):
                e.set(f"{name}.n{d}", "i64", n)
                e.set(f"{name}.s{d}", "i64", s)
        elif isinstance(value, Tuple):
            for k, item in enumerate(value.items):
                self.keep(f"{name}.{k}", item)

    def fetch(self, name: str, t):
        e = self.e
        if isinstance(t, ScalarType):
            flag = e.get(f"{name}.w", "i8") if t.weak is None else None
            return Scalar(t.dtype, t.weak, e.get(name, register_type(t.dtype)), t.bounds, None, flag)
        if isinstance(t, ViewType) and t.whole is not None:
            return arrays.operand(next(array for _, array in self.operands.values() if array.n == t.whole))
        if isinstance(t, ViewType):
            strides = [e.get(f"{name}.s{d}", "i64") for d in range(t.ndim)]
            if t.dense:
                strides[-1] = str(t.dtype.itemsize)
            sizes = tuple(n or e.get(f"{name}.n{d}", "i64") for d, n in enumerate(t.sizes))
            owner = e.get(f"{name}.b", "ptr") if t.owned else None
            return View(e.get(f"{name}.p", "ptr"), t.dtype, sizes, tuple(strides), t.origins, owner, t.whole, t.turn)
        if isinstance(t, Element):
            return self.element(t.of.parts, e.op(f"sub i64 {e.get(f'{t.of.key}.cur', 'i64')}, 1"), t.of.bounds)
        if isinstance(t, TupleType):
            return Tuple(tuple(self.fetch(f"{name}.{k}", item) for k, item in enumerate(t.items)))
        if t is CONFLICT:
            raise Declined("a variable has different types on different paths")
        return t

    def read(self, name: str):
        if name not in self.values:
            if name not in self.types:
                reason = self.initial.get(name)
                raise Declined(f"{name}: {reason}" if isinstance(reason, Declined) else f"{name} may have no value")
            if self.types[name] is CONFLICT:
                raise Declined(f"{name} has different types on different paths")
            self.values[name] = self.fetch(name, self.types[name])
        if name == self.index and isinstance(self.values[name], Scalar) and self.values[name].dtype == I64:
            self.values[name] = replace(self.values[name], turn=0)
        return self.values[name]

    def write(self, name: str, value) -> None:
        e = self.e
        if isinstance(value, Expression):
            value = arrays.materialise(e, value, f"{name}@{self.at}")
        elif isinstance(value, View) and value.owner is not None:
            e.helper("flb_keep", "void", ("ptr", value.owner))
        owner = value.owner if isinstance(value, View) else None
        if owner is not None:
            self.owned.add(name)
        if name in self.owned:
            e.helper("flb_drop", "void", ("ptr", e.get(f"{name}.b", "ptr")), ("ptr", "%limbo"))
            e.set(f"{name}.b", "ptr", owner or "null")
        self.types[name] = type_of(value)
        self.values[name] = value
        self.keep(name, value)

    def passing(self, x: Expression) -> View:
        """An array for an expression that no variable holds."""
        made = arrays.materialise(self.e, x, f"stack@{self.at}")
        self.e.helper("flb_drop", "void", ("ptr", made.owner), ("ptr", "%limbo"))
        return made

    def settle(self, origins: frozenset) -> None:
        """Evaluate the expressions on the stack that read memory which is about to be written."""
        for k, item in enumerate(self.stack):
            if isinstance(item, Expression) and any(view.origins & origins for view in item.reads):
                self.stack[k] = self.passing(item)

    def convert(self, name: str, have, want) -> None:
        """Bring the slots of a variable from one type to another that holds it."""
        if want == have or want is CONFLICT:
            return
        if isinstance(want, ScalarType):
            if want.dtype != have.dtype:
                value = self.values.get(name) or self.fetch(name, have)
                self.keep(name, arithmetic.met(self.e, value, want.dtype))
        elif isinstance(want, TupleType):
            for k, (a, b) in enumerate(zip(have.items, want.items)):
                self.convert(f"{name}.{k}", a, b)

    # ---- blocks --------------------------------------------------------------------------------------------------------
    def types_until_stable(self) -> None:
        todo = []
        self.types, self.values, self.stack = {}, {}, []
        for target, state in self.start():
            self.meet(target, state, todo)
        rounds = 0
        while todo:
            rounds += 1
            if rounds > 50 * (len(self.region.blocks) + 1):
                raise Declined("types don't settle")
            at = todo.pop()
            for target, state in self.block(at):
                self.meet(target, state, todo)

    def meet(self, target: int, state: State, todo: list) -> None:
        known = self.states.get(target)
        if known == state:
            return
        few = self.joins.get(target, 0) < 8
        new = state if known is None else known.joined(state, tuple(self.thresholds) if few else ())
        if new != known:
            self.joins[target] = self.joins.get(target, 0) + 1
            self.states[target] = new
            if target != self.region.exit and target not in todo:
                todo.append(target)

    def block(self, at: int) -> list[tuple[int, State]]:
        """Run one block; the edges out of it. In the final run the code is written, conversions on the edges included."""
        state = self.states[at]
        e = self.e
        if self.final:
            e.label(f"b{at}")
        self.types, self.values, self.places, self.tests = dict(state.locals), {}, {}, {}
        self.stack = [self.fetch(f"stack{k}", t) for k, t in enumerate(state.stack)]
        end = self.region.blocks[at]
        edges = None
        self.kw_names: tuple[str, ...] = ()
        if self.insts[end - 1].name == "RAISE_VARARGS":
            return self.raises(self.insts[end - 1])
        for i in range(at, end):
            inst = self.insts[i]
            self.at = i
            if inst.name in _IGNORED:
                continue
            handler = getattr(self, inst.name, None)
            if handler is None:
                raise Declined(f"the instruction {inst.name} in line {inst.line}")
            edges = handler(inst)
            if edges is not None:
                end = i + 1
                break
        if edges is None:
            edges = (None, [(end, self.stack)])
        test, ways = edges
        given = isinstance(test, tuple)  # labels that are branched to already: the first is where the code stands
        labels = list(test) if given else [e.new_label() for _ in ways] if test is not None else []
        if test is not None and self.final and not given:
            e.branch(test, *labels)
        out = []
        for k, (target, stack, *refined) in enumerate(ways):
            target = self.canonical(target)
            self.left = self.left or (target == self.region.exit and at != self.region.header)
            kept = {**self.types, **refined[0]} if refined else dict(self.types)
            new = State(kept, tuple(map(type_of, stack)))
            out.append((target, new))
            if self.final:
                if labels and not (given and k == 0):
                    e.label(labels[k])
                want = self.states[target]
                for name, t in want.locals.items():
                    self.convert(name, self.types[name], t)
                for d, (value, t) in enumerate(zip(stack, want.stack)):
                    if isinstance(t, ScalarType) and value.dtype != t.dtype:
                        value = arithmetic.met(e, value, t.dtype)
                    self.keep(f"stack{d}", value)
                back = target is not None and target <= at and self.insts[target].name == "FOR_ITER"
                e.jump("exit" if target == self.region.exit else f"b{target}.turn" if back else f"b{target}")
        return out

    def raises(self, inst) -> list:
        """A block that ends with ``raise``. What it does before doesn't matter, since all is undone and Python does it."""
        if not self.inputs.again:
            raise Declined("raise in a loop, after something that can't be done twice")
        self.at = inst.index
        self.e.check("false", "RuntimeError", f"raise in line {inst.line} of a compiled loop")
        self.e.line("unreachable")
        return []

    def canonical(self, target: int) -> int:
        if target in self.region.blocks or self.region.exit is None:
            return target
        return self.region.exit if leads_to(self.insts, target, self.region.exit) else target

    def compile(self) -> Compiled:
        self.types_until_stable()
        exit_state = self.states.get(self.region.exit)
        if exit_state is None:
            raise Declined("the loop never ends")
        if exit_state.stack:
            raise Declined("the loop ends with something on the stack")
        self.final, self.left = True, False
        self.alike = self._lie_alike()
        results = self.write_text(exit_state)
        spread = self._spread(results) if self.spread else None
        if spread is not None:
            self.write_text(exit_state, True)
        shapes = [array.ndim for _, array in self.operands.values()]
        self.e.owned = sorted(self.owned)
        return Compiled(
            self.e.text(shapes, len(self.fresh), self.written, spread),
            [token for token, _ in self.operands.values()], shapes, sorted(self.written), self.fresh, self.same, self.tuples,
            list(self.ints.values()), list(self.floats.values()), results, self.e.errors, self.region.exit,
            exit_state.locals[RETURNED] if self.region.exit is None else None,
            [[n if type(n) is int else -1 for n in what] for what in self.always],
            sorted(self.drawn.items()),
        )  # fmt: skip

    def write_text(self, exit_state: State, turns: bool = False) -> list:
        """The final run; ``turns``: for a part of the outermost loop's turns."""
        self.e = (Recorder if self.recorded else Emitter)(self.sizes, self.fast)
        self.e.turns = turns
        self.types, self.values, self.stack = {}, {}, []
        ((target, state),) = self.start()
        self.types = dict(state.locals)
        for name, t in self.states[target].locals.items():
            self.convert(name, self.types[name], t)
        for d, value in enumerate(self.pending if self.inputs.trip is not None else []):
            self.keep(f"stack{d}", value)
        self.e.jump(f"b{self.region.header}.turn" if self.alike else f"b{target}")
        for at in sorted(self.region.blocks):
            if at in self.states:
                self.block(at)
        return self.results(exit_state)

    def _spread(self, results) -> tuple | None:
        """Where no turn of the outermost range has to do with another (each writes and reads elements of its own of the arrays that are
        written, and nothing else is kept): how its turns are spread over threads, see Emitter.text."""
        own = self.written and all(self.e.touched.get(n) for n in self.written)
        if (
            self.index is None
            or not own
            or self.carried
            or results
            or self.fresh
            or self.same
            or self.drawn
            or self.left
            or not self.alike
        ):
            return None
        if self.region.exit is None or (self.e.errors and not self.inputs.again):
            return None
        start, stop, step = self.inputs.trip
        named = [
            f"symbol {id(n.token)}" if isinstance(n, Symbolic) else f"range {k}" for k, n in enumerate((start, stop))
        ]
        ends = tuple(list(self.ints).index(name) for name in named)
        inner = sum(
            inst.name == "FOR_ITER"
            for at in self.region.blocks
            for inst in (self.insts[at],)
            if at != self.region.header
        )
        inner += bool(self.e.element_loops) + any(
            i.target is not None and self.region.header < i.target < i.index and self.insts[i.target].name != "FOR_ITER"
            for start, end in self.region.blocks.items()
            for i in self.insts[start:end]
        )
        weight = max(len(self.e.lines) // 8, 1) * INNER ** min(inner, 2)
        return ends, step, max(PIECE // weight, 1)

    def _lie_alike(self) -> bool:
        """Whether nothing has to be converted between FOR_ITER, where the loop is over a range or an array, and what follows it."""
        header = self.region.header
        before, after = self.states.get(header), self.states.get(header + 1)
        if self.inputs.trip is None or before is None or after is None:
            return False

        def alike(a, b) -> bool:
            return a == b or (isinstance(a, ScalarType) and isinstance(b, ScalarType) and a.dtype == b.dtype)

        return all(t is CONFLICT or alike(before.locals.get(name), t) for name, t in after.locals.items())

    def results(self, state: State) -> list[tuple[str, np.dtype, bool]]:
        self.e.label("exit")
        self.types, self.values = dict(state.locals), {}
        if self.region.exit is None:
            names = [RETURNED]
        else:
            names = sorted(self.live_out & self.region.assigned(self.insts))
        out: list[tuple[str, np.dtype, bool | None]] = []
        for name in names:
            self.result(name, state.locals.get(name), out)
        self.e.jump("cleanup")
        return out

    def result(self, name: str, t, out: list) -> None:
        """Leave what is later used where the caller finds it."""
        if isinstance(t, TupleType):
            if "." not in name and name != RETURNED:
                self.tuples.append((name, t))
            for k, item in enumerate(t.items):
                self.result(f"{name}.{k}", item, out)
            return
        if isinstance(t, Known) and (name.startswith(RETURNED) or "." in name):
            return
        if isinstance(t, ViewType):
            self.array_result(name, t)
            return
        if not isinstance(t, ScalarType):
            raise Declined(f"{name} is used after the loop, and is not a number on all paths")
        value = self.fetch(name, t)
        if t.dtype.kind == "c":  # results are numbers of at most 8 bytes
            of = complexes.part(t.dtype)
            for v in complexes.parts(self.e, value.v, t.dtype):
                self.e.result(Scalar(of, False, v))
        else:
            self.e.result(value)
        if t.weak is None:  # whose number it is is a result too
            known = self.e.op(f"icmp ne i8 {value.flag}, {arithmetic.UNKNOWN}")
            self.e.check(
                known, "RuntimeError", f"a compiled loop lost track of whether {name} is Python's or NumPy's number"
            )
            self.e.result(Scalar(np.dtype(np.int8), True, value.flag))
        out.append((name, t.dtype, t.weak))

    def array_result(self, name: str, t: ViewType) -> None:
        """An array that the loop made is used later. Its shape has to be known before the loop has run: it is that of the array which the
        variable held before."""
        bound = t.whole if t.whole is not None else self.bound_after(name)
        if bound is not None:
            self.same.append((name, bound))
            return
        before = self.initial.get(name)
        known = isinstance(before, tuple) and before[1:3] == (t.dtype, t.ndim)
        if not known or any(isinstance(o, int) for o in t.origins):
            raise Declined(f"{name} is used after the loop and is an array of which the shape isn't known, or a view")
        _, array = self.operands[id(before[0])]
        sizes = arrays.operand(array).sizes
        value = self.fetch(name, t)
        for n, m in zip(value.sizes, sizes):
            same = self.e.op(f"icmp eq i64 {n}, {m}")
            text = f"the array {name} of a compiled loop changed its shape{arithmetic.INSTEAD}"
            self.e.check(same, "RuntimeError", text)
        strides = arrays.dense_strides(self.e, sizes, t.dtype.itemsize)
        arrays.assign(self.e, View(f"%f{len(self.fresh)}", t.dtype, sizes, strides, frozenset()), value)
        self.fresh.append((name, array.n))

    def bound_after(self, name: str) -> int | None:
        """The operand that the variable is bound to after the loop, where arrays only change names in it."""
        if self.region.exit is None or self.left or self.inputs.turns is None:
            return None
        was = bindings.after(bindings.moves(self.insts, self.region), name, self.inputs.turns)
        before = self.initial.get(was)
        return self.operands[id(before[0])][1].n if isinstance(before, tuple) else None


def _index_of(insts, region: Region) -> str | None:
    """The variable that only the range of the outermost loop assigns."""
    first = insts[region.header + 1]
    stores = [
        i for a, b in region.blocks.items() for i in insts[a:b] if i.name == "STORE_FAST" and i.argval == first.argval
    ]
    return first.argval if first.name == "STORE_FAST" and stores == [first] else None


def compile_region(
    insts,
    header: int,
    inputs: Inputs,
    live_out: Callable[[int], frozenset[str]],
    fast: bool = False,
    spread: bool = True,
    recorded: bool = False,
) -> Compiled:
    """The loop that starts at instruction ``header`` as a kernel. ``live_out(i)``: variables that may be read at or after instruction i.
    ``fast``: sums may be taken in another order, products and sums contracted, divisions be products. ``spread``: turns that have nothing to do
    with each other may be spread over threads. ``recorded``: the kernel notes what it does, see tape.py. Declined when something in it isn't
    understood."""
    region = find(insts, header)
    names = {
        name
        for start, end in region.blocks.items()
        for i in range(start, end)
        if insts[i].name in ("LOAD_FAST", "STORE_FAST")
        for name in (insts[i].argval,)
    }
    run = Interpreter(insts, region, inputs, names, live_out)
    run.fast, run.spread, run.recorded = fast, spread and not recorded, recorded
    try:
        return run.compile()
    except Declined as reason:
        line = run.insts[max(run.at, header)].line
        raise reason if f"line {line}" in str(reason) else Declined(f"{reason} (line {line})") from None
