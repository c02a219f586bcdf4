"""ATen's schema language: ``add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor``.

Parsed into small records; ``str(schema)`` gives the text back. Everything that follows from the signature alone (argument parser,
in-place and out= variants, alias facts) is derived from these records.
"""

from __future__ import annotations

import re

from ..base import dtypes
from ..base.memory_format import BY_NAME as FORMATS
from ..base.memory_format import MemoryFormat
from ..base.records import replace, slotted

__all__ = ["AliasInfo", "Argument", "Schema", "parse", "parse_checked"]


@slotted
class AliasInfo:
    """``(a!)``: the alias set an argument or result belongs to, and whether it is written."""

    before_set: frozenset
    is_write: bool
    text: str


@slotted
class Argument:
    """``type`` is the base type ("Tensor", "int", "Scalar", ...); ``is_list`` (``size`` when ``int[1]``), ``optional``."""

    name: str
    type: str
    optional: bool = False
    is_list: bool = False
    size: int | None = None
    elements_optional: bool = False
    default_value: object = None
    has_default: bool = False
    kwarg_only: bool = False
    alias_info: AliasInfo | None = None

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.is_write

    @property
    def is_tensor(self) -> bool:
        return self.type == "Tensor"

    def has_default_value(self) -> bool:
        return self.has_default

    def type_text(self) -> str:
        t = self.type
        if self.is_list:
            if self.alias_info and self.type == "Tensor":
                t += f"({self.alias_info.text})"
            t += "?" if self.elements_optional else ""
            t += f"[{self.size if self.size is not None else ''}]"
        elif self.alias_info:
            t += f"({self.alias_info.text})"
        return t + ("?" if self.optional else "")

    def __str__(self):
        text = f"{self.type_text()} {self.name}" if self.name else self.type_text()
        return text + (f"={_show(self.default_value, self.type)}" if self.has_default else "")


_DTYPES = {
    "long": dtypes.int64,
    "float": dtypes.float32,
    "double": dtypes.float64,
    "int": dtypes.int32,
    "bool": dtypes.bool_,
}


def _show(v, type_):
    if isinstance(v, dtypes.DType):
        return next(k for k, d in _DTYPES.items() if d is v)
    if isinstance(v, MemoryFormat):
        return v.name
    if isinstance(v, str):
        return v if type_ == "ScalarType" else f'"{v}"'
    if isinstance(v, list):
        return "[" + ", ".join(map(str, v)) + "]"
    return str(v)


@slotted
class Schema:
    name: str  # with namespace: aten::add
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]

    def __str__(self):
        parts, star = [], False
        for a in self.arguments:
            if a.kwarg_only and not star:
                parts.append("*")
                star = True
            parts.append(str(a))
        rets = [str(r) for r in self.returns]
        dot = f".{self.overload_name}" if self.overload_name else ""
        ret = rets[0] if len(rets) == 1 else f"({', '.join(rets)})"
        return f"{self.name}{dot}({', '.join(parts)}) -> {ret}"

    __repr__ = __str__

    @property
    def is_mutable(self) -> bool:
        return any(a.is_write for a in self.arguments)

    @property
    def is_view(self) -> bool:
        """Some result shares memory with an argument that is not written."""
        return any(r.alias_info and not r.alias_info.is_write for r in self.returns)


_NAME = re.compile(
    r"^\s*(?:(?P<ns>\w+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?\s*\((?P<args>.*)\)\s*->\s*(?P<rets>.+?)\s*$", re.S
)
_ARG = re.compile(
    r"^(?P<type>[A-Za-z_]\w*)(?:\((?P<alias>[^)]*)\))?(?P<eopt>\?)?(?P<list>\[\d*\])?(?P<opt>\?)?"
    r"(?:\s+(?P<name>\w+)\s*(?:=\s*(?P<default>.+))?)?$"
)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    out, depth, quote, start = [], 0, None, 0
    for i, c in enumerate(text):
        if quote:
            quote = None if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and not depth:
            out.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return out + [last] if last else out


