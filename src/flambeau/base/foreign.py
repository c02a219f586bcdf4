"""Functions of native libraries."""

from __future__ import annotations

import ctypes

__all__ = ["address_of"]


def address_of(f) -> int:
    """Where the code of a function of ctypes is, or of a callback; what a pointer points to. 0 for a null pointer.

    ``ctypes.cast`` would do, but leaves a reference cycle: what a callback refers to would live until the next collection.
    """
    return ctypes.c_void_p.from_buffer(f).value or 0
