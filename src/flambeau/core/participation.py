"""Tensor's methods and properties that are written in Python take part in ``__torch_function__``, as the operators do.

Run once, when the class is complete. A method becomes a native Function; a property becomes an :class:`Attribute`, whose ``__get__`` is
the function that modes and subclasses are handed.
"""

from __future__ import annotations

import types

from .overrides import wrap_function
from .tensor import Tensor

__all__ = ["Attribute", "participate"]

# Special methods that take part. The others make, destroy or hand out tensors of a class, or are called by the protocol itself.
SPECIAL = frozenset(
    """
__array__ __array_wrap__ __bool__ __complex__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __float__ __format__ __index__ __int__
__len__ __long__ __nonzero__ __reduce_ex__ __repr__ __reversed__ __setstate__ _is_view
""".split()
)
_APART = frozenset(["as_subclass"])


class Attribute(property):
    """A property of Tensor. ``__qualname__`` names the class of native attributes, as it does in PyTorch for all of them."""

    def __init__(self, read, write=None, delete=None, doc=None):
        get = wrap_function(read)
        get.getter_of = self
        super().__init__(get, write, delete, doc or read.__doc__)
        self.read = read

    def __set_name__(self, owner, name):
        self.__name__, self.__qualname__ = name, f"TensorBase.{name}"


def participate() -> None:
    """Give the class's own methods and properties the protocol. What has it already stays as it is."""
    for name, value in list(vars(Tensor).items()):
        if type(value) is property:
            made = Attribute(value.fget, value.fset, value.fdel, value.__doc__)
            made.__set_name__(Tensor, name)
        elif isinstance(value, types.FunctionType) and (name in SPECIAL or name[0] != "_" and name not in _APART):
            made = wrap_function(value, module="torch")
        else:
            continue
        setattr(Tensor, name, made)
