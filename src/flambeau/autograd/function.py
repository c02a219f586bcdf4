"""autograd.Function: operations whose derivative the user writes.

As in PyTorch the ``ctx`` of a call is the node of the backward graph, so that nothing refers to itself.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import warnings
from typing import Any

from .. import _C
from ..base import pytree
from ..core.dispatch import HANDLERS
from ..core.keys import FUNCTIONALIZE
from ..core.operator import namespace
from .grad_mode import no_grad
from .node import Node, Saved, WrittenView, _output_meta, set_history

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]


aten = namespace("aten")
_state = threading.local()


def is_linearizing() -> bool:
    return getattr(_state, "linearizing", False)


@contextlib.contextmanager
def linearizing(pushing: bool = False):
    """While tangents are taken as the derivative of a backward: Functions that have a ``jvp`` are asked for it. They keep what they are
    given when they run; ``pushing``: that backward runs. One that the program takes itself meanwhile (of ``grad`` under ``jvp``) is its own.
    """
    before = is_linearizing(), _is_pushing()
    _state.linearizing, _state.pushing = True, pushing
    try:
        yield
    finally:
        _state.linearizing, _state.pushing = before


def _is_pushing() -> bool:
    return getattr(_state, "pushing", False)


def in_forward() -> bool:
    """Whether the forward of a Function runs in this thread: what it computes has the derivative that the Function says."""
    return getattr(_state, "forwards", 0) > 0


@contextlib.contextmanager
def _forward_call():
    before = getattr(_state, "forwards", 0)
    _state.forwards = before + 1
    try:
        with _C.Guard(grad_enabled=0):
            yield
    finally:
        _state.forwards = before


class FunctionCtx:
    """What forward and backward share."""

    _to_save: tuple = ()
    _saved: tuple | None = None
    _non_differentiable: frozenset = frozenset()
    _dirty: tuple = ()
    _materialize = True
    _materialize_non_diff_grads = True  # False: backward gets None for results marked as not differentiable
    needs_input_grad: tuple = ()

    def save_for_backward(self, *tensors):
        """Tensors (or None) for backward, checked there for writes; call it once, in forward or setup_context. Where the call is recorded,
        TypeError for anything else."""
        self._to_save = tensors

    _saved_for_forward: tuple = ()
    _forward = False  # jvp is running

    def save_for_forward(self, *tensors):
        """Tensors (or None) for jvp, which finds them as ``saved_tensors``."""
        if not all(t is None or isinstance(t, _C.TensorBase) for t in tensors):
            raise AssertionError(
                "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
            )
        self._saved_for_forward = tensors

    @property
    def saved_for_forward(self):
        return self._saved_for_forward

    def mark_non_differentiable(self, *tensors):
        """Results that no gradient flows through. TypeError for what isn't a tensor."""
        for t in tensors:
            if not isinstance(t, _C.TensorBase):
                raise TypeError(f"mark_non_differentiable only accepts variable arguments, but got {type(t).__name__}")
        self._non_differentiable = frozenset(map(id, tensors))
        self._held = tensors  # as long as their ids are looked at

    def mark_dirty(self, *tensors):
        """Arguments that forward wrote in place."""
        self._dirty = tensors

    def set_materialize_grads(self, value):
        """False: backward gets None, not zeros, for results that no gradient came for."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self):
        if self._forward:
            return self._saved_for_forward
        if self._saved is None:
            return self._to_save
        node = self if isinstance(self, Node) else None
        return tuple(s.unpack(node) if isinstance(s, Saved) else s for s in self._saved)

    saved_variables = saved_tensors


def for_each_argument(node: Any, got: tuple, n: int) -> tuple:
    """What a backward returned for ``n`` arguments; None may follow. RuntimeError for another number."""
    if len(got) > n and all(g is None for g in got[n:]):
        got = got[:n]
    if len(got) != n:
        raise RuntimeError(
            f"function {node.name()} returned an incorrect number of gradients (expected {n}, got {len(got)})"
        )
    return got


class _BackwardNode(FunctionCtx, Node):
    """The ctx of a recorded call. Subclasses are named after their Function, as ``grad_fn`` shows."""

    _forward_cls: type
    _given: tuple | None = None  # the arguments, where tangents may be asked for: see linearizing()

    def __init__(self):
        pass  # the native part is made when forward has run, with the results known

    def _counters(self):
        return [c for s in self._saved or () if isinstance(s, Saved) for c in s.counters()]

    def apply(self, *cts):
        cls = self._forward_cls
        if self._given is not None and _is_pushing():
            got = _Pushing.apply(self, *cts)
            return [got[i] for i in self._at]
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
            )
        got = cls.vjp(self, *cts) if cls.backward is Function.backward else cls.backward(self, *cts)
        got = for_each_argument(self, got if isinstance(got, tuple) else (got,), self._count)
        return [got[i] for i in self._at]

    def release(self):
        for s in self._saved or ():
            if isinstance(s, Saved):
                s.release()

    @property
    def _raw_saved_tensors(self):
        return tuple(self._saved or ())


class _Meta(type):
    """A Function class has its node class, ``_backward_cls``, made when first asked for."""

    @property
    def _backward_cls(cls):
        found = cls.__dict__.get("_node_class")
        if found is None:
            found = type(
                f"{cls.__name__}Backward", (_BackwardNode,), {"_forward_cls": cls, "__module__": cls.__module__}
            )
            cls._node_class = found
        return found


class Function(metaclass=_Meta):
    """Subclass with static ``forward(ctx, *args)`` (or ``forward(*args)`` and ``setup_context(ctx, inputs, output)``) and
    ``backward(ctx, *grad_outputs)``; call through :meth:`apply`."""

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so you "
            "should invoke them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward "
            "method."
        )

    generate_vmap_rule = (
        False  # vmap runs forward and backward each under vmap, when the class defines no ``vmap`` of its own
    )

    # Whether tensors in containers are results, too. Otherwise a tuple holds the results, and other containers pass as they are.
    _nested_results = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs) -> Any:
        """Run forward without recording and leave one node for it."""
        if cls.setup_context is not Function.setup_context and (kwargs or getattr(cls.forward, "__defaults__", None)):
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        elif kwargs:
            args, kwargs = _in_order(cls.forward, args, kwargs)
        if _C.tls("transforms"):
            result = HANDLERS["function"](Function, FunctionCtx, cls, args, kwargs)
            if result is not NotImplemented:
                return result
        if _C.tls("included") & FUNCTIONALIZE:
            HANDLERS["functional function"](cls, args)
        if _C.tls("forward_open"):
            result = HANDLERS["dual"](cls, args, kwargs)
            if result is not NotImplemented:
                return result
        return cls._run(args, kwargs)

    @classmethod
    def _run(cls, args, kwargs, look=None):
        """:meth:`apply` of one call; ``look(ctx, output)`` is called between forward and what is recorded."""
        needs = tuple(isinstance(a, _C.TensorBase) and a._requires_grad for a in args)
        recording = True in needs and bool(_C.tls("grad_enabled"))
        ctx = cls._backward_cls()
        ctx.needs_input_grad = needs
        if recording and is_linearizing() and cls.jvp is not Function.jvp:
            ctx._given = args
        with _forward_call():
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
            for t in ctx._dirty:
                if isinstance(t, _C.TensorBase) and not t._inference:
                    t._bump_version()
            if look is not None:
                look(ctx, output)
        return output if not recording or _record_one(ctx, args, output) else _record(cls, ctx, args, output)


def _in_order(forward, args, kwargs):
    """Arguments of ``forward(ctx, ...)`` with keywords at their positions, for gradients are given by position. TypeError for a gap."""
    signature = inspect.signature(forward)
    bound = signature.bind(None, *args, **kwargs)
    at = len(bound.args)
    for name, parameter in list(signature.parameters.items())[at:]:
        if name in bound.arguments and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            raise TypeError(
                f"forward() missing required argument: '{list(signature.parameters)[at]}' (position {at - 1})"
            )
    return bound.args[1:], bound.kwargs


def _saved(k: int, t, number: int | None) -> Saved | None:
    """What is kept of argument ``k`` of save_for_backward, which is result ``number`` of the node, if it is one."""
    if isinstance(t, _C.TensorBase):
        return Saved(t, number, f"saved tensor {k}")
    if t is None:
        return None
    raise TypeError(f"save_for_backward can only save variables, but argument {k} is of type {type(t).__name__}")


def _record_one(ctx, args, output) -> bool:
    """The usual case: one new tensor, nothing marked. False when it is another one."""
    if (
        not isinstance(output, _C.TensorBase)
        or ctx._dirty
        or ctx._non_differentiable
        or any(a is output for a in args)
        or output._dtype.category < 2
    ):
        return False
    at, edges = [], []
    for i, a in enumerate(args):
        if isinstance(a, _C.TensorBase):
            at.append(i)
            edges.append(a if a._requires_grad else None)
    ctx._at, ctx._count = at, len(args)
    Node.__init__(ctx, ctx.__class__.__name__, edges, (_output_meta(output),))
    ctx.materialize = ctx._materialize
    ctx._saved = tuple([_saved(k, t, 0 if t is output else None) for k, t in enumerate(ctx._to_save)])
    ctx._to_save = ctx._held = ()
    set_history(output, ctx, 0)
    _C.note_function_view(output)
    return True


def _record(cls, ctx, args, output):
    """Make ``ctx`` the node of the results."""
    nested = cls._nested_results and not isinstance(output, _C.TensorBase)
    if nested:
        flat, spec = pytree.tree_flatten(output)
    else:
        flat = [*output] if isinstance(output, tuple) else [output]
    inputs = {id(a): i for i, a in enumerate(args) if isinstance(a, _C.TensorBase)}
    dirty = set(map(id, ctx._dirty))
    for t in ctx._dirty:
        if id(t) not in inputs:
            raise RuntimeError("mark_dirty: only arguments of forward can be marked, and they must be tensors")
        if id(t) not in map(id, flat):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                "inplace must all be outputs of the Function."
            )
        if t._requires_grad and t._is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if isinstance(t._autograd, _C.View):
            _check_written_view(t._autograd.root, flat)
    outs = [
        _view_of_input(o) if isinstance(o, _C.TensorBase) and id(o) in inputs and id(o) not in dirty else o
        for o in flat
    ]
    carries = [
        isinstance(o, _C.TensorBase) and o._dtype.category >= 2 and id(f) not in ctx._non_differentiable
        for o, f in zip(outs, flat)
    ]
    ctx._at, ctx._count = tuple(i for i, a in enumerate(args) if isinstance(a, _C.TensorBase)), len(args)
    Node.__init__(
        ctx,
        f"{cls.__name__}Backward",
        [args[i] if args[i]._requires_grad else None for i in ctx._at],
        [
            _output_meta(o)
            if isinstance(o, _C.TensorBase)
            and (ctx._materialize_non_diff_grads or id(f) not in ctx._non_differentiable)
            else None
            for o, f in zip(outs, flat)
        ],
    )
    ctx.materialize = ctx._materialize
    numbers = {id(f): k for k, f in enumerate(flat) if carries[k] and (id(f) not in inputs or id(f) in dirty)}
    ctx._saved = tuple(_saved(k, t, numbers.get(id(t))) for k, t in enumerate(ctx._to_save))
    ctx._to_save = ctx._held = ()
    for k, o in enumerate(outs):
        if carries[k]:
            if id(o) not in dirty:
                set_history(o, ctx, k)
            elif isinstance(o._autograd, _C.View):
                _write_view(ctx, o, ctx._at.index(inputs[id(o)]))
            else:
                o._storage._note_recorded()
                set_history(o, ctx, k)
    # Once all writes are told: a view of an argument that was written is a result of its own.
    for o, carried in zip(outs, carries):
        if carried and id(o) not in dirty:
            _C.note_function_view(o)
    if nested:
        return pytree.tree_unflatten(outs, spec)
    if not isinstance(output, tuple):
        return outs[0]
    return type(output)(*outs) if hasattr(output, "_fields") else tuple(outs)


def _view_of_input(t):
    """An input that is returned as it is, as a new tensor, so that its history isn't overwritten."""
    view = _C.alias(t, type(t))
    _C.note_view(view, t, aten.alias.default, ())
    return view