def _value(text: str, type_: str, is_list: bool):
    text = text.strip()
    if text == "None":
        return None
    if type_ == "ScalarType":
        return _DTYPES[text]
    if type_ == "MemoryFormat":
        return FORMATS[text]
    if text in ("True", "False"):
        return text == "True"
    if text[0] in "'\"":
        return text[1:-1]
    if text[0] == "[":
        return [_value(t, type_, False) for t in _split(text[1:-1])]
    if type_ in ("int", "SymInt") or (type_ == "Scalar" and re.fullmatch(r"-?\d+", text)):
        return [int(text)] if is_list else int(text)
    try:
        return float(text)
    except ValueError:
        return text  # Mean, ...


def _argument(text: str, kwarg_only: bool) -> Argument:
    m = _ARG.match(text)
    if m is None:
        raise ValueError(f"cannot parse schema argument {text!r}")
    alias = m["alias"]
    info = None
    if alias is not None:
        info = AliasInfo(frozenset(alias.split("->")[0].strip().rstrip("!").split("|")), "!" in alias, alias)
    is_list = m["list"] is not None
    size = int(m["list"][1:-1]) if is_list and len(m["list"]) > 2 else None
    optional = m["opt"] is not None or (not is_list and m["eopt"] is not None)
    has_default = m["default"] is not None
    default = _value(m["default"], m["type"], is_list) if has_default else None
    return Argument(
        m["name"] or "",
        m["type"],
        optional,
        is_list,
        size,
        is_list and m["eopt"] is not None,
        default,
        has_default,
        kwarg_only,
        info,
    )


def parse(text: str, namespace: str = "aten") -> Schema:
    """Parse a schema. ValueError naming the part that can't be read."""
    m = _NAME.match(text)
    if m is None:
        raise ValueError(f"cannot parse schema {text!r}: expected name.overload(arguments) -> returns")
    args, kwarg_only = [], False
    for part in _split(m["args"]):
        if part == "*":
            kwarg_only = True
        else:
            args.append(_argument(part, kwarg_only))
    rets = m["rets"].strip()
    inner = _split(rets[1:-1]) if rets.startswith("(") else [rets]
    return Schema(
        f"{m['ns'] or namespace}::{m['name']}",
        m["overload"] or "",
        tuple(args),
        tuple(_argument(r, False) for r in inner),
    )


_TYPES = frozenset(
    "Tensor SymInt int float bool SymBool Scalar str ScalarType Device DeviceIndex Layout MemoryFormat Generator Dimname Storage Stream "
    "QScheme complex Any AnyEnumType Dict __torch__".split()
)
_CPP_TYPES = {"int64_t": "`SymInt` or `int`", "double": "`float`"}  # what stands for them in a schema


def parse_checked(text: str, namespace: str = "aten") -> Schema:
    """Parse the schema of a program's operator. RuntimeError for what can't be read and for names of types that schemas don't have."""
    try:
        schema = parse(text, namespace)
    except ValueError as error:
        raise RuntimeError(str(error)) from error
    for a in (*schema.arguments, *schema.returns):
        if a.type in _CPP_TYPES:
            raise RuntimeError(f"Use {_CPP_TYPES[a.type]} instead of `{a.type}` in an operator's schema string: {text}")
        if a.type not in _TYPES:
            raise RuntimeError(
                f"unknown type specifier {a.type!r}. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar: {text}"
            )
    return schema


def inplace_variant(schema: Schema, overload: str) -> Schema:
    """``add_``: the first argument is written and returned."""
    first, *rest = schema.arguments
    info = AliasInfo(frozenset("a"), True, "a!")
    return Schema(
        schema.name + "_",
        overload,
        (replace(first, alias_info=info), *rest),
        (Argument("", "Tensor", alias_info=info),),
    )


def out_variant(schema: Schema, overload: str, names=()) -> Schema:
    """``add.out``: keyword-only arguments for the results, which are written and returned. ``names``: theirs, if not ``out`` or the results'."""
    outs, rets = [], []
    for i, r in enumerate(schema.returns):
        letter = chr(ord("a") + i)
        info = AliasInfo(frozenset(letter), True, letter + "!")
        name = names[i] if names else "out" if len(schema.returns) == 1 else (r.name or f"out{i}")
        outs.append(Argument(name, "Tensor", kwarg_only=True, alias_info=info))
        rets.append(Argument("", "Tensor", alias_info=info))
    return Schema(schema.name, overload, (*schema.arguments, *outs), tuple(rets))
