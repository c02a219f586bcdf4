"""SchemaCheckMode: checks that operators write and alias as their schemas say.

Compares each tensor argument with a copy taken before the call: a write that the schema doesn't declare, and a result that shares memory
with an argument in a way it doesn't declare, raise RuntimeError naming the operator and the argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import _C
from ..base.pytree import tree_flatten
from ..core.modes import TorchDispatchMode

__all__ = ["Aliasing", "Mutation", "SchemaCheckMode"]


class Mutation(NamedTuple):
    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    op_name: str
    arg_name: str
    output_number: str


def _tensors(x) -> list:
    return [t for t in tree_flatten(x)[0] if isinstance(t, _C.TensorBase)]


def _fingerprint(t):
    """What a write would change: values and metadata."""
    return None if t._array is None else t._array.tobytes(), tuple(t._shape), t._strides, t._offset


def _overlaps(a, b) -> bool:
    if a._storage is not b._storage:
        return a._array is not None and b._array is not None and np.shares_memory(a._array, b._array)
    return a._array is None or b._array is None or np.may_share_memory(a._array, b._array)


class SchemaCheckMode(TorchDispatchMode):
    """While on, checks every call. ``ops``: names of the calls; ``mutated``, ``aliasing``: what was seen."""

    def __init__(self):
        super().__init__()
        self.ops: list[str] = []
        self.mutated: list[Mutation] = []
        self.aliasing: list[Aliasing] = []

    def reset_cache(self) -> None:
        self.ops.clear()
        self.mutated.clear()
        self.aliasing.clear()

    def display_ops(self) -> None:
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        schema, name = func._schema, func._schema.name
        values = list(zip(schema.arguments, func.full(*args, **(kwargs or {}))))
        before = [[_fingerprint(t) for t in _tensors(v)] for _, v in values]
        out = func(*args, **(kwargs or {}))
        self.ops.append(name)
        one_list = len(schema.returns) == 1 and schema.returns[0].is_list
        results = list(out) if isinstance(out, (tuple, list)) and not one_list else [out]
        for (a, v), old in zip(values, before):
            tensors = _tensors(v)
            if any(_fingerprint(t) != f for t, f in zip(tensors, old)):
                if not a.is_write:
                    raise RuntimeError(f"Argument {a.name} is not defined as mutable but was mutated (operator {name})")
                self.mutated.append(Mutation(name, a.name))
            elif a.is_write and tensors and any(t._writes for t in tensors):
                self.mutated.append(Mutation(name, a.name))
            for k, r in enumerate(results):
                shared = any(_overlaps(t, o) for t in tensors for o in _tensors(r))
                if not shared:
                    continue
                if not _may_alias(a, schema.returns[k] if k < len(schema.returns) else None):
                    raise RuntimeError(
                        f"Argument {a.name} is not defined to alias output but was aliasing (operator {name}, output {k})"
                    )
                self.aliasing.append(Aliasing(name, a.name, f"output_{k}"))
        written = {id(t) for a, v in values if a.is_write for t in _tensors(v)}
        for k, r in enumerate(results):
            for j in range(k):
                if any(
                    _overlaps(x, y) and id(x) not in written for x in _tensors(r) for y in _tensors(results[j])
                ) and not _views(schema):
                    raise RuntimeError(f"Outputs {j} and {k} alias unexpectedly (operator {name})")
        return out


def _may_alias(argument, result) -> bool:
    if result is None or argument.alias_info is None or result.alias_info is None:
        return False
    mine, theirs = argument.alias_info.before_set, result.alias_info.before_set
    return bool(mine & theirs) or "*" in mine | theirs


def _views(schema) -> bool:
    return any(r.alias_info for r in schema.returns)
