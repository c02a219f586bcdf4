"""NumPy's random numbers in graphs: each call is a node that calls NumPy's own generator, so that the streams are NumPy's, bit for bit.

``numpy::draw`` calls a method of a generator, given by its table (loops/random_numbers/streams.py); ``numpy::generator`` makes a generator. Both are
effects: they stay, in their order, and run once. Shape and dtype of what is drawn follow from the arguments: from ``size``, else from the parameters,
by the rules here; where a rule needs NumPy's word, the method is asked with parameters made up (:data:`MADE_UP`), on a generator of nobody's."""

from __future__ import annotations

import ast
import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _C
from ..base.device import CPU
from ..base.dtypes import from_numpy
from ..base.quiet import errstate
from ..base.shapes import contiguous_strides
from ..base.symint import NUMBERS, is_int
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.tensor import Tensor
from ..dynamo.numpy import numpy_bridge
from ..loops.random_numbers.streams import DISTRIBUTIONS, FIRST, classes, new_table, stream_of
from .literals import CONTAINERS, NONE, Kind, Literal, arguments_of, as_literal, literal, value
from .promotion import is_tensor

__all__ = ["METHODS", "draw", "generator", "make", "number"]

_COMMON = (
    "beta binomial chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric laplace logistic lognormal logseries "
    "multinomial multivariate_normal negative_binomial noncentral_chisquare noncentral_f normal pareto permutation poisson power random rayleigh "
    "shuffle standard_cauchy standard_exponential standard_gamma standard_normal standard_t triangular uniform vonmises wald weibull zipf"
)
METHODS = {
    np.random.Generator: frozenset(f"{_COMMON} integers multivariate_hypergeometric permuted".split()),
    np.random.RandomState: frozenset(f"{_COMMON} rand randint randn random_sample seed tomaxint".split()),
}
"""What graphs draw by: methods of generators whose results are arrays or numbers."""
BIT_GENERATORS = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
MAKERS = {f.__name__: f for f in (np.random.default_rng, np.random.RandomState, *BIT_GENERATORS)}
MADE_UP = {
    "low": lambda shape: np.zeros(shape), "left": lambda shape: np.zeros(shape), "right": lambda shape: np.full(shape, 2.0),
    "high": lambda shape: np.full(shape, 2), "p": lambda shape: np.full(shape, 0.5), "a": lambda shape: np.full(shape, 2.0),
    "pvals": lambda shape: np.full(shape, 1 / max(shape[-1], 1)), "cov": lambda shape: np.eye(*shape),
}  # fmt: skip
"""Parameters that a method accepts, by name; others are ones."""
TABLE = FIRST + len(DISTRIBUTIONS)  # numbers of a table


def _written(x, arrays: list, ints: list, floats: list) -> Literal:
    """A value as a literal; numbers that differ between calls are put behind ``ints`` or ``floats``."""
    if isinstance(x, type) and x in (bool, int):
        return Literal(Kind.PYTHON_TYPE, x.__name__)
    if isinstance(x, NUMBERS):
        kept, kind = (floats, Kind.VARYING_FLOAT) if x.__sym__ == "float" else (ints, Kind.VARYING_INT)
        kept.append(x)
        return Literal(kind, len(kept) - 1)
    if type(x) in (list, tuple):
        parts = [_written(y, arrays, ints, floats) for y in x]
        return Literal(Kind.LIST if type(x) is list else Kind.TUPLE, parts)
    return literal(x, arrays)


def _read(item: Literal, arrays, ints, floats):
    if item.kind is Kind.PYTHON_TYPE:
        return {"bool": bool, "int": int}[item.content]
    if item.kind is Kind.VARYING_INT:
        return ints[item.content]
    if item.kind is Kind.VARYING_FLOAT:
        return floats[item.content]
    if item.kind in CONTAINERS:
        values = [_read(y, arrays, ints, floats) for y in item.content]
        return values if item.kind is Kind.LIST else tuple(values)
    if item.kind is Kind.ARRAY:
        a = arrays[item.content]
        return a[()] if a.ndim == 0 else a
    return value(item, arrays)


