"""``torch.jit`` without TorchScript: scripting keeps Python, tracing gives a captured graph.

``script(f)`` returns ``f``; ``trace(f, inputs)`` captures ``f`` as an fx graph at these inputs; ``save`` and ``load`` keep such graphs in the format
of ``torch.save``.
"""

from __future__ import annotations

import contextlib
import functools
import warnings

from ..base.public import public_in
from ..core.tensor import Tensor
from ..futures import Future
from ..modules.module import Module

__all__ = [
    "Attribute",
    "Error",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
]
__all__ += [
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
]
__all__ += [
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
    "final",
    "CompilationUnit",
    "enable_onednn_fusion",
    "export_opnames",
]
__all__ += ["onednn_fusion_enabled", "set_fusion_strategy", "Final"]

_isinstance = isinstance


@public_in("jit")
class Error(RuntimeError):
    """``torch.jit.Error``."""


@public_in("jit._script")
class ScriptModule(Module):
    """Base class of scripted modules: an ordinary Module here."""

    def __init__(self) -> None:
        super().__init__()


RecursiveScriptModule = ScriptModule


@public_in("jit")
class ScriptFunction:
    """The class of scripted functions: scripting returns the function itself, so nothing is an instance."""

    def __init__(self, name: str = "", graph=None):
        raise NotImplementedError(
            "torch.jit.ScriptFunction can't be made: torch.jit.script returns the Python function"
        )


@public_in("jit")
class CompilationUnit:
    """TorchScript source that is compiled: can't be made."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0):
        raise NotImplementedError(
            "torch.jit.CompilationUnit: flambeau doesn't compile TorchScript source; write Python functions"
        )


@public_in("jit._script")
class Attribute:
    """``Attribute(value, type)``: a typed attribute of a scripted module."""

    def __init__(self, value, type):
        self.value, self.type = value, type


def annotate(the_type, the_value):
    """``the_value`` itself."""
    return the_value


def final(x):
    return x


Final = __import__("typing").Final


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The object itself: Python semantics are kept."""
    if obj is None:
        return script
    if isinstance(obj, Module) and getattr(obj, "has_uninitialized_params", bool)():
        raise RuntimeError("Modules that have uninitialized parameters can't be scripted: run a forward pass first")
    return obj


def script_method(fn, *args):
    """``fn`` itself: every method can be called."""
    return fn


script_if_tracing = _script_if_tracing = interface = export = script_method


def ignore(drop=False, **kwargs):
    """Decorator that leaves a function to Python, as all functions are here."""
    if callable(drop):
        return drop
    return lambda fn: fn


def unused(fn):
    """``fn`` itself."""
    return fn


def _overload_method(fn):
    return fn


_overload = _overload_method


def is_scripting() -> bool:
    return False


_tracing = [0]


def is_tracing() -> bool:
    return _tracing[0] > 0


def isinstance(obj, target_type) -> bool:  # noqa: A001
    """``isinstance`` that also knows ``list[int]`` and the like."""
    origin = getattr(target_type, "__origin__", None)
    args = getattr(target_type, "__args__", ())
    if origin in (list, tuple) and args:
        return _isinstance(obj, origin) and all(isinstance(x, args[0]) for x in obj)
    if origin is dict and args:
        return _isinstance(obj, dict) and all(isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items())
    if args and (origin is __import__("typing").Union or type(target_type).__name__ == "UnionType"):
        return any(isinstance(obj, a) for a in args)
    return _isinstance(obj, target_type)


class _Traced(ScriptModule):
    """A module that runs the graph that tracing captured; its parameters are those of the original."""

    def __init__(self, original, graph):
        super().__init__()
        self.original_name = type(original).__name__
        self.traced = graph
        if _isinstance(original, Module):
            self.training = original.training

    def forward(self, *args):
        return self.traced(*args)

    @property
    def graph(self):
        return self.traced.graph

    @property
    def code(self) -> str:
        return self.traced.code


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    *args,
    **kwargs,
):
    """``func`` captured at ``example_inputs`` as a graph of ATen operators: what depends on values is fixed, as tracing does."""
    from ..autograd.grad_mode import no_grad
    from ..proxy import make_fx

    if example_inputs is None:
        inputs = kwargs.get("example_kwarg_inputs")
        if inputs is None:
            raise ValueError("torch.jit.trace: example_inputs is needed")
        raise NotImplementedError("torch.jit.trace: example_kwarg_inputs is not built; give the inputs by position")
    inputs = (example_inputs,) if _isinstance(example_inputs, Tensor) else tuple(example_inputs)
    _tracing[0] += 1
    try:
        with no_grad():
            graph = make_fx(func)(*inputs)
    finally:
        _tracing[0] -= 1
    if not _isinstance(func, Module):
        return functools.wraps(func)(lambda *a: graph(*a)) if hasattr(func, "__name__") else graph
    return _Traced(func, graph)


def trace_module(mod, inputs: dict, *args, **kwargs):
    """``trace`` of the method "forward". NotImplementedError for others."""
    if set(inputs) != {"forward"}:
        raise NotImplementedError("torch.jit.trace_module: only forward can be traced")
    return trace(mod, inputs["forward"], *args, **kwargs)


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module in evaluation mode."""
    return mod.eval()


def optimize_for_inference(mod, other_methods=None):
    """``mod`` in eval mode."""
    return mod.eval()


def fork(func, *args, **kwargs) -> Future:
    """Call now; the result as a future."""
    out: Future = Future()
    try:
        out.set_result(func(*args, **kwargs))
    except Exception as error:
        out.set_exception(error)
    return out


def wait(future: Future):
    """The result of a future that ``torch.jit.fork`` gave."""
    return future.wait()


def save(m, f, _extra_files=None) -> None:
    """Keep a module with ``torch.save``."""
    from ..serialization import save

    save(m, f)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """A module that :func:`save` kept. RuntimeError for a TorchScript archive of PyTorch's, which holds code for its own interpreter."""
    from ..serialization import load

    return load(f, map_location=map_location, weights_only=False)


@contextlib.contextmanager
def strict_fusion():
    """A block that changes nothing: TorchScript's fuser isn't here."""
    yield


def enable_onednn_fusion(enabled: bool) -> None:
    """Warns that it has no effect, when it is to be enabled."""
    if enabled:
        warnings.warn("torch.jit.enable_onednn_fusion has no effect in flambeau", stacklevel=2)


def onednn_fusion_enabled() -> bool:
    """Answers False: TorchScript's fusers aren't here."""
    return False


def set_fusion_strategy(strategy):
    """Gives the strategy back, as it was set before: there is no fuser that takes it."""
    return strategy


def export_opnames(m) -> list[str]:
    """Names of the operators in a traced graph."""
    return sorted({str(n.target) for n in m.graph.nodes if n.op == "call_function"})
