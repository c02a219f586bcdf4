"""Batching of random draws. ``randomness``: "error" refuses, "same" draws once for all examples, "different" draws
for each example."""

from __future__ import annotations

from .. import _C
from ..core.definition import TensorMeta
from ..core.generator import Generator, default_generator
from ..core.operator import OpOverload, namespace
from .handler import Unbatched, invoke, rule
from .rules import each_example, size_argument, stack

aten = namespace("aten")

_ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or "
    "perform the randomness operation out of vmap"
)


def _meta(x):
    return TensorMeta(tuple(x._shape), tuple(x._strides), x._dtype, x._device) if isinstance(x, _C.TensorBase) else x


def reads_values(op: OpOverload, values) -> bool:
    """Whether the draw looks at the values of its tensor arguments: tried out with stand-ins that have none, on a
    generator of its own."""
    if not any(isinstance(v, _C.TensorBase) for v in values):
        return False
    d = op.definition
    stand_ins = [_meta(v) for v in values]
    try:
        d.draw(Generator(), tuple(d.shape(*stand_ins)), d.dtype(*stand_ins).np, *stand_ins)
    except (AttributeError, TypeError):
        return True
    return False


@rule("random")
def random(op: OpOverload):
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    generator_at = names.index("generator") if "generator" in names else None
    asks: list[bool] = []

    def run(call, *values):
        mode = call.level.randomness
        if mode == "error":
            raise RuntimeError(_ERROR)
        shape = tuple(d.shape(*call.logical))
        examples = [
            aten.new_empty.default(v, list(x._shape)) if m else v for v, x, m in zip(values, call.logical, call.mask)
        ]
        if not asks:
            asks.append(reads_values(op, examples))
        if mode == "same":
            if not asks[0] or not any(call.mask):
                return Unbatched(invoke(op, examples if not asks[0] else values))
            return _same(call, values, generator_at)
        at = size_argument(op, values, shape)
        if at is not None:
            full = list(values)
            full[at] = [call.size, *shape]
            return invoke(op, full)
        tensors = [i for i, a in enumerate(op._schema.arguments) if a.is_tensor]
        if len(tensors) == 1 and shape == tuple(call.logical[tensors[0]]._shape):
            # The result has the shape of the tensor argument: a batch of it draws for every example.
            full = list(values)
            full[tensors[0]] = call.all(values[tensors[0]], call.mask[tensors[0]])
            return invoke(op, full)
        return each_example(call, values)

    return run


def _same(call, values, generator_at):
    """The draw depends on values that differ: one call an example, each from the same state of the generator."""
    generator = (
        values[generator_at] if generator_at is not None and values[generator_at] is not None else default_generator
    )
    state = generator.get_state()
    out = []
    for i in range(call.size):
        generator.set_state(state)
        out.append(invoke(call.op, [aten.select.int(v, 0, i) if m else v for v, m in zip(values, call.mask)]))
    return stack(out)
