"""CallPlans: what native code does in place of a kernel, worked out from the operator's definition, one rule a kind (plan.py asks them)."""

from . import composites, contractions, expressions, factories, plan, reductions  # noqa: F401
