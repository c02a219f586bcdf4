"""The FORWARD key: tangents of dual numbers, pushed through every operator from the formulas of its gradient.

A tensor's tangent is in a :class:`Tangent` that its saved aliases share, so that a formula of a backward finds the tangents of what was saved and
its result carries one: forward over reverse. The key is above AUTOGRAD: the operator runs and is recorded below, then its tangent follows from the
rule that :mod:`.rules` has for its gradient. The gradient is linear in the cotangent, and the pullback of this linear map along the tangents of the
arguments is the tangent of the result (J. Townsend, "A new trick for calculating Jacobian vector products", 2017). These are ordinary
operators again, recorded when gradients are, so that tangents have gradients.
"""

from __future__ import annotations

import functools
import threading
import weakref

from .. import _C
from ..core import keys as K
from ..core.dispatch import excluding, install, redispatch
from ..core.layouts import copy_strides
from ..core.operator import OpOverload, namespace
from .node import Saved, WrittenView, gradient_edge, replay
from .record import BARE, _decomposed, fit
from .rules import NOT_DIFFERENTIABLE, Like, plan

__all__ = ["Level", "Tangent", "close_level", "give", "level", "open_level", "primal", "tangent"]

aten = namespace("aten")
_state = threading.local()


class Tangent:
    """What holds the tangent of a tensor: of None it is said that there is none. Empty once its level is closed."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value=None):
        self.value = value


class Level:
    """An open level: it knows what carries a tangent."""

    def __init__(self):
        self.given: weakref.WeakSet[Tangent] = weakref.WeakSet()


def level() -> Level | None:
    """The level that this thread has open."""
    return getattr(_state, "level", None)


def open_level() -> Level:
    _state.level = Level()
    _C.tls("forward_open", int(is_enabled()))
    return _state.level


def is_enabled() -> bool:
    """Whether operators push tangents in this thread, where a level is open."""
    return getattr(_state, "enabled", True)


def set_enabled(mode: bool) -> None:
    """Push tangents, or leave those that are there and make none."""
    _state.enabled = bool(mode)
    _C.tls("forward_open", int(_state.enabled and level() is not None))


def close_level() -> None:
    """No tensor has a tangent any more."""
    for held in _state.level.given:
        held.value = None
    _state.level = None
    _C.tls("forward_open", 0)


def is_float(x) -> bool:
    return isinstance(x, _C.TensorBase) and (x._dtype.is_floating_point or x._dtype.is_complex)


def tangent(x):
    """The tangent of a tensor or None; that of a view whose root got one by a write is the same view of the root's."""
    if x._forward is not None:
        return x._forward.value
    steps = _C.view_map(x)
    whole = None if steps is None else tangent(x._autograd.root)
    if whole is None:
        return None
    with excluding(K.FORWARD):
        part = replay(whole, steps)
    give(x, part)
    return part


def give(x, value) -> None:
    """``x`` has this tangent from now on, also where its backward keeps it."""
    held = Tangent(value)
    level().given.add(held)
    x._forward = held
    _share(x._grad_fn, x._output_nr, held)


def _share(node, number: int, held: Tangent) -> None:
    if isinstance(node, WrittenView):
        _share(node.inner, 0, held)
    elif not _C.share_forward(node, number, held):
        for saved in getattr(node, "_saved", None) or ():
            if isinstance(saved, Saved):
                saved.share(number, held)


def primal(x):
    """An alias of ``x`` without a tangent."""
    with excluding(K.FORWARD):
        out = _C.past_overrides(aten.alias.default, x)
    out._forward = Tangent()
    return out


def detached(x):
    """``x.detach()``, but with its tangent."""
    out = aten.detach.default(x)
    out._forward = x._forward
    return out


def in_order_of(x, t):
    """A tangent in memory as the tensor is, so that what can be viewed there can be viewed here."""
    strides = copy_strides(x._shape, x._strides)
    if tuple(t._strides) == tuple(strides) or x._array is None:
        return t
    return aten.copy_.default(aten.new_empty_strided.default(t, list(x._shape), list(strides)), t)


# ---- the tangents of one call ------------------------------------------------------------------------------------------------


def _tangents(full) -> dict:
    """Tangents by the position of their argument; of a list a list, None for those without."""
    found = {}
    for i, x in enumerate(full):
        if isinstance(x, _C.TensorBase):
            t = tangent(x)
        elif isinstance(x, (list, tuple)):
            t = [tangent(y) if isinstance(y, _C.TensorBase) else None for y in x]
            t = t if any(y is not None for y in t) else None
        else:
            continue
        if t is not None:
            found[i] = t
    return found


def _by_columns(x) -> bool:
    if not isinstance(x, _C.TensorBase) or x._ndim not in (2, 3):
        return False
    columns = tuple(x._strides[-2:]) == (1, x._shape[-2])
    return columns and (x._ndim == 2 or x._strides[0] == 0)


@functools.cache
def _positions(op: OpOverload) -> dict[str, int]:
    return {a.name: i for i, a in enumerate(op._schema.arguments)}


def _value(op, name: str, full, results):
    """What a formula's parameter is given, see record.choose()."""
    at = _positions(op)
    if name in at:
        return full[at[name]]
    if name.endswith("_like"):
        return Like.of(full[at[name[:-5]]])
    if name.endswith("_by_columns"):
        return _by_columns(full[at[name[:-11]]])
    return results[int(name[6:]) if name[6:] else 0]


def _differentiable(op: OpOverload, results) -> list[bool]:
    mask = op.differentiable_outputs
    return [is_float(r) and (mask is None or min(k, 63) in mask) for k, r in enumerate(results)]


def _asks(x) -> bool:
    return any(map(_asks, x)) if isinstance(x, (list, tuple)) else isinstance(x, _C.TensorBase) and x._requires_grad


def _in_pairs(op: OpOverload, full, tangents: dict, gradients) -> tuple[list, list]:
    """The gradients of the arguments that have a tangent, those in lists one by one, and their tangents."""
    pulled, along = [], []
    for (i, given), gradient in zip(sorted(tangents.items()), gradients):
        listed = isinstance(given, list)
        for x, t, g in zip(full[i], given, gradient or ()) if listed else [(full[i], given, gradient)]:
            if g is not None and t is not None:
                g = fit(g, x._shape, x._dtype, x._device, op.name(), i)
                if g._requires_grad:
                    pulled.append(g)
                    along.append(t)
    return pulled, along


def _pushed(op: OpOverload, full, results, tangents: dict) -> list:
    """The tangents of ``results`` = op(*full), None for what isn't differentiable. Results are recorded already where they have a history."""
    differentiable = _differentiable(op, results)
    if not any(differentiable):
        return [None] * len(results)
    rule = plan(op, full, tuple(sorted(tangents)))
    recorded = bool(_C.tls("grad_enabled")) and _asks([*full, *results, *tangents.values()])
    # The user's hooks on what is saved are not for what is saved here.
    with _C.Guard(readmit=K.AUTOGRAD, exclude=K.FORWARD, grad_enabled=1), _C.Guard(clear="saved_hooks"):
        zeros = [
            aten.zeros_like.default(aten.detach.default(r)) if d else None for r, d in zip(results, differentiable)
        ]
        # Of operators that take it to be missing, a result without elements stands for what isn't kept.
        comes = [z is not None and (BARE not in op.tags or z.numel() > 0) for z in zeros]
        cts = [aten.detach.default(z).requires_grad_() if c else None for z, c in zip(zeros, comes)]
        try:
            gradients = rule.run(cts, {name: _value(op, name, full, results) for name in rule.saves})
        except NotImplementedError as error:
            raise NotImplementedError(
                f"Trying to use forward AD with {op._opname} that does not support it because it has not been implemented yet."
            ) from error
        pulled, along = _in_pairs(op, full, tangents, gradients)
        at = [k for k, ct in enumerate(cts) if ct is not None] if pulled else []
        edges = tuple(gradient_edge(cts[k]) for k in at)
        found = _C.run_backward(tuple(pulled), tuple(along), edges, recorded, recorded, False) if at else ()
    for k, t in zip(at, found):
        zeros[k] = zeros[k] if t is None else t
    return _owned(zeros, results, tangents)


