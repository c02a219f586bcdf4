"""Running the backward graph: nodes in the order of their creation reversed, each once all cotangents for it have come."""

from __future__ import annotations

import heapq

from .. import _C
from ..core import keys as K
from ..core.dispatch import excluding
from ..core.operator import namespace
from ..core.overrides import handle_torch_function
from .node import AccumulateGrad, Node, gradient_edge

__all__ = ["backward", "grad", "run"]

aten = namespace("aten")


def _as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _root_cotangents(outputs, grads):
    made = []
    for out, g in zip(outputs, grads):
        if g is None:
            if out._shape.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if out._dtype.is_complex:
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but got a complex tensor"
                )
            g = (
                aten.ones_like.default(out.detach() if not out._keys else out)
                if not out._keys & K.PYTHON
                else aten.ones_like.default(out)
            )
        else:
            if not isinstance(g, _C.TensorBase):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
            if tuple(g._shape) != tuple(out._shape):
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[0] has a shape of {g._shape} and output[0] has a shape of {out._shape}."
                )
        made.append(g)
    return made


def run(roots, cotangents, wanted=None, keep_graph=False, create_graph=False):
    """Push ``cotangents`` of the edges ``roots`` through the graph.

    ``wanted``: edges whose cotangents are collected and returned by edge; then leaves don't accumulate. Without it leaves do.
    """
    buffers: dict[Node, list] = {}
    dependencies: dict[Node, int] = {}
    useful = None
    stack = list(dict.fromkeys(e[0] for e in roots if e is not None))  # NOTE: several roots may be results of one node
    seen = set(stack)
    while stack:
        node = stack.pop()
        for e in node.next_edges:
            if e is not None:
                dependencies[e[0]] = dependencies.get(e[0], 0) + 1
                if e[0] not in seen:
                    seen.add(e[0])
                    stack.append(e[0])
    collected: dict = {}
    if wanted is not None:
        # Only nodes from which a wanted edge can be reached need to run.
        useful = {e[0] for e in wanted if e is not None}
        for node in sorted(seen, key=lambda n: n.sequence_nr):
            if node not in useful and any(e is not None and e[0] in useful for e in node.next_edges):
                useful.add(node)

    def add(edge, ct):
        node, nr = edge
        slots = buffers.setdefault(node, [None] * max(len(node.outputs), nr + 1))
        slots[nr] = ct if slots[nr] is None else aten.add.Tensor(slots[nr], ct)

    for edge, ct in zip(roots, cotangents):
        if edge is not None:
            add(edge, ct)
    tie = 0
    ready = []
    for node in {e[0] for e in roots if e is not None}:
        if not dependencies.get(node):
            heapq.heappush(ready, (-node.sequence_nr, tie := tie + 1, node))
    shared = _Shared(cotangents)
    while ready:
        _, _, node = heapq.heappop(ready)
        cts = buffers.pop(node, None)
        if cts is None or (useful is not None and node not in useful):
            grads = [None] * len(node.next_edges)
        else:
            grads = _step(node, cts, wanted, collected, shared, create_graph)
            if not keep_graph:
                node.release()  # only what has run: another branch may be asked for later
        for edge, g in zip(node.next_edges, grads):
            if edge is None:
                continue
            if g is not None:
                add(edge, g)
            dependencies[edge[0]] -= 1
            if dependencies[edge[0]] == 0:
                heapq.heappush(ready, (-edge[0].sequence_nr, tie := tie + 1, edge[0]))
    return collected


class _Shared:
    """Memory that a leaf must not take over as its gradient: it is also the user's, or another leaf's."""

    def __init__(self, cotangents):
        self._seen = {id(c._storage): c for c in cotangents if c is not None}

    def take(self, g) -> bool:
        """Whether ``g`` may be stored without a copy."""
        storage = g._storage
        if (
            id(storage) in self._seen
            or not g.is_contiguous()
            or g._shape.numel() * g._dtype.itemsize != storage.nbytes()
        ):
            return False
        self._seen[id(storage)] = g
        return True


