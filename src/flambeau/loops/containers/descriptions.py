"""What the kernel tells Python of a container that it hands over, as the text of a call (see numpy_calls).

``container KIND KEY VALUE``: the kind, and what keys and values are, as printed descriptions without blanks: ``<i8p`` is a dtype and whether the
number is Python's ("p") or NumPy's ("n"), ``[<f8:2]`` an array of two dimensions, ``(...,...)`` a tuple, ``{kind,key,value}`` a container, ``-``
nothing.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

__all__ = [
    "ArrayDescription", "ContainerDescription", "Description", "NumberDescription", "TupleDescription", "is_call", "parsed_call", "printed_call",
]  # fmt: skip

_CALL = "container"


class NumberDescription(NamedTuple):
    """``weak``: whether it is Python's number."""

    dtype: np.dtype
    weak: bool


class ArrayDescription(NamedTuple):
    dtype: np.dtype
    ndim: int


class TupleDescription(NamedTuple):
    items: tuple[Description, ...]


class ContainerDescription(NamedTuple):
    """``kind``: "list", "deque", "dict", "set", or "array" for an array that is itself handed over. ``key``: None where there are no keys."""

    kind: str
    key: Description | None = None
    value: Description | None = None


Description = NumberDescription | ArrayDescription | TupleDescription | ContainerDescription


def printed_call(what: ContainerDescription) -> str:
    return " ".join((_CALL, what.kind, _printed(what.key), _printed(what.value)))


def is_call(text: str) -> bool:
    return text.startswith(f"{_CALL} ")


@functools.lru_cache(1024)
def parsed_call(text: str) -> ContainerDescription:
    _, kind, key, value = text.split(" ")
    return ContainerDescription(kind, _parsed(key), _parsed(value))


def _printed(what: Description | None) -> str:
    match what:
        case None:
            return "-"
        case ArrayDescription(dtype, ndim):
            return f"[{dtype.str}:{ndim}]"
        case TupleDescription(items):
            return "(" + ",".join(map(_printed, items)) + ")"
        case ContainerDescription(kind, key, value):
            return "{" + ",".join((kind, _printed(key), _printed(value))) + "}"
        case NumberDescription(dtype, weak):
            return f"{dtype.str}{'p' if weak else 'n'}"


def _parsed(text: str) -> Description | None:
    match text[0]:
        case "-":
            return None
        case "[":
            dtype, _, ndim = text[1:-1].partition(":")
            return ArrayDescription(np.dtype(dtype), int(ndim))
        case "(":
            return TupleDescription(tuple(map(_parsed, _parts(text))))
        case "{":
            kind, key, value = _parts(text)
            return ContainerDescription(kind, _parsed(key), _parsed(value))
        case _:
            return NumberDescription(np.dtype(text[:-1]), text.endswith("p"))


def _parts(said: str) -> list[str]:
    """What the commas of a type's text separate."""
    out, depth, start = [], 0, 1
    for k, c in enumerate(said):
        depth += (c in "({") - (c in ")}")
        if (c == "," and depth == 1) or (c in ")}" and depth == 0):
            out.append(said[start:k])
            start = k + 1
    return out
