"""Bodies on elements: the rule of pointwise operators, and traced bodies as steps."""

from __future__ import annotations

import numpy as np

from ...core.body import TABLE, Expr, Input, topological, trace
from ...core.layouts import pointwise_strides
from ...core.operator import OpOverload
from ...core.promotion import (
    check_scalars,
    compute_dtype,
    operand_indices,
    result_dtype,
    rounded,
    rounds_operands,
)
from ..pointwise import _WIDE
from .program import Program
from .rules import rule
from .values import NotPlanned, PlanValue, value_meta


def expression(p: Program, root, inputs: dict, shape, out, dtype: np.dtype, strides=None) -> PlanValue:
    """The traced body ``root`` over all of ``shape``, cast to ``dtype``. ``inputs``: value of each input by name."""
    dims = None if strides is None else tuple(strides)
    while isinstance(root, Expr) and root.op == "where" and root.args[0].__class__ is bool:  # as fill's body has it
        root = root.args[1 if root.args[0] else 2]
    if not isinstance(root, Expr):
        return p.copy(
            p.constant(root, dtype if type(root) is not float or dtype.kind == "f" else None),
            p.memory(out, shape, dtype, dims),
        )
    nodes = topological(root)
    values: dict[int, PlanValue] = {}
    # The result may be written by the last step alone: an argument may lie in the same memory.
    final = None
    for node in nodes:
        if node.op == "input":
            values[id(node)] = inputs[node.args[0]]
            continue
        args = [values[id(a)] if isinstance(a, Expr) else a for a in node.args]
        to = None
        if node is root:
            to = final = p.memory(out, shape, dtype, dims) if _dtype_of(node, args) == dtype else None
        values[id(node)] = _operation(p, node.op, args, to, shape, dims)
    made = values[id(root)]
    if final is not None and made is not final:
        raise NotPlanned
    if made is final:
        return made
    return p.copy(made, p.memory(out, shape, dtype, dims))


def _native(op: str, args):
    """The ufunc of a scalar operation on these operands."""
    fn = TABLE[op].numpy
    if isinstance(fn, np.ufunc):
        return fn
    found = getattr(fn, "ufunc", None)  # the same for floating operands
    if found is None or any(isinstance(a, PlanValue) and a.dtype.kind != "f" for a in args):
        raise NotPlanned
    return found()


def _parts(op: str, args):
    """The body of a scalar operation that is made of others, or None. ``of_reals`` is one for floating operands of one dtype."""
    fn = TABLE[op].numpy
    composed = getattr(fn, "body", None)
    if composed is None and hasattr(fn, "of_reals"):
        kinds = {v.dtype for v in args if isinstance(v, PlanValue)}
        if len(kinds) == 1 and next(iter(kinds)).kind == "f":
            return fn.of_reals
    return composed


def _dtype_of(node, args) -> np.dtype:
    kinds = tuple(
        v.dtype if isinstance(v, PlanValue) else type(v) if type(v) is not bool else np.dtype(bool) for v in args
    )
    if node.op == "where":
        return np.result_type(*[v.dtype if isinstance(v, PlanValue) else v for v in args[1:]])
    if node.op == "cast":
        return args[1].np
    if hasattr(TABLE[node.op].numpy, "in_float64"):
        if any(not isinstance(v, PlanValue) or v.dtype.kind != "f" for v in args):
            raise NotPlanned
        return args[0].dtype
    if _parts(node.op, args) is not None:
        return next(v.dtype for v in args if isinstance(v, PlanValue))
    return _native(node.op, args).resolve_dtypes((*kinds, None))[-1]


def _operation(p: Program, op: str, args, out, shape, strides) -> PlanValue:
    composed = _parts(op, args)
    if composed is not None:
        names = {str(k): v for k, v in enumerate(args) if isinstance(v, PlanValue)}
        root, _ = trace(composed, [Input(str(k)) if isinstance(v, PlanValue) else v for k, v in enumerate(args)])
        kind = next(v.dtype for v in names.values())
        return expression(p, root, names, shape, out, kind, strides)
    wide = getattr(TABLE[op].numpy, "in_float64", None)
    if wide is not None:
        made = p.ufunc(wide, [p.cast(v, np.dtype(np.float64)) for v in args], None, shape, strides)
        kind = args[0].dtype
        return (
            made
            if kind == made.dtype and out is None
            else p.copy(made, p.empty(shape, kind, strides) if out is None else out)
        )
    if op == "where":
        condition, a, b = args
        return p.select(condition, a, b, out, shape, strides)
    if op == "cast":
        v, to = args
        if not isinstance(v, PlanValue):
            raise NotPlanned
        return p.copy(v, out if out is not None else p.empty(shape, to.np, strides))
    return p.ufunc(_native(op, args), args, out, shape, strides)


@rule("pointwise")
def _pointwise(p: Program, op: OpOverload, values, out):
    d = op.definition
    metas = [value_meta(x) for x in values]
    compute = compute_dtype(op, metas)
    out_dtype = result_dtype(op, metas, compute)
    wide = _WIDE.get(compute, compute.np)
    check_scalars(op, metas, compute)
    factor = next((a.name for a, x in zip(op._schema.arguments, values) if a.name == d.factor and x != 1), None)
    if compute.category < 2 and any(
        a.type == "Scalar" and a.name != factor and not _fits(x, compute.np)
        for a, x in zip(op._schema.arguments, values)
    ):
        raise NotPlanned
    operands = set(operand_indices(op))
    rounds = rounds_operands(op, compute)
    args, inputs, tensors = list(values), {}, []
    for i, a in enumerate(op._schema.arguments):
        x = values[i]
        if a.name == factor and factor is not None:
            if x.__class__ not in (float, int) or (x.__class__ is float and compute.category < 2):
                raise NotPlanned
            inputs[a.name], args[i] = _number(p, x, wide), Input(a.name)
            continue
        if rounds and a.type == "Scalar":
            args[i] = rounded(x, compute)
        if not a.is_tensor or x is None:
            continue
        if isinstance(x, PlanValue):
            tensors.append(x)
            x = p.cast(x, compute.np) if rounds else x
        elif i in operands and not isinstance(x, (list, complex)):
            x = _number(p, x, wide)
        else:
            raise NotPlanned
        inputs[a.name] = p.cast(x, wide) if i in operands else x
        args[i] = Input(a.name)
    if not tensors:
        raise NotPlanned
    shape = np.broadcast_shapes(*[t.shape for t in tensors])
    strides = pointwise_strides(op)(shape, metas)
    check_scalars(op, metas, compute)
    root, _ = trace(d.body, args)
    return expression(p, root, inputs, shape, out, out_dtype.np, strides)


def _number(p: Program, x, dtype: np.dtype) -> PlanValue:
    """A number among the operands: the call's, which the description knows by its type, or one that a composite's body has."""
    return p.constant(x, dtype) if p.inside else p.number(dtype)


def _fits(x, dtype: np.dtype) -> bool:
    """Whether a number that isn't an operand is an integer (or left out) that NumPy takes for one of ``dtype``."""
    if dtype.kind == "b":
        return x.__class__ is int and 0 <= x <= 127
    return x is None or (x.__class__ is int and np.iinfo(dtype).min <= x <= np.iinfo(dtype).max)
