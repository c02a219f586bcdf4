"""The backend for sparse arguments: the facet ``"sparse"`` of an operator, given next to the sparse family or derived by kind.

Derived: a pointwise operator of one tensor that maps zero to zero works on the values; an in-place form replaces what its first argument holds
(values in place where the pattern stays); out= forms do the same to ``out``. Everything else is PyTorch's error.
"""

from __future__ import annotations

import importlib

from .. import _C
from ..base.errors import MissingFacet
from ..base.records import replace
from ..core import keys as K
from ..core.dispatch import excluding
from ..core.operator import FACETS, OpOverload, namespace
from ..core.out_rules import check_inplace
from ..core.sparse import Coo, Sparse, is_sparse, make, parts
from ..core.tensor import Layout, kind_of

aten = namespace("aten")
_ABOVE = K.PYTHON | K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM
_rules_loaded = False


def _load_rules() -> None:
    global _rules_loaded
    if not _rules_loaded:
        for family in ("construction", "arithmetic", "products", "shapes"):
            importlib.import_module(f"flambeau.ops.sparse.{family}")
        _rules_loaded = True  # now, so that another thread waits for the imports too


def _arithmetic():
    return importlib.import_module("flambeau.ops.sparse.arithmetic")


def among(args, kwargs) -> list:
    """The sparse tensors among the arguments, lists included."""
    found = []
    for a in (*args, *kwargs.values()):
        if isinstance(a, _C.TensorBase):
            if a._array is None and isinstance(a._payload, Sparse):
                found.append(a)
        elif isinstance(a, (list, tuple)):
            found.extend(x for x in a if is_sparse(x))
    return found


def run(op: OpOverload, args, kwargs, sparse):
    """Run ``op``, some of whose arguments are sparse."""
    _load_rules()
    full = op.full(*args, **kwargs)
    try:
        rule = op.facet("sparse")
    except MissingFacet:
        raise refusal(op, sparse[0]) from None
    with excluding(_ABOVE):
        return rule(*full)


def in_layout(op: OpOverload, values):
    """A factory, or a copy of a dense tensor, asked for a sparse layout."""
    _load_rules()
    layout = next(v for v, a in zip(values, op._schema.arguments) if a.type == "Layout")
    if not isinstance(layout, Layout):
        raise TypeError(f"{op._opname}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    rule = op.overrides.get("sparse")
    if rule is None:
        raise NotImplementedError(f"{op.name()}: makes no tensors of a sparse layout")
    with excluding(_ABOVE):
        return rule(*values)


def refusal(op: OpOverload, t) -> NotImplementedError:
    backend = f"{'SparseCPU' if isinstance(parts(t), Coo) else 'SparseCsrCPU'}"
    name = op.name().removesuffix(".default")
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the '{backend}' backend. This could be because the operator doesn't exist for this "
        f"backend: it takes no {kind_of(t.layout)} tensors; use .to_dense() first."
    )


# ---- rules by kind -------------------------------------------------------------------------------------------------------


def build(op: OpOverload):
    rule = _RULES.get(op.kind)
    return None if rule is None else rule(op)


def with_values(t, values, coalesced=None):
    """``t`` with other values at the same places."""
    p = parts(t)
    if isinstance(p, Coo):
        return make(replace(p, values=values, coalesced=p.coalesced if coalesced is None else coalesced), t._shape)
    return make(replace(p, values=values), t._shape)


def _pointwise(op: OpOverload):
    tensors = [i for i, a in enumerate(op._schema.arguments) if a.is_tensor]

    def run(*args):
        given = [i for i in tensors if isinstance(args[i], _C.TensorBase)]
        t = args[given[0]]
        if len(given) != 1:
            raise refusal(op, next(args[i] for i in given if is_sparse(args[i])))
        call = lambda x: op(*args[: given[0]], x, *args[given[0] + 1 :])  # noqa: E731
        if call(aten.zeros.default([1], dtype=t._dtype)).item():
            raise refusal(op, t)
        if isinstance(parts(t), Coo):
            t = aten._coalesce.default(t)
        return with_values(t, call(parts(t).values))

    return run


def _inplace(op: OpOverload):
    functional = op.definition.functional

    def run(self, *args):
        if not is_sparse(self):
            positional, named = functional.split((self, *args))
            result = functional(*positional, **named)
            check_inplace(op, self._dtype, result._dtype)
            return aten.copy_.default(self, aten._to_dense.default(result) if is_sparse(result) else result)
        positional, named = functional.split((self, *args))
        result = functional(*positional, **named)
        derived = functional.kind == "pointwise" and "sparse" not in functional.overrides
        if derived and isinstance(parts(self), Coo) and not parts(self).coalesced:
            raise RuntimeError(f"{op._opname} requires coalesced input")
        return _arithmetic().adopt(self, result)

    return run


def _out(op: OpOverload):
    functional = op.definition.functional
    outs = [i for i, a in enumerate(op._schema.arguments) if a.is_out]

    def run(*args):
        given = tuple(a for i, a in enumerate(args) if i not in outs)
        positional, named = functional.split(given)
        result = functional(*positional, **named)
        out = args[outs[0]]
        if len(outs) != 1:
            raise refusal(op, next(a for a in args if is_sparse(a)))
        if is_sparse(out):
            return _arithmetic().adopt(out, result)
        result = aten._to_dense.default(result) if is_sparse(result) else result
        return aten.copy_.default(out.resize_(result._shape) if out._shape != result._shape else out, result)

    return run


def _composite(op: OpOverload):
    return op.definition.fn if op.definition.implicit else None


_RULES = {"pointwise": _pointwise, "inplace": _inplace, "out": _out, "composite": _composite}
FACETS["sparse"] = build