@functools.lru_cache(4096)
def _parsed(call: str):
    """(class of the generator, method, positional arguments, keyword arguments). ValueError for what isn't a draw."""
    cls, method, *given = ast.literal_eval(call)
    args, kwargs = arguments_of(*given)
    cls = next((c for c in classes() if c.__name__ == cls), None)
    if cls is None or method not in METHODS[cls]:
        raise ValueError(f"{method} is not a draw that graphs make")
    return cls, method, args, kwargs


@functools.cache
def _signature(cls, method: str) -> inspect.Signature:
    """Of a method, without its first argument."""
    given = inspect.signature(getattr(cls, method))
    return given.replace(parameters=list(given.parameters.values())[1:])


@functools.cache
def _nobodys(cls):
    return np.random.Generator(np.random.PCG64(0)) if cls is np.random.Generator else np.random.RandomState(0)


@functools.lru_cache(4096)
def _sampled(cls, method: str, given: str, shapes: tuple):
    """What a call gives with arrays of these (name of the parameter, shape, dtype) made up."""
    arrays = [MADE_UP.get(name, np.ones)(shape).astype(dtype) for name, shape, dtype in shapes]
    values = {name: _read(as_literal(item), arrays, (), ()) for name, item in ast.literal_eval(given)}
    with errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return getattr(_nobodys(cls), method)(**values)


def _sizes(item: Literal | None, ints) -> tuple | None:
    """The value of ``size``, where it is one that the rules understand."""
    if item is None or item == NONE:
        return None
    if item.kind in CONTAINERS:
        out = [_sizes(y, ints) for y in item.content]
        return tuple(n for part in out for n in part)
    size = ints[item.content] if item.kind is Kind.VARYING_INT else None
    if item.kind in (Kind.VALUE, Kind.SCALAR):
        size = value(item, ()) if item.kind is Kind.VALUE else item.content[1]
    if not is_int(size) or size < 0:
        raise TypeError("the shape of what is drawn depends on values, or is none")
    return (size,)


def _described(call: str, arrays, ints) -> tuple[tuple, np.dtype, type]:
    """(shape, dtype, type of the Python object) of what a call gives. TypeError where that can't be told."""
    cls, method, args, kwargs = _parsed(call)
    if method in ("rand", "randn"):
        if kwargs:
            raise TypeError(f"{method}() takes no keyword arguments")
        return _sizes(Literal(Kind.TUPLE, args), ints), np.dtype(np.float64), np.ndarray if args else float
    if method == "seed":
        return (), np.dtype(np.int64), type(None)
    given = _signature(cls, method).bind(*args, **kwargs).arguments
    if "out" in given:
        raise TypeError(f"{method} with out=")

    def shape_of(item: Literal) -> tuple[int, ...] | None:
        return tuple(arrays[item.content].shape) if item.kind is Kind.ARRAY else None

    def dtype_of(item: Literal) -> np.dtype:
        a = arrays[item.content]
        return a.dtype if isinstance(a, np.ndarray) else np.dtype(a.dtype.np)

    size = _sizes(given.get("size"), ints)
    if method in ("permutation", "shuffle", "permuted"):
        of = shape_of(given["x"])
        if of:
            return of, dtype_of(given["x"]), np.ndarray
        if of is None and method == "permutation":
            return _sizes(given["x"], ints), np.dtype(np.int64), np.ndarray
        raise TypeError(f"{method} of this")
    if method == "choice":
        of = shape_of(given["a"]) or ()
        axis = given.get("axis", Literal(Kind.VALUE, 0)).content
        if (
            given["a"].kind in CONTAINERS
            or (len(of) > 1 and cls is np.random.RandomState)
            or not -max(len(of), 1) <= axis < max(len(of), 1)
        ):
            raise TypeError("choice of this")
        shape = (*of[:axis], *(size or ()), *of[axis + 1 :]) if of else size or ()
        dtype = dtype_of(given["a"]) if of else np.dtype(np.int64)
        if size is None and not shape:
            return (), dtype, dtype.type if of else type(_nobodys(cls).choice(1))
        return shape, dtype, np.ndarray
    made = {name: item for name, item in given.items() if name != "size"}
    shapes, known = [], {}
    for name, item in made.items():
        if item.kind is Kind.ARRAY:
            shapes.append((name, tuple(int(n) for n in arrays[item.content].shape), dtype_of(item).str))
            item = Literal(Kind.ARRAY, len(shapes) - 1)
        # A parameter that varies: its rule is that of an array without dimensions.
        elif item.kind in (Kind.VARYING_INT, Kind.VARYING_FLOAT):
            shapes.append((name, (), "<i8" if item.kind is Kind.VARYING_INT else "<f8"))
            item = Literal(Kind.ARRAY, len(shapes) - 1)
        elif item.kind in CONTAINERS and any(y.kind not in (Kind.VALUE, Kind.SCALAR) for y in item.content):
            raise TypeError(f"{method} with a list of values that are known later")
        known[name] = item
    few = size is not None and not any(
        shape for name, shape, _ in shapes if name not in ("pvals", "cov", "mean", "alpha", "colors")
    )
    if size is not None:
        known["size"] = Literal(Kind.TUPLE, [Literal(Kind.VALUE, 1 if few else int(n)) for n in size])
    try:
        out = _sampled(cls, method, repr(list(known.items())), tuple(shapes))
    except Exception as e:
        raise TypeError(f"{method}: {type(e).__name__}: {e}") from e
    if not isinstance(out, (np.ndarray, np.generic, int, float)):
        raise TypeError(f"{method} gives {type(out).__name__}")
    shape = np.shape(out)
    if few:
        shape = (*size, *shape[len(size) :])
    return shape, np.asarray(out).dtype, type(out)


