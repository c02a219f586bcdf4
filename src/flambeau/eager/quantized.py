"""The backend for quantised arguments: the facet ``"quantized"`` of an operator, given in ops/affine/ or derived by what its schema says.

Derived: a view of a tensor that is quantised as a whole is a view of its codes; an in-place form writes the codes of the functional form's
result. Everything else is PyTorch's error.
"""

from __future__ import annotations

import importlib

from ..base.errors import MissingFacet
from ..base.records import replace
from ..core import keys as K
from ..core.dispatch import excluding
from ..core.operator import FACETS, OpOverload, namespace
from ..core.quantized import make, parts

aten = namespace("aten")
_ABOVE = K.PYTHON | K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM
_rules_loaded = False


def _load_rules() -> None:
    global _rules_loaded
    if not _rules_loaded:
        for family in ("copies", "elements", "images"):
            importlib.import_module(f"flambeau.ops.affine.{family}")
        _rules_loaded = True  # now, so that another thread waits for the imports too


def run(op: OpOverload, args, kwargs):
    """Run ``op``, some of whose arguments are quantised."""
    _load_rules()
    full = op.full(*args, **kwargs)
    try:
        rule = op.facet("quantized")
    except MissingFacet:
        raise refusal(op) from None
    with excluding(_ABOVE):
        return rule(*full)


def refusal(op: OpOverload) -> NotImplementedError:
    name = op.name().removesuffix(".default")
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the 'QuantizedCPU' backend. This could be because the operator doesn't exist for this "
        "backend: dequantize() its arguments first."
    )


# ---- rules by what the schema says -----------------------------------------------------------------------------------------


def build(op: OpOverload):
    if op._schema.is_view or op.kind == "view":
        return _view(op)
    rule = _RULES.get(op.kind)
    return None if rule is None else rule(op)


def _view(op: OpOverload):
    def run(self, *args):
        if parts(self) is None or parts(self).packed is not None:
            raise refusal(op)
        positional, named = op.split((parts(self).codes, *args))
        made = op(*positional, **named)
        return (
            type(made)(_seen(op, self, c) for c in made) if isinstance(made, (list, tuple)) else _seen(op, self, made)
        )

    return run


def _seen(op: OpOverload, t, codes):
    """A view of the codes of ``t``, read as it is."""
    p = parts(t)
    if p.axis is not None and (codes._shape, codes._strides) != (p.codes._shape, p.codes._strides):
        name = op.name().removesuffix(".default")
        raise RuntimeError(f"{name}: Setting strides is possible only on uniformly quantized tensor")
    return make(replace(p, codes=codes))


def _inplace(op: OpOverload):
    functional = op.definition.functional

    def run(self, *args):
        if parts(self) is None:
            raise refusal(op)
        positional, named = functional.split((self, *args))
        made = functional(*positional, **named)
        return aten.copy_.default(self, made)

    return run


def _composite(op: OpOverload):
    return op.definition.fn if op.definition.implicit else None


_RULES = {"inplace": _inplace, "composite": _composite}
FACETS["quantized"] = build
