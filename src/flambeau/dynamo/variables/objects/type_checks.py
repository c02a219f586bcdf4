"""``isinstance`` and ``issubclass``: the answer, and the guards that keep it true (bases, checks of metaclasses, registered classes)."""

from __future__ import annotations

import abc
import sys
import types
import typing

from ...exc import unsupported
from ...rules.reflect import MRO, flags_of, is_a, is_below, is_stdlib, module_of, type_item
from ...tracing import world
from ..containers.sequences import SequenceVariable
from ..functions.handlers import handles
from ..numpy.ndarray import NumpyNdarrayVariable
from ..operators import fold
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from .class_object import ClassVariable
from .instance import ObjectVariable


def is_library_class(cls: type) -> bool:
    """Whether a class is of the interpreter, its library, NumPy or ours: which of them is registered with which never changes."""
    top = module_of(cls).split(".")[0]
    return top in sys.stdlib_module_names or top in ("flambeau", "numpy")


def flat_classes(classes):
    if is_a(classes, tuple):
        for c in classes:
            yield from flat_classes(c)
    else:
        yield classes


def pin_subclass(tx, cls: type, classes) -> None:
    """Leaves the guards of ``issubclass(cls, classes)``: the bases of ``cls``, and what is registered with abstract classes."""
    if not flags_of(cls) & world.IMMUTABLE:
        world.class_attr(tx, cls, MRO)
        world.class_attr(tx, cls, "__class__")
    for c in flat_classes(classes):
        meta = type(c)
        if meta is type or not is_a(c, type):
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
        if type(check) is types.FunctionType and not is_stdlib(check):
            if isinstance(var, ClassVariable):
                return ConstantVariable(bool(tx.truth(tx.wrap_function(check).call(tx, [var, v], {}))))
            unsupported("isinstance", f"{name} of {c!r}", "Its metaclass has one of its own.")
    return None


def of_protocol(tx, v, classes) -> bool | None:
    """Whether ``v`` has the attributes of a runtime protocol, where one is asked for: each is looked up, which guards it."""
    for c in flat_classes(classes):
        if not is_a(c, type) or type_item(c, "_is_protocol") is not True or c is typing.Protocol:
            continue
        names = getattr(c, "__protocol_attrs__", None) or typing._get_protocol_attrs(c)
        cls = v.python_type()
        if flags_of(cls) & world.IMMUTABLE and not isinstance(v, ObjectVariable):
            found = [hasattr(cls, name) for name in names]
        else:
            found = [world.has(tx, lambda n=name: v.getattr(tx, n)) for name in sorted(names)]
        if getattr(v, "value", None) is None:
            if not isinstance(classes, type) or not getattr(c, "_is_runtime_protocol", False):
                unsupported("isinstance", f"{c!r} among several classes", "It is a protocol.")
            return all(found)
    return None


def classes_of(v):
    """What is asked for: a class, an alias of the typing module, or a tuple of them."""
    if isinstance(v, SequenceVariable) and v.python_type() is tuple and not v.can_constant():
        return tuple(classes_of(e.unwrap()) for e in v.realized())
    if isinstance(v, ObjectVariable) and v.value is not None and module_of(v.cls) == "typing":
        return v.value
    return v.as_constant()


def says_its_class(cls: type) -> bool:
    """Whether ``__class__`` of its objects is a program's answer: isinstance() asks where the class isn't below the one asked for."""
    if flags_of(cls) & world.IMMUTABLE:
        return False
    own, hook = type_item(cls, "__class__"), type_item(cls, "__getattribute__")
    return type(own) is not types.GetSetDescriptorType or type(hook) is types.FunctionType


def is_exactly(cls: type, classes) -> bool:
    """Whether the first class that is asked for settles it, before any method of a metaclass is called."""
    while is_a(classes, tuple) and classes:
        classes = classes[0]
    return cls is classes


def checked(tx, fn, x, classes) -> ConstantVariable:
    """``isinstance`` or ``issubclass``, made for real; what it raises is the program's."""
    return ConstantVariable(tx.evaluated(fn, x, classes))


@handles(isinstance)
def _(tx, args, kwargs):
    if len(args) != 2 or kwargs:
        tx.raise_user(TypeError(f"isinstance expected 2 arguments, got {len(args)}"))
    classes = classes_of(args[1].unwrap())
    v = args[0]
    cls = v.python_type()
    if is_exactly(cls, classes):
        return ConstantVariable(True)
    traced = traced_check(tx, "__instancecheck__", args[1], v)
    if traced is not None:
        return traced
    if (found := of_protocol(tx, v, classes)) is not None:
        return ConstantVariable(found)
    pin_subclass(tx, cls, classes)
    if says_its_class(cls) and not all(type(c) is type and is_below(cls, c) for c in flat_classes(classes)):
        unsupported("isinstance", f"isinstance of {v!r}", "Its class decides what __class__ is.")
    if (
        isinstance(v, TensorVariable)
        and type(v) is TensorVariable
        and v.source is not None
        and not isinstance(v, NumpyNdarrayVariable)
    ):
        return checked(tx, isinstance, tx.output.recorder.example_of(v), classes)
    real = getattr(v, "value", None)
    if isinstance(v, (ConstantVariable, ObjectVariable, ClassVariable)) and real is not None:
        return checked(tx, isinstance, real, classes)
    return checked(tx, issubclass if is_class_info(classes) else isinstance, cls, classes)


def is_class_info(classes) -> bool:
    """Whether all that is asked for are classes or unions of them: else the error that isinstance() raises is wanted."""
    return all(is_a(c, (type, types.UnionType)) or module_of(type(c)) == "typing" for c in flat_classes(classes))


@handles(issubclass)
def _(tx, args, kwargs):
    if len(args) != 2 or kwargs:
        tx.raise_user(TypeError(f"issubclass expected 2 arguments, got {len(args)}"))
    if not args[0].can_constant():
        return fold(tx, issubclass, args)
    if not is_a(args[0].as_constant(), type):
        return checked(tx, issubclass, args[0].as_constant(), classes_of(args[1].unwrap()))
    traced = traced_check(tx, "__subclasscheck__", args[1], args[0])
    if traced is not None:
        return traced
    classes = classes_of(args[1].unwrap())
    pin_subclass(tx, args[0].as_constant(), classes)
    return checked(tx, issubclass, args[0].as_constant(), classes)
