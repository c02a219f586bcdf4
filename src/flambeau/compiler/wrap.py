"""``compile``: from a function, method, partial, callable object or module to its compiled counterpart."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

from flambeau import _frame
from flambeau.base.public import public_in
from flambeau.dynamo.config import config
from flambeau.dynamo.convert import Compiler
from flambeau.dynamo.numpy import numpy_bridge
from flambeau.dynamo.rules import trace_rules
from flambeau.dynamo.rules.reflect import type_item
from flambeau.modules.module import Module
from flambeau.modules.parameter import is_lazy

from .backends import get_default_backend, list_backends, lookup_backend, watched
from .option_names import check_options
from .shapes import shape_specs

__all__ = ["OptimizedModule", "compile", "compiler_for", "wrap_callable"]

# NumPy's functions on tensors are imported when captured code first needs them.
numpy_bridge.loaders.append(functools.partial(importlib.import_module, "flambeau.numpy"))
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_compilers: weakref.WeakValueDictionary[Any, Compiler] = weakref.WeakValueDictionary()


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    name: str | None = None,
    verify: bool = False,
    dynamic_shapes: Any = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
) -> Any:
    """Compile a function or module; of a class, what a call of its objects runs.

    ``fullgraph``: a graph break is an error. ``backend``: a name of ``list_backends()`` or a callable
    ``(gm, example_inputs) -> callable``; unless given that of ``set_default_backend``, at
    first inductor. ``mode`` and ``options`` are the backend's and exclude each other. ``disable``: return the
    argument. ``verify``: every compiled graph also runs operator by operator, at each call, and AccuracyError names the first operator
    whose values differ (for hunting a defect: it costs more than not compiling). Without ``model`` a decorator is returned. ``dynamic``:
    True makes all sizes symbols of one graph, False none, None those that are seen to vary (and what ``mark_dynamic`` names).
    ``dynamic_shapes``: which sizes are symbols, as in ``torch.export.export``: by parameter, in the structure of the arguments, dicts or
    sequences of ``Dim``, ``Dim.DYNAMIC`` (an error when the program makes it constant), ``Dim.AUTO``, ``Dim.STATIC``, ints and None.
    ``recompile_limit``: how many variants of one frame are kept, in the place of
    ``config.recompile_limit``. ``isolate_recompiles``: share captured code with no other callable that is compiled the same way.
    ``options["guard_filter_fn"]`` drops guards, see ``torch.compiler.skip_all_guards_unsafe``; the other options are the backend's.
    ``options["fastmath"]`` lets native loops round as suits them, ``options["cache"] = False`` keeps machine code off the disk
    (docs/guide/from-numba.md).

    Raises RuntimeError when both ``mode`` and ``options`` are given, and for an unknown mode, backend or option of inductor's; AssertionError for
    a ``dynamic`` that is no bool."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if model is None:
        return lambda fn: compile(
            fn,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            name=name,
            verify=verify,
            dynamic_shapes=dynamic_shapes,
            recompile_limit=recompile_limit,
            isolate_recompiles=isolate_recompiles,
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a callable or a module, got {type(model).__name__}")
    if disable or config.disable:
        return model
    if dynamic is not None and type(dynamic) is not bool:
        raise AssertionError(f"Expected dynamic to be a bool or None, got {type(dynamic)}")
    if options and (backend or get_default_backend()) == "inductor":
        check_options(options)
    shapes = shape_specs(model, dynamic_shapes) if dynamic_shapes is not None else None
    compiler = compiler_for(
        backend,
        fullgraph,
        dynamic,
        mode,
        options,
        verify,
        shapes,
        recompile_limit,
        object() if isolate_recompiles else None,
    )
    return wrap_callable(model, compiler)


def compiler_for(
    backend,
    fullgraph=False,
    dynamic=None,
    mode=None,
    options=None,
    verify=False,
    shapes=None,
    limit=None,
    isolated=None,
) -> Compiler:
    """The compiler of a configuration: the same one for the same configuration, so that captured variants are shared."""
    fn = lookup_backend(get_default_backend() if backend is None else backend)
    options = dict(options or {})
    guard_filter = options.pop("guard_filter_fn", None)
    if guard_filter is not None and not callable(guard_filter):
        raise TypeError(f"guard_filter_fn must be a callable, not {type(guard_filter).__name__}")
    extra = {}
    if mode not in (None, "default"):
        extra["mode"] = mode
    if options:
        extra["options"] = options
    settings = tuple(sorted((k, repr(v)) for k, v in options.items()))
    key = (id(fn), fullgraph, dynamic, mode, verify, settings, repr(shapes), limit, guard_filter, isolated)
    found = _compilers.get(key)
    if found is not None and found.key_backend is fn:
        return found
    call = watched(functools.partial(fn, **extra) if extra and accepts(fn, extra) else fn, "dynamo")
    if verify:
        call = config.patch(verify=True)(call)
    backend = get_default_backend() if backend is None else backend
    name = backend if isinstance(backend, str) else getattr(fn, "__name__", type(fn).__name__)
    c = _compilers[key] = Compiler(call, name, fullgraph, dynamic, shapes)
    c.key_backend, c.extra = fn, extra
    c.recompile_limit, c.guard_filter, c.options = limit, guard_filter, options
    return c


def accepts(fn, names) -> bool:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind is p.VAR_KEYWORD for p in parameters) or all(n in {p.name for p in parameters} for n in names)


