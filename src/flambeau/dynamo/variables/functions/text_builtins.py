"""``str``, ``repr`` and ``format``."""

from __future__ import annotations

import collections

from ..base import Variable
from ..containers.dicts import DictView
from ..exceptions.exception import ExceptionVariable
from ..objects.class_object import ClassVariable
from ..objects.instance import ObjectVariable
from ..operators import fold
from ..values import text
from ..values.constant import ConstantVariable
from ..values.symbolic import settled
from .handlers import handles


@handles(str)
def _(tx, args, kwargs):
    if not args and not kwargs:
        return ConstantVariable("")
    v = args[0] if args else kwargs.get("object")
    if v is None or len(args) + len(kwargs) > 1:
        return None
    if isinstance(v, ExceptionVariable):
        return v.text(tx, "__str__")
    if isinstance(v, ObjectVariable):
        return text.of_object(tx, v, "__str__")
    said = text.of_code(tx, v, "__str__")
    if said is not None:
        return said
    v = settled(tx, v)
    if isinstance(v, ClassVariable) or not v.can_constant():
        return None
    return fold(tx, str, [v])


@handles(format)
def _(tx, args, kwargs):
    if not isinstance(args[0], ObjectVariable):
        return None if len(args) > 1 else text.of_code(tx, args[0], "__format__")
    return text.of_object(tx, args[0], "__format__", args[1] if len(args) > 1 else ConstantVariable(""))


def text_of_view(tx, view: DictView) -> Variable | None:
    """``repr()`` of a dict's keys, values or items; None where keys and values are not all constants."""
    owner, read = view.owner, view.owner.pairs(tx)
    if owner.holder is not None or not all(v.is_constant() for pair in read for v in pair):
        return None
    pairs = [(k.as_constant(), v.as_constant()) for k, v in read]
    shown = (collections.OrderedDict if issubclass(owner.cls, collections.OrderedDict) else dict)(pairs)
    return ConstantVariable(repr(getattr(view.cls, view.what)(shown)))


@handles(repr)
def _(tx, args, kwargs):
    if isinstance(args[0], ExceptionVariable):
        return args[0].text(tx, "__repr__")
    if isinstance(args[0], ObjectVariable):
        return text.of_object(tx, args[0], "__repr__")
    if isinstance(args[0], DictView):
        return text_of_view(tx, args[0])
    said = text.of_code(tx, args[0])
    if said is not None:
        return said
    v = settled(tx, args[0])
    return fold(tx, repr, [v]) if v is not args[0] and v.can_constant() else None
