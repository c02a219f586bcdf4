"""The table operator x facet: what is given next to a definition, derived from its kind, runs by falling back, or is missing.

    python -m flambeau.testing.facets docs/reference/facets.md

writes it; a test holds that the kept file is current, so that a rule that got lost shows as a diff.
"""

from __future__ import annotations

import sys

from ..autograd import rules
from ..core.operator import OpOverload
from ..eager import backend
from ..fake import meta
from .samples import every_operator

FACETS = ("eager", "meta", "gradient", "batch", "lowering")

# Kinds by facet: what the rules of the subsystems cover. A composite is covered by its parts.
_LOWERED = ("pointwise", "reduction", "view", "index", "contraction", "factory", "composite")
_BATCHED = ("pointwise", "reduction", "view", "index", "contraction", "factory", "random", "composite")


def gradient(op: OpOverload) -> str:
    if "autograd" in op.overrides:
        return "given"
    if op.vjp_formulas is not None:
        return "given" if op.vjp_formulas else "none"
    if op.kind == "composite":
        return "derived"
    if op.kind in rules.NOT_DIFFERENTIABLE or not any(r.is_tensor for r in op._schema.returns):
        return "none"
    returns_floats = getattr(op.definition, "out", None)
    if returns_floats is not None and getattr(returns_floats, "category", 2) < 2:
        return "none"
    if getattr(op.definition, "combine", None) in ("argmax", "argmin", "logical_and", "logical_or"):
        return "none"
    return "derived" if op.kind in rules._RULES else "missing"


def facet(op: OpOverload, name: str) -> str:
    """given, derived, fallback, missing, or none where there is nothing to have."""
    d = op.definition
    if name == "gradient":
        return gradient(op)
    if name == "eager":
        if "eager" in op.overrides or getattr(d, "eager", None) is not None:
            return "given"
        return "derived" if op.kind in backend.RULES else "missing"
    if name == "meta":
        if "meta" in op.overrides or getattr(d, "meta", None) is not None:
            return "given"
        return "derived" if op.kind in meta.RULES else "missing"
    if name == "batch":
        return "given" if "batch" in op.overrides else "derived" if op.kind in _BATCHED else "fallback"
    return "given" if {"lower", "drawn"} & op.overrides.keys() else "derived" if op.kind in _LOWERED else "fallback"


def table() -> str:
    """The file's text."""
    lines = [
        "# Facets of the operators",
        "",
        "Written by `python -m flambeau.testing.facets docs/reference/facets.md`. *given*: next to the definition; *derived*: by the rule of its "
        "kind; *fallback*: a",
        "slower general way (batch: a loop over examples; lowering: a call of the eager kernel); *none*: there is nothing to have "
        "(no gradient flows).",
        "",
        f"| operator | kind | {' | '.join(FACETS)} |",
        "|---" * (len(FACETS) + 2) + "|",
    ]
    counts: dict[str, int] = {}
    for op in sorted(every_operator(), key=str):
        counts[op.kind] = counts.get(op.kind, 0) + 1
        kind = op.kind if op.kind != "composite" or op.definition.implicit else "composite, explicit"
        lines.append(f"| `{op}` | {kind} | {' | '.join(facet(op, f) for f in FACETS)} |")
    summary = ", ".join(f"{n} {k}" for k, n in sorted(counts.items(), key=lambda kn: -kn[1]))
    return "\n".join([*lines[:4], "", f"{sum(counts.values())} operators: {summary}.", *lines[4:]]) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/facets.md", "w", encoding="utf-8") as f:
        f.write(table())
