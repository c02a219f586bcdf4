"""Results whose sizes depend on data: a kernel counts, a bind step of the graph makes the number a size (csrc/runtime/launch_step.c), the kernels
after it run with that size.

No Python runs between them. `bind` is what all of this is made with; a number that the program reads out of a tensor (``x.item()``)
is bound the same way."""

from __future__ import annotations

import math

from ....base import dtypes, kernels
from ....base.expr import Symbol, at_least, of, substitute, symbols
from ....base.kernels import ORDERED, Sign, element
from ....base.records import astuple, made_by, slotted
from ....base.relations import Junction, Rel, as_symbol
from ....base.relations import symbols as symbols_of
from ....base.result_spec import ResultSpec
from ....base.shape_env import LARGEST
from ....base.shapes import broadcast_shapes
from ....core.messages import About
from ...assembly.dtypes import compute_type
from ...ir.nodes import BufferKind, ExternCall, Region, dense_strides
from ...ir.sizes import size, sizes
from ...ir.values import short
from ..lazy import LazyTensor, broadcast_coords, strides_of
from .launch import Native, as_dtype, launch

__all__ = [
    "advanced",
    "assertion",
    "bind",
    "bincount",
    "chosen",
    "by_edges",
    "columns",
    "item",
    "masked",
    "for_all",
    "nonzero",
    "placed",
    "places_to_put",
    "repeated",
    "runs",
    "selected",
]

ROW = 8  # elements of a row from which on single rows are written, and not all chosen from
_SIGNS = {"==": Sign.EQUAL, "!=": Sign.UNEQUAL, ">=": Sign.AT_LEAST}


@slotted(frozen=False)
class Bound:
    """The data of a bind step. ``any_fits``: whether each number that is counted is one that the symbol may have."""

    numbers: list = made_by(list)
    any_fits: bool = False


def bind(lowering, number: Region, n, text: str = "") -> None:
    """Bind ``n``, a size of the program's or a bare symbol, to the int64 stored at ``number``. If it has a value already, emit a check that
    raises RuntimeError(text) on a mismatch."""
    if hasattr(n, "__sym__"):
        lowering.meet(n)
    e = size(n)
    s = as_symbol(e)
    if s is None or s in lowering.late or s in lowering.values.hints or s in _given(lowering):
        expect(
            lowering,
            "==",
            e,
            lowering.message((text or f"a size that depends on data is not {e!r}"), About.CONDITION),
            number,
        )
        return
    _bind_symbol(lowering, number, s)


def _given(lowering) -> set:
    """The symbols that inputs have."""
    inputs = (lowering.buffers[name] for name in lowering.inputs if name is not None)
    return {s for e in (*lowering.numbers.values(), *(n for b in inputs for n in b.shape)) for s in symbols(e)}


def _bind_symbol(lowering, number: Region, s: Symbol) -> None:
    buffer = lowering.new_buffer((), (), "i64", BufferKind.NUMBER)
    buffer.constant = of(s)
    lowering.late[s] = buffer.name
    lowering.add(
        ExternCall("bind", repr(s), [number], [buffer.name], Bound(any_fits=s.lo <= 0 and s.hi >= LARGEST), effect=True)
    )


def expect(lowering, sign: str, e, tag: int, number: Region | None = None) -> None:
    """The graph ends with message ``tag`` unless ``e``, or ``number`` minus ``e``, has this relation to 0. What follows and depends on the
    symbols in ``e`` runs later."""
    out = lowering.new_buffer((), (), "i64", BufferKind.NUMBER)
    packed = list(kernels.expect.pack(sign=_SIGNS[sign], number=e, failure=tag))
    plan = Native(kernels.expect, packed, 1, kernels.given(kernels.expect, [number], []))
    lowering.add(ExternCall("native", "expect", [] if number is None else [number], [out.name], plan, effect=True))
    for s in symbols(e):
        if s in lowering.late:
            lowering.late[s] = out.name


def assertion(lowering, val, condition, text: str) -> None:
    """``_assert_scalar`` of a relation of integers, each part checked before what comes after."""
    relation = getattr(condition, "expr", None)
    parts = relation.args[1:] if isinstance(relation, Junction) and relation.args[0] == "and" else (relation,)
    if not all(isinstance(p, Rel) and all(isinstance(s, Symbol) for s in symbols_of(p)) for p in parts):
        raise NotImplementedError("a condition on other numbers")
    tag = lowering.message(text, About.CONDITION)
    # What was learnt after this line of the program may tell what a symbol is: then nothing binds it. One that is bound has its value from data: the
    # condition itself may be what was learnt of it.
    known = {s: e for s, e in condition.env.replacements.items() if s not in lowering.late}
    for p in parts:
        expect(lowering, p.args[0], substitute(p.args[1], known), tag)


