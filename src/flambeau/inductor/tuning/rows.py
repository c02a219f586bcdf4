"""Launches over rows (rows.py) chosen by measurement: how many rows a block has, and whether our kernels or the library make the products inside.

A chain is measured in place: the whole graph is run on made-up inputs with one way of each chain at a time, and the time that the chain's step
took counts (``Graph.step_seconds``). Only for graphs of constant sizes that run no Python and draw nothing. Our products have the same bits in
blocks of any size; another way of products has another order of sums."""

from __future__ import annotations

import hashlib
import time

import numpy as np

from ... import _C, _runtime
from ...base import blas, kernels
from ...base.records import replace
from ...base.threads import get_num_threads
from ..lowering.contractions import PACKED
from ..runtime.records import GemmStep, KernelStep, NativeStep, RowsStep, TableStep
from ..scheduling.rows import RowChain
from ..settings import config
from . import products as autotune

__all__ = ["tune"]

BLOCKS = (48, 96, 144, 192)  # rows that are tried
WAYS = {"own": 1, "library": 2}
NAMES = {"usual", *WAYS, *(f"blocks of {n}" for n in BLOCKS)}
FAR = 1e-3  # of the greatest magnitude of a result, from which on a way is wrong: sums of several products in turn


def tune(plan, launches: list, lowering, addresses: dict[str, int], end: float):
    """(the plan with the chosen ways, a line for each chain). Measuring ends at ``end``; chains that are undecided by then keep the usual way."""
    blas.share_threads()
    chains = [(i, _key(s), _ways(s)) for i, s in enumerate(launches) if isinstance(s, RowChain) and not s.lanes]
    if not chains or not _may_run(plan):
        return plan, []
    asked = {key: autotune.recalled(key, NAMES) for _, key, _ in chains}
    missing = {key: (i, ways) for i, key, ways in reversed(chains) if asked[key] is None}
    if missing:
        asked |= _measured(plan, missing, lowering, addresses, end)
    steps, lines = list(plan.steps), []
    for i, key, ways in chains:
        name = asked[key] if asked[key] in ways else None if asked[key] is None else "usual"
        lines.append(f"{key}: {autotune.OVER if name is None else name}")
        steps[i] = _changed(steps[i], *ways[name or "usual"])
    for line in lines:
        autotune.AUTOTUNING("%s", line)
    return replace(plan, steps=steps), lines


def _products(chain: RowChain) -> list:
    return [s.data for s in chain.steps if getattr(s, "what", None) == "gemm"]


