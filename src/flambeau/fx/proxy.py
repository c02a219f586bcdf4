"""Proxies: values that record what is done to them as nodes of a graph."""

from __future__ import annotations

import dataclasses
import dis
import enum
import operator
import sys
import traceback
from collections.abc import Callable
from typing import Any

from ..base.user_line import is_user_frame
from .codegen import _BINARY, _UNARY
from .graph import Graph
from .immutable_collections import immutable_dict, immutable_list
from .node import Argument, Node, Target, map_aggregate, mutated_by
from .traceback import copy_meta

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "ProxyableClassMeta",
    "TraceError",
    "TracerBase",
    "map_proxies",
]

_CONSTANTS = (str, int, float, bool, complex, bytes, range, type(None), type(...), enum.Enum)


class TraceError(ValueError):
    """The traced program asks a Proxy for something only a value can answer."""


def map_proxies(a: Any, fn: Callable[[Any], Any]) -> Any:
    return map_aggregate(a, fn)


class TracerBase:
    """Turns values into node arguments and operations into proxies. ``graph`` is the graph being built. ``record_stack_traces``: nodes keep
    the lines of the program that made them. ``check_mutable_operations``: RuntimeError for a call of an operator that writes to an argument."""

    graph: Graph
    root: Any = None
    record_stack_traces = False
    check_mutable_operations = False

    def create_node(
        self, kind: str, target: Target, args: tuple, kwargs: dict, name: str | None = None, type_expr=None
    ) -> Node:
        if kind == "call_function" and self.check_mutable_operations and (op := mutated_by(target, kwargs)):
            raise RuntimeError(
                f"Tried to trace mutable operation {op}. FX only supports functional code, so operations that mutate operands in-place "
                "(e.g. via `out` arguments) are not supported"
            )
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        copy_meta(node)
        if self.record_stack_traces and node.stack_trace is None:
            frames = [f for f, _ in traceback.walk_stack(sys._getframe(1)) if is_user_frame(f)]
            lines = [traceback.FrameSummary(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in frames]
            node.stack_trace = "".join(traceback.format_list(reversed(lines)))
        return node

    def proxy(self, node: Node) -> Proxy:
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None) -> Proxy:
        """Make a node from values (proxies within them become their nodes) and return a proxy for it."""
        args = self.create_arg(args)
        kwargs = self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """The node argument for a value; raises NotImplementedError for values a graph can't hold. An object may give it itself
        (``__fx_create_arg__(tracer)``); a dataclass is a call of its class."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            items = tuple(map(self.create_arg, a))
            return type(a)(*items) if hasattr(a, "_fields") else items
        if isinstance(a, list):
            return immutable_list(map(self.create_arg, a))
        if isinstance(a, dict):
            if (key := next((k for k in a if isinstance(k, Proxy)), None)) is not None:
                raise RuntimeError(
                    f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key.node}"
                )
            return immutable_dict((k, self.create_arg(v)) for k, v in a.items())
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, Node) or isinstance(a, _CONSTANTS):
            return a
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        return self.create_constant(a)

    def create_constant(self, a: Any) -> Argument:
        name = type(a).__name__
        if (
            repr(a).startswith("torch.")
            or name.lower() in ("dtype", "device", "layout", "memory_format")
            or callable(a)
        ):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy):
        """``a, b = proxy``: the number of names is in the bytecode that asks. Any other loop can't be recorded."""
        frame = sys._getframe(2)  # Proxy.__iter__ is between
        if frame is not None:
            asks = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
            if asks is not None and asks.opname == "UNPACK_SEQUENCE":
                return (obj[i] for i in range(asks.argval))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument; index it instead."
        )

    def keys(self, obj: Proxy):
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends to an existing graph."""

    def __init__(self, graph: Graph):
        self.graph = graph


class Proxy:
    """Stands for the value of ``node``. Operators, attributes, methods and torch functions on it become nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(f"a Proxy has no attribute {k!r}")
        return Attribute(self, k)

    def __call__(self, *args, **kwargs) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __iter__(self):
        return self.tracer.iter(self)

    def __index__(self):
        raise TraceError("a Proxy has no integer value while tracing")

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, call torch.fx.wrap('len')"
        )

    def __contains__(self, item):
        raise TraceError("'in' on a Proxy asks for a bool, which isn't known while tracing")

    def __deepcopy__(self, memo):
        return Proxy(self.node, self.tracer)

    def keys(self):
        return self.tracer.keys(self)

    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(cls, orig_method, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        found: list[TracerBase] = []
        map_aggregate((args, kwargs), lambda a: found.append(a.tracer) if isinstance(a, Proxy) else None)
        if not found:
            return NotImplemented
        tracer = found[0]
        if any(t is not tracer for t in found):
            raise TraceError(f"Found multiple different tracers while trying to trace operations {orig_method}")
        if _is_tensor_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(orig_method.__name__)
        )


class ProxyableClassMeta(type):
    """Metaclass of classes whose instances may be made while tracing: with a Proxy among the arguments the call is recorded instead."""

    def __call__(cls, *args, **kwargs):
        found: list[Proxy] = []
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None)
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class ParameterProxy(Proxy):
    """A parameter whose ``shape``, ``dtype``, ``device``, ``ndim`` and ``size()`` are those it has now."""

    def __init__(self, node: Node, tracer: TracerBase, param: Any):
        super().__init__(node, tracer)
        self.param = param

    def __repr__(self) -> str:
        return f"ParameterProxy({self.node.target})"

    shape = property(lambda self: self.param.shape)
    dtype = property(lambda self: self.param.dtype)
    device = property(lambda self: self.param.device)
    ndim = property(lambda self: self.param.ndim)

    def size(self, dim: int | None = None):
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        return self.param.dim()

    def numel(self) -> int:
        return self.param.numel()

    nelement = numel


def _is_tensor_method(f) -> bool:
    """Whether ``f`` is reached as a method of Tensor (and not as a function of the namespace)."""
    torch = sys.modules.get("flambeau")
    name = getattr(f, "__name__", "")
    if torch is None or vars(torch).get(name) is f:
        return False
    return any(vars(c).get(name) is f for c in torch.Tensor.__mro__)


class Attribute(Proxy):
    """``x.name``: becomes a getattr node only when its value is used; called directly it is a method call."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _install():
    def forward(fn):
        def method(self, *args):
            return self.tracer.create_proxy("call_function", fn, (self, *args), {})

        return method

    def reflected(fn):
        def method(self, other):
            return self.tracer.create_proxy("call_function", fn, (other, self), {})

        return method

    for name in (*_BINARY, *_UNARY, "getitem"):
        fn = getattr(operator, name)
        setattr(Proxy, f"__{name.strip('_')}__", forward(fn))
        if name in _BINARY and name not in ("eq", "ne", "lt", "gt", "le", "ge"):
            setattr(Proxy, f"__r{name.strip('_')}__", reflected(fn))
    Proxy.__abs__ = forward(abs)


def _setitem(self, key, value):
    self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})


_install()
Proxy.__setitem__ = _setitem
