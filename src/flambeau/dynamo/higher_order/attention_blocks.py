"""``flex_attention`` in captured code: a node that goes by blocks where that saves a matrix of scores or the work of hidden blocks, else the
library's own whole matrices, traced through."""

from __future__ import annotations

import math
from typing import Any

from flambeau.aot.attention_blocks import attend, attend_by_blocks, example

from ...base.symint import is_symbolic
from ..variables.base import Variable
from ..variables.tensors.tensor import TensorVariable
from ..variables.tensors.torch_functions import special
from .control_flow import node_of, shared_operands, traced

__all__: list[str] = []

MOST = 256 * 256  # elements of a learned tensor for each head: its gradient is added up for each pair of blocks


@special("attend")
def _(tx, var, args, kwargs):
    """``attend(whole, change, seen, query, key, value, learns)``."""
    if var.value is not attend:
        return None
    whole, change, seen, *rest, learns = args
    made = by_blocks(tx, change, seen, [v.unwrap() for v in rest], learns.as_constant())
    return whole.call(tx, [], {}) if made is None else made


def elements(shape) -> int:
    """Elements for the sizes that this call has."""
    return math.prod(getattr(n, "hint", n) for n in shape)


def by_blocks(tx, change: Variable, seen: Variable, tensors: list, learns: bool) -> Variable | None:
    """The node's results; None where whole matrices are as good."""
    if not all(type(v) is TensorVariable for v in tensors):
        return None
    query, key, value = values = [v.val for v in tensors]
    if any(x.device.type != "cpu" or x.dtype is not query.dtype for x in values):
        return None
    if not query.shape[0] == key.shape[0] == value.shape[0]:
        return None
    varying = is_symbolic((query.shape[2], key.shape[2]))
    hidden = not (seen.can_constant() and seen.as_constant() is None)
    if not (hidden or varying or learns):
        return None
    with tx.output.recorder.within_operator(attend):
        inputs = tx.output.eval_fake(example, [query])
        body = traced(tx, "score_mod or mask_mod", lambda vs: tx.make_tuple([change.call(tx, vs, {})]), inputs)
    learned = [n.meta["val"] for n in body.lifted if getattr(n.meta["val"], "requires_grad", False)]
    if not (hidden or varying or learned):
        return None
    # The backward runs the body again, and would draw other numbers; bodies have no place for what is computed of floating-point numbers.
    large = any(elements(x.shape) > MOST * elements(query.shape[1:2]) for x in learned)
    computed = any(getattr(n.meta["val"], "__sym__", "int") != "int" for n in body.lifted)
    if large or computed or "draws" in body.effects:
        return None
    mask = seen.call(tx, [], {}).unwrap() if hidden else None
    union = shared_operands([body])
    graph = tx.output.recorder.add_subgraph(body.module, "scores")
    nodes = [v.node for v in tensors]
    args: tuple[Any, ...] = (
        graph,
        *nodes,
        None if mask is None else mask.node,
        tuple(union),
    )
    return tx.make_tuple(node_of(tx, attend_by_blocks, args, [body]))
