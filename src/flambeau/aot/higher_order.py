"""``torch._higher_order_ops``: functions whose arguments are functions, and the operators that they are in graphs."""

from __future__ import annotations

from .control_flow import _stack_pytree, _unstack_pytree, associative_scan, cond, map, scan, while_loop
from .regions import invoke_subgraph
from .stacked_loop import while_loop_stack_output
from .traced_calls import InvokeQuant, inline_asm_elementwise
from .wrap import invoke_quant, invoke_quant_packed, local_map_hop, wrap

__all__ = [
    "InvokeQuant",
    "_stack_pytree",
    "_unstack_pytree",
    "associative_scan",
    "cond",
    "inline_asm_elementwise",
    "invoke_quant",
    "invoke_quant_packed",
    "invoke_subgraph",
    "local_map_hop",
    "map",
    "scan",
    "while_loop",
    "while_loop_stack_output",
    "wrap",
]
