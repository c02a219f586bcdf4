"""``except*``: groups of exceptions that were made while tracing, taken apart and put together as the interpreter does."""

from __future__ import annotations

from collections.abc import Callable

from ...exc import unsupported
from ...rules.reflect import name_of
from ...tracing import world
from ..base import Variable
from ..values.constant import ConstantVariable
from .exception import ExceptionVariable, make_exception

__all__ = ["match", "to_raise"]

ORIGIN = ("__cause__", "__context__")  # tell, with the traceback, where an exception comes from; notes don't
KEPT = (*ORIGIN, "__suppress_context__", "__notes__")


def is_group(v: Variable) -> bool:
    return isinstance(v, ExceptionVariable) and issubclass(v.cls, BaseExceptionGroup)


def is_none(v: Variable) -> bool:
    return v.is_constant() and v.as_constant() is None


def members(tx, group: ExceptionVariable) -> list[Variable]:
    if group.source is not None:
        unsupported("except-star", "a group of exceptions that existed before the call")
    out = [v.unwrap() for v in group.arguments()[1].items(tx)]
    if not all(isinstance(v, ExceptionVariable) for v in out):
        unsupported("except-star", "a group of exceptions that are not known")
    return out


def new_group(tx, message: Variable, inside: list[Variable]) -> ExceptionVariable:
    return make_exception(tx, BaseExceptionGroup, [message, tx.make_list(inside)], {})


def derive(tx, group: ExceptionVariable, inside: list[Variable]) -> ExceptionVariable:
    """A group like this one of other exceptions."""
    if world.is_defined(group.class_attr(tx, "derive")) or group.cls not in (ExceptionGroup, BaseExceptionGroup):
        unsupported("except-star", f"a {name_of(group.cls)} is split", "The class may derive groups in its own way.")
    out = new_group(tx, group.arguments()[0], inside)
    out.raised, out.traceback = list(group.raised), group.traceback
    out.written["__suppress_context__"] = ConstantVariable(True)  # as the interpreter does
    for name in KEPT:
        if name in group.written:
            out.written[name] = group.written[name]
    return out


def split(tx, v: Variable, wanted: Callable[[ExceptionVariable], bool]) -> tuple[Variable, Variable]:
    """(what is wanted, the rest), None for nothing."""
    none = ConstantVariable(None)
    if wanted(v):
        return v, none
    if not is_group(v):
        return none, v
    parts = [split(tx, m, wanted) for m in members(tx, v)]
    yes, no = ([p[k] for p in parts if not is_none(p[k])] for k in (0, 1))
    return (derive(tx, v, yes) if yes else none), (derive(tx, v, no) if no else none)


def match(tx, exc: Variable, types) -> tuple[Variable, Variable]:
    """What ``except* types`` leaves and takes."""
    none = ConstantVariable(None)
    if is_none(exc):
        return none, none
    if not isinstance(exc, ExceptionVariable):
        unsupported("except-star", f"matching {exc!r}")
    for c in types if isinstance(types, tuple) else (types,):
        if not (isinstance(c, type) and issubclass(c, BaseException)):
            tx.raise_user(TypeError("catching classes that do not inherit from BaseException is not allowed"))
        if issubclass(c, BaseExceptionGroup):
            tx.raise_user(TypeError("catching ExceptionGroup with except* is not allowed. Use except instead."))
    if isinstance(exc.exception, types):
        return none, exc if is_group(exc) else new_group(tx, ConstantVariable(""), [exc])
    if not is_group(exc):
        return exc, none
    yes, no = split(tx, exc, lambda v: isinstance(v.exception, types))
    return no, yes


def to_raise(tx, original: Variable, excs: list[Variable]) -> Variable:
    """What is raised behind the last ``except*``: ``excs`` were raised by the blocks, or are what nothing took."""
    excs = [v.unwrap() for v in excs]
    excs = [v for v in excs if not is_none(v)]
    if not excs:
        return ConstantVariable(None)
    if not is_group(original):
        return excs[0]
    again = [v for v in excs if same_origin(v, original)]
    raised = [v for v in excs if v not in again]
    leaves = {id(m) for v in again for m in leaves_of(tx, v)}
    rest, _ = split(tx, original, lambda v: id(v) in leaves)
    if not raised:
        return rest
    if not is_none(rest):
        raised.append(rest)
    return raised[0] if len(raised) == 1 else new_group(tx, ConstantVariable(""), raised)


def same_origin(v: ExceptionVariable, original: ExceptionVariable) -> bool:
    """Whether the exception is a part of the original one, and not one that a block raised."""
    return v.raised == original.raised and all(v.written.get(n) is original.written.get(n) for n in ORIGIN)


def leaves_of(tx, v: ExceptionVariable) -> list[Variable]:
    return [leaf for m in members(tx, v) for leaf in leaves_of(tx, m)] if is_group(v) else [v]
