"""What the rules of traced/ ask capture for, and how captured code makes its results."""

from __future__ import annotations

from ... import _C
from ...core.quantized import Affine, make

__all__ = ["check_codes", "code_parameters", "quantised_of", "rebuilt", "uncaptured_codes"]


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