def wrap_callable(fn, compiler: Compiler):
    while trace_rules.is_compiled(fn):
        fn = fn.fn
    if isinstance(fn, type):
        return with_compiled_calls(fn, compiler)
    if trace_rules.is_nn_module_class(type(fn)):
        return optimized_module_class(type(fn))(fn, compiler)
    if isinstance(fn, types.FunctionType):
        compiler.top_codes.add(fn.__code__)
        out = _frame.CompiledFunction(fn, compiler)
        functools.update_wrapper(out, fn)
        out._torchdynamo_orig_callable = fn
        return out
    if isinstance(fn, types.MethodType) and (
        isinstance(fn.__func__, types.FunctionType) or trace_rules.is_compiled(fn.__func__)
    ):
        return types.MethodType(wrap_callable(fn.__func__, compiler), fn.__self__)
    if isinstance(fn, functools.partial):
        return functools.partial(wrap_callable(fn.func, compiler), *fn.args, **fn.keywords)
    if trace_rules.is_disabled(fn):
        return fn
    call = trace_rules.class_call(type(fn))
    if isinstance(call, types.FunctionType):
        return types.MethodType(wrap_callable(call, compiler), fn)
    return wrap_callable(calling(fn), compiler)


def with_compiled_calls(cls: type, compiler: Compiler) -> type:
    """The class itself, with what a call of its objects runs compiled: ``forward`` of a module, else ``__call__``. Making objects is plain Python."""
    name = "forward" if trace_rules.is_nn_module_class(cls) else "__call__"
    method = type_item(cls, name)
    if isinstance(method, types.FunctionType) or trace_rules.is_compiled(method):
        setattr(cls, name, wrap_callable(method, compiler))
    return cls


def calling(fn):
    """A Python function that calls ``fn``, which is implemented in C."""

    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    wrapper.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return wrapper


def _call_module(module, *args, **kwargs):
    return module(*args, **kwargs)


def _has_lazy(module) -> bool:
    """Whether a parameter or buffer of ``module`` or of its parts has no shape yet. No method of the program's is asked."""
    todo, seen = [module], set()
    while todo:
        m = todo.pop()
        if isinstance(m, Module) and id(m) not in seen:
            seen.add(id(m))
            d = m.__dict__
            if any(map(is_lazy, (*d.get("_parameters", {}).values(), *d.get("_buffers", {}).values()))):
                return True
            todo += d.get("_modules", {}).values()
    return False


def _compile_again(module, how: dict[str, Any]):
    return compile(module, **how)


