"""From values to variables: which class stands for a value that existed before the call, and what is guarded about it."""

from __future__ import annotations

import enum
import types

import numpy as np

from flambeau import _C
from flambeau.base.symint import NUMBERS

from ..graph.inputs import number_input
from ..graph.numpy_numbers import numpy_number_input
from ..guards.source import ConstSource, Source
from ..rules import trace_rules
from ..rules.constants import OTHERS, PLAIN, is_constant_value
from ..rules.reflect import name_of, type_item
from ..variables.base import Variable
from ..variables.containers.sequences import TupleVariable, of_tuple
from ..variables.containers.set_history import SetHistory
from ..variables.containers.sets import SetVariable
from ..variables.modules.module import ModuleVariable
from ..variables.objects.builtin_subclass import builtin_base, of_object
from ..variables.objects.instance import ObjectVariable
from ..variables.values.constant import ConstantVariable
from ..variables.values.given_text import of_text
from ..variables.values.symbolic import SymbolicVariable, wrap_number
from . import catalog as catalog
from . import world
from .wrapping import WRAPPERS, pin

__all__ = ["global_of_dict", "global_of_frame", "wrap"]

OWN = PLAIN | OTHERS


def wrap(tx, value, source: Source) -> Variable:
    """The variable for ``value``, guarded at ``source``."""
    cls = type(value)
    if type(cls) is not type or cls not in OWN:  # the interpreter's classes have no hooks and are no symbolic numbers
        if type(type_item(cls, "__getattribute__")) is types.FunctionType:
            return _remembered(tx, value, source, _hooked)
        if trace_rules.is_a(value, NUMBERS):
            return SymbolicVariable(value)
        if trace_rules.is_a(value, tuple) and any(isinstance(v, NUMBERS) for v in value):
            return TupleVariable([wrap_number(v) for v in value], cls=type(value))
    known = type(source) is ConstSource and source.value is value
    if is_constant_value(value):
        if type(value) is tuple:
            if (
                not known
                and all(type(v) in (int, float) for v in value)
                and tx.output.shapes.seen.numbers(tx.output.objects.path(source), value)
            ):
                return of_tuple(tx, value, source)
            if not known:
                tx.output.guard(source, "EQUALS_MATCH", value)
            elements = [wrap(tx, v, ConstSource(v, "const")) for v in value]
            return TupleVariable(elements, None if known else source)  # with a source: it is the caller's object
        if type(value) is frozenset:
            if not known:
                tx.output.guard(source, "EQUALS_MATCH", value)
            if known:
                return SetVariable(
                    [ConstantVariable(v) for v in value], cls=frozenset, history=SetHistory(value, frozenset)
                )
            memo = tx.output.objects.by_id.get(id(value))
            if memo is None:
                memo = SetVariable([ConstantVariable(v) for v in value], source, cls=frozenset)
                tx.output.objects.by_id[id(value)] = memo
                tx.output.objects.keep.append(value)
                tx.output.objects.mutable_sources.append(source)
            elif memo.source is not source:
                tx.output.guards.same_as(source, memo.source)
            return memo
        if not known and type(value) in (int, float) and type(source) is not ConstSource:
            number = number_input(tx.output, value, source)
            if number is not None:
                return number
        if not known and trace_rules.is_a(value, (np.inexact, np.int64)) and type(source) is not ConstSource:
            number = numpy_number_input(tx.output, value, source)
            if number is not None:
                return number
        if not known and type(value) is str:
            text = of_text(tx, value, source)
            if text is not None:
                return text
        if not known:
            identity = (
                value is None
                or isinstance(value, (bool, enum.Enum, types.CodeType))
                or name_of(type(value)) in ("DType", "dtype")
            )
            tx.output.guard(source, "ID_MATCH" if identity else "EQUALS_MATCH", value)
        return ConstantVariable(value, source)
    if known and trace_rules.is_a(value, tuple) and all(is_constant_value(v) for v in value):
        return TupleVariable([ConstantVariable(v) for v in value], cls=type(value))  # a shape, a named tuple of numbers
    return _remembered(tx, value, source, WRAPPERS)


def _remembered(tx, value, source: Source, make) -> Variable:
    """One variable for one object, however it is reached."""
    stood_for = tx.output.objects.stood_for.get(id(value))
    if stood_for is not None:
        return stood_for
    known = type(source) is ConstSource and source.value is value
    memo = tx.output.objects.by_id.get(id(value))
    if memo is not None:
        if memo.source is not None and memo.source is not source:
            tx.output.guards.same_as(source, memo.source)
        return memo
    v = make(tx, value, source)
    if v.mutable or trace_rules.is_a(value, (_C.TensorBase, np.ndarray)):
        table = value if type(value) is dict else world.instance_dict(value) if isinstance(v, ObjectVariable) else None
        if table is not None:
            tx.side_effects.meet(v, table)
        tx.output.objects.by_id[id(value)] = v
        tx.output.objects.keep.append(value)
        if not known and v.mutable:
            tx.output.objects.mutable_sources.append(source)
    return v


def _hooked(tx, value, source: Source) -> Variable:
    """An object whose class has a ``__getattribute__`` written in Python: looking at it in any way would run that."""
    cls = type(value)
    if issubclass(cls, (_C.TensorBase, np.ndarray, type, BaseException)):
        return WRAPPERS(tx, value, source)
    pin(tx, source, "TYPE_MATCH", cls)
    base = builtin_base(cls)
    if trace_rules.is_nn_module_class(cls):
        return ModuleVariable(value, cls, source)
    return ObjectVariable(value, cls, source) if base is None else of_object(tx, value, base, source)


def global_of_frame(tx, name: str) -> Variable:
    """A global of the captured frame."""
    return world.global_name(tx, tx.globals, name, own=True)


def global_of_dict(tx, globals: dict, name: str) -> Variable:
    """A global of an inlined function, which may live in another module."""
    return world.global_name(tx, globals, name, own=globals is tx.root.globals)
