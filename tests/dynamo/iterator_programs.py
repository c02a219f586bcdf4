"""Programs that consume iterators: bodies of ``f(x, l, d, it)``, plainly and captured. What they return is compared, what is left in the iterators among
it and in the arguments, and errors."""

import collections
import functools
import heapq
import itertools
import linecache
import math
import operator
import re
import textwrap
import warnings

from programs import differ

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import reset

ADDRESS = re.compile(" at 0x[0-9a-f]+")  # in the text of an object, of errors too
SCOPE = {m.__name__: m for m in (collections, functools, heapq, itertools, math, operator)} | {
    "torch": torch,
    "ADDRESS": ADDRESS,
}


def shown(v, depth=0):
    """A comparable copy; what iterators still give is taken, some of it."""
    if depth > 7:
        return "deep"  # a container may hold itself
    if isinstance(v, torch.Tensor):
        return "tensor", v.tolist()
    if isinstance(v, (set, frozenset)):
        return type(v).__name__, sorted(ADDRESS.sub("", repr(e)) for e in v)
    if isinstance(v, (list, tuple, collections.deque)):
        return type(v).__name__, [shown(e, depth + 1) for e in v], getattr(v, "maxlen", None)
    if isinstance(v, dict):
        return type(v).__name__, [(shown(k, depth + 1), shown(e, depth + 1)) for k, e in v.items()]
    if hasattr(type(v), "__next__"):
        given = []
        try:
            while len(given) < 6:
                given.append(shown(next(v), depth + 1))
        except Exception as e:
            given.append((type(e).__name__, str(e)))
        return type(v).__name__, given
    if isinstance(v, (collections.abc.KeysView, collections.abc.ItemsView, collections.abc.ValuesView)):
        return type(v).__name__, [shown(e, depth + 1) for e in v]
    if hasattr(v, "__dict__"):
        return type(v).__name__, shown(vars(v), depth + 1)
    return type(v).__name__, ADDRESS.sub("", repr(v)) if isinstance(
        v, (int, float, complex, str, bytes, bytearray, range, slice, type(None))
    ) else ""


def outcome(f):
    out = []
    for k in (1, 2):
        given = torch.ones(1) * k, [1, 2, 3], {"a": 1, "b": 2}, iter([1, 2, 3, 4, 5])
        try:
            out.append(shown(f(*given)))
        except Exception as e:
            out.append(shown((type(e).__name__, str(e))))
        out.append(shown(given))
    return out


def made(body: str, filename: str, prelude: str):
    source = prelude + "def f(x, l, d, it):\n" + textwrap.indent(body.strip("\n"), "    ") + "\n"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {"__name__": "iterator_programs", **SCOPE}
    exec(compile(source, filename, "exec"), scope)
    return scope["f"]


def agree(body: str, filename: str, backend: str = "eager", prelude: str = "") -> None:
    """``prelude`` is what the body's module holds before the function."""
    want = outcome(made(body, filename, prelude))
    reset()
    before = _frame.set_strict_guards(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            got = outcome(torch.compile(made(body, filename, prelude), backend=backend))
    finally:
        _frame.set_strict_guards(before)
    assert got == want, f"{differ(want, got)}\n{body}\n{want}\n{got}"
    assert not [w for w in seen if "inside the compiler" in str(w.message)], f"{body}\n{seen[0].message}"
