"""Arguments of a call to the locals of a function's frame, as CPython binds them."""

from __future__ import annotations

import inspect
import types

from ..base import Variable
from .python_functions import FunctionVariable

__all__ = ["bind"]


def bind(tx, f: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]) -> dict[str, Variable]:
    """Arguments to the locals of ``f``'s frame, as CPython binds them. A call that doesn't fit is the user's TypeError."""
    code = f.code
    given, kwargs = list(kwargs), dict(kwargs)
    n, k = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    out: dict[str, Variable] = {}

    def wrong():
        """Let CPython word it: the call fails before anything of the function runs."""
        cells = tuple(types.CellType() for _ in code.co_freevars) or None
        stub = types.FunctionType(code, {}, code.co_name, (None,) * len(f.defaults(tx)) or None, cells)
        stub.__kwdefaults__ = dict.fromkeys(f.kwdefaults(tx))
        stub.__qualname__ = f.names()[1]
        try:
            stub(*[None] * len(args), **dict.fromkeys(given))
        except TypeError as e:
            tx.raise_user(e.with_traceback(None))

    for name, v in zip(names[:n], args):
        out[name] = v
    rest = args[n:]
    if rest and not code.co_flags & inspect.CO_VARARGS:
        wrong()
    for name in names[code.co_posonlyargcount : n + k]:
        if name in kwargs:
            if name in out:
                wrong()
            out[name] = kwargs.pop(name)
    if any(name not in out for name in names[:n]):
        defaults = f.defaults(tx)
        for name, d in zip(names[n - len(defaults) : n], defaults):
            out.setdefault(name, d)
    if any(name not in out for name in names[n : n + k]):
        for name, d in f.kwdefaults(tx).items():
            out.setdefault(name, d)
    if any(name not in out for name in names[: n + k]):
        wrong()
    i = n + k
    if code.co_flags & inspect.CO_VARARGS:
        out[names[i]] = tx.make_tuple(rest)
        i += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        out[names[i]] = tx.make_dict(kwargs)
    elif kwargs:
        wrong()
    return out
