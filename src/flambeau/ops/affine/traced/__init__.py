"""Quantised tensors in captured code: rules in plain operators on codes, scales and zero points, which capture traces like a program's subclass.

A trace holds a :class:`~.record.CodesTensor` in the place of a quantised tensor (dynamo/variables/tensors/codes.py): its codes are a tensor of the
graph, its scale and zero point numbers (guarded or symbols) or tensors. What a function does is a rule by its name, beside the eager rule of the
same name in the folder above, and computes the same bits. Results that leave the graph are made from these parts again.
"""

from . import arithmetic as arithmetic
from . import elements as elements
from . import layers as layers
from . import packed as packed
from .record import CodesTensor
from .rules import OPERATORS

__all__ = ["OPERATORS", "CodesTensor"]
