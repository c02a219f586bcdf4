"""``torch.jit``: scripting keeps Python, tracing gives a captured graph, and archives of PyTorch's are loaded and run.

``script(f)`` returns ``f``, marked; ``trace(f, inputs)`` captures ``f`` as an fx graph at these inputs (jit_traced.py); ``save`` and ``load`` keep
both in the format of ``torch.save``: a trace needs no class of the program's when it is loaded, what was scripted needs its own. What PyTorch's
``torch.jit.save`` wrote is read by ``torchscript/``, which is imported when such a file is met.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import pickle
import warnings
import zipfile

from ..base.device import Device
from ..base.public import public_in
from ..core.tensor import Tensor
from ..futures import Future
from ..modules.module import Module
from ..serialization.archive import Archive
from . import jit_capture, jit_traced
from .script_classes import Error, LateGraph, ScriptFunction, ScriptModule

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
_EXTRA = "archive/extra/"  # where PyTorch keeps such files


RecursiveScriptModule = ScriptModule


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
    if obj is None or _is_archived(obj):
        return script if obj is None else obj
    if _isinstance(obj, Module) and getattr(obj, "has_uninitialized_params", bool)():
        raise RuntimeError("Modules that have uninitialized parameters can't be scripted: run a forward pass first")
    if not callable(obj):
        raise TypeError(f"{type(obj)} is a built-in class")
    return obj if _isinstance(obj, type) else _marked(obj)


def _marked(obj):
    """``obj`` with what programs ask of something scripted: ``save``, and for functions and modules ``code`` and their name."""
    own = getattr(obj, "__dict__", None)
    if own is None:
        return obj
    own["_scripted_here"] = True
    own["save"] = functools.partial(save, obj)
    if _isinstance(obj, jit_traced.TracedModule | jit_traced.TracedFunction):
        return obj
    if _isinstance(obj, Module):
        own.setdefault("original_name", type(obj).__name__)
    if inspect.isfunction(obj):
        own["graph"], own["inlined_graph"] = (
            LateGraph(functools.partial(_graph_of_source, obj, inline)) for inline in (False, True)
        )
    with contextlib.suppress(OSError, TypeError):  # no source: typed in, or native
        own["code"] = inspect.getsource(type(obj).forward if _isinstance(obj, Module) else obj)
    return obj


def _graph_of_source(function, inline: bool):
    from .script_graphs.scripted import of_function

    return of_function(function, inline)


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


def _inputs(example_inputs, kwargs) -> tuple[tuple, dict]:
    if example_inputs is None:
        if not kwargs:
            raise ValueError("torch.jit.trace: example_inputs is needed")
        return (), dict(kwargs)
    if _isinstance(example_inputs, Tensor | dict):
        return (example_inputs,), {}
    return tuple(example_inputs), {}


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_kwarg_inputs=None,
    _store_inputs=True,
):
    """``func`` captured at ``example_inputs`` (or ``example_kwarg_inputs``) as a graph of ATen operators: what depends on values is fixed, as
    tracing does. Of a module the parameters and buffers keep their names. RuntimeError for a dict as the result, unless ``strict=False``."""
    if _isinstance(func, jit_traced.TracedModule | jit_traced.TracedFunction) or _is_archived(func):
        return func
    if _isinstance(func, Module):
        inputs = {"forward": example_inputs}
        return trace_module(func, inputs, strict=strict, example_inputs_is_kwarg=example_kwarg_inputs)
    args, kwargs = _inputs(example_inputs, example_kwarg_inputs)
    with _traces():
        graph = jit_capture.capture(func, args, kwargs, strict).graph
    return _marked(jit_traced.TracedFunction(func, graph, jit_traced.shape_of(args, kwargs)))


def trace_module(
    mod,
    inputs: dict,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_inputs_is_kwarg=None,
    _store_inputs=True,
):
    """``trace`` of several methods: ``inputs`` has the example inputs of each by its name."""
    given = {name: _inputs(x, example_inputs_is_kwarg if x is None else None) for name, x in inputs.items()}
    with _traces():
        return _marked(jit_traced.trace_methods(mod, given, strict))


@contextlib.contextmanager
def _traces():
    _tracing[0] += 1
    try:
        yield
    finally:
        _tracing[0] -= 1


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """``mod``, which :func:`script` or :func:`trace` gave. RuntimeError for other modules, and in training mode."""
    if not _isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return mod


def optimize_for_inference(mod, other_methods=None):
    """``mod`` in eval mode."""
    return mod.eval()


def fork(func, *args, **kwargs) -> Future:
    """Call now; the result as a future."""
    out: Future = Future()
    out._complete(func, *args, **kwargs)
    return out


def wait(future: Future):
    """The result of a future that ``torch.jit.fork`` gave."""
    return future.wait()


def save(m, f, _extra_files=None) -> None:
    """Keep what :func:`script` or :func:`trace` gave, with ``torch.save``: a trace as its graph, what was scripted by the name of its class.
    A module of one of PyTorch's archives is written as such, and PyTorch loads it.
    ``_extra_files``: {name: text or bytes}, kept beside it."""
    from ..serialization import save

    if _is_archived(m):
        return m.save(f, _extra_files)
    save(m, f)
    if not _extra_files:
        return None
    with zipfile.ZipFile(f, "a") as archive:
        for name, content in _extra_files.items():
            archive.writestr(f"{_EXTRA}{name}", content)
    return None


def _is_archived(m) -> bool:
    """Whether a module came from one of PyTorch's archives."""
    return getattr(type(m), "_archived", None) is not None and _isinstance(m, ScriptModule)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """What :func:`save` kept, in evaluation or training as it was; and modules that PyTorch's ``torch.jit.save`` wrote, traced or scripted.

    ``map_location``: the device that all tensors go to. ``_extra_files``: a dict whose values are filled in as bytes. An archive of PyTorch's is data
    that needs no trust: its code is parsed, only TorchScript's own statements are taken, and names lead to operators and to its own classes.

    ValueError for a file that doesn't exist; RuntimeError for one that is no archive, is broken or has code outside of TorchScript, with file, line,
    class and method; NotImplementedError for objects of classes of C++ (packed weights of quantised layers). An operator that only PyTorch has raises
    NotImplementedError when it is called.
    """
    if _isinstance(f, str | os.PathLike) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    if _isinstance(f, str | os.PathLike) and os.path.isdir(f):
        raise ValueError(f"The provided filename {f} is a directory")
    if map_location is not None and not _isinstance(map_location, str | Device):
        raise ValueError("map_location must be a device or a string")
    if _begins_zip(f):
        with Archive.open(f) as archive:
            if archive.has("constants.pkl"):
                from .torchscript import reading

                out = reading.load(archive, map_location)
                _fill_extra(archive, _extra_files)
                return out
    if hasattr(f, "seek"):
        f.seek(0)
    return _loaded(f, map_location, _extra_files)


