"""Calls of an archive's methods from Python: arguments are checked and turned into what their types say, as PyTorch does."""

from __future__ import annotations

import enum
import reprlib

from ... import _C
from ...base.device import Device
from . import packed, values
from .types import Type, schema_text

__all__ = ["Checked", "declaration", "given", "holds", "public", "too_many"]

MISSING = type("MISSING", (), {"__repr__": lambda self: "<no value>"})()


def holds(program, value, kind: Type) -> bool:
    """Whether a value is of the type: ``isinstance`` in TorchScript."""
    name, args = kind
    if name == "Any":
        return True
    if name in ("Optional", "Union"):
        return name == "Optional" and value is None or any(holds(program, value, a) for a in args)
    if name == "List":
        return type(value) is list and all(holds(program, x, args[0]) for x in value)
    if name == "Dict":
        return isinstance(value, dict) and all(
            holds(program, k, args[0]) and holds(program, v, args[1]) for k, v in value.items()
        )
    if name == "Tuple":
        return (
            isinstance(value, tuple)
            and len(value) == len(args)
            and all(holds(program, v, a) for v, a in zip(value, args))
        )
    if name == "number":
        return isinstance(value, int | float | complex) and not isinstance(value, bool)
    if name == "Tensor":
        return isinstance(value, _C.TensorBase)
    if name == "NoneType":
        return value is None
    plain = {"bool": bool, "int": int, "float": float, "complex": complex, "str": str, "Device": Device}.get(name)
    if plain is not None:
        return type(value) is plain or name == "int" and isinstance(value, int) and not isinstance(value, bool)
    if name in packed.CLASSES:
        return isinstance(value, packed.CLASSES[name].python)
    cls = program.find(name.removeprefix("enum "))
    return cls is not None and cls.python is not None and isinstance(value, cls.python)


class _Wrong(Exception):
    pass


def converted(program, value, kind: Type):
    """The value as TorchScript has it. _Wrong for one of another type."""
    name, args = kind
    if name == "Tensor":
        if isinstance(value, _C.TensorBase):
            return value
    elif name in ("int", "Layout"):
        value = values.code_of(value)
        if isinstance(value, int) or hasattr(value, "__index__") and not isinstance(value, _C.TensorBase):
            return value if not isinstance(value, bool) else int(value)
    elif name == "float":
        if isinstance(value, int | float) or hasattr(value, "__float__") and not isinstance(value, _C.TensorBase | str):
            return float(value) if isinstance(value, int) else value
    elif name == "complex":
        if isinstance(value, int | float | complex):
            return complex(value)
    elif name == "Optional":
        return None if value is None else converted(program, value, args[0])
    elif name == "List":
        if isinstance(value, list | tuple):
            return [converted(program, x, args[0]) for x in value]
    elif name == "Dict":
        if isinstance(value, dict):
            return {converted(program, k, args[0]): converted(program, v, args[1]) for k, v in value.items()}
    elif name == "Tuple":
        if isinstance(value, tuple) and len(value) == len(args):
            return tuple(converted(program, v, a) for v, a in zip(value, args))
    elif name == "Device":
        if isinstance(value, Device | str):
            return Device(value)
    elif name == "Union":
        if any(holds(program, value, a) for a in args):
            return value
    elif name.startswith("__torch__.") and isinstance(value, tuple):
        cls = program.find(name)
        if cls is not None and cls.base == "NamedTuple" and len(value) == len(cls.attributes):
            return cls.python(*(converted(program, v, a) for v, a in zip(value, cls.attributes.values())))
    elif name.startswith("enum ") and isinstance(value, enum.Enum):
        cls = program.find(name.removeprefix("enum "))
        if cls is not None and type(value).__name__ == cls.name and value.name in cls.values:
            return cls.python[value.name]
    elif holds(program, value, kind):
        return value
    raise _Wrong


class Checked:
    """What the call of a public method needs to know of an argument."""

    def __init__(self, program, method, place: int, name: str, kind: Type):
        self.program, self.method, self.place, self.name, self.kind = program, method, place, name, kind


