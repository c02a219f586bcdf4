"""Functionalization for a stretch of a program: while it is on, every operator has the Functionalize key, so that what a program makes itself is
functional too."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from ..base import pytree
from ..core import keys as K
from ..core.operator import namespace
from .views import settings
from .wrapper import FunctionalTensor, beneath, crossref

__all__ = [
    "CppFunctionalizeAPI",
    "FunctionalTensorMode",
    "PythonFunctionalizeAPI",
    "crossref_functionalize",
    "disable",
    "dispatch_functionalize",
    "enable",
    "freeze",
    "from_functional",
    "functionalize",
    "is_functional",
    "sync",
    "to_functional",
]


def is_on() -> bool:
    """Whether this thread's calls are functionalized."""
    return bool(_C.tls("included") & K.FUNCTIONALIZE)


def enable(*, reapply_views: bool = False) -> None:
    """Switch functionalization on for this thread. ``reapply_views``: views stay views; else each is a copy (``view_copy`` for ``view``).
    RuntimeError when it is on already."""
    if is_on():
        raise RuntimeError(
            "multiple layers of mode-style functionalization nesting is not currently supported, outside of the functionalize() transform"
        )
    settings.copies = not reapply_views
    _C.tls("included", _C.tls("included") | K.FUNCTIONALIZE)


def disable() -> None:
    """Switch it off again."""
    settings.copies = False
    _C.tls("included", _C.tls("included") & ~K.FUNCTIONALIZE)


@contextlib.contextmanager
def switched_on(*, reapply_views: bool = True, recorded: bool = False) -> Iterator[None]:
    """On within the block, as :func:`enable` does; inside of another such block it begins anew. ``recorded``: what runs beneath is."""
    before, copies, was_recorded = _C.tls("included"), settings.copies, settings.recorded
    settings.copies, settings.recorded = not reapply_views, recorded
    _C.tls("included", before | K.FUNCTIONALIZE)
    try:
        yield
    finally:
        settings.copies, settings.recorded = copies, was_recorded
        _C.tls("included", before)


class FunctionalTensorMode:
    """Context manager: functionalization with views that stay views."""

    def __init__(self, pre_dispatch: bool = False, export: bool = False, _allow_token_discovery: bool = False):
        self.pre_dispatch, self.export = pre_dispatch, export
        self._open: list[Any] = []

    def __enter__(self) -> FunctionalTensorMode:
        self._open.append(switched_on())
        self._open[-1].__enter__()
        return self

    def __exit__(self, *exc) -> None:
        self._open.pop().__exit__(*exc)


def to_functional(tensor: Any) -> FunctionalTensor:
    """A functional tensor that holds ``tensor``, which it never writes; it doesn't require a gradient. RuntimeError for one that is functional."""
    if isinstance(tensor, FunctionalTensor):
        raise RuntimeError("the tensor is functional already")
    return FunctionalTensor.wrap(tensor)


def is_functional(tensor: Any) -> bool:
    """Whether ``tensor`` is a functional tensor."""
    return isinstance(tensor, FunctionalTensor)


def from_functional(tensor: Any) -> Any:
    """What a functional tensor holds now; the very tensor it was made from when nothing was written. RuntimeError for another tensor."""
    if not isinstance(tensor, FunctionalTensor):
        raise RuntimeError(f"expected a functional tensor, got {type(tensor).__name__}")
    return tensor.unwrap()


def sync(tensor: Any) -> None:
    """Compute what was written through aliases since ``tensor`` was last read. Nothing for a tensor that isn't functional."""
    if isinstance(tensor, FunctionalTensor) and tensor._payload.memory.version:
        tensor.sync()


def freeze(tensor: FunctionalTensor) -> None:
    """From now on writes to the memory of ``tensor`` raise RuntimeError."""
    tensor._payload.memory.frozen = True


@contextlib.contextmanager
def crossref_functionalize() -> Iterator[None]:
    """Within the block each functional result is compared with what it holds: AssertionError where shape, dtype or device differ."""
    before, crossref.on = crossref.on, True
    try:
        yield
    finally:
        crossref.on = before


def dispatch_functionalize(fn: Callable, mode: FunctionalTensorMode | None = None) -> Callable:
    """``fn`` run on functional tensors; what it writes to its arguments is forgotten."""

    def run(*args, **kwargs):
        with mode or FunctionalTensorMode():
            out = fn(
                *pytree.tree_map(FunctionalTensor.to_functional, args),
                **pytree.tree_map(FunctionalTensor.to_functional, kwargs),
            )
        return pytree.tree_map(lambda a: a.sync() if isinstance(a, FunctionalTensor) else a, out)

    return run


def functionalize(fn: Callable, *, remove: str = "mutations") -> Callable:
    """``fn`` run without in-place operators: what it wrote to its arguments is copied into them at the end (torch.func.functionalize).

    With ``remove="mutations_and_views"`` views are copies too (``view_copy`` for ``view``). RuntimeError for another word.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove={remove!r}): received invalid argument for remove=. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced\n"
            "     with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be\n"
            "     replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(fn)
    def run(*args, **kwargs):
        made: dict[int, tuple[Any, FunctionalTensor]] = {}

        def wrap(a):
            if isinstance(a, _C.TensorBase):
                return made.setdefault(id(a), (a, FunctionalTensor.wrap(a)))[1]
            return a

        inner_args, inner_kwargs = pytree.tree_map(wrap, (args, kwargs))
        with switched_on(reapply_views=remove == "mutations", recorded=True):
            out = fn(*inner_args, **inner_kwargs)
            contents = [(t, w.unwrap()) for t, w in made.values() if w._payload.memory.version]
            back = {id(w): t for t, w in made.values()}

            def unwrap(a):
                return back.get(id(a), a.unwrap()) if isinstance(a, FunctionalTensor) else a

            out = pytree.tree_map(unwrap, out)
        for original, now in contents:
            namespace("aten").copy_(original, now)
        return out

    return run


class CppFunctionalizeAPI:
    """What a functionalization rule of a higher-order operator is written with."""

    def wrap_tensors(self, args: Any) -> Any:
        """Tensors of nested ``args`` as functional tensors."""
        return pytree.tree_map(FunctionalTensor.to_functional, args)

    def unwrap_tensors(self, args: Any) -> Any:
        """What the functional tensors of nested ``args`` hold."""
        return pytree.tree_map(lambda a: a.sync() if isinstance(a, FunctionalTensor) else a, args)

    def functionalize(self, inner_f: Callable) -> Callable:
        """``inner_f`` without in-place operators."""
        return functionalize(inner_f)

    def redispatch_to_next(self):
        """Context manager: what runs in it is below functionalization."""
        return beneath()

    def sync(self, tensor: Any) -> None:
        """As :func:`sync`."""
        sync(tensor)


class PythonFunctionalizeAPI(CppFunctionalizeAPI):
    """The same beside a :class:`FunctionalTensorMode`; ``functionalize`` forgets what is written to arguments."""

    def __init__(self, mode: FunctionalTensorMode | None = None, pre_dispatch: bool = False):
        self.mode, self.pre_dispatch = mode or FunctionalTensorMode(pre_dispatch), pre_dispatch

    def functionalize(self, inner_f: Callable) -> Callable:
        return dispatch_functionalize(inner_f, self.mode)
