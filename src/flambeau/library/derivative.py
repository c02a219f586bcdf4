"""The derivative of an operator from the functions ``save_for_backward`` and ``backward`` of the older interface."""

from __future__ import annotations

from collections import namedtuple

from .. import _C
from ..autograd import Function
from ..base.pytree import tree_flatten, tree_unflatten
from ..core import keys as K
from ..core.dispatch import excluding
from .registry import call

__all__ = ["derivative_of"]


def derivative_of(custom):
    """The facet "autograd": runs the operator below autograd, and the two functions where a gradient is asked for."""
    op = custom._opoverload
    names = [a.name for a in op._schema.arguments]
    Inputs = namedtuple(f"{op._opname}_args", names)

    class Generated(Function):
        @staticmethod
        def forward(ctx, spec, *flat):
            ctx.set_materialize_grads(True)
            values = tree_unflatten(list(flat), spec)
            with excluding(K.AUTOGRAD):
                out = call(op, op, values)
            leaves, out_spec = tree_flatten(out)
            saved = custom._saved(Inputs(*values), out)
            kept, saved_spec = tree_flatten(saved)
            tensors = [x for x in kept if isinstance(x, _C.TensorBase)]
            ctx.save_for_backward(*tensors)
            ctx.kept = saved_spec, [None if isinstance(x, _C.TensorBase) else (x,) for x in kept]
            ctx.given, ctx.out_spec, ctx.spec = values, out_spec, spec
            apart = _constant_results(custom, op, out)
            if apart:
                ctx.mark_non_differentiable(*apart)
            return tuple(leaves)

        @staticmethod
        def backward(ctx, *grads):
            saved_spec, kept = ctx.kept
            tensors = iter(ctx.saved_tensors)
            saved = tree_unflatten([next(tensors) if k is None else k[0] for k in kept], saved_spec)
            result = tree_unflatten(list(grads), ctx.out_spec)
            grads = tuple(result) if isinstance(result, tuple) else (result,)
            found = custom._backward(ctx, saved, *grads)
            _check(op, names, ctx.given, found)
            out = [_spread(x, found.get(n)) for n, x in zip(names, ctx.given)]
            return (None, *[g for part in out for g in part])

    Generated.__name__ = Generated.__qualname__ = f"{op._opname}_customop"

    def run(*values):
        flat = [x for v in values for x in (v if isinstance(v, (list, tuple)) else [v])]
        asked = _C.tls("grad_enabled") and any(isinstance(x, _C.TensorBase) and x.requires_grad for x in flat)
        if not asked:
            with excluding(K.AUTOGRAD):
                return call(op, op, values)
        for f, what in ((custom._backward, "backward"), (custom._saved, "save_for_backward")):
            if f is None:
                raise RuntimeError(
                    "Autograd has not been implemented for operator"
                    if custom._backward is None and custom._saved is None
                    else f"We were unable to find a '{what}' function for {custom._name}: please register one with impl_{what}"
                )
        values = [list(v) if isinstance(v, tuple) else v for v in values]
        leaves, spec = tree_flatten(list(values))
        made = Generated.apply(spec, *leaves)
        return _rebuilt(op, made)

    return run


def _rebuilt(op, leaves):
    """The results as the schema has them. Lists take what the other results leave."""
    returns = op._schema.returns
    if len(returns) == 1:
        return list(leaves) if returns[0].is_list else leaves[0]
    lists = sum(r.is_list for r in returns)
    each = (len(leaves) - (len(returns) - lists)) // lists if lists else 0
    out, at = [], 0
    for r in returns:
        n = each if r.is_list else 1
        out.append(list(leaves[at : at + n]) if r.is_list else leaves[at])
        at += n
    return tuple(out)


def _constant_results(custom, op, out) -> list:
    """The results that ``output_differentiability`` excepts. RuntimeError where it says that a number has a gradient."""
    flags = custom._differentiability
    outs = out if isinstance(out, tuple) else (out,)
    apart = []
    for i, (r, x) in enumerate(zip(op._schema.returns, outs)):
        differentiable = True if flags is None else flags[i]
        if flags is not None and differentiable and not r.type.startswith("Tensor"):
            raise RuntimeError(
                f"output_differentiability[{i}] is True, but the output of {custom._name} at {i} is not a Tensor"
            )
        if not differentiable:
            apart += [t for t in (x if isinstance(x, list) else [x]) if isinstance(t, _C.TensorBase)]
    return apart


def _check(op, names, values, found) -> None:
    """RuntimeError for a backward's result that isn't a gradient for each tensor argument, by name."""
    if not isinstance(found, dict):
        raise RuntimeError(
            f"In the backward function defined for {op.name()} via the CustomOp API, expected the output of the backward function "
            f"to be a dict but got {type(found)}"
        )
    wanted = {a.name for a, x in zip(op._schema.arguments, values) if a.type.startswith("Tensor")}
    numbers = {a.name for a in op._schema.arguments if not a.type.startswith("Tensor")}
    if found.keys() != wanted:
        extra = found.keys() & numbers
        raise RuntimeError(
            f"In the backward function defined for {op.name()} via the CustomOp API, expected the returned grad_input dict to have "
            f"keys {wanted} but got {set(found)}. The backward function must return a gradient (can be None) for each arg to the CustomOp "
            "that may be a Tensor or Sequence[Tensor]. Args declared to be non-Tensor-like types should not appear in the grad_input dict"
            + (f": {extra}" if extra else "")
        )
    for a, x in zip(op._schema.arguments, values):
        if a.name not in wanted:
            continue
        g = found[a.name]
        where = f"In the backward function defined for {op.name()} via the CustomOp API,"
        if a.is_list:
            if not isinstance(g, (list, tuple)):
                raise RuntimeError(
                    f"{where} for input '{a.name}' expected the grad_input dict to hold a list of gradients but got {type(g)}."
                )
            if len(g) != len(x):
                raise RuntimeError(
                    f"{where} for input '{a.name}' expected the grad_input dict to hold a list of {len(x)} gradients but got {len(g)}"
                )
            for t in g:
                if t is not None and not isinstance(t, _C.TensorBase):
                    raise RuntimeError(
                        f"{where} for input '{a.name}' expected a list of None or Tensor gradients, got object of type {type(t)}"
                    )
        elif g is not None and not isinstance(g, _C.TensorBase):
            raise RuntimeError(
                f"{where} got object of type {type(g)} as the gradient for input '{a.name}', but expected the gradient to be either None or a Tensor"
            )


def _spread(value, grad) -> list:
    """The gradients of the leaves of an argument."""
    leaves = tree_flatten([value])[0]
    if isinstance(value, (list, tuple)):
        return list(grad) if grad is not None else [None] * len(leaves)
    return [grad] * len(leaves)
