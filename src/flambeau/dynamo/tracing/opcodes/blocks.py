"""Instructions of ``with`` and ``try``: context managers, raised and caught exceptions."""

from __future__ import annotations

import contextlib
import functools

from ...exc import UserRaises, unsupported
from ...rules import trace_rules
from ...rules.reflect import error_name_of, is_a
from ...variables.base import Variable
from ...variables.contexts.managers import ContextExit, FunctionModeVariable, NullContextVariable
from ...variables.exceptions import groups
from ...variables.exceptions.exception import ExceptionVariable, ExcInfoVariable
from ...variables.functions.builtin import BuiltinVariable
from ...variables.objects.class_object import ClassVariable
from ...variables.objects.instance import ObjectVariable
from ...variables.values.constant import ConstantVariable
from .. import world

CACHED_PROPERTY = functools.cached_property.__get__.__code__


class Blocks:
    # -- with --
    def BEFORE_WITH(self, inst):
        manager = self.pop()
        if isinstance(manager, ObjectVariable) and trace_rules.is_function_mode_class(manager.cls):
            manager = FunctionModeVariable(manager)
        if isinstance(manager, ObjectVariable):
            for name, what in (("__enter__", ""), ("__exit__", " (missed __exit__ method)")):
                found = manager.class_attr(self, name)  # not bound: a descriptor would notice
                if found is None or found is world.ABSENT:
                    text = f"{error_name_of(manager.cls)!r} object does not support the context manager protocol{what}"
                    self.raise_user(TypeError(text))
            self.stack.append(ContextExit(manager))
            self.push(manager.call_special(self, "__enter__"))
            return
        if self.code is CACHED_PROPERTY and not hasattr(manager, "enter"):
            manager = NullContextVariable(contextlib.nullcontext)  # its lock, which CPython 3.12 does without
        if not hasattr(manager, "enter"):
            unsupported("context-manager", f"with {manager!r}", "This context manager is not traced.")
        result = manager.enter(self)
        self.stack.append(ContextExit(manager))
        self.push(result)

    def WITH_EXCEPT_START(self, inst):
        exc, leave = self.top(), self.top(4)
        cls = ClassVariable(type(exc.exception)) if isinstance(exc, ExceptionVariable) else ConstantVariable(None)
        tb = exc.getattr(self, "__traceback__") if isinstance(exc, ExceptionVariable) else ConstantVariable(None)
        self.push(leave.call(self, [cls, exc, tb], {}))

    # -- exceptions --
    def PUSH_EXC_INFO(self, inst):
        v = self.pop()
        self.handling.append(v)
        self.stack.append(ExcInfoVariable(v))
        self.stack.append(v)

    def POP_EXCEPT(self, inst):
        self.pop().handled = False
        self.handling.pop()

    def handled(self) -> Variable | None:
        """The exception that is being handled here, in this frame or in one that called it."""
        f = self
        while f is not None:
            if f.handling:
                return f.handling[-1]
            f = f.parent
        return None

    def CHECK_EXC_MATCH(self, inst):
        want = self.pop().as_constant()
        exc = self.top()
        if not isinstance(exc, ExceptionVariable):
            unsupported("exception", f"matching {exc!r}")
        for c in want if is_a(want, tuple) else (want,):
            if not (is_a(c, type) and issubclass(c, BaseException)):
                self.raise_user(TypeError("catching classes that do not inherit from BaseException is not allowed"))
        self.push(ConstantVariable(isinstance(exc.exception, want)))

    def LOAD_ASSERTION_ERROR(self, inst):
        self.push(ClassVariable(AssertionError))

    def RAISE_VARARGS(self, inst):
        if inst.arg == 0:
            current = self.handled()
            if current is None:
                self.handles_nothing_outside()
                self.raise_user(RuntimeError("No active exception to reraise"))
            self._raise(current, again=True)
        cause = self.pop() if inst.arg == 2 else None
        v = self._made(self.pop(), "exceptions must derive from BaseException")
        if cause is not None:
            if not (cause.is_constant() and cause.as_constant() is None):
                cause = self._made(cause, "exception causes must derive from BaseException")
            v.setattr(self, "__cause__", cause)
        self._raise(v)

    def _made(self, v: Variable, otherwise: str) -> Variable:
        """What ``raise`` takes: an exception, or a class of exceptions, which is called."""
        if isinstance(v, ClassVariable | BuiltinVariable):
            cls = v.as_constant()
            if not (isinstance(cls, type) and issubclass(cls, BaseException)):
                self.raise_user(TypeError(otherwise))
            v = v.call(self, [], {})
        if v.is_constant() or isinstance(v, ObjectVariable) and not isinstance(v, ExceptionVariable):
            self.raise_user(TypeError(otherwise))
        return v

    def _raise(self, v, again: bool = False):
        if not isinstance(v, ExceptionVariable):
            unsupported("raise", f"raise of {v!r}", "The exception is not made while tracing.")
        if not again:
            v.set_context(self, self.handled())
        # No variable of this frame: that would be in a cycle with the traceback, and all values with it.
        raise UserRaises(v.exception, v, again)

    def RERAISE(self, inst):
        self._raise(self.pop(), again=True)

    def END_ASYNC_FOR(self, inst):
        exc = self.top()
        if not isinstance(exc, ExceptionVariable):
            unsupported("exception", f"matching {exc!r}")
        if not isinstance(exc.exception, StopAsyncIteration):
            self._raise(self.pop(), again=True)
        self.popn(2)

    # -- except* --
    def CHECK_EG_MATCH(self, inst):
        types, exc = self.pop(), self.pop()
        rest, match = groups.match(self, exc, types.as_constant())
        self.stack += [rest, match]
        if isinstance(match, ExceptionVariable):  # it is what is handled in the block
            self.handling[-1] = match
            next(v for v in reversed(self.stack) if isinstance(v, ExcInfoVariable)).exc = match

    def PREP_RERAISE_STAR(self, inst):
        raised, original = self.pop(), self.pop()
        self.push(groups.to_raise(self, original, raised.items(self)))
