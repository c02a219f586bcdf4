"""``torch.autograd.functional``: products with Jacobians and Hessians, and whole ones, of functions of tensors.

``inputs`` is a tensor or a tuple of them; results have the same structure. With ``create_graph`` results can be differentiated again, with
``strict`` a result that doesn't depend on an input is a RuntimeError instead of zeros.
"""

from __future__ import annotations

from .. import _C
from ..core.operator import namespace
from .engine import grad as _grad
from .grad_mode import enable_grad, is_grad_enabled, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

aten = namespace("aten")


def _tuple(x, what: str, function: str):
    values = x if isinstance(x, tuple) else (x,)
    for i, v in enumerate(values):
        if not isinstance(v, _C.TensorBase):
            where = f"the value at index {i}" if isinstance(x, tuple) else "the given value"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {where} has type {type(v)}."
            )
    return values, isinstance(x, tuple)


def _inputs(inputs, function: str, create_graph: bool):
    """(leaves, inputs are a tuple). A leaf is a view of its input when the results are to be differentiated, else detached."""
    values, many = _tuple(inputs, "inputs", function)
    if create_graph:
        return tuple(aten.view_as(t, t) if t.requires_grad else t.detach().requires_grad_() for t in values), many
    return tuple(t.detach().requires_grad_() for t in values), many


def _outputs(outputs, function: str, strict: bool):
    values, many = _tuple(outputs, "outputs of the user-provided function", function)
    _must_require_grad(values, "outputs", strict)
    return values, many


_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {}.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward "
    "trick to compute forward mode gradients.",
    "double_back": "The jacobian of the user-provided function is independent of input {}.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_outputs when using the double "
    "backward trick to compute it.",
}
_NOT_DIFFERENTIABLE = {
    "outputs": "Output {} of the user-provided function does not require gradients.",
    "gradients": "The gradient with respect to input {} is independent of the inputs of the user-provided function.",
    "jacobian": "The jacobian of the user-provided function with respect to input {} is independent of the inputs.",
}


def _must_require_grad(values, kind: str, strict: bool):
    """RuntimeError in strict mode for a value that no derivative leads to: it would have the derivative zero."""
    for i, v in enumerate(values) if strict else ():
        if v is None or not v.requires_grad:
            text = (_INDEPENDENT["back"] if v is None else _NOT_DIFFERENTIABLE[kind]).format(i)
            raise RuntimeError(f"{text} This is not allowed in strict mode.")


def _grads(outputs, inputs, weights, create_graph: bool):
    """Products with the weights for each input; None where none leads there."""
    pairs = [(o, w) for o, w in zip(outputs, weights) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return _grad(
        [o for o, _ in pairs],
        inputs,
        [w for _, w in pairs],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=True,
    )


def _filled(found, like, strict: bool, create_graph: bool, stage: str):
    """Zeros for what no derivative leads to. In strict mode a RuntimeError: for None, and, of results that are to be differentiated, for one
    whose own derivative is nowhere."""
    out = []
    for i, (g, t) in enumerate(zip(found, like)):
        if g is None and strict:
            raise RuntimeError(f"{_INDEPENDENT[stage].format(i)} This is not allowed in strict mode.")
        if g is not None and strict and create_graph and not g.requires_grad:
            of = "hessian" if stage.startswith("double") else "jacobian"
            raise RuntimeError(
                f"The {of} of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
                "create_graph=True."
            )
        out.append(aten.zeros_like(t) if g is None else g)
    return tuple(out)


def _weights(v, like, like_is_tuple: bool, function: str, single: str):
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {single}")
        return tuple(aten.ones_like(t) for t in like)
    values, _ = _tuple(v, "v", function)
    if len(values) != len(like):
        if like_is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(values)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(values, like)):
        if tuple(a.shape) != tuple(b.shape):
            entry = f"Entry {i} in " if like_is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {b.shape} but got {a.shape}.")
    return values


_OF_OUTPUT = "the user-provided function returns a single Tensor with a single element."
_OF_INPUT = "the input to the user-provided function is a single Tensor with a single element."


def _out(values, is_tuple: bool, create_graph: bool):
    values = tuple(v if create_graph else v.detach() for v in values)
    return values if is_tuple else values[0]


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v^T J)."""
    with enable_grad():
        leaves, many = _inputs(inputs, "vjp", create_graph)
        outputs, many_out = _outputs(func(*leaves), "vjp", strict)
        weights = _weights(v, outputs, many_out, "vjp", _OF_OUTPUT)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _grads(outputs, leaves, weights, create_graph)
        found = _filled(found, leaves, strict, create_graph, "back")
    return _out(outputs, many_out, create_graph), _out(found, many, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), J v), by differentiating v^T J twice."""
    with enable_grad():
        leaves, many = _inputs(inputs, "jvp", create_graph)
        weights = _weights(v, leaves, many, "jvp", _OF_INPUT)
        outputs, many_out = _outputs(func(*leaves), "jvp", strict)
        dummies = tuple(aten.zeros_like(o).requires_grad_() for o in outputs)
        backward = _grads(outputs, leaves, dummies, True)
        _must_require_grad(backward, "gradients", strict)
        found = _grads(backward, dummies, weights, create_graph)
        found = _filled(found, outputs, strict, create_graph, "back_trick")
    return _out(outputs, many_out, create_graph), _out(found, many_out, create_graph)


