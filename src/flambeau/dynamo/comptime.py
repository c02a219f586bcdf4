"""Code that runs while a function is captured, to look at what is known there: ``torch._dynamo.comptime``.

``comptime(fn)`` in a captured function calls ``fn(ctx)`` at that place of the trace; plainly nothing happens. The methods of
:class:`ComptimeContext` are also there as ``comptime.print_graph()`` and so on."""

from __future__ import annotations

import builtins
import dis
import time
import traceback
import types
from typing import Any

from flambeau.base.shapes import Size
from flambeau.base.symint import NUMBERS

from .exc import InternalTorchDynamoError, TorchDynamoException, unsupported
from .rules import trace_rules
from .rules.reflect import name_of
from .tracing.wrapping import WRAPPERS, pin
from .variables.base import HeldVariable, KnownVariable, Variable
from .variables.containers.dicts import DictVariable
from .variables.containers.lists import ListVariable
from .variables.containers.sequences import TupleVariable
from .variables.functions.python_functions import FunctionVariable
from .variables.tensors.tensor import TensorVariable
from .variables.values.constant import ConstantVariable
from .variables.values.symbolic import SymbolicVariable, specialized

__all__ = ["Comptime", "ComptimeContext", "ComptimeFunction", "ComptimeVar", "comptime"]


def shown(v: Variable) -> str:
    """A value of the trace in a few words: constants as they are, tensors by shape and dtype."""
    v = v.unwrap()
    if isinstance(v, TensorVariable):
        return f"Tensor(shape={tuple(v.val.shape)}, dtype={v.val.dtype})"
    if isinstance(v, SymbolicVariable):
        return repr(v.number)
    if v.can_constant():
        return repr(v.as_constant())
    if isinstance(v, ListVariable | TupleVariable):
        elements = ", ".join(map(shown, v.elements))
        if v.python_type() is list:
            return f"[{elements}]"
        if v.python_type() is Size:
            return f"torch.Size([{elements}])"
        return f"({elements}{',' * (len(v.elements) == 1)})" if v.python_type() is tuple else repr(v)
    if type(v) is DictVariable and v.python_type() is dict and v.base is None:
        return "{" + ", ".join(f"{shown(k)}: {shown(x)}" for k, x in v.entries.values()) + "}"
    value = getattr(v, "value", None)
    return repr(value) if isinstance(v, KnownVariable | FunctionVariable) and value is not None else repr(v)


class ComptimeVar:
    """A value of the trace, as seen by code that looks at it."""

    def __init__(self, tx, variable: Variable):
        self._tx, self._variable = tx, variable

    def as_proxy(self) -> Any:
        """The node of the graph, or the constant. Unsupported for what is neither."""
        return self._variable.node if self.is_proxy() else self._variable.as_proxy()

    def is_proxy(self) -> bool:
        return isinstance(self._variable, TensorVariable)

    def as_fake(self) -> Any:
        """The fake tensor that stands for a tensor, with its symbols."""
        return self._variable.val

    def size(self, dim: int | None = None) -> Any:
        shape = tuple(self.as_fake().shape)
        return shape if dim is None else shape[dim]

    def python_type(self) -> type:
        return self._variable.python_type()

    def is_python_constant(self) -> bool:
        return self._variable.can_constant()

    def as_python_constant(self) -> Any:
        return self._variable.as_constant()

    def force_static(self) -> None:
        """Sizes and numbers of this value are constants of the captured code."""
        if isinstance(self._variable, TensorVariable):
            for n in self.as_fake().shape:
                int(n)
        elif isinstance(self._variable, SymbolicVariable):
            specialized(self._tx, self._variable)
        elif not self.is_python_constant():
            raise TypeError(f"cannot force {self!r} to be static")

    def __repr__(self):
        return shown(self._variable)


