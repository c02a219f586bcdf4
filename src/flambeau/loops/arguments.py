"""What a loop's kernel is given: ``i64 @KERNEL(ptr data, ptr meta, ptr ints, ptr floats, ptr out)``, see :mod:`.module`."""

from __future__ import annotations

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, ParameterOperand

__all__ = ["DATA", "FLOATS", "GIVEN", "INTS", "META", "NULL", "OUT", "RUNTIME"]

RUNTIME = (
    "malloc",
    "free",
    "parallel",
    "interrupted",
    "product",
    "turn_product",
    "python",
    "spread",
    "spread_within",
    "container_new",
    "container_end",
    "container_clear",
    "list_append",
    "list_shift",
    "list_prepend",
    "table_find",
    "table_put",
    "table_remove",
)
NULL = Operand("null", llvm.PTR)
DATA, META, INTS, FLOATS, OUT = GIVEN = [
    ParameterOperand(f"%{name}", llvm.PTR, "noalias") for name in ("data", "meta", "ints", "floats", "out")
]