def item(lowering, val, x):
    """The number in a tensor of one element: a floating-point one stays in memory, an integer or truth value becomes a symbol."""
    if not hasattr(val, "__sym__") or x.dtype.is_complex or x.dtype is dtypes.uint64:
        raise NotImplementedError("a number that is known, or has no symbol")
    values, zero = lowering.values, (0,) * x.ndim
    inside = symbols_of(val.expr)
    whole = all(isinstance(s, Symbol) for s in inside)
    kind = dtypes.int64 if whole else dtypes.float64
    t = short(kind)
    region = lowering.realize(lowering.lazy((), kind, lambda c: values.cast(x.at(zero), t), device=x.device))
    lowering.meet(val)
    if whole:
        (symbol,) = inside
        _bind_symbol(lowering, region, symbol)
    else:
        lowering.values.scalars[val.expr] = region.buffer
    return val


# ---- masks ---------------------------------------------------------------------------------------------------------------------


def _truth(lowering, x) -> Region:
    """Whether elements aren't zero, in memory in C order."""
    if x.dtype is dtypes.bool_:
        return lowering.contiguous(x)
    if x.dtype.is_complex:
        raise NotImplementedError("places of complex numbers")
    values, t = lowering.values, short(x.dtype)
    zero = values.const(0, t)
    return lowering.contiguous(
        lowering.lazy(x.sizes, dtypes.bool_, lambda c: values.make("ne", (x.at(c), zero), "bool"), device=x.device)
    )


def _counted(lowering, region, device) -> Region:
    out = ResultSpec((), (), dtypes.int64, device)
    return launch(lowering, kernels.count, [region], [out], math.prod(region.shape))[0].region


def _places(lowering, region, count, device, fill=0):
    """Coordinates (count, dimensions) of what holds; those of one dimension lie together."""
    shape = count, len(region.shape)
    out = ResultSpec(shape, (1, count), dtypes.int64, device)
    return launch(lowering, kernels.nonzero, [region], [out], 2 * math.prod(region.shape), fill=fill)[0]


def nonzero(lowering, val, x, fill=None):
    """``fill``: the number in rows beyond the last place, of a result of a size that is known."""
    region = _truth(lowering, x)
    if fill is None:
        bind(lowering, _counted(lowering, region, val.device), val.shape[0])
    elif not at_least(size(val.shape[0]), 0):
        raise NotImplementedError("a size that may be negative")
    return _places(lowering, region, size(val.shape[0]), val.device, fill or 0)


def columns(lowering, region, count, device) -> list:
    """The coordinates of the ``count`` elements that hold, one tensor a dimension."""
    placed = _places(lowering, region, count, device).region
    return [
        lowering.in_memory(Region(placed.buffer, (count,), (1,), count * d), dtypes.int64, (1,), device)
        for d in range(len(region.shape))
    ]


def masked(lowering, shape, indices, count, text: str = ""):
    """``indices`` of a tensor of this shape with a mask among them replaced by the coordinates of what it holds. ``count(dimension)``: how
    many these are, where the dimension of the result for them is that one. NotImplementedError for more than one mask, or one beside a
    tensor that it might be broadcast with."""
    masks = [k for k, t in enumerate(indices) if t is not None and t.dtype in (dtypes.bool_, dtypes.uint8)]
    if not masks:
        return indices
    (at, *more) = masks
    if more or any(t is not None and k != at and t.ndim for k, t in enumerate(indices)):
        raise NotImplementedError("a mask beside other tensors")
    mask = indices[at]
    if (
        not mask.ndim
        or any(m is not n and m != n for m, n in zip(mask.sizes, shape[at : at + mask.ndim], strict=False))
        or len(shape) < at + mask.ndim
    ):
        raise NotImplementedError("a mask of another shape than its dimensions")
    region = _truth(lowering, mask)
    wide = [*indices[:at], *[mask] * mask.ndim, *indices[at + 1 :]]
    given = [k for k, t in enumerate(wide) if t is not None]
    n = count(given[0] if given == list(range(given[0], given[-1] + 1)) else 0)
    bind(lowering, _counted(lowering, region, mask.device), n, text)
    return [*indices[:at], *columns(lowering, region, size(n), mask.device), *indices[at + 1 :]]


