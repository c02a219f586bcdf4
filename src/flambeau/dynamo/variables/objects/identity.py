"""``id()``: the number that stands for an object. It is known of objects that existed before the call, which are guarded to be the same then;
of what is made while tracing it is known only which object's it is."""

from __future__ import annotations

import copy
import operator
from typing import Any

from ....base.records import slotted
from ...exc import unsupported
from ...guards.source import ConstSource
from ...tracing.current_frame import current
from ..base import Variable
from ..functions.handlers import handles
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable

__all__ = ["IdVariable"]

SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented), type)
COPY = copy.deepcopy.__code__.co_filename


@slotted
class IdKey:
    """The number as a key, which it is by what it is the identity of."""

    number: int
    keep: Any  # what the number belongs to lives as long


class IdVariable(Variable):
    def __init__(self, of: Variable):
        super().__init__()
        self.of = of

    def __repr__(self):
        return f"the id of {self.of!r}"

    def python_type(self):
        return int

    def truth(self, tx):
        return True

    def reconstruct(self, cg):
        cg.call_function(id, lambda: cg(self.of), 1)

    def object(self, tx) -> Any:
        """The object itself, guarded to be the same at the next call; None of one that is made while tracing."""
        v = self.of
        if v.is_constant():
            if isinstance(v.as_constant(), SINGLETONS):
                return type(v.as_constant()), v.as_constant()
            unsupported(
                "builtin-id", f"the id of {v!r}", "Whether equal constants are one object is the interpreter's choice."
            )
        if isinstance(v, TensorVariable):
            found = tx.output.recorder.example_of(v) if v.source is not None else None
        else:
            found = next(
                (x for x in tx.output.objects.keep if tx.output.objects.by_id.get(id(x)) is v),
                getattr(v, "value", None),
            )
        if found is None or v.source is None:
            return None
        if type(v.source) is not ConstSource:
            tx.output.guard(v.source, "ID_MATCH", found)
        return type(found), found

    def known(self, tx) -> Variable:
        """The number, as a constant."""
        found = self.object(tx)
        if found is None:
            unsupported(
                "builtin-id",
                f"the id of {self.of!r}",
                "The object is made while tracing: it gets a place when captured code runs.",
            )
        return ConstantVariable(id(found[1]))

    def key_object(self):
        tx = frame = current()
        while frame is not None and frame.code.co_filename != COPY:  # whose memo holds nothing from before
            frame = frame.parent
        found = None if frame is not None else self.object(tx)
        if found is not None:
            return id(found[1])
        what = self.of.val if isinstance(self.of, TensorVariable) else self.of
        return IdKey(id(what), what)

    def getattr(self, tx, name):
        return self.known(tx).getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        return self.known(tx).call_method(tx, name, args, kwargs)


def compared(tx, fn, a: Variable, b: Variable) -> Variable:
    """An operation on identities; which objects they are the same for is asked where both are."""
    if isinstance(a, IdVariable) and isinstance(b, IdVariable) and fn in (operator.eq, operator.ne):
        return ConstantVariable(tx.operators.identical(tx, a.of, b.of) == (fn is operator.eq))
    return tx.operators.binary(tx, fn, *(v.known(tx) if isinstance(v, IdVariable) else v for v in (a, b)))


@handles(id)
def _(tx, args, kwargs):
    return IdVariable(args[0].unwrap()) if len(args) == 1 and not kwargs else None
