"""symbolic_trace: run a function or module on Proxies and keep the graph.

Data-dependent control flow can't be recorded this way (a TraceError says so); capturing arbitrary programs is dynamo's
work.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .graph import Graph
from .graph_module import GraphModule
from .node import Argument
from .proxy import Proxy, TracerBase

__all__ = ["Tracer", "symbolic_trace", "wrap"]

_wrapped: list[tuple[dict, str]] = []


def wrap(fn_or_name):
    """Record calls of this global function (or name) of the calling module as one node instead of tracing into it."""
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


class Tracer(TracerBase):
    """Override :meth:`is_leaf_module` to choose which submodules stay calls."""

    def __init__(self, autowrap_modules=(), autowrap_functions=(), param_shapes_constant: bool = False):
        self.autowrap_functions = tuple(autowrap_functions)
        self._paths: dict[int, str] = {}
        self._values: dict[int, str] = {}
        self._constants: dict[str, Any] = {}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Modules of ``nn`` stay calls, except Sequential."""
        return type(m).__module__.startswith("flambeau.nn") and type(m).__name__ != "Sequential"

    def path_of_module(self, mod: Any) -> str:
        try:
            return self._paths[id(mod)]
        except KeyError:
            raise NameError("module is not installed as a submodule") from None

    def create_constant(self, a: Any) -> Argument:
        path = self._values.get(id(a))
        if path is None and hasattr(a, "dtype") and hasattr(a, "shape"):
            path = f"_tensor_constant{len(self._constants)}"
            self._constants[path] = a
            self._values[id(a)] = path
        if path is not None:
            for n in self.graph.nodes:
                if n.op == "get_attr" and n.target == path:
                    return n
            return self.create_node("get_attr", path, (), {})
        return super().create_constant(a)

    def call_module(self, m: Any, forward, args: tuple, kwargs: dict) -> Any:
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Trace ``root`` (a function or a module) and return its graph; attributes it uses belong to ``self.root``."""
        self.graph = Graph()
        is_module = hasattr(root, "named_modules")
        self.root = root
        fn = root.forward if is_module else root
        if is_module:
            self._paths = {id(m): name for name, m in root.named_modules()}
            self._values = {id(p): name for name, p in (*root.named_parameters(), *root.named_buffers())}
        args, kwargs = self._placeholders(fn, concrete_args or {})
        with _patched(self, root if is_module else None):
            out = fn(*args, **kwargs)
        self.create_node("output", "output", (self.create_arg(out),), {})
        return self.graph

    def _placeholders(self, fn, concrete: dict[str, Any]):
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for p in inspect.signature(fn).parameters.values():
            if p.kind is p.VAR_POSITIONAL or p.kind is p.VAR_KEYWORD:
                raise TypeError(
                    f"symbolic_trace: {p} of {getattr(fn, '__qualname__', fn)} has no fixed number of values"
                )
            if p.name in concrete:
                value = concrete[p.name]
            else:
                default = () if p.default is p.empty else (p.default,)
                value = self.create_proxy("placeholder", p.name, default, {}, name=p.name)
            if p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = value
            else:
                args.append(value)
        return args, kwargs


class _patched:
    """While tracing, module calls go through the tracer and wrapped functions become nodes."""

    def __init__(self, tracer: Tracer, root: Any):
        self.tracer, self.root = tracer, root
        self.undo: list = []

    def __enter__(self):
        tracer = self.tracer
        if self.root is not None:
            base = next(c for c in type(self.root).__mro__[::-1] if "named_modules" in c.__dict__)
            original = base.__call__

            def call(mod, *args, **kwargs):
                return tracer.call_module(mod, functools.partial(original, mod), args, kwargs)

            own = base.__dict__.get("__call__")
            base.__call__ = call
            self.undo.append(lambda: setattr(base, "__call__", own) if own is not None else delattr(base, "__call__"))
        for scope, name in _wrapped:
            fn = scope.get(
                name, __builtins__.get(name) if isinstance(__builtins__, dict) else getattr(__builtins__, name, None)
            )
            if fn is not None:
                self._wrap(scope, name, fn)
        for fn in tracer.autowrap_functions:
            scope = getattr(fn, "__globals__", None)
            if scope is not None:
                self._wrap(scope, fn.__name__, fn)
        return self

    def _wrap(self, scope: dict, name: str, fn):
        @functools.wraps(fn)
        def call(*args, **kwargs):
            found: list[Proxy] = []
            from .node import map_aggregate

            map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None)
            if found:
                return found[0].tracer.create_proxy("call_function", fn, args, kwargs)
            return fn(*args, **kwargs)

        had = name in scope
        old = scope.get(name)
        scope[name] = call
        self.undo.append(lambda: scope.__setitem__(name, old) if had else scope.pop(name))

    def __exit__(self, *exc):
        for undo in reversed(self.undo):
            undo()
        return False


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Trace a function or module by running it on Proxies."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    is_module = hasattr(root, "named_modules")
    name = type(root).__name__ if is_module else getattr(root, "__name__", "GraphModule")
    attrs: Any = dict(tracer._constants)
    if is_module:
        for n in graph.nodes:
            if n.op in ("get_attr", "call_module") and n.target not in attrs:
                obj = root
                for part in n.target.split("."):
                    obj = getattr(obj, part)
                attrs[n.target] = obj
    return GraphModule(attrs, graph, name)
