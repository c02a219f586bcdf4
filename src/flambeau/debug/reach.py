"""What a call can reach and change: found, remembered, put back, and written down to be compared.

``World(roots)`` walks from the roots through containers, attributes, closures, the names that functions read and the attributes of user
classes. ``remember`` and ``restore`` work in place, so identities stay; tensors are taken aside instead (``taken_aside``): for a while they
have other memory, versions and history, and then their own again, as if nothing had been. The library's own code and modules, and those of other
installed packages, are taken for what doesn't change.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import io
import random
import sys
import types
from typing import Any

import numpy as np

from flambeau import _C, _frame
from flambeau.base.code_names import names_of
from flambeau.base.device import Device
from flambeau.base.dtypes import DType
from flambeau.base.installed import SITE, STDLIB
from flambeau.core.generator import Generator, default_generator

__all__ = ["CannotTell", "World", "describe"]

ATOMS = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type(...),
    type(NotImplemented),
    range,
    types.CodeType,
    DType,
    Device,
)
ATOMS += (
    types.BuiltinFunctionType,
    np.generic,
    np.dtype,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    type(object.__init__),
)
ITERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, map, filter, zip, enumerate, reversed)
ITERATORS += tuple(type(iter(x)) for x in ([], (), {}, {}.values(), {}.items(), set(), "", range(0), b"", reversed([])))


# Packages of the library whose objects have state of the user's.
LIVELY = tuple(f"flambeau.{p}" for p in ("modules", "nn", "optim", "utils", "distributions", "amp", "numpy"))


class CannotTell(Exception):
    """Why this call can't be made twice."""


def of_library(module: str | None, path: str | None = None) -> bool:
    if module is not None and module.split(".")[0] in ("flambeau", "numpy", "builtins", "pytest", "_pytest"):
        return True
    return path is not None and path.startswith((STDLIB, *SITE))


def inert(x) -> bool:
    """An object of the library's that has no state of the user's."""
    module = type(x).__module__
    return module.startswith("flambeau.") and not module.startswith(LIVELY)


def file_of(module: types.ModuleType) -> str | None:
    found = vars(module).get("__file__")
    return found if isinstance(found, str) else None


def user_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return cls.__flags__ & (1 << 9) != 0 and not of_library(cls.__module__, file_of(module) if module else None)


