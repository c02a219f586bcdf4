"""The AUTOGRAD key: run the operator below, leave a node on what it returns."""

from __future__ import annotations

import functools

from .. import _C
from ..base.shapes import dense_order
from ..core import keys as K
from ..core.dispatch import excluding, install, redispatch
from ..core.operator import OpOverload, namespace
from ..core.viewmap import ViewInfo
from .node import Node, Saved, _output_meta, gradient_edge
from .rules import NOT_DIFFERENTIABLE, Like, plan

aten = namespace("aten")


class OpNode(Node):
    """The backward of one operator call."""

    def __init__(self, op: OpOverload, edges, outputs, run, needs, inputs_meta):
        super().__init__(_node_name(op), edges, outputs)
        self.op, self._run, self._needs, self._inputs_meta = op, run, needs, inputs_meta
        self.saved: dict[str, object] = {}

    def __getattr__(self, name):
        if name.startswith("_saved_"):
            value = self.__dict__["saved"].get(name[7:])
            if value is not None:
                return _unpack(value, self)
        raise AttributeError(f"'{self._name}' object has no attribute '{name}'")

    def apply(self, *cts):
        values = {k: _unpack(v, self) for k, v in self.saved.items()}
        out = []
        for g, metas in zip(self._run(cts, values), self._inputs_meta):
            if isinstance(metas, list):
                out.extend(
                    None if m is None else _fit(x, m, self._name) for x, m in zip(g or [None] * len(metas), metas)
                )
            else:
                out.append(_fit(g, metas, self._name))
        return out

    def release(self):
        for v in self.saved.values():
            if isinstance(v, Saved):
                v.release()
            elif isinstance(v, list):
                for x in v:
                    if isinstance(x, Saved):
                        x.release()


def _unpack(v, node):
    if isinstance(v, Saved):
        return v.unpack(node)
    if isinstance(v, list):
        return [_unpack(x, node) for x in v]
    return v


def _fit(g, meta, name="backward"):
    """A cotangent with the shape and dtype of the argument: summed over broadcast dimensions, cast back."""
    if g is None:
        return None
    shape, dtype = meta
    if tuple(g._shape) != shape:
        pad = g._ndim - len(shape)
        dims = list(range(pad)) + [i + pad for i, n in enumerate(shape) if n == 1 and g._shape[i + pad] != 1]
        if dims:
            g = aten.sum.dim_IntList(g, dims, True)
        if pad:
            g = aten.view.default(g, list(shape))
    if tuple(g._shape) != shape:
        raise RuntimeError(
            f"Function {name} returned an invalid gradient - got {list(g._shape)} but expected shape compatible with {list(shape)}"
        )
    if g._dtype is not dtype:
        g = aten._to_copy.default(g, dtype=dtype)
    return g


@functools.cache
@functools.cache
def _node_name(op: OpOverload) -> str:
    base = "".join(w.capitalize() for w in op._opname.strip("_").split("_"))
    packet = op.overloadpacket
    return f"{base}Backward{list(packet._overloads).index(op._overloadname) if op._overloadname in packet._overloads else 0}"


def _differentiable(t) -> bool:
    return t._dtype.category >= 2


def _is_output(op, nr, o) -> bool:
    """Whether result ``nr`` carries the node."""
    return _differentiable(o) and (op.differentiable_outputs is None or nr in op.differentiable_outputs)


def _requires(x) -> bool:
    return isinstance(x, _C.TensorBase) and x._requires_grad


