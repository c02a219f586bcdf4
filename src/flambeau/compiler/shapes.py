"""``compile(dynamic_shapes=)``: a specification as in ``torch.export.export``, by the sources of the tensors it is about."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from flambeau.dynamo.exc import UserError, UserErrorType
from flambeau.dynamo.rules import trace_rules

__all__ = ["shape_specs"]


def _invalid(text: str) -> UserError:
    return UserError(UserErrorType.INVALID_INPUT, f"torch.compile(dynamic_shapes=): {text}")


def shape_specs(fn: Callable, spec: Any) -> dict[str, dict]:
    """source -> {dimension: {kind, lo, hi, name, size}}, or {"number": True} for an int that varies. UserError for names that are no parameters
    and for what says nothing about a size; NotImplementedError for derived dimensions."""
    target = fn.forward if trace_rules.is_nn_module_class(type(fn)) else fn
    parameters = list(inspect.signature(target).parameters.values())
    names = [p.name for p in parameters]
    if isinstance(spec, Mapping):
        unknown = [k for k in spec if k not in names]
        if unknown:
            raise _invalid(f"{unknown} are no parameters; these are {names}")
        given = dict(spec)
    elif isinstance(spec, (tuple, list)):
        if len(spec) > len(names):
            raise _invalid(f"{len(spec)} specifications for the parameters {names}")
        given = dict(zip(names, spec))
    else:
        raise _invalid(f"a dict, list or tuple is expected, got {type(spec).__name__}")
    out: dict[str, dict] = {}
    for name, s in given.items():
        _collect(f"L[{name!r}]", name, s, out)
    return out


def _collect(source: str, where: str, spec: Any, out: dict) -> None:
    dims = importlib.import_module("flambeau.export.dynamic_shapes")
    leaf = (dims.Dim, dims.DimHint, int, type(None))
    if spec is None:
        return
    if isinstance(spec, dims.DimHint):
        out[source] = {"number": spec.kind != "STATIC"}
    elif (
        isinstance(spec, Mapping)
        and all(type(k) is int for k in spec)
        and all(isinstance(s, leaf) for s in spec.values())
    ):
        out[source] = {d: _size(where, s, dims) for d, s in spec.items() if s is not None}
    elif (
        isinstance(spec, (tuple, list))
        and spec
        and all(isinstance(s, leaf) for s in spec)
        and any(s is not None for s in spec)
    ):
        out[source] = {d: _size(where, s, dims) for d, s in enumerate(spec) if s is not None}
    elif isinstance(spec, Mapping):
        for k, s in spec.items():
            _collect(f"{source}[{k!r}]", f"{where}[{k!r}]", s, out)
    elif isinstance(spec, (tuple, list)):
        for k, s in enumerate(spec):
            _collect(f"{source}[{k}]", f"{where}[{k}]", s, out)
    else:
        raise _invalid(f"{spec!r} at {where} says nothing about a size")


def _size(where: str, s: Any, dims) -> dict:
    if isinstance(s, dims.Dim):
        if s.root is not s:
            raise NotImplementedError(
                f"torch.compile(dynamic_shapes=): derived dimensions ({s!r} at {where}) are export's"
            )
        # Sizes 0 and 1 are compiled alone: a range from 2 on is all that a graph can promise.
        return {"kind": "dynamic", "lo": s.min if s.min > 2 else None, "hi": s.max, "name": s.__name__, "size": None}
    if isinstance(s, dims.DimHint):
        kind = {"AUTO": "auto", "STATIC": "static", "DYNAMIC": "dynamic"}[s.kind]
        return {"kind": kind, "lo": s.min, "hi": s.max, "name": None, "size": None}
    return {"kind": "static", "lo": None, "hi": None, "name": None, "size": s}
