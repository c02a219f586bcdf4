"""Modules as functions of their parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from .. import _C
from ..core.operator import namespace

__all__ = ["functional_call", "stack_module_state"]

aten = namespace("aten")


def _places(module) -> dict[str, tuple[dict, str]]:
    """Name -> (dict of the owning module, key), for each parameter and buffer."""
    out = {}
    for prefix, m in module.named_modules(remove_duplicate=False):
        for store in (m._parameters, m._buffers):
            for key, x in store.items():
                if x is not None:
                    out[f"{prefix}.{key}" if prefix else key] = (store, key)
    return out


def _tied(places, values: dict) -> dict:
    """``values`` with a value for every name of a tensor that the module holds under several."""
    groups: dict[int, list[str]] = {}
    for name, (store, key) in places.items():
        groups.setdefault(id(store[key]), []).append(name)
    out = dict(values)
    for names in groups.values():
        given = [n for n in names if n in values]
        if len(names) < 2 or not given:
            continue
        if len({id(values[n]) for n in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        out.update(dict.fromkeys(names, values[given[0]]))
    return out


@contextlib.contextmanager
def _swapped(module, values: dict, tie_weights: bool, strict: bool):
    places = _places(module)
    if tie_weights:
        values = _tied(places, values)
    unknown, missing = [n for n in values if n not in places], [n for n in places if n not in values]
    if strict and (unknown or missing):
        lines = [
            f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
            for what, names in (("Unexpected", unknown), ("Missing", missing))
            if names
        ]
        raise RuntimeError(
            "Error(s) in reparametrizing for {}:\n\t{}".format(type(module).__name__, "\n\t".join(lines))
        )
    before = []
    try:
        for name, value in values.items():
            if name in places:
                if not isinstance(value, _C.TensorBase):
                    raise TypeError(f"{value} is not an instance of torch.Tensor")
                store, key = places[name]
                before.append((store, key, store[key]))
                store[key] = value
        yield
        # What the module wrote over its buffers shows in the caller's dict, not in the module.
        for name, value in list(values.items()):
            if name in places:
                store, key = places[name]
                if store[key] is not value:
                    values[name] = store[key]
    finally:
        for store, key, value in reversed(before):
            store[key] = value


def functional_call(
    module,
    parameter_and_buffer_dicts: dict | Sequence[dict],
    args: Any = None,
    kwargs: dict | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """``module(*args, **kwargs)`` with parameters and buffers replaced by those given by name. The module is left as
    it was."""
    if isinstance(parameter_and_buffer_dicts, dict):
        values = dict(parameter_and_buffer_dicts)
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(d, dict) for d in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [k for d in parameter_and_buffer_dicts for k in d]
        repeated = [k for k in dict.fromkeys(names) if names.count(k) > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        values = {k: v for d in parameter_and_buffer_dicts for k, v in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _swapped(module, values, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def stack_module_state(models) -> tuple[dict, dict]:
    """(parameters, buffers) of several modules of one class, stacked by name along a new first dimension, for vmap
    over an ensemble."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(m.training) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    out = []
    for method in ("named_parameters", "named_buffers"):
        all_of = [dict(getattr(m, method)()) for m in models]
        out.append({name: _stacked(name, [d[name] for d in all_of]) for name in all_of[0]})
    return tuple(out)


def _stacked(name, tensors):
    wants = {bool(t.requires_grad) for t in tensors}
    if len(wants) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    out = aten.stack.default(tensors, 0)
    return aten.detach.default(out).requires_grad_() if wants == {True} else out
