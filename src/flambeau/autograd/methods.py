"""Tensor methods that belong to autograd: backward, hooks, retain_grad."""

from __future__ import annotations

import weakref

from ..core.overrides import wrap_function
from ..core.tensor import Tensor
from . import engine
from .node import Handle, gradient_edge


def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Accumulate d self / d leaf into ``leaf.grad``. ``gradient`` is needed when self isn't a scalar."""
    engine.backward([self], [gradient], retain_graph, create_graph, inputs=inputs)


def register_hook(self, hook):
    """``hook(grad)`` when the gradient of this tensor is computed; may return a replacement."""
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node, nr = gradient_edge(self)
    return Handle(node.pre_hooks.setdefault(nr, {}), hook)


def register_post_accumulate_grad_hook(self, hook):
    """``hook(param)`` after the gradient was added to ``param.grad``."""
    if not self._requires_grad or self._grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    node, _ = gradient_edge(self)
    return Handle(node.post_hooks, hook)


def retain_grad(self):
    """Keep ``.grad`` of a non-leaf."""
    if not self._requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._grad_fn is not None:
        self._grad_fn.retained[self._output_nr] = weakref.ref(self)


def detach_(self):
    """Forget the history, in place."""
    if self._autograd is not None and hasattr(self._autograd, "base"):
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self._grad_fn = None
    self._flags &= ~1
    return self


for _fn in (backward, register_hook, register_post_accumulate_grad_hook, retain_grad, detach_):
    setattr(Tensor, _fn.__name__, wrap_function(_fn))
