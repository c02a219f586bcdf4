"""autograd.Function: operations whose derivative the user writes."""

from __future__ import annotations

from .. import _C
from ..base import pytree
from ..core import keys as K
from ..core.dispatch import HANDLERS
from .grad_mode import no_grad
from .node import Node, Saved, _output_meta, gradient_edge

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What forward and backward share."""

    def __init__(self):
        self._to_save: tuple = ()
        self._non_differentiable: set = set()
        self._dirty: tuple = ()
        self._materialize = True

    def save_for_backward(self, *tensors):
        self._to_save = tensors

    def mark_non_differentiable(self, *tensors):
        self._non_differentiable = set(map(id, tensors))

    def mark_dirty(self, *tensors):
        self._dirty = tensors

    def set_materialize_grads(self, value):
        self._materialize = bool(value)

    @property
    def saved_tensors(self):
        return self._node.unpack_saved()


class _FunctionNode(Node):
    def __init__(self, cls, ctx, edges, outputs, n_inputs, at):
        super().__init__(f"{cls.__name__}Backward", edges, outputs)
        self._cls, self.ctx, self._n, self._at = cls, ctx, n_inputs, at
        self.materialize = ctx._materialize
        self._saved: list = []

    def save(self, tensors, outputs):
        ids = {id(o): k for k, o in enumerate(outputs)}
        self._saved = [
            Saved(t, ids.get(id(t)), f"saved tensor {k}") if isinstance(t, _C.TensorBase) else t
            for k, t in enumerate(tensors)
        ]

    def unpack_saved(self):
        return tuple(s.unpack(self) if isinstance(s, Saved) else s for s in self._saved)

    def apply(self, *cts):
        got = self._cls.backward(self.ctx, *cts)
        got = got if isinstance(got, tuple) else (got,)
        if len(got) > self._n and all(g is None for g in got[self._n :]):
            got = got[: self._n]
        if len(got) != self._n:
            raise RuntimeError(
                f"function {self._name} returned an incorrect number of gradients (expected {self._n}, got {len(got)})"
            )
        return [got[i] for i in self._at]

    def release(self):
        for s in self._saved:
            if isinstance(s, Saved):
                s.release()


class Function:
    """Subclass with static ``forward(ctx, *args)`` (or ``forward(*args)`` and ``setup_context(ctx, inputs, output)``) and
    ``backward(ctx, *grad_outputs)``; call through :meth:`apply`."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so you "
            "should invoke them on the "
            "class itself. Instantiating an autograd function will raise an error in a future version of PyTorch."
        )

    generate_vmap_rule = (
        False  # vmap runs forward and backward each under vmap, when the class defines no ``vmap`` of its own
    )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward without recording and leave one node for it."""
        if _C.tls("transforms"):
            result = HANDLERS["function"](Function, FunctionCtx, cls, args, kwargs)
            if result is not NotImplemented:
                return result
        ctx = FunctionCtx()
        tensors = [a for a in args if isinstance(a, _C.TensorBase)]
        recording = bool(_C.tls("grad_enabled")) and any(t._requires_grad for t in tensors)
        ctx.needs_input_grad = tuple(isinstance(a, _C.TensorBase) and a._requires_grad for a in args)
        before = _C.tls("grad_enabled", 0)
        try:
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            _C.tls("grad_enabled", before)
        if not recording:
            ctx._node = _Plain(ctx)
            return output
        flat, spec = pytree.tree_flatten(output) if not isinstance(output, _C.TensorBase) else ([output], None)
        inputs = {id(t) for t in tensors}
        dirty = set(map(id, ctx._dirty))
        # An input that is returned as it is becomes a new tensor, so that its history isn't overwritten.
        flat = [
            _C.alias(o, type(o)) if isinstance(o, _C.TensorBase) and id(o) in inputs and id(o) not in dirty else o
            for o in flat
        ]
        at = [i for i, a in enumerate(args) if isinstance(a, _C.TensorBase)]
        node = _FunctionNode(
            cls,
            ctx,
            [gradient_edge(args[i]) for i in at],
            [_output_meta(o) if isinstance(o, _C.TensorBase) else None for o in flat],
            len(args),
            at,
        )
        ctx._node = node
        node.save(ctx._to_save, flat)
        for nr, o in enumerate(flat):
            if isinstance(o, _C.TensorBase) and o._dtype.category >= 2 and id(o) not in ctx._non_differentiable:
                o._grad_fn, o._output_nr = node, nr
                o._flags |= K.REQUIRES_GRAD
        return flat[0] if spec is None else pytree.tree_unflatten(flat, spec)


class _Plain:
    def __init__(self, ctx):
        self._ctx = ctx

    def unpack_saved(self):
        return self._ctx._to_save


def once_differentiable(fn):
    """Decorator of a backward that isn't itself differentiable."""

    def wrapper(ctx, *args):
        with no_grad():
            return fn(ctx, *args)

    return wrapper
