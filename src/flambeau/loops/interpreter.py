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

from . import arithmetic, arrays, gathers, reductions
from . import bounds as between
from .arrays import OnElements
from .calls import LARGEST, Calls
from .emitter import I64, SMALL_SIZE, Emitter, constant
from .inlining import Callee, Inlining
from .iteration import Iteration
from .region import Region, find, leads_to
from .values import (
    CONFLICT,
    RETURNED,
    Array,
    Declined,
    Element,
    Expression,
    Known,
    Method,
    Null,
    Scalar,
    ScalarType,
    Slice,
    State,
    Symbolic,
    Tuple,
    TupleType,
    View,
    ViewType,
    register_type,
    type_of,
)

__all__ = ["Compiled", "Inputs", "compile_region"]

UNKNOWN = "3"  # flag of a number of which it isn't known whether it is Python's
_IGNORED = {"RESUME", "NOP", "PRECALL", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL"}


@dataclass
class Inputs:
    """What the loop may read. ``local(name)`` and ``load_global(name)`` give a Scalar constant, Symbolic, an operand's description
    ``(token, dtype, ndim, dense, sizes)`` (see Array; a size that differs between calls is what it is known as) or Known;
    ``attribute(known, name)`` the
    same for an attribute. They raise Declined for
    anything else, and what they give is guarded. ``function(known)``: a Python function that is called. ``trip``: (start, stop, step) of the
    range that the loop runs over, which isn't empty (start and stop may be Symbolic); ("over", item) for arrays: a description, or a call
    (Known, items) of enumerate or zip; None for while. ``again``: nothing that has happened
    before the loop has an effect, so that all may run again plainly when the loop meets an error."""

    local: Callable[[str], Any]
    load_global: Callable[[str], Any]
    deref: Callable[[str], Any]
    attribute: Callable[[Known, str], Any]
    function: Callable[[Known], Callee]
    trip: tuple | None
    constants: tuple = ()
    again: bool = True


@dataclass
class Compiled:
    """``text``: the kernel. ``arrays``: tokens of the operands; ``written``: which of them are written; ``fresh``: variables whose arrays
    are results, and the operand that tells the shape; ``same``: variables that are an operand after the loop; ``ints`` and ``floats``:
    numbers read; ``sizes``: of each array, sizes that it always has, -1 for others; ``results``: (variable, dtype, whether it is Python's
    number, None where another result, an int8, tells); ``errors``:
    (type's name, text) by number - 1. ``returned``: type of what the function returns, named RETURNED among the results (``RETURNED.k`` for the
    items of a tuple), where the region ends with ``return``; else None."""

    text: str
    arrays: list[Any]
    shapes: list[int]
    written: list[int]
    fresh: list[tuple[str, int]]
    same: list[tuple[str, int]]
    ints: list[Any]
    floats: list[Any]
    results: list[tuple[str, np.dtype, bool | None]]
    errors: list[tuple[str, str]]
    exit: int | None
    returned: Any
    sizes: list[list[int]]


class Interpreter(Calls, Inlining, Iteration):
    def __init__(self, insts, region: Region, inputs: Inputs, names: set[str], live_out: frozenset[str]):
        self.insts, self.region, self.inputs, self.names, self.live_out = list(insts), region, inputs, names, live_out
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
        self.owned: set[str] = set()  # variables that may hold an array made in the loop
        self.fresh: list[tuple[str, int]] = []
        self.same: list[tuple[str, int]] = []
        self.at = 0
        self.states: dict[int, State] = {}
        self.places: dict[int, tuple] = {}  # id of a view -> it, what it is a view of, and the key
        self.sizes: dict[str, tuple[int, int]] = {}  # bounds of the operands' sizes
        self.thresholds: set[int] = {0, 1}  # see bounds.py
        self.joins: dict[int, int] = {}  # how often paths met at a block
        self.tests: dict[int, tuple] = {}  # id of a comparison's result -> it, operator, operands
        self.e = Emitter(self.sizes)
        self.final = self.alike = self.fast = False

    # ---- inputs --------------------------------------------------------------------------------------------------------
    def given(self, what, name: str | None = None):
        """A value from outside as one of ours. Numbers named ``name`` are passed at each call."""
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
        if isinstance(what, Scalar) and what.weak and name is not None and not isinstance(what.const, bool):
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
            e.set(f"{name}.w", "i8", arithmetic.flag_of(e, value) or UNKNOWN)
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
            sizes = tuple(e.get(f"{name}.n{d}", "i64") for d in range(t.ndim))
            owner = e.get(f"{name}.b", "ptr") if t.owned else None
            return View(e.get(f"{name}.p", "ptr"), t.dtype, sizes, tuple(strides), t.origins, owner, t.whole)
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
        self.final, self.e = True, Emitter(self.sizes, self.fast)
        self.types, self.values, self.stack = {}, {}, []
        self.alike = self._lie_alike()
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
        results = self.results(exit_state)
        shapes = [array.ndim for _, array in self.operands.values()]
        self.e.owned = sorted(self.owned)
        return Compiled(
            self.e.text(shapes, len(self.fresh), self.written),
            [token for token, _ in self.operands.values()], shapes, sorted(self.written), self.fresh, self.same,
            list(self.ints.values()), list(self.floats.values()), results, self.e.errors, self.region.exit,
            exit_state.locals[RETURNED] if self.region.exit is None else None,
            [[n if type(n) is int else -1 for n in what] for what in self.always],
        )  # fmt: skip

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
        if isinstance(t, TupleType) and name.startswith(RETURNED):
            for k, item in enumerate(t.items):
                self.result(f"{name}.{k}", item, out)
            return
        if isinstance(t, Known) and name.startswith(RETURNED):
            return
        if isinstance(t, ViewType):
            self.array_result(name, t)
            return
        if not isinstance(t, ScalarType):
            raise Declined(f"{name} is used after the loop, and is not a number on all paths")
        value = self.fetch(name, t)
        self.e.result(value)
        if t.weak is None:  # whose number it is is a result too
            known = self.e.op(f"icmp ne i8 {value.flag}, {UNKNOWN}")
            self.e.check(
                known, "RuntimeError", f"a compiled loop lost track of whether {name} is Python's or NumPy's number"
            )
            self.e.result(Scalar(np.dtype(np.int8), True, value.flag))
        out.append((name, t.dtype, t.weak))

    def array_result(self, name: str, t: ViewType) -> None:
        """An array that the loop made is used later. Its shape has to be known before the loop has run: it is that of the array which the
        variable held before."""
        if t.whole is not None:
            self.same.append((name, t.whole))
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
            text = f"the array {name} of a compiled loop changed its shape; run it with torch._dynamo.config.native_loops = False"
            self.e.check(same, "RuntimeError", text)
        strides = arrays.dense_strides(self.e, sizes, t.dtype.itemsize)
        arrays.assign(self.e, View(f"%f{len(self.fresh)}", t.dtype, sizes, strides, frozenset()), value)
        self.fresh.append((name, array.n))

    # ---- instructions: the stack -----------------------------------------------------------------------------------------
    def pop(self):
        return self.stack.pop()

    def number(self) -> Scalar:
        v = self.pop()
        if not isinstance(v, Scalar):
            raise Declined(f"a {type(v).__name__.lower()} where a number is wanted")
        return v

    def POP_TOP(self, inst):
        self.pop()

    def PUSH_NULL(self, inst):
        self.stack.append(Null())

    def SWAP(self, inst):
        s = self.stack
        s[-1], s[-inst.arg] = s[-inst.arg], s[-1]

    def COPY(self, inst):
        self.stack.append(self.stack[-inst.arg])

    def LOAD_CONST(self, inst):
        v = inst.argval
        self.stack.append(self.constant(v))

    def constant(self, v):
        if type(v) in (bool, int, float):
            if type(v) is int and not -(1 << 63) <= v < 1 << 63:
                raise Declined("a very large integer")
            return constant(v)
        if type(v) is tuple:
            return Tuple(tuple(map(self.constant, v)))
        if isinstance(v, slice):
            return Slice(self.constant(v.start), self.constant(v.stop), self.constant(v.step))
        return Known(v)

    def LOAD_FAST(self, inst):
        self.stack.append(self.read(inst.argval))

    def STORE_FAST(self, inst):
        self.write(inst.argval, self.pop())

    def push_callable(self, v) -> None:
        """With the NULL that CALL takes on either side."""
        self.stack += [Null(), v]

    def LOAD_GLOBAL(self, inst):
        v = self.given(self.here.load_global(inst.argval))
        self.push_callable(v) if inst.arg & 1 else self.stack.append(v)

    def LOAD_DEREF(self, inst):
        self.stack.append(self.given(self.here.deref(inst.argval)))

    def BUILD_TUPLE(self, inst):
        items = self.stack[len(self.stack) - inst.arg :]
        del self.stack[len(self.stack) - inst.arg :]
        self.stack.append(Tuple(tuple(items)))

    BUILD_LIST = BUILD_TUPLE  # only ever read: nothing here writes to a list

    def BUILD_SLICE(self, inst):
        step = self.pop() if inst.arg == 3 else Known(None)
        stop, start = self.pop(), self.pop()
        self.stack.append(Slice(start, stop, step))

    def UNPACK_SEQUENCE(self, inst):
        v = self.pop()
        if isinstance(v, View):
            e, n = self.e, v.sizes[0]
            e.check(
                e.op(f"icmp eq i64 {n}, {inst.arg}"),
                "ValueError",
                f"expected {inst.arg} values to unpack, got {{0}}",
                n,
            )
            v = Tuple(tuple(arrays.subscript(e, v, constant(k)) for k in range(inst.arg)))
        if not isinstance(v, Tuple) or len(v.items) != inst.arg:
            raise Declined("unpacking of this value")
        self.stack.extend(reversed(v.items))

    # ---- arithmetic ------------------------------------------------------------------------------------------------------
    def BINARY_OP(self, inst):
        b, a = self.pop(), self.pop()
        text = _BINARY_NAMES[inst.arg]
        inplace, op = text.endswith("=") and text not in ("==", "<=", ">=", "!="), text.rstrip("=")
        if op == "@":
            self.stack.append(reductions.dot(self.e, a, b, f"product@{self.at}"))
            return
        if op not in arithmetic.BINARY:
            raise Declined(f"the operator {text}")
        if isinstance(a, Tuple) or isinstance(b, Tuple):
            raise Declined(f"{text} of a tuple")
        out = arrays.elementwise(self.e, OnElements(self.e, lambda e, x, y: arithmetic.binary(e, op, x, y)), a, b)
        if inplace and isinstance(a, View):
            if out.dtype.kind not in {"b": "b", "i": "i", "u": "iu", "f": "f"}[a.dtype.kind] + a.dtype.kind:
                raise Declined(f"{text} would change the dtype of an array")
            self.store(a, out)
            out = a
        self.stack.append(out)

    def COMPARE_OP(self, inst):
        b, a = self.pop(), self.pop()
        fn = OnElements(self.e, lambda e, x, y: arithmetic.compare(e, inst.argval, x, y))
        out = arrays.elementwise(self.e, fn, a, b)
        if isinstance(out, Scalar):
            self.tests[id(out)] = out, inst.argval, a, b
        self.stack.append(out)

    def IS_OP(self, inst):
        b, a = self.pop(), self.pop()
        if not (isinstance(a, Known) or isinstance(b, Known)):
            raise Declined("is")
        self.stack.append(constant((a == b) != bool(inst.arg)))

    def UNARY_NEGATIVE(self, inst):
        self.stack.append(arrays.elementwise(self.e, OnElements(self.e, arithmetic.negate), self.pop()))

    def UNARY_INVERT(self, inst):
        self.stack.append(arrays.elementwise(self.e, OnElements(self.e, arithmetic.invert), self.pop()))

    def UNARY_NOT(self, inst):
        v = self.e.op(f"xor i1 {arithmetic.to_bool(self.e, self.number())}, true")
        self.stack.append(Scalar(np.dtype(bool), True, v))

    # ---- arrays ----------------------------------------------------------------------------------------------------------
    def BINARY_SUBSCR(self, inst):
        key, owner = self.pop(), self.pop()
        self.stack.append(self.subscript(owner, key))

    def BINARY_SLICE(self, inst):
        stop, start, owner = self.pop(), self.pop(), self.pop()
        self.stack.append(self.subscript(owner, Slice(start, stop, Known(None))))

    def subscript(self, owner, key):
        if isinstance(owner, Tuple) and isinstance(key, Scalar) and isinstance(key.const, int):
            return owner.items[key.const]
        if isinstance(owner, Expression):
            owner = self.passing(owner)
        if not isinstance(owner, View):
            raise Declined(f"a subscript of a {type(owner).__name__.lower()}")
        if gathers.advanced(key):
            return gathers.read(self.e, owner, self.settled(key), f"gather@{self.at}")
        out = arrays.subscript(self.e, owner, key)
        self.places[id(out)] = out, owner, key
        return out

    def settled(self, key):
        """A key whose arrays are in memory."""
        if isinstance(key, Tuple):
            return Tuple(tuple(map(self.settled, key.items)))
        return self.passing(key) if isinstance(key, Expression) else key

    def STORE_SUBSCR(self, inst):
        key, owner, value = self.pop(), self.pop(), self.pop()
        self.store_subscript(owner, key, value)

    def STORE_SLICE(self, inst):
        stop, start, owner, value = self.pop(), self.pop(), self.pop(), self.pop()
        self.store_subscript(owner, Slice(start, stop, Known(None)), value)

    def store_subscript(self, owner, key, value):
        if not isinstance(owner, View):
            raise Declined(f"an item of a {type(owner).__name__.lower()} is set")
        if gathers.advanced(key):
            self.writes(owner)
            if isinstance(value, Scalar) and isinstance(key, (View, Expression)) and key.dtype == np.bool_:
                arrays.assign_where(self.e, owner, key, value)
            else:
                gathers.write(self.e, owner, self.settled(key), value, self.passing, f"scatter@{self.at}")
            return
        if isinstance(value, Scalar):
            self.writes(owner)
            arrays.store_element(self.e, owner, key, value)
            return
        _, taken_of, by = self.places.get(id(value), (None, None, None))
        if taken_of is owner and _same_key(by, key):
            return  # a[k] += b: the view has been written already
        target = arrays.subscript(self.e, owner, key)
        if isinstance(target, Scalar):
            raise Declined("an array is stored as an element")
        self.store(target, value)

    def writes(self, target: View) -> None:
        self.settle(target.origins)
        self.written.update(o for o in target.origins if isinstance(o, int))

    def store(self, target: View, value) -> None:
        self.writes(target)
        if value != target:
            arrays.assign(self.e, target, value)

    def LOAD_ATTR(self, inst):
        self.stack.append(self.attribute(self.pop(), inst.argval))

    def LOAD_METHOD(self, inst):
        self.push_callable(self.attribute(self.pop(), inst.argval))

    def attribute(self, owner, name: str):
        if isinstance(owner, Known) and isinstance(owner.value, np.iinfo | np.finfo):
            n = getattr(owner.value, name)
            return constant(n) if type(n) is int or isinstance(n, np.floating) else Known(n)
        if isinstance(owner, Known):
            return self.given(self.inputs.attribute(owner, name))
        if isinstance(owner, View):
            if name == "shape":
                return Tuple(tuple(map(self.size, owner.sizes)))
            if name == "ndim":
                return constant(owner.ndim)
            if name == "size":
                return self.size(arrays.count(self.e, owner.sizes))
            if name == "T":
                return replace(owner, sizes=owner.sizes[::-1], strides=owner.strides[::-1], whole=None)
            if name == "dtype":
                return Known(owner.dtype)
        if isinstance(owner, Scalar) and owner.weak is False and name == "dtype":
            return Known(owner.dtype)
        if isinstance(owner, (View, Expression)) and (
            name in reductions.REDUCTIONS or name in ("copy", "astype", "dot")
        ):
            return Method(owner, name)
        raise Declined(f"the attribute {name} of a {type(owner).__name__.lower()}")

    # ---- control ---------------------------------------------------------------------------------------------------------
    def JUMP_FORWARD(self, inst):
        return None, [(inst.target, self.stack)]

    def JUMP_BACKWARD(self, inst):
        if self.insts[inst.target].name != "FOR_ITER":
            self.e.spend("1")
        if not any(isinstance(v, (View, Expression)) for v in self.stack):
            self.e.flush()
        return None, [(inst.target, self.stack)]

    JUMP_BACKWARD_NO_INTERRUPT = JUMP_BACKWARD

    def _jump_if(self, inst, want: bool):
        if inst.target < inst.index:
            if self.insts[inst.target].name != "FOR_ITER":
                self.e.spend("1")
            self.e.flush()
        number = self.number()
        test = arithmetic.to_bool(self.e, number)
        yes, no = self.learnt(number)
        if not want:
            yes, no = no, yes
        ways = [(inst.target, self.stack, yes), (inst.index + 1, self.stack, no)]
        return test, ways if want else ways[::-1]

    def learnt(self, test: Scalar) -> tuple[dict, dict]:
        """The types of variables where a comparison holds, and where it doesn't."""
        _, op, *numbers = self.tests.get(id(test), (None, None))
        if len(numbers) != 2 or not all(s.dtype == I64 for s in numbers):
            return {}, {}
        out = []
        for known in (op, between.OPPOSITE[op]):
            types = {}
            for s, bounds in zip(numbers, between.refined(known, *(s.bounds for s in numbers))):
                for name, value in self.values.items():
                    if value is s and bounds != s.bounds and isinstance(self.types.get(name), ScalarType):
                        types[name] = replace(self.types[name], bounds=bounds)
            out.append(types)
        return out[0], out[1]

    def POP_JUMP_IF_TRUE(self, inst):
        return self._jump_if(inst, True)

    def POP_JUMP_IF_FALSE(self, inst):
        return self._jump_if(inst, False)

    def JUMP_IF_TRUE_OR_POP(self, inst):
        test = arithmetic.to_bool(self.e, self.stack[-1])
        return test, [(inst.target, self.stack), (inst.index + 1, self.stack[:-1])]

    def JUMP_IF_FALSE_OR_POP(self, inst):
        test = arithmetic.to_bool(self.e, self.stack[-1])
        return test, [(inst.index + 1, self.stack[:-1]), (inst.target, self.stack)]


_BINARY_NAMES = (
    "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^=",
)  # fmt: skip


def binary_name(inst) -> str:
    """The operator of a BINARY_OP instruction, with = behind it for the in-place form."""
    return inst.argrepr if hasattr(inst, "argrepr") else _BINARY_NAMES[inst.arg]


def _same_key(a, b) -> bool:
    """Whether two subscripts are the same values."""
    if isinstance(a, Slice) and isinstance(b, Slice):
        return all(_same_key(x, y) for x, y in ((a.start, b.start), (a.stop, b.stop), (a.step, b.step)))
    return a is b or (isinstance(a, Known) and a == b)


def compile_region(
    insts, header: int, inputs: Inputs, live_out: Callable[[int], frozenset[str]], fast: bool = False
) -> Compiled:
    """The loop that starts at instruction ``header`` as a kernel. ``live_out(i)``: variables that may be read at or after instruction i.
    ``fast``: sums may be taken in another order, products and sums contracted, divisions be products. Declined when something in it isn't
    understood."""
    region = find(insts, header)
    names = {
        name
        for start, end in region.blocks.items()
        for i in range(start, end)
        if insts[i].name in ("LOAD_FAST", "STORE_FAST")
        for name in (insts[i].argval,)
    }
    run = Interpreter(insts, region, inputs, names, live_out(region.exit) if region.exit is not None else frozenset())
    run.fast = fast
    try:
        return run.compile()
    except Declined as reason:
        line = run.insts[max(run.at, header)].line
        raise reason if f"line {line}" in str(reason) else Declined(f"{reason} (line {line})") from None