def given(checked: Checked, value):
    """The argument as its type says. RuntimeError for a value of another type, and for none."""
    if value is MISSING:
        raise RuntimeError(
            f"{checked.method.name}() is missing value for argument '{checked.name}'. Declaration: {declaration(checked.method)}"
        )
    try:
        return converted(checked.program, value, checked.kind)
    except _Wrong:
        shown = str(checked.kind).replace("enum ", "")
        raise RuntimeError(
            f"{checked.method.name}() Expected a value of type '{shown}' for argument '{checked.name}' but instead found type "
            f"'{type(value).__name__}'.\nPosition: {checked.place}\nValue: {reprlib.repr(value)}\nDeclaration: {declaration(checked.method)}"
        ) from None


def too_many(method, more: tuple, others: dict):
    """RuntimeError: arguments that the method doesn't take."""
    takes = len(method.takes) + (method.owner is not None)
    if more:
        raise RuntimeError(
            f"{method.name}() expected at most {takes} argument(s) but received {takes + len(more)} argument(s). Declaration: {declaration(method)}"
        )
    raise RuntimeError(
        f"Unknown keyword argument '{next(iter(others))}' for operator '{method.name}'. Schema: {declaration(method)}"
    )


def _default(value) -> str:
    return f'"{value}"' if isinstance(value, str) else values.shown(value)


def declaration(method) -> str:
    """The schema, as PyTorch writes it: ``forward(__torch__.M self, Tensor x, int? s=None) -> Tensor``."""
    parts = [f"{method.owner.qualified} {method.of}"] if method.owner is not None else []
    for name, kind in method.takes:
        text = f"{schema_text(kind)} {name}"
        parts.append(f"{text}={_default(method.defaults[name])}" if name in method.defaults else text)
    gives = schema_text(method.gives)
    return f"{method.name}({', '.join(parts)}) -> {f'({gives})' if method.gives.name == 'Tuple' else gives}"


_SIMPLE = {"Tensor": "_ts_isinstance({x}, _ts_tensor)"} | {
    name: f"_ts_type({{x}}) is _ts_{name}" for name in ("int", "bool", "str", "float")
}


def public(program, method):
    """The method that Python calls: ``forward(self, x, n=3)``, which looks at its arguments and calls the one that was compiled."""
    space = {
        "__builtins__": {},
        "__name__": "__torch__",
        "_ts_isinstance": isinstance,
        "_ts_type": type,
        "_ts_tensor": _C.TensorBase,
        "_ts_int": int,
        "_ts_bool": bool,
        "_ts_str": str,
        "_ts_float": float,
        "_ts_given": given,
        "_ts_too_many": too_many,
        "_ts_method": method,
        "_ts_missing": MISSING,
    }
    params, args = [method.of], []
    for place, (name, kind) in enumerate(method.takes, 1):
        space[f"_ts_check_{place}"] = Checked(program, method, place, name, kind)
        space[f"_ts_default_{place}"] = method.defaults.get(name, MISSING)
        params.append(f"{name}=_ts_default_{place}")
        test = _SIMPLE.get(kind.name, "").format(x=name)
        if kind.name == "Optional" and kind.args[0].name in _SIMPLE:
            test = f"{name} is None or {_SIMPLE[kind.args[0].name].format(x=name)}"
        checked = f"_ts_given(_ts_check_{place}, {name})"
        args.append(f"{name} if {test} else {checked}" if test else checked)
    text = (
        f"def {method.name}({', '.join(params)}, *_ts_more, **_ts_others):\n"
        f"    if _ts_more or _ts_others:\n        _ts_too_many(_ts_method, _ts_more, _ts_others)\n"
        f"    return {method.of}.{program.raw(method.name)}({', '.join(args)})\n"
    )
    made: dict = {}
    exec(compile(text, f"{program.name}/{method.qualified}", "exec", dont_inherit=True), space, made)
    return made[method.name]
