"""Derivatives of native loops: ``flambeau::loop_cotangents``, ``flambeau::loop_tangents``, and ``flambeau::loop_derivative`` for higher orders.

The loop runs again on its operands as they were before it, by the kernel that notes each operation on a tape (:mod:`.tape`), and the tape is gone
through once for each set of cotangents or tangents. So nothing of a loop but its operands is kept for the backward pass, and what a derivative
costs is a second run and 24 bytes for each operation on floats that depend on an array of floats.

A derivative of a derivative goes through a list of the run's operations, forwards and backwards, with hyper-dual numbers (:mod:`.hyperdual`): for
each operation 32 bytes, and 16 for each part of its number, of which order ``k`` has 2 ** (k - 1).

Both are made in windows, from checkpoints, where they would take more than their budget (:mod:`.checkpoints`).
"""

from __future__ import annotations

from ...base.device import CPU
from ...base.shapes import contiguous_strides
from ...core.declare import extern
from ...core.definition import TensorMeta
from ..operator import loop
from .higher_orders import pulled_back
from .tapes import tape_of

__all__ = ["loop_cotangents", "loop_derivative", "loop_tangents"]


def _floating(arrays):
    return [a for a in arrays if a.dtype.is_floating_point]


@extern(
    "flambeau::loop_cotangents(Tensor[] arrays, SymInt[] ints, float[] floats, str program, Tensor[] cotangents, int[] places) -> Tensor[]",
    meta=lambda arrays, ints, floats, program, cotangents, places: [
        TensorMeta(tuple(a.shape), contiguous_strides(a.shape), a.dtype, CPU) for a in _floating(arrays)
    ],
    variants="",
    tags=("may_run_plainly",),
)  # fmt: skip
def loop_cotangents(arrays, ints, floats, program, cotangents, places):
    """Cotangents of a loop's operands of floats, from those of its results number ``places``."""
    made = tape_of(arrays, ints, floats, program).cotangents(places, cotangents)
    return [g.astype(a.dtype) for g, a in zip(made, [a for a in arrays if a.dtype.kind == "f"])]


@extern(
    "flambeau::loop_tangents(Tensor[] arrays, SymInt[] ints, float[] floats, str program, Tensor[] tangents, Tensor[] likes) -> Tensor[]",
    meta=lambda arrays, ints, floats, program, tangents, likes: [
        TensorMeta(tuple(a.shape), contiguous_strides(a.shape), a.dtype, CPU) for a in likes
    ],
    variants="",
    tags=("may_run_plainly",),
)  # fmt: skip
def loop_tangents(arrays, ints, floats, program, tangents, likes):
    """Tangents of a loop's results, which are like ``likes``, from those of its operands of floats."""
    made = tape_of(arrays, ints, floats, program).tangents(tangents)
    return [t.astype(a.dtype) for t, a in zip(made, likes)]


def _loop_vjp(cts, arrays, ints, floats, program):
    places = [k for k, ct in enumerate(cts) if ct is not None]
    made = iter(loop_cotangents(arrays, ints, floats, program, [cts[k] for k in places], places))
    return [next(made) if a.dtype.is_floating_point else None for a in arrays]


def _loop_vjp_again(mask, cts, arrays, ints, floats, program, cotangents, places):
    """Of cotangents: where only those of the results are asked for, the transpose, which are tangents; else the next derivative."""
    floating = _floating(arrays)
    given = [a.new_zeros(a.shape) if ct is None else ct for ct, a in zip(cts, floating)]
    if not mask[0]:
        likes = loop(arrays, ints, floats, program)
        made = loop_tangents(arrays, ints, floats, program, given, likes)
        return None, [made[k] for k in places]
    made = loop_derivative(arrays, ints, floats, program, [*cotangents, *given], places, [len(cotangents), len(given)])
    return _spread_out(arrays, made), made[len(floating) :]


def _loop_vjp_of_tangents(mask, cts, arrays, ints, floats, program, tangents):
    """Of tangents: cotangents are their transpose, and the slope of both is that of their product."""
    places = [k for k, ct in enumerate(cts) if ct is not None]
    given = [cts[k] for k in places]
    back = loop_cotangents(arrays, ints, floats, program, given, places)
    if not mask[0]:
        return None, back, None
    made = loop_derivative(arrays, ints, floats, program, [*given, *tangents], places, [len(given), len(tangents)])
    return _spread_out(arrays, made), back, None


def _loop_vjp_of_derivative(cts, arrays, ints, floats, program, given, places, counts):
    likes = [*_floating(arrays), *given[: sum(counts[:-1])]]
    more = [a.new_zeros(a.shape) if ct is None else ct for ct, a in zip(cts, likes)]
    made = loop_derivative(arrays, ints, floats, program, [*given, *more], places, [*counts, len(more)])
    return _spread_out(arrays, made), made[len(_floating(arrays)) :]


def _spread_out(arrays, made):
    """For each operand its cotangent, None for those that aren't floats."""
    found = iter(made)
    return [next(found) if a.dtype.is_floating_point else None for a in arrays]


@extern(
    "flambeau::loop_derivative(Tensor[] arrays, SymInt[] ints, float[] floats, str program, Tensor[] given, int[] places, int[] counts) -> Tensor[]",
    meta=lambda arrays, ints, floats, program, given, places, counts: [
        TensorMeta(tuple(a.shape), contiguous_strides(a.shape), a.dtype, CPU)
        for a in (*_floating(arrays), *given[: sum(counts[:-1])])
    ],
    variants="",
    tags=("may_run_plainly",),
)  # fmt: skip
def loop_derivative(arrays, ints, floats, program, given, places, counts):
    """A pullback of pullbacks of a loop, ``len(counts)`` in all. The first takes the cotangents of the loop's results number ``places``, each further
    one those of what the one before it gives; ``given`` has those of all, ``counts`` how many each takes. Cotangents of the operands of floats, then
    of what the earlier pullbacks were given."""
    return pulled_back(arrays, ints, floats, program, given, places, counts)


loop.derivative(arrays=_loop_vjp)
loop_cotangents.derivative(arrays__cotangents=_loop_vjp_again)
loop_tangents.derivative(arrays__tangents__likes=_loop_vjp_of_tangents)
loop_derivative.derivative(arrays__given=_loop_vjp_of_derivative)
