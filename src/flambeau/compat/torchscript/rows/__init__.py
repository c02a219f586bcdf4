"""Operators of TorchScript that aren't ATen's: on numbers, text, lists and dicts, and what it asks tensors.

A row is a signature in TorchScript's types (small letters are variables, ``number`` any number, a result ``=`` the promoted type of the arguments)
and the function. Several rows of a name are tried in order: these modules enter theirs in the order of their imports.
"""

from . import numbers, general, containers  # noqa: F401, I001
from .text import character, formatted, percent
from .tensors import tensor_of
from .table import PRIM, ROWS, Row

__all__ = ["PRIM", "ROWS", "Row", "character", "formatted", "percent", "tensor_of"]
