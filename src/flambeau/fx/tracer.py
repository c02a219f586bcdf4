"""symbolic_trace: run a function or module on Proxies and keep the graph.

Data-dependent control flow can't be recorded this way (a TraceError says so); capturing arbitrary programs is dynamo's
work.
"""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import math
import operator
import threading
import types
import warnings
from typing import Any

from .. import _C
from ..base import pytree
from ..base.public import public_in
from ..core.modes import TorchFunctionMode
from ..core.operator import OpOverload, Packet
from ..core.overrides import wrap_function
from ..core.tensor import Tensor
from ..modules.module import Module
from ..modules.parameter import Parameter
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, has_side_effect, map_aggregate
from .proxy import ParameterProxy, Proxy, ProxyableClassMeta, TracerBase
from .pytree_codegen import _PyTreeCodeGen, _PyTreeInfo

__all__ = ["PH", "PHBase", "PHWithMeta", "Tracer", "symbolic_trace", "wrap"]

_wrapped: list[tuple[dict, str]] = []
# (class, method): calls that are given a Proxy stay calls.
_wrapped_methods_to_patch: list[tuple[type, str]] = []


class PHBase:
    """Stands for an input among the ``concrete_args`` of a trace."""

    def __repr__(self):
        return "PH"


class PHWithMeta(PHBase):
    """One whose attributes, ``ph_key`` among them, the input's node gets."""

    def __init__(self, ph_key: str | None = None):
        self.ph_key = ph_key


PH = PHBase()


def wrap(fn_or_name):
    """Record calls of this global function (or name) of the calling module as one node instead of tracing into it."""
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


def is_fx_tracing() -> bool:
    """Whether a :class:`Tracer` is running a program in this thread."""
    return _running.depth > 0


class _Running(threading.local):
    depth = 0  # of tracers in each other, on this thread


_running = _Running()