def _meta(stream, arrays, ints, floats, call):
    shape, dtype, _ = _described(call, arrays, ints)
    return TensorMeta(tuple(shape), contiguous_strides(tuple(shape)), from_numpy(dtype), CPU)


@extern(
    "numpy::draw(Tensor stream, Tensor[] arrays, SymInt[] ints, float[] floats, str call) -> Tensor",
    meta=_meta, variants="", tags=("has_side_effects",),
)  # fmt: skip
def draw(
    stream: np.ndarray, arrays: Sequence[np.ndarray], ints: Sequence[int], floats: Sequence[float], call: str
) -> np.ndarray:
    """A call of a method of the generator that the table ``stream`` belongs to."""
    shape, dtype, _ = _described(call, arrays, ints)
    owner = stream_of(stream)
    cls, method, args, kwargs = _parsed(call)
    values = [_read(item, arrays, ints, floats) for item in args]
    named = {name: _read(item, arrays, ints, floats) for name, item in kwargs.items()}
    owner.remember()
    if method == "shuffle":
        out = _shuffled(owner.generator, *values, **named)
    else:
        out = getattr(owner.generator, method)(*values, **named)
    if out is None:
        out = 0
    out = np.asarray(out)
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise RuntimeError(_unexpected(call, out, dtype, shape))
    return _own(out)


def _own(out: np.ndarray) -> np.ndarray:
    """In memory of its own, row by row."""
    return out if out.base is None and out.flags.c_contiguous else np.array(out, order="C")


def _unexpected(call: str, out: np.ndarray, dtype, shape) -> str:
    return f"{call} gave {out.dtype}{list(out.shape)}, where {dtype}{list(shape)} was expected"


