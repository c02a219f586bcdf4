"""Choosing by measurement: ways of making a product or a convolution are tried at compile time and the fastest is written into the step.

Only under ``max_autotune``; otherwise the sizes decide (csrc/kernels/product.c, csrc/kernels/conv.c), the same way each time. What was
measured is kept: in the process, and on disk under a name that tells processor, threads, library, dtype, shapes and strides, so that a second
process measures nothing. A way that raises, or whose result is not that of the usual one within bounds, is dropped with a line in the log.
Another way is taken only when it is ``WORTH`` better than the usual one: closer ones are noise, and the usual one has the same bits
everywhere."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _runtime
from ...base import blas, disk, kernels
from ...base.kernels import Product, Way
from ...base.logs import ARTIFACTS
from ...base.memory_format import is_last
from ...base.records import slotted
from ...base.threads import get_num_threads
from ..ir.nodes import ExternCall
from ..lowering.contractions import PACKED, Gemm
from ..machine import cache
from ..scheduling.planes import PlaneChain
from ..settings import config

__all__ = [
    "AUTOTUNING",
    "MOST",
    "OVER",
    "ROUNDS",
    "SHARE",
    "Choice",
    "best",
    "clock",
    "decide",
    "dropped",
    "is_whole",
    "recalled",
    "remember",
    "tune",
]

log = logging.getLogger("flambeau.inductor")
AUTOTUNING = ARTIFACTS["autotuning"]

ROUNDS = 7  # times that each way runs, one after the other in turn
WORTH = 0.97  # of the usual way's time, above which that one stays
SHARE = 0.25  # of the time for a graph that one way of one step may take
CALLS = 20  # of a way in a round, where one is short
OVER = "usual (the time was over)"
SHORT = 1e-4  # seconds that a round of a way should take
clock = time.perf_counter  # seconds

_EPS = {np.dtype(np.float32): 2.0**-23, np.dtype(np.float64): 2.0**-52}
_known: dict[str, str] = {}  # key -> name of a way


@slotted(frozen=False)
class Choice:
    """A step to choose for. ``key`` tells all that the answer depends on but the machine; ``ways``: name -> number, the usual one first;
    ``run(number)`` makes the result once; ``agrees(result, usual result)``."""

    key: str
    ways: dict[str, int]
    run: Callable[[int], Any]
    agrees: Callable[[Any, Any], bool]


def tune(launches: list, buffers: dict) -> list[str]:
    """Choose for each product and convolution of constant sizes that is a launch of its own; a line of each that was decided. The steps are
    written. Measuring ends ``config.autotune_seconds`` after its begin; what was not reached by then stays as usual, and is measured by a later
    compilation."""
    lines, end = [], None
    for launch in launches:
        step = launch.steps[0] if isinstance(launch, PlaneChain) else launch
        key = _key(step, buffers) if isinstance(step, ExternCall) and step.what in _MAKERS else None
        if not key:
            continue
        name = recalled(key, _NAMES)
        if name is None:
            end = clock() + config.autotune_seconds if end is None else end
            if clock() >= end:
                lines.append(f"{key}: {OVER}")
                continue
            choice = _MAKERS[step.what](step, key, buffers)
            if choice is None:
                continue
            name = decide(choice, end)
            if name is None:
                lines.append(f"{key}: {OVER}")
                continue
            remember(key, name)
        if step.what == "gemm":
            step.data.choice = _GEMM.get(name, 0)
        else:
            native = step.data
            chosen = kernels.named(native.kernel, native.numbers) | {"way": _WAYS.get(name, Way.USUAL)}
            native.numbers = list(native.kernel.pack(**chosen))
        lines.append(f"{key}: {name}")
    for line in lines:
        AUTOTUNING("%s", line)
    return lines


def is_whole(lines: list[str]) -> bool:
    """Whether nothing was left out for want of time."""
    return not any(line.endswith(OVER) for line in lines)


def decide(choice: Choice, end: float) -> str | None:
    """The way's name, "usual" among them; None when the time ended before each had run often enough."""
    names = list(choice.ways)
    cap = config.autotune_seconds * SHARE
    wanted, times, calls, spent = None, {}, {}, {}
    for name in names:
        if clock() >= end:
            return None
        try:
            start = clock()
            result = choice.run(choice.ways[name])
            took = clock() - start
            right = wanted is None or choice.agrees(result, wanted)
        except Exception as e:  # whatever a way raises, the usual one is still there
            if wanted is None:
                raise
            dropped(choice.key, name, f"{type(e).__name__}: {e}")
            continue
        if not right:
            dropped(choice.key, name, "its result is out of the bounds of the usual one's")
            continue
        wanted = result if wanted is None else wanted
        times[name], spent[name] = ([took] if took >= cap else []), took
        calls[name] = max(1, min(CALLS, int(SHORT / took))) if took > 0 else CALLS
    for _ in range(ROUNDS if len(times) > 1 else 0):
        for name, found in times.items():
            if spent[name] >= cap:
                continue
            if clock() >= end:
                return best(times, 3)
            number, start = choice.ways[name], clock()
            for _ in range(calls[name]):
                choice.run(number)
            took = clock() - start
            spent[name] += took
            found.append(took / calls[name])
    return best(times, 1)


