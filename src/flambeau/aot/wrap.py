"""Calls that stand in the captured graph as one node, the function as a subgraph: ``wrap``, ``invoke_quant``, ``local_map_hop``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.higher_order import HigherOrderOperator

__all__ = ["invoke_quant", "invoke_quant_packed", "local_map_hop", "wrap"]


def wrap(func: Callable, *args: Any, **kwargs: Any) -> Any:
    """``func(*args, **kwargs)``.

    Capture makes one node ``wrap(subgraph, *operands)`` of it; tensors that ``func`` reads from outside are operands.
    """
    return func(*args, **kwargs)


invoke_quant = HigherOrderOperator("invoke_quant")
invoke_quant_packed = HigherOrderOperator("invoke_quant_packed")
local_map_hop = HigherOrderOperator("local_map_hop")


@invoke_quant.rule("eager")
@invoke_quant_packed.rule("eager")
@local_map_hop.rule("eager")
def _(op, body, *operands, scheme=None, quant_options=None):
    return body(*operands)
