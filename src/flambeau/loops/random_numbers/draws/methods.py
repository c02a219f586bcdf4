"""Methods of generators, and how they are called."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ....base.records import replace, slotted
from ... import arrays
from ...emitter import F64, I64, Emitter
from ...values import ArrayView, Declined, Known, Scalar, Stream, Tuple
from .distributions import (
    beta,
    binomial,
    choice,
    exponential,
    gamma,
    integers,
    lognormal,
    normal,
    poisson,
    randint,
    random,
    standard_exponential,
    standard_normal,
    uniform,
)
from .orders import permutation, shuffle

__all__ = ["DRAWS", "Draw", "NORMALS", "ORDERS", "draw"]

NORMALS = frozenset(("normal", "standard_normal", "randn", "lognormal"))
"""Draws for which RandomState keeps a number."""


@slotted
class Draw:
    """``of(e, stream, *parameters)``: checks the parameters and gives a function that draws one number. ``size``: which argument is the size
    by position, None where it is no argument."""

    of: Callable
    dtype: np.dtype = F64
    size: int | None = None


_COMMON = {
    "random": Draw(random, size=0), "uniform": Draw(uniform, size=2), "normal": Draw(normal, size=2), "lognormal": Draw(lognormal, size=2),
    "standard_normal": Draw(standard_normal, size=0), "exponential": Draw(exponential, size=1),
    "standard_exponential": Draw(standard_exponential, size=0), "choice": Draw(choice, I64, 1),
}  # fmt: skip
DRAWS = {
    np.random.Generator: {
        **_COMMON, "integers": Draw(integers, I64, 2), "gamma": Draw(gamma, size=2), "beta": Draw(beta, size=2), "poisson": Draw(poisson, I64, 1),
        "binomial": Draw(binomial, I64, 2),
    },
    np.random.RandomState: {
        **_COMMON, "random_sample": Draw(random, size=0), "rand": Draw(random), "randn": Draw(standard_normal), "randint": Draw(randint, I64, 2),
    },
}  # fmt: skip


@functools.cache
def _gives_python(legacy: bool, name: str) -> bool:
    """Whether NumPy gives one number as Python's."""
    rng = np.random.RandomState(0) if legacy else np.random.default_rng(0)
    given = {
        "choice": (1,),
        "randint": (1,),
        "integers": (1,),
        "gamma": (1.0,),
        "beta": (1.0, 1.0),
        "binomial": (1, 0.5),
    }.get(name, ())
    return not isinstance(getattr(rng, name)(*given), np.generic)


ORDERS = frozenset(("shuffle", "permutation"))


def draw(e: Emitter, s: Stream, name: str, args: list, kwargs: dict, place: str):
    """A call of a method of a generator: a number, or an array of numbers drawn one after another."""
    if name in ORDERS:
        if len(args) != 1 or kwargs:
            raise Declined(f"{name} with these arguments")
        return shuffle(e, s, *args) if name == "shuffle" else permutation(e, s, *args, place)
    known = DRAWS[np.random.RandomState if s.legacy else np.random.Generator].get(name)
    if known is None:
        raise Declined(f"{name} of a random generator")
    args, kwargs = list(args), dict(kwargs)
    size = kwargs.pop("size", None)
    if name in ("rand", "randn"):
        size, args = (Tuple(tuple(args)) if args else None), []
    elif known.size is not None and len(args) > known.size:
        if len(args) > known.size + 1 or size is not None:
            raise Declined(f"{name} with these arguments")
        size = args.pop()
    try:
        number = known.of(e, s, *args, **kwargs)
    except TypeError:
        raise Declined(f"{name} with these arguments") from None
    dtype = args[0].dtype if name == "choice" and isinstance(args[0], ArrayView) else known.dtype
    if size is None or (isinstance(size, Known) and size.value is None):
        weak = _gives_python(s.legacy, name) and not (name == "choice" and isinstance(args[0], ArrayView))
        return Scalar(dtype, weak, number())
    sizes = arrays.given_sizes(e, size)
    out = arrays.temporary(e, dtype, tuple(sizes), place)
    for indices in e.loop(out.sizes):
        e.store(arrays.address(e, out, indices), dtype, number())
    return replace(out)
