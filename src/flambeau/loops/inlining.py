"""Calls of Python functions in a loop: their bytecode joins that of the loop, once for each place that calls.

The callee's instructions follow the loop's in one list, with variables of their own (the place's number before the name); its blocks are
blocks of the region. What the caller has on the stack stays under what the callee pushes. A return is a jump behind the call."""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..base.records import slotted
from . import generators
from .containers import list_functions
from .emitter import constant
from .machine import BlockEnd, Edge, InterpreterPart, Machine
from .operands import Inputs, Operands
from .recursion import Recursion
from .region import blocks_of
from .values import RETURNED, Call, Declined, Expression, Known, LocalFunction
from .variables import Variables
from .written_out import CODES

__all__ = ["Callee", "Inlining"]

DEEPEST = 8  # calls within calls
_OURS = {*CODES, *generators.ON_LISTS.values(), *list_functions.CODES}


@slotted(frozen=False)
class Callee:
    """A function as a loop calls it: what its names mean there, as in ``interpreter.Inputs``, and functions that give its
    default values (described likewise), by name. ``cells``: what free variables are called in the function that has the loop. ``names``: variables of
    a generator's function that its code doesn't have."""

    code: Any
    insts: tuple
    load_global: Callable[[str], Any]
    deref: Callable[[str], Any]
    defaults: dict[str, Callable[[], Any]]
    cells: dict[str, str] | None = None
    names: frozenset[str] = frozenset()

    @property
    def constants(self) -> tuple:
        return self.code.co_consts


