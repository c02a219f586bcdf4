"""Exceptions that the traced code makes or raises itself."""

from __future__ import annotations

from ..exc import unsupported
from .base import Variable
from .constant import ConstantVariable

__all__ = ["ExceptionVariable", "make_exception"]


class ExceptionVariable(Variable):
    def __init__(self, exception: BaseException):
        super().__init__()
        self.exception = exception

    def __repr__(self):
        return f"ExceptionVariable({self.exception!r})"

    def python_type(self):
        return type(self.exception)

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        if name in ("args", "value", "name", "key", "__class__"):
            return tx.wrap_known(getattr(self.exception, name))
        if name in ("__cause__", "__context__", "__traceback__"):
            return ConstantVariable(None)
        unsupported("exception", f"getattr {self!r} {name}")

    def reconstruct(self, cg):
        e = self.exception
        cg.call_function(type(e), lambda: [cg.load_const(a) for a in e.args], len(e.args))


def make_exception(tx, cls, args, kwargs):
    if kwargs or not all(a.can_constant() for a in args):
        unsupported(
            "raise",
            f"constructing {cls.__name__} with values of the graph",
            "The exception is made by ordinary Python.",
        )
    return ExceptionVariable(cls(*[a.as_constant() for a in args]))
