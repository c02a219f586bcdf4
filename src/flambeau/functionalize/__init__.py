"""Removing mutation: in-place operators and writes through views become operators that return new values.

values.py runs an operator on :class:`Value` (memory, and a chain of views of it); views.py inverts views. Whoever holds
a program, as a graph or as calls, runs it through :func:`call` and reads the memories at the end: those with
``version > 0`` were written. wrapper.py does so for tensors, behind the Functionalize key; switch.py turns that on for a program.
"""

from .switch import FunctionalTensorMode as FunctionalTensorMode
from .switch import functionalize as functionalize
from .values import FunctionalValue as FunctionalValue
from .values import Memory as Memory
from .values import call as call
from .values import call_higher_order as call_higher_order
from .wrapper import FunctionalTensor as FunctionalTensor
