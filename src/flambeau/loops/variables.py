"""Variables of a loop: stack slots of the kernel, one for each type that a variable has anywhere.

Within a block the value of a variable is known better than its type (constants, bounds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.records import replace
from ..inductor.assembly import instructions as llvm
from . import arrays, text
from .arguments import NULL
from .containers import Containers, Given
from .emitter import I64
from .faults import Limit
from .machine import InterpreterPart, Machine
from .numbers import conversions
from .numbers.relations import Relations, VariableValue, equal_to
from .operands import GivenArray, Operands
from .values import (
    CONFLICT,
    ArrayView,
    Container,
    ContainerType,
    Declined,
    Element,
    Empty,
    Expression,
    Method,
    NoValue,
    PerhapsType,
    Scalar,
    ScalarType,
    State,
    Text,
    TextType,
    Tuple,
    TupleType,
    ViewType,
    register_type,
    type_of,
)

__all__ = ["Variables"]


class Variables(InterpreterPart):
    """``types``: of the variables where the code is that is run; ``values``: of those that have been read or written in this block. ``index``: the
    variable that only the range of the outermost loop assigns. ``element``: makes an iterator's element, see :mod:`.iteration`. ``initial``: what
    variables hold before the loop, or why that isn't known. ``owned``: those that may hold an array made in the loop. ``at_start``: the values that
    variables have where a block begins, as relations name them; ``assigned``: those that the block has given them."""

    def __init__(
        self, machine: Machine, operands: Operands, index: str | None, element: Callable, containers: Containers
    ):
        super().__init__(machine)
        self.containers = containers
        self.operands, self.index, self._element = operands, index, element
        self.types: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.initial: dict[str, Any] = {}
        self.owned: set[str] = set()
        self.at_start: dict[str, VariableValue] = {}
        self.assigned: dict[str, VariableValue] = {}
        self.strange = False  # whether what types tell of the turn is about another loop

    def begin(self, types: dict[str, Any]) -> None:
        """Nothing but these types is known."""
        self.types, self.values, self.assigned = dict(types), {}, {}

    def enter(self, types: dict[str, Any]) -> None:
        """These are the types here; the values that are known stay so."""
        self.types = dict(types)

    def forget(self, prefix: str) -> None:
        """The variables whose names begin like this have no values."""
        for name in [n for n in self.types if n.startswith(prefix)]:
            del self.types[name]
            self.values.pop(name, None)

    def entry(self, names, local: Callable[[str], Any]) -> State:
        """Put what variables of these names hold before the loop into their slots; the state in which the loop is entered."""
        types, assigned = {}, self.machine.region.assigned(self.machine.insts)
        for name in sorted(set(names) - self.initial.keys()):
            try:
                self.initial[name] = local(name)
            except Declined as reason:
                self.initial[name] = reason
        # Arrays come first, so that numbers are known to be their sizes.
        for name in sorted(names, key=lambda name: (not isinstance(self.initial[name], GivenArray), name)):
            what = self.initial[name]
            if isinstance(what, Declined) or what is None:
                continue
            if isinstance(what, Given):
                value: Any = self.containers.given(
                    name, replace(what, items=tuple(map(self.operands.given, what.items)))
                )
            else:
                value = self.operands.given(what, name)
                value = text.character(value) if name in assigned else value
            self.keep(name, value)
            types[name] = type_of(value)
        return State(types)

    def unset(self) -> frozenset[str]:
        """Variables that have no value before the loop."""
        return frozenset(name for name, what in self.initial.items() if isinstance(what, NoValue))

    def given_containers(self) -> list[str]:
        """Variables that held a list, dict or set before the loop."""
        return [name for name, what in self.initial.items() if isinstance(what, Given)]

    def keep(self, name: str, value) -> None:
        """Store into the slots of a variable."""
        e = self.e
        if isinstance(value, Scalar):
            e.set(name, register_type(value.dtype), value.v)
            e.set(f"{name}.w", llvm.I8, conversions.flag_of(e, value) or conversions.UNKNOWN)
        elif isinstance(value, ArrayView):
            e.set(f"{name}.p", llvm.PTR, value.ptr)
            if value.owner is not None:
                e.set(f"{name}.b", llvm.PTR, value.owner)
            for d, (n, s) in enumerate(zip(value.sizes, value.strides)):
                e.set(f"{name}.n{d}", llvm.I64, n)
                e.set(f"{name}.s{d}", llvm.I64, s)
        elif isinstance(value, Method) and isinstance(value.owner, Container):
            self.keep(name, value.owner)
        elif isinstance(value, Text):
            self.keep(name, value.view)
        elif isinstance(value, Container):
            e.set(f"{name}.p", llvm.PTR, value.ptr)
        elif isinstance(value, Tuple):
            for k, item in enumerate(value.items):
                self.keep(f"{name}.{k}", item)

    def fetch(self, name: str, t):
        e = self.e
        if isinstance(t, ScalarType):
            flag = e.get(f"{name}.w", llvm.I8) if t.weak is None else None
            return Scalar(
                t.dtype,
                t.weak,
                e.get(name, register_type(t.dtype)),
                t.bounds,
                None,
                flag,
                below=t.below,
                relations=t.relations,
            )
        if isinstance(t, ViewType) and t.whole is not None:
            return arrays.operand(self.operands.arrays[t.whole])
        if isinstance(t, ViewType):
            strides = [e.get(f"{name}.s{d}", llvm.I64) for d in range(t.ndim)]
            if t.dense:
                strides[-1] = t.dtype.itemsize
            sizes = tuple(n if n is not None else e.get(f"{name}.n{d}", llvm.I64) for d, n in enumerate(t.sizes))
            owner = e.get(f"{name}.b", llvm.PTR) if t.owned else None
            return ArrayView(
                e.get(f"{name}.p", llvm.PTR),
                t.dtype,
                sizes,
                tuple(strides),
                t.origins,
                owner,
                t.whole,
                frozenset() if self.strange else t.turn,
                t.rows,
            )
        if isinstance(t, Element):
            return self._element(t.of.parts, e.op("sub", e.get(f"{t.of.key}.cur", llvm.I64), 1), t.of.bounds)
        if isinstance(t, TupleType):
            return Tuple(tuple(self.fetch(f"{name}.{k}", item) for k, item in enumerate(t.items)), t.listed)
        if isinstance(t, TextType):
            return Text(self.fetch(name, t.of))
        if isinstance(t, ContainerType):
            container = Container(t.sites, t.kind, e.get(f"{name}.p", llvm.PTR), t.view)
            return container if t.method is None else Method(container, t.method)
        if t is CONFLICT:
            raise Declined("a variable has different types on different paths")
        return t

    def read(self, name: str):
        if name not in self.values:
            if name not in self.types:
                reason = self.initial.get(name)
                # Variables of functions that are called have none before.
                if isinstance(reason, NoValue) or ":" in name:
                    raise Empty(f"{name.rpartition(':')[2]}: it may have no value")
                raise Declined(f"{name}: {reason}" if isinstance(reason, Declined) else f"{name} may have no value")
            if self.types[name] is CONFLICT:
                raise Declined(f"{name} has different types on different paths")
            t = self.types[name]
            if isinstance(t, PerhapsType):
                self.require(name)
                t = self.types[name] = t.of
            self.values[name] = self.fetch(name, t)
        value = self.values[name]
        if isinstance(value, Scalar) and value.dtype == I64:
            if value.weak and value.const is None:
                same = equal_to(self.value_of(name))
                if not same <= value.relations:
                    self.values[name] = replace(value, relations=value.relations | same)
            if name == self.index:
                self.values[name] = replace(self.values[name], turn=0)
        return self.values[name]

    def value_of(self, name: str) -> VariableValue:
        """The value that the variable has here."""
        return self.assigned.get(name) or self.at_start.setdefault(name, VariableValue(name))

    def still_related(self, relations: Relations) -> Relations:
        """At the end of a block: the relations to values that variables still have, as the next block names them."""
        still = [r for r in relations if self.value_of(r.value.name) is r.value]
        starts = ((r, self.at_start.setdefault(r.value.name, VariableValue(r.value.name))) for r in still)
        return frozenset(r if value is r.value else replace(r, value=value) for r, value in starts)

    def require(self, name: str) -> None:
        """Leave the loop unless the variable has a value here."""
        has = self.e.cmp("ne", self.e.get(f"{name}.is", llvm.I8), 0)
        self.e.check(has, "RuntimeError", Limit(f"{name} has no value in a compiled loop"))

    def write(self, name: str, value) -> None:
        e = self.e
        if isinstance(value, Expression):
            value = arrays.materialise(e, value, f"{name}@{self.machine.at}")
        elif isinstance(value, ArrayView) and value.owner is not None:
            e.keep(value.owner)
        value = text.character(value)
        owner = value.owner if isinstance(value, ArrayView) else None
        if owner is not None:
            self.owned.add(name)
        if name in self.owned:
            e.drop(e.get(f"{name}.b", llvm.PTR))
            e.set(f"{name}.b", llvm.PTR, owner or NULL)
        self.types[name] = type_of(value)
        self.values[name] = value
        self.assigned[name] = VariableValue(name)
        self.keep(name, value)

    def passing(self, x: Expression) -> ArrayView:
        """An array for an expression that no variable holds."""
        made = arrays.materialise(self.e, x, f"stack@{self.machine.at}")
        self.e.drop(made.ptr)
        return made

    def about_to_write(self, target: ArrayView) -> None:
        """Elements of a view are written next."""
        self._settle(target.origins)
        self.operands.written.update(o for o in target.origins if isinstance(o, int))

    def _settle(self, origins: frozenset) -> None:
        """Evaluate the expressions on the stack that read memory which is about to be written."""
        for k, item in enumerate(self.stack):
            if isinstance(item, Expression) and any(view.origins & origins for view in item.reads):
                self.stack[k] = self.passing(item)

    def convert(self, name: str, have, want) -> None:
        """Bring the slots of a variable from one type to another that holds it."""
        if want == have or want is CONFLICT:
            return
        if isinstance(want, PerhapsType):
            if not isinstance(have, PerhapsType):
                self.e.set(f"{name}.is", llvm.I8, llvm.constant(llvm.I8, int(have is not None)))
            if have is not None:
                self.convert(name, have.of if isinstance(have, PerhapsType) else have, want.of)
            return
        if isinstance(want, ScalarType):
            if want.dtype != have.dtype:
                value = self.values.get(name) or self.fetch(name, have)
                self.keep(name, conversions.met(self.e, value, want.dtype))
        elif isinstance(want, TupleType):
            for k, (a, b) in enumerate(zip(have.items, want.items)):
                self.convert(f"{name}.{k}", a, b)
