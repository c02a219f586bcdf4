"""Numbers of a step that differ from step to step: learning rates, and what follows from the count of steps.

Where a step is called they are Python numbers. Where it is captured they stay 0-d tensors, as a number would be a guard that fails at the next step:
in float64, as Python computes it, which leaves the dtype of the tensors that they multiply as it is. Python's arithmetic holds for both, so a rule
is stated once. Where a step is recorded (``differentiable=True``) options that are tensors stay what they are, with their gradients.
"""

from __future__ import annotations

from flambeau.base.compiling import is_compiling
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor

__all__ = ["captured", "choose", "count", "descend", "move", "number", "option", "scalar", "scaled", "value_of"]

where = function("where")


def number(value: Tensor | float) -> float:
    """A Python number from an option that may be a 0-d tensor (``lr``)."""
    return value.item() if isinstance(value, Tensor) else value


def captured(group: dict) -> bool:
    """Whether a compiler captures the step. A recorded one counts by numbers."""
    return is_compiling() and not group.get("differentiable")


def scalar(value: Tensor | float) -> Tensor | float:
    """A number, or a tensor of one element as the 0-d tensor that counts as a number."""
    return value.double().reshape(()) if isinstance(value, Tensor) else value


def value_of(tensor: Tensor, group: dict) -> Tensor | float:
    """What a tensor of one element holds."""
    return scalar(tensor) if captured(group) else tensor.item()


def count(state: dict, group: dict) -> Tensor | float:
    """Count this step; its number, from one on."""
    return value_of(state["step"].add_(1), group)


def option(group: dict, name: str) -> Tensor | float:
    """An option that may be a 0-d tensor: a tensor where the step is recorded or captured, else a number."""
    value = group[name]
    if not isinstance(value, Tensor) or group.get("differentiable"):
        return value
    return value_of(value, group)


def choose(condition: Tensor | bool, yes: Tensor | float, no: Tensor | float) -> Tensor | float:
    """``yes if condition else no``, where both are there already."""
    return where(condition, yes, no) if isinstance(condition, Tensor) else (yes if condition else no)


def scaled(tensor: Tensor, factor: Tensor | float) -> Tensor:
    """``tensor * factor`` in the tensor's dtype, for a number or a 0-d tensor."""
    return tensor.mul(factor).to(tensor.dtype)


def move(p: Tensor, direction: Tensor, rate: Tensor | float) -> None:
    """``p -= rate * direction`` in place."""
    if isinstance(rate, Tensor):
        p.sub_(scaled(direction, rate))
    else:
        p.add_(direction, alpha=-rate)


def descend(p: Tensor, numerator: Tensor, denominator: Tensor, rate: Tensor | float) -> None:
    """``p -= rate * numerator / denominator`` in place."""
    if isinstance(rate, Tensor):
        p.addcdiv_(scaled(numerator, -rate), denominator)
    else:
        p.addcdiv_(numerator, denominator, value=-rate)
