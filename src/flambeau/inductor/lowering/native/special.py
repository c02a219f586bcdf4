"""Special functions in a graph: launches of the loops that SciPy's functions have (csrc/kernels/special.c), orthogonal polynomials, distances of
points, draws of categories."""

from __future__ import annotations

import math

from ....base import dtypes, kernels, ufuncs
from ....base.expr import at_least
from ....base.kernels import Distribution, Polynomial
from ....base.result_spec import ResultSpec
from ....base.shapes import broadcast_shapes
from ....core.messages import About
from ...ir.nodes import Region, dense_strides
from ...ir.sizes import sizes
from ..lazy import broadcast_coords
from .launch import as_dtype, launch

__all__ = ["categories", "distances", "polynomial", "sample", "ufunc"]

_TYPES = (dtypes.float32, dtypes.float64)


def _spread(lowering, operands, dtype):
    """Operands (tensors, or numbers) in ``dtype`` and one shape, in memory in C order."""
    tensors = [x for x in operands if hasattr(x, "sizes")]
    shape = tuple(broadcast_shapes(*(x.sizes for x in tensors)))
    out = []
    for x in operands:
        if hasattr(x, "sizes"):
            x = as_dtype(lowering, x, dtype)
            same = tuple(x.sizes) == shape
            wide = x if same else lowering.lazy(shape, dtype, lambda c, x=x: x.at(broadcast_coords(c, x.sizes)))
        else:
            wide = lowering.full(shape, dtype, x, tensors[0].device)
        out.append(lowering.contiguous(wide))
    return shape, out


def ufunc(lowering, name, operands, dtype, device, results=1):
    """The first results of SciPy's function ``name`` of tensors (and numbers) in ``dtype``, in C order; the second one is int32 where there
    are two."""
    if dtype not in _TYPES:
        raise NotImplementedError(f"there is no loop of {dtype}")
    shape, parts = _spread(lowering, operands, dtype)
    slot = ufuncs.slot_of(name, dtype is dtypes.float64)
    ufuncs.ready(slot)
    kinds = (dtype, dtypes.int32)[:results]
    outs = [ResultSpec(shape, dense_strides(shape), t, device) for t in kinds]
    return launch(lowering, kernels.ufunc, parts, outs, 100 * math.prod(shape), slot=slot)


def polynomial(lowering, val, family: Polynomial, x, n):
    """An orthogonal polynomial."""
    if val.dtype not in _TYPES:
        raise NotImplementedError(f"there is no loop of {val.dtype}")
    shape, parts = _spread(lowering, (x, n), val.dtype)
    out = ResultSpec(shape, dense_strides(shape), val.dtype, val.device)
    numbers = {"family": family, "f64": val.dtype is dtypes.float64}
    return launch(lowering, kernels.polynomial, parts, [out], 100 * math.prod(shape), **numbers)[0]


def distances(lowering, val, a, b, p: float):
    """Of each point of ``a`` (..., rows, m) to each of ``b`` (..., others, m)."""
    if val.dtype not in _TYPES or hasattr(p, "__sym__"):
        raise NotImplementedError(f"there are no distances in {val.dtype}")
    shape = sizes(val.shape)
    *batch, rows, others = shape
    m, count = a.sizes[-1], math.prod(batch)
    parts = []
    for x, n in ((a, rows), (b, others)):
        wide = (*batch, n, m)
        x = as_dtype(lowering, x, val.dtype)
        if tuple(x.sizes) != wide:
            x = lowering.lazy(wide, val.dtype, lambda c, x=x: x.at(broadcast_coords(c, x.sizes)))
        region = lowering.contiguous(x)
        parts.append(Region(region.buffer, (count, n, m), (n * m, m, 1), region.offset))
    out = ResultSpec((count, rows, others), (rows * others, others, 1), val.dtype, val.device)
    numbers = {"f64": val.dtype is dtypes.float64, "p": p, "pairs": False}
    made = launch(lowering, kernels.distances, parts, [out], 3 * math.prod(shape) * m, **numbers)[0]
    return lowering.in_memory(Region(made.region.buffer, shape, dense_strides(shape)), val.dtype, None, val.device)


def categories(lowering, p, draws, texts):
    """Places (rows, samples) of ``draws`` among the cumulative probabilities of ``p`` (rows, categories); ``texts``: what is said of a
    negative number among them, one that isn't finite, and no mass."""
    kind = p.dtype if p.dtype in _TYPES else dtypes.float32
    (rows, n), samples = p.sizes, draws.sizes[-1]
    if not at_least(rows, 1) or not at_least(n, 1):
        raise NotImplementedError("no categories")
    parts = [lowering.contiguous(as_dtype(lowering, p, kind)), lowering.contiguous(draws)]
    tags = {name: lowering.message(t, About.CONDITION) for name, t in zip(("negative", "not_finite", "no_mass"), texts)}
    out = ResultSpec((rows, samples), (samples, 1), dtypes.int64, p.device)
    flops = 10 * rows * (n + samples)
    return launch(lowering, kernels.categories, parts, [out], flops, effect=True, f64=kind is dtypes.float64, **tags)[0]


def sample(lowering, distribution: Distribution, parameters, shape, dtype, device, text=""):
    """Numbers of a distribution of csrc/kernels/random.c from the default generator, one after another, drawn in float64 and rounded to ``dtype``;
    ``parameters`` broadcast to ``shape``. ``text``: the error of a rate that is negative."""
    wide = dtypes.float64
    parts = [None]  # the default generator
    for x in parameters:
        x = as_dtype(lowering, x, wide)
        spread = lambda c, x=x: x.at(broadcast_coords(c, x.sizes))  # noqa: E731
        parts.append(lowering.contiguous(x if tuple(x.sizes) == tuple(shape) else lowering.lazy(shape, wide, spread)))
    out = ResultSpec(tuple(shape), dense_strides(shape), wide, device)
    numbers = {"distribution": distribution, "negative": lowering.message(text, About.CONDITION)}
    made = launch(lowering, kernels.sample, parts, [out], 200 * math.prod(shape), effect=True, **numbers)[0]
    return as_dtype(lowering, made, dtype)
