"""Shape rules before kernels of ours: a kernel reads as much as sizes say, and the rule says which sizes go together.

``check_shapes(op, values)`` is asked by csrc/core/call_plan.c for a call's description (shapes, strides, dtypes, numbers) that it meets for the first
time, before the kernel runs; repeats find the description noted. Calls that have no description (a list of many tensors) are asked about each time.
"""

from __future__ import annotations

from .. import _C
from ..base.errors import DataDependentOutputException, MissingFacet, Uncaptured
from ..base.shape_checks import without_symbols
from ..core.operator import OpOverload
from ..core.out_rules import computed_as

__all__ = ["check_shapes"]


def check_shapes(op: OpOverload, values: tuple) -> None:
    """Raises what the shape rule of ``op`` says of these arguments."""
    base = op
    if op.kind in ("inplace", "out"):
        base = op.definition.functional
        if op.kind == "out":
            n = len(base._schema.arguments)
            values = computed_as(base, values[:n], values[n]._dtype)
    try:
        with without_symbols():
            base.facet("meta")(*values)
    except (DataDependentOutputException, MissingFacet, Uncaptured):
        pass  # what data tells, and what isn't captured, has no rule: such kernels check what they read


_C.set_handlers(check_shapes=check_shapes)