def _slopes(func, leaves, function: str, strict: bool):
    """(outputs, are a tuple, gradients of the single element or None) for second derivatives."""
    outputs, many = _outputs(func(*leaves), function, strict)
    if len(outputs) != 1:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    slopes = _grads(outputs, leaves, tuple(aten.ones_like(o) for o in outputs), True)
    if function == "hessian":
        slopes = tuple(aten.zeros_like(t) if g is None else g for g, t in zip(slopes, leaves))
    _must_require_grad(slopes, "jacobian", strict)
    return outputs, many, slopes


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v^T H) of a function with one result of one element."""
    with enable_grad():
        leaves, many = _inputs(inputs, "vhp", create_graph)
        weights = _weights(v, leaves, many, "vhp", _OF_INPUT)
        outputs, many_out, slopes = _slopes(func, leaves, "vhp", strict)
        found = _grads(slopes, leaves, weights, create_graph)
        found = _filled(found, leaves, strict, create_graph, "double_back")
    return _out(outputs, many_out, create_graph), _out(found, many, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), H v) of a function with one result of one element, by differentiating v^T H twice."""
    with enable_grad():
        leaves, many = _inputs(inputs, "hvp", create_graph)
        weights = _weights(v, leaves, many, "hvp", _OF_INPUT)
        outputs, many_out, slopes = _slopes(func, leaves, "hvp", strict)
        dummies = tuple(aten.zeros_like(t).requires_grad_() for t in leaves)
        twice = _grads(slopes, leaves, dummies, True)
        _must_require_grad(twice, "gradients", strict)
        found = _grads(twice, dummies, weights, create_graph)
        found = _filled(found, leaves, strict, create_graph, "double_back_trick")
    return _out(outputs, many_out, create_graph), _out(found, many, create_graph)


def _construct_standard_basis_for(tensors, tensor_numels):
    """The standard basis of the sum of the tensors' spaces, cut into their parts: part ``i`` has a row for each element of all tensors, a
    column for each of ``tensors[i]``, its dtype and device. ``(a of 1 element, b of 2)`` gives ``[[1], [0], [0]]`` and
    ``[[0, 0], [1, 0], [0, 1]]``. RuntimeError without tensors."""
    if len(tensors) != len(tensor_numels) or not tensors:
        raise RuntimeError("a standard basis needs one or more tensors and the number of elements of each")
    total, before, parts = sum(tensor_numels), 0, []
    for tensor, count in zip(tensors, tensor_numels):
        rows = aten.arange(before, before + count)
        part = tensor.new_zeros(total, count)
        part[rows, aten.arange(count)] = 1
        parts.append(part)
        before += count
    return tuple(parts)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """J for each pair of output and input: of the output's shape, then the input's. One backward for each element of the output.

    RuntimeError for ``strict`` together with ``vectorize``, NotImplementedError for the forward-mode strategy without ``vectorize``."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode"')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet).'
            )
        if not vectorize:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: forward-mode AD is only supported with `vectorize=True`."
            )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorize=True` are not supported together."
        )
    return _jacobian(func, inputs, create_graph, strict)


def _jacobian(func, inputs, create_graph, strict):
    with enable_grad():
        leaves, many = _inputs(inputs, "jacobian", create_graph)
        outputs, many_out = _outputs(func(*leaves), "jacobian", strict)
        rows = []
        for k, output in enumerate(outputs):
            flat, each = output.reshape(-1), []
            for j in range(flat.numel()):
                found = _grads((flat[j],), leaves, (aten.ones_like(flat[j]),), create_graph)
                each.append(_row(found, leaves, k, create_graph, strict))
            blocks = []
            for i, leaf in enumerate(leaves):
                shape = (*output.shape, *leaf.shape)
                stacked = aten.stack([e[i] for e in each]) if each else leaf.new_zeros(shape)
                blocks.append(stacked.reshape(shape))
            rows.append(_out(blocks, many, create_graph))
    return tuple(rows) if many_out else rows[0]


def _row(found, leaves, k: int, create_graph: bool, strict: bool):
    """A row of the Jacobian of output ``k``."""
    row = []
    for i, (g, leaf) in enumerate(zip(found, leaves)):
        if g is None and strict:
            raise RuntimeError(
                f"Output {k} of the user-provided function is independent of input {i}. This is not allowed in strict mode."
            )
        if g is not None and strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
                "create_graph=True."
            )
        row.append(aten.zeros_like(leaf) if g is None else g)
    return row


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """H for each pair of inputs of a function with one result of one element.

    RuntimeError for ``strict`` together with ``vectorize``."""
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode"')
    values, many = _tuple(inputs, "inputs", "hessian")
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.hessian: `strict=True` and `vectorize=True` are not supported together."
        )

    def slopes(*leaves):
        _, _, found = _slopes(func, leaves, "hessian", strict)
        return found if many else found[0]

    return jacobian(slopes, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