def chosen(lowering, val, x, mask) -> LazyTensor | None:
    """What lies in ``x`` where a mask of its first dimensions holds, as rows one after the other; None for other masks and results."""
    rest = x.sizes[mask.ndim :]
    alike = (
        mask.ndim
        and len(x.sizes) >= mask.ndim
        and all(size(m - n) == 0 for m, n in zip(mask.sizes, x.sizes, strict=False))
    )
    strides = strides_of(val)
    if not alike or 0 in x.sizes or any(type(n) is not int for n in rest) or strides != dense_strides(sizes(val.shape)):
        return None
    region, source = _truth(lowering, mask), lowering.contiguous(x)
    bind(lowering, _counted(lowering, region, val.device), val.shape[0])
    out = ResultSpec(sizes(val.shape), strides, x.dtype, val.device)
    row = math.prod(rest) * x.dtype.itemsize
    return launch(lowering, kernels.chosen, [source, region], [out], math.prod(region.shape), bytes=row)[0]


def selected(lowering, val, x, mask):
    """masked_select."""
    if mask.dtype is not dtypes.bool_:
        raise NotImplementedError("a mask of another dtype is refused")
    if (found := chosen(lowering, val, x, mask)) is not None:
        return found
    shape = tuple(_broadcast(x.sizes, mask.sizes))
    wide = lowering.lazy(shape, dtypes.bool_, lambda c: mask.at(broadcast_coords(c, mask.sizes)), device=val.device)
    region = _truth(lowering, wide)
    bind(lowering, _counted(lowering, region, val.device), val.shape[0])
    at = columns(lowering, region, size(val.shape[0]), val.device)
    tag = lowering.message("aten::masked_select")

    def place(c, d):
        return of(lowering.values.make("checked", (at[d].at(c), shape[d], tag, False), "i64"))

    read = lambda c: x.at(broadcast_coords(tuple(place(c, d) for d in range(len(shape))), x.sizes))  # noqa: E731
    return lowering.lazy(sizes(val.shape), x.dtype, read, strides=(1,), device=val.device)


def _broadcast(a, b):
    wide = max(len(a), len(b))
    for m, n in zip((1,) * (wide - len(a)) + tuple(a), (1,) * (wide - len(b)) + tuple(b)):
        yield n if type(m) is int and m == 1 else m


def for_all(lowering, val, x, mask, source, accumulate):
    """``x`` with ``source`` put, or added, at each place where ``mask`` (of the first dimensions of ``x``) holds; None where each place has
    an element of its own."""
    tail = x.ndim - mask.ndim
    if source.ndim > tail and not (source.ndim == tail + 1 and type(source.sizes[0]) is int and source.sizes[0] == 1):
        return None
    _refuse_unknown(source.sizes[max(source.ndim - tail, 0) :], x.sizes[mask.ndim :])
    in_place = x.region is not None and lowering.overwritten and not x.dtype.is_complex
    if in_place and lowering.values.hint(math.prod(x.sizes[mask.ndim :])) >= ROW:
        return None  # into the memory itself: only the rows where the mask holds are written
    # A mask of what its rows are written into is another one behind the first element.
    if tail and lowering.overwritten:
        mask = lowering.in_memory(_truth(lowering, mask), dtypes.bool_, device=mask.device)
    values, t = lowering.values, short(x.dtype)
    handler = lowering.handler(compute_type(t))

    def at(c):
        there = values.cast(source.at(broadcast_coords((0, *c[mask.ndim :]), source.sizes)), t)
        kept = x.at(c)
        if accumulate:
            both = (values.cast(v, compute_type(t)) for v in (kept, there))
            there = values.cast(handler.add(*both), t)
        wide = (values.cast(v, compute_type(t)) for v in (there, kept))
        holds = values.cast(mask.at(c[: mask.ndim]), "bool")
        return values.cast(handler.where(holds, *wide), t)

    return lowering.lazy(x.sizes, x.dtype, at, strides=sizes(val.stride()), device=val.device)


def _refuse_unknown(given, shape) -> None:
    """NotImplementedError unless values of the sizes ``given`` are known to be broadcast to the last dimensions of ``shape``, of which one that is
    None fits any: the eager kernel says what is wrong."""
    for n, m in zip(reversed(given), reversed(shape)):
        if m is not None and not (type(n) is int and n == 1) and size(n - m) != 0:
            raise NotImplementedError("values of sizes that only data tells")


