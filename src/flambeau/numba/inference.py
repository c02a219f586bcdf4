"""The dtype that a function of numbers gives, found as native loops find the types of their variables."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dynamo.bytecode.instructions import decode, live_locals
from ..loops.compile import compile_region
from ..loops.emitter import constant
from ..loops.inlining import Callee
from ..loops.operands import GivenArray, Inputs, OverRange
from ..loops.values import Declined, Known, NoValue, Symbolic

__all__ = ["result_dtype"]


@functools.lru_cache(256)
def result_dtype(function: Callable, dtypes: tuple[np.dtype, ...]) -> np.dtype | None:
    """The dtype that results of all paths through the function have in common; None where native loops don't understand it."""
    names = [f"a{k}" for k in range(len(dtypes))]
    source = f"def run(n, {', '.join(names)}):\n for i in range(n):\n  r = function({', '.join(f'{n}[i]' for n in names)})\n return r\n"
    scope: dict[str, Any] = {"function": function}
    exec(source, scope)
    code = scope["run"].__code__
    insts = decode(code)
    header = next(i.index for i in insts if i.name == "FOR_ITER")
    size = object()
    given = {n: GivenArray(object(), dtype, 1, True, (size,)) for n, dtype in zip(names, dtypes)}

    def local(name: str):
        if name not in given:
            raise NoValue
        return given[name]

    inputs = Inputs(
        local,
        _global_of(scope["run"]),
        _unknown,
        _attribute,
        _callee,
        OverRange(0, Symbolic(size, np.dtype(np.int64)), 1),
        code.co_consts,
    )
    try:
        ((_, dtype, _),) = compile_region(insts, header, inputs, lambda i: live_locals(code, i)).results
    except (Declined, ValueError):
        return None
    return dtype


def _described(value):
    if isinstance(value, bool | int | float | complex | np.number | np.bool_):
        return constant(value)
    return Known(getattr(value, "py_func", value), getattr(value, "py_func", value))


def _attribute(known: Known, name: str):
    return _described(getattr(known.value, name))


def _unknown(name: str):
    raise Declined("a variable of an outer function")


def _global_of(function: Callable):
    def load(name: str):
        scope = function.__globals__
        found = scope.get(name, getattr(builtins, name, None))
        if found is None:
            raise Declined(f"the global {name}")
        return _described(found)

    return load


def _callee(known: Known) -> Callee:
    f = known.value
    if not hasattr(f, "__code__"):
        raise Declined(f"a call of {f!r}")
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))
    defaults = f.__defaults__ or ()
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    return Callee(
        f.__code__,
        decode(f.__code__),
        _global_of(f),
        lambda name: _described(cells[name].cell_contents),
        {n: functools.partial(_described, v) for n, v in zip(names[len(names) - len(defaults) :], defaults)},
    )
