"""``jit`` and ``njit``: compiled functions under Numba's names and with Numba's options."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable

from .. import _frame
from ..base.nearest import Absent
from ..compiler import compile
from . import types as number_types
from .types import Signature, signature_of

__all__ = ["Dispatcher", "jit", "njit", "options_of"]

WITHOUT_MEANING = frozenset(
    "nopython nogil error_model boundscheck inline looplift forceobj debug no_cpython_wrapper no_cfunc_wrapper".split()
)
"""Options that ask for what holds here anyway, or for a way to compile that there isn't."""
READ = frozenset("cache fastmath parallel locals pipeline_class target".split())
REORDERING = {"reassoc", "contract", "arcp"}  # what compile(options={"fastmath": True}) does


class Dispatcher(_frame.CompiledFunction):
    """What ``jit`` makes of a function: it is compiled for the types of each call. ``signatures``: those that it was given."""

    signatures: list[Signature] = []

    @property
    def py_func(self) -> Callable:
        """The function as it was written."""
        return self.fn


class TypedDispatcher(Dispatcher):
    """One that takes what its signatures say. Calls from compiled code are of the function itself."""

    def __call__(self, *args, **kwargs):
        if kwargs:
            args = self._positional(args, kwargs)
        for signature in self.signatures:
            if signature.takes(args):
                out = super().__call__(*[t.given(x) for t, x in zip(signature.arguments, args)])
                if isinstance(signature.result, number_types.NumberType) and signature.result.dtype is not None:
                    return signature.result.number(out)
                return out
        given = ", ".join(map(number_types.described, args))
        raise TypeError(f"No matching definition for argument type(s) {given}")

    def _positional(self, args: tuple, kwargs: dict) -> tuple:
        names = self.fn.__code__.co_varnames[: self.fn.__code__.co_argcount]
        return (*args, *(kwargs[name] for name in names[len(args) :] if name in kwargs))


def options_of(given: dict) -> dict:
    """The options of ``compile`` for Numba's. KeyError for a name that Numba doesn't have, NotImplementedError for what has no counterpart."""
    known = WITHOUT_MEANING | READ
    for name in given.keys() - known:
        raise KeyError(Absent(f"unrecognized option of jit: '{name}'", name, lambda: sorted(known)))
    if given.get("locals") or given.get("pipeline_class") is not None or given.get("target", "cpu") != "cpu":
        name = next(name for name in ("locals", "pipeline_class", "target") if given.get(name))
        raise NotImplementedError(f"jit({name}=) isn't built")
    options = {}
    fast = given.get("fastmath", False)
    if fast is True or (not isinstance(fast, bool) and ("fast" in fast or REORDERING <= set(fast))):
        options["fastmath"] = True
    if given.get("cache") is False:
        options["cache"] = False
    if "parallel" in given:
        options["parallel"] = bool(given["parallel"])
    return options


def jit(signature_or_function=None, **options):
    """Compile a function, as ``flambeau.compile`` does; Numba's options are taken, by name.

    ``signature_or_function``: the function, a signature (text, ``float64(float64[:])``, or a tuple of argument types) or a list of signatures, which
    convert numbers and refuse other arrays (TypeError). ``fastmath``: True, or flags that hold at least reassoc, contract and arcp. ``cache``:
    False keeps code off the disk. ``parallel``: False keeps turns on one thread, True lets sums of floats over turns be taken in blocks. The
    others have no meaning here: nothing is ever compiled in another mode, integers don't overflow silently, indices are checked. KeyError for
    unknown options, NotImplementedError for
    ``locals``, ``pipeline_class`` and targets that aren't the CPU."""
    settings = options_of(options)
    if isinstance(signature_or_function, types.FunctionType):
        return _made(signature_or_function, [], settings)
    given = signature_or_function
    if isinstance(given, Dispatcher):
        raise TypeError("A jit decorator was called on an already jitted function")
    signatures = [signature_of(s) for s in (given if isinstance(given, list) else [] if given is None else [given])]
    return lambda function: _made(function, signatures, settings)


njit = jit
"""The same: there is no other mode than Numba's nopython."""


def _made(function, signatures: list[Signature], settings: dict) -> Dispatcher:
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"jit takes a Python function, not {type(function).__name__}")
    compiled = compile(function, options=settings or None)
    if not isinstance(compiled, _frame.CompiledFunction):
        return compiled  # compiling is turned off
    out = (TypedDispatcher if signatures else Dispatcher)(function, compiled.context)
    functools.update_wrapper(out, function)
    out._torchdynamo_orig_callable = function
    out.signatures = signatures
    return out
