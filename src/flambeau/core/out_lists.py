"""Results that are a list, written into the tensors of a list."""

from __future__ import annotations

from ..base.dtypes import c_name
from .declare import composite
from .operator import namespace

__all__ = ["declare_out_list", "write_list"]

aten = namespace("aten")


def write_list(
    out, made, words: str = "Tensor lists must have the same number of tensors, got {got} and {wanted}"
) -> None:
    """``out`` gets the shapes and elements of ``made``. RuntimeError where their numbers (``words`` says it) or dtypes differ, before anything is
    written."""
    if len(out) != len(made):
        raise RuntimeError(words.format(got=len(out), wanted=len(made)))
    for t, r in zip(out, made):
        if t.dtype is not r.dtype:
            raise RuntimeError(
                f"Expected out tensor to have dtype {c_name(r.dtype)}, but got {c_name(t.dtype)} instead"
            )
    for t, r in zip(out, made):
        aten.copy_.default(t if t.shape == r.shape else t.resize_(r.shape), r)


def declare_out_list(functional, overload: str) -> None:
    """``name.overload``: writes what ``functional``, an operator that returns a list, makes."""
    name, parameters = functional._opname, str(functional._schema).partition("(")[2].rpartition(") ->")[0]
    words = f"{name}_{overload} expected an out= argument of size {{wanted}}, got size {{got}}"
    star = "" if "*" in parameters else "*, "

    def into(*values):
        *given, out = values
        args, kwargs = functional.split(tuple(given))
        write_list(out, functional(*args, **kwargs), words)

    composite(f"{name}.{overload}({parameters}, {star}Tensor(a!)[] out) -> ()", variants="")(into)
