"""The way of a call that something interposes on: from the highest key it has to the backend.

The native call path (csrc/dispatch.c) comes here with the keys it found. Level-3 packages install one handler for their key;
``handler(op, keys, args, kwargs)`` goes on with :func:`redispatch` and the keys below its own. Implicit composites are opened before
anything else, so that every layer sees the operators they are made of.
"""

from __future__ import annotations

import contextlib

from .. import _C
from . import keys as K
from . import modes
from .operator import OpOverload

__all__ = ["HANDLERS", "excluding", "install", "python_key", "redispatch"]

HANDLERS: dict[int, object] = {}


def install(key: int, handler) -> None:
    """Set the handler of a dispatch key."""
    HANDLERS[key] = handler


def dispatch(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Run ``op`` for a set of keys."""
    definition = op.definition
    if definition.kind == "composite" and definition.implicit and not op.overrides:
        return definition.fn(*op.full(*args, **kwargs))
    if keys & K.TRANSFORM:
        return HANDLERS[K.TRANSFORM](op, keys, args, kwargs)
    if keys & K.AUTOGRAD:
        return HANDLERS[K.AUTOGRAD](op, keys, args, kwargs)
    if keys & K.FUNCTIONALIZE:
        return HANDLERS[K.FUNCTIONALIZE](op, keys, args, kwargs)
    if keys & K.PYTHON:
        return python_key(op, args, kwargs)
    return HANDLERS[K.BACKEND](op, keys, args, kwargs)


redispatch = dispatch


@contextlib.contextmanager
def excluding(keys: int):
    """No call in the block (of this thread) has these keys."""
    before = _C.tls("excluded")
    _C.tls("excluded", before | keys)
    try:
        yield
    finally:
        _C.tls("excluded", before)


# ---- the Python key ------------------------------------------------------------------------------------------------------


def _python_tensors(args, kwargs) -> list:
    out = []

    def visit(x, depth):
        if isinstance(x, _C.TensorBase):
            if x._keys & K.PYTHON:
                out.append(x)
        elif depth and isinstance(x, (list, tuple)):
            for y in x:
                visit(y, depth - 1)

    for a in args:
        visit(a, 1)
    for a in kwargs.values():
        visit(a, 1)
    return out


def overriding_types(tensors) -> list[type]:
    """Distinct types, left to right, except that a subclass comes before its superclasses."""
    types: list[type] = []
    for t in map(type, tensors):
        if t in types:
            continue
        at = next((i for i, other in enumerate(types) if issubclass(t, other)), len(types))
        types.insert(at, t)
    return types


def python_key(op: OpOverload, args: tuple, kwargs: dict):
    """Hand the call to the innermost mode, else to the subclasses among the arguments.

    Arguments equal to their defaults are removed first. NotImplemented falls through to the next in turn; TypeError when all decline.
    """
    args, kwargs = op.normalize(args, kwargs)
    types = overriding_types(_python_tensors(args, kwargs))
    tried = []
    if modes._stacks.dispatch:
        with modes.popped("dispatch") as mode:
            result = mode.__torch_dispatch__(op, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return _checked(op, result, mode, args, kwargs)
        tried.append(mode)
        with modes.popped("dispatch"):
            if modes._stacks.dispatch:
                return python_key(op, args, kwargs)
            if not types:
                return dispatch(op, _C.scan(args, kwargs) & K.below(K.PYTHON), args, kwargs)
            return _subclasses(op, types, args, kwargs, tried)
    return _subclasses(op, types, args, kwargs, tried)


def _subclasses(op, types, args, kwargs, tried):
    for cls in types:
        result = cls.__torch_dispatch__(op, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return _checked(op, result, cls, args, kwargs)
        tried.append(cls)
    names = ", ".join(getattr(t, "__name__", type(t).__name__) for t in tried)
    raise TypeError(f"Multiple dispatch failed for '{op}'; all __torch_dispatch__ handlers returned NotImplemented: {names}. "
                    "For more information, try re-running with TORCH_LOGS=not_implemented")


def _checked(op: OpOverload, result, who, args, kwargs):
    """Results of user handlers are checked against the schema: count, and tensors where tensors are promised. An in-place operator
    returns the very argument it wrote, whatever the handler made of it."""
    returns = op._schema.returns
    if op.kind == "inplace":
        return args[0] if args else kwargs["self"]
    if not returns:
        return result
    if len(returns) == 1:
        r = returns[0]
        ok = not r.is_tensor or (isinstance(result, (list, tuple)) if r.is_list else result is None or isinstance(result, _C.TensorBase))
    else:
        ok = isinstance(result, (list, tuple)) and len(result) == len(returns)
    if not ok:
        name = getattr(who, "__name__", type(who).__name__)
        raise TypeError(f"{name}.__torch_dispatch__ returned {type(result).__name__} for {op}, which returns "
                        f"({', '.join(map(str, returns))})")
    return result


_C.set_handlers(dispatch=dispatch)
