"""The call instructions: a function's bytecode joins the loop's, or code is emitted for what the function is known to do."""

from __future__ import annotations

import types

from ...base.records import replace
from .. import generators, written_out
from ..containers import Containers, list_functions
from ..emitter import constant
from ..inlining import Inlining
from ..machine import InterpreterPart, Machine
from ..numpy_functions import FUNCTIONS
from ..values import Container, Declined, Expression, Known, LocalFunction, Method, Null
from ..variables import Variables
from .known_functions import KnownFunctions

__all__ = ["Calls"]

# Functions of Python's or NumPy's for which there is code here.
OURS = frozenset((*FUNCTIONS, generators.given_back))


class Calls(InterpreterPart):
    def __init__(
        self,
        machine: Machine,
        variables: Variables,
        inlining: Inlining,
        containers: Containers,
        functions: KnownFunctions,
    ):
        super().__init__(machine)
        self.variables, self.inlining, self.containers, self.functions = variables, inlining, containers, functions
        self.kw_names: tuple[str, ...] = ()

    def KW_NAMES(self, inst):
        self.kw_names = inst.argval if isinstance(inst.argval, tuple) else self.inlining.here.constants[inst.arg]

    def CALL(self, inst):
        args = self.machine.taken(inst.arg)
        b, a = self.machine.pop(), self.machine.pop()
        fn = b if isinstance(a, Null) else a
        if not (isinstance(a, Null) or isinstance(b, Null)):
            args = [b, *args]
        names, self.kw_names = self.kw_names, ()
        at = len(args) - len(names)
        args, kwargs = args[:at], dict(zip(names, args[at:]))
        found = self.of_containers(fn, args, kwargs)
        if found is not None:
            return self.inlining.enter_own(found)
        code = self.written_out(fn.value, args, kwargs) if isinstance(fn, Known) else None
        if code is not None:
            fn = LocalFunction(code, ())
            args = [self.variables.passing(a) if isinstance(a, Expression) else a for a in args]
        if isinstance(fn, LocalFunction) and generators.is_generator(fn.code):
            fn, started = self.consumed(fn)
            args += started
        if isinstance(fn, LocalFunction):
            return self.inlining.enter(fn, args, kwargs)
        if isinstance(fn, Known) and (
            fn.value is fn.origin or (isinstance(fn.value, types.FunctionType) and fn.value not in OURS)
        ):  # a function made while tracing is known as capture's variable
            return self.inlining.enter(fn, args, kwargs)
        self.stack.append(self.functions.call(fn, args, kwargs))
        return None

    def of_containers(self, fn, args: list, kwargs: dict):
        """The function, written out, of a builtin or a method that takes all of a list, dict or set; None for other calls."""
        if isinstance(fn, Method) and isinstance(fn.owner, Container):
            found = list_functions.method(fn.owner, fn.name, args, kwargs)
            if found is not None:
                self.containers.changes(fn.owner)
            return found
        return list_functions.function(fn.value, args, kwargs) if isinstance(fn, Known) else None

    def written_out(self, f, args: list, kwargs: dict):
        """The code of a builtin function that is written out for these arguments."""
        if not isinstance(f, types.BuiltinFunctionType):
            return None
        return written_out.written_out(f, args, kwargs) or generators.on_list(f, args, kwargs)

    def consumed(self, fn: LocalFunction) -> tuple[LocalFunction, list]:
        """A generator's function, with the builtin that takes what it gives at once, and what a sum begins with."""
        found = generators.consumed(self.machine.insts, self.machine.at, self.stack)
        if found is None:
            raise Declined("a generator that no builtin function consumes at once")
        if found.done:
            self.stack[found.place] = Known(generators.given_back)
        return replace(fn, consumer=found.how), [] if found.start is None else [self.loaded(found.start)]

    def loaded(self, inst):
        """What an instruction loads that is a variable's or a constant's."""
        return self.variables.read(inst.argval) if inst.name == "LOAD_FAST" else constant(inst.argval)

    def CALL_KW(self, inst):
        self.kw_names = tuple(item.value for item in self.machine.pop().items)
        return self.CALL(inst)
