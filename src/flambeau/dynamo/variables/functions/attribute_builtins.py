"""``getattr`` and its like, ``super`` and ``globals``."""

from __future__ import annotations

from ...exc import SkipFrame, UserRaises
from ..objects.class_object import ClassVariable, SuperVariable
from ..objects.namespaces import NamespaceDict
from ..values.constant import ConstantVariable
from .builtin import BuiltinVariable
from .handlers import handles


def _attribute_name(tx, fn, args, most: int) -> str:
    """The second argument of ``getattr`` and its like; Python's own error where it is no name, or where arguments are too many or few."""
    name = args[1].as_constant() if 2 <= len(args) <= most else None
    if not isinstance(name, str):
        try:
            fn(None, *[name] * (len(args) - 1))
        except TypeError as e:
            tx.raise_user(e)
    return name


@handles(getattr)
def _(tx, args, kwargs):
    name = _attribute_name(tx, getattr, args, 3)
    if len(args) == 2:
        return tx.attribute(args[0], name)
    try:
        return args[0].getattr(tx, name)
    except UserRaises as e:
        if isinstance(e.exception, AttributeError):
            return args[2]
        raise


@handles(hasattr)
def _(tx, args, kwargs):
    return ConstantVariable(bool(args[0].hasattr(tx, _attribute_name(tx, hasattr, args, 2))))


@handles(setattr)
def _(tx, args, kwargs):
    args[0].setattr(tx, _attribute_name(tx, setattr, args, 3), args[2])
    return ConstantVariable(None)


@handles(delattr)
def _(tx, args, kwargs):
    args[0].delattr(tx, _attribute_name(tx, delattr, args, 2))
    return ConstantVariable(None)


@handles(globals)
def _(tx, args, kwargs):
    return NamespaceDict(tx.globals, f"globals<{tx.globals.get('__name__')}>")


@handles(super)
def _(tx, args, kwargs):
    if not args:
        cell = tx.cells.get("__class__")
        if cell is None:
            return None
        if not tx.code.co_argcount:
            tx.raise_user(RuntimeError("super(): no arguments"))
        first = tx.code.co_varnames[0]
        obj = tx.locals.get(first) or (tx.cells[first].get(tx) if first in tx.cells else None)
        if obj is None:
            raise SkipFrame("super() whose object was deleted, which a captured frame keeps")
        args = [cell.get(tx), tx.realize(obj)]
        if args[0] is None:
            tx.raise_user(RuntimeError("super(): empty __class__ cell"))
    if len(args) != 2 or not isinstance(args[0].unwrap(), ClassVariable | BuiltinVariable):
        return None
    cls = args[0].as_constant()
    if not isinstance(cls, type):
        return None
    made = SuperVariable(cls, args[1].unwrap())
    made.owner(tx)
    return made
