"""What registering a hook returns: of tensors, of nodes, of modules, of optimizers."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..base.public import public_in

__all__ = ["RemovableHandle"]

_ids = itertools.count()


def _place(hooks: dict | None) -> Callable[[], Any]:
    """Where a registry is found, None when it is gone. A plain dict, which nothing can refer to weakly, is kept."""
    if hooks is None:
        hooks = OrderedDict()
    return weakref.ref(hooks) if isinstance(hooks, OrderedDict) else lambda: hooks


@public_in("utils.hooks")
class RemovableHandle:
    """``remove()`` takes the hook away; also usable in a ``with`` block. Removing twice does nothing.

    ``hooks_dict_ref()`` is the registry that it is in, or None when that is gone."""

    removed: list[Callable[[], None]] = []
    """Called behind each removal."""

    def __init__(self, hooks: dict, *extra: dict):
        self.id = next(_ids)
        self._places = [_place(h) for h in (hooks, *extra)]

    @property
    def hooks_dict_ref(self):
        return self._places[0]

    @property
    def extra_dict_ref(self):
        return tuple(self._places[1:])

    def remove(self) -> None:
        for place in self._places:
            hooks = place()
            if hooks is not None:
                hooks.pop(self.id, None)
        for listener in self.removed:
            listener()

    # As in PyTorch's files: the registry, the id, and other registries that note it; None for a registry that is gone.
    def __getstate__(self):
        hooks, *extra = (place() for place in self._places)
        return (hooks, self.id, tuple(extra)) if extra else (hooks, self.id)

    def __setstate__(self, state) -> None:
        global _ids
        hooks, self.id, *extra = state
        self._places = [_place(h) for h in (hooks, *(extra[0] if extra and extra[0] else ()))]
        # Hooks to come have other ids than those that were loaded.
        _ids = itertools.count(max(next(_ids), self.id + 1))

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def registered(hooks: dict, hook: Callable) -> RemovableHandle:
    """The handle of ``hook``, which is added to ``hooks``."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle
