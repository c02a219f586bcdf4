"""Tensors without data (level 3): the shape rule of each kind, and FakeTensor, which runs programs on shapes alone.

:mod:`.meta` installs the facet ``meta``; :mod:`.fake_tensor` has FakeTensor and FakeTensorMode.
"""

from . import meta  # noqa: F401
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