def _check_written_view(root, results) -> None:
    """RuntimeError for a view that a Function may not write."""
    if root._requires_grad and root._is_leaf:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if sum(isinstance(x, _C.TensorBase) for x in results) > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. "
            "You should either make sure the input is not a view (using .clone() for example) or make your Function only return one Tensor."
        )


class _WrittenByFunction(WrittenView):
    """The backward of a Function that wrote the view among its arguments, at ``place`` among the edges."""

    def __init__(self, root, view, inner, place: int):
        self._place = place
        edges = inner.next_edges
        super().__init__(root, view, inner, (*edges[:place], *edges[place + 1 :]))

    def split(self, cts):
        return cts[self._place], [*cts[: self._place], *cts[self._place + 1 :]]


def _write_view(ctx, view, place: int) -> None:
    """The history of the view's root goes through ``ctx`` now; the view takes over from it when it is next asked."""
    root = view._autograd.root
    set_history(root, _WrittenByFunction(root, view, ctx, place), 0)
    view._storage._note_recorded()


def tells_missing(node: Node) -> bool:
    """Whether the backward of a Function with several results gets None, not zeros, where no gradient comes."""
    return isinstance(node, FunctionCtx) and not node.materialize and len(node.outputs) > 1  # type: ignore[attr-defined]