def _key(chain: RowChain) -> str:
    made = [f"{g.t} {g.ta}{g.tb} {g.m}x{g.k}x{g.n}" + " packed" * (g.choice >= PACKED) for g in _products(chain)]
    kernels = [s.name for s in chain.steps]
    text = repr((chain.period, chain.unit, chain.block, kernels, list(chain.locals.values())))
    return f"chain over {chain.rows} rows, {', '.join(made)}, {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _ways(chain: RowChain) -> dict[str, tuple[int, int]]:
    """name -> (rows of a block, way of the products)."""
    ways = {"usual": (chain.block, 0)}
    for n in BLOCKS:
        block = max(chain.unit, n // chain.unit * chain.unit)
        if block != chain.block and block <= chain.period and (block, 0) not in ways.values():
            ways[f"blocks of {n}"] = (block, 0)
    if any(g.choice < PACKED for g in _products(chain)):
        usual = "own" if _runtime.packed_elements(0, True, 128, 128, 128)[1] else "library"
        ways |= {name: (chain.block, way) for name, way in WAYS.items() if name != usual}
    return ways


def _changed(step: RowsStep, block: int, way: int) -> RowsStep:
    """A step of a plan with another block and way."""
    free = lambda s: isinstance(s, GemmStep) and s.choice < PACKED  # noqa: E731
    steps = [replace(s, choice=way) if free(s) else s for s in step.steps]
    return replace(step, block=block, steps=steps)


def _may_run(plan) -> bool:
    """Whether it can be run for the sake of measuring: sizes are constant, no Python is called, nothing is drawn."""
    if len(plan.stages) > 1 or plan.stages[0][0]:
        return False
    return all(
        isinstance(s, (KernelStep, GemmStep, RowsStep, TableStep))
        or (isinstance(s, NativeStep) and not kernels.find(s.kernel).draws)
        for s in plan.steps
    )


def _inputs(plan, lowering) -> list | None:
    """Tensors as the graph takes them; None where they are too large to be made up."""
    rng, made, count = np.random.default_rng(0), [], 0
    for name, dtype in zip(lowering.inputs, plan.dtypes):
        if name is None or dtype is None:
            made.append(None)
            continue
        b = lowering.buffers[name]
        count += b.size
        if count > autotune.MOST:
            return None
        floats = np.dtype(dtype).kind == "f" or np.dtype(dtype).name == "bfloat16"
        memory = (rng.standard_normal(max(b.size, 1), np.float32) if floats else np.zeros(max(b.size, 1))).astype(dtype)
        strides = [s * memory.itemsize for s in b.strides]
        made.append(_C.from_array(np.lib.stride_tricks.as_strided(memory, b.shape, strides)))
    return made


def _measured(plan, missing: dict, lowering, addresses, end: float) -> dict:
    """{key: name of its best way}; what wasn't reached is left out."""
    inputs = _inputs(plan, lowering)
    if inputs is None or autotune.clock() >= end:
        return {}
    turns = max(len(ways) for _, ways in missing.values())
    graphs, wanted, times = {}, None, {key: {} for key in missing}
    cap = config.autotune_seconds * autotune.SHARE
    # One thread is measured by its own clock, which other programs on the machine don't disturb.
    alone = get_num_threads() == 1
    before = _runtime.time_steps(time.CLOCK_THREAD_CPUTIME_ID if alone else time.CLOCK_MONOTONIC)
    try:
        for t in range(turns):
            if autotune.clock() >= end:
                return {}
            steps = list(plan.steps)
            for i, ways in missing.values():
                if t < len(ways):
                    steps[i] = _changed(steps[i], *list(ways.values())[t])
            graph = replace(plan, steps=steps).bind(addresses, None)
            try:
                start = autotune.clock()
                made = [np.array(x._array) for x in graph(*inputs) if isinstance(x, _C.TensorBase)]
                why = None if wanted is None or _agree(made, wanted) else "its result is not that of the usual one"
            except Exception as e:
                if wanted is None:
                    return {}  # inputs that the program doesn't take
                why = f"{type(e).__name__}: {e}"
            wanted = made if wanted is None else wanted
            if why is not None:
                for key, (_, ways) in missing.items():
                    if t < len(ways):
                        autotune.dropped(key, list(ways)[t], why)
                continue
            if autotune.clock() - start < cap or not t:
                graphs[t] = graph
        for _ in range(autotune.ROUNDS):
            for t, graph in graphs.items():
                if autotune.clock() >= end:
                    break
                seen = list(graph.step_seconds)
                graph(*inputs)
                for key, (i, ways) in missing.items():
                    if t < len(ways):
                        took = graph.step_seconds[i] - seen[i]
                        times[key].setdefault(list(ways)[t], []).append(took)
    finally:
        _runtime.time_steps(before)
    found = {}
    for key, taken in times.items():
        name = autotune.best(taken, 3) if taken else None
        if name is not None:
            found[key] = name
            autotune.remember(key, name)
    return found


def _agree(made: list, wanted: list) -> bool:
    for a, b in zip(made, wanted):
        if a.dtype.kind != "f" and a.dtype.name != "bfloat16":
            if not np.array_equal(a, b):
                return False
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        there = np.isfinite(b)
        if not np.array_equal(there, np.isfinite(a)):
            return False
        far = FAR if a.dtype.itemsize > 2 else 0.02
        if there.any() and np.abs(a[there] - b[there]).max() > far * max(np.abs(b[there]).max(), 1e-30):
            return False
    return True
