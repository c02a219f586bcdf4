"""The nesting of arguments and results, as data: it can be compared, printed and written to a file.

Tuples, lists, dicts (in the order of their keys), OrderedDicts, named tuples and classes registered with :func:`register_dataclass` are
nodes; everything else, None included, is a leaf."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

__all__ = ["Structure", "children", "path_text", "register_dataclass"]

_classes: dict[str, type] = {}  # registered dataclasses by the name that stands in files
_names: dict[type, str] = {}
_PLAIN_KEYS = (str, int, float, bool, type(None))


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Let dataclasses of this type be arguments and results of exported programs. AssertionError for what is no dataclass.
    ``serialized_type_name``: its name in files (default: module and name)."""
    if not dataclasses.is_dataclass(cls) or not isinstance(cls, type):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    if _classes.get(name, cls) is not cls:
        raise ValueError(f"{name} is registered for another class")
    _classes[name], _names[cls] = cls, name


def _is_namedtuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(type(x), "_fields") and hasattr(type(x), "_make")


def children(x: Any) -> list[tuple[Any, Any]] | None:
    """(key, value) of what a node holds; None for a leaf."""
    t = type(x)
    if t in (tuple, list):
        return list(enumerate(x))
    if t in (dict, collections.OrderedDict):
        return list(x.items())
    if _is_namedtuple(x):
        return list(zip(t._fields, x))
    if t in _names:
        return [(f.name, getattr(x, f.name)) for f in dataclasses.fields(x)]
    if isinstance(x, tuple):  # torch.Size and the like: the sizes are leaves
        return list(enumerate(x))
    return None


def path_text(path: str) -> str:
    return path[path.index("[") :] if "[" in path else ""


class Structure:
    """``kind``: "leaf", "tuple", "list", "dict", "OrderedDict", "namedtuple", "dataclass". ``keys``: of a dict, or names of fields."""

    __slots__ = ("kind", "keys", "parts", "cls", "num_leaves")

    def __init__(self, kind: str, keys: tuple = (), parts: tuple = (), cls: Any = None):
        self.kind, self.keys, self.parts, self.cls = kind, keys, parts, cls
        self.num_leaves = 1 if kind == "leaf" else sum(p.num_leaves for p in parts)

    @staticmethod
    def flatten(tree: Any) -> tuple[list[Any], Structure]:
        leaves: list[Any] = []
        return leaves, _flatten(tree, leaves)

    def unflatten(self, leaves) -> Any:
        """The tree with these leaves."""
        it = iter(leaves)
        return self._build(it)

    def _build(self, it):
        if self.kind == "leaf":
            return next(it)
        values = [p._build(it) for p in self.parts]
        if self.kind == "tuple":
            return tuple(values)
        if self.kind == "list":
            return values
        if self.kind == "dict":
            return dict(zip(self.keys, values))
        if self.kind == "OrderedDict":
            return collections.OrderedDict(zip(self.keys, values))
        if self.kind == "namedtuple":
            return self.cls._make(values)
        return self.cls(**dict(zip(self.keys, values)))

    def flatten_like(self, tree: Any) -> list[Any] | None:
        """The leaves of a tree of this structure (dicts in any order of keys); None when it has another."""
        leaves: list[Any] = []
        return leaves if self._collect(tree, leaves) else None

    def _collect(self, tree, leaves: list) -> bool:
        inner = children(tree)
        if self.kind == "leaf":
            leaves.append(tree)
            return inner is None
        if inner is None or len(inner) != len(self.parts) or not self._same_type(tree):
            return False
        if self.kind in ("dict", "OrderedDict"):
            found = dict(inner)
            if set(found) != set(self.keys):
                return False
            inner = [(k, found[k]) for k in self.keys]
        return all(p._collect(v, leaves) for p, (_, v) in zip(self.parts, inner))

    def _same_type(self, tree) -> bool:
        if self.kind == "namedtuple":
            return _is_namedtuple(tree) and type(tree)._fields == self.keys
        if self.kind == "dataclass":
            return type(tree) is self.cls
        if self.kind == "tuple":
            return isinstance(tree, tuple) and not _is_namedtuple(tree)
        return type(tree).__name__ == self.kind

    def __eq__(self, other):
        return isinstance(other, Structure) and self.to_rows(False) == other.to_rows(False)

    __hash__ = None

    def __repr__(self):
        if self.kind == "leaf":
            return "*"
        if self.kind in ("tuple", "list"):
            return f"TreeSpec({self.kind}, None, [{', '.join(map(repr, self.parts))}])"
        return f"TreeSpec({self.kind}, {list(self.keys)}, [{', '.join(map(repr, self.parts))}])"

    def paths(self, prefix: str = "") -> list[str]:
        """Names of the leaves: ``y_a`` for ``{"a": ...}`` under ``y``."""
        if self.kind == "leaf":
            return [prefix]
        keys = self.keys or range(len(self.parts))
        return [n for k, p in zip(keys, self.parts) for n in p.paths(f"{prefix}_{k}" if prefix else str(k))]

    # -- files ---------------------------------------------------------------------------------------------------------
    def to_rows(self, strict: bool = True) -> Any:
        """As nested lists. ``strict``: TypeError for keys that a file can't hold."""
        if self.kind == "leaf":
            return "*"
        if strict and not all(type(k) in _PLAIN_KEYS for k in self.keys):
            raise TypeError(f"an exported program can be saved with keys that are strings or numbers, not {self.keys}")
        name = (
            _names.get(self.cls)
            if self.kind == "dataclass"
            else self.cls.__name__
            if self.kind == "namedtuple"
            else None
        )
        return [self.kind, name, list(self.keys), [p.to_rows(strict) for p in self.parts]]

    @staticmethod
    def from_rows(rows: Any) -> Structure:
        """Inverse of :meth:`to_rows`. A named tuple is made anew from its fields, a dataclass must be registered: TypeError if not."""
        if rows == "*":
            return Structure("leaf")
        kind, name, keys, parts = rows
        if kind not in ("tuple", "list", "dict", "OrderedDict", "namedtuple", "dataclass"):
            raise TypeError(f"a structure of kind {kind!r} is unknown")
        cls = None
        if kind == "namedtuple":
            cls = collections.namedtuple(name, keys)  # checks that they are identifiers
        elif kind == "dataclass":
            cls = _classes.get(name)
            if cls is None:
                raise TypeError(f"the program takes or returns the dataclass {name}: register_dataclass it first")
        return Structure(kind, tuple(keys), tuple(map(Structure.from_rows, parts)), cls)


def _flatten(x: Any, leaves: list) -> Structure:
    inner = children(x)
    if inner is None:
        leaves.append(x)
        return Structure("leaf")
    t = type(x)
    parts = tuple(_flatten(v, leaves) for _, v in inner)
    if t in (dict, collections.OrderedDict):
        return Structure(t.__name__, tuple(k for k, _ in inner), parts)
    if _is_namedtuple(x):
        return Structure("namedtuple", t._fields, parts, t)
    if t in _names:
        return Structure("dataclass", tuple(k for k, _ in inner), parts, t)
    return Structure("list" if t is list else "tuple", (), parts)
