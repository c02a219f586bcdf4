"""What calls of builtins do, by the builtin: ``handler(tx, args, kwargs)`` gives a variable, or None for what it can't say."""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import math
import operator
import types
import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["HANDLERS", "handles", "takes"]

HANDLERS: dict[Any, Callable] = {}


def handles(*fns):
    """Register a handler for calls of these builtins."""

    def add(f):
        for fn in fns:
            HANDLERS[fn] = f
        return f

    return add


# How many arguments a builtin takes, and which names (None: any), where it has no signature that can be asked for.
TAKES: dict[Any, tuple[int, int, tuple[str, ...] | None]] = {
    super: (0, 2, ()), bool: (0, 1, ()), float: (0, 1, ()), int: (0, 2, ("base",)), str: (0, 3, ("object", "encoding", "errors")),
    tuple: (0, 1, ()), list: (0, 1, ()), set: (0, 1, ()), frozenset: (0, 1, ()), range: (1, 3, ()), slice: (1, 3, ()), iter: (1, 2, ()),
    zip: (0, 1 << 30, ("strict",)), next: (1, 2, ()), getattr: (2, 3, ()), itertools.pairwise: (1, 1, ()),
    map: (2, 1 << 30, ()), filter: (2, 2, ()), functools.reduce: (2, 3, ()), vars: (0, 1, ()), dir: (0, 1, ()), math.log: (1, 2, ()),
    min: (1, 1 << 30, ("key", "default")), max: (1, 1 << 30, ("key", "default")), dict: (0, 1, None), staticmethod: (1, 1, ()),
    classmethod: (1, 1, ()), itertools.chain: (0, 1 << 30, ()), itertools.repeat: (0, 2, ("object", "times")),
    itertools.product: (0, 1 << 30, ("repeat",)), collections.OrderedDict: (0, 1, None), collections.defaultdict: (0, 2, None),
    collections.deque: (0, 2, ("iterable", "maxlen")), functools.partial: (1, 1 << 30, None), type: (1, 3, None),
    types.MappingProxyType: (1, 1, ("mapping",)), operator.attrgetter: (1, 1 << 30, ()), operator.itemgetter: (1, 1 << 30, ()),
    operator.methodcaller: (1, 1 << 30, None), weakref.ref: (1, 2, ()),
    itertools.starmap: (2, 2, ()), itertools.takewhile: (2, 2, ()),
    itertools.dropwhile: (2, 2, ()), itertools.filterfalse: (2, 2, ()), itertools.cycle: (1, 1, ()), itertools.islice: (2, 4, ()),
    itertools.tee: (1, 2, ()), itertools.zip_longest: (0, 1 << 30, ("fillvalue",)),
}  # fmt: skip


@functools.lru_cache(maxsize=4096)
def takes(fn, n: int, names: tuple[str, ...]) -> bool:
    """Whether ``fn`` can be called with ``n`` arguments and these names; if not, the plain call raises the error."""
    if fn in TAKES:
        least, most, known = TAKES[fn]
        return least <= n <= most and (known is None or set(names) <= set(known))
    try:
        inspect.signature(fn).bind(*range(n), **dict.fromkeys(names))
    except ValueError:  # none is known
        return True
    except TypeError:
        return False
    return True