def best(times: dict[str, list[float]], least: int) -> str | None:
    """The fastest by median of those that ran ``least`` times; None where the usual one did not."""
    medians = {name: float(np.median(found)) for name, found in times.items() if len(found) >= least}
    AUTOTUNING("%s", ", ".join(f"{name} {m * 1e6:.1f} us" for name, m in medians.items()) or "one way only")
    usual = next(iter(times))
    if len(times) == 1:
        return usual
    if usual not in medians:
        return None
    best = min(medians, key=medians.__getitem__)
    return best if medians[best] < WORTH * medians[usual] else usual


def dropped(key: str, name: str, why: str) -> None:
    log.warning("autotuning: %s is dropped for %s: %s", name, key, " ".join(why.split()))


# ---- what was found ----------------------------------------------------------------------------------------------------


def _entry(key: str) -> str:
    environment = [os.environ.get(n) for n in ("FLAMBEAU_CPU", "FLAMBEAU_PRODUCTS", "FLAMBEAU_BLAS_THREADS")]
    text = repr((key, cache.machine(), get_num_threads(), blas.product_library(), environment))
    name = "a" + hashlib.sha256(text.encode()).hexdigest()[:40]
    return os.path.join("choices", name[1:3], name)


def recalled(key: str, names) -> str | None:
    """The name that was chosen for a key, one of ``names``."""
    entry = _entry(key)
    if entry in _known:
        return _known[entry]
    body = None if config.force_disable_caches else disk.read_entry(entry)
    if body is None:
        return None
    try:
        found, name = json.loads(body)
    except ValueError:
        return None
    if found != key or name not in names:
        return None
    _known[entry] = name
    return name


def remember(key: str, name: str) -> None:
    entry = _entry(key)
    _known[entry] = name
    if not config.force_disable_caches:
        disk.write_entry(entry, json.dumps([key, name]).encode())


# ---- products ----------------------------------------------------------------------------------------------------------

_GEMM = {way.name.lower(): int(way) for way in (Product.USUAL, Product.OWN, Product.LIBRARY)}
_GEMM |= {
    f"{way}, {side}": n + more for way, n in _GEMM.items() for side, more in (("by rows", 16), ("by columns", 32))
}
_SPLIT = 2e6  # operations from which csrc/kernels/gemm.c splits a product over threads
MOST = 1 << 27  # elements of operands and result that are made to measure