class ComptimeContext:
    """What is known at a place of the trace. Functions that print take ``file`` (stdout unless given)."""

    def __init__(self, tx):
        self._tx = tx

    def _frame(self, stacklevel: int):
        frame = self._tx
        for _ in range(stacklevel):
            frame = frame.parent
        return frame

    def get_local(self, name: str, *, stacklevel: int = 0) -> ComptimeVar:
        """The local variable of this name; KeyError when there is none."""
        frame = self._frame(stacklevel)
        found = frame.locals.get(name) or (frame.cells[name].contents if name in frame.cells else None)
        if found is None:
            raise KeyError(name)
        return ComptimeVar(frame, frame.realize(found))

    def graph_break(self, msg: str = "ComptimeContext.graph_break") -> None:
        """Break the graph here."""
        unsupported("comptime", msg, "comptime asked for a graph break.")

    def graph(self):
        """The graph as far as it goes."""
        return self._tx.output.recorder.graph

    def assert_static(self, val: ComptimeVar) -> None:
        """AssertionError for a value with sizes that vary, or a number that does."""
        v = val._variable
        sizes = tuple(val.as_fake().shape) if isinstance(v, TensorVariable) else ()
        numbers = (*sizes, v.number) if isinstance(v, SymbolicVariable) else sizes
        if any(isinstance(n, NUMBERS) and not isinstance(n.env.simplify(n.expr), int | float) for n in numbers):
            raise AssertionError(f"expected static but got dynamic {val!r} {sizes or ''}".rstrip())

    def force_static(self, val: ComptimeVar) -> None:
        val.force_static()

    def parent(self) -> ComptimeContext:
        """The context of the function that called this one."""
        return ComptimeContext(self._frame(1))

    def print(self, val: Any, *, file=None) -> None:
        builtins.print(repr(val), file=file)

    def print_graph(self, *, verbose: bool = True, file=None) -> None:
        """The graph as far as it goes, as Python (or as a table)."""
        builtins.print(self.graph().python_code("self").src if verbose else self.graph(), file=file)

    def print_disas(self, *, file=None, stacklevel: int = 0) -> None:
        """The bytecode of the function that is captured, with an arrow at this place."""
        frame = self._frame(stacklevel)
        builtins.print(dis.Bytecode(frame.code, current_offset=frame.inst.offset).dis(), file=file)

    def print_value_stack(self, *, file=None, stacklevel: int = 0) -> None:
        for v in self._frame(stacklevel).stack:
            builtins.print(f"- {shown(v)}", file=file)

    def print_locals(self, *, file=None, stacklevel: int = 0) -> None:
        for name, v in self._frame(stacklevel).locals.items():
            builtins.print(f"{name} = {shown(v)}", file=file)

    def print_bt(self, *, file=None, stacklevel: int = 0) -> None:
        """The program's stack at this place."""
        frames = self._tx.user_stack()
        builtins.print("".join(traceback.format_list(frames[: len(frames) - stacklevel])), file=file, end="")

    def print_guards(self, *, file=None) -> None:
        builtins.print("\n".join(sorted(map(str, self._tx.output.guards.guards()))), file=file)

    def sleep(self, sec: float) -> None:
        time.sleep(sec)


class Comptime:
    """``comptime`` itself: see the module."""

    def __call__(self, fn, fallback_fn=lambda: None):
        fallback_fn()

    def __getattr__(self, name: str):
        if name.startswith("_") or not hasattr(ComptimeContext, name):
            raise AttributeError(f"comptime has no {name!r}")
        return ComptimeFunction(name)

    def print_value_stack_and_return(self, e, *, stacklevel: int = 0):
        """``e``; in captured code the value stack is printed as well."""
        return e

    def breakpoint(self) -> None:
        """pdb where the trace is; ``ctx`` is the context."""


class ComptimeFunction:
    """``comptime.NAME``: the context's method, called with what the captured function gives."""

    def __init__(self, name: str):
        self.__name__ = name

    def __call__(self, *args, **kwargs):
        """Nothing, plainly."""


comptime = Comptime()


def real_function(v: Variable) -> types.FunctionType:
    """The function that looks; what it closes over are objects of the program, as they are before the call."""
    if not isinstance(v, FunctionVariable):
        unsupported("comptime", f"comptime of {v!r}", "It takes a function.")
    real = getattr(v, "value", None)
    if real is not None:
        return real

    def contents(cell):
        inner = cell.contents.unwrap()
        return getattr(inner, "value", None) if not inner.can_constant() else inner.as_constant()

    cells = tuple(types.CellType(contents(c)) for c in v._closure)
    return types.FunctionType(v.code, v.globals, v.code.co_name, None, cells or None)


class ComptimeVariable(HeldVariable):
    """``comptime`` or one of its functions, in captured code."""

    def getattr(self, tx, name):
        if name in ("breakpoint", "print_value_stack_and_return"):
            return ComptimeVariable(getattr(comptime, name))
        if not hasattr(ComptimeContext, name) or self.value is not comptime:
            tx.raise_user(AttributeError(f"comptime has no {name!r}"))
        return ComptimeVariable(ComptimeFunction(name))

    def call(self, tx, args, kwargs):
        try:
            self.look(tx, ComptimeContext(tx), args, kwargs)
        except TorchDynamoException:
            raise
        except Exception as e:  # in code of the program's, which wants to hear of it
            raise InternalTorchDynamoError(f"comptime: {name_of(type(e))}: {e}") from e
        return args[0] if self.returns else ConstantVariable(None)

    @property
    def returns(self) -> bool:
        return getattr(self.value, "__name__", "") == "print_value_stack_and_return"

    def look(self, tx, context: ComptimeContext, args, kwargs) -> None:
        if isinstance(self.value, ComptimeFunction):
            given = [a.as_constant() if a.can_constant() else ComptimeVar(tx, tx.realize(a)) for a in args]
            getattr(context, self.value.__name__)(*given, **{k: v.as_constant() for k, v in kwargs.items()})
        elif self.returns:
            context.print_value_stack(**{k: v.as_constant() for k, v in kwargs.items()})
        elif isinstance(self.value, types.MethodType):
            import pdb  # loaded for a program that asks for a debugger

            ctx = context  # noqa: F841  a name for the debugger's user
            pdb.set_trace()
        else:
            real_function(args[0].unwrap())(context)


@WRAPPERS.row("comptime")
def _(tx, value, source):
    if not trace_rules.is_a(value, (Comptime, ComptimeFunction)):
        return None
    if value is comptime:
        pin(tx, source, "ID_MATCH", value)
    else:
        pin(tx, source, "TYPE_MATCH", type(value))
    return ComptimeVariable(value, source)
