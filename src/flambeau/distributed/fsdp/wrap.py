"""Which submodules FullyShardedDataParallel wraps: policies ``policy(module, recurse, nonwrapped_numel)``."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable

from ...modules.module import Module
from ...nn import ModuleDict, ModuleList

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "recursive_wrap",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args, **kwargs) -> bool:
    """Every submodule."""
    return True


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable) -> bool:
    """Those for which ``lambda_fn(module)`` is true."""
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type[Module]]
) -> bool:
    """Instances of these classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Those with at least ``min_num_params`` elements that aren't wrapped further down; no lists and dictionaries of modules, and nothing inside of
    attention."""
    leaves = size_based_auto_wrap_policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = (
        size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    )
    large = nonwrapped_numel >= min_num_params
    return large and not isinstance(module, tuple(leaves if recurse else excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = set()  # type: ignore[attr-defined]


class ModuleWrapPolicy:
    """Instances of a set of classes."""

    def __init__(self, module_classes: Iterable[type[Module]]):
        self._module_classes = set(module_classes)

    def __call__(self, module: Module, recurse: bool, *args, **kwargs) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))


class CustomPolicy:
    """``lambda_fn(module)``: false, true, or a dictionary of options for the wrapper."""

    def __init__(self, lambda_fn: Callable):
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args, **kwargs):
        return recurse or self._lambda_fn(module)


def recursive_wrap(module: Module, policy: Callable, wrapper: Callable, ignored: set, outermost: bool = True) -> int:
    """Wrap the submodules that the policy wants, from the leaves on; the number of elements of what was wrapped."""
    total = sum(p.numel() for p in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=total):
        return 0
    wrapped = 0
    for name, child in module.named_children():
        if child in ignored or isinstance(child, wrapper if isinstance(wrapper, type) else ()):
            continue
        inside = recursive_wrap(child, policy, wrapper, ignored, False)
        rest = sum(p.numel() for p in child.parameters()) - inside
        wanted = policy(module=child, recurse=False, nonwrapped_numel=rest)
        if wanted:
            module.register_module(name, wrapper(child, **(wanted if isinstance(wanted, dict) else {})))
            inside += rest
        wrapped += inside
    return wrapped


_open = threading.local()


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """In the block ``wrap(module)`` is ``wrapper_cls(module, **wrapper_kwargs)``."""
    before = getattr(_open, "wrapper", None)
    _open.wrapper = functools.partial(wrapper_cls, **wrapper_kwargs)
    try:
        yield
    finally:
        _open.wrapper = before


def wrap(module: Module, **overrides) -> Module:
    """The module wrapped, inside of ``enable_wrap``; elsewhere the module."""
    wrapper = getattr(_open, "wrapper", None)
    return module if wrapper is None else wrapper(module, **overrides)
