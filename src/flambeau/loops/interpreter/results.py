"""What a loop leaves behind: numbers, arrays, tuples, lists, dicts and sets that are used later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from .. import arrays, bindings
from ..arguments import NULL
from ..emitter import CLEANUP, EXIT, I64, constant
from ..faults import Limit, Remedy
from ..numbers import complexes, conversions
from ..operands import GivenArray
from ..values import (
    CHARACTER,
    DONE,
    RETURNED,
    ArrayView,
    ContainerType,
    Declined,
    Known,
    PerhapsType,
    Scalar,
    ScalarType,
    State,
    TupleType,
    ViewType,
)
from .compiled import BoundArray, Grown, NumberResult

if TYPE_CHECKING:
    from .blocks import Interpreter

__all__ = ["Results"]


class Results:
    """``numbers``, ``fresh``, ``same``, ``tuples``, ``grown``, ``held``: see Compiled. Found while one text of the kernel is written."""

    def __init__(self, run: Interpreter):
        self.run = run
        self.e, self.region, self.inputs = run.e, run.region, run.inputs
        self.machine, self.operands, self.variables, self.containers = (
            run.machine,
            run.operands,
            run.variables,
            run.containers,
        )
        self.numbers: list[NumberResult] = []
        self.fresh: list[BoundArray] = []
        self.same: list[BoundArray] = []
        self.tuples: list[tuple[str, TupleType]] = []
        self.grown: list[Grown] = []
        self.held: list[tuple[str, str]] = []
        # What these variables hold at the end: arrays, and of these the ones whose shapes only the loop tells; containers.
        self.made: list[tuple[str, ArrayView]] = []
        self.made_arrays: list[tuple[str, ArrayView]] = []
        self.made_containers: list[tuple[str, ContainerType]] = []

    @property
    def makes_objects(self) -> bool:
        """Whether arrays or tuples that the loop makes, or binds, are used later."""
        return bool(self.fresh or self.same or self.tuples)

    @property
    def anything(self) -> bool:
        """Whether anything but the arrays that are written is of use later."""
        return bool(self.numbers or self.fresh or self.tuples or self.grown or self.held)

    def write(self, state: State) -> None:
        """Leave what is later used where the caller finds it."""
        self.e.label(EXIT)
        self.variables.begin(state.locals)
        if self.region.exit is None:
            names = [RETURNED]
        else:
            names = sorted(self.run.live_out & self.region.assigned(self.machine.insts))
        for name in names:
            self._variable(name, state.locals.get(name))
        changed = [c for _, c in self.containers.changed(self.variables.given_containers())]
        self._apart(changed)
        inner = [self.containers.reached(c.sites) for c in (*changed, *(t for _, t in self.made_containers))]
        if sum(map(len, inner)) > len(frozenset().union(*inner)):
            raise Declined("lists that are used after the loop may hold the same list")
        for name, container in self.containers.changed(self.variables.given_containers()):
            self.e.result(self.containers.result(container))
            self.grown.append(Grown(name, container.kind, True))
        for name, t in self.made_containers:
            self.e.result(self.containers.result(self.variables.fetch(name, t)))
            self.grown.append(Grown(name, t.kind, False))
        for name, value in self.made_arrays:
            self.e.result(self.containers.array_result(name, value))
            self.grown.append(Grown(name, "array", False))
        if self.e.errors and not (self.e.results or self.operands.written or self.fresh):
            # Its errors are all that it is for: a result keeps it in the graph.
            self.e.result(constant(1))
            self.numbers.append(NumberResult(DONE, I64, True))
        self.e.jump(CLEANUP)

    def _variable(self, name: str, t) -> None:
        if isinstance(t, PerhapsType):
            self.variables.require(name)
            t = t.of
        if isinstance(t, TupleType):
            if "." not in name and name != RETURNED:
                self.tuples.append((name, t))
            for k, item in enumerate(t.items):
                self._variable(f"{name}.{k}", item)
            return
        if isinstance(t, Known) and (name.startswith(RETURNED) or "." in name):
            return
        if isinstance(t, ViewType):
            self._array(name, t)
            return
        if isinstance(t, ContainerType):
            self._container(name, t)
            return
        if not isinstance(t, ScalarType) or t.dtype == CHARACTER:
            raise Declined(f"{name} is used after the loop, and is not a number on all paths")
        value = self.variables.fetch(name, t)
        if t.dtype.kind == "c":  # results are numbers of at most 8 bytes
            of = complexes.part(t.dtype)
            for v in complexes.parts(self.e, value.v):
                self.e.result(Scalar(of, False, v))
        else:
            self.e.result(value)
        if t.weak is None:  # whose number it is is a result too
            known = self.e.cmp("ne", value.flag, conversions.UNKNOWN)
            self.e.check(
                known, "RuntimeError", f"a compiled loop lost track of whether {name} is Python's or NumPy's number"
            )
            self.e.result(Scalar(np.dtype(np.int8), True, value.flag))
        self.numbers.append(NumberResult(name, t.dtype, t.weak))

    def _apart(self, given: list) -> None:
        """Declined where arrays that become objects of their own behind the loop may share memory in it."""
        seen = [(name, view.origins) for name, view in self.made]
        for name, c in [*((str(sorted(c.sites)), c) for c in given), *self.made_containers]:
            held = self.containers.origins(c)
            if held and any(held & other for _, other in seen):
                raise Declined(f"arrays of the list {name} are used after the loop, and may be those of {seen[-1][0]}")
            seen.append((name, held))

    def _container(self, name: str, t: ContainerType) -> None:
        """A list, dict or set is used later: one that the loop was given, or one that it made, of which no other variable holds one."""
        if t.view:
            raise Declined(f"{name} is used after the loop, and is a view of a dict")
        given = set(self.variables.given_containers())
        if len(t.sites) == 1 and t.sites <= given:
            self.held.append((name, *t.sites))
        elif t.sites & given or any(
            self.containers.reached(t.sites) & self.containers.reached(other.sites) for _, other in self.made_containers
        ):
            raise Declined(f"{name} is used after the loop, and is a {t.kind} that another variable may hold too")
        else:
            self.made_containers.append((name, t))

    def _array(self, name: str, t: ViewType) -> None:
        """An array that the loop made is used later. Its shape has to be known before the loop has run: it is that of the array which the
        variable held before."""
        bound = t.whole if t.whole is not None else self._bound_after(name)
        if bound is not None:
            self.same.append(BoundArray(name, bound))
            return
        before = self.variables.initial.get(name)
        known = isinstance(before, GivenArray) and (before.dtype, before.ndim) == (t.dtype, t.ndim)
        mixed = any(isinstance(o, int) for o in t.origins)
        any_shape = self.inputs.reshapes and t.ndim > 0 and t.owned and not self.e.noting
        if not (known or any_shape) or (mixed and not (t.owned and self.inputs.rerunnable)):
            raise Declined(f"{name} is used after the loop and is an array of which the shape isn't known, or a view")
        value = self.variables.fetch(name, t)
        if mixed:  # as it may be where the loop is left before its first turn has ended
            own = self.e.cmp("ne", value.owner, NULL)
            text = Limit(f"the array {name} of a compiled loop is one from outside")
            self.e.check(own, "RuntimeError", text)
        for other, theirs in self.made:
            if t.origins & theirs.origins:  # results are arrays of their own
                if not self.inputs.rerunnable:
                    raise Declined(f"{other} and {name} are used after the loop and may be one array")
                apart = self.e.cmp("ne", value.owner, theirs.owner)
                text = Limit(f"{other} and {name} of a compiled loop are one array")
                self.e.check(apart, "RuntimeError", text)
        self.made.append((name, value))
        if any_shape:
            self.made_arrays.append((name, value))
            return
        array = self.operands.array(before.token)
        sizes = arrays.operand(array).sizes
        for n, m in zip(value.sizes, sizes):
            self.e.check(
                self.e.cmp("eq", n, m),
                "RuntimeError",
                Limit(f"the array {name} of a compiled loop changed its shape", Remedy.RESHAPES),
            )
        strides = arrays.dense_strides(self.e, sizes, t.dtype.itemsize)
        arrays.assign(
            self.e, ArrayView(Operand(f"%f{len(self.fresh)}", llvm.PTR), t.dtype, sizes, strides, frozenset()), value
        )
        self.fresh.append(BoundArray(name, array.n))

    def _bound_after(self, name: str) -> int | None:
        """The operand that the variable is bound to after the loop, where arrays only change names in it."""
        if self.region.exit is None or self.run.left or self.inputs.turns is None:
            return None
        was = bindings.after(bindings.moves(self.machine.insts, self.region), name, self.inputs.turns)
        before = self.variables.initial.get(was)
        return self.operands.array(before.token).n if isinstance(before, GivenArray) else None
