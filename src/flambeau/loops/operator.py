"""The node of the graph that a loop becomes: ``flambeau::loop``.

It takes the arrays that the loop reads or writes, the numbers that it reads, and the program: the kernel's text and what is known of its
results, as JSON, so that a graph that holds it can be kept on disk. It returns the written arrays as they are after the loop, as new ones,
arrays that the loop made, and the numbers that are used later.
"""

from __future__ import annotations

import builtins
import contextlib
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
from ..inductor.donate import writing_form
from .interpreter import Compiled

__all__ = ["loop", "program"]


def program(compiled: Compiled, first: bool = True, cached: bool = True) -> str:
    """What the operator's last argument is for a compiled region. ``first``: nothing that comes before it in the graph has an effect, so that all
    may be done again plainly when the loop meets an error. ``cached``: machine code may be kept on disk."""
    return json.dumps(
        {
            "text": "; a loop\n" + compiled.text,
            "written": compiled.written,
            "fresh": [n for _, n in compiled.fresh],
            "results": [
                d for _, dtype, weak in compiled.results for d in ((dtype.str, "|i1") if weak is None else (dtype.str,))
            ],
            "errors": compiled.errors,
            "shapes": compiled.sizes,
            "first": first,
            "cached": cached,
        }
    )


@functools.lru_cache(1024)
def _parsed(text: str) -> dict:
    return json.loads(text)


@functools.lru_cache(1024)
def _call(text: str, over: tuple[int, ...], spent: tuple[int, ...] = ()) -> _runtime.Loop:
    """The native call of a program, with the new contents of the written arrays number ``over`` left in these arrays themselves, and those of
    ``spent``, which nobody reads afterwards, given back in the same memory."""
    p = _parsed(text)
    cache = importlib.import_module("flambeau.inductor.cache")  # made when it is first run: it imports LLVM
    name = cache.kernel_name(p["text"])
    with contextlib.nullcontext() if p["cached"] else cache.config.patch(force_disable_caches=True):
        address = cache.addresses({name: p["text"].replace("@KERNEL", f"@{name}")}, optimise=True)[name]

    def fail(code: int, *numbers: int):
        kind, text = p["errors"][code - 1]
        error = getattr(builtins, kind)(text.format(*numbers))
        if p["first"]:
            # Nothing has happened yet: who runs captured code runs the function plainly instead, which tells the error as Python does.
            error.run_plainly = True
        raise error

    return _runtime.Loop(
        address,
        p["written"],
        [1 if k in over else 2 if k in spent else 0 for k in range(len(p["written"]))],
        [n for shape in p["shapes"] for n in shape],
        p["fresh"],
        tuple(map(np.dtype, p["results"])),
        bool(p["errors"]),
        fail,
    )


def _meta(arrays, ints, floats, program, over=(), spent=()):
    p = _parsed(program)
    written = [
        TensorMeta(tuple(arrays[n].shape), contiguous_strides(arrays[n].shape), arrays[n].dtype, CPU)
        for n in p["written"] + p["fresh"]
    ]
    made = written + [TensorMeta((), (), from_numpy(np.dtype(d)), CPU) for d in p["results"]]
    return [None if k in over else m for k, m in enumerate(made)]


_TAGS = ("may_run_plainly",)


@extern(
    "flambeau::loop(Tensor[] arrays, SymInt[] ints, float[] floats, str program, int[] spent=[]) -> Tensor[]",
    meta=lambda arrays, ints, floats, program, spent=(): _meta(arrays, ints, floats, program), variants="", tags=_TAGS,
)  # fmt: skip
def loop(arrays, ints, floats, program, spent=()):
    """``spent``: numbers of written arrays whose memory the results may use up, since nobody reads them afterwards."""
    return _run(arrays, ints, floats, program, (), spent)


@extern(
    "flambeau::loop_(Tensor(a!)[] arrays, SymInt[] ints, float[] floats, str program, int[] over, int[] spent=[]) -> Tensor[]",
    meta=_meta, variants="", tags=_TAGS,
)  # fmt: skip
def loop_(arrays, ints, floats, program, over, spent=()):
    """The same, with the new contents of the written arrays number ``over`` left in these arrays themselves; None in their places."""
    return _run(arrays, ints, floats, program, over, spent)


def _run(arrays, ints, floats, program, over, spent):
    made = _call(program, tuple(over), tuple(spent))(tuple(arrays), tuple(ints), tuple(floats))
    made = iter([t._array for t in made])
    p = _parsed(program)
    return [None if k in over else next(made) for k in range(len(p["written"]))] + list(made)


def _prepared(writes: bool, template: list):
    """How a graph calls the loop, see ``EagerCall``: past the operator. None where a number has to be computed first."""
    arrays, ints, floats, program, *more = template
    over = tuple(more.pop(0)) if writes else ()
    if not all(type(x) in (int, float, bool) or hasattr(x, "k") for x in (*ints, *floats)):
        return None
    call = _call(program, over, tuple(more[0]) if more else ())
    if not any(hasattr(x, "k") for x in (*ints, *floats)):
        order, ints, floats = [a.k for a in arrays], tuple(ints), tuple(map(float, floats))
        if order == list(range(len(order))):
            return lambda *given: call(given, ints, floats)
        return lambda *given: call(tuple([given[k] for k in order]), ints, floats)

    def run(*given):
        numbers = [tuple([given[x.k] if hasattr(x, "k") else x for x in row]) for row in (arrays, ints, floats)]
        return call(*numbers)

    return run


for _op in (loop, loop_):
    _op.override("prepared", functools.partial(_prepared, _op is loop_))


def _operands(arrays, ints, floats, program, *more):
    return {k: arrays[n] for k, n in enumerate(_parsed(program)["written"])}


writing_form(loop, loop_, _operands)
