"""What the rules of traced/ ask capture for, how captured code makes its results, and what loads the rules when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from ... import _C
from ...base.compiling import is_exporting
from ...base.errors import Uncaptured
from ...base.shape_checks import check
from ...core.quantized import Affine, make

__all__ = ["check_codes", "code_parameters", "operator_rule", "quantised_of", "rebuilt", "stand_in", "uncaptured_codes"]


def quantised_of(codes, scale, zero_point, axis=None, packed=None):
    """What stands for the quantised tensor of these parts. Capture answers with a variable."""
    return stand_in().of(codes, scale, zero_point, axis, packed)


def uncaptured_codes(why: str):
    """Break the graph: capture does; a program that is exported can't have it."""
    raise Uncaptured(f"{why}: there is no rule for it in captured code")


def check_codes(condition, why: str) -> None:
    """RuntimeError unless all elements of a tensor of truth values are true. A graph checks it when it runs."""
    check(condition.all().item(), why)


def code_parameters(scale, zero_point) -> tuple:
    """Scale and zero point, tensors of one element, as the numbers that operators take. A trace goes on with the tensors."""
    if is_exporting() and isinstance(scale, _C.TensorBase):
        return scale, zero_point
    return float(scale), int(zero_point)


def rebuilt(codes, scale, zero_point, axis, packed):
    """The quantised tensor that captured code returns."""
    if axis is None:
        scale, zero_point = (x.item() if isinstance(x, _C.TensorBase) else x for x in (scale, zero_point))
        scale, zero_point = float(scale), int(zero_point)
    return make(Affine(codes, scale, zero_point, axis, packed))


_MAKERS = frozenset(
    f"aten::{name}"
    for name in (
        "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "_make_per_tensor_quantized_tensor",
        "_make_per_channel_quantized_tensor",
    )
)  # fmt: skip


def operator_rule(func):
    """The rule of an operator, one of its overloads or its public function, where it needs no quantised argument to be asked; None for others."""
    packet = getattr(func, "overloadpacket", func)
    name = getattr(packet, "_qualified_op_name", None)
    if name is None and isinstance(func, _C.Function):
        name = f"aten::{func.__name__}"
    if type(name) is not str or not (name in _MAKERS or name.startswith("quantized::")):
        return None
    return _rules().OPERATORS.get(name)


def stand_in() -> Any:
    """The class that stands for quantised tensors in a trace."""
    return _rules().CodesTensor


def _rules():
    return importlib.import_module("flambeau.ops.affine.traced")