@public_in("_dynamo.eval_frame")
class OptimizedModule:
    """What compile() returns for a module: the same parameters and buffers (names prefixed ``_orig_mod.`` in ``state_dict``, as in
    PyTorch), attributes read from the original, calls captured. The real class also derives from the module's base class."""

    def __init__(self, module, compiler: Compiler):
        super().__init__()
        self.__dict__["_compiler"] = compiler
        self._orig_mod = module
        self._bind()

    def _bind(self):
        module, compiler = self._orig_mod, self._compiler
        forward = getattr(type(module), "forward", None)
        hooks = getattr(type(module).__call__, "__globals__", {}).get("_hooks")
        direct = (
            hooks is not None
            and isinstance(forward, types.FunctionType)
            and "forward" not in module.__dict__
            and trace_rules.is_library_module_call(type(module).__call__)
        )
        d = self.__dict__
        d["_call_forward"] = wrap_callable(forward, compiler) if direct else None
        d["_bound_call"] = type(module).__call__
        d["_module_hooks"] = hooks if direct else None
        d["_call_whole"] = wrap_callable(_call_module, compiler)
        d["training"] = module.training
        if _has_lazy(module):
            d["_call_forward"], d["_call_whole"] = None, self._call_lazy

    def _call_lazy(self, module, *args, **kwargs):
        """Until the first input has told all shapes, calls are plain: there is nothing to guard yet."""
        if _has_lazy(module):
            return module(*args, **kwargs)
        self._bind()
        return self(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        module = self.__dict__["_modules"]["_orig_mod"]
        d = module.__dict__
        own = self.__dict__
        if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]:
            return super().__call__(*args, **kwargs)
        forward = own["_call_forward"]
        if (
            forward is None
            or d["_forward_hooks"]
            or d["_forward_pre_hooks"]
            or d["_backward_hooks"]
            or d["_backward_pre_hooks"]
            or own["_module_hooks"].any_global
            or "forward" in d
            or type(module).forward is not forward.fn
            or type(module).__call__ is not own["_bound_call"]
        ):
            return self.__dict__["_call_whole"](module, *args, **kwargs)
        return forward(module, *args, **kwargs)

    def forward(self, *args, **kwargs):
        return self.__dict__["_call_whole"](self._orig_mod, *args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self.__dict__["_modules"]["_orig_mod"], name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __setattr__(self, name, value):
        if name in ("_orig_mod", "training") or name in self.__dict__:
            super().__setattr__(name, value)
            return
        setattr(self.__dict__["_modules"]["_orig_mod"], name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __len__(self):
        return len(self._orig_mod)

    def __getitem__(self, key):
        return self._orig_mod[key]

    def __iter__(self):
        return iter(self._orig_mod)

    def __deepcopy__(self, memo):
        """A copy of the original, captured by the same compiler."""
        new = memo[id(self)] = type(self)(copy.deepcopy(self._orig_mod, memo), self.__dict__["_compiler"])
        for name, value in self.__dict__.items():
            if name.endswith("_hooks") and isinstance(value, dict) and value:
                new.__dict__[name] = copy.deepcopy(value, memo)
        return new

    def __reduce__(self):
        """The original module, to be compiled again in the same way where it is loaded."""
        c = self.__dict__["_compiler"]
        if c.name not in list_backends(exclude_tags=None) or lookup_backend(c.name) is not c.key_backend:
            raise TypeError(
                "a module compiled by a backend that has no name cannot be pickled: pickle its _orig_mod, or its state_dict"
            )
        return (
            _compile_again,
            (self._orig_mod, {"backend": c.name, "fullgraph": c.fullgraph, "dynamic": c.dynamic, **c.extra}),
        )


def optimized_module_class(cls: type) -> type:
    base = next(c for c in cls.__mro__ if c.__name__ == "Module" and c.__module__.startswith("flambeau.nn"))
    return _combined(base)


@functools.cache
def _combined(base: type) -> type:
    return type("OptimizedModule", (OptimizedModule, base), {"__module__": "flambeau._dynamo.eval_frame"})
