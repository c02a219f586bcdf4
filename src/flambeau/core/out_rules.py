"""What an out= form asks of the tensors it writes to: a fact of the definition, read by the kernel, the call plan and the shape rule.

| word | |
| --- | --- |
| ``exact`` | they have the result's dtype |
| ``casts`` | they have a dtype that can hold the result |
| ``any`` | they may have any dtype: fractions are cut off |
| ``outside`` | no operand shares their memory (of all others one may share their whole memory, laid out alike, but not a part of it) |
| ``inplace`` | the in-place form asks the same of its tensor |
| ``rows`` | resized, they are row-major; else they get the result's order of dimensions |
| ``scalar_type`` | as ``exact``, and the error names scalar types |
| ``dtype`` | where the argument ``dtype`` isn't given, theirs is meant: the result is computed in it |

``RULES`` has what holds for a kind (of index operators for their mode, of composites for the implicit ones); ``out_rules=`` of a declaration replaces
a word by its opposite or adds one. Of several results those that are integers beside values are places, and always exact.
"""

from __future__ import annotations

import functools

from ..base.dtypes import DType, c_name
from ..base.shapes import same_shape
from .operator import OpOverload
from .promotion import check_can_hold

__all__ = [
    "EXACT",
    "PRIVATE",
    "check_dtype",
    "check_inplace",
    "check_inplace_shape",
    "computed_as",
    "is_exact",
    "rules_of",
    "wants_exact",
]

RULES = {
    "pointwise": "casts",
    "read": "exact outside",
    "write": "exact",
    "factory": "exact dtype",
    "random": "casts dtype",
    "implicit": "casts",
}  # everything else: exact


PRIVATE: set[str] = set()
"""Public functions (and ``Tensor``'s methods, all of them) that take no out=, though an overload of ``torch.ops`` does: ``ops/out_forms.py`` names
them."""

EXACT: set[str] = set()
"""Overloads of ``aten`` that want the result's dtype, though others of their kind cast: ``ops/out_forms.py`` names them."""


def rules_of(op: OpOverload, words: str) -> frozenset:
    """The rules of ``op``, of which its declaration says ``words``."""
    d = op.definition
    kind = d.mode if op.kind == "index" else "implicit" if op.kind == "composite" and d.implicit else op.kind
    rules = set(RULES.get(kind, "exact").split())
    if op.name().partition("::")[2] in EXACT and op.namespace == "aten":
        rules = rules - {"casts"} | {"exact"}
    given = set(words.split())
    if given & {"exact", "casts", "any"}:
        rules -= {"exact", "casts", "any"}
    return frozenset(rules | given)


def is_exact(op: OpOverload) -> bool:
    return "exact" in op.out_rules


def wants_exact(op: OpOverload) -> bool:
    """Whether an in-place or out= form writes to the dtype of its result only."""
    functional = op.definition.functional
    return is_exact(functional) and (op.kind == "out" or "inplace" in functional.out_rules)


def check_inplace(op: OpOverload, target: DType, result: DType) -> None:
    """RuntimeError when the in-place form ``op`` may not write a result of this dtype into ``target``."""
    if wants_exact(op):
        if target.is_complex and not result.is_complex:
            raise RuntimeError(f"In-place {op._opname.removesuffix('_')} is not supported for complex tensors.")
        check_dtype(op.definition.functional, target, result)
    else:
        check_can_hold(target, result)


def check_inplace_shape(target, shape) -> None:
    """RuntimeError when a result of this shape isn't what an in-place operator may write into ``target``."""
    if not same_shape(target._shape, shape):
        raise RuntimeError(f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(shape)}")


def check_dtype(op: OpOverload, target: DType, result: DType, beside: bool = False) -> None:
    """RuntimeError when the out= form of ``op`` may not write a result of this dtype into ``target``; TypeError where ``op`` joins tensors.
    ``beside``: it is one of several results."""
    if "joins" in op.out_rules and result.category > target.category:
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {target.scalar_type}")
    if target is not result and "scalar_type" in op.out_rules:
        raise RuntimeError(
            f"{op._opname}: Expected out tensor to have scalar type {result.scalar_type} but got scalar type {target.scalar_type}"
        )
    if target is not result and (is_exact(op) or (beside and result.category == 1)):
        raise RuntimeError(f"Expected out tensor to have dtype {c_name(result)}, but got {c_name(target)} instead")
    if "real" in op.out_rules and target.is_complex:
        name = op._opname.partition("_")[2]
        raise RuntimeError(f"{name} expects a floating point output tensor, but got {target.scalar_type}")
    if "any" not in op.out_rules:
        check_can_hold(target, result)


@functools.cache
def _dtype_at(op: OpOverload) -> int | None:
    if "dtype" not in op.out_rules:
        return None
    return next((i for i, a in enumerate(op._schema.arguments) if a.name == "dtype"), None)


@functools.cache
def _default(op: OpOverload, at: int):
    return op._schema.arguments[at].default_value


def computed_as(op: OpOverload, arguments, target: DType) -> list:
    """The arguments of ``op`` with the dtype that its result is computed in when it is written to a tensor of dtype ``target``."""
    arguments, at = list(arguments), _dtype_at(op)
    if at is None:
        return arguments
    if arguments[at] is None or arguments[at] is _default(op, at):
        arguments[at] = target
    elif arguments[at] is not target and op.kind in ("factory", "random"):
        raise RuntimeError(
            f"dtype {arguments[at].scalar_type} does not match dtype of out parameter ({target.scalar_type})"
        )
    return arguments