def places_to_put(lowering, x, indices, source):
    """The indices of a write with a mask replaced by coordinates of the places where it holds. ``source`` has an element, or a row, for each of
    them, or one for all."""
    if all(t is None or t.dtype not in (dtypes.bool_, dtypes.uint8) for t in indices):
        return indices
    (at, *more) = [k for k, t in enumerate(indices) if t is not None]
    mask = indices[at]
    tail = x.ndim - at - mask.ndim
    if more or tail < 0 or source.ndim > at + 1 + tail:
        raise NotImplementedError("a mask beside other tensors, or values of other dimensions")
    _refuse_unknown(source.sizes, (*x.sizes[:at], None, *x.sizes[at + mask.ndim :]))
    count = source.sizes[source.ndim - tail - 1] if source.ndim > tail else 1
    if type(count) is int and count == 1:
        count = _some(lowering)
    shape = ", ".join((*map(str, x.sizes[:at]), "{value}", *map(str, x.sizes[at + mask.ndim :])))
    given = ", ".join(map(str, source.sizes))
    text = f"shape mismatch: value tensor of shape [{given}] cannot be broadcast to indexing result of shape [{shape}]"
    found = masked(lowering, x.sizes, indices, lambda at: count, text)
    if mask.ndim == 1 and lowering.checks_first:  # a place that holds is one of the mask
        region = found[at].region
        lowering.inside[region.buffer] = x.sizes[at]
        lowering.checked[(*astuple(region), x.sizes[at], True)] = found[at]
    return found


def _some(lowering):
    """A number that nothing else knows yet: how many places there are."""
    return of(Symbol(f"places{len(lowering.buffers)}", 0, LARGEST))


def placed(lowering, val, x, mask, source):
    """``x`` with the elements of a vector one after the other where ``mask`` holds, from the first again behind the last."""
    if val.dtype.is_complex:
        raise NotImplementedError("writes of complex numbers by index")
    count = _some(lowering)
    given = lowering.in_memory(lowering.contiguous(source), source.dtype)
    turns = lowering.lazy((count,), source.dtype, lambda c: given.at((c[0] % given.sizes[0],)))
    return lowering.put(x, [mask], turns, False, val)


# ---- runs of equal rows ---------------------------------------------------------------------------------------------------------


def runs(lowering, vals, x, dim, ordered: bool, wanted):
    """[values, runs of rows, their lengths] of unique (``ordered``) and unique_consecutive; ``dim`` None: of all elements. ``wanted``:
    which of the last two are; the others are empty."""
    kind = element(x.dtype, ORDERED)
    if kind is None:
        raise NotImplementedError(f"there is no order of {x.dtype}")
    device, values = vals[0].device, lowering.values
    count = math.prod(x.sizes) if dim is None else x.sizes[dim]
    if dim is None:
        region = lowering.contiguous(x)
        lines, wide = Region(region.buffer, (count,), (1,), region.offset), 1
        rows = Region(region.buffer, (count, 1), (1, 1), region.offset)
    else:
        rest = [*x.sizes[:dim], *x.sizes[dim + 1 :]]
        wide = math.prod(rest)
        if not at_least(wide, 1):
            raise NotImplementedError("rows that may be empty")
        transposed = lowering.lazy(
            (count, *rest), x.dtype, lambda c: x.at((*c[1 : dim + 1], c[0], *c[dim + 1 :])), device=device
        )
        region = lowering.contiguous(transposed)
        rows = Region(region.buffer, (count, wide), (wide, 1), region.offset)
    if ordered and dim is None:
        return _distinct(lowering, vals, x, lines, kind, wanted)
    order = None
    if ordered:
        out = ResultSpec((count,), (1,), dtypes.int64, device)
        order = launch(lowering, kernels.order_rows, [rows], [out], 30 * count * wide, element=kind)[0]
    outs = [
        ResultSpec((count + 1,), (1,), dtypes.int64, device),
        ResultSpec((count,), (1,), dtypes.int64, device),
        ResultSpec((), (), dtypes.int64, device),
    ]
    operands, numbers = [rows, order.region if order else None], {"wanted": bool(wanted[0]), "element": kind}
    begins, of_rows, number = launch(lowering, kernels.runs, operands, outs, 4 * count * wide, **numbers)
    n = vals[0].shape[0 if dim is None else dim]
    bind(lowering, number.region, n)
    n, tag = size(n), lowering.message("aten::unique")

    def row(k):
        place = of(values.make("checked", (begins.at((k,)), count, tag, False), "i64"))
        return of(values.make("checked", (order.at((place,)), count, tag, False), "i64")) if order else place

    source = lowering.in_memory(rows, x.dtype, (wide, 1), device)

    def at(c):
        if dim is None:
            return source.at((row(c[0]), 0))
        flat = 0
        for k, m in zip((*c[:dim], *c[dim + 1 :]), rest):
            flat = flat * m + k
        return source.at((row(c[dim]), flat))

    shape = sizes(vals[0].shape)
    found = lowering.lazy(shape, x.dtype, at, strides=sizes(vals[0].stride()), device=device)
    nothing = lambda: lowering.full((0,), dtypes.int64, 0, device)  # noqa: E731
    shape = sizes(vals[1].shape)
    inverse = (
        lowering.in_memory(Region(of_rows.region.buffer, shape, dense_strides(shape)), dtypes.int64, None, device)
        if wanted[0]
        else nothing()
    )

    def many(c):
        ends = (begins.at((k,)) for k in (c[0] + 1, c[0]))
        return values.make("sub", tuple(ends), "i64")

    return [found, inverse, lowering.lazy((n,), dtypes.int64, many, device=device) if wanted[1] else nothing()]


