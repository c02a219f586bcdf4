"""``backward`` and ``grad``: checks of what the user gave; the graph is run in C (csrc/autograd/engine.c)."""

from __future__ import annotations

import operator
import threading

from .. import _C
from ..core.operator import namespace
from ..core.overrides import handle_torch_function
from .graph import GradientEdge
from .node import gradient_edge

__all__ = ["accumulates_into_leaves", "after_backward", "backward", "grad", "queue_callback"]

aten = namespace("aten")
_vmap = None  # vmap(fn); a higher level


def set_vmap(fn) -> None:
    """``fn`` maps over the batch of cotangents that ``is_grads_batched`` gives."""
    global _vmap
    _vmap = fn


def _tensors(x) -> list:
    found = [x] if isinstance(x, (_C.TensorBase, GradientEdge)) else list(x)
    for t in found:
        if not isinstance(t, (_C.TensorBase, GradientEdge)):
            raise TypeError(f"expected a Tensor or a GradientEdge, got {type(t).__name__}")
    return found


def _cotangents(outputs: list, given) -> list:
    grads = [None] * len(outputs) if given is None else [given] if isinstance(given, _C.TensorBase) else list(given)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    for k, (o, g) in enumerate(zip(outputs, grads)):
        if isinstance(o, GradientEdge):
            continue
        if g is None and o._requires_grad:
            if o._array is None and o._shape.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if o._dtype.is_complex:
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but got a complex tensor"
                )
        elif isinstance(g, _C.TensorBase) and g._dtype.is_complex != o._dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                f"grad_output[{k}] has a dtype of {g._dtype} and output[{k}] has a dtype of {o._dtype}."
            )
        elif isinstance(g, _C.TensorBase) and (g._dtype is not o._dtype or g._device != o._device):
            grads[k] = _as_gradient(g, o, k)
    return grads


def _as_gradient(g, output, k: int):
    """``g`` in the dtype of what it is the gradient of. RuntimeError where it lies elsewhere."""
    if g._device != output._device and g._ndim:
        raise RuntimeError(f"invalid gradient at index {k} - expected device {output._device} but got {g._device}")
    return aten._to_copy.default(g, dtype=output._dtype)


class _Run:
    """One run of a backward: what is to be called at its end, the keys of those, and whether it adds gradients to all leaves."""

    __slots__ = ("callbacks", "into_leaves", "keys")

    def __init__(self, into_leaves: bool):
        self.callbacks: list = []
        self.keys: set = set()
        self.into_leaves = into_leaves


class _Runs(threading.local):
    """The runs of this thread, from the outermost."""

    def __init__(self):
        self.stack: list[_Run] = []


_runs = _Runs()


def _run(outputs, grads, edges, keep: bool, create: bool, accumulate: bool):
    roots = tuple(tuple(o) if isinstance(o, GradientEdge) else o for o in outputs)
    run, stack = _Run(accumulate and edges is None), _runs.stack
    stack.append(run)
    try:
        found = _C.run_backward(roots, tuple(grads), edges, keep, create, accumulate)
        while run.callbacks:
            run.callbacks.pop(0)()
        return found
    finally:
        stack.pop()


def _run_at(place: int) -> _Run:
    if not _runs.stack:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    return _runs.stack[place]


def queue_callback(callback) -> None:
    """``callback()`` at the end of the backward that runs now in this thread, the innermost. RuntimeError outside of one."""
    _run_at(-1).callbacks.append(callback)


def after_backward(callback, key=None) -> bool:
    """As :func:`queue_callback`, at the end of the outermost. With a ``key`` nothing happens when that backward has a callback of this key; whether
    it was registered."""
    run = _run_at(0)
    if key is not None and key in run.keys:
        return False
    run.keys.add(key)
    run.callbacks.append(callback)
    return True


def accumulates_into_leaves() -> bool:
    """Whether the backward that runs in this thread, the innermost, adds gradients to all leaves: neither ``grad`` nor ``backward(inputs=...)``."""
    return bool(_runs.stack) and _runs.stack[-1].into_leaves


def _flag(value) -> bool:
    """A switch of ``grad`` and ``backward``, None for False. TypeError for what isn't an integer."""
    return value is not None and bool(operator.index(value))


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Accumulate gradients of ``tensors`` into the leaves they depend on (or into ``inputs`` only)."""
    if _C.tls("transforms"):
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
            "instead or call backward() outside of functorch transforms."
        )
    tensors = _tensors(tensors)
    grads = _cotangents(tensors, grad_tensors if grad_variables is None else grad_variables)
    # The usual False costs no call.
    create = create_graph is not False and _flag(create_graph)
    keep = create if retain_graph is None else _flag(retain_graph)
    if inputs is None:
        _run(tensors, grads, None, keep, create, True)
        return
    inputs = _tensors(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    for t in inputs:
        if isinstance(t, _C.TensorBase) and t._requires_grad:
            t.retain_grad()
    _run(tensors, grads, _edges(inputs), keep, create, True)


def _edges(inputs) -> tuple:
    edges = []
    for t in inputs:
        if isinstance(t, GradientEdge):
            edges.append(tuple(t))
            continue
        if not t._requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(gradient_edge(t))
    return tuple(edges)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """Gradients of ``outputs`` with respect to ``inputs``, a tuple. RuntimeError for an input that isn't part of the graph, unless
    ``allow_unused`` (then None) or ``materialize_grads`` (then zeros). ``is_grads_batched``: the first dimension of each of
    ``grad_outputs`` is a batch of cotangents; all of them are pulled back at once."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    outputs, inputs = (
        (x,) if isinstance(x, GradientEdge) or hasattr(type(x), "__torch_function__") else tuple(x)
        for x in (outputs, inputs)
    )
    if _C.has_override(*outputs, *inputs):
        return handle_torch_function(
            grad,
            (*outputs, *inputs),
            outputs,
            inputs,
            grad_outputs=grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            only_inputs=only_inputs,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
    outputs, inputs = _tensors(outputs), _tensors(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    create, unused = (
        create_graph is not False and _flag(create_graph),
        allow_unused is not False and _flag(allow_unused),
    )
    keep = create if retain_graph is None else _flag(retain_graph)
    edges = _edges(inputs)
    if is_grads_batched:
        collected = _batched(outputs, edges, grad_outputs, keep, create)
    else:
        collected = _run(outputs, _cotangents(outputs, grad_outputs), edges, keep, create, False)
    result = []
    for k, (t, g) in enumerate(zip(inputs, collected)):
        if g is None:
            if materialize_grads:
                if isinstance(t, GradientEdge):
                    raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
                g = aten.zeros_like.default(aten.detach.default(t)).requires_grad_(create)
            elif not unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {k} appears to not have been used in the graph. Set allow_unused=True if this is "
                    "the desired behavior."
                )
        result.append(g)
    return tuple(result)


def _batched(outputs, edges, grad_outputs, keep, create):
    """One pass for a batch of cotangents."""
    cotangents = [grad_outputs] if isinstance(grad_outputs, _C.TensorBase) else list(grad_outputs or ())
    if len(cotangents) != len(outputs) or any(g is None for g in cotangents):
        raise RuntimeError("autograd.grad: is_grads_batched=True needs a batch of gradients for each output")
    present = []

    def pull(*cts):
        found = _C.run_backward(tuple(outputs), cts, edges, keep, create, False)
        present[:] = [g is not None for g in found]
        return tuple(g for g in found if g is not None)

    got = iter(_vmap(pull)(*cotangents))
    return [next(got) if there else None for there in present]
