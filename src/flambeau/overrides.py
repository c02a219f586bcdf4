"""``torch.overrides``: the ``__torch_function__`` protocol."""

from __future__ import annotations

import functools
import importlib
import inspect
import keyword
import operator
import types

from . import _C
from .compat.namespaces import parse
from .core import keys
from .core.bindings import Binder
from .core.declare import EXPOSED
from .core.modes import BaseTorchFunctionMode, TorchFunctionMode
from .core.modes import current_function_mode as _get_current_function_mode  # noqa: F401
from .core.modes import function_stack as _get_current_function_mode_stack  # noqa: F401
from .core.operator import OpOverload, Packet
from .core.overrides import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    handle_torch_function,
    has_torch_function,
)
from .core.participation import Attribute
from .core.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function_unary(x) -> bool:
    return has_torch_function((x,))


def has_torch_function_variadic(*xs) -> bool:
    return has_torch_function(xs)


def is_tensor_like(x) -> bool:
    """A Tensor, or an instance of a class with ``__torch_function__``."""
    return isinstance(x, _C.TensorBase) or hasattr(type(x), "__torch_function__")


def redispatch_function(func, types, args=(), kwargs=None):
    """Inside ``__torch_function__``: run ``func`` without asking overrides again for this call; calls that it makes, in Python, do ask.

    Operators make none: their results are plain tensors.
    """
    kwargs = kwargs or {}
    if isinstance(func, _C.Function) and not isinstance(func.impl, Binder):
        return func.impl(*args, **kwargs)
    if getattr(func, "__name__", "") == "__get__" and isinstance(func.__self__, Attribute):
        return func.__self__.read(*args)
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def wrap_torch_function(dispatcher):
    """Decorator: a Python function with the protocol; ``dispatcher(*args, **kwargs)`` gives the arguments that may override."""

    def wrap(fn):
        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(tuple(relevant)):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        return wrapped

    return wrap


# Public modules with functions that take part, as PyTorch names them. In each the public names count.
_MODULES = (
    "torch",
    "torch.functional",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.linalg",
    "torch.fft",
    "torch.special",
)


@functools.cache
def _namespaces() -> dict[str, object]:
    """Path -> module, and "torch.Tensor" -> the class."""
    found = {path: importlib.import_module("flambeau" + path.removeprefix("torch")) for path in _MODULES}
    return {**found, "torch.Tensor": Tensor}


def _functions(path: str, space) -> dict[str, object]:
    """Name -> function of those that take part; of a class the getters of its properties, too."""
    if isinstance(space, type):
        given = {n: v for c in reversed(space.__mro__[:-1]) for n, v in vars(c).items()}
        for name, v in given.items():
            if isinstance(v, Attribute) or type(v) is types.GetSetDescriptorType and not name.startswith("_"):
                given[name] = v.__get__
    else:
        if path == "torch":
            names = {*EXPOSED["function"], *parse(""), *dir(space)}
        else:
            names = getattr(space, "__all__", None) or dir(space)
        given = {n: getattr(space, n, None) for n in names if n and not n.startswith("__")}
    python = (types.FunctionType,) if path == "torch.nn.functional" else ()
    ignored = get_ignored_functions()
    return {
        n: f
        for n, f in given.items()
        if (
            isinstance(f, _C.Function)
            or getattr(f, "__name__", "") == "__get__"
            or _overrides(f, python)
            or _is_operator(f)
        )
        and f not in ignored
    }


def _is_operator(f) -> bool:
    """Whether ``f`` is one of the native slots of TensorBase: ``+``, ``<``, ``@`` and the like, which call the operator's method."""
    return (
        type(f) is types.WrapperDescriptorType and f.__objclass__ is _C.TensorBase and f.__name__ not in _PLAIN_METHODS
    )


def _overrides(f, python) -> bool:
    """Whether a function in Python hands its call to ``__torch_function__``."""
    return isinstance(f, python) and "handle_torch_function" in f.__code__.co_names


@functools.cache
def get_overridable_functions() -> dict:
    """Namespace -> functions that go through ``__torch_function__``; the getters of Tensor's properties are among those of the class."""
    return {space: [*_functions(path, space).values()] for path, space in _namespaces().items()}


