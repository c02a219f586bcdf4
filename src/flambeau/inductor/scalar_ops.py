"""The LLVM meaning of one scalar operation: its text from the scalar table, or the expansion the text names."""

from ..core.body import TABLE
from . import vector_more, vector_special  # noqa: F401  (fill the table)
from .builder import Builder, compute_type, letter
from .vector_math import EXPANSIONS

__all__ = ["emit_scalar"]


def emit_scalar(b: Builder, name: str, t: str, args: list[str]) -> str:
    """Emit operation ``name`` on operands of type ``t`` (for ``where`` the first operand is a truth value)."""
    texts = TABLE[name].llvm
    t = compute_type(t)
    key = letter(t)
    text = texts.get(key) or (texts.get("i") if key == "u" else None) or texts.get("*")
    if text is None:
        raise NotImplementedError(f"scalar operation {name} has no LLVM text for type {t}")
    if text[0] == "@":
        return EXPANSIONS[text[1:]](b, t, *args)
    return b.emit(text.format(*args, t=b.ty(t), b=b.ty("bool"), s=b.suffix(t)))
