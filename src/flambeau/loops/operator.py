"""The node of the graph that a loop becomes: ``flambeau::loop``.

It takes the arrays that the loop reads or writes, the numbers that it reads, and the program: the kernel's text and what is known of its
results, as JSON, so that a graph that holds it can be kept on disk. It returns the written arrays as they are after the loop, as new ones,
arrays that the loop made, and the numbers that are used later.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import importlib
import json
from collections.abc import Callable

import numpy as np

from .. import _runtime
from ..base import blas
from ..base.device import CPU
from ..base.dtypes import from_numpy
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..inductor.lowering.donate import writing_form
from .faults import Remedy
from .interpreter import Compiled
from .numbers.complexes import part
from .numpy_calls import perform
from .random_numbers.streams import stream_of

__all__ = ["drawing_loop", "loop", "metas_of", "native_call", "program"]


class Site:
    """A loop of the program. ``native``: it may be a native one; False once a run met what native loops have no place for (an integer that grows
    too long): then it is captured anew, and not as a native loop. ``reshapes``: whether a run left an array in another shape than it had before: see
    Inputs."""

    def __init__(self):
        self.native, self.reshapes = True, False


SITES: dict[str, Site] = collections.defaultdict(Site)


def program(
    compiled: Compiled, first: bool = True, cached: bool = True, recorded: Compiled | None = None, site: str = ""
) -> str:
    """What the operator's last argument is for a compiled region. ``first``: nothing that comes before it in the graph has an effect, so that all
    may be done again plainly when the loop meets an error. ``cached``: machine code may be kept on disk. ``recorded``: the same region as kernels
    that note what they do, for derivatives. ``site``: its key in SITES."""
    return json.dumps(
        {
            "site": site,
            "text": "; a loop\n" + compiled.text,
            "written": compiled.written,
            "fresh": [n for _, n in compiled.fresh],
            "results": [
                d
                for _, dtype, weak in compiled.results
                for d in (*_numbers(dtype), *(("|i1",) if weak is None else ()))
            ]
            + ["<i8"] * len(compiled.grown),
            "errors": [fault.packed() for fault in compiled.errors],
            "shapes": compiled.sizes,
            "dtypes": [d.str for d in compiled.dtypes],
            "numbers": [len(compiled.ints), len(compiled.floats)],
            "first": first,
            "drawn": compiled.drawn,
            "cached": cached,
            "recorded": "" if recorded is None else "; a loop with a tape\n" + recorded.text,
            "listed": "" if recorded is None else "; a loop with a list\n" + recorded.listed,
        }
    )


def _numbers(dtype: np.dtype) -> tuple[str, ...]:
    """The dtypes of the results that a number is given back as: the two parts of a complex one."""
    return (part(dtype).str,) * 2 if dtype.kind == "c" else (dtype.str,)


@functools.lru_cache(1024)
def _parsed(text: str) -> dict:
    return json.loads(text)


@functools.lru_cache(1024)
def _call(text: str, over: tuple[int, ...], spent: tuple[int, ...] = ()) -> Callable:
    """The native call of a program, with the new contents of the written arrays number ``over`` left in these arrays themselves, and those of
    ``spent``, which nobody reads afterwards, given back in the same memory."""
    p = _parsed(text)
    blas.share_threads()  # products in loops are made with its library
    cache = importlib.import_module("flambeau.inductor.machine.cache")  # made when it is first run: it imports LLVM
    name = cache.kernel_name(p["text"])
    with contextlib.nullcontext() if p["cached"] else cache.config.patch(force_disable_caches=True):
        address = cache.addresses({name: p["text"].replace("@KERNEL", f"@{name}")}, optimise=True)[name]

    def fail(code: int, *numbers: int):
        kind, text, remedy = p["errors"][code - 1]
        site = SITES[p["site"]]
        if remedy == Remedy.RESHAPES and not site.reshapes:
            site.reshapes = True
        elif remedy:
            site.native = False
        error = getattr(builtins, kind)(text.format(*numbers))
        if p["first"]:
            # Nothing has happened yet: captured code then runs the function uncompiled, and Python raises the error itself.
            error.run_plainly = True
        raise error

    fail.loop_name = f"native loop {p['site']}".rstrip()  # type: ignore[attr-defined]
    run = _runtime.Loop(
        address,
        p["written"],
        [1 if k in over else 2 if k in spent else 0 for k in range(len(p["written"]))],
        [n for shape in p["shapes"] for n in shape],
        p["fresh"],
        tuple(map(np.dtype, p["results"])),
        bool(p["errors"]),
        fail,
        perform,
        tuple(map(np.dtype, p["dtypes"])),
        *p["numbers"],
    )
    return functools.partial(_drawing, run, p["drawn"]) if p["drawn"] else run


def _drawing(run, drawn, arrays, ints, floats):
    """The call of a loop that draws random numbers: nobody else draws from its generators meanwhile."""
    with contextlib.ExitStack() as stack:
        of = [(stream_of(getattr(arrays[n], "_array", arrays[n])), normals) for n, normals in drawn]
        for stream, normals in sorted(of, key=lambda pair: id(pair[0].bits)):  # everybody in one order
            stack.enter_context(stream.drawn_from(normals))
        return run(arrays, ints, floats)


def metas_of(program: str, shapes: list[tuple], dtypes: list) -> list[TensorMeta]:
    """What a program gives for arrays like these."""
    p = _parsed(program)
    arrays = [TensorMeta(shapes[n], contiguous_strides(shapes[n]), dtypes[n], CPU) for n in p["written"] + p["fresh"]]
    return arrays + [TensorMeta((), (), from_numpy(np.dtype(d)), CPU) for d in p["results"]]


def _meta(arrays, ints, floats, program, over=(), spent=()):
    made = metas_of(program, [tuple(a.shape) for a in arrays], [a.dtype for a in arrays])
    return [None if k in over else m for k, m in enumerate(made)]


def native_call(program: str) -> Callable:
    """What runs a program on NumPy arrays: ``call(arrays, ints, floats)`` gives new tensors."""
    return _call(program, ())


def _declared(name: str, tags: tuple[str, ...]):
    """The operator, and the one that writes into its operands."""

    @extern(
        f"flambeau::{name}(Tensor[] arrays, SymInt[] ints, float[] floats, str program, int[] spent=[]) -> Tensor[]",
        meta=lambda arrays, ints, floats, program, spent=(): _meta(arrays, ints, floats, program), variants="", tags=tags,
    )  # fmt: skip
    def fresh(arrays, ints, floats, program, spent=()):
        """``spent``: numbers of written arrays whose memory the results may use up, since nobody reads them afterwards."""
        return _run(arrays, ints, floats, program, (), spent)

    @extern(
        f"flambeau::{name}_(Tensor(a!)[] arrays, SymInt[] ints, float[] floats, str program, int[] over, int[] spent=[]) -> Tensor[]",
        meta=_meta, variants="", tags=tags,
    )  # fmt: skip
    def inside(arrays, ints, floats, program, over, spent=()):
        """The same, with the new contents of the written arrays number ``over`` left in these arrays themselves; None in their places."""
        return _run(arrays, ints, floats, program, over, spent)

    return fresh, inside


loop, loop_ = _declared("loop", ("may_run_plainly",))
drawing_loop, drawing_loop_ = _declared("drawing_loop", ("may_run_plainly", "has_side_effects"))


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
            if isinstance(call, _runtime.Loop):
                return call.with_numbers(ints, floats)
            return lambda *given: call(given, ints, floats)
        return lambda *given: call(tuple([given[k] for k in order]), ints, floats)

    rows = [[x.place(len(arrays)) if hasattr(x, "k") else x for x in row] for row in (arrays, ints, floats)]
    places = [[hasattr(x, "k") for x in row] for row in (arrays, ints, floats)]

    def run(*given):
        return call(*[tuple([given[x] if at else x for x, at in zip(row, ats)]) for row, ats in zip(rows, places)])

    return run


def _operands(arrays, ints, floats, program, *more):
    return {k: arrays[n] for k, n in enumerate(_parsed(program)["written"])}


def _fallible(arrays, ints, floats, program, *more) -> bool:
    """Whether its errors are those of the graph: something has happened before it, so that it can't have the frame run plainly by itself."""
    p = _parsed(program)
    return bool(p["errors"]) and not p["first"]


for _fresh, _inside in ((loop, loop_), (drawing_loop, drawing_loop_)):
    for _op in (_fresh, _inside):
        _op.override("fallible", _fallible)
        # Machine code is made for operands whose rows lie together, or not.
        _op.override("exact_strides", True)
        _op.override("quiet", _fresh is loop)
        _op.override("prepared", functools.partial(_prepared, _op is _inside))
    writing_form(_fresh, _inside, _operands)
