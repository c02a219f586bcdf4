"""Composites without a derivative of their own, for dispatch modes that are shown them as one call (core/dispatch.py): one node, whose backward
runs the body again out of the modes' sight and differentiates that.

Only programs under such a mode come here; otherwise the parts of a composite are recorded as they run.
"""

from __future__ import annotations

import contextlib
import functools

from .. import _C
from ..base.pytree import tree_flatten, tree_unflatten
from ..core import keys as K
from ..core import modes
from ..core.dispatch import excluding, install, python_key
from ..core.operator import OpOverload, namespace
from .engine import grad
from .function import Function
from .grad_mode import enable_grad

aten = namespace("aten")


def recordable(op: OpOverload) -> bool:
    """Whether one node can stand for the call: it makes tensors of its own and returns no lists."""
    s = op._schema
    return not s.is_view and not s.is_mutable and all(r.is_tensor and not r.is_list for r in s.returns)


def call(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Show the call to the mode and leave a node on the results. A call that can't be recorded so is decomposed."""
    full = op.full(*args, **kwargs)
    if not recordable(op):
        if any(r.is_tensor for r in op._schema.returns):
            return op.definition.fn(*full)
        with excluding(K.AUTOGRAD):
            return python_key(op, keys & K.below(K.AUTOGRAD), args, kwargs)
    leaves, spec = tree_flatten(list(full))
    at = [i for i, x in enumerate(leaves) if isinstance(x, _C.TensorBase)]

    def run():
        with excluding(K.AUTOGRAD):
            return python_key(op, keys & K.below(K.AUTOGRAD), args, kwargs)

    def again(tensors):
        filled = list(leaves)
        for i, t in zip(at, tensors):
            filled[i] = t
        return op.definition.fn(*tree_unflatten(filled, spec))

    return _function(op).apply(run, again, *(leaves[i] for i in at))


@functools.cache
def _function(op: OpOverload):
    name = "".join(w.capitalize() for w in op._opname.strip("_").split("_"))
    return type(name, (_Node,), {"__module__": __name__})


class _Node(Function):
    _nested_results = True

    @staticmethod
    def forward(ctx, run, again, *tensors):
        before = [t._writes for t in tensors]
        result = run()
        ctx.again = again
        # What the operator itself has written (running statistics) may be written again before the backward.
        ctx.written = {k: t.detach() for k, (t, v) in enumerate(zip(tensors, before)) if t._writes != v}
        ctx.save_for_backward(*(t for k, t in enumerate(tensors) if k not in ctx.written))
        return result

    @staticmethod
    def backward(ctx, *cts):
        saved, create = iter(ctx.saved_tensors), bool(_C.tls("grad_enabled"))
        tensors, asked = [], []
        with _unseen(), enable_grad():
            for k, need in enumerate(ctx.needs_input_grad[2:]):
                if k in ctx.written:
                    tensors.append(ctx.written[k].clone())
                    continue
                t = next(saved)
                if need:
                    t = _C.past_overrides(aten.alias.default, t) if create else t.detach().requires_grad_()
                    asked.append(t)
                tensors.append(t)
            results = ctx.again(tensors)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [(r, ct) for r, ct in zip(results, cts) if r._requires_grad and ct is not None]
        outs, given = [list(x) for x in zip(*pairs)] if pairs else ([], [])
        got = iter(grad(outs, asked, given, create_graph=create, allow_unused=True) if outs else [None] * len(asked))
        return None, None, *(next(got) if need else None for need in ctx.needs_input_grad[2:])


def _unseen():
    """Without modes, unless one of them must see all there is (it makes the tensors fake, say)."""
    if any(mode.sees_parts for mode in modes.dispatch_stack()):
        return contextlib.nullcontext()
    return modes.disabled("dispatch")


install("whole", call)
