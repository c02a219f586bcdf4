"""Exceptions that the traced code makes or raises itself, and what the interpreter keeps of them on the stack."""

from __future__ import annotations

from bytecode import Instr, Label, TryBegin, TryEnd

from ..exc import unsupported
from ..source import GetAttrSource
from .base import Variable
from .constant import ConstantVariable

__all__ = ["ExcInfoVariable", "ExceptionVariable", "LastiVariable", "make_exception"]


class ExceptionVariable(Variable):
    """``exception`` is the object itself, made while tracing or, with a source, the one of this call. ``line``: where it was raised;
    ``raised``: by the traced code (others that have a source come with their traceback)."""

    def __init__(self, exception: BaseException, source=None):
        super().__init__(source)
        self.exception = exception
        self.line: int | None = None
        self.raised = source is None
        self.cause: Variable | None = None
        self.context: Variable | None = None
        self.attributes: dict[str, Variable] = {}

    def __repr__(self):
        return f"ExceptionVariable({self.exception!r})"

    def python_type(self):
        return type(self.exception)

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        if name in self.attributes:
            return self.attributes[name]
        if name == "__class__":
            return tx.wrap_known(type(self.exception))
        if name == "with_traceback":
            return WithTraceback(self)
        if self.source is not None:
            try:
                return tx.wrap(getattr(self.exception, name), GetAttrSource(self.source, name))
            except AttributeError as e:
                tx.raise_user(e)
        if name == "__cause__":
            return self.cause or ConstantVariable(None)
        if name == "__context__":
            return self.context or ConstantVariable(None)
        if name == "__suppress_context__":
            return ConstantVariable(self.cause is not None)
        if name in ("args", "value", "name", "key", "code", "obj"):
            try:
                return tx.wrap_known(getattr(self.exception, name))
            except AttributeError as e:
                tx.raise_user(e)
        unsupported("exception", f"getattr {self!r} {name}")

    def hasattr(self, tx, name):
        return name in self.attributes or hasattr(self.exception, name)

    def setattr(self, tx, name, value):
        if self.source is not None:
            unsupported("exception", f"setattr {self!r} {name}", "The exception existed before the call.")
        if name == "__cause__":
            self.cause = value
        elif name == "__context__":
            self.context = value
        elif name != "__traceback__":
            self.attributes[name] = value

    def reconstruct(self, cg):
        e = self.exception
        cg.call_function(type(e), lambda: [cg.load_const(a) for a in e.args], len(e.args))
        for name, v in [*self.attributes.items(), ("__cause__", self.cause), ("__context__", self.context)]:
            if v is not None:
                cg.emit("COPY", 1)
                cg(v)
                cg.emit("SWAP", 2)
                cg.emit("STORE_ATTR", name)


class WithTraceback(Variable):
    def __init__(self, owner):
        super().__init__()
        self.owner = owner

    def call(self, tx, args, kwargs):
        return self.owner


class TracebackVariable(Variable):
    """The traceback of an exception that is handled while tracing: only passed on, or dropped."""

    def __init__(self, exc):
        super().__init__()
        self.exc = exc

    def reconstruct(self, cg):
        cg(self.exc)
        cg.load_attr("__traceback__")


class ExcInfoVariable(Variable):
    """The place on the stack where PUSH_EXC_INFO keeps what was handled before ``exc``."""

    def __init__(self, exc: Variable):
        super().__init__()
        self.exc = exc
        self.handled = True  # until POP_EXCEPT, which takes a copy

    def reconstruct(self, cg):
        """Make ``exc`` the exception that is being handled. One that was raised while tracing is raised in its line first, so that its
        traceback says so."""
        if not self.handled:
            cg.load_const(None)
            return
        depth = cg.depth
        cg(self.exc)
        if isinstance(self.exc, ExceptionVariable) and self.exc.raised and self.exc.line is not None:
            caught = Label()
            begin = TryBegin(caught, False, depth)
            cg.code += [begin, Instr("RAISE_VARARGS", 1, lineno=self.exc.line), TryEnd(begin), caught]
        cg.emit("COPY", 1)
        cg.emit("STORE_FAST", cg.exc_temp(depth))
        cg.emit("PUSH_EXC_INFO")
        cg.emit("POP_TOP")


class LastiVariable(ConstantVariable):
    """The place of the instruction number ``index`` that raised, which RERAISE takes tracebacks from."""

    def __init__(self, index: int):
        super().__init__(0)
        self.index = index


def make_exception(tx, cls, args, kwargs):
    if kwargs or not all(a.can_constant() for a in args):
        unsupported(
            "raise",
            f"constructing {cls.__name__} with values of the graph",
            "The exception is made by ordinary Python.",
        )
    return ExceptionVariable(cls(*[a.as_constant() for a in args]))
