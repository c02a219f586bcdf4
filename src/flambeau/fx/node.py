"""A node of a graph: one operation, its arguments and the users of its result.

Invariant: ``b in a.users`` exactly when ``a`` occurs somewhere in ``b.args`` or ``b.kwargs``; the setters keep it.
Nodes form a doubly linked ring around the graph's root, which makes insertion and removal O(1)."""

from __future__ import annotations

import builtins
import operator
import sys
import traceback
import types
from collections.abc import Callable, Iterable
from typing import Any

from .. import _C
from ..core.operator import namespace
from ..core.pickling import public_path
from .immutable_collections import immutable_dict, immutable_list

__all__ = ["OPS", "Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

OPS = frozenset({"placeholder", "get_attr", "call_function", "call_method", "call_module", "output"})

Argument = Any
Target = Any

_side_effectful: set[Any] = set()
_WRITES = {
    setattr, delattr, operator.setitem, operator.delitem, operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow, operator.imatmul, operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift,
}  # fmt: skip


def _has_effects(fn: Any) -> bool:
    """Whether a function writes or draws, by the schema of the operator it is (or is the public name of)."""
    op = getattr(fn, "_opoverload", fn)
    if hasattr(op, "effects"):
        return bool(op.effects)
    if hasattr(op, "_overloads"):
        return _any_overload(op)
    return isinstance(fn, _C.Function) and _packet_has_effects(fn.__name__)


def mutated_by(fn: Any, kwargs: dict[str, Any]) -> str | None:
    """The operator, as ``aten::sigmoid.out``, by which a call writes to an argument; None where it doesn't."""
    op = getattr(fn, "_opoverload", fn)
    if hasattr(op, "_schema"):
        return f"{op.namespace}::{op.__name__}" if "writes" in op.effects else None
    name = getattr(fn, "__name__", "")
    packet = op if hasattr(op, "_overloads") else getattr(namespace("aten"), name, None) if name else None
    if packet is None or not (hasattr(op, "_overloads") or isinstance(fn, _C.Function)):
        return None
    if kwargs.get("out") is not None:
        return f"aten::{name}.out"
    return f"aten::{name}" if name.endswith("_") and not name.startswith("_") else None


def _packet_has_effects(name: str) -> bool:
    try:
        return _any_overload(getattr(namespace("aten"), name))
    except AttributeError:
        return False


def _any_overload(packet: Any) -> bool:
    """Overloads that write into an ``out=`` aside, all overloads of a name have the same effects."""
    return any(o.effects for o in packet._overloads.values() if o.kind != "out")


def has_side_effect(fn: Callable) -> Callable:
    """Mark a function as one whose call must be kept even when its result is unused. Usable as a decorator."""
    _side_effectful.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Argument:
    """Apply ``fn`` to every leaf of nested tuples, lists, dicts and slices. The result's containers are immutable."""
    if isinstance(a, tuple):
        items = tuple(map_aggregate(e, fn) for e in a)
        return type(a)(*items) if hasattr(a, "_fields") else items
    if isinstance(a, list):
        return immutable_list(map_aggregate(e, fn) for e in a)
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Argument:
    """Apply ``fn`` to every Node within ``a``."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


_ATOMS = frozenset({int, float, bool, str, type(None), complex, bytes})


def _freeze(a: Argument, inputs: dict) -> Argument:
    """``a`` with immutable containers, its nodes added to ``inputs``. The common cases of map_aggregate, unrolled."""
    t = type(a)
    if t in _ATOMS:
        return a
    if t is Node:
        inputs[a] = None
        return a
    if t is tuple:
        return tuple([_freeze(e, inputs) for e in a])
    if t is list or t is immutable_list:
        return immutable_list([_freeze(e, inputs) for e in a])

    def see(x):
        if isinstance(x, Node):
            inputs[x] = None
        return x

    return map_aggregate(a, see)


def type_name(target: Any) -> str:
    return getattr(target, "__name__", type(target).__name__)


class Node:
    """``op`` is one of :data:`OPS`; ``target`` the callable, method name, attribute path or placeholder name."""

    __slots__ = (
        "graph",
        "name",
        "op",
        "target",
        "type",
        "users",
        "meta",
        "_args",
        "_kwargs",
        "_inputs",
        "_prev",
        "_next",
        "_erased",
        "_order",
        "__weakref__",
        "__dict__",  # passes of other people's keep their notes on nodes
    )

    def __init__(self, graph, name, op, target, args=(), kwargs=None, type_expr=None):
        if op not in OPS and op != "root":
            raise ValueError(f"unknown op {op!r} for node {name!r}; one of {sorted(OPS)} is expected")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node {name!r}: call_function needs a callable target, got {target!r}")
        if op in ("placeholder", "get_attr", "call_method", "call_module", "output") and not isinstance(target, str):
            raise ValueError(f"Node {name!r}: {op} needs a str target, got {type_name(type(target))}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = type_expr
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = immutable_dict()
        self._prev = self._next = self
        self._erased = False
        self._order = 0
        if args or kwargs:
            self._set(args, kwargs or {})

    # -- arguments ------------------------------------------------------------------------------------------------

    def _set(self, args: tuple, kwargs: dict) -> None:
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"Node {self.name}: args must be a tuple, got {type(args).__name__}")
        inputs: dict[Node, None] = {}
        args = tuple([_freeze(a, inputs) for a in args])
        kwargs = immutable_dict([(k, _freeze(v, inputs)) for k, v in kwargs.items()])
        for old in self._inputs:
            if old not in inputs:
                old.users.pop(self, None)
        for new in inputs:
            new.users.setdefault(self)
        self._args, self._kwargs, self._inputs = args, kwargs, inputs

    @property
    def args(self) -> tuple:
        return self._args

    @args.setter
    def args(self, value) -> None:
        self._set(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value) -> None:
        self._set(self._args, value)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace the positional argument at ``idx``."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before ``idx``."""
        if not 0 <= idx <= len(self._args):
            raise ValueError("insert_args index must be between 0 and len(self.args)")
        self.args = self._args[:idx] + (arg,) + self._args[idx:]

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set the keyword argument ``key``."""
        self.kwargs = {**self._kwargs, key: arg}

    @property
    def all_input_nodes(self) -> list[Node]:
        """Every node this one reads, each once, in order of occurrence."""
        return list(self._inputs)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Make every user (for which ``delete_user_cb`` holds) read ``replace_with``. Returns the users changed."""
        if propagate_meta:
            for key, value in self.meta.items():
                replace_with.meta.setdefault(key, value)
        changed = [u for u in self.users if delete_user_cb(u)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Read ``new_input`` wherever ``old_input`` was read."""

        def swap(n):
            return new_input if n is old_input else n

        self._set(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    # -- position -------------------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def prepend(self, x: Node) -> None:
        """Insert ``x`` before this node (moving it if it already is in the graph)."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._moved()

    def append(self, x: Node) -> None:
        """Insert ``x`` after this node."""
        if x is not self:
            x._unlink()
            self._next.prepend(x)

    def _unlink(self) -> None:
        p, n = self._prev, self._next
        p._next, n._prev = n, p

    def __lt__(self, other: Node) -> bool:
        """Whether this node stands before ``other`` in its graph."""
        self.graph._number()
        return self._order < other._order

    # -- what it is -----------------------------------------------------------------------------------------------

    def is_impure(self) -> bool:
        """Whether dead-code elimination must keep this node: inputs, outputs, mutations and marked functions."""
        if self.op in ("placeholder", "output"):
            return True
        effects = self.meta.get("effects")
        if effects is not None:  # seen when the call was traced
            return bool(effects)
        if self.op == "call_function":
            if self.target in _side_effectful:
                return True
            return self.target in _WRITES or _has_effects(self.target)
        if self.op == "call_method":
            return self.target == "__setitem__" or _packet_has_effects(self.target)
        if self.op == "call_module":
            owner = self.graph.owning_module
            called = owner
            for part in self.target.split("."):
                called = getattr(called, part, None)
            return bool(getattr(called, "_is_impure", False))
        return False

    def format_node(self, placeholder_names=None, maybe_return_typename=None, **_ignored) -> str | None:
        """One readable line, as ``print(graph)`` shows it."""
        if self.op == "placeholder":
            default = f"(default={self.args[0]!r})" if self.args else ""
            return f"%{self.name} : [num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : [num_users={len(self.users)}] = get_attr[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        args = ", ".join(_format_arg(a) for a in self.args)
        kwargs = ", ".join(f"{k}: {_format_arg(v)}" for k, v in self.kwargs.items())
        kind = "" if self.type is None else f"{type_text(self.type)} "
        return (
            f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={target_str(self.target)}]"
            f"(args = ({args}{',' if len(self.args) == 1 else ''}), kwargs = {{{kwargs}}})"
        )

    def __repr__(self) -> str:
        return self.name

    def __deepcopy__(self, memo):
        raise TypeError("a Node is copied with its Graph; use Graph.node_copy to copy one node")

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that it comes from, outermost first."""
        text = self.meta.get("stack_trace")
        if text is None and "user_stack" in self.meta:
            text = "".join(traceback.format_list(self.meta["user_stack"]))
        return text

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace


def type_text(t: Any) -> str:
    """``int``, ``typing.List[float]``, ``module.Class``."""
    if not isinstance(t, type) or isinstance(t, types.GenericAlias):
        return repr(t)
    return t.__qualname__ if t.__module__ == "builtins" else f"{t.__module__}.{t.__qualname__}"


def target_str(target: Target) -> str:
    """``aten.sin.default`` for an operator, ``torch.sin`` or ``module.function`` for a function, the text for a str."""
    if isinstance(target, str):
        return target
    if hasattr(target, "_schema"):
        return f"torch.ops.{target}"
    module = getattr(target, "__module__", None)
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    if isinstance(target, (types.BuiltinFunctionType, type)) and getattr(builtins, str(name), None) is target:
        return f"builtins.{name}"
    if name is None:
        return repr(target)
    if isinstance(target, _C.Function) and (found := public_path(target)) is not None:
        return f"torch{found[0].removeprefix('flambeau')}.{found[1]}"
    torch = sys.modules.get("flambeau")
    for space, prefix in ((torch, "torch"), (sys.modules.get("flambeau.nn.functional"), "torch.nn.functional")):
        if space is not None and vars(space).get(str(name)) is target:
            return f"{prefix}.{name}"
    return f"{module.lstrip('_')}.{name}" if module else name


def _format_arg(a: Argument) -> str:
    """Argument text with nodes written ``%name``."""
    if isinstance(a, Node):
        return f"%{a.name}"
    if hasattr(a, "_fields"):
        return f"{type(a).__name__}({', '.join(f'{k}={_format_arg(v)}' for k, v in zip(a._fields, a))})"
    if isinstance(a, tuple):
        return f"({', '.join(map(_format_arg, a))}{',' if len(a) == 1 else ''})"
    if isinstance(a, list):
        return f"[{', '.join(map(_format_arg, a))}]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in a.items()) + "}"
    if isinstance(a, slice):
        return f"slice({_format_arg(a.start)}, {_format_arg(a.stop)}, {_format_arg(a.step)})"
    return str(a)


def nodes_in(a: Argument) -> Iterable[Node]:
    """The nodes within a nested argument, with repetitions."""
    found: list[Node] = []
    map_arg(a, found.append)
    return found
