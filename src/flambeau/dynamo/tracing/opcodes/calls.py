"""Instructions that call functions and make them."""

from __future__ import annotations

from ...bytecode.versions import NULL_FIRST
from ...config import config
from ...exc import unsupported
from ...variables.base import NullVariable, Variable
from ...variables.containers.dicts import each_pair, is_mapping
from ...variables.functions import log_calls
from ...variables.functions.nested_functions import NestedFunctionVariable, Part
from ...variables.functions.python_functions import callee
from ...variables.iterators.protocol import all_of, is_iterable
from ...variables.values.constant import ConstantVariable


class Calls:
    # -- what is called --
    def push_callable(self, v: Variable) -> None:
        """What CALL finds with its NULL beside it."""
        if NULL_FIRST:
            self.stack.append(NullVariable())
        self.push(v)
        if not NULL_FIRST:
            self.stack.append(NullVariable())

    def pop_callable(self, args: list[Variable]) -> tuple[Variable, list[Variable]]:
        """What is called, and the arguments with ``self`` where one was pushed beside it."""
        b, a = self.pop(), self.pop()
        if not NULL_FIRST:
            return (a, args) if isinstance(b, NullVariable) else (a, [b, *args])
        return (b, args) if isinstance(a, NullVariable) else (a, [b, *args])

    def _called(self, n: int) -> Variable:
        """What is called, of which the n-th value from above is it or its NULL."""
        v = self.top(n)
        return self.top(n + 1) if isinstance(v, NullVariable) else v

    def _shown(self, called: Variable) -> str:
        """A function as the interpreter's errors show it."""
        if not called.hasattr(self, "__qualname__"):
            unsupported("call", f"a call of {called!r} with wrong arguments")
        name, module = called.getattr(self, "__qualname__").as_constant(), called.getattr(self, "__module__")
        module = module.as_constant()
        return f"{name}()" if module in (None, "builtins") else f"{module}.{name}()"

    # -- calls --
    def KW_NAMES(self, inst):
        names = inst.argval
        self.kw_names = names if isinstance(names, tuple) else self.code.co_consts[inst.arg]

    def CALL(self, inst):
        names, self.kw_names = self.kw_names, ()
        self._call(inst.arg, names)

    def CALL_KW(self, inst):
        self._call(inst.arg, self.pop().as_constant())

    def _call(self, count: int, names: tuple[str, ...]) -> None:
        values = self.popn(count)
        n = len(values) - len(names)
        fn, args = self.pop_callable(values[:n])
        self.call(fn, args, dict(zip(names, values[n:])))

    def call(self, fn: Variable, args: list[Variable], kwargs: dict[str, Variable]) -> None:
        if config.ignore_logging_functions and callee(fn) & config.ignore_logging_functions:
            self.push(ConstantVariable(None))
        elif config.reorderable_logging_functions and callee(fn) & config.reorderable_logging_functions:
            self.push(log_calls.call_later(self, fn, args, kwargs))
        else:
            self.push(fn.call(self, args, kwargs))

    def CALL_FUNCTION_EX(self, inst):
        kwargs: dict[str, Variable] = {}
        if inst.arg & 1:
            given = self.pop()
            if not is_mapping(self, given):
                text = f"argument after ** must be a mapping, not {given.python_type_name()}"
                self.raise_user(TypeError(f"{self._shown(self._called(2))} {text}"))
            for k, v in each_pair(self, given):
                if not issubclass(k.python_type(), str):
                    unsupported(
                        "call", f"a keyword {k!r}", "What is called says whether it takes keywords that aren't strings."
                    )
                kwargs[k.as_constant()] = v
        v = self.pop()
        if not is_iterable(v):
            text = f"argument after * must be an iterable, not {v.python_type_name()}"
            self.raise_user(TypeError(f"{self._shown(self._called(1))} {text}"))
        fn, args = self.pop_callable(all_of(self, v))
        self.call(fn, args, kwargs)

    def MAKE_FUNCTION(self, inst):
        code, flags = self.pop().as_constant(), inst.arg or 0
        f = NestedFunctionVariable(code, self.globals, code.co_qualname)
        for part in (Part.CLOSURE, Part.ANNOTATIONS, Part.KWDEFAULTS, Part.DEFAULTS):
            if flags & part:
                f.set_part(self, part, self.pop())
        self.push(f)

    def SET_FUNCTION_ATTRIBUTE(self, inst):
        f, value = self.pop(), self.pop()
        f.set_part(self, Part(inst.arg), value)
        self.push(f)
