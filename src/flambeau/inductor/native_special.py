"""Special functions in a graph: launches of the loops that SciPy's functions have (csrc/special.c), orthogonal polynomials, distances of
points, draws of categories."""

from __future__ import annotations

import math

from ..base import dtypes, ufuncs
from ..base.expr import at_least, of
from ..base.order import KINDS, WHOLE
from ..base.select import bits
from ..base.shapes import broadcast_shapes
from .ir import Region, dense_strides
from .lazy import broadcast_coords
from .native import as_dtype, launch, message
from .sizes import sizes

__all__ = ["categories", "distances", "mode", "polynomial", "sample", "ufunc"]

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
    outs = [(shape, dense_strides(shape), t, device) for t in kinds]
    widths = [dtype.itemsize] * len(parts) + [t.itemsize for t in kinds]
    return launch(lowering, "ufunc", parts, outs, [slot, *widths], 100 * math.prod(shape), empty=True)


def polynomial(lowering, val, kind: int, x, n):
    """An orthogonal polynomial: ``kind`` by csrc/special.c."""
    if val.dtype not in _TYPES:
        raise NotImplementedError(f"there is no loop of {val.dtype}")
    shape, parts = _spread(lowering, (x, n), val.dtype)
    out = (shape, dense_strides(shape), val.dtype, val.device)
    numbers = [kind, val.dtype is dtypes.float64]
    return launch(lowering, "polynomial", parts, [out], numbers, 100 * math.prod(shape), empty=True)[0]


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
    out = ((count, rows, others), (rows * others, others, 1), val.dtype, val.device)
    numbers = [val.dtype is dtypes.float64, bits(float(p))]
    made = launch(lowering, "distances", parts, [out], numbers, 3 * math.prod(shape) * m, empty=True)[0]
    return lowering.in_memory(Region(made.region.buffer, shape, dense_strides(shape)), val.dtype, None, val.device)


def categories(lowering, p, draws, texts):
    """Places (rows, samples) of ``draws`` among the cumulative probabilities of ``p`` (rows, categories); ``texts``: what is said of a
    negative number among them, one that isn't finite, and no mass."""
    kind = p.dtype if p.dtype in _TYPES else dtypes.float32
    (rows, n), samples = p.sizes, draws.sizes[-1]
    if not at_least(rows, 1) or not at_least(n, 1):
        raise NotImplementedError("no categories")
    parts = [lowering.contiguous(as_dtype(lowering, p, kind)), lowering.contiguous(draws)]
    tags = [message(lowering, "!" + t) for t in texts]
    out = ((rows, samples), (samples, 1), dtypes.int64, p.device)
    numbers = [kind is dtypes.float64, *tags]
    return launch(lowering, "categories", parts, [out], numbers, 10 * rows * (n + samples), effect=True)[0]


def sample(lowering, what: int, parameters, shape, dtype, device, text=""):
    """Numbers of a distribution of csrc/random.c from the default generator, one after another, drawn in float64 and rounded to ``dtype``;
    ``parameters`` broadcast to ``shape``. ``text``: the error of a rate that is negative."""
    wide = dtypes.float64
    parts = []
    for x in parameters:
        x = as_dtype(lowering, x, wide)
        spread = lambda c, x=x: x.at(broadcast_coords(c, x.sizes))  # noqa: E731
        parts.append(lowering.contiguous(x if tuple(x.sizes) == tuple(shape) else lowering.lazy(shape, wide, spread)))
    out = (tuple(shape), dense_strides(shape), wide, device)
    numbers = [what, message(lowering, "!" + text)]
    made = launch(lowering, "sample", parts, [out], numbers, 200 * math.prod(shape), effect=True)[0]
    return as_dtype(lowering, made, dtype)


def mode(lowering, vals, x, dim, keepdim):
    """[values, places] of the most frequent elements along ``dim``."""
    kind = KINDS.get(x.dtype.name)
    if kind is None or not x.ndim or not at_least(math.prod(x.sizes), 1):
        raise NotImplementedError(f"there is no order of {x.ndim} dimensions of {x.dtype}, or nothing")
    d, k = dim % x.ndim, x.ndim - 1
    rest, n = [*x.sizes[:d], *x.sizes[d + 1 :]], x.sizes[d]
    lines = lowering.lazy((*rest, n), x.dtype, lambda c: x.at((*c[:d], c[k], *c[d:k])), device=x.device)
    ordered, at = lowering.arrange((None, None), WHOLE, lines, k)
    count = math.prod(rest)
    parts = [Region(t.region.buffer, (count, n), (n, 1), t.region.offset) for t in (ordered, at)]
    out = ((count,), (1,), dtypes.int64, x.device)
    place = launch(lowering, "mode", parts, [out], [kind], 4 * count * n)[0]
    place = lowering.in_memory(Region(place.region.buffer, rest, dense_strides(rest)), dtypes.int64, None, x.device)
    tag, values = message(lowering, "aten::mode"), lowering.values
    without = lambda c: (*c[:d], *c[d + 1 :]) if keepdim else tuple(c)  # noqa: E731

    def value(c):
        c = without(c)
        found = of(values.make("checked", (place.at(c), n, tag, False), "i64"))
        return x.at((*c[:d], found, *c[d:]))

    shape = sizes(vals[0].shape)
    made = lowering.lazy(shape, x.dtype, value, strides=dense_strides(shape), device=x.device)
    places = lowering.lazy(shape, dtypes.int64, lambda c: place.at(without(c)), strides=dense_strides(shape))
    return [made, places]
