"""What the executor computes with: one class per family of Python types.

A variable stands for a value of the traced function. It knows its Python type, how to do operations on it without running them for real,
and how to rebuild the value in captured code (from its source, from graph outputs, or from other variables).
"""

from .base import Lazy as Lazy
from .base import NullVariable as NullVariable
from .base import Variable as Variable
from .values.constant import ConstantVariable as ConstantVariable