def _distinct(lowering, vals, x, line, kind, wanted):
    """[values, places, counts] of the numbers of a line."""
    count, device = line.shape[0], vals[0].device
    kinds = (x.dtype, dtypes.int64, dtypes.int64)
    outs = [*(ResultSpec((count,), (1,), t, device) for t in kinds), ResultSpec((), (), dtypes.int64, device)]
    numbers = {"wanted": bool(wanted[0]), "element": kind}
    *found, number = launch(lowering, kernels.distinct, [line], outs, 20 * count, **numbers)
    bind(lowering, number.region, vals[0].shape[0])
    n = size(vals[0].shape[0])
    cut = [lowering.lazy((n,), y.dtype, y.at, strides=(1,), device=device) for y in found[:2]]
    shape = sizes(vals[1].shape)
    nothing = lowering.full((0,), dtypes.int64, 0, device)
    places = Region(found[2].region.buffer, shape, dense_strides(shape))
    places = lowering.in_memory(places, dtypes.int64, None, device) if wanted[0] else nothing
    return [cut[0], places, cut[1] if wanted[1] else nothing]


# ---- counts and repetitions -----------------------------------------------------------------------------------------------------


def _line(lowering, x, dtype=dtypes.int64) -> Region:
    return lowering.contiguous(as_dtype(lowering, x, dtype))


def bincount(lowering, val, x, weights, least):
    if x.ndim != 1 or x.dtype.is_floating_point or x.dtype.is_complex or x.dtype in (dtypes.bool_, dtypes.uint64):
        raise NotImplementedError("what bincount refuses")
    if weights is not None and (
        weights.dtype.is_complex or weights.ndim != 1 or size(weights.sizes[0] - x.sizes[0]) != 0
    ):
        raise NotImplementedError("weights of another length")
    if not at_least(size(least), 0):
        raise NotImplementedError("a least size that may be negative")
    line, device = _line(lowering, x), val.device
    tag = lowering.message("bincount only supports 1-d non-negative integral inputs.", About.CONDITION)
    out, numbers = ResultSpec((), (), dtypes.int64, device), {"least": least, "negative": tag}
    number = launch(lowering, kernels.bincount_size, [line], [out], x.sizes[0], effect=True, **numbers)[0]
    bind(lowering, number.region, val.shape[0])
    made = dtypes.int64 if weights is None else dtypes.float64
    lines = [line] if weights is None else [line, _line(lowering, weights, dtypes.float64)]
    out = ResultSpec(sizes(val.shape), (1,), made, device)
    return as_dtype(lowering, launch(lowering, kernels.bincount, lines, [out], 4 * x.sizes[0])[0], val.dtype)