def _key(step: ExternCall, buffers: dict) -> str | None:
    """What the choice depends on, as text; None for a step without constant sizes or without a choice."""
    if step.what == "gemm":
        g: Gemm = step.data
        numbers = [g.m, g.n, g.k, g.lda, g.ldb, g.ldc, *(n for b in g.batch for n in b)]
        if any(type(n) is not int for n in numbers) or (min(g.m, g.n) == 1 and not g.batch) or g.choice >= PACKED:
            return None
        count = math.prod(b[0] for b in g.batch)
        if count * (g.m * g.k + g.k * g.n + g.m * g.n) > MOST:
            return None
        batch = "".join(f" batch {b}" for b in g.batch)
        return f"product {g.t} {g.ta}{g.tb} {g.m}x{g.k}x{g.n} ld {g.lda} {g.ldb}{batch}"
    kernel = step.data.kernel
    if kernel.ways is None:
        return None
    operands = (*step.inputs, buffers[step.outputs[0]])
    shapes = [tuple(x.shape) for x in operands]
    how = kernels.named(kernel, step.data.numbers) | {"way": Way.USUAL}
    numbers = [*kernel.pack(**how), *(n for s in shapes for n in s)]
    if any(type(n) is not int for n in numbers) or sum(map(math.prod, shapes)) > MOST:
        return None
    last = "".join(" last" if is_last(x.shape, x.strides) else " first" for x in operands) if len(shapes[0]) > 3 else ""
    return f"{kernel.name} {' '.join(map(str, shapes))}{last} how {list(kernel.pack(**how))}"


def _product(step: ExternCall, key: str, buffers: dict) -> Choice | None:
    g: Gemm = step.data
    dtype = np.dtype(np.float64 if g.t == "f64" else np.float32)
    count = math.prod(b[0] for b in g.batch)
    rng = np.random.default_rng(0)

    def matrices(transposed, rows, columns, ld):
        lines, width = (columns, rows) if transposed else (rows, columns)
        apart = min(ld, 4 * width)  # parts of a wide matrix lie apart as they do in the program, within reason
        held = rng.standard_normal((count, lines, apart), dtype)[:, :, :width]
        held = held.transpose(0, 2, 1) if transposed else held
        return held if g.batch else held[0]

    a, b = matrices(g.ta == "T", g.m, g.k, g.lda), matrices(g.tb == "T", g.k, g.n, g.ldb)
    blas.share_threads()
    if _runtime.matmul(a, b) is None:
        return None
    bound = 2 * (g.k + 4) * _EPS[dtype]

    def agrees(got, want):
        return bool((np.abs(got - want) <= bound * np.matmul(np.abs(a), np.abs(b))).all())

    split = get_num_threads() > 1 and g.flops() >= _SPLIT
    ways = {name: n for name, n in _GEMM.items() if split or n < 16}
    return Choice(key, ways, lambda n: _runtime.matmul(a, b, n), agrees)


# ---- convolutions ------------------------------------------------------------------------------------------------------

_WAYS = {way.name.lower(): way for way in Way}
_BOUND = 128  # of the greatest result, in epsilons: twice what one may be off


def _laid_out(array, strides):
    """The array with its dimensions in the order of these strides."""
    order = sorted(range(array.ndim), key=lambda d: (-strides[d], d))
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def _convolution(step: ExternCall, key: str, buffers: dict) -> Choice | None:
    kernel = step.data.kernel
    numbers = kernels.named(kernel, step.data.numbers)
    dtype = np.dtype(np.float64 if numbers["f64"] else np.float32)
    rng = np.random.default_rng(0)
    target = buffers[step.outputs[0]]
    given = [_laid_out(rng.standard_normal(tuple(r.shape), dtype), r.strides) for r in step.inputs]
    made = _laid_out(np.empty(tuple(target.shape), dtype), target.strides)
    found = np.empty(1, np.int64)
    blas.share_threads()
    spread = iter(given)
    operands = [next(spread) if there else None for there in step.data.given[:-1]]
    kernels.find(kernel.ways)([*operands, made], [found], **numbers)
    usual = {n for n in Way if n and int(found[0]) >> (16 + n) & 1}
    # The usual one has a name of its own too.
    ways = {name: n for name, n in _WAYS.items() if not n or (int(found[0]) >> n & 1 and n not in usual)}

    def run(n):
        out = np.empty_like(made)
        kernel(operands, [out], **(numbers | {"way": n}))
        return out

    def agrees(got, want):
        return bool((np.abs(got - want) <= _BOUND * _EPS[dtype] * np.abs(want).max()).all())

    return Choice(key, ways, run, agrees)


_MAKERS = {"gemm": _product, "native": _convolution}
_NAMES = _GEMM.keys() | _WAYS.keys()
