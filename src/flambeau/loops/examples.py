"""Native loops under vmap: ``flambeau::loop_examples`` calls the kernel for one example after the other, without an operator for each, and writes the
results into the batch. Operands stay as they were; an error is that of the first example that meets one."""

from __future__ import annotations

import numpy as np

from ..base.device import CPU
from ..base.shapes import contiguous_strides
from ..batching.rules import each_example
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.dispatch import differentiated
from .operator import loop, metas_of, native_call

__all__ = ["loop_examples"]


def _metas(arrays, ints, floats, program, mapped, size):
    shapes = [tuple(a.shape[1:]) if k in mapped else tuple(a.shape) for k, a in enumerate(arrays)]
    made = metas_of(program, shapes, [a.dtype for a in arrays])
    batches = [((size, *m.shape), m.dtype) for m in made]
    return [TensorMeta(shape, contiguous_strides(shape), dtype, CPU) for shape, dtype in batches]


@extern(
    "flambeau::loop_examples(Tensor[] arrays, SymInt[] ints, float[] floats, str program, int[] mapped, SymInt size) -> Tensor[]",
    meta=_metas,
    variants="",
    tags=("may_run_plainly",),
)
def loop_examples(arrays, ints, floats, program, mapped, size):
    """The results of a loop for each of ``size`` examples, of which the arrays number ``mapped`` have one along their first dimension."""
    call = native_call(program)
    batches = {k: np.ascontiguousarray(arrays[k]) for k in mapped}
    given, ints, floats = list(arrays), tuple(ints), tuple(floats)
    outs: list[np.ndarray] = []
    for n in range(size):
        for k, batch in batches.items():
            given[k] = batch[n, ...]
        made = [t._array for t in call(tuple(given), ints, floats)]
        if not outs:
            outs = [np.empty((size, *a.shape), a.dtype) for a in made]
        for out, a in zip(outs, made):
            out[n] = a
    return outs


@loop.override("batch")
def _loop_batch(b, arrays, ints, floats, program, spent=()):
    """Where a derivative through the loop is asked for, each example is an operator of its own."""
    if b.size == 0 or any(map(differentiated, arrays)):
        return each_example(b, (arrays, ints, floats, program, spent))
    mapped = [k for k, m in enumerate(b.mask[0]) if m]
    return loop_examples(arrays, ints, floats, program, mapped, b.size)
