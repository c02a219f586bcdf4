"""``torch.utils.module_tracker``: which modules the program is in, in the forward and in the backward pass."""

from __future__ import annotations

import weakref

from .. import _C
from ..base.pytree import tree_flatten
from ..modules.hooks import AroundForward

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Context manager; ``parents`` is the set of names ("Global", "Net", "Net.fc1") that are open now.

    Names are the path from the outermost module that was called. In the backward pass a module opens when the gradient of one of its
    outputs is computed and closes when those of its inputs are.
    """

    def __init__(self):
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._open: list[str] = []
        self._hooks = AroundForward(self._enter, self._leave)

    @property
    def is_bw(self) -> bool:
        return not self._open and len(self.parents) > 1

    def _name(self, module) -> str:
        name = self._names.get(module)
        if name is None:
            name = type(module).__name__
            for path, child in module.named_modules():
                self._names.setdefault(child, f"{name}.{path}" if path else name)
            name = self._names[module]
        return name

    def _hook_gradients(self, values, act) -> None:
        for t in tree_flatten(values)[0]:
            if isinstance(t, _C.TensorBase) and t._requires_grad and _C.tls("grad_enabled"):
                t.register_hook(lambda grad: act())

    def _enter(self, module, args):
        name = self._name(module)
        self._open.append(name)
        self.parents.add(name)
        self._hook_gradients(args, lambda: self.parents.discard(name))

    def _leave(self, module, args, output):
        name = self._open.pop()
        if name not in self._open:
            self.parents.discard(name)
        self._hook_gradients(output, lambda: self.parents.add(name))

    def __enter__(self):
        self._hooks.__enter__()
        return self

    def __exit__(self, *exc):
        self._hooks.__exit__(*exc)
        self.parents = {"Global"}
        self._open = []
