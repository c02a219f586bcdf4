"""The backend for conjugated and negated views: the facet ``"lazy"`` of an operator where it has one, else by what its schema says.

A view operator is applied to the memory and keeps the flags. An argument that is written is computed, written, and carried back.
Everything else gets the elements.
"""

from __future__ import annotations

from .. import _C
from ..core import keys as K
from ..core.dispatch import excluding
from ..core.lazy import applied, lazy, make, plain_of, resolved
from ..core.operator import OpOverload, namespace

aten = namespace("aten")
_ABOVE = K.PYTHON | K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM


def among(args, kwargs) -> bool:
    """Whether an argument is such a view, or a list has one."""
    for a in (*args, *kwargs.values()):
        if isinstance(a, _C.TensorBase):
            if lazy(a) is not None:
                return True
        elif isinstance(a, (list, tuple)) and any(isinstance(x, _C.TensorBase) and lazy(x) is not None for x in a):
            return True
    return False


def run(op: OpOverload, args, kwargs):
    with excluding(_ABOVE):
        full = op.full(*args, **kwargs)
        own = op.overrides.get("lazy")
        if own is not None:
            return own(*full)
        if op._schema.is_mutable:
            return _written(op, full)
        if op._schema.is_view and lazy(full[0]) is not None:
            return _view(op, full)
        return _call(op, [_with(resolved, a) for a in full])


def _with(fn, a):
    if isinstance(a, _C.TensorBase):
        return fn(a)
    if isinstance(a, (list, tuple)):
        return type(a)(fn(x) if isinstance(x, _C.TensorBase) else x for x in a)
    return a


def _call(op: OpOverload, full):
    positional, named = op.split(full)
    return op(*positional, **named)


def noted(out, source, op: OpOverload, rest: tuple = (), which=None):
    """``out`` with the relation to what it is a view of."""
    _C.forget_view(out)
    if op.tracks_views:
        _C.note_view(out, source, op, rest, which)
    return out


def _view(op: OpOverload, full):
    source, rest = full[0], tuple(full[1:])
    plain, conj, neg = plain_of(source)
    views = _call(op, [plain, *rest])
    if isinstance(views, (list, tuple)):
        return [noted(make(v, conj, neg), source, op, rest, k) for k, v in enumerate(views)]
    return noted(make(views, conj, neg), source, op, rest)


def _written(op: OpOverload, full):
    """NOTE: an argument given twice is computed once, so that both see the write."""
    elements: dict[int, tuple] = {}

    def computed(t):
        if lazy(t) is None:
            return t
        if id(t) not in elements:
            elements[id(t)] = t, resolved(t)
        return elements[id(t)][1]

    given = [_with(computed, a) for a in full]
    result = _call(op, given)
    own = {id(x): t for t, x in elements.values()}
    for argument, before, after in zip(op._schema.arguments, full, given):
        if not argument.is_write:
            continue
        pairs = zip(before, after) if isinstance(before, (list, tuple)) else ((before, after),)
        for t, x in pairs:
            p = lazy(t) if isinstance(t, _C.TensorBase) else None
            if p is None:
                continue
            if x._shape != t._shape:
                raise RuntimeError(
                    f"{op.name()}: a conjugated or negated view can't be resized from {list(t._shape)} to {list(x._shape)}"
                )
            aten.copy_.default(p.plain, applied(x, p.conj, p.neg))
    return _with(lambda x: own.get(id(x), x), result)
