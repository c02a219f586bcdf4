"""What the rules of traced/ ask capture for, how captured code makes its results, and what loads the rules when they are first used."""

from __future__ import annotations

import importlib

from ... import _C
from ...core.quantized import Affine, make

__all__ = ["check_codes", "code_parameters", "operator_rule", "quantised_of", "rebuilt", "stand_in", "uncaptured_codes"]


def quantised_of(codes, scale, zero_point, axis=None, packed=None):
    """The quantised tensor of these parts. Only capture calls it, and answers with a variable."""
    raise RuntimeError("a quantised tensor of a trace outside of a trace")


def uncaptured_codes(why: str):
    """Break the graph. Only capture calls it."""
    raise RuntimeError(why)


def check_codes(condition, why: str) -> None:
    """RuntimeError unless all elements of a tensor of truth values are true. A graph checks it when it runs."""
    if not condition.all():
        raise RuntimeError(why)


def code_parameters(scale, zero_point) -> tuple:
    """Scale and zero point, tensors of one element, as the numbers that operators take. A trace goes on with the tensors."""
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


def stand_in() -> type:
    """The class that stands for quantised tensors in a trace."""
    return _rules().CodesTensor


def _rules():
    return importlib.import_module("flambeau.ops.affine.traced")