def _prepared(template: list):
    """How a graph calls a draw, see ``EagerCall``: what doesn't change between calls is read once."""
    stream, arrays, ints, floats, call = template
    if any(hasattr(x, "look") for x in (*ints, *floats)):
        return None
    _, method, args, kwargs = _parsed(call)
    places = [slot.k for slot in arrays]
    known = None if places else [_read(item, (), ints, floats) for item in args]
    named = None if places else {name: _read(item, (), ints, floats) for name, item in kwargs.items()}
    promised: dict[tuple, tuple] = {}

    def run(*given) -> list[Tensor]:
        owner = stream_of(given[0]._array)
        values = [given[k]._array for k in places]
        key = tuple([(v.shape, v.dtype) for v in values])
        if key not in promised:
            promised[key] = _described(call, values, ints)
        shape, dtype, _ = promised[key]
        owner.remember()
        draws = (
            functools.partial(_shuffled, owner.generator) if method == "shuffle" else getattr(owner.generator, method)
        )
        if known is None or named is None:
            out = draws(
                *[_read(item, values, ints, floats) for item in args],
                **{name: _read(item, values, ints, floats) for name, item in kwargs.items()},
            )
        else:
            out = draws(*known, **named)
        out = np.asarray(0 if out is None else out)
        if out.shape != shape or out.dtype != dtype:
            raise RuntimeError(_unexpected(call, out, dtype, shape))
        return [_C.from_array(_own(out))]

    return run


def _shuffled(generator, x, **kwargs) -> np.ndarray:
    x = np.array(x)
    generator.shuffle(x, **kwargs)
    return x


draw.override("prepared", _prepared)


@extern(
    "numpy::generator(Tensor[] arrays, SymInt[] ints, str call) -> Tensor",
    meta=lambda arrays, ints, call: TensorMeta((TABLE,), (1,), from_numpy(np.dtype(np.int64)), CPU),
    variants="", tags=("has_side_effects",),
)  # fmt: skip
def generator(arrays: Sequence[np.ndarray], ints: Sequence[int], call: str) -> np.ndarray:
    """The table of a new generator: ``default_rng(...)``, ``RandomState(...)`` or that of a bit generator."""
    name, *given = ast.literal_eval(call)
    args, kwargs = arguments_of(*given)
    values = [_read(item, arrays, ints, ()) for item in args]
    made = MAKERS[name](*values, **{k: _read(item, arrays, ints, ()) for k, item in kwargs.items()})
    if isinstance(made, BIT_GENERATORS):
        made = np.random.Generator(made)
    return new_table(made)._array


def make(name: str) -> Callable:
    """``np.random.NAME(...)`` as a function that gives the table of a generator."""

    def call(*args, **kwargs) -> Tensor:
        arrays, ints, floats = [], [], []
        text = repr(
            (
                name,
                [_written(a, arrays, ints, floats) for a in args],
                {k: _written(v, arrays, ints, floats) for k, v in kwargs.items()},
            )
        )
        if floats or any(not is_tensor(a) for a in arrays):
            raise TypeError(f"np.random.{name} of these arguments")
        return generator(arrays, ints, text)

    call.__name__ = call.__qualname__ = f"numpy_random_{name}"
    return call


def number(cls, method: str) -> Callable:
    """The method of a generator's class as a function of its table: a tensor."""

    def call(stream: Tensor, *args, **kwargs) -> Any:
        arrays, ints, floats = [], [], []
        text = repr(
            (
                cls.__name__,
                method,
                [_written(a, arrays, ints, floats) for a in args],
                {k: _written(v, arrays, ints, floats) for k, v in kwargs.items()},
            )
        )
        if any(not is_tensor(a) for a in arrays):
            raise TypeError(f"{method} with an array that isn't an argument of the captured function")
        if _C.tls("grad_enabled") and any(a.requires_grad for a in arrays):
            raise NotImplementedError(f"what np.random's {method} draws has no derivative by its parameters")
        made[0] = _described(text, arrays, ints)[2]
        out = draw(stream, arrays, ints, floats, text)
        if method == "shuffle":
            (x,) = arrays
            x.copy_(out)
        return out

    # The type of the last draw: capture reads it.
    made: list[Any] = [None]
    call.made = made  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = f"numpy_random_{method}"
    return call


def _enter() -> None:
    for cls, names in METHODS.items():
        for name in names:
            numpy_bridge.draws[cls, name] = number(cls, name)
    for name, f in MAKERS.items():
        numpy_bridge.makers[id(f)] = f, make(name)
    for f, method in ((np.random.seed, "seed"), (np.random.ranf, "random_sample"), (np.random.sample, "random_sample")):
        numpy_bridge.of_the_global[id(f)] = f, method


_enter()