def fills_missing(node) -> bool:
    """Whether a tape's node is of a Function with several results whose backward is handed zeros for missing gradients: what it gives depends on
    whether it runs, not on which came."""
    return isinstance(node, FunctionCtx) and node.materialize and len(node.outputs) > 1  # type: ignore[attr-defined]


class _Pushing(Function):
    """In place of the backward of a Function that has a ``jvp``, while tangents are taken as the derivative of a backward: what it gives is not
    looked at (zeros), and its derivative is that ``jvp``."""

    @staticmethod
    def forward(ctx, node, *cts):
        ctx.node, ctx.results = node, len(cts)
        floating = [isinstance(a, _C.TensorBase) and a._dtype.category >= 2 for a in node._given]
        ctx.wanted = [f and a._requires_grad for f, a in zip(floating, node._given, strict=True)]
        return tuple(
            aten.zeros_like.default(a) if wanted else None for a, wanted in zip(node._given, ctx.wanted, strict=True)
        )

    @staticmethod
    def backward(ctx, *tangents):
        node = ctx.node
        given = [
            aten.zeros_like.default(a)
            if t is None and node._materialize and isinstance(a, _C.TensorBase) and a._dtype.category >= 2
            else t
            for a, t in zip(node._given, tangents, strict=True)
        ]
        node._forward = True
        try:
            made = node._forward_cls.jvp(node, *given)
        finally:
            node._forward = False
        made = made if isinstance(made, tuple | list) else (made,)
        if len(made) != ctx.results:
            raise RuntimeError(
                f"Function {node._forward_cls.__name__}Backward: jvp returned {len(made)} tangents for {ctx.results} outputs of forward"
            )
        return None, *made


