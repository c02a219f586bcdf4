"""Calls of Python functions in a loop: their bytecode joins that of the loop, once for each place that calls.

The callee's instructions follow the loop's in one list, with variables of their own (the place's number before the name); its blocks are
blocks of the region. What the caller has on the stack stays under what the callee pushes. A return is a jump behind the call."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .region import blocks_of
from .values import RETURNED, Declined, Expression, Known

__all__ = ["Callee", "Inlining"]

DEEPEST = 8  # calls within calls


@dataclass
class Callee:
    """A function as a loop calls it: what its names mean there, as in ``interpreter.Inputs``, and functions that give its
    default values (described likewise), by name."""

    code: Any
    insts: tuple
    load_global: Callable[[str], Any]
    deref: Callable[[str], Any]
    defaults: dict[str, Callable[[], Any]]

    @property
    def constants(self) -> tuple:
        return self.code.co_consts


class Inlining:
    """Calls and returns of the interpreter, which has instructions, region and inputs."""

    def enter(self, fn: Known, args: list, kwargs: dict):
        """The edge into the function that a CALL at ``self.at`` calls."""
        base = self._place(fn)
        end, callee = self.callees[base][:2]
        code, prefix = callee.code, f"{base}:"
        values = _bind(code, args, kwargs, callee.defaults)
        for name in [n for n in self.types if n.startswith(prefix)]:
            self.types.pop(name), self.values.pop(name, None)
        for k, item in enumerate(self.stack):
            if isinstance(item, Expression):
                self.stack[k] = self.passing(item)
        for name, (value, default) in values.items():
            self.write(prefix + name, self.given(value()) if default else value)
        return None, [(base, self.stack)]

    def _place(self, fn: Known) -> int:
        """Where the function's instructions begin for this call."""
        if (self.at, fn) in self.places_of_calls:
            return self.places_of_calls[self.at, fn]
        callee = self.inputs.function(fn)
        depth, at = 0, self.at
        while (around := self.callee_at(at)) is not None:
            depth, at = depth + 1, self.callees[around][2]
            if self.callees[around][1].code is callee.code or depth > DEEPEST:
                raise Declined(f"a recursive or deeply nested call of {callee.code.co_name}")
        block = next(start for start, end in self.region.blocks.items() if start <= self.at < end)
        base = len(self.insts)
        for i in callee.insts:
            i = copy.copy(i)
            i.index += base
            if i.target is not None:
                i.target += base
            if "FAST" in i.name and isinstance(i.argval, str):
                i.argval = f"{base}:{i.argval}"
            self.insts.append(i)
        self.callees[base] = len(self.insts), callee, self.at
        self.region.blocks.update({start + base: end + base for start, end in blocks_of(callee.insts).items()})
        behind = self.at + 1
        if self.region.blocks[block] != behind:
            self.region.blocks[behind] = self.region.blocks[block]
            self.region.blocks[block] = behind
        self.places_of_calls[self.at, fn] = base
        return base

    def callee_at(self, at: int) -> int | None:
        """The number of the call whose function instruction ``at`` is part of."""
        return next((base for base, (end, _, _) in self.callees.items() if base <= at < end), None)

    @property
    def here(self):
        """What names mean at the current instruction."""
        base = self.callee_at(self.at)
        return self.inputs if base is None else self.callees[base][1]

    def RETURN_VALUE(self, inst):
        base = self.callee_at(self.at)
        value = self.pop()
        if isinstance(value, Expression):
            value = self.passing(value)
        if base is None:
            self.write(RETURNED, value)
            return None, [(self.region.exit, self.stack)]
        return None, [(self.callees[base][2] + 1, [*self.stack, value])]


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
