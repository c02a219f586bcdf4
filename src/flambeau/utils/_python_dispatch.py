"""``torch.utils._python_dispatch``: dispatch modes and helpers for ``__torch_dispatch__``."""

from __future__ import annotations

import contextlib

from .. import _C
from ..core import modes
from ..core.modes import BaseTorchDispatchMode, TorchDispatchMode

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "enable_torch_dispatch_mode",
    "fill_defaults",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


@contextlib.contextmanager
def enable_torch_dispatch_mode(mode: TorchDispatchMode, *, replace=None, ignore_preexisting=False):
    """The older spelling of ``with mode:``. RuntimeError when a mode is active already (unless it is ``replace``): this form does not compose."""
    active = modes.current_dispatch_mode()
    if active is not None and active is not replace and not ignore_preexisting:
        raise RuntimeError(
            f"enable_torch_dispatch_mode: a {type(active).__name__} mode is active already and this form does not compose. "
            f"Write `with {type(mode).__name__}():` instead."
        )
    with mode:
        yield mode


def fill_defaults(schema, args, kwargs):
    """(args, kwargs) with the defaults that were removed before ``__torch_dispatch__`` filled in again."""
    positional = [a for a in schema.arguments if not a.kwarg_only]
    out = list(args)
    for a in positional[len(args) :]:
        if a.name in kwargs:
            out.append(kwargs[a.name])
        elif a.has_default:
            out.append(a.default_value)
        else:
            raise RuntimeError(f"{schema.name}: argument '{a.name}' is missing and has no default")
    rest = {
        a.name: kwargs.get(a.name, a.default_value)
        for a in schema.arguments
        if a.kwarg_only and (a.has_default or a.name in kwargs)
    }
    return tuple(out), rest


def _get_current_dispatch_mode():
    return modes.current_dispatch_mode()


def _get_current_dispatch_mode_stack() -> list:
    return modes.dispatch_stack()


def _len_torch_dispatch_stack() -> int:
    return len(modes.dispatch_stack())


def is_in_torch_dispatch_mode(include_infra_modes=True) -> bool:
    """Whether a dispatch mode is on."""
    return bool(modes.dispatch_stack())


def _pop_mode_temporarily(k=None):
    """Context manager: the innermost mode, off the stack."""
    return modes.popped("dispatch")


def _disable_current_modes():
    """Context manager: all modes off. Yields those that were on."""
    return modes.disabled("dispatch")


def _push_mode(mode):
    mode.__enter__()


def _pop_mode(k=None):
    mode = modes.current_dispatch_mode()
    if mode is None:
        raise AssertionError("no mode is active")
    mode.__exit__(None, None, None)
    return mode


def is_traceable_wrapper_subclass(t) -> bool:
    """Whether a tensor subclass says how it is made of plain tensors (``__tensor_flatten__`` and ``__tensor_unflatten__``)."""
    return (
        isinstance(t, _C.TensorBase)
        and type(t).__torch_dispatch__ is not _C._disabled_torch_dispatch_impl
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """A wrapper like ``t`` with ``callback(attribute, inner)`` applied to each inner tensor."""
    attributes, context = t.__tensor_flatten__()
    inner = {a: callback(a, getattr(t, a)) for a in attributes}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a wrapper's ``__torch_dispatch__`` should return so that aliasing is as the schema of ``func`` says.

    A result of a view shares the storage object of the argument it views; a written argument is itself returned.
    """
    schema = func._schema
    values = func.full(*args, **(kwargs or {}))
    if schema.is_view and isinstance(values[0], _C.TensorBase):
        for o in out if isinstance(out, (list, tuple)) else [out]:
            if isinstance(o, _C.TensorBase) and o is not values[0]:
                o._storage = values[0]._storage
        return out
    written = [v for a, v in zip(schema.arguments, values) if a.is_write]
    if not written:
        return out
    return written[0] if len(schema.returns) == 1 else tuple(written) if schema.returns else out
