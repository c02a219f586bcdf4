"""Tensor methods that belong to autograd: backward, hooks, retain_grad."""

from __future__ import annotations

import weakref

from .. import _C
from ..core.overrides import wrap_function
from ..core.tensor import Tensor
from . import engine
from .handles import registered


def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Accumulate d self / d leaf into ``leaf.grad``. ``gradient`` is needed when self isn't a scalar; a sequence of one is taken for its element."""
    gradients = gradient if isinstance(gradient, (list, tuple)) else [gradient]
    engine.backward([self], gradients, retain_graph, create_graph, inputs=inputs)


def _hooks(self) -> dict:
    """The dict of hooks on the gradient of this tensor."""
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = self._grad_fn
    return _C.leaf_hooks(self, False) if node is None else node.pre_hooks.setdefault(self._output_nr, {})


def _backward_hooks(self) -> dict | None:
    """The hooks on the gradient of this tensor by their number, None when there are none. Of a tensor that asks for none: what was set."""
    return (_hooks(self) or None) if self._requires_grad else vars(self).get("_backward_hooks")


def _set_backward_hooks(self, hooks):
    if self._requires_grad:
        there = _hooks(self)
        there.clear()
        there.update(hooks or {})
    else:
        vars(self)["_backward_hooks"] = hooks


def _keep_backward_hooks(self):
    raise RuntimeError("Deletion of _backwards_hooks not allowed!")


def register_hook(self, hook):
    """``hook(grad)`` when the gradient of this tensor is computed; may return a replacement."""
    return registered(_hooks(self), hook)


def register_post_accumulate_grad_hook(self, hook):
    """``hook(param)`` after the gradient was added to ``param.grad``."""
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return registered(_C.leaf_hooks(self, True), hook)


def retain_grad(self):
    """Keep ``.grad`` of a non-leaf."""
    if not self._requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._grad_fn is not None:
        self._grad_fn.retained[self._output_nr] = weakref.ref(self)


def _retains_grad(self) -> bool:
    """Whether ``.grad`` of this non-leaf is kept."""
    node = self._grad_fn
    if node is None:
        return False
    ref = node.retained.get(self._output_nr)
    return ref is not None and ref() is self


def detach_(self):
    """Forget the history, in place. RuntimeError for a view, whose base would keep it."""
    if isinstance(self._autograd, _C.View):
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self._grad_fn = None
    self._flags &= ~1
    return self


def _base(self):
    """The tensor this is a view of, at the end of any chain, or None."""
    view = self._autograd
    return view.root if isinstance(view, _C.View) else None


for _fn in (backward, register_hook, register_post_accumulate_grad_hook, retain_grad, detach_):
    setattr(Tensor, _fn.__name__, wrap_function(_fn))
Tensor._base = property(_base)
Tensor._is_view = lambda self: isinstance(self._autograd, _C.View)
Tensor.retains_grad = property(_retains_grad)
Tensor._backward_hooks = property(_backward_hooks, _set_backward_hooks, _keep_backward_hooks)
