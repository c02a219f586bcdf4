"""What capture does with the classes of the library that are no tensors and no modules.

Objects of the classes in :data:`IMMUTABLE` never change: one is made while tracing and is a constant of captured code. Classes in :data:`TRACED` are
Python that is traced like a program's, so their objects are made anew at each call. Everything else may hold state of its own: making one breaks the
graph, and so does calling a method of one with values of the graph.
"""

from __future__ import annotations

import enum
import types

from ...base.public import defined_in
from .reflect import module_of, qualname_of

__all__ = ["has_state", "is_function", "is_immutable", "is_operand", "is_traced"]

IMMUTABLE = {
    "flambeau.aot.traced_calls": "InvokeQuant",
    "flambeau.base.device": "Device",
    "flambeau.base.dtypes": "DType finfo iinfo",
    "flambeau.base.memory_format": "MemoryFormat",
    "flambeau.base.pytree": "GetAttrKey LeafSpec MappingKey SequenceKey TreeSpec",
    "flambeau.base.shapes": "Size",
    "flambeau.core.tensor": "Layout",
    "flambeau.compat.legacy": "DispatchKey Tag",
    "flambeau.nn.functions.linear_cross_entropy": "LinearCrossEntropyOptions",
}
# Objects that graphs hold as they are: what a random operator draws from. Draws come in the program's order, and every other use breaks the graph.
OPERANDS = {"flambeau.core.generator": "Generator"}
# Packages whose callable objects are functions or operators.
FUNCTIONS = (
    "flambeau._C.", "flambeau._frame.", "flambeau._runtime.", "flambeau.aot.", "flambeau.core.", "flambeau.dynamo.", "flambeau.export.",
    "flambeau.functionalize.", "flambeau.inductor.", "flambeau.library.", "flambeau.loops.", "flambeau.numpy.",
)  # fmt: skip
TRACED = (
    "flambeau.ao.nn.quantized.dynamic.recurrent.",
    "flambeau.compat.masked_tensor.",
    "flambeau.compat.torchscript.",
    "flambeau.nested.",
    "flambeau.nn.attention.block_mask.",
    "flambeau.nn.attention.flex_attention.",
    "flambeau.ops.affine.embeddings.",
    "flambeau.ops.affine.packed.",
    "flambeau.ops.affine.traced.",
    "flambeau.optim.",
    "flambeau.distributions.",
    "flambeau.amp.grad_scaler.",
    "flambeau.nn.utils.prune.",
)


def _definition(cls: type) -> tuple[str, str]:
    """Where the class statement stands, which for a class of the library may be another module than the public one."""
    return defined_in(cls) if module_of(cls).partition(".")[0] == "flambeau" else (module_of(cls), qualname_of(cls))


def _listed(table: dict[str, str], cls: type) -> bool:
    module, name = _definition(cls)
    return name in table.get(module, "").split()


def is_immutable(cls: type) -> bool:
    return issubclass(cls, enum.Enum) or _listed(IMMUTABLE, cls)


def is_operand(cls: type) -> bool:
    """Whether an object of the class may be an argument of a node."""
    return is_immutable(cls) or _listed(OPERANDS, cls) or is_function(cls)


def is_function(cls: type) -> bool:
    """Whether a callable object of the class is as good as a function: calling it is the operation."""
    return (
        f"{_definition(cls)[0]}.".startswith(FUNCTIONS) and not _listed(OPERANDS, cls) and not _listed(IMMUTABLE, cls)
    )


def has_state(value) -> bool:
    """Whether ``value`` is an object of the library that may change, and no function, class or namespace."""
    cls = type(value)
    known = is_immutable(cls) or is_traced(cls) or is_function(cls) or issubclass(cls, (type, types.ModuleType))
    return f"{module_of(cls)}.".startswith("flambeau.") and not known


def is_traced(cls: type) -> bool:
    return f"{_definition(cls)[0]}.".startswith(TRACED)
