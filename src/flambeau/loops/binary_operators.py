"""The operators of BINARY_OP instructions, in the order of their numbers (CPython's NB_ADD, NB_AND, ...)."""

from __future__ import annotations

__all__ = ["BINARY_NAMES", "binary_name"]

BINARY_NAMES = (
    "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^=",
)  # fmt: skip


def binary_name(inst) -> str:
    """The operator of a BINARY_OP instruction, with = behind it for the in-place form."""
    return inst.argrepr if hasattr(inst, "argrepr") else BINARY_NAMES[inst.arg]