def repeated(lowering, val, repeats, told: bool):
    """Position k, ``repeats[k]`` times; ``told``: the program says how many that are."""
    if repeats.ndim != 1 or repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise NotImplementedError("what repeat_interleave refuses")
    line, device = _line(lowering, repeats), val.device
    tag = lowering.message("repeats can not be negative", About.CONDITION)
    out = ResultSpec((), (), dtypes.int64, device)
    number = launch(lowering, kernels.repeat_size, [line], [out], repeats.sizes[0], effect=True, negative=tag)[0].region
    if told:
        e = size(val.shape[0])
        expect(
            lowering, "==", e, lowering.message("allocated size does not match required size", About.CONDITION), number
        )
    else:
        bind(lowering, number, val.shape[0])
    n = size(val.shape[0])
    out = ResultSpec((n,), (1,), dtypes.int64, device)
    return as_dtype(
        lowering, launch(lowering, kernels.repeat, [line], [out], repeats.sizes[0], effect=told)[0], val.dtype
    )


# ---- histograms by edges --------------------------------------------------------------------------------------------------------


def by_edges(lowering, vals, x, bins, low_high, weight, density: bool):
    """[sums between edges, edges] of histogram; ``bins``: the edges, or how many intervals of equal width the range (None: that of the
    numbers) is cut into."""
    if x.dtype not in (dtypes.float32, dtypes.float64) or (
        weight is not None and (weight.dtype is not x.dtype or tuple(weight.sizes) != tuple(x.sizes))
    ):
        raise NotImplementedError(f"there is no histogram of {x.dtype}")
    wide, device, values = x.dtype is dtypes.float64, x.device, lowering.values
    line = lowering.contiguous(x)
    if hasattr(bins, "sizes"):
        if bins.ndim != 1 or bins.dtype is not x.dtype or not at_least(bins.sizes[0], 2):
            raise NotImplementedError("what histogram refuses")
        edges = lowering.in_memory(lowering.contiguous(bins), x.dtype, (1,), device)
    else:
        if (
            any(hasattr(n, "__sym__") for n in (bins, *(low_high or ())))
            or bins < 1
            or (low_high and not low_high[0] <= low_high[1])
        ):
            raise NotImplementedError("a range that is refused, or known at the call only")
        tag = lowering.message("torch.histogramdd: dimension 0's range is not finite", About.CONDITION)
        low, high = low_high or (0.0, 0.0)
        numbers = {"f64": wide, "given": low_high is not None, "low": low, "high": high, "not_finite": tag}
        out = ResultSpec((bins + 1,), (1,), x.dtype, device)
        edges = launch(lowering, kernels.edges, [line], [out], math.prod(x.sizes), effect=True, **numbers)[0]
    n = edges.sizes[0] - 1
    lines = [line, edges.region, *([] if weight is None else [lowering.contiguous(weight)])]
    out = ResultSpec((n,), (1,), dtypes.float64, device)
    numbers = {"f64": wide, "equal": not hasattr(bins, "sizes")}
    counts = launch(lowering, kernels.cells, lines, [out], 30 * math.prod(x.sizes), **numbers)[0]
    if not density:
        return [as_dtype(lowering, counts, x.dtype), edges]
    total = lowering.reduce("add", 0.0, (n,), [], [0], lambda c: counts.at(c))

    def at(c):
        width = values.make("sub", tuple(values.cast(edges.at((e,)), "f64") for e in (c[0] + 1, c[0])), "f64")
        return values.make("div", (counts.at(c), values.make("mul", (width, total(())), "f64")), "f64")

    return [as_dtype(lowering, lowering.lazy((n,), dtypes.float64, at, device=device), x.dtype), edges]


def advanced(lowering, shape, indices, op_name):
    """(result shape, function from its coordinates to those of the indexed tensor) of indexing with tensors; None takes a dimension
    whole. Tensors that stand together give their dimensions in place, otherwise in front."""
    given = [k for k, i in enumerate(indices) if i is not None]
    together = broadcast_shapes(*[indices[k].sizes for k in given])
    adjacent = given == list(range(given[0], given[-1] + 1))
    front = given[0] if adjacent else 0
    plain = [k for k in range(len(shape)) if k not in given]
    before = [k for k in plain if adjacent and k < given[0]]
    after = [k for k in plain if k not in before]
    out_shape = (*[shape[k] for k in before], *together, *[shape[k] for k in after])
    tag = lowering.message(op_name)

    def position(coords):
        middle = coords[front : front + len(together)]
        rest = iter((*coords[:front], *coords[front + len(together) :]))
        out = [None] * len(shape)
        for k in (*before, *after):
            out[k] = next(rest)
        for k in given:
            v = lowering.values.cast(indices[k].at(broadcast_coords(middle, indices[k].sizes)), "i64")
            out[k] = of(lowering.values.make("checked", (v, shape[k], tag, True), "i64"))
        return tuple(out)

    return out_shape, position
