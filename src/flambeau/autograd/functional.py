"""``torch.autograd.functional``: products with Jacobians and Hessians, and whole ones, of functions of tensors.

``inputs`` is a tensor or a tuple of them; results have the same structure. With ``create_graph`` results can be differentiated again, with
``strict`` a result that doesn't depend on an input is a RuntimeError instead of zeros.
"""

from __future__ import annotations

from .. import _C
from ..core.operator import namespace
from .engine import grad as _grad
from .grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

aten = namespace("aten")


def _tuple(x, what: str):
    values = x if isinstance(x, tuple) else (x,)
    if not all(isinstance(v, _C.TensorBase) for v in values):
        raise TypeError(f"The {what} must be either a Tensor or a tuple of Tensors")
    return values, isinstance(x, tuple)


def _leaves(inputs, create_graph: bool):
    """Stand-ins that a gradient can be asked for: views of the inputs when the results are to be differentiated, else detached ones."""
    if create_graph:
        return tuple(aten.view_as(t, t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def _gradients(outputs, inputs, weights, create_graph: bool, strict: bool, keep: bool = True):
    pairs = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    if not pairs:
        if strict:
            raise RuntimeError(
                "Output 0 of the user-provided function does not require gradients: it is independent of the inputs."
            )
        return tuple(aten.zeros_like(t) for t in inputs)
    found = _grad(
        [o for o, _ in pairs],
        inputs,
        [w for _, w in pairs],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=keep,
    )
    if strict and any(g is None for g in found):
        raise RuntimeError(
            "The output of the user-provided function is independent of an input. This is not allowed in strict mode."
        )
    return tuple(aten.zeros_like(t) if g is None else g for g, t in zip(found, inputs))


def _weights(v, like, what: str):
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {what} has a single element")
        return tuple(aten.ones_like(t) for t in like)
    values, _ = _tuple(v, "vector v")
    if [tuple(a.shape) for a in values] != [tuple(b.shape) for b in like]:
        raise RuntimeError(
            f"v has invalid size: {[list(a.shape) for a in values]} instead of {[list(b.shape) for b in like]}"
        )
    return values


def _out(values, is_tuple: bool, create_graph: bool):
    values = tuple(v if create_graph else v.detach() for v in values)
    return values if is_tuple else values[0]


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v^T J)."""
    with enable_grad():
        values, many = _tuple(inputs, "inputs")
        leaves = _leaves(values, create_graph)
        outputs, many_out = _tuple(func(*leaves), "outputs of the user-provided function")
        weights = _weights(v, outputs, "the user-provided function's output")
        found = _gradients(outputs, leaves, weights, create_graph, strict)
    return _out(outputs, many_out, create_graph), _out(found, many, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), J v), by differentiating v^T J twice."""
    with enable_grad():
        values, _ = _tuple(inputs, "inputs")
        leaves = _leaves(values, create_graph)
        weights = _weights(v, leaves, "the input to the user-provided function")
        outputs, many_out = _tuple(func(*leaves), "outputs of the user-provided function")
        dummies = tuple(aten.zeros_like(o).requires_grad_() for o in outputs)
        backward = _gradients(outputs, leaves, dummies, True, strict)
        found = _gradients(backward, dummies, weights, create_graph, strict)
    return _out(outputs, many_out, create_graph), _out(found, many_out, create_graph)


def _scalar(outputs):
    if len(outputs) != 1 or outputs[0].numel() != 1:
        raise RuntimeError("The function given to hessian, hvp or vhp should return a single element")


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v^T H) of a function with one result of one element."""
    with enable_grad():
        values, many = _tuple(inputs, "inputs")
        leaves = _leaves(values, create_graph)
        weights = _weights(v, leaves, "the input to the user-provided function")
        outputs, many_out = _tuple(func(*leaves), "outputs of the user-provided function")
        _scalar(outputs)
        slopes = _gradients(outputs, leaves, tuple(aten.ones_like(o) for o in outputs), True, strict)
        found = _gradients(slopes, leaves, weights, create_graph, strict)
    return _out(outputs, many_out, create_graph), _out(found, many, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), H v): a Hessian is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """J for each pair of output and input: of the output's shape, then the input's. One backward for each element of the output."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode"')
    with enable_grad():
        values, many = _tuple(inputs, "inputs")
        leaves = _leaves(values, create_graph)
        outputs, many_out = _tuple(func(*leaves), "outputs of the user-provided function")
        rows = []
        for output in outputs:
            flat, each = output.reshape(-1), []
            for k in range(flat.numel()):
                each.append(_gradients((flat[k],), leaves, (aten.ones_like(flat[k]),), create_graph, strict))
            blocks = []
            for i, leaf in enumerate(leaves):
                shape = (*output.shape, *leaf.shape)
                stacked = aten.stack([e[i] for e in each]) if each else leaf.new_zeros(shape)
                blocks.append(stacked.reshape(shape))
            rows.append(_out(blocks, many, create_graph))
    return tuple(rows) if many_out else rows[0]


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """H for each pair of inputs of a function with one result of one element."""

    def slopes(*leaves):
        outputs, _ = _tuple(func(*leaves), "outputs of the user-provided function")
        _scalar(outputs)
        found = _gradients(outputs, leaves, tuple(aten.ones_like(o) for o in outputs), True, strict)
        return found if isinstance(inputs, tuple) else found[0]

    return jacobian(slopes, inputs, create_graph, strict)