@public_in("fx._symbolic_trace")
class Tracer(TracerBase):
    """Override :meth:`is_leaf_module` to choose which submodules stay calls, :meth:`call_module` to see each call.

    ``autowrap_modules``: functions of these modules stay calls when they are given a Proxy. ``autowrap_functions``: these functions, by the name
    their own module knows them by. A parameter that the program reads is a Proxy (of a ``get_attr`` node), so that what is computed from it alone is
    recorded too; ``param_shapes_constant`` leaves its shape, dtype and device what they are. A buffer is its value while nothing else
    is a Proxy, unless the class says ``proxy_buffer_attributes``. ``traced_func_name``: the method of a module that is traced.
    """

    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant: bool = False):
        self.autowrap_modules = tuple(autowrap_modules)
        self.autowrap_functions = tuple(autowrap_functions)
        self.param_shapes_constant = param_shapes_constant
        self.module_stack: dict[
            str, tuple[str, type]
        ] = {}  # path -> (path, class) of the modules around the call being traced
        self._paths: dict[int, str] = {}
        self._values: dict[int, str] = {}
        self._buffers: set[str] = set()
        self._constants: dict[str, Any] = {}

    def __deepcopy__(self, memo):
        out = memo[id(self)] = type(self).__new__(type(self))
        shared = {"autowrap_modules": self.autowrap_modules, "autowrap_functions": self.autowrap_functions}
        own = {k: v for k, v in vars(self).items() if k not in shared}
        out.__dict__.update(copy.deepcopy(own, memo), **shared)
        return out

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Modules of ``nn`` stay calls, except Sequential."""
        return type(m).__module__.startswith("flambeau.nn") and not any(
            c.__name__ == "Sequential" and c.__module__.startswith("flambeau.nn") for c in type(m).__mro__
        )

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def path_of_module(self, mod: Any) -> str:
        try:
            return self._paths[id(mod)]
        except KeyError:
            raise NameError("module is not installed as a submodule") from None

    def create_constant(self, a: Any) -> Argument:
        path = self._values.get(id(a))
        if path is None and isinstance(type(a), ProxyableClassMeta):
            path = self._values[id(a)] = f"_{type(a).__name__}_constant_{len(self._constants)}"
            self._constants[path] = a
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

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """What the traced program finds where a module has ``attr_val`` under the name ``attr``."""
        path = self._values.get(id(attr_val))
        if path is None or not (
            isinstance(attr_val, Parameter) or self.proxy_buffer_attributes and path in self._buffers
        ):
            return attr_val
        if path not in parameter_proxy_cache:
            make = (lambda node: ParameterProxy(node, self, attr_val)) if self.param_shapes_constant else None
            parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {}, proxy_factory_fn=make)
        return parameter_proxy_cache[path]

    def call_module(self, m: Any, forward, args: tuple, kwargs: dict) -> Any:
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Trace ``root`` (a function or a module) and return its graph; attributes it uses belong to ``self.root``.

        ``concrete_args``: values of some parameters, by name or all of them in order; those of nested containers may be :data:`PH`, which
        are inputs of the graph."""
        self.graph = Graph(tracer_cls=type(self))
        is_module = isinstance(root, Module)
        self.root = root if is_module else Module()
        if is_module and not hasattr(root, self.traced_func_name):
            raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
        fn = getattr(root, self.traced_func_name) if is_module else root
        plain = inspect.unwrap(fn)
        code = getattr(plain, "__code__", None)
        if code is not None:
            self.graph.traced_from = f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"
            if is_module and not code.co_argcount and inspect.ismethod(plain):
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        if is_module:
            self._paths = {id(m): name for name, m in reversed([*root.named_modules(remove_duplicate=False)])}
            self._values = _tensors(root)
            self._buffers = {name for name, _ in root.named_buffers()}
        args = self._placeholders(fn, concrete_args or {})
        call = fn if isinstance(concrete_args, tuple) and _only_variable(fn) else _positional(fn)
        leaves, in_spec = pytree.tree_flatten(tuple(args))
        nested = concrete_args and any(not c.is_leaf() for c in in_spec.children())
        if nested:
            args = pytree.tree_unflatten(leaves, in_spec)
        _running.depth += 1
        try:
            with _patched(self, fn), _Operators():
                out = call(*args)
        finally:
            _running.depth -= 1
        if nested:
            names = [p.name for p in _in_order_of_locals(fn)]
            out, out_spec = pytree.tree_flatten(out)
            self.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, in_spec, out_spec)))
        self.create_node("output", "output", (self.create_arg(out),), {})
        for path, value in self._constants.items():
            if not hasattr(self.root, path):
                setattr(self.root, path, value) if not isinstance(value, Tensor) else self.root.register_buffer(
                    path, value
                )
        return self.graph

    def _placeholders(self, fn, concrete: dict[str, Any] | tuple) -> list:
        """A Proxy (or the concrete value) for each parameter, in the order of the code's local variables."""
        args: list[Any] = []
        parameters = _in_order_of_locals(fn)
        if isinstance(concrete, tuple):
            if _only_variable(fn):
                return [self._concrete("args", f"input_{k}", (), x) for k, x in enumerate(concrete)]
            if len(concrete) != len(parameters):
                raise RuntimeError(
                    f"Tracing expected {len(parameters)} arguments but got {len(concrete)} concrete arguments"
                )
            concrete = dict(zip([p.name for p in parameters], concrete))
        for p in parameters:
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")  # type: ignore[call-overload]
            default = () if p.default is p.empty else (p.default,)
            if p.name not in concrete:
                args.append(self.create_proxy("placeholder", stars + p.name, default, {}, name=p.name))
                continue
            leaves, spec = pytree.tree_flatten(concrete[p.name])
            given = [self._concrete(p.name, f"{p.name}_{k}", default, x) for k, x in enumerate(leaves, 1)]
            args.append(pytree.tree_unflatten(given, spec))
        return args

    def _concrete(self, name: str, placeholder: str, default: tuple, value: Any) -> Any:
        """What a trace is given for one leaf of a concrete argument: a Proxy for PH, else the value."""
        given = self.create_proxy("placeholder", placeholder, default, {}, name=placeholder)
        if isinstance(value, PHBase):
            for key, note in vars(value).items():
                if not hasattr(given.node, key):
                    setattr(given.node, key, note)
            return given
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None or isinstance(value, bool | int | float | str):
            holds = self.create_proxy(
                "call_function", operator.is_ if value is None else operator.eq, (given, value), {}
            )
            self.create_proxy("call_function", _assert, (holds, message), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user to make sure "
                "that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )
        return value


class _Operators(TorchFunctionMode):
    """Calls of operators, which take tensors alone, with a Proxy among the arguments."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if isinstance(func, (OpOverload, Packet)) and (found := _proxies((args, kwargs))):
            return found[0].tracer.create_proxy("call_function", func, args, kwargs)
        return func(*args, **kwargs)


def _proxies(args: Any) -> list[Proxy]:
    found: list[Proxy] = []
    map_aggregate(args, lambda a: found.append(a) if isinstance(a, Proxy) else None)
    return found


@wrap_function
def _assert(condition, message) -> None:
    """``assert`` as a function: AssertionError with the message."""
    assert condition, message


has_side_effect(_assert)


def _tensors(root: Module) -> dict[int, str]:
    """{id: dotted name} of parameters, buffers and tensors that are plain attributes."""
    found: dict[int, str] = {}
    for prefix, module in root.named_modules():
        for table in (module._parameters, module._buffers, vars(module)):
            for name, value in table.items():
                if isinstance(value, Tensor):
                    found.setdefault(id(value), f"{prefix}.{name}" if prefix else name)
    return found


def _in_order_of_locals(fn) -> list[inspect.Parameter]:
    kinds = inspect.Parameter
    order = (
        kinds.POSITIONAL_ONLY,
        kinds.POSITIONAL_OR_KEYWORD,
        kinds.KEYWORD_ONLY,
        kinds.VAR_POSITIONAL,
        kinds.VAR_KEYWORD,
    )
    return sorted(inspect.signature(fn).parameters.values(), key=lambda p: order.index(p.kind))


def _only_variable(fn) -> bool:
    """Whether ``*args`` and ``**kwargs`` are all its parameters."""
    return all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in inspect.signature(fn).parameters.values())


def _positional(fn):
    """``fn`` taking every parameter by position, ``*args`` and ``**kwargs`` each as one value (a Proxy stands for all of them)."""
    plain = inspect.unwrap(fn)
    bound, plain = getattr(plain, "__self__", None), getattr(plain, "__func__", plain)
    code = getattr(plain, "__code__", None)
    variable = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or not (code.co_kwonlyargcount or code.co_flags & variable):
        return fn
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    code = code.replace(
        co_argcount=count, co_kwonlyargcount=0, co_posonlyargcount=0, co_flags=code.co_flags & ~variable
    )
    made = types.FunctionType(code, plain.__globals__, plain.__name__, None, plain.__closure__)
    return made if bound is None else functools.partial(made, bound)


def _patched(tracer: Tracer, fn: Any) -> _C.Replaced:
    """A block in which module calls go through the tracer and wrapped functions become nodes."""
    original, read, proxies = Module.__call__, Module.__getattr__, {}

    def call(mod, *args, **kwargs):
        forward = functools.partial(original, mod)
        path = tracer._paths.get(id(mod))
        if path is None:
            return tracer.call_module(mod, forward, args, kwargs)
        tracer.module_stack[path] = path, type(mod)
        try:
            return tracer.call_module(mod, forward, args, kwargs)
        finally:
            tracer.module_stack.pop(path, None)

    rows = [
        (Module, "__call__", call),
        (Module, "__getattr__", lambda mod, name: tracer.getattr(name, read(mod, name), proxies)),
        *((cls, name, _recorded_method(cls, name)) for cls, name in dict.fromkeys(_wrapped_methods_to_patch)),
    ]
    for scope, name in _wrapped_places(tracer, fn):
        function = scope.get(name, vars(builtins).get(name))
        if function is not None:
            rows.append((scope, name, _recorded_function(function)))
    return _C.Replaced(rows)


def _wrapped_places(tracer: Tracer, fn: Any) -> list[tuple[dict, str]]:
    """Where functions stand that become nodes: (globals, name)."""
    own = getattr(inspect.unwrap(fn), "__globals__", {})
    modules = {id(f) for m in tracer.autowrap_modules for n, f in vars(m).items() if callable(f) and n[0] != "_"}
    modules.update(map(id, tracer.autowrap_functions))
    found = [(own, name) for name, value in own.items() if id(value) in modules]
    # Those that are called by attribute: math.sqrt(x).
    for module in tracer.autowrap_modules:
        found += [(vars(module), name) for name, value in vars(module).items() if id(value) in modules]
    for function in tracer.autowrap_functions:
        found.append((getattr(function, "__globals__", {}), function.__name__))
    wrapped = {id(scope[name]) for scope, name in _wrapped if name in scope}
    found += [(own, name) for name, value in own.items() if id(value) in wrapped]
    return list({(id(scope), name): (scope, name) for scope, name in [*_wrapped, *found]}.values())


def _recorded_function(fn):
    @functools.wraps(fn)
    def call(*args, **kwargs):
        if found := _proxies((args, kwargs)):
            return found[0].tracer.create_proxy("call_function", fn, args, kwargs)
        return fn(*args, **kwargs)

    return call


def _recorded_method(cls: type, name: str):
    method = getattr(cls, name)

    @functools.wraps(method)
    def call(*args, **kwargs):
        if found := _proxies((args, kwargs)):
            return found[0].tracer.create_proxy("call_method", name, args, kwargs)
        return method(*args, **kwargs)

    return call


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Trace a function or module by running it on Proxies."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)
