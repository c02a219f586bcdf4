"""Structures of pytrees as JSON: what ``treespec_dumps`` and ``treespec_loads`` write and read."""

from __future__ import annotations

import json

from .pytree_nodes import SUPPORTED_NODES, node_type

__all__ = ["dumps", "loads"]

_PROTOCOL = 1


def dumps(tree, protocol: int | None = None) -> str:
    """The structure of a tree as JSON. NotImplementedError for a registered type without ``serialized_type_name``, ValueError for another
    protocol."""
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps([_PROTOCOL, _dump(tree)])


def _dump(tree) -> dict:
    kind = node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None:
        return {"type": None, "context": None, "children_spec": []}
    name = node.serialized_type_name or (f"{kind.__module__}.{kind.__qualname__}" if _standard(kind) else None)
    if name is None:
        raise NotImplementedError(
            f"No registered serialization name for {kind} found: give serialized_type_name to register_pytree_node"
        )
    children, context = node.flatten_fn(tree)
    try:
        written = node.to_dumpable_context(context) if node.to_dumpable_context else json.dumps(context)
    except TypeError as error:
        raise TypeError(
            f"Unable to serialize the context of {kind}: give to_dumpable_context to register_pytree_node"
        ) from error
    return {"type": name, "context": written, "children_spec": [_dump(c) for c in children]}


def _standard(kind) -> bool:
    return kind.__module__ in ("builtins", "collections")


def loads(text: str, leaf):
    """The tree that :func:`dumps` described, with ``leaf`` at its leaves. ValueError for another protocol."""
    protocol, spec = json.loads(text)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return _load(spec, leaf)


def _load(spec, leaf):
    if spec["type"] is None:
        return leaf
    for kind, node in SUPPORTED_NODES.items():
        if (node.serialized_type_name or (_standard(kind) and f"{kind.__module__}.{kind.__qualname__}")) == spec[
            "type"
        ]:
            context = spec["context"]
            context = node.from_dumpable_context(context) if node.from_dumpable_context else json.loads(context)
            return node.unflatten_fn([_load(c, leaf) for c in spec["children_spec"]], context)
    raise ValueError(f"Serialized type {spec['type']!r} is not a registered pytree node type")