def _owned(found: list, results, tangents: dict) -> list:
    """New tangents with memory of their own, in their results' order: they may be written."""
    taken = {id(t._storage) for given in tangents.values() for t in _listed(given) if t is not None}
    made = []
    with excluding(K.FORWARD):
        for r, t in zip(results, found):
            if t is not None:
                t = in_order_of(r, t)
                t = aten.clone.default(t) if id(t._storage) in taken else t
                taken.add(id(t._storage))
            made.append(t)
    return made


def _listed(result) -> list:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def forward(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Handler of the FORWARD key."""
    full = op.full(*args, **kwargs)
    if _decomposed(op) or "autograd" in op.overrides:
        return op.overrides.get("autograd", op.definition.fn)(*full)
    tangents = _tangents(full)
    below = keys & K.below(K.FORWARD)
    if not tangents or (op.kind != "inplace" and _constant(op)):
        with excluding(K.FORWARD):
            return redispatch(op, below, args, kwargs)
    if op.kind == "out":
        raise NotImplementedError(
            f"Trying to use forward AD with {op._opname}_{op._overloadname} that does not support it because it is an out= function"
        )
    if op.kind == "inplace":
        return _inplace(op, below, args, kwargs, full, tangents)
    with excluding(K.FORWARD):
        result = redispatch(op, below, args, kwargs)
        results = _listed(result)
        if op is aten.detach.default:
            result._forward = Tangent()
            return result
        if op._schema.is_view:
            made = _listed(_call(op, [tangents.get(i, x) for i, x in enumerate(full)]))
        else:
            made = _pushed(op, full, results, tangents)
    for r, t in zip(results, made):
        if t is not None:
            give(r, t)
    return result


def _constant(op: OpOverload) -> bool:
    return op.vjp_formulas == {} or (op.kind in NOT_DIFFERENTIABLE and not op.vjp_formulas)


def _inplace(op, below, args, kwargs, full, tangents):
    """The new tangent is worked out before the write and written where the old one is, so that views of both see it."""
    functional, target = op.definition.functional, full[0]
    old = tangents.get(0)
    with excluding(K.FORWARD):
        if not is_float(target):
            return redispatch(op, below, args, kwargs)
        if functional.kind == "view":
            result = redispatch(op, below, args, kwargs)
            give(target, _call(functional, [old, *full[1:]]))
            return result
        values = list(full[: len(functional._schema.arguments)])
        if _constant(functional):
            new = aten.zeros_like.default(aten.detach.default(target))
        else:
            saves = plan(functional, tuple(values), tuple(sorted(tangents))).saves
            if _schema_name(functional) in saves:
                values[0] = aten.clone.default(target)
            results = [target]
            if any(n.startswith("result") for n in saves):
                results = _listed(_call(functional, values))
            (new, *_) = _pushed(functional, tuple(values), results, tangents)
        if new._dtype is not target._dtype:
            new = aten._to_copy.default(new, dtype=target._dtype)
        result = redispatch(op, below, args, kwargs)
        if old is not None:
            aten.copy_.default(old, new)
            give(target, old)
            return result
        steps = _C.view_map(target)
        if steps is not None and is_float(target._autograd.root):
            root = target._autograd.root
            whole = aten.zeros_like.default(aten.detach.default(root))
            give(root, whole)
            old = replay(whole, steps)
            aten.copy_.default(old, new)
            new = old
        give(target, new)
        _C.note_written_dual(target)
    return result


def _schema_name(op: OpOverload) -> str:
    return op._schema.arguments[0].name


def _call(op: OpOverload, values):
    args, kwargs = op.split(tuple(values))
    return op(*args, **kwargs)


install(K.FORWARD, forward)
