"""attrgetter, itemgetter and methodcaller of the operator module."""

from __future__ import annotations

import operator

from ...rules.reflect import is_among, name_of
from ...tracing.wrapping import WRAPPERS, pin
from ..base import Variable
from ..containers.sequences import TupleVariable

__all__ = ["GetterVariable", "of_getter"]


class GetterVariable(Variable):
    """``cls(*args, **kwargs)`` of the operator module."""

    def __init__(self, cls: type, args: list[Variable], kwargs: dict[str, Variable], source=None):
        super().__init__(source)
        self.cls, self.args, self.kwargs = cls, list(args), dict(kwargs)

    def __repr__(self):
        return f"a {name_of(self.cls)}"

    def python_type(self):
        return self.cls

    def truth(self, tx):
        return True

    def call(self, tx, args, kwargs):
        if len(args) != 1 or kwargs:
            what = "() takes no keyword arguments" if kwargs else f" expected 1 argument, got {len(args)}"
            tx.raise_user(TypeError(name_of(self.cls) + what))
        (obj,) = args
        if self.cls is operator.methodcaller:
            name, *rest = self.args
            return obj.getattr(tx, name.as_constant()).call(tx, rest, self.kwargs)
        found = [self.get(tx, obj, a) for a in self.args]
        return found[0] if len(found) == 1 else TupleVariable(found)

    def get(self, tx, obj: Variable, what: Variable) -> Variable:
        if self.cls is operator.itemgetter:
            return obj.getitem(tx, what)
        for part in what.as_constant().split("."):
            obj = obj.getattr(tx, part)
        return obj

    def reconstruct(self, cg):
        cg.push_callable(lambda: cg.load_const(self.cls))
        cg.all([*self.args, *self.kwargs.values()])
        cg.call(len(self.args) + len(self.kwargs), tuple(self.kwargs))


def of_getter(tx, value, source) -> GetterVariable:
    """For one that existed before the call, which is immutable and guarded by identity."""
    reduced = value.__reduce__()
    cls, args, kwargs = type(value), reduced[1], {}
    if cls is operator.methodcaller and hasattr(reduced[0], "keywords"):
        kwargs = reduced[0].keywords
        args = (reduced[0].args + args) if reduced[0].args else args
    return GetterVariable(
        cls, [tx.wrap_known(a) for a in args], {k: tx.wrap_known(v) for k, v in kwargs.items()}, source
    )


@WRAPPERS.row("getter")
def _(tx, value, source):
    if not is_among(type(value), (operator.attrgetter, operator.itemgetter, operator.methodcaller)):
        return None
    pin(tx, source, "ID_MATCH", value)
    return of_getter(tx, value, source)
