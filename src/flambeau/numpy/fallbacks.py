"""Fills the tables of :mod:`table` with NumPy's own functions: where nothing else stands, and behind functions on tensors, for arguments that
those don't cover (TypeError)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core.tensor import Tensor
from ..dynamo.numpy import numpy_bridge
from .graph_calls import FUNCTIONS_BY_MODULE, GIVES_ARRAY, OF_DATA, REST, UFUNC_METHODS
from .opaque import of_data, opaque
from .promotion import is_tensor
from .table import FUNCTIONS, METHODS, OPERATORS, UFUNCS, implements, into

__all__: list[str] = []

_DATA_GIVING = {
    "delete": (1, "obj"),
    "insert": (1, "obj"),
    "histogram": (1, "bins"),
    "histogram_bin_edges": (1, "bins"),
}
"""Of those that are called with sizes known from shapes: the argument that may tell otherwise."""


def _or_numpy(impl, name: str, unknown: tuple[str, ...] = (), module: str = "numpy"):
    """A function on tensors, and for what that doesn't cover (TypeError) NumPy's own. TypeError for arguments of names that are ``unknown``."""
    whole = opaque(module, name)

    @functools.wraps(impl)
    def call(*args, **kwargs) -> Any:
        if any(k in kwargs for k in unknown):
            raise TypeError(f"{name}() got an unexpected keyword argument")
        try:
            return impl(*args, **kwargs)
        except TypeError:
            return whole(*args, **kwargs)

    return call


_entered: set[str] = set()


def _of_loaded_modules() -> Iterator[tuple[Callable, Callable]]:
    """The functions of NumPy's modules that are loaded and weren't asked for before, with what calls them."""
    for module in [m for m in FUNCTIONS_BY_MODULE if m.startswith("numpy") and m in sys.modules and m not in _entered]:
        _entered.add(module)
        for name in FUNCTIONS_BY_MODULE[module].split():
            f = getattr(sys.modules[module], name, None)  # some are newer than the oldest NumPy we run on
            if f is not None:
                yield f, opaque(module, name)


def _enter_late() -> bool:
    """Enter the functions of modules of NumPy's that the program has imported meanwhile. Whether there are new ones."""
    new = [(f, impl) for f, impl in _of_loaded_modules() if id(f) not in numpy_bridge.functions]
    for f, impl in new:
        numpy_bridge.register(f, impl)
    return bool(new)


numpy_bridge.late.append(_enter_late)


def _tells_sizes(x) -> bool:
    """Whether an argument is a mask, or the name of a rule for the number of bins."""
    return isinstance(x, str) or (is_tensor(x) and np.dtype(x.dtype.np) == np.bool_)


def _else_of_data(impl, name: str):
    """A function on tensors, and for what it doesn't cover the call whose sizes depend on values."""
    rest, place = of_data(name), _DATA_GIVING.get(name)

    @functools.wraps(impl)
    def call(*args, **kwargs) -> Any:
        if place is not None and _tells_sizes(args[place[0]] if len(args) > place[0] else kwargs.get(place[1])):
            return rest(*args, **kwargs)
        try:
            return impl(*args, **kwargs)
        except TypeError:
            return rest(*args, **kwargs)

    return call


def _fill_of_data() -> None:
    known = {id(f): i for i, (f, _) in enumerate(FUNCTIONS)}
    called = FUNCTIONS_BY_MODULE["numpy"].split()
    for name in OF_DATA.split():
        f = getattr(np, name, None)  # some are newer than the oldest NumPy we run on
        if f is None:
            continue
        if id(f) in known:
            FUNCTIONS[known[id(f)]] = (f, _else_of_data(FUNCTIONS[known[id(f)]][1], name))
        elif name in called:
            implements(f)(made := _else_of_data(opaque("numpy", name), name))
            del made.__wrapped__  # no function on tensors stands behind it
        else:
            implements(f)(of_data(name))


def _fill() -> None:
    rest = {id(getattr(np, name)): name for name in REST.split() if hasattr(np, name)}
    for i, (f, impl) in enumerate(FUNCTIONS):
        if isinstance(f, np.ufunc) or id(f) in rest:
            FUNCTIONS[i] = (f, _or_numpy(impl, rest.get(id(f)) or f.__name__))
    _fill_of_data()
    for i, (f, impl) in enumerate(FUNCTIONS):
        if f is np.linalg.norm:
            FUNCTIONS[i] = (f, _or_numpy(impl, "norm", module="numpy.linalg"))
    for name in METHODS.keys() & set(REST.split()) - {"sort"}:  # the method sorts in place
        METHODS[name] = _or_numpy(METHODS[name], name, unknown=("correction",))  # of np.var and np.std only
    known = {id(f) for f, _ in FUNCTIONS}
    for f, impl in _of_loaded_modules():
        if id(f) not in known:
            implements(f)(impl)
    for name, f in UFUNCS.items():
        if id(f) not in known and f.signature is None:
            implements(f)(opaque("numpy", name))
        for method in UFUNC_METHODS if f.nin == 2 and f.nout == 1 and f.signature is None else ():
            numpy_bridge.ufunc_methods[name, method] = opaque("numpy", f"{name}.{method}")


_fill()
_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide, "mod": np.remainder,
    "pow": np.power, "matmul": np.matmul, "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift,
}  # fmt: skip


def _in_place(impl):
    """``x op= y`` of an array: the ufunc with ``out=x``."""

    def in_place(x: Tensor, y: ArrayLike, /) -> Tensor:
        return into(x, impl(x, y), "same_kind")

    in_place.__name__ = in_place.__qualname__ = f"i{impl.__name__}"
    return in_place


_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
for _name, _ufunc in _COMPARISONS.items():
    OPERATORS[_name] = next(impl for f, impl in FUNCTIONS if f is _ufunc)
for _name, _ufunc in _OPERATORS.items():
    OPERATORS[_name] = next(impl for f, impl in FUNCTIONS if f is _ufunc)
    OPERATORS[f"i{_name.rstrip('_')}"] = _in_place(OPERATORS[_name])
for _f, _impl in FUNCTIONS:
    if f"{_f.__module__}.{getattr(_f, '__name__', '')}" in GIVES_ARRAY:
        _impl.gives_array = True  # type: ignore[attr-defined]
for _name in ("argsort", "argpartition", "searchsorted", "choose"):
    METHODS.setdefault(_name, opaque("numpy", _name))


def _reduce(function):
    """``ufunc.reduce`` by a reduction on tensors, which differs in its default axis only."""

    def reduce(
        array: ArrayLike,
        axis: int | Sequence[int] | None = 0,
        dtype: DTypeLike | None = None,
        out: Tensor | None = None,
        keepdims: bool = False,
    ) -> Tensor:
        if dtype is not None:
            return function(array, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
        return function(array, axis=axis, out=out, keepdims=keepdims)

    return reduce


for _ufunc, _function in (("add", np.sum), ("multiply", np.prod), ("maximum", np.max), ("minimum", np.min)):
    numpy_bridge.ufunc_methods[_ufunc, "reduce"] = _or_numpy(
        _reduce(next(impl for f, impl in FUNCTIONS if f is _function)), f"{_ufunc}.reduce"
    )