def _begins_zip(f) -> bool:
    if _isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return file.read(2) == b"PK"
    start = f.tell()
    head = f.read(2)
    f.seek(start)
    return head == b"PK"


def _fill_extra(archive: Archive, files: dict | None) -> None:
    for name in files or ():
        if archive.has(f"extra/{name}"):
            files[name] = archive.record(f"extra/{name}")


def _loaded(f, map_location, _extra_files):
    from ..serialization import load

    try:
        out = load(f, map_location=map_location, weights_only=False)
    except (pickle.UnpicklingError, EOFError) as error:
        raise RuntimeError(f"torch.jit.load: no file that torch.jit.save made ({error})") from error
    if _extra_files:
        with zipfile.ZipFile(f) as archive:
            for name in _extra_files:
                if f"{_EXTRA}{name}" in archive.namelist():
                    _extra_files[name] = archive.read(f"{_EXTRA}{name}")
    return _marked(out)


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
    """The operators in the graph of a trace with their overloads, sorted: ``"aten::add.Tensor"``."""
    schemas = [
        getattr(n.target, "_schema", None) for n in m.graph_module.graph.find_nodes(op="call_function", sort=False)
    ]
    return sorted({f"{s.name}.{s.overload_name}".removesuffix(".") for s in schemas if s is not None})
