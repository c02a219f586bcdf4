"""autograd.Function under vmap: the class's own ``vmap``, or, with ``generate_vmap_rule``, its forward and backward
each under vmap."""

from __future__ import annotations

import functools
import threading
from typing import NamedTuple

from .. import _C
from ..base import pytree
from ..core.dispatch import install
from ..core.operator import namespace
from .handler import _levels, expand_batch, take
from .levels import below, level, movedim, value_at, wrap

aten = namespace("aten")


class VmapInfo(NamedTuple):
    """What ``vmap(info, in_dims, *args)`` of an autograd.Function is told."""

    batch_size: int
    randomness: str


class _State(threading.local):
    without_rules = False


_state = _State()


def without_rules(fn):
    """``fn`` in which a Function that has no rule for vmap is run on the mapped values, forward and backward: the way of autograd's own batches."""

    @functools.wraps(fn)
    def run(*args):
        before, _state.without_rules = _state.without_rules, True
        try:
            return fn(*args)
        finally:
            _state.without_rules = before

    return run


def apply(base, context, cls, args: tuple, kwargs: dict):
    """``cls.apply`` when an argument is mapped; NotImplemented when none is. ``base``, ``context``: autograd's
    classes."""
    lvl = max(_levels(args), key=lambda x: x.number, default=None)
    if lvl is None:
        return NotImplemented
    values, mask = take(args, lvl)
    generate = getattr(cls, "generate_vmap_rule", False) or _state.without_rules
    own = None if cls.vmap is base.vmap else cls.vmap
    if own is not None and not generate:
        in_dims = tuple(tuple(0 if y else None for y in m) if isinstance(m, tuple) else 0 if m else None for m in mask)
        with below(lvl):
            out, out_dims = own(VmapInfo(lvl.size, lvl.randomness), in_dims, *values, **kwargs)
            flat, spec = pytree.tree_flatten(out)
            dims = (
                pytree.tree_leaves(out_dims)
                if not isinstance(out_dims, int) and out_dims is not None
                else [out_dims] * len(flat)
            )
            flat = [x if d is None else movedim(x, d % x._ndim, 0) for x, d in zip(flat, dims, strict=True)]
        return pytree.tree_unflatten([x if d is None else wrap(x, lvl) for x, d in zip(flat, dims)], spec)
    if not generate:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
            "implement the vmap staticmethod or "
            "set generate_vmap_rule=True. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    out_mask: list[bool] = []
    with below(lvl):
        out = _generated(base, context, cls, lvl, tuple(mask), out_mask, kwargs).apply(*values)
    flat, spec = pytree.tree_flatten(out)
    return pytree.tree_unflatten([wrap(x, lvl) if m else x for x, m in zip(flat, out_mask)], spec)


install("function", apply)


def _enter(values, which, lvl):
    """Values mapped again, in lists too."""
    return [
        _enter(v, m, lvl) if isinstance(m, tuple) else wrap(v, lvl) if m and v is not None else v
        for v, m in zip(values, which)
    ]


def _generated(base, context, cls, lvl, mask, out_mask, kwargs):
    """A Function on whole batches whose forward and backward run those of ``cls`` under vmap."""
    two_parts = cls.setup_context is not base.setup_context
    size = lvl.size

    class Inner(context):
        """The ctx that ``cls`` sees: its saved tensors are mapped again in backward."""

        given: tuple = ()
        saved_tensors = property(lambda self: self.given)

    inner = Inner()
    saved_mask: list[bool] = []
    forward_mask: list[bool] = []

    def forward(ctx, *values):
        inner.needs_input_grad = ctx.needs_input_grad
        with level(size, lvl.randomness) as lv:
            args = _enter(values, mask, lv)
            if two_parts:
                out = cls.forward(*args, **kwargs)
                cls.setup_context(inner, tuple(args), out)
            else:
                out = cls.forward(inner, *args, **kwargs)
            if inner._dirty:
                raise RuntimeError(
                    f"vmap over {cls.__name__} with generate_vmap_rule=True: mark_dirty is not supported"
                )
            flat, spec = pytree.tree_flatten(out)
            taken = [value_at(x, lv) for x in flat]
            saved = [value_at(x, lv) for x in inner._to_save]
            kept = [value_at(x, lv) for x in inner.saved_for_forward]
            fixed = [v for x, (v, _) in zip(flat, taken) if id(x) in inner._non_differentiable]
        out_mask[:] = [m for _, m in taken]
        saved_mask[:] = [m for _, m in saved]
        forward_mask[:] = [m for _, m in kept]
        ctx.save_for_backward(*(v for v, _ in saved))
        ctx.save_for_forward(*(v for v, _ in kept))
        ctx.mark_non_differentiable(*fixed)
        ctx.set_materialize_grads(inner._materialize)
        return pytree.tree_unflatten([v for v, _ in taken], spec)

    def backward(ctx, *cts):
        with level(size, lvl.randomness) as lv:
            inner.given = tuple(_enter(ctx.saved_tensors, saved_mask, lv))
            got = cls.backward(inner, *_enter(cts, out_mask, lv))
            taken = [value_at(g, lv) for g in (got if isinstance(got, tuple) else (got,))]
        alike = all(out_mask)
        return tuple(_settle(g, m, wanted is True, size, alike) for (g, m), wanted in zip(taken, mask))

    def jvp(ctx, *tangents):
        with level(size, lvl.randomness) as lv:
            inner.given = tuple(_enter(ctx.saved_tensors, forward_mask, lv))
            got = cls.jvp(inner, *_enter(tangents, mask, lv))
            taken = [value_at(t, lv) for t in (got if isinstance(got, (tuple, list)) else (got,))]
        return tuple(
            expand_batch(t, size) if m and not n and t is not None else t for (t, n), m in zip(taken, out_mask)
        )

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward), "generate_vmap_rule": True}
    if cls.jvp is not base.jvp:
        members["jvp"] = staticmethod(jvp)
    return type(f"Vmapped{cls.__name__}", (base,), members)


def _settle(g, mapped: bool, wanted: bool, size: int, alike: bool):
    """A cotangent for an argument that is mapped (``wanted``) or shared by the examples, whose cotangents are
    summed."""
    if not isinstance(g, _C.TensorBase) or (mapped and wanted):
        return g
    if wanted:
        return expand_batch(g, size)
    return aten.sum.dim_IntList(g, [0]) if mapped else aten.mul.Tensor(g, size) if alike else g