class Inlining(InterpreterPart):
    """Calls and returns."""

    def __init__(self, machine: Machine, operands: Operands, variables: Variables, inputs: Inputs):
        super().__init__(machine)
        self.operands, self.variables, self.inputs = operands, variables, inputs
        self.recursion = Recursion(machine, variables)
        # By first instruction: last, function, instruction that calls, what it calls.
        self._callees: dict[int, tuple[int, Callee, int, Known]] = {}
        self._places: dict[tuple[int, Known], int] = {}

    def enter_own(self, call: Call):
        """The edge into a function of list_functions."""
        args = [self.variables.passing(a) if isinstance(a, Expression) else a for a in call.arguments]
        return self.enter(LocalFunction(call.function.__code__, ()), args, {})

    def enter(self, fn: Known | LocalFunction, args: list, kwargs: dict):
        """The edge into the function that a CALL at hand calls."""
        base = self._place(fn)
        end, callee = self._callees[base][:2]
        code, prefix = callee.code, f"{base}:"
        begun = zip((".0", generators.MADE), args)
        values = {name: (v, False) for name, v in begun} if callee.names else _bind(code, args, kwargs, callee.defaults)
        for k, item in enumerate(self.stack):
            if isinstance(item, Expression):
                self.stack[k] = self.variables.passing(item)
        stack = self.stack
        if base in (around := self._around()):
            between = around[: around.index(base) + 1]
            ends = {b: self._callees[b][0] for b in between}
            stack = self.recursion.call(
                base, [f"{b}:" for b in between], lambda n: any(b <= n < end for b, end in ends.items())
            )
        else:
            self.recursion.begin(base)
            self.variables.forget(prefix)
        for name, (value, default) in values.items():
            self.variables.write(prefix + name, self.operands.given(value()) if default else value)
        return BlockEnd([Edge(base, stack)])

    def _around(self) -> list[int]:
        """The functions, by first instruction, whose calls the instruction at hand is within; the innermost first."""
        out, at = [], self.machine.at
        while (base := self._callee_at(at)) is not None:
            out.append(base)
            at = self._callees[base][2]
        return out

    def _place(self, fn: Known | LocalFunction) -> int:
        """Where the function's instructions begin for this call."""
        if (self.machine.at, fn) in self._places:
            return self._places[self.machine.at, fn]
        around = self._around()
        same = next((base for base in around if self._callees[base][3] == fn), None)
        if same is None:
            callee = self._local(fn) if isinstance(fn, LocalFunction) else self.inputs.function(fn)
            if len(around) > DEEPEST:
                raise Declined(f"a deeply nested call of {callee.code.co_name}")
        behind = self.machine.at + 1
        block = next(start for start, end in self.machine.region.blocks.items() if start <= self.machine.at < end)
        if self.machine.region.blocks[block] != behind:
            self.machine.region.blocks[behind] = self.machine.region.blocks[block]
            self.machine.region.blocks[block] = behind
        if same is not None:
            self._places[self.machine.at, fn] = same
            return same
        base = len(self.machine.insts)
        for i in callee.insts:
            i = copy.copy(i)
            i.index += base
            if i.target is not None:
                i.target += base
            if "FAST" in i.name and isinstance(i.argval, str):
                i.argval = f"{base}:{i.argval}"
            self.machine.insts.append(i)
        self._callees[base] = len(self.machine.insts), callee, self.machine.at, fn
        self.machine.region.blocks.update({start + base: end + base for start, end in blocks_of(callee.insts).items()})
        self._places[self.machine.at, fn] = base
        return base

    def _local(self, fn: LocalFunction) -> Callee:
        """A function that the loop makes, which reads variables of the function that has the loop as they are when it is called."""
        if self.inputs.nested is None:
            raise Declined("a function that a loop makes")
        cells = dict(zip(fn.code.co_freevars, fn.cells))
        insts = self.inputs.nested(fn.code)
        names = frozenset()
        if fn.consumer is not None:
            insts, names = generators.folded(insts, fn.consumer), generators.NAMES
        if fn.code in _OURS:  # they read builtins only
            defaults = getattr(CODES.get(fn.code), "__kwdefaults__", None) or {}
            given = {name: functools.partial(constant, v) for name, v in defaults.items()}
            return Callee(fn.code, insts, lambda name: Known(getattr(builtins, name)), self.inputs.deref, given)
        return Callee(
            fn.code, insts, self.inputs.load_global, lambda name: self.inputs.deref(cells[name]), {}, cells, names
        )

    def _callee_at(self, at: int) -> int | None:
        """The number of the call whose function instruction ``at`` is part of."""
        return next((base for base, (end, *_) in self._callees.items() if base <= at < end), None)

    def read_at(self, at: int) -> frozenset[str]:
        """Variables of the function that instruction ``at`` is part of which may be read there or later."""
        base = self._callee_at(at)
        if base is None or self.inputs.live is None:
            return frozenset()
        callee = self._callees[base][1]
        live = callee.names or self.inputs.live(callee.code, at - base)
        return frozenset(f"{base}:{name}" for name in live)

    @property
    def here(self) -> Inputs | Callee:
        """What names mean at the current instruction."""
        base = self._callee_at(self.machine.at)
        return self.inputs if base is None else self._callees[base][1]

    def RETURN_VALUE(self, inst):
        base = self._callee_at(self.machine.at)
        value = self.machine.pop()
        if isinstance(value, Expression):
            value = self.variables.passing(value)
        if base is None:
            self.variables.write(RETURNED, value)
            return BlockEnd([Edge(self.machine.region.exit, self.stack)])
        block = next(start for start, end in self.machine.region.blocks.items() if start <= self.machine.at < end)
        return self.recursion.returned(base, block, self._callees[base][2] + 1, value)


def _bind(code, args: list, kwargs: dict, defaults: dict) -> dict:
    """(value, whether it is a default) by parameter."""
    unusual = (
        inspect.CO_VARARGS
        | inspect.CO_VARKEYWORDS
        | inspect.CO_GENERATOR
        | inspect.CO_COROUTINE
        | inspect.CO_ASYNC_GENERATOR
    )
    if code.co_flags & unusual or code.co_cellvars:
        raise Declined(
            f"a call of {code.co_name}, a generator, or with *args, **kwargs or variables that inner functions use"
        )
    n, names = code.co_argcount, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    out = {name: (value, True) for name, value in defaults.items()}
    out.update({name: (value, False) for name, value in zip(names[:n], args)})
    allowed = names[code.co_posonlyargcount :]
    if len(args) > n or any(k not in allowed or k in names[: len(args)] for k in kwargs):
        raise Declined(f"a call of {code.co_name} with these arguments")
    out.update({name: (value, False) for name, value in kwargs.items()})
    if len(out) != len(names):
        raise Declined(f"a call of {code.co_name} with too few arguments")
    return out
