"""Where capture enters: the compiler of regions, with all that is registered for the operators it makes."""

from __future__ import annotations

from . import examples as examples  # and what they are under vmap
from .gradients import derivatives as derivatives  # the derivative of an operator is part of it
from .interpreter import compile_region

__all__ = ["compile_region"]
