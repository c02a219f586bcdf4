"""Switches of capture: functions that are left out of it or go into the graph as they are, and whether capture happens at all."""

from __future__ import annotations

import copyreg
import functools
import inspect
import types
from collections.abc import Callable

from flambeau import _C, _frame
from flambeau.base.public import public_in
from flambeau.dynamo import utils
from flambeau.dynamo.convert import reset_caches
from flambeau.dynamo.rules import trace_rules
from flambeau.dynamo.rules.trace_rules import allow_in_graph, disallow_in_graph, enable_path
from flambeau.dynamo.stances import Stance, set_current_stance

from . import wrap
from .backends import lookup_backend

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "enable_path",
    "graph_break",
    "reset",
    "run",
    "set_stance",
    "skip",
]


def reset() -> None:
    """Forget everything captured, and the counters; memory kept for later goes back to the system."""
    _C.memory_release()
    reset_caches()
    wrap._compilers.clear()
    utils.clear()


def graph_break(msg: str = "") -> None:
    """End the graph here when traced; nothing otherwise."""


class _Disable:
    """``disable()`` without a function: a decorator, and a context manager in which nothing is captured."""

    def __init__(self, recursive: bool, reason: str | None):
        self.recursive, self.reason = recursive, reason
        self.saved: list = []

    def __call__(self, fn):
        return disable(fn, self.recursive, reason=self.reason)

    def __enter__(self):
        self.saved.append((_frame.set_context(None), set_current_stance(Stance("force_eager"))))
        return self

    def __exit__(self, *exc):
        context, stance = self.saved.pop()
        set_current_stance(stance)
        _frame.set_context(context)
        return False


def disable(fn=None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True):
    """Run ``fn`` as ordinary Python. ``recursive``: also everything it calls; otherwise the functions it calls are captured again.
    Functions, methods, classes (their construction) and modules; without ``fn`` a decorator and context manager. ``reason`` is shown
    in the graph-break message."""
    if fn is None:
        return _Disable(recursive, reason)
    if not recursive:
        inner = innermost(fn)
        if isinstance(inner, types.FunctionType):
            inner._torchdynamo_disable = True
            inner._torchdynamo_disable_msg = reason
            _frame.mark_code(inner.__code__, _frame.code_flags(inner.__code__) | _frame.SKIP)
        return fn
    if inspect.isclass(fn):
        for name in ("__init__", "__call__"):
            f = getattr(fn, name, None)
            if isinstance(f, types.FunctionType):
                setattr(fn, name, disable(f, reason=reason))
        return fn
    if trace_rules.is_nn_module_class(type(fn)):
        while "_compiler" in vars(fn):  # what compile() made of a module
            fn = fn._orig_mod
        fn.forward = disable(fn.forward, reason=reason)
        fn._compiled_call = disable(_with_hooks, reason=reason)
        return fn
    if not callable(fn):
        raise TypeError(f"torch._dynamo.disable expects a callable, got {type(fn).__name__}")
    out = _frame.DisabledFunction(fn)
    functools.update_wrapper(out, fn)
    out._torchdynamo_disable = True
    out._torchdynamo_disable_msg = reason
    out._torchdynamo_orig_callable = fn
    return out


def _disabled(fn, reason):
    return disable(fn, reason=reason)


copyreg.pickle(
    _frame.DisabledFunction, lambda f: (_disabled, (f._torchdynamo_orig_callable, f._torchdynamo_disable_msg))
)


def _with_hooks(module, *args, **kwargs):
    """The call of a disabled module: its hooks are no more captured than its forward."""
    return module._call_impl(*args, **kwargs)


def innermost(fn):
    while not isinstance(fn, types.FunctionType):
        nxt = getattr(fn, "fn", None) or getattr(fn, "__func__", None) or getattr(fn, "__wrapped__", None)
        if nxt is None:
            break
        fn = nxt
    return fn


def skip(fn=None):
    """Deprecated: ``disable(fn, recursive=False)``."""
    import warnings

    warnings.warn(
        "torch._dynamo.skip is deprecated, use torch._dynamo.disable(recursive=False)", DeprecationWarning, stacklevel=2
    )
    return skip if fn is None else disable(fn, recursive=False)


def run(fn: Callable | None = None) -> Callable:
    """``fn`` with captured code where there is some that fits, as ordinary Python otherwise; nothing new is compiled. ``run()`` is a decorator."""
    if fn is None:
        return run
    context = getattr(fn, "context", None) if trace_rules.is_compiled(fn) else None
    if trace_rules.is_nn_module_class(type(fn)):
        compiler = fn.__dict__.get("_compiler")
        module = fn._orig_mod if compiler is not None else fn
        return types.MethodType(run(type(module).forward), module)
    inner = innermost(fn)
    if not isinstance(inner, types.FunctionType):
        raise TypeError(f"torch._dynamo.run expects a function, got {type(fn).__name__}")
    if context is None:
        # The latest comes first; one that was reset has nothing.
        context = next((c for c, cache in _frame.caches(inner.__code__).items() if cache.entries), None)
    out = _frame.FrozenFunction(inner, context)
    functools.update_wrapper(out, inner)
    return out


def assume_constant_result(fn: Callable) -> Callable:
    """Calls of ``fn`` are made while tracing, and their result taken as a constant, unguarded."""
    fn._dynamo_marked_constant = True
    return fn


@public_in("_dynamo.decorators")
class set_stance:
    """What compiled functions do, as a context manager, a decorator, or once and for all. ``"default"``; ``"force_eager"``: run plainly, always;
    ``"eager_on_recompile"``: run plainly what is not captured; ``"fail_on_recompile"``: that is an error; ``"eager_then_compile"`` (and
    ``"aot_eager_then_compile"``): each function's first call runs plainly, and sizes that differ at the second are symbols.
    ``force_backend``: the backend of everything that is compiled meanwhile (what is captured is forgotten on both ends).
    ``skip_guard_eval_unsafe`` is accepted: guards are evaluated all the same. RuntimeError for an unknown stance, and inside a compiled function."""

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend=None):
        self.how = (stance, None if force_backend is None else lookup_backend(force_backend))
        self.previous = set_current_stance(Stance(*self.how))
        self._forget()

    def _forget(self) -> None:
        if self.how[1] is not None:
            reset_caches()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        set_current_stance(self.previous)
        self._forget()
        return False

    def __call__(self, fn):
        self.__exit__()
        stance, backend = self.how

        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with set_stance(stance, force_backend=backend):
                return fn(*args, **kwargs)

        return wrapper


trace_rules.forbid(set_stance, "the stance can't be changed inside a compiled function")
