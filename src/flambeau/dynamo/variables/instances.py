"""``isinstance`` and ``issubclass``: the answer, and the guards that keep it true (bases, checks of metaclasses, registered classes)."""

from __future__ import annotations

import abc
import sys
import types
import typing

from .. import world
from ..exc import unsupported
from .classes import ClassVariable
from .constant import ConstantVariable
from .handlers import handles
from .lists import SequenceVariable
from .objects import ObjectVariable
from .operators import fold
from .tensor import NumpyNdarrayVariable, TensorVariable


def is_library_class(cls: type) -> bool:
    """Of the interpreter, its library or ours: what is registered with what among them is settled."""
    top = cls.__module__.split(".")[0]
    return top in sys.stdlib_module_names or top in ("flambeau", "numpy")


def flat_classes(classes):
    if isinstance(classes, tuple):
        for c in classes:
            yield from flat_classes(c)
    else:
        yield classes


def pin_subclass(tx, cls: type, classes) -> None:
    """Leaves the guards of ``issubclass(cls, classes)``: the bases of ``cls``, and what is registered with abstract classes."""
    if not cls.__flags__ & world.IMMUTABLE:
        world.class_attr(tx, cls, "__mro__")
        world.class_attr(tx, cls, "__class__")
    for c in flat_classes(classes):
        meta = type(c)
        if meta is type or not isinstance(c, type):
            continue
        world.class_attr(tx, meta, "__subclasscheck__")
        if issubclass(meta, abc.ABCMeta) and not all(is_library_class(k) for k in (cls, c)):
            try:
                known = issubclass(cls, c)
            except TypeError:  # a protocol with data: what its objects have is asked of them
                continue
            world.library_state(tx, issubclass, (cls, c), {}, known)


def traced_check(tx, name: str, var, v) -> ConstantVariable | None:
    """The user's own ``__instancecheck__`` or ``__subclasscheck__``, where a class among those asked for has one."""
    for c in flat_classes(classes_of(var.unwrap())):
        check = world.class_attr(tx, type(c), name)
        if isinstance(check, types.FunctionType) and not is_stdlib(check):
            if isinstance(var, ClassVariable):
                return ConstantVariable(bool(tx.truth(tx.wrap_function(check).call(tx, [var, v], {}))))
            unsupported("isinstance", f"{name} of {c!r}", "Its metaclass has one of its own.")
    return None


def of_protocol(tx, v, classes) -> bool | None:
    """Whether ``v`` has the attributes of a runtime protocol, where one is asked for: each is looked up, which guards it."""
    for c in flat_classes(classes):
        if not isinstance(c, type) or not getattr(c, "_is_protocol", False) or c is typing.Protocol:
            continue
        names = getattr(c, "__protocol_attrs__", None) or typing._get_protocol_attrs(c)
        cls = v.python_type()
        if cls.__flags__ & world.IMMUTABLE and not isinstance(v, ObjectVariable):
            found = [hasattr(cls, name) for name in names]
        else:
            found = [world.has(tx, lambda n=name: v.getattr(tx, n)) for name in sorted(names)]
        if getattr(v, "value", None) is None:
            if not isinstance(classes, type) or not getattr(c, "_is_runtime_protocol", False):
                unsupported("isinstance", f"{c!r} among several classes", "It is a protocol.")
            return all(found)
    return None


def is_stdlib(f) -> bool:
    return (f.__module__ or "").split(".")[0] in ("abc", "_abc", "typing", "enum", "types") or (
        f.__module__ or ""
    ).startswith("flambeau.")


def classes_of(v):
    """What is asked for: a class, an alias of the typing module, or a tuple of them."""
    if isinstance(v, SequenceVariable) and not v.can_constant():
        return tuple(classes_of(e.unwrap()) for e in v.realized())
    if isinstance(v, ObjectVariable) and v.value is not None and v.cls.__module__ == "typing":
        return v.value
    return v.as_constant()


@handles(isinstance)
def _(tx, args, kwargs):
    classes = classes_of(args[1].unwrap())
    v = args[0]
    traced = traced_check(tx, "__instancecheck__", args[1], v)
    if traced is not None:
        return traced
    if (found := of_protocol(tx, v, classes)) is not None:
        return ConstantVariable(found)
    pin_subclass(tx, v.python_type(), classes)
    if (
        isinstance(v, TensorVariable)
        and type(v) is TensorVariable
        and v.source is not None
        and not isinstance(v, NumpyNdarrayVariable)
    ):
        return ConstantVariable(isinstance(tx.output.example_of(v), classes))
    real = getattr(v, "value", None)
    if isinstance(v, (ConstantVariable, ObjectVariable, ClassVariable)) and real is not None:
        return ConstantVariable(isinstance(real, classes))
    return ConstantVariable(issubclass(v.python_type(), classes))


@handles(issubclass)
def _(tx, args, kwargs):
    if len(args) != 2 or not args[0].can_constant() or not isinstance(args[0].as_constant(), type):
        return fold(tx, issubclass, args)
    traced = traced_check(tx, "__subclasscheck__", args[1], args[0])
    if traced is not None:
        return traced
    pin_subclass(tx, args[0].as_constant(), args[1].as_constant())
    return fold(tx, issubclass, args)
