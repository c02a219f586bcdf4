"""Checks of the LLVM code that compiled graphs and loops are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..inductor.assembly.instructions import Function
from ..inductor.assembly.verification import verify

__all__ = ["verified"]


@contextlib.contextmanager
def verified() -> Iterator[None]:
    """Until the end of the block every function is checked before it is printed (``inductor/assembly/verification.py``)."""
    lines = Function.lines

    def checked(self: Function) -> list[str]:
        verify(self)
        return lines(self)

    Function.lines = checked  # type: ignore[method-assign]
    try:
        yield
    finally:
        Function.lines = lines  # type: ignore[method-assign]
