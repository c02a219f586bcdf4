"""What a class is, read past its metaclass: a program's metaclass, names and hooks may answer what they like, fail, or have effects.

Nothing here runs a program's code. Where capture looks at a class or an object on its own account (not because the program reads it), it looks
through these."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any

from flambeau import _C, _frame

__all__ = [
    "ABSENT",
    "MRO",
    "base_of",
    "by_identity",
    "dict_of",
    "error_name_of",
    "flags_of",
    "full_name_of",
    "has_item",
    "instance_dict",
    "is_a",
    "is_among",
    "is_below",
    "is_stdlib",
    "module_of",
    "member_name",
    "mro_of",
    "name_of",
    "qualname_of",
    "type_item",
]


ABSENT = _frame.ABSENT
MRO = "(mro)"  # no attribute's name: what asks a class for its whole MRO, here and in csrc/frame/guards.c
IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: nothing can be set on the class
_slots = type.__dict__
_module = _slots["__module__"].__get__
_mro_of = _slots["__mro__"].__get__
_dict_of = _slots["__dict__"].__get__
flags_of = _slots["__flags__"].__get__
base_of = _slots["__base__"].__get__


def dict_of(cls: type) -> Mapping[str, Any]:
    """The attributes of a class itself; of a class of C that nobody made ready, none."""
    return _dict_of(cls) or {}


def mro_of(cls: type) -> tuple[type, ...]:
    """The MRO of a class; of a class of C that nobody made ready, itself."""
    return _mro_of(cls) or (cls,)


_name = _slots["__name__"].__get__
_qualname = _slots["__qualname__"].__get__


def is_a(v, classes) -> bool:
    """isinstance() that asks the class only: ``v.__class__`` may be the user's code."""
    return issubclass(type(v), classes)


instance_dict = _frame.instance_dict


def is_among(cls: type, table) -> bool:
    """Whether ``cls`` is one of the classes of a tuple, set or dict: its metaclass may hash and compare as it likes."""
    return by_identity(cls) and cls in table


def is_below(cls: type, base: type) -> bool:
    """issubclass() by the MRO alone: the metaclass of ``base`` isn't asked."""
    return any(c is base for c in mro_of(cls))


def type_item(cls: type, name: str, after: type | None = None) -> Any:
    """What the MRO of ``cls`` holds under ``name``, behind the class ``after``; ABSENT when nothing does. Descriptors are left alone.
    ``MRO`` is the MRO itself."""
    mro = mro_of(cls)
    if name == MRO:
        return mro
    if after is not None:
        i = next((i for i, c in enumerate(mro) if c is after), len(mro))
        mro = mro[i + 1 :]
    for c in mro:
        found = dict_of(c).get(name, ABSENT)
        if found is not ABSENT:
            return found
    return ABSENT


def has_item(cls: type, name: str) -> bool:
    """Whether objects of the class have the attribute from it. hasattr() of the class finds those that the class has of its own class, too."""
    return type_item(cls, name) is not ABSENT


def _text(found) -> str:
    """A name as a plain string: one of a class derived from ``str`` may compare as it likes."""
    if type(found) is str:
        return found
    return str.__str__(found) if is_a(found, str) else ""


def error_name_of(cls: type) -> str:
    """A class's name as the interpreter's errors tell it: with the module where it is one in C."""
    name, module = name_of(cls), module_of(cls)
    return f"{module}.{name}" if flags_of(cls) & IMMUTABLE and module != "builtins" else name


def name_of(cls: type) -> str:
    return _text(_name(cls))


def qualname_of(cls: type) -> str:
    return _text(_qualname(cls))


def full_name_of(cls: type) -> str:
    """The qualified name with the module in front, as the interpreter's format %T tells it."""
    name, module = qualname_of(cls), module_of(cls)
    return name if module in ("", "builtins", "__main__") else f"{module}.{name}"


def module_of(value) -> str:
    """The name of the module that a class, a function or a method says it is from; "" where it says none, or what isn't text."""
    t = type(value)
    if issubclass(t, type):
        try:
            return _text(_module(value))
        except AttributeError:  # it was deleted
            return ""
    if t is types.MethodType:
        return module_of(value.__func__)
    if t is _C.Function or t is _C.Method:  # it says where a program finds it
        return _C.__name__
    if flags_of(t) & IMMUTABLE or module_of(t).partition(".")[0] in ("flambeau", "numpy"):
        return _text(getattr(value, "__module__", None))
    return ""


def is_stdlib(f) -> bool:
    """Whether a method of a metaclass is the interpreter's library's, or ours."""
    return module_of(f).partition(".")[0] in ("abc", "_abc", "typing", "enum", "types", "flambeau")


def by_identity(value) -> bool:
    """Whether ``value`` is hashed and compared by identity, so that looking it up in a table runs nothing."""
    t = type(value)
    return type_item(t, "__hash__") is _HASH and type_item(t, "__eq__") is _EQ


def hashed_by_program(value) -> bool:
    """Whether hashing ``value`` runs a method that a program wrote (one that ``dataclass`` makes of the fields aside)."""
    t = type(value)
    if t in (tuple, frozenset):
        return any(map(hashed_by_program, value))
    f = type_item(t, "__hash__")
    if type(f) is not types.FunctionType or module_of(f).partition(".")[0] in _LIBRARIES:
        return False
    return not (f.__code__.co_filename == "<string>" and type_item(t, "__dataclass_params__") is not ABSENT)


_LIBRARIES = {*sys.stdlib_module_names, "flambeau", "numpy"}
_HASH, _EQ = object.__dict__["__hash__"], object.__dict__["__eq__"]


def member_name(member: Any) -> str:
    """What a member of an enumeration is called. Its class's own ``__str__`` and ``__repr__`` are the program's, and aren't run."""
    return f"{name_of(type(member))}.{(instance_dict(member) or {}).get('_name_')}"