def _step(node, cts, wanted, collected, shared, create_graph):
    for nr, hooks in node.pre_hooks.items():
        for hook in list(hooks.values()):
            if cts[nr] is not None:
                got = hook(cts[nr])
                if got is not None:
                    cts[nr] = got
    for hook in list(node.node_pre_hooks.values()):
        got = hook(tuple(cts))
        if got is not None:
            cts = list(got)
    for nr, ref in node.retained.items():
        t = ref()
        if t is not None and cts[nr] is not None:
            t._grad = cts[nr] if t._grad is None else aten.add.Tensor(t._grad, cts[nr])
    if wanted is not None:
        for nr, ct in enumerate(cts):
            if (node, nr) in wanted:
                collected[(node, nr)] = ct
    if isinstance(node, AccumulateGrad):
        if wanted is None and cts[0] is not None:
            _accumulate(node, cts[0], shared, create_graph)
        return []
    if not any(c is not None for c in cts):
        return [None] * len(node.next_edges)
    if wanted is not None and not any(e is not None for e in node.next_edges):
        return []
    filled = (
        [c if c is not None or meta is None else _zeros(meta, cts) for c, meta in zip(cts, node.outputs)]
        if node.materialize
        else cts
    )
    grads = list(node.apply(*filled))
    for hook in list(node.node_hooks.values()):
        got = hook(tuple(grads), tuple(cts))
        if got is not None:
            grads = list(got)
    return grads


Node.materialize = True


def _zeros(meta, cts):
    shape, dtype, device = meta
    like = next((c for c in cts if c is not None and c._keys), None)
    if like is not None:
        return aten.new_zeros.default(like, list(shape), dtype=dtype)
    return aten.zeros.default(list(shape), dtype=dtype, device=device)


def _accumulate(node, g, shared, create_graph):
    leaf = node.variable
    if leaf is None:
        return
    if tuple(g._shape) != tuple(leaf._shape):
        raise RuntimeError(f"a gradient of shape {list(g._shape)} was computed for a leaf of shape {list(leaf._shape)}")
    if leaf._grad is None:
        if create_graph:
            leaf._grad = g if g._requires_grad else aten.clone.default(g)
        else:
            leaf._grad = aten.detach.default(g) if shared.take(g) else aten.clone.default(g)
    elif create_graph:
        leaf._grad = aten.add.Tensor(leaf._grad, g)
    else:
        aten.add_.Tensor(leaf._grad, g)
    for hook in list(node.post_hooks.values()):
        hook(leaf)


def _engine(outputs, grads, wanted, keep_graph, create_graph):
    for o in outputs:
        if not o._requires_grad:
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    before = _C.tls("grad_enabled", int(create_graph))
    try:
        # Formulas differentiate again only when a graph of the backward is asked for; without it skip the recording key.
        cts = _root_cotangents(outputs, grads)
        edges = [gradient_edge(o) for o in outputs]
        if create_graph:
            excluded = _C.tls("excluded")
            _C.tls("excluded", excluded & ~K.AUTOGRAD)
            try:
                return run(edges, cts, wanted, keep_graph, True)
            finally:
                _C.tls("excluded", excluded)
        with excluding(K.AUTOGRAD):
            return run(edges, cts, wanted, keep_graph, False)
    finally:
        _C.tls("grad_enabled", before)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Accumulate gradients of ``tensors`` into the leaves they depend on (or into ``inputs`` only)."""
    tensors = _as_list(tensors)
    grads = _as_list(grad_tensors) if grad_tensors is not None else [None] * len(tensors)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        _engine(tensors, grads, None, keep, create_graph)
        return
    got = grad(tensors, _as_list(inputs), grads, keep, create_graph, allow_unused=True)
    for t, g in zip(_as_list(inputs), got):
        if g is not None:
            t._grad = g if t._grad is None else aten.add.Tensor(t._grad, g)


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
    ``allow_unused`` (then None) or ``materialize_grads`` (then zeros)."""
    outputs, inputs = _as_list(outputs), _as_list(inputs)
    if _C.has_override(*outputs, *inputs):
        return handle_torch_function(
            grad,
            (*outputs, *inputs),
            outputs,
            inputs,
            grad_outputs,
            retain_graph,
            create_graph,
            only_inputs,
            allow_unused,
            is_grads_batched,
            materialize_grads,
        )
    grads = _as_list(grad_outputs) if grad_outputs is not None else [None] * len(outputs)
    keep = create_graph if retain_graph is None else retain_graph
    edges = []
    for t in inputs:
        if not t._requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(gradient_edge(t))
    if is_grads_batched:
        raise NotImplementedError(
            "autograd.grad: is_grads_batched=True is not built yet; use torch.vmap over autograd.grad's outputs instead"
        )
    collected = _engine(outputs, grads, set(edges), keep, create_graph)
    result = []
    for k, (t, e) in enumerate(zip(inputs, edges)):
        g = collected.get(e)
        if g is None and materialize_grads:
            g = aten.zeros_like.default(t)
        if g is None and not allow_unused:
            raise RuntimeError(
                f"One of the differentiated Tensors (input {k}) appears to not have been used in the graph. "
                "Set allow_unused=True if this "
                "is the desired behavior."
            )
        result.append(g)
    return tuple(result)
