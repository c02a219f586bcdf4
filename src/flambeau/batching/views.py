"""Batching of views: the recorded steps, replayed with their dimensions moved by one."""

from __future__ import annotations

from ..core.operator import OpOverload, namespace
from ..core.viewmap import Step, ViewRecorder, record
from .handler import rule

aten = namespace("aten")


def _slice(step, x):
    d, start, length, stride = step.params
    return aten.slice.Tensor(x, d + 1, start, start + (length - 1) * stride + 1 if length else start, stride)


def _unfold(step, x):
    d, size, stride = step.params
    if not step.in_shape:  # a scalar unfolds to one element, or none
        return aten.slice.Tensor(aten.unsqueeze.default(x, 1), 1, 0, size, 1)
    return aten.unfold.default(x, d + 1, size, stride)


def _diagonal(step, x):
    d1, d2, offset = step.params
    return aten.diagonal.default(x, offset, d1 + 1, d2 + 1)


def _expand(step, x):
    pad = len(step.out_shape) - len(step.in_shape)
    if pad:
        x = aten.view.default(x, [x._shape[0], *[1] * pad, *x._shape[1:]])
    return aten.expand.default(x, [x._shape[0], *step.out_shape])


STEPS = {
    "permute": lambda step, x: aten.permute.default(x, [0, *(p + 1 for p in step.params[0])]),
    "reshape": lambda step, x: aten.view.default(x, [x._shape[0], *step.out_shape]),
    "expand": _expand,
    "slice": _slice,
    "squeeze": lambda step, x: aten.squeeze.dims(x, [d + 1 for d in step.params[0]]) if step.params[0] else x,
    "unsqueeze": lambda step, x: aten.unsqueeze.default(x, step.params[0] + 1),
    "diagonal": _diagonal,
    "unfold": _unfold,
}


def replay(steps: tuple[Step, ...], x):
    """The steps on the examples of ``x``."""
    for step in steps:
        x = STEPS[step.name](step, x)
    return x


@rule("view")
def view(op: OpOverload):
    map = op.definition.map
    stops_gradient = op.vjp_formulas == {}

    def run(call, x, *rest):
        recorded = record(map, tuple(x._shape)[1:], *rest)
        single = isinstance(recorded, ViewRecorder)
        out = [replay(r.steps, x) for r in ([recorded] if single else recorded)]
        out = [aten.detach.default(y) if stops_gradient else aten.alias.default(x) if y is x else y for y in out]
        return out[0] if single else out

    return run
