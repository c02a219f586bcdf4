"""In-place views: the tensor itself gets other sizes and strides over its memory.

They are composites: layers and modes see the view; the tensor then takes its place, and modes that keep books of tensors are told."""

from __future__ import annotations

from ... import _C
from ...core import keys, modes
from ...core.declare import composite
from ...core.operator import namespace

aten = namespace("aten")


def _batch(t):
    """The examples together of a tensor mapped by vmap, else None."""
    return t._payload[0] if t._keys & keys.TRANSFORM else None


def become(self, view):
    """``self`` becomes ``view``, which was made of it. RuntimeError for (views of) leaves that require a gradient while it is recorded."""
    batch = _batch(self)
    if batch is not None:
        become(batch, _batch(view))  # the caller's tensor, of which vmap shows the examples
    told = modes.dispatch_stack()
    for mode in told:
        mode.becoming(self, view)
    own = self._autograd if isinstance(self._autograd, _C.View) else None
    if view._requires_grad and _C.tls("grad_enabled"):
        root = self if own is None else own.root
        if root._requires_grad and root._grad_fn is None:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if own is None:
            _C.set_history(self, view._grad_fn, view._output_nr)
    _C.become(self, view)
    if self._array is None and self._is_python_dispatch and type(view) is type(self):
        vars(self).update(vars(view))  # what a wrapper holds is the view's
    if own is not None:
        self._autograd = view._autograd
        if view._grad_fn is not None:
            _C.set_history(self, view._grad_fn, view._output_nr)
    return self


@composite("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", variants="method")
def unsqueeze_(self, dim):
    return become(self, aten.unsqueeze.default(self, dim))


@composite("squeeze_(Tensor(a!) self) -> Tensor(a!)", variants="method")
def squeeze_(self):
    return become(self, aten.squeeze.default(self))


@composite("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", variants="method")
def squeeze_dim_(self, dim):
    return become(self, aten.squeeze.dim(self, dim))


@composite("squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", variants="method")
def squeeze_dims_(self, dim):
    return become(self, aten.squeeze.dims(self, dim))


@composite("t_(Tensor(a!) self) -> Tensor(a!)", variants="method")
def t_(self):
    return become(self, aten.t.default(self))


@composite("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", variants="method")
def transpose_(self, dim0, dim1):
    return become(self, aten.transpose.int(self, dim0, dim1))


@composite("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", variants="method")
def swapaxes_(self, axis0, axis1):
    return become(self, aten.transpose.int(self, axis0, axis1))


@composite("swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", variants="method")
def swapdims_(self, dim0, dim1):
    return become(self, aten.transpose.int(self, dim0, dim1))


@composite(
    "as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)",
    variants="function method",
)
def as_strided_(self, size, stride, storage_offset):
    return become(self, aten.as_strided.default(self, size, stride, storage_offset))
