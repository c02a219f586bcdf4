"""How a kind of operators becomes steps of a program: one rule a kind, and native kernels before them."""

from __future__ import annotations

from ...core.native_facts import PLANNED_KINDS
from ...core.operator import OpOverload
from ...core.promotion import check_scalars, compute_dtype
from .program import Program
from .values import value_meta

RULES = {}  # kind -> rule(program, op, values, out or None) -> PlanValue (or a list of them)


def rule(kind: str):
    def wrap(fn):
        RULES[kind] = fn
        PLANNED_KINDS.add(kind)
        return fn

    return wrap


def steps_of(p: Program, op: OpOverload, values, out):
    """What ``op`` of values is: by the rule of its native kernel, where there is one, else by the rule of its kind."""
    if "lower" in op.overrides:
        # When the first such call is recorded: `import flambeau` stays small.
        from . import native_kernels

        found = p.attempt(lambda: native_kernels.by_override(p, op, values, steps_of))
        if found is not None:
            return found
    if "rows" in op.overrides:
        from . import native_kernels

        if op.kind == "pointwise":
            metas = [value_meta(x) for x in values]
            check_scalars(op, metas, compute_dtype(op, metas))
        found = p.attempt(lambda: native_kernels.by_rows(p, op, values))
        if found is not None:
            return found
    return RULES[op.kind](p, op, values, out)
