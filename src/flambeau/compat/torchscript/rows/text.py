"""Operators on text. Text is bytes in UTF-8 there: lengths and places count these."""

from __future__ import annotations

import operator
import re

from .. import values
from .table import prim, row, slices_of

_BYTES = ("utf-8", "surrogateescape")


def _slice(text: str, start=None, end=None, step=1) -> str:
    return text[start:end:step] if text.isascii() else text.encode(*_BYTES)[start:end:step].decode(*_BYTES)


def _length(text: str) -> int:
    return len(text.encode(*_BYTES))


def character(text: str, at: int) -> str:
    """``text[at]`` by bytes."""
    return text[at] if text.isascii() else text.encode(*_BYTES)[at : at + 1 or None].decode(*_BYTES)


row("len", _length, "str -> int")
row("index", lambda text, part, *places: text.index(part, *places), "str, str -> int", "str, str, int -> int")
row("count", lambda text, part: text.count(part), "str, str -> int")
row("list", list, "str -> List[str]")
row("add", operator.add, "str, str -> str")
row("__getitem__", character, "str, int -> str")
row("__contains__", operator.contains, "str, str -> bool")
row("slice", _slice, *slices_of("str"))
prim("StringIndex", character, "str, int -> str")
for _name in (
    "capitalize isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper lower "
    "swapcase title upper"
).split():
    row(_name, getattr(str, _name), f"str -> {'bool' if _name.startswith('is') else 'str'}")
for _name in ("strip", "lstrip", "rstrip"):
    row(_name, getattr(str, _name), "str -> str", "str, str -> str")
for _name in ("startswith", "endswith"):
    row(_name, getattr(str, _name), "str, str -> bool", "str, str, int -> bool", "str, str, int, int -> bool")
for _name in ("find", "rfind", "rindex"):
    row(_name, getattr(str, _name), "str, str -> int", "str, str, int -> int")
for _name in ("center", "ljust", "rjust"):
    row(_name, getattr(str, _name), "str, int -> str", "str, int, str -> str")
for _name in ("partition", "rpartition"):
    row(_name, getattr(str, _name), "str, str -> Tuple[str, str, str]")
row("split", str.split, "str -> List[str]", "str, Optional[str] -> List[str]", "str, Optional[str], int -> List[str]")
row("rsplit", str.rsplit, "str, str -> List[str]", "str, str, int -> List[str]")
row("splitlines", str.splitlines, "str -> List[str]", "str, bool -> List[str]")
row("expandtabs", str.expandtabs, "str -> str", "str, int -> str")
row("join", str.join, "str, List[str] -> str")
row("replace", str.replace, "str, str, str -> str", "str, str, str, int -> str")


def formatted(text: str, *given) -> str:
    """``torch.format``: each ``{}`` of the text is the next argument."""
    parts = text.split("{}")
    if len(parts) - 1 > len(given):
        raise RuntimeError(f"Too few arguments for format string: {text}")
    return parts[0] + "".join(values.shown(x) + part for x, part in zip(given, parts[1:]))


def percent(text: str, *given) -> str:
    """``torch.percentFormat``: ``%`` of text, in which ``%s`` is as :func:`formatted` writes it."""
    kinds = re.findall(r"%[-+ #0-9.]*([a-zA-Z%])", text)
    kinds = [k for k in kinds if k != "%"]
    return text % tuple(values.shown(x) if k == "s" else x for k, x in zip(kinds, given))
