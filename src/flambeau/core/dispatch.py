"""The way of a call that something interposes on: from the highest key it has to the backend.

The native call path (csrc/core/dispatch.c) comes here with the keys it found. Level-3 packages install one handler for their key;
``handler(op, keys, args, kwargs)`` goes on with :func:`redispatch` and the keys below its own. Implicit composites are decomposed before
anything else, so that every layer sees the operators they are made of; only a dispatch mode of the user's (one whose ``sees_parts`` is false) is
shown as one call what PyTorch shows it as one, and the facet ``"watched"`` of a composite says what PyTorch makes it of.
"""

from __future__ import annotations

from .. import _C
from ..base import upper_levels
from . import keys as K
from . import modes
from .operator import OpOverload, decomposed
from .overrides import DisableTorchFunctionSubclass

__all__ = ["HANDLERS", "excluding", "install", "python_key", "redispatch"]

HANDLERS: dict[
    int | str, object
] = {}  # "function": what runs autograd.Function while vmap does; "dual": on dual numbers


def install(key: int | str, handler) -> None:
    """Set the handler of a dispatch key (or of another entry of HANDLERS)."""
    HANDLERS[key] = handler


def dispatch(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Run ``op`` for a set of keys."""
    if decomposed(op):
        return _open(op, keys, args, kwargs)
    if keys & (K.TRANSFORM | K.FORWARD):
        # A rule calls operators on what it takes out of a wrapper: no class is shown those calls.
        with DisableTorchFunctionSubclass():
            return HANDLERS[K.TRANSFORM if keys & K.TRANSFORM else K.FORWARD](op, keys, args, kwargs)
    if keys & K.AUTOGRAD:
        kernel = op.overrides.get("autograd")
        return HANDLERS[K.AUTOGRAD](op, keys, args, kwargs) if kernel is None else kernel(*op.full(*args, **kwargs))
    if keys & K.FUNCTIONALIZE:
        with DisableTorchFunctionSubclass():
            return HANDLERS[K.FUNCTIONALIZE](op, keys, args, kwargs)
    if keys & K.PYTHON:
        return python_key(op, keys, args, kwargs)
    return HANDLERS[K.BACKEND](op, keys, args, kwargs)


redispatch = dispatch


def _open(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """An implicit composite: what it is made of, except for a mode that is shown operators as PyTorch has them, or all composites."""
    if not keys & K.PYTHON or keys & (K.TRANSFORM | K.FORWARD | K.FUNCTIONALIZE):
        return op.definition.fn(*op.full(*args, **kwargs))
    mode = _C.innermost("dispatch_modes")
    if mode and mode.sees_composites and op.namespace == "aten":
        return python_key(op, keys, args, kwargs)
    if not watched():
        return op.definition.fn(*op.full(*args, **kwargs))
    parts = op.overrides.get("watched")
    if parts is not None or not whole(op):
        return (parts or op.definition.fn)(*op.full(*args, **kwargs))
    return HANDLERS["whole"](op, keys, args, kwargs) if keys & K.AUTOGRAD else python_key(op, keys, args, kwargs)


def watched() -> bool:
    """Whether the innermost dispatch mode is shown ATen's operators as PyTorch has them."""
    mode = _C.innermost("dispatch_modes")
    return bool(mode) and not mode.sees_parts


def whole(op: OpOverload) -> bool:
    """Whether such a mode sees a composite as one call: PyTorch has a kernel or a derivative for it."""
    global _decomposed_in_pytorch
    if _decomposed_in_pytorch is None:
        _decomposed_in_pytorch = upper_levels.ask("composites that PyTorch decomposes")
    return (
        op.namespace == "aten"
        and op.name().removeprefix("aten::").removesuffix(".default") not in _decomposed_in_pytorch
    )


_decomposed_in_pytorch: frozenset | None = None  # read when a mode first asks


def derivatives_asked() -> bool:
    """Whether what runs now may be differentiated: by the tape, or by tangents of dual numbers."""
    return bool(_C.tls("grad_enabled") or _C.tls("forward_open"))


def wrapped(t) -> bool:
    """Whether a tensor is more than its elements now: mapped by vmap, or a dual number."""
    return bool(t._keys & K.TRANSFORM or (_C.tls("forward_open") and t._forward is not None))


def differentiated(t) -> bool:
    """Whether a derivative of what is done with a tensor may be asked for; of a mapped one that isn't known."""
    return wrapped(t) or bool(_C.tls("grad_enabled") and t._requires_grad)


def excluding(keys: int):
    """Context manager: no call in the block (of this thread) has these keys."""
    return _C.Guard(exclude=keys)


# ---- the Python key ------------------------------------------------------------------------------------------------------


def _python_tensors(args, kwargs) -> list:
    given = (*args, *kwargs.values())
    found = [y for x in given for y in (x if isinstance(x, (list, tuple)) else (x,))]
    return [x for x in found if isinstance(x, _C.TensorBase) and x._keys & K.PYTHON]


def overriding_types(tensors) -> list[type]:
    """Distinct types, left to right, except that a subclass comes before its superclasses."""
    types: list[type] = []
    for t in map(type, tensors):
        if t in types:
            continue
        at = next((i for i, other in enumerate(types) if issubclass(t, other)), len(types))
        types.insert(at, t)
    return types


def python_key(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Hand the call to the innermost mode, else to the subclasses among the arguments.

    Arguments equal to their defaults are removed first. NotImplemented falls through to the next in turn; TypeError when all decline.
    """
    if kwargs or len(args) != op.required:
        args, kwargs = op._normalize(*args, **kwargs)
    types = tuple(overriding_types(_python_tensors(args, kwargs))) if keys & K.SUBCLASS else ()
    if not _C.innermost("dispatch_modes"):
        return _subclasses(op, types, args, kwargs, [])
    tried: list = []
    result = _modes(op, types, args, kwargs, tried)
    if result is not NotImplemented:
        return _checked(op, result, tried[-1], args, kwargs)
    # Every mode declined: what the subclass does is shown to all of them again.
    if types:
        return _subclasses(op, types, args, kwargs, tried)
    raise _declined(op, tried)


def _modes(op, types, args, kwargs, tried: list):
    """What the innermost mode that doesn't decline makes of the call, with it and those within it off; they are added to ``tried``."""
    with modes.popped("dispatch") as mode:
        tried.append(mode)
        result = mode.__torch_dispatch__(op, types, args, kwargs)
        if result is NotImplemented and _C.tls("dispatch_modes"):
            return _modes(op, types, args, kwargs, tried)
        return result


def _subclasses(op, types, args, kwargs, tried):
    counts = _counts(op, args, kwargs) if op._schema.is_mutable else ()
    for cls in types:
        result = cls.__torch_dispatch__(op, types, args, kwargs)
        if result is not NotImplemented:
            for t, writes in counts:
                if t._writes == writes:
                    t._bump_version()
            return _checked(op, result, cls, args, kwargs)
        tried.append(cls)
    raise _declined(op, tried)


def _counts(op, args, kwargs) -> list:
    """(wrapper, its writes) of the arguments that ``op`` writes. A handler writes what a wrapper holds: unless it does so itself, the wrapper's own
    version counts that, so that a saved wrapper is known to be changed."""
    return [
        (t, t._writes)
        for argument, value in zip(op._schema.arguments, op.full(*args, **kwargs))
        if argument.is_write
        for t in (value if isinstance(value, list) else [value])
        if isinstance(t, _C.TensorBase) and t._array is None and t._keys & K.PYTHON
    ]


def _declined(op, tried) -> TypeError:
    names = ", ".join(getattr(t, "__name__", type(t).__name__) for t in tried)
    return TypeError(
        f"Multiple dispatch failed for '{op}'; all __torch_dispatch__ handlers returned NotImplemented: {names}. "
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def _checked(op: OpOverload, result, who, args, kwargs):
    """Results of user handlers are checked against the schema: count, and tensors where tensors are promised. An in-place operator
    returns the very argument it wrote, whatever the handler made of it."""
    returns = op._schema.returns
    if op.kind == "inplace":
        return args[0] if args else kwargs["self"]
    if not returns:
        return result
    if len(returns) == 1:
        ok = _fits(returns[0], result)
    else:
        ok = isinstance(result, (list, tuple)) and len(result) == len(returns) and all(map(_fits, returns, result))
    if not ok:
        name = getattr(who, "__name__", type(who).__name__)
        got = (
            f"a {type(result).__name__} of {len(result)}"
            if isinstance(result, (list, tuple))
            else type(result).__name__
        )
        raise TypeError(
            f"{name}.__torch_dispatch__ returned {got} for {op}, which returns ({', '.join(map(str, returns))})"
        )
    return result


def _fits(r, x) -> bool:
    if not r.is_tensor:
        return True
    return isinstance(x, (list, tuple)) if r.is_list else x is None or isinstance(x, _C.TensorBase)


def dispatch_keys(t) -> str:
    """The keys a tensor brings to a call, as text."""
    keys = t._keys | K.BACKEND | K.AUTOGRAD
    return K.describe(keys)


_C._dispatch_keys = dispatch_keys
_C.set_handlers(dispatch=dispatch, python=python_key, checked=_checked)
