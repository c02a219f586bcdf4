"""What a kernel's text asks of LLVM's vectoriser on processors with masks: vectors of eight numbers, what is left with a mask."""

from __future__ import annotations

__all__ = ["LANES", "MASKED", "hinted"]

LANES, MASKED = "flambeau.lanes", "flambeau.masked"  # which LLVM doesn't know
_KNOWN = {LANES: "llvm.loop.vectorize.width", MASKED: "llvm.loop.vectorize.predicate.enable"}


def hinted(text: str) -> str:
    """The text with names that LLVM knows."""
    for name, known in _KNOWN.items():
        text = text.replace(f'"{name}"', f'"{known}"')
    return text
