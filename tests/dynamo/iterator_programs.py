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

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import reset

SCOPE = {m.__name__: m for m in (collections, functools, heapq, itertools, math, operator)} | {"torch": torch}

ADDRESS = re.compile(" at 0x[0-9a-f]+")  # in the text of an object, of errors too


def shown(v):
    """A comparable copy; what iterators still give is taken, some of it."""
    if isinstance(v, torch.Tensor):
        return "tensor", v.tolist()
    if isinstance(v, (set, frozenset)):
        return type(v).__name__, sorted(map(repr, v))
    if isinstance(v, (list, tuple, collections.deque)):
        return type(v).__name__, [shown(e) for e in v], getattr(v, "maxlen", None)
    if isinstance(v, dict):
        return type(v).__name__, [(shown(k), shown(e)) for k, e in v.items()]
    if hasattr(type(v), "__next__"):
        given = []
        try:
            while len(given) < 6:
                given.append(shown(next(v)))
        except Exception as e:
            given.append((type(e).__name__, str(e)))
        return type(v).__name__, given
    if hasattr(v, "__dict__"):
        return type(v).__name__, shown(vars(v))
    return type(v).__name__, ADDRESS.sub("", repr(v)) if isinstance(v, (int, float, complex, str, bytes)) else ""


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


def made(body: str, filename: str):
    source = "def f(x, l, d, it):\n" + textwrap.indent(body.strip("\n"), "    ") + "\n"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {"__name__": "iterator_programs", **SCOPE}
    exec(compile(source, filename, "exec"), scope)
    return scope["f"]


def agree(body: str, filename: str, backend: str = "eager") -> None:
    want = outcome(made(body, filename))
    reset()
    before = _frame.set_strict_guards(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            got = outcome(torch.compile(made(body, filename), backend=backend))
    finally:
        _frame.set_strict_guards(before)
    assert got == want, f"{body}\n{want}\n{got}"
    assert not [w for w in seen if "inside the compiler" in str(w.message)], f"{body}\n{seen[0].message}"
