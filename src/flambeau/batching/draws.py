"""Batching of random draws. ``randomness``: "error" refuses, "same" draws once for all examples, "different" draws
for each example. What a draw reads (the probabilities of bernoulli) has to be the same for all examples under "same", as in PyTorch."""

from __future__ import annotations

from .. import _C
from ..base.shapes import broadcast_shapes
from ..core.definition import TensorMeta
from ..core.generator import Generator
from ..core.operator import OpOverload, namespace
from ..core.tensor import meta_tensor
from .handler import Unbatched, invoke, rule
from .rules import align, each_example, size_argument

aten = namespace("aten")

_ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or "
    "perform the randomness operation out of vmap"
)


def _meta(x):
    return TensorMeta(tuple(x._shape), tuple(x._strides), x._dtype, x._device) if isinstance(x, _C.TensorBase) else x


def reads_values(op: OpOverload, values, at: int) -> bool:
    """Whether the draw looks at the values of its tensor argument ``at``: tried out with a stand-in that has none, on a generator of its own."""
    d = op.definition
    metas = [_meta(v) for v in values]
    given = [*values[:at], meta_tensor(metas[at]), *values[at + 1 :]]
    try:
        d.draw(Generator(), tuple(d.shape(*metas)), d.dtype(*metas), *given)
    except (AttributeError, TypeError, RuntimeError):
        return True
    return False


@rule("random")
def random(op: OpOverload):
    d = op.definition
    tensors = [i for i, a in enumerate(op._schema.arguments) if a.is_tensor]
    read: dict[int, bool] = {}

    def run(call, *values):
        mode = call.level.randomness
        if mode == "error":
            raise RuntimeError(_ERROR)
        shape = tuple(d.shape(*call.logical))
        if mode == "same":
            return _same(call, values, read)
        at = size_argument(op, values, shape)
        if at is not None:
            full = list(values)
            full[at] = [call.size, *shape]
            return invoke(op, full)
        given = [i for i in tensors if isinstance(values[i], _C.TensorBase)]
        if given and shape == broadcast_shapes(*(tuple(call.logical[i]._shape) for i in given)):
            # The result has the shape of the tensor arguments: a batch of them draws for every example.
            full = align(call, values, given)
            if not any(call.mask[i] for i in given) or full[given[0]]._ndim <= len(shape):
                full[given[0]] = call.all(values[given[0]], call.mask[given[0]])
            return invoke(op, full)
        return each_example(call, values)

    return run


_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. "
    "Draw with randomness='different', or draw outside of vmap"
)


def _same(call, values, read: dict[int, bool]):
    """One draw for all examples, which has to look at no value that differs from example to example."""
    examples = [
        # Ones are parameters that every distribution takes.
        aten.new_ones.default(v, list(x._shape)) if m else v
        for v, x, m in zip(values, call.logical, call.mask)
    ]
    for i, mapped in enumerate(call.mask):
        if mapped:
            if i not in read:
                read[i] = reads_values(call.op, examples, i)
            if read[i]:
                raise RuntimeError(_SAME)
    return Unbatched(invoke(call.op, examples))