def autograd(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Handler of the AUTOGRAD key."""
    if op.kind in ("inplace", "out"):
        return _mutating(op, keys, args, kwargs)
    full = op.full(*args, **kwargs)
    if op.kind == "composite" and op.vjp_formulas is None and any(r.is_tensor for r in op._schema.returns):
        return op.overrides.get("autograd", op.definition.fn)(*full)  # no formula of its own: the parts have theirs
    below = keys & K.below(K.AUTOGRAD)
    kernel = op.kernel if below == K.BACKEND else None
    before = _C.exclude(K.AUTOGRAD)
    try:
        result = _C.quiet(kernel, *args, **kwargs) if kernel is not None else redispatch(op, below, args, kwargs)
    finally:
        _C.restore(before)
    needs = _needs(full)
    if needs:
        record(op, full, result, needs)
    return result


def _needs(full) -> tuple[int, ...]:
    """Positions of the arguments that ask for a gradient, those of lists included."""
    out = []
    for i, x in enumerate(full):
        if isinstance(x, _C.TensorBase):
            if x._requires_grad:
                out.append(i)
        elif x.__class__ in (list, tuple) and any(map(_requires, x)):
            out.append(i)
    return tuple(out)


def _leaves(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


@functools.cache
def _positions(op) -> dict[str, int]:
    return {a.name: i for i, a in enumerate(op._schema.arguments)}


def record(op, full, result, needs) -> Node | None:
    """Put a node for this call on its differentiable results. Mutable operators without a rule raise."""
    outs = _leaves(result)
    if op.vjp_formulas == {} or (op.kind in NOT_DIFFERENTIABLE and not op.vjp_formulas):
        return None
    if not any(isinstance(o, _C.TensorBase) and _differentiable(o) for o in outs):
        return None
    p = plan(op, full, needs)
    node = make_node(op, full, p, needs, outs)
    for nr, o in enumerate(outs):
        if isinstance(o, _C.TensorBase) and _is_output(op, nr, o):
            o._grad_fn, o._output_nr = node, nr
            o._flags |= K.REQUIRES_GRAD
    if op._schema.is_view and not any(o._autograd for o in outs if isinstance(o, _C.TensorBase)):
        for k, o in enumerate(outs):
            o._autograd = ViewInfo(op, full[0], full[1:], k if isinstance(result, (list, tuple)) else None)
    return node


def make_node(op, full, p, needs, outs):
    edges, metas = [], []
    for i in needs:
        x = full[i]
        if isinstance(x, (list, tuple)):
            metas.append([(tuple(t._shape), t._dtype) if _requires(t) else None for t in x])
            edges.extend(gradient_edge(t) if _requires(t) else None for t in x)
        else:
            metas.append((tuple(x._shape), x._dtype))
            edges.append(gradient_edge(x))
    node = OpNode(
        op, edges, [_output_meta(o) if isinstance(o, _C.TensorBase) else None for o in outs], p.run, needs, metas
    )
    at = _positions(op)
    for name in p.saves:
        if name in at:
            x = full[at[name]]
            if isinstance(x, _C.TensorBase):
                x = Saved(x, None, name)
            elif isinstance(x, (list, tuple)) and any(isinstance(t, _C.TensorBase) for t in x):
                x = [Saved(t, None, name) if isinstance(t, _C.TensorBase) else t for t in x]
            node.saved[name] = x
        elif name.endswith("_like"):
            node.saved[name] = Like.of(full[at[name[:-5]]])
        else:
            nr = int(name[6:]) if name[6:] else 0
            o = outs[nr]
            node.saved[name] = (
                Saved(o, nr if _is_output(op, nr, o) else None, name) if isinstance(o, _C.TensorBase) else o
            )
    return node


# ---- in-place ------------------------------------------------------------------------------------------------------------


def _mutating(op, keys, args, kwargs):
    full = op.full(*args, **kwargs)
    if op.kind == "out":
        if any(_requires(x) for x in full):
            raise RuntimeError(
                f"{op._opname}(): functions with out=... arguments don't support automatic differentiation, but one of the "
                "arguments requires grad."
            )
        with excluding(K.AUTOGRAD):
            return redispatch(op, keys & K.below(K.AUTOGRAD), args, kwargs)
    target = full[0]
    view = target._autograd if isinstance(target._autograd, ViewInfo) else None
    base = _root(target) if view is not None else None
    if target._requires_grad and target._grad_fn is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if base is not None and base._requires_grad and base._grad_fn is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    functional = op.definition.functional
    needs = _needs(full)
    p = plan(functional, full, needs)
    before = full
    names = [a.name for a in functional._schema.arguments]
    if names[0] in p.saves:  # the formula reads the value that is about to be overwritten
        with excluding(K.AUTOGRAD):
            before = (aten.clone.default(target), *full[1:])
        before[0]._grad_fn, before[0]._output_nr = target._grad_fn, target._output_nr
        before[0]._flags |= target._flags & K.REQUIRES_GRAD
    with excluding(K.AUTOGRAD):
        redispatch(op, keys & K.below(K.AUTOGRAD), args, kwargs)
    node = make_node(functional, before, p, needs, [target])
    target._storage.recorded = 1  # other views of this memory look again
    if base is not None:
        _rebase(base, target, node)
    else:
        target._grad_fn, target._output_nr = node, 0
        target._flags |= K.REQUIRES_GRAD
    return target


def _root(t):
    while isinstance(t._autograd, ViewInfo):
        t = t._autograd.base
    return t


class CopySlices(Node):
    """The backward of writing into a view: the written region of the base's cotangent goes through ``inner``, the rest passes."""

    def __init__(self, base, view, inner: OpNode):
        super().__init__("CopySlices", [gradient_edge(base)], [_output_meta(base)])
        self.inner, self._chain = inner, _chain_of(view)
        self._order = dense_order(base._shape, base._strides)
        # The first edge of inner is the old view itself when it took part; its cotangent goes back into the base's.
        self._self_at = 0 if 0 in inner._needs else None
        self.next_edges += [e for k, e in enumerate(inner.next_edges) if k != self._self_at]

    def apply(self, ct):
        # In the base's own memory order, or the views on the way to the region might not exist.
        whole = aten.clone.default(aten.permute.default(ct, list(self._order)), memory_format="contiguous_format")
        whole = aten.permute.default(whole, [self._order.index(d) for d in range(len(self._order))])
        region = whole
        for info in self._chain:
            region = info.replay(region)
        cts = self.inner.apply(aten.clone.default(region))
        part = cts[0] if self._self_at is not None else None
        if part is None:
            region.zero_()
        else:
            region.copy_(part)
        return [whole, *(c for k, c in enumerate(cts) if k != self._self_at)]

    def release(self):
        self.inner.release()


def _chain_of(t):
    chain = []
    while isinstance(t._autograd, ViewInfo):
        chain.append(t._autograd)
        t = t._autograd.base
    return list(reversed(chain))


def _rebase(base, view, inner):
    node = CopySlices(base, view, inner)
    base._grad_fn, base._output_nr = node, 0
    base._flags |= K.REQUIRES_GRAD
    # The view now is a view of the new base.
    t = base
    for info in _chain_of(view):
        t = info.replay(t)
    view._grad_fn, view._output_nr = t._grad_fn, t._output_nr
    view._flags |= K.REQUIRES_GRAD
    view._autograd.generation = view._autograd.base._grad_fn


install(K.AUTOGRAD, autograd)
