"""The TRANSFORM key: take the batch out of the arguments, run the operator's rule below the level, wrap the
results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from ..base.errors import MissingFacet
from ..base.records import slotted
from ..core import keys as K
from ..core.dispatch import install, redispatch
from ..core.operator import FACETS, OpOverload, namespace
from .levels import BatchedTensor, Level, below, value_at, wrap

__all__ = ["RULES", "Call", "Unbatched", "expand_batch", "invoke", "rule"]

aten = namespace("aten")
RULES: dict[str, Callable] = {}  # kind -> build(op) -> fn(call, *arguments)


def rule(kind: str):
    """Install the batching rule of a kind."""

    def decorate(build):
        RULES[kind] = build
        return build

    return decorate


FACETS["batch"] = lambda op: RULES[op.kind](op) if op.kind in RULES else None


def expand_batch(x, size: int):
    """``x`` with a new dimension 0 of this size, expanded."""
    return aten.expand.default(aten.unsqueeze.default(x, 0), [size, *x._shape])


@slotted
class Call:
    """What a rule knows besides the arguments: batch ``size``; ``mask``, for each argument whether it is mapped (a
    tuple for lists of tensors); ``logical``, the arguments as the caller gave them; the level."""

    op: OpOverload
    size: int
    mask: tuple
    logical: tuple
    level: Level

    def all(self, x, mapped: bool):
        """``x`` with the batch in dimension 0, expanded when it isn't mapped."""
        return x if mapped or not isinstance(x, _C.TensorBase) else expand_batch(x, self.size)

    def the_same(self, value):
        """What a rule returns for a result that is ``value`` for all examples."""
        return Unbatched(value)


@slotted
class Unbatched:
    """Returned by a rule whose result is the same for all examples."""

    value: Any


def invoke(op: OpOverload, values):
    """Call with all arguments given in schema order; those that equal their defaults are left out."""
    args = op._schema.arguments
    positional = [v for a, v in zip(args, values) if not a.kwarg_only]
    named = {a.name: v for a, v in zip(args, values) if a.kwarg_only}
    positional, named = op.normalize(positional, named)
    return op(*positional, **named)


def _levels(values):
    for x in values:
        if isinstance(x, BatchedTensor):
            while isinstance(x, BatchedTensor):
                value, lvl = x._payload
                if lvl.alive:
                    yield lvl
                    break
                x = value
        elif isinstance(x, (list, tuple)):
            yield from _levels(x)


def take(values, lvl: Level):
    """(values with the batch of ``lvl`` taken out, mask)."""
    out, mask = [], []
    for x in values:
        if isinstance(x, (list, tuple)) and any(isinstance(y, _C.TensorBase) for y in x):
            inner, m = take(x, lvl)
            x, m = inner, tuple(m)
        else:
            x, m = value_at(x, lvl)
        out.append(x)
        mask.append(m)
    return out, mask


def give(result, lvl: Level):
    """Results of a rule as mapped tensors."""
    if isinstance(result, _C.TensorBase):
        return wrap(result, lvl)
    if isinstance(result, (list, tuple)):
        made = [give(r, lvl) for r in result]
        return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
    return result


def on_parts(op: OpOverload) -> bool:
    """Whether a composite's function is no body over other operators but a kernel on the parts of sparse tensors."""
    return "sparse" in op.overrides and op.overrides["sparse"] is op.definition.fn


def _draws(op: OpOverload) -> bool:
    functional = getattr(op.definition, "functional", op)
    return functional.kind == "random"


def transform(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Handler of the TRANSFORM key."""
    full = op.full(*args, **kwargs)
    running = _C.stack("transforms")
    lvl = max(_levels(full), key=lambda x: x.number, default=None)
    if running and _draws(op):
        lvl = running[-1]  # the innermost level decides about randomness, whether its examples take part or not
    if lvl is None:
        plain = _without_finished(full)
        if plain is not None:
            return invoke(op, plain)
        opened = op.kind == "composite" and op.definition.eager is None and not on_parts(op)
        if running and opened and "batch" not in op.overrides:
            return op.facet("batch")(None, *full)  # its parts may draw random numbers
        return redispatch(op, keys & K.below(K.TRANSFORM), args, kwargs)
    try:
        run = op.facet("batch")
    except MissingFacet:
        raise MissingFacet("vmap", op, "batch") from None
    values, mask = take(full, lvl)
    call = Call(op, lvl.size, tuple(mask), full, lvl)
    if getattr(run, "on_examples", False):  # written on mapped tensors themselves
        return run(call, *full)
    with below(lvl):
        result = run(call, *values)
    if isinstance(result, Unbatched):
        return result.value
    return give(result, lvl)


def _without_finished(values):
    """Arguments with tensors of finished levels replaced by their values; None when there are none."""
    return [_finished(x) for x in values] if any(map(_has_batched, values)) else None


def _has_batched(x) -> bool:
    return isinstance(x, BatchedTensor) or isinstance(x, (list, tuple)) and any(map(_has_batched, x))


def _finished(x):
    while isinstance(x, BatchedTensor):
        x = x._payload[0]
    return [_finished(y) for y in x] if isinstance(x, (list, tuple)) else x


install(K.TRANSFORM, transform)
