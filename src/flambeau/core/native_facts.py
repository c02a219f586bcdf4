"""What native code is told of an operator before its first call."""

from __future__ import annotations

from .. import _C
from .bindings import Signature, takes_numbers
from .named_results import return_type
from .operator import OpOverload, decomposed

__all__ = ["PLANNED_KINDS", "known_by_type", "prepare"]

_CODES = {
    "Tensor": 1,
    "Scalar": 2,
    "number": 2,
    "int": 3,
    "SymInt": 3,
    "float": 4,
    "bool": 5,
    "str": 6,
    "ScalarType": 7,
    "Device": 8,
    "MemoryFormat": 9,
}
_TRACED = {"numpy", "flambeau"}  # namespaces of operators that graphs alone call: the trace has asked their shape rules
PLANNED_KINDS: set[str] = set()  # kinds for which eager/plans works out native call plans
# Overrides that a plan is made by, though the kernel is an override: a view as another dtype or by numbers, an array that is copied.
_PLANNED_BESIDE = {"reinterprets", "numbers", "template"}


def prepare(op: OpOverload) -> None:
    """Tell native code the parameters of ``op``. Called by it before the first call."""
    sig = Signature(op, takes_numbers(op))
    parameters = []
    for a in op._schema.arguments:
        facts = (
            a.name,
            _CODES.get(a.type, 0),
            a.is_list,
            a.optional,
            a.kwarg_only,
            a.elements_optional,
            a.size is not None,
            a.name == "pin_memory",
        )
        parameters.append((*facts, a.default_value if a.has_default else None) if a.has_default or a.is_out else facts)
    base = op.definition.functional if op.kind in ("inplace", "out") else op
    planned = (
        op.kind in PLANNED_KINDS
        and base.kind in PLANNED_KINDS
        and (
            not {"eager"} & (op.overrides.keys() | base.overrides.keys()) or bool(_PLANNED_BESIDE & op.overrides.keys())
        )
        and not (op.kind == "out" and base.kind == "index")  # their kernels look at dtypes and shared memory
    )
    op.set_signature(
        tuple(parameters),
        varargs=-1 if sig.varargs is None else sig.varargs,
        numbers=0 if not sig.tensors_take_numbers else 1 if sig.first_is_tensor else 2,
        factory=sig.is_factory,
        body=op.definition.fn if decomposed(op) else None,
        inner=op.definition.fn if _kernel_is_body(op) else None,
        programs=op.namespace == "aten",
        each=op.definition.each if decomposed(op) else None,
        written=sum(1 << i for i, a in enumerate(sig.args) if a.alias_info and a.alias_info.is_write),
        call_plans=planned,
        view=op.kind == "view",
        one_tensor=_returns_one_tensor(op),
        loud=op.namespace != "aten",
        pure=op.namespace == "aten" and not op.effects,
        by_type=sum(1 << i for i in known_by_type(op)),
        factors=sum(1 << i for i in known_by_type(op) if not op._schema.arguments[i].is_tensor),
        named=return_type(op),
        rule_first=planned and _is_by_hand(base),
    )


def known_by_type(op: OpOverload) -> tuple[int, ...]:
    """Positions of the arguments of which, when they are numbers, a call plan needs the type only (a factor's also when it is 1)."""
    base = op.definition.functional if op.kind in ("inplace", "out") else op
    if base.kind != "pointwise":
        return ()
    factor = base.definition.factor
    return tuple(
        i
        for i, a in enumerate(op._schema.arguments)
        if (a.is_tensor and not a.is_list) or (factor and a.name == factor)
    )


def _is_by_hand(op) -> bool:
    """Whether a kernel of ours makes tensors of ``op``, which needn't look at sizes: the shape rule does that."""
    d = op.definition
    return (
        op.kind in ("extern", "composite")
        and op.namespace not in _TRACED
        and d.eager is not None
        and d.meta is not None
        and any(r.is_tensor for r in op._schema.returns)
    )


def _kernel_is_body(op) -> bool:
    """Whether the kernel of an explicit composite is its body."""
    return (
        op.kind == "composite"
        and not op.definition.implicit
        and op.definition.eager is None
        and "eager" not in op.overrides
    )


def _returns_one_tensor(op) -> bool:
    returns = op._schema.returns
    return (
        op.kind != "inplace"
        and not op._schema.is_mutable
        and len(returns) == 1
        and returns[0].is_tensor
        and not returns[0].is_list
    )


_C.set_handlers(prepare=prepare)