class InplaceFunction(Function):
    """Kept for programs that name it: a Function with a switch ``inplace``."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for programs that name it: a Function whose results may be nested."""

    _nested_results = True


def once_differentiable(fn):
    """Decorator of a backward that isn't itself differentiable: RuntimeError when its results are differentiated."""

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        with no_grad():
            outputs = fn(ctx, *args)
        if not _C.tls("grad_enabled") or not any(isinstance(a, _C.TensorBase) and a._requires_grad for a in args):
            return outputs
        if isinstance(outputs, tuple):
            return refusing(args, outputs)
        return refusing(args, (outputs,))[0]

    wrapper.once_differentiable = True
    return wrapper


def refusing(args: tuple, outputs: tuple) -> tuple:
    """The tensors among ``outputs`` as results of ``args`` whose derivative is a RuntimeError."""
    node = _Refusing(
        "DelayedError",
        [a for a in args if isinstance(a, _C.TensorBase)],
        [_output_meta(o) if isinstance(o, _C.TensorBase) else None for o in outputs],
    )
    made = []
    for k, o in enumerate(outputs):
        if isinstance(o, _C.TensorBase):
            alias = _C.alias(o, type(o))
            vars(alias).update(vars(o))  # what a wrapper holds
            set_history(alias, node, k)
            o = alias
        made.append(o)
    return tuple(made)


class _Refusing(Node):
    def apply(self, *cts):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
