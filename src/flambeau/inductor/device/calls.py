"""Operators that a graph of the device calls from Python, on tensors over its memory."""

from __future__ import annotations

from ... import _C
from ...core import device_memory
from ..lowering.eager_call import ArgumentSlot, EagerCall, Late, NumberCall, replace

__all__ = ["called"]


def called(plan: EagerCall):
    """A function of the tensors and numbers of an EagerCall: a list of what it gives, its tensors dense and apart from the operands."""

    def call(*given):
        n = plan.count + len(plan.floats)
        tensors, numbers = given[: plan.count], given[n:]
        floats = {s: float(t.item()) for s, t in zip(plan.floats, given[plan.count : n])}
        if isinstance(plan, NumberCall):
            return [plan.template[0].look((), numbers, floats)]
        full = replace(plan.template, lambda s: s.look(tensors, numbers, floats), (ArgumentSlot, Late))
        made = plan.call(full)
        results = [r for r in (made if isinstance(made, (tuple, list)) else [made]) if r is not None]
        return [_apart(r, order, tensors) for r, order in zip(results, plan.orders)]

    return call


def _apart(r, order, tensors):
    """A result in memory of its own, its dimensions in this order."""
    if not isinstance(r, _C.TensorBase):
        return r
    want, step = [0] * len(order), 1
    for d in reversed(order):
        want[d] = step
        step *= max(r._shape[d], 1)
    same = 0 in r._shape or all(n == 1 or a == b for n, a, b in zip(r._shape, r._strides, want))
    if same and not any(r._storage is t._storage for t in tensors):
        return r
    if not device_memory.on_device(r):
        return r
    out = device_memory.allocate(r._shape, tuple(want), r._dtype, r._device)
    out.copy_(r)
    return out
