"""Texts of values: ``str``, ``repr`` and formatting, of objects whose classes say them in Python too."""

from __future__ import annotations

import enum
import string
import types

from ...config import config
from ...exc import unsupported
from ...rules.reflect import name_of
from ...tracing import world
from ..base import Variable
from ..exceptions.exception import ExceptionVariable
from ..functions.log_calls import DeferredText
from ..functions.python_functions import FunctionVariable
from ..objects.class_object import ClassVariable
from ..objects.instance import ObjectVariable
from .constant import ConstantVariable
from .symbolic import settled

__all__ = ["format_fields", "formatted", "of_object"]

CONVERSIONS = {None: None, "s": str, "r": repr, "a": ascii}
METHODS = {str: "__str__", repr: "__repr__", ascii: "__repr__"}


def of_object(tx, v: ObjectVariable, name: str, *args: Variable) -> Variable | None:
    """What the object's ``__str__``, ``__repr__`` or ``__format__`` says, a method in Python; None where that is C's to say (its class, say, and
    its place in memory)."""
    f = v.class_attr(tx, name)
    if name == "__format__" and f is object.__format__:
        if not args[0].is_constant() or args[0].as_constant() != "":
            return None
        name, f, args = "__str__", v.class_attr(tx, "__str__"), ()
    if name == "__str__" and f is object.__str__:
        name, f = "__repr__", v.class_attr(tx, "__repr__")
    if type(f) is not types.FunctionType:
        return v.text(tx, name) if isinstance(v, ExceptionVariable) and name != "__format__" else None
    said = v.call_special(tx, name, *args)
    if not issubclass(said.python_type(), str):
        tx.raise_user(TypeError(f"{name} returned non-string (type {name_of(said.python_type())})"))
    return said


class SameText:
    """Guard: a function or class says of itself what it said at capture."""

    def __init__(self, text: str):
        self.text = text

    def __call__(self, o) -> bool:
        return repr(o) == self.text

    def __repr__(self):
        return self.text


def of_code(tx, v: Variable, method: str = "__repr__") -> ConstantVariable | None:
    """What ``method`` says of a function or class that existed before: its name and place. None where a metaclass of the program's says it."""
    value = getattr(v, "value", None)
    if not isinstance(v, FunctionVariable | ClassVariable) or value is None or v.source is None:
        return None
    if isinstance(value, type) and id(value) in tx.output.objects.made_classes:
        return None
    for name in {method: None, "__str__": None, "__repr__": None} if method != "__repr__" else (method,):
        if type(world.class_attr(tx, type(value), name)) not in (
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
        ):
            return None
    text = repr(value)
    tx.output.guard(v.source, "CALL", SameText(text))
    return ConstantVariable(text)


def formatted(tx, v: Variable, conversion=None, spec: str = "") -> ConstantVariable | DeferredText:
    """A replacement field of an f-string or a format; ``conversion``: str, repr, ascii or None. Of a tensor there is one where functions that
    log may be called later (``config.reorderable_logging_functions``)."""
    if isinstance(v, ObjectVariable):
        said = (
            of_object(tx, v, METHODS[conversion])
            if conversion
            else of_object(tx, v, "__format__", ConstantVariable(spec))
        )
        if said is None:
            unsupported("format", f"formatting {v!r}", "The text is not known while tracing.")
        if not conversion:
            return said
        value = said.as_constant()
        v = ConstantVariable(value.encode("ascii", "backslashreplace").decode() if conversion is ascii else value)
        conversion = None
    later = isinstance(v, DeferredText)
    if later and not conversion and not spec:
        return v  # CPython 3.13 converts and formats by two instructions
    if later or (v.is_tensor and config.reorderable_logging_functions):
        return DeferredText.of(v, conversion, spec)
    said = (
        of_code(tx, v, METHODS[conversion] if conversion else "__format__") if not (spec and not conversion) else None
    )
    v = said or settled(tx, v)
    if said is not None:
        conversion = None
    if not v.can_constant() or isinstance(v, ClassVariable):
        unsupported("format", f"formatting {v!r}", "The text is not known while tracing.")
    value = v.as_constant()
    if isinstance(value, enum.Enum):
        world.folded(tx, value)
    try:
        return ConstantVariable(format(conversion(value) if conversion else value, spec))
    except (TypeError, ValueError) as e:
        tx.raise_user(e)


def format_fields(
    tx, template: str, args: list[Variable], kwargs: dict[str, Variable]
) -> ConstantVariable | DeferredText | None:
    """``template.format(*args, **kwargs)``; None for fields that are more than a position or a name."""
    out: list[Variable] = []
    given = iter(args)
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as e:
        tx.raise_user(e)
    for literal, field, spec, conversion in parts:
        out.append(ConstantVariable(literal))
        if field is None:
            continue
        v = next(given, None) if field == "" else kwargs.get(field)
        if v is None or "{" in spec:
            return None
        out.append(formatted(tx, v, CONVERSIONS[conversion], spec))
    if any(isinstance(p, DeferredText) for p in out):
        return DeferredText.joined(out)
    return ConstantVariable("".join(p.as_constant() for p in out))
