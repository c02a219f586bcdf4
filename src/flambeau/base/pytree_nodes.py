"""The node types of pytrees as PyTorch's module shows them: ``SUPPORTED_NODES``, specs made by hand.

optree flattens; here is what programs look at that walk trees themselves. A namedtuple class stands under ``collections.namedtuple``.
"""

from __future__ import annotations

import collections
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from .shapes import Size
from .symint import SymInt

__all__ = ["SUPPORTED_NODES", "NodeDef", "name_namedtuple", "node_type", "sample"]


class NodeDef(NamedTuple):
    """How one type is taken apart and put together; the last three are for JSON and for key paths."""

    type: Any
    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Callable | None = None
    serialized_type_name: str | None = None
    to_dumpable_context: Callable | None = None
    from_dumpable_context: Callable | None = None


def _named(kind):
    return NodeDef(
        kind,
        lambda x: (list(x), type(x)),
        lambda values, cls: cls(*values),
        None,
        "collections.namedtuple",
        _name_of,
        lambda name: next((cls for cls, n in _NAMES.items() if n == name), None) or _found(*name.rsplit(".", 1)),
    )


_NAMES: dict[type, str] = {}  # of namedtuple classes in JSON, where they were given one


def name_namedtuple(cls: type, name: str) -> None:
    """``name`` stands for the namedtuple class in JSON."""
    _NAMES[cls] = name


def _name_of(cls: type) -> str:
    """The name given, else the path that the class can be imported by. NotImplementedError where there is neither."""
    if cls in _NAMES:
        return _NAMES[cls]
    try:
        importable = _found(cls.__module__, cls.__qualname__) is cls
    except (AttributeError, ImportError):
        importable = False
    if not importable:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a serializated_type_name. "
            "Please register using `_register_namedtuple`."
        )
    return f"{cls.__module__}.{cls.__qualname__}"


def _default(d):
    return list(d.values()), [d.default_factory, list(d)]


def _default_context(context):
    factory, keys = context
    name = (factory.__module__, factory.__qualname__) if factory is not None else (None, None)
    return {"default_factory_module": name[0], "default_factory_name": name[1], "dict_context": keys}


def _default_from(context):
    module, name = context["default_factory_module"], context["default_factory_name"]
    return [_found(module, name) if module else None, context["dict_context"]]


def _found(module: str, name: str):
    return getattr(importlib.import_module(module), name)


def _sizes(values):
    """A Size, but a plain tuple of what are no sizes any more."""
    return Size(values) if all(isinstance(n, int | SymInt) for n in values) else tuple(values)


def _mapping(kind):
    return NodeDef(kind, lambda d: (list(d.values()), list(d)), lambda values, keys: kind(zip(keys, values)))


SUPPORTED_NODES: dict[Any, NodeDef] = {
    tuple: NodeDef(tuple, lambda x: (list(x), None), lambda values, context: tuple(values)),
    list: NodeDef(list, lambda x: (x, None), lambda values, context: list(values)),
    dict: _mapping(dict),
    collections.namedtuple: _named(collections.namedtuple),
    collections.OrderedDict: _mapping(collections.OrderedDict),
    collections.defaultdict: NodeDef(
        collections.defaultdict,
        _default,
        lambda values, context: collections.defaultdict(context[0], zip(context[1], values)),
        to_dumpable_context=_default_context,
        from_dumpable_context=_default_from,
    ),
    collections.deque: NodeDef(
        collections.deque,
        lambda x: (list(x), x.maxlen),
        lambda values, maxlen: collections.deque(values, maxlen=maxlen),
    ),
    Size: NodeDef(Size, lambda x: (list(x), None), lambda values, context: _sizes(values), None, "torch.Size"),
}


def node_type(tree) -> Any:
    """The key of ``SUPPORTED_NODES`` for a tree: its class, or ``collections.namedtuple`` for an instance of one."""
    cls = type(tree)
    if cls not in SUPPORTED_NODES and issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return collections.namedtuple
    return cls


def sample(kind, context, children: list):
    """A tree of this node type with these children."""
    if kind not in SUPPORTED_NODES:
        raise ValueError(f"TreeSpec: {kind!r} is not a registered pytree node type")
    return SUPPORTED_NODES[kind].unflatten_fn(children, context)
