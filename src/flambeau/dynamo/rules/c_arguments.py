"""How many arguments, and which keywords, the methods of the interpreter's own containers take: they are asked themselves."""

from __future__ import annotations

import collections
import functools
import re
import types

__all__ = ["refusal"]

# An object of each class, without elements, whose methods may be tried.
EMPTY = {cls: cls for cls in (dict, list, tuple, set, frozenset, collections.OrderedDict, collections.defaultdict)} | {
    collections.deque: collections.deque,
    slice: lambda: slice(None),
    range: lambda: range(0),
    types.MappingProxyType: lambda: types.MappingProxyType({}),
    type({}.keys()): {}.keys,
    type({}.values()): {}.values,
    type({}.items()): {}.items,
}
COUNTS = re.compile(r"takes |expected (at |exactly |\d)|missing required|keyword argument|positional argument")


@functools.lru_cache(maxsize=4096)
def refusal(cls: type, name: str, n: int, names: tuple[str, ...]) -> str | None:
    """What the method ``name`` of a container of class ``cls`` says of ``n`` arguments and these keywords, whatever they are; None when it takes
    so many, and for other classes."""
    if cls not in EMPTY:
        return None
    method = getattr(cls, name, None)
    if not isinstance(method, types.MethodDescriptorType | types.WrapperDescriptorType):
        return None
    try:
        method(EMPTY[cls](), *[None] * n, **dict.fromkeys(names))
    except TypeError as e:
        return str(e) if COUNTS.search(str(e)) else None
    except Exception:
        return None
    return None