def slots(obj) -> dict[str, Any]:
    found = {}
    for cls in filter(user_class, type(obj).__mro__):
        for name, d in vars(cls).items():
            if isinstance(d, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    found[name] = d.__get__(obj)
    return found


class World:
    """Everything that can be reached from ``roots``, in the order in which it was found."""

    def __init__(self, *roots, strict: bool = True):
        self.strict = strict  # what can't be made twice is an error
        self.index: dict[int, int] = {}
        self.objects: list[Any] = []
        self.tensors: list[Any] = []
        self.arrays: list[np.ndarray] = []
        self.names: set[str] = set()
        self.modules: list[types.ModuleType] = []
        self.roots = roots
        todo = list(reversed(roots))
        seen = None
        while seen != len(self.names):  # names found late may be those of modules found early
            seen = len(self.names)
            todo += [v for m in self.modules for k, v in vars(m).items() if k in self.names]
            while todo:
                todo += reversed(self.found(todo.pop()))

    # -- finding --
    def found(self, x) -> list[Any]:
        if isinstance(x, ATOMS) or id(x) in self.index:
            return []
        self.index[id(x)] = len(self.objects)
        self.objects.append(x)
        if isinstance(x, _C.TensorBase):
            if self.strict and (x._keys & ~2 or (x._array is None and x._requires_grad)):
                raise CannotTell("a tensor of a transform, or a wrapper with a history")
            self.tensors.append(x)
            return [x._grad, x.__dict__, *slots(x).values(), type(x)]
        if isinstance(x, np.ndarray):
            self.arrays.append(x)
            return list(x.flat) if x.dtype.hasobject else []
        if isinstance(x, types.ModuleType):
            if of_library(x.__name__, file_of(x)):
                return []
            self.modules.append(x)
            return []
        if isinstance(x, functools._lru_cache_wrapper):
            if self.strict:
                raise CannotTell("a function with a cache: what it holds can't be seen")
            return []
        if isinstance(x, ITERATORS) or type(x).__module__ == "itertools":
            if self.strict:
                raise CannotTell(f"an iterator that has begun: {type(x).__name__}")
            return []
        return self.parts(x)

    def parts(self, x) -> list[Any]:
        if isinstance(x, types.FunctionType):
            out = [*(x.__closure__ or ()), *(x.__defaults__ or ()), x.__kwdefaults__, x.__dict__]
            module = x.__globals__.get("__name__")
            if not of_library(module, x.__code__.co_filename):
                names = names_of(x.__code__)
                self.names |= names
                space = x.__globals__
                if id(space) not in self.index:
                    self.index[id(space)] = len(self.objects)
                    self.objects.append(space)
                out += [space[k] for k in sorted(names) if k in space]
            return out
        if isinstance(x, types.CellType):
            with contextlib.suppress(ValueError):
                return [x.cell_contents]
            return []
        if isinstance(x, types.MethodType):
            return [x.__self__, x.__func__]
        if isinstance(x, functools.partial):
            return [x.func, x.args, x.keywords]
        if isinstance(x, (_frame.CompiledFunction, _frame.DisabledFunction, _frame.FrozenFunction)):
            return [x.fn]
        if isinstance(x, (classmethod, staticmethod)):
            return [x.__func__]
        if isinstance(x, property):
            return [x.fget, x.fset, x.fdel]
        if isinstance(x, type):
            return [*vars(x).values(), *x.__bases__] if user_class(x) else []
        if isinstance(x, types.MappingProxyType) or inert(x):
            return []
        out = [*contents(x), *slots(x).values()]
        if isinstance(getattr(x, "__dict__", None), dict):
            out.append(x.__dict__)
        if user_class(type(x)):
            out.append(type(x))
        return out

    # -- remembering --
    def remember(self) -> list[Any]:
        """The state of everything but tensors: given back by ``restore``."""
        kept = [(x, state) for x in self.objects if (state := state_of(x)) is not None]
        kept += [(a, a.copy()) for a in self.arrays if a.flags.writeable]
        return [kept, library_state()]

    def restore(self, memory: list[Any]) -> None:
        kept, library = memory
        for x, state in kept:
            if isinstance(x, np.ndarray):
                if not np.array_equal(x, state):
                    np.copyto(x, state)
            else:
                put_back(x, state)
        put_library_back(library)

    # -- tensors --
    @contextlib.contextmanager
    def taken_aside(self):
        """While entered, the tensors have memory, versions and histories of their own."""
        pairs = self.copies()
        for t, c in pairs:
            c._grad = t._grad
        for t, c in pairs:
            _C.swap(t, c)
        try:
            yield
        finally:
            for t, c in pairs:
                _C.swap(t, c)

    def copies(self) -> list[tuple[Any, Any]]:
        groups: dict[int, list[Any]] = {}
        out = []
        for t in self.tensors:
            if t._array is not None:
                groups.setdefault(id(t._storage), []).append(t)
            elif not t._keys & 2:
                out.append((t, _C.alias(t, type(t))))
        for group in groups.values():
            if len(group) > 1 and any(t._requires_grad for t in group):
                raise CannotTell("tensors with a gradient that share memory")
            arrays = [t._array for t in group]
            for a in self.arrays:
                if any(np.may_share_memory(a, b) for b in arrays):
                    raise CannotTell("a tensor and an array that share memory")
            out += zip(group, copied(group))
        return out

    # -- writing down --
    def describe(self, result) -> Any:
        """Result and reached state, as nested tuples to be compared with ``difference``."""
        return describe([result, *self.roots, *self.objects], self.index)


def copied(group) -> list[Any]:
    """Tensors on a copy of the memory that those of ``group`` share, each with its place in it."""
    where = []
    for t in group:
        a = t._array
        lo = a.ctypes.data
        hi = lo + (sum((n - 1) * s for n, s in zip(a.shape, a.strides)) + a.itemsize if a.size else 0)
        where.append((lo, hi))
    low = min(lo - t._offset * t._array.itemsize for (lo, _), t in zip(where, group))
    high = max(max(hi, low) for _, hi in where)
    memory = bytearray(ctypes.string_at(low, high - low)) if high > low else bytearray(16)
    root, out = None, []
    for (lo, _), t in zip(where, group):
        a = t._array
        new = np.ndarray(a.shape, a.dtype, memory, lo - low if a.size else 0, a.strides if a.size else None)
        if not a.flags.writeable:
            new.flags.writeable = False
        c = _C.from_array(new) if root is None else _C.view_of(root, new)
        root = c if root is None else root
        leaf = t._is_leaf
        if t._requires_grad:
            c.requires_grad_()
            if not leaf:
                before = _C.tls("grad_enabled")
                _C.tls("grad_enabled", 1)
                try:
                    c = c.clone()
                finally:
                    _C.tls("grad_enabled", before)
        out.append(c)
        c._flags |= t._flags & ~1
    return out


def contents(x) -> list[Any]:
    if isinstance(x, dict):
        return [v for item in items(x) for v in item]
    if isinstance(x, (list, tuple, set, frozenset, collections.deque)):
        return list(type(x).__iter__(x)) if type(x).__module__ == "builtins" else list(base_of(x).__iter__(x))
    return []


def items(d: dict) -> list[tuple[Any, Any]]:
    kind = collections.OrderedDict if isinstance(d, collections.OrderedDict) else dict
    return list(kind.items(d))


def base_of(x) -> type:
    return next(b for b in (dict, list, tuple, set, frozenset, collections.deque, bytearray) if isinstance(x, b))


def state_of(x) -> Any:
    """What of ``x`` itself can be changed, one level deep; None: nothing."""
    if isinstance(x, types.FunctionType):
        return (x.__code__, x.__defaults__, x.__kwdefaults__, dict(x.__kwdefaults__ or {}), dict(x.__dict__))
    if isinstance(x, types.CellType):
        try:
            return (x.cell_contents,)
        except ValueError:
            return ()
    if isinstance(x, types.ModuleType):
        return dict(vars(x))
    if isinstance(x, type):
        return {k: v for k, v in vars(x).items() if k not in ("__dict__", "__weakref__")} if user_class(x) else None
    if isinstance(x, dict):
        return items(x), slots(x)
    if isinstance(x, (list, collections.deque, bytearray)):
        return list(base_of(x).__iter__(x)), slots(x)
    if isinstance(x, set):
        return set(x), slots(x)
    if isinstance(x, (io.StringIO, io.BytesIO)):
        return x.getvalue(), x.tell()
    if isinstance(x, random.Random):
        return x.getstate()
    if isinstance(x, Generator):
        return x.get_state()
    if isinstance(x, np.random.Generator):
        return x.bit_generator.state
    found = slots(x)
    return found or None


def same(a, b) -> bool:
    """By identity, two levels deep where states are containers."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(a[k] is b[k] for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return False


def put_back(x, state) -> None:
    if isinstance(x, types.FunctionType):
        x.__code__, x.__defaults__, x.__kwdefaults__ = state[:3]
        if state[2] is not None:
            restore_dict(state[2], list(state[3].items()))
        restore_dict(x.__dict__, list(state[4].items()))
    elif isinstance(x, types.CellType):
        if state:
            x.cell_contents = state[0]
        else:
            with contextlib.suppress(ValueError):
                del x.cell_contents
    elif isinstance(x, types.ModuleType):
        restore_dict(vars(x), list(state.items()))
    elif isinstance(x, type):
        now = state_of(x)
        for k in now.keys() - state.keys():
            type.__delattr__(x, k)
        for k, v in state.items():
            if now.get(k) is not v:
                type.__setattr__(x, k, v)
    elif isinstance(x, dict):
        restore_dict(x, state[0])
        restore_slots(x, state[1])
    elif isinstance(x, (list, collections.deque, bytearray)):
        if not same(list(base_of(x).__iter__(x)), state[0]):
            base_of(x).clear(x)
            base_of(x).extend(x, state[0])
        restore_slots(x, state[1])
    elif isinstance(x, set):
        if set(set.__iter__(x)) != state[0]:
            set.clear(x)
            set.update(x, state[0])
        restore_slots(x, state[1])
    elif isinstance(x, (io.StringIO, io.BytesIO)):
        x.seek(0)
        x.truncate()
        x.write(state[0])
        x.seek(state[1])
    elif isinstance(x, random.Random):
        x.setstate(state)
    elif isinstance(x, Generator):
        x.set_state(state)
    elif isinstance(x, np.random.Generator):
        x.bit_generator.state = state
    else:
        restore_slots(x, state)


def restore_dict(d: dict, items: list) -> None:
    kind = collections.OrderedDict if isinstance(d, collections.OrderedDict) else dict
    now = list(kind.items(d))
    if len(now) == len(items) and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(now, items)):
        return
    kind.clear(d)
    for k, v in items:
        kind.__setitem__(d, k, v)


def restore_slots(x, state: dict[str, Any]) -> None:
    now = slots(x)
    for cls in filter(user_class, type(x).__mro__):
        for name, d in vars(cls).items():
            if isinstance(d, types.MemberDescriptorType) and now.get(name) is not state.get(name):
                if name in state:
                    d.__set__(x, state[name])
                else:
                    d.__delete__(x)


def library_state() -> tuple:
    dtypes = sys.modules["flambeau.base.dtypes"]
    return (
        default_generator.get_state(),
        random.getstate(),
        np.random.get_state(),
        _C.tls("grad_enabled"),
        dtypes.get_default_dtype(),
    )


def put_library_back(state: tuple) -> None:
    default_generator.set_state(state[0])
    random.setstate(state[1])
    np.random.set_state(state[2])
    _C.tls("grad_enabled", state[3])
    sys.modules["flambeau.base.dtypes"].set_default_dtype(state[4])


# -- writing down --


def describe(roots: list[Any], old: dict[int, int]) -> list[Any]:
    """Each root as nested tuples: objects that were there before by number, those met again by the number at which they were first met."""
    met: dict[int, int] = {}
    keep: list[Any] = []
    out = []
    for r in roots:
        out.append(token(r, old, met, keep, 0))
    return out


def token(x, old, met, keep, depth) -> Any:
    if isinstance(x, (float, complex, np.inexact)):
        return (type(x).__name__, np.asarray(x), repr(x)[:1] == "-")
    if isinstance(x, ATOMS):
        return (type(x).__name__, x)
    if isinstance(x, (types.ModuleType, types.BuiltinMethodType)) or depth > 60:
        return (type(x).__name__,)
    if id(x) in met:
        return ("met", met[id(x)])
    if not isinstance(x, (tuple, frozenset)):
        met[id(x)] = len(met)
        keep.append(x)

    def sub(v):
        return token(v, old, met, keep, depth + 1)

    name = ("old", old[id(x)]) if id(x) in old and not isinstance(x, (tuple, frozenset)) else ("new",)
    if isinstance(x, _C.TensorBase):
        a = x._array
        data = None if a is None else np.array(a, copy=True)
        facts = (str(x._dtype), tuple(x._shape), bool(x._requires_grad), bool(x._is_leaf))
        return ("tensor", name, type(x).__name__, facts, data, sub(x._grad), sub(x.__dict__))
    if isinstance(x, np.ndarray):
        return (
            "array",
            name,
            str(x.dtype),
            x.shape,
            [sub(v) for v in x.flat] if x.dtype.hasobject else np.array(x, copy=True),
        )
    if isinstance(x, type):
        return ("class", x.__qualname__, name)
    if isinstance(x, types.CellType):
        try:
            return ("cell", sub(x.cell_contents))
        except ValueError:
            return ("cell",)
    if isinstance(x, types.FunctionType):
        return (
            "function",
            x.__name__,
            name,
            [sub(c) for c in x.__closure__ or ()],
            sub(x.__defaults__),
            sub(x.__kwdefaults__),
            sub(x.__dict__),
        )
    if isinstance(x, types.MethodType):
        return ("method", sub(x.__self__), sub(x.__func__))
    if isinstance(x, BaseException):
        return ("exception", type(x).__name__, str(x))
    if isinstance(x, dict) and id(x) in old and "__builtins__" in x:
        return ("globals", sorted(k for k in x if isinstance(k, str)))
    if inert(x) and not isinstance(x, (tuple, list, dict)):
        return ("library's", type(x).__qualname__)
    out = ["object", type(x).__qualname__, name]
    if isinstance(x, (set, frozenset)):
        out.append(sorted(repr(v) if isinstance(v, ATOMS) else type(v).__name__ for v in x))
    elif isinstance(x, dict):
        out.append([(sub(k), sub(v)) for k, v in items(x)])
    else:
        out.append([sub(v) for v in contents(x)])
    out.append([(k, sub(v)) for k, v in sorted(slots(x).items())])
    if isinstance(getattr(x, "__dict__", None), dict) and not isinstance(x, types.MappingProxyType):
        out.append([(k, sub(v)) for k, v in x.__dict__.items()])
    return tuple(out)
