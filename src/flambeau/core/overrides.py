"""``__torch_function__``: the public API handed to modes and to classes that override it."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .. import _C
from ..base.public import public_in
from . import modes

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "checked_input",
    "handle_torch_function",
    "has_torch_function",
    "overridable",
    "override",
    "override_own",
    "relevant_types",
    "wrap_function",
    "wrap_native",
]

_disabled = _C._disabled_torch_function_impl


def relevant_args(values) -> list:
    """Arguments whose class overrides __torch_function__, one a type; subclasses before superclasses, else left to right."""
    out: list = []
    for x in values:
        cls = type(x)
        if isinstance(x, type) or any(cls is type(o) for o in out):
            continue
        if isinstance(x, _C.TensorBase):
            if not x._flags & 8:
                continue
        elif getattr(cls, "__torch_function__", _disabled) is _disabled:
            continue
        at = next((i for i, o in enumerate(out) if issubclass(cls, type(o))), len(out))
        out.insert(at, x)
    return out


def relevant_types(args, kwargs) -> list:
    values = []
    for x in (*args, *kwargs.values()):
        values.append(x)
        if isinstance(x, (list, tuple)):
            values.extend(x)
    return relevant_args(values)


def override(func, args, kwargs):
    """Run ``func(*args, **kwargs)`` through the innermost function mode and the overriding arguments. Called from native code."""
    attribute = getattr(func, "getter_of", None)  # of a property: overrides are handed its __get__, as in PyTorch
    if attribute is not None:
        func = attribute.__get__
    at = getattr(func, "operands_from", None)
    if at is not None and len(args) == at + 1 and isinstance(args[at], (list, tuple)):
        args = (*args[:at], *args[at])
    if getattr(func, "spells_out", False):
        args, kwargs = _spelled_out(func.impl, args, kwargs)
    return _override(func, relevant_types(args, kwargs) if _C.tls("function_disabled") == 0 else [], args, kwargs)


def override_own(func, args):
    """The same of an operator of which the class of the first operand alone is asked, besides modes. Called from native code."""
    return _override(func, relevant_args(args[:1]) if _C.tls("function_disabled") == 0 else [], args, {})


def _override(func, relevant, args, kwargs):
    types = tuple(map(type, relevant))
    if _C.tls("function_modes") and _C.tls("function_disabled") < 2:
        with modes.popped("function") as mode:
            result = mode.__torch_function__(func, types, args, kwargs)
            if result is NotImplemented and _C.tls("function_modes"):
                return _override(func, relevant, args, kwargs)
        if result is not NotImplemented:
            return result
    for x in relevant:
        result = type(x).__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(func, "__name__", str(func))
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: {[t.__name__ for t in types]}"
        + (", nor by the active modes" if _C.tls("function_modes") else "")
    )


def has_torch_function(relevant) -> bool:
    """Whether a function mode is on or one of the arguments overrides. TypeError when ``relevant`` is no sequence."""
    try:
        return _C.has_override(*relevant)
    except TypeError:
        raise TypeError(f"expected a sequence of arguments, got {type(relevant).__name__}") from None


def handle_torch_function(public_api, relevant, *args, **kwargs):
    """Entry for functions written in Python: call right after has_torch_function said yes."""
    return _override(public_api, relevant_args(relevant) if _C.tls("function_disabled") == 0 else [], args, kwargs)


def wrap_function(fn, operands_from: int | None = None, module: str | None = None, overloads=None, binds: bool = True):
    """Give a Python function the override protocol: the result is a native Function that calls ``fn`` when nothing overrides.
    ``operands_from``: where its operands begin, of a function that takes them as one list as well; overrides are given them one by one.
    ``module``: where users find it, in PyTorch's names; "torch" unless given. ``overloads``: a binding, whose operator is called without ``fn`` when
    the arguments fit one of its overloads. ``binds``: whether a class that holds it has a method in it: False for what PyTorch has in C."""
    out = _C.Function(fn.__name__, fn) if overloads is None else _C.Function(fn.__name__, fn, overloads.impl.overloads)
    out.binds = binds
    if module is not None:
        out.__module__ = module
    if operands_from is not None:
        out.operands_from = operands_from
    functools.update_wrapper(out, fn, assigned=("__qualname__",), updated=())
    return out


def wrap_native(fn):
    """The same for a function that PyTorch has in C: a class that holds it has no method in it."""
    return wrap_function(fn, binds=False)


def checked_input(name: str, value: Any) -> Any:
    """``value``, the argument ``input`` of function ``name``. TypeError when it is no tensor."""
    if not isinstance(value, _C.TensorBase):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")
    return value


def overridable(fn=None, *, overloads=None):
    """Decorator of the functions of ``torch.nn.functional`` that are written in Python: overrides are handed them as PyTorch's are, with what has
    no default by position and the rest by keyword. ``overloads``: a binding whose operator the function is where its arguments fit, by position."""
    if fn is None:
        return functools.partial(overridable, overloads=overloads)
    out = wrap_function(fn, module="torch.nn.functional", overloads=overloads)
    out.spells_out = True
    return out


def _spelled_out(fn, args, kwargs):
    """``args`` and ``kwargs`` of a call of ``fn``, defaults included; as they are where they don't fit, so that the call itself raises."""
    try:
        call = inspect.signature(fn).bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    call.apply_defaults()
    given = call.arguments
    parameters = call.signature.parameters.values()
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return args, kwargs
    return (
        tuple(given[p.name] for p in parameters if p.default is p.empty),
        {p.name: given[p.name] for p in parameters if p.default is not p.empty},
    )


def is_torch_function_enabled() -> bool:
    """Whether arguments' classes override functions: not in blocks of DisableTorchFunctionSubclass and DisableTorchFunction."""
    return not _C.tls("function_disabled", 0)


def is_torch_function_all_disabled() -> bool:
    """Whether neither arguments' classes nor modes override functions: in blocks of DisableTorchFunction."""
    return _C.tls("function_disabled", 0) > 1


class EnableTorchFunction:
    """As long as the object lives, arguments and modes override, whatever was disabled before."""

    def __init__(self):
        self._before = _C.tls("function_disabled", 0)

    def __del__(self):
        _C.tls("function_disabled", self._before)


@public_in("_C")
class DisableTorchFunctionSubclass(_C.Guard):
    """Arguments don't override; modes still do."""

    def __init__(self):
        super().__init__(function_disabled=1)


@public_in("_C")
class DisableTorchFunction(_C.Guard):
    """Neither arguments nor modes override."""

    def __init__(self):
        super().__init__(function_disabled=2)


_C.set_handlers(override=override)
