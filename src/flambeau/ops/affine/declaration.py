"""How operators are declared that make or read quantised tensors.

Fake tensors have no codes, so the shape rules of these operators refuse; capture goes by the rules in traced/.
"""

from __future__ import annotations

from ...base.errors import Uncaptured
from ...core.declare import explicit

__all__ = ["quantized_operator"]


def quantized_operator(schema: str, **kw):
    """Declare an operator that makes or reads quantised tensors by its kernel on tensors."""

    def no_shape_rule(*args):
        raise Uncaptured(f"aten::{schema.partition('(')[0]}: fake tensors have no codes")

    def wrap(fn):
        op = explicit(schema, meta=no_shape_rule, has_out=False, **kw)(fn)
        op.override("quantized", fn)
        return op

    return wrap
