"""The node of the graph that a loop becomes: ``flambeau::loop``.

It takes the arrays that the loop reads or writes, the numbers that it reads, and the program: the kernel's text and what is known of its
results, as JSON, so that a graph that holds it can be kept on disk. It returns the written arrays as they are after the loop, as new ones,
arrays that the loop made, and the numbers that are used later.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import importlib
import json

import numpy as np

from .. import _runtime
from ..base.device import CPU
from ..base.dtypes import from_numpy
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.layouts import overlaps_itself
from ..inductor.donate import writing_form
from .interpreter import Compiled

__all__ = ["loop", "program"]

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5)


def program(compiled: Compiled, first: bool = True) -> str:
    """What the operator's last argument is for a compiled region. ``first``: nothing that comes before it in the graph has an effect, so that all
    may be done again plainly when the loop meets an error."""
    return json.dumps(
        {
            "text": "; a loop\n" + compiled.text,
            "written": compiled.written,
            "fresh": [n for _, n in compiled.fresh],
            "results": [
                d for _, dtype, weak in compiled.results for d in ((dtype.str, "|i1") if weak is None else (dtype.str,))
            ],
            "errors": compiled.errors,
            "first": first,
        }
    )


@functools.lru_cache(1024)
def _parsed(text: str) -> dict:
    return json.loads(text)


@functools.lru_cache(1024)
def _kernel(text: str):
    cache = importlib.import_module("flambeau.inductor.cache")  # made when it is first run: it imports LLVM
    name = cache.kernel_name(text)
    address = cache.addresses({name: text.replace("@KERNEL", f"@{name}")}, optimise=True)[name]
    return _SIGNATURE(address)


def _meta(arrays, ints, floats, program, over=()):
    p = _parsed(program)
    written = [
        TensorMeta(tuple(arrays[n].shape), contiguous_strides(arrays[n].shape), arrays[n].dtype, CPU)
        for n in p["written"] + p["fresh"]
    ]
    made = written + [TensorMeta((), (), from_numpy(np.dtype(d)), CPU) for d in p["results"]]
    return [None if k in over else m for k, m in enumerate(made)]


_TAGS = ("may_run_plainly",)


@extern(
    "flambeau::loop(Tensor[] arrays, SymInt[] ints, float[] floats, str program) -> Tensor[]",
    meta=_meta, variants="", tags=_TAGS,
)  # fmt: skip
def loop(arrays, ints, floats, program):
    return _run(arrays, ints, floats, program, ())


@extern(
    "flambeau::loop_(Tensor(a!)[] arrays, SymInt[] ints, float[] floats, str program, int[] over) -> Tensor[]",
    meta=_meta, variants="", tags=_TAGS,
)  # fmt: skip
def loop_(arrays, ints, floats, program, over):
    """The same, with the new contents of the written arrays number ``over`` left in these arrays themselves; None in their places."""
    return _run(arrays, ints, floats, program, over)


def _run(arrays, ints, floats, program, over):
    p = _parsed(program)
    given, arrays = list(arrays), list(arrays)
    before = {}  # what the arrays that are written themselves held, should the loop end with an error
    copied = []
    for k, n in enumerate(p["written"]):
        apart = k in over and given[n].flags.writeable and not _overlaps(given, n)
        if not apart:
            arrays[n] = np.array(given[n], order="C")
            if k in over:
                copied.append(n)
        elif p["errors"]:
            before[n] = np.array(given[n], order="K")
    fresh = [np.empty(arrays[n].shape, arrays[n].dtype) for n in p["fresh"]]
    data = np.array([*_runtime.addresses, *(a.ctypes.data for a in arrays + fresh)], np.uintp)
    meta = np.array([x for a in arrays for x in (*a.shape, *a.strides)] or [0], np.int64)
    numbers = np.array([*ints, 0], np.int64)
    reals = np.array([*floats, 0.0])
    results = p["results"]
    out = np.zeros(len(results) + 3, np.int64)
    code = _kernel(p["text"])(
        data.ctypes.data, meta.ctypes.data, numbers.ctypes.data, reals.ctypes.data, out.ctypes.data
    )
    if code:
        for n, values in before.items():
            arrays[n][...] = values
        kind, text = p["errors"][code - 1]
        error = getattr(builtins, kind)(text.format(*out[len(results) :].tolist()))
        if p["first"]:
            # Nothing has happened yet: who runs captured code runs the function plainly instead, which tells the error as Python does.
            error.run_plainly = True
        raise error
    for n in copied:
        given[n][...] = arrays[n]
    return (
        [None if k in over else arrays[n] for k, n in enumerate(p["written"])]
        + fresh
        + [out[k : k + 1].view(np.dtype(d))[:1].reshape(()).copy() for k, d in enumerate(results)]
    )


def _overlaps(arrays, n) -> bool:
    """Whether array ``n`` shares memory with another one, or two of its elements do."""
    a = arrays[n]
    return overlaps_itself(a.shape, a.strides) or any(np.may_share_memory(a, b) for k, b in enumerate(arrays) if k != n)


def _operands(arrays, ints, floats, program):
    return {k: arrays[n] for k, n in enumerate(_parsed(program)["written"])}


writing_form(loop, loop_, _operands)
