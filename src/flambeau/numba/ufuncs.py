"""``vectorize`` and ``guvectorize``: functions of numbers, or of small arrays, applied along all other dimensions by a native loop."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler import compile
from .dispatchers import options_of
from .inference import result_dtype
from .types import NumberType, Signature, signature_of

__all__ = ["GeneralizedUfunc", "VectorizedFunction", "guvectorize", "vectorize"]


def _compiled(source: str, function: Callable, options: dict) -> Callable:
    """A function that calls ``function`` for elements, made from text, compiled."""
    scope: dict[str, Any] = {"function": function, "__name__": __name__}
    exec(source, scope)
    return compile(scope["run"], options=options or None)


class VectorizedFunction:
    """A function of numbers that takes arrays. ``types``: its signatures; empty where the types of a call decide."""

    def __init__(self, function: Callable, signatures: list[Signature], identity, options: dict):
        functools.update_wrapper(self, function)
        self.py_func, self.types, self.identity, self._options = function, signatures, identity, options
        self.nin, self.nout = function.__code__.co_argcount, 1
        self.nargs = self.nin + 1

    @functools.cached_property
    def _elements(self) -> Callable:
        names = [f"a{k}" for k in range(self.nin)]
        call = ", ".join(f"{n}[i]" for n in names)
        return self._run(
            f"def run(out, {', '.join(names)}):\n for i in range(len(out)):\n  out[i] = function({call})\n"
        )

    @functools.cached_property
    def _folded(self) -> Callable:
        """Of rows: all partial results."""
        return self._run(
            "def run(out, a):\n for i in range(a.shape[0]):\n  s = a[i, 0]\n  out[i, 0] = s\n"
            "  for j in range(1, a.shape[1]):\n   s = function(s, a[i, j])\n   out[i, j] = s\n"
        )

    def _run(self, source: str) -> Callable:
        return _compiled(source, self.py_func, self._options)

    def _typed(self, arrays: list[np.ndarray]) -> tuple[list[np.ndarray], np.dtype | None]:
        """The arguments in the types of a signature, and that of the result; None where it has to be found out."""
        if not self.types:
            return arrays, result_dtype(self.py_func, tuple(a.dtype for a in arrays))
        for s in self.types:
            if all(np.can_cast(a.dtype, t.dtype, "safe") for a, t in zip(arrays, s.arguments)):
                return [a.astype(t.dtype, copy=False) for a, t in zip(arrays, s.arguments)], s.result.dtype
        raise TypeError(
            f"ufunc '{self.__name__}' not supported for the input types, and the inputs could not be safely coerced to any "
            "supported types according to the casting rule ''safe''"
        )

    def __call__(self, *args, out=None):
        if len(args) == self.nargs and out is None:
            *args, out = args
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} arguments, and {len(args)} were given")
        arrays, dtype = self._typed([np.asarray(a) for a in args])
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        flat = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
        if dtype is None:
            made = np.array([self.py_func(*numbers) for numbers in zip(*flat)])
        else:
            made = np.empty(math.prod(shape), dtype)
            if made.size:
                self._elements(made, *flat)
        made = made.reshape(shape)
        if out is None:
            return made[()]
        np.copyto(out, made, casting="same_kind")
        return out

    def _rows(self, array, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """The lines along an axis, and all partial results of each."""
        if self.nin != 2:
            raise ValueError("reduce and accumulate are of binary functions only")
        array = np.moveaxis(np.asarray(array), axis, -1)
        (array, _), dtype = self._typed([array, array])
        rows = np.ascontiguousarray(array).reshape(math.prod(array.shape[:-1]), array.shape[-1])
        partial = np.empty(rows.shape, rows.dtype if dtype is None else dtype)
        if rows.size:
            self._folded(partial, rows.astype(partial.dtype, copy=False))
        return array, partial

    def accumulate(self, array, axis: int = 0) -> np.ndarray:
        """Partial results along an axis."""
        array, partial = self._rows(array, axis)
        return np.moveaxis(partial.reshape(array.shape), -1, axis)

    def reduce(self, array, axis: int = 0):
        """The function of an element and the next, and so on along an axis. ValueError for none, where there is no ``identity``."""
        array, partial = self._rows(array, axis)
        if array.shape[-1]:
            return partial[:, -1].reshape(array.shape[:-1])[()]
        if self.identity is None:
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
        return np.full(array.shape[:-1], self.identity, partial.dtype)[()]

    def outer(self, a, b):
        """Of all pairs of elements."""
        a, b = np.asarray(a), np.asarray(b)
        return self(a.reshape(a.shape + (1,) * b.ndim), b)


def vectorize(signatures=None, *, identity=None, **options):
    """A function of numbers as one of arrays, broadcast against each other: ``@vectorize``, ``@vectorize(["float64(float64, float64)"])``.

    With signatures the first that all arguments can be cast to safely is taken, and says the dtype of the result; without, the dtype is what the
    results of all paths have in common. The result has ``reduce``, ``accumulate`` (along one axis) and ``outer``; ``identity``: what ``reduce`` of
    nothing is. ``target``: "cpu" or "parallel", which are the same. Options as of ``jit``."""
    if callable(signatures) and not isinstance(signatures, Signature):
        return VectorizedFunction(signatures, [], identity, {})
    if options.get("target") == "parallel":
        del options["target"]
    settings = options_of(options)
    given = signatures if isinstance(signatures, list | tuple) else [] if signatures is None else [signatures]
    types = [signature_of(s) for s in given]
    if any(not isinstance(t, NumberType) or t.dtype is None for s in types for t in (*s.arguments, s.result)):
        raise TypeError("vectorize takes signatures of numbers with a result")
    return lambda function: VectorizedFunction(function, types, identity, settings)


class GeneralizedUfunc:
    """A function that takes and writes arrays of the last dimensions, applied along all dimensions before them."""

    def __init__(self, function: Callable, signatures: list[Signature], layout: str, options: dict):
        functools.update_wrapper(self, function)
        self.py_func, self.types, self.signature = function, signatures, layout
        self._in, self._out = (
            [part.split(",") if part else [] for part in re.findall(r"\(([^()]*)\)", side)]
            for side in layout.replace(" ", "").split("->")
        )
        names = [f"a{k}" for k in range(len(self._in) + len(self._out))]
        kinds = [
            isinstance(t, NumberType) for t in signatures[0].arguments
        ]  # numbers, of which the function gets no arrays
        cores = [*self._in, *self._out]
        given = [
            f"{n}[i]" if core or number else f"{n}[i:i + 1]"
            for n, core, number in zip(names, cores, kinds, strict=True)
        ]
        source = f"def run(n, {', '.join(names)}):\n for i in range(n):\n  function({', '.join(given)})\n"
        self._call = _compiled(source, function, options)

    def __call__(self, *args, out=None):
        n = len(self._in)
        outs = list(args[n:]) + ([] if out is None else list(out) if isinstance(out, tuple) else [out])
        if len(args) < n or len(outs) not in (0, len(self._out)):
            raise TypeError(f"{self.__name__}() takes {n} arguments, and {len(self._out)} more for its results")
        arrays = [np.asarray(a) for a in args[:n]]
        chosen = self._chosen(arrays)
        sizes: dict[str, int] = {}
        for letters, a in zip(self._in, arrays):
            if a.ndim < len(letters):
                raise ValueError(
                    f"{self.__name__}: an argument of {a.ndim} dimensions where {self.signature} wants {len(letters)}"
                )
            for letter, size in zip(letters, a.shape[a.ndim - len(letters) :]):
                if sizes.setdefault(letter, size) != size:
                    raise ValueError(
                        f"{self.__name__}: mismatch in core dimension {letter}: {size} and {sizes[letter]}"
                    )
        outer = np.broadcast_shapes(*(a.shape[: a.ndim - len(letters)] for letters, a in zip(self._in, arrays)))
        turns = math.prod(outer)
        flat = []
        for letters, a, t in zip(self._in, arrays, chosen):
            core = a.shape[a.ndim - len(letters) :]
            flat.append(np.broadcast_to(a.astype(t, copy=False), (*outer, *core)).reshape(turns, *core))
        made = [np.zeros((turns, *(sizes[k] for k in letters)), t) for letters, t in zip(self._out, chosen[n:])]
        if turns:
            self._call(turns, *flat, *made)
        made = [m.reshape(*outer, *m.shape[1:])[()] for m in made]
        for target, m in zip(outs, made):
            np.copyto(target, m, casting="same_kind")
        made = outs or made
        return made[0] if len(made) == 1 else tuple(made)

    def _chosen(self, arrays: list[np.ndarray]) -> list[np.dtype]:
        for s in self.types:
            dtypes = [getattr(t, "of", t).dtype for t in s.arguments]
            if all(np.can_cast(a.dtype, t, "safe") for a, t in zip(arrays, dtypes)):
                return dtypes
        raise TypeError(f"ufunc '{self.__name__}' not supported for the input types")


def guvectorize(signatures, layout: str, **options):
    """``@guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")``: a function that is given arrays of the last dimensions and writes its results,
    along all dimensions before. A result without dimensions is an array of one element in the function. Options as of ``jit``."""
    if options.get("target") == "parallel":
        del options["target"]
    settings = options_of(options)
    types = [signature_of(s) for s in (signatures if isinstance(signatures, list) else [signatures])]
    return lambda function: GeneralizedUfunc(function, types, layout, settings)