@functools.cache
def _names() -> dict:
    """Function -> qualified public name. Of a function that has several it is the last module's, and there its own before an alias."""
    names: dict = {}
    for path, space in _namespaces().items():
        found = _functions(path, space)
        public = sorted((f.__name__ == n, n) for n, f in found.items() if n[0] != "_")
        for _, n in public:
            f = found[n]
            names[f] = f"{path}.{n}{'.__get__' if f.__name__ == '__get__' else ''}"
        for n in sorted(
            (n for n in found if n[0] == "_"), reverse=True
        ):  # of `__div__` and `__truediv__` the latter, as in PyTorch
            names.setdefault(found[n], f"{path}.{n}{'.__get__' if found[n].__name__ == '__get__' else ''}")
    import flambeau as torch

    # Modes see these too.
    for path, space, ignored in (("torch", torch, _MAKERS), ("torch.Tensor", Tensor, _PLAIN_METHODS)):
        for n in ignored:
            if hasattr(space, n):
                names.setdefault(getattr(space, n), f"{path}.{n}")
    return names


def resolve_name(f) -> str | None:
    """Qualified public name of a function given to ``__torch_function__``, or None."""
    if isinstance(f, OpOverload | Packet):
        return str(f)
    return _names().get(f)


@functools.cache
def _methods() -> frozenset:
    return frozenset(get_overridable_functions()[Tensor])


def is_tensor_method_or_property(f) -> bool:
    """Whether ``f`` is a method of Tensor's, or the getter of one of its properties."""
    return getattr(f, "__name__", "") == "__get__" or f in _methods()


@functools.cache
def get_ignored_functions() -> frozenset:
    """Public functions that don't take part, since no argument could override."""
    import flambeau as torch

    made = {getattr(torch, name) for name in _MAKERS}
    return frozenset(made | {getattr(Tensor, name) for name in _PLAIN_METHODS if hasattr(Tensor, name)})


_MAKERS = """
arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye fft frombuffer full hamming_window hann_window
kaiser_window linspace logspace normal ones rand randint randn randperm range scalar_tensor tensor tril_indices triu_indices vander zeros
is_tensor manual_seed seed get_default_dtype set_default_dtype promote_types no_grad enable_grad set_grad_enabled is_grad_enabled from_numpy
from_file result_type can_cast rand_like randn_like randint_like sparse_coo_tensor
""".split()
_PLAIN_METHODS = """
__delattr__ __delitem__ __dir__ __getattribute__ __hash__ __init__ __iter__ __init_subclass__ __new__ __setattr__ __torch_dispatch__
__torch_function__ new new_tensor
new_empty new_full new_ones new_zeros new_empty_strided
""".split()


def _returns(f) -> inspect.Signature:
    """The parameters of ``f`` as users write them: of the operator's first overload, or of the function in Python."""
    if getattr(f, "__name__", "") == "__get__":
        return inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    overloads = f.impl.overloads() if isinstance(f, _C.Function) and isinstance(f.impl, Binder) else ()
    if not overloads:
        plain = getattr(f, "impl", f)
        if isinstance(plain, types.BuiltinFunctionType):  # x[key]
            plain = getattr(operator, plain.__name__)
        return inspect.signature(plain).replace(return_annotation=inspect.Signature.empty)
    first, *_ = sorted(overloads, key=lambda op: any(a.is_out for a in op._schema.arguments))
    method = f in _methods()
    parameters = []
    for a in first._schema.arguments:
        kind = inspect.Parameter.KEYWORD_ONLY if a.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = a.default_value if a.has_default or a.is_out else inspect.Parameter.empty
        name = "input" if a.name == "self" and not method else f"{a.name}_" if keyword.iskeyword(a.name) else a.name
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(parameters)


def _dummy(f):
    def dummy(*args, **kwargs):
        return -1

    dummy.__name__ = f.__name__
    dummy.__signature__ = _returns(f)
    return dummy


@functools.cache
def get_testing_overrides() -> dict:
    """Function -> one with its parameters that returns -1, for every function that takes part."""
    return {f: _dummy(f) for functions in get_overridable_functions().values() for f in functions}


def get_default_nowrap_functions() -> set:
    """Functions whose results the default ``__torch_function__`` leaves as they are."""
    return {_C.TensorBase.__dict__[n].__get__ for n in ("grad", "shape", "dtype", "device")}


def enable_reentrant_dispatch():
    """Context manager inside ``__torch_dispatch__``: calls start from the top again, autograd included."""
    return _C.Guard(readmit=keys.AUTOGRAD | keys.TRANSFORM)
