"""Generators of traced code: frames, suspended between values."""

from __future__ import annotations

import types
from typing import NoReturn

from ...bytecode.versions import PY313
from ...exc import UserRaises, unsupported
from ..base import Lazy, Variable
from ..exceptions.exception import ExceptionVariable
from ..values.constant import ConstantVariable
from .existing import ExistingIteratorVariable
from .protocol import IteratorVariable, all_of

__all__ = ["GeneratorVariable", "closes_with", "generator_closes", "must_be_closed"]


class GeneratorVariable(IteratorVariable):
    def __init__(self, frame):
        super().__init__(types.GeneratorType)
        self.frame = frame
        frame.output.references.generators.add(self)

    def __del__(self):
        """Variables are referred to like what they stand for, so the last reference to the generator goes where the program's does."""
        if self.frame.must_be_closed():
            self.frame.output.references.generator_dropped = True

    def advance(self, tx):
        return self.resume(tx, ConstantVariable(None))

    def resume(self, tx, sent: Variable) -> Variable | None:
        if self.frame.finished:
            self.frame.result = None  # what it returned is told once
        return self.frame.resume(tx, sent)

    def returned(self):
        return self.frame.result if self.frame.result is not None else ConstantVariable(None)

    def send(self, tx, value: Variable) -> Variable:
        if not (self.frame.started or self.frame.finished) and not (
            value.is_constant() and value.as_constant() is None
        ):
            tx.raise_user(TypeError("can't send non-None value to a just-started generator"))
        tx.side_effects.touch(self)
        v = self.resume(tx, value)
        if v is None:
            self.stop(tx)
        return v

    def stop(self, tx):
        value = self.returned()
        self.frame.result = None
        nothing = value.is_constant() and value.as_constant() is None
        shown = value.as_constant() if value.can_constant() else None
        e = StopIteration(*([] if nothing else [shown]))
        raise UserRaises(e, ExceptionVariable(e, args=[] if nothing else [value]))

    def throw(self, tx, exc: Variable) -> Variable:
        tx.side_effects.touch(self)
        v = self.frame.throw(tx, exc)
        if v is None:
            self.stop(tx)
        return v

    def close(self, tx) -> Variable:
        """What ``close()`` returns: since CPython 3.13 the value that the generator returns then."""
        none = ConstantVariable(None)
        if self.frame.finished:
            return none
        if not self.frame.started:
            self.frame.finished = True
            return none
        try:
            self.throw(tx, ExceptionVariable(GeneratorExit()))
        except UserRaises as e:
            if isinstance(e.exception, StopIteration) and PY313:
                return e.variable.getattr(tx, "value")
            if isinstance(e.exception, GeneratorExit | StopIteration):
                return none
            raise
        tx.raise_user(RuntimeError("generator ignored GeneratorExit"))

    def call_method(self, tx, name, args, kwargs):
        if name == "send" and len(args) == 1:
            return self.send(tx, args[0])
        if name == "throw" and args:
            return self.throw(tx, _thrown(tx, *args))
        if name == "close":
            return self.close(tx)
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        self.frame.reconstruct_generator(cg)


def _thrown(tx, exc: Variable, value: Variable | None = None, traceback: Variable | None = None) -> Variable:
    """The exception that ``throw(exc)`` or ``throw(type, value)`` raises: the value itself where it is one of this type."""
    exc = tx.realize(exc)
    if isinstance(exc, ExceptionVariable):
        return exc
    value = None if value is None else tx.realize(value)
    if value is None or (value.is_constant() and value.as_constant() is None):
        return exc.call(tx, [], {})
    if isinstance(value, ExceptionVariable):
        cls = exc.as_constant() if exc.is_constant() or hasattr(exc, "value") else None
        if isinstance(cls, type) and issubclass(value.python_type(), cls):
            return value
    if issubclass(value.python_type(), tuple):
        return exc.call(tx, all_of(tx, value), {})
    return exc.call(tx, [value], {})


def closes_with(v: Variable, tx, depth: int = 5) -> bool:
    """Whether dropping the value, or what only it holds, runs code: see ``must_be_closed``."""
    if must_be_closed(v):
        return True
    if not depth or not any(g.frame.must_be_closed() for g in tx.output.references.generators):
        return False
    parts = [x for x in vars(v.unwrap()).values()]
    for x in parts:
        inner = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else (x,)
        if any(isinstance(i, Variable) and closes_with(i, tx, depth - 1) for i in inner):
            return True
    return False


def must_be_closed(v: Variable) -> bool:
    """Whether dropping the value runs code: a generator suspended inside try or with, or one that existed before."""
    v = v.unwrap()
    if isinstance(v, Lazy | ExistingIteratorVariable):
        return type(v.value) is types.GeneratorType and v.value.gi_suspended
    return isinstance(v, GeneratorVariable) and v.frame.must_be_closed()


def generator_closes() -> NoReturn:
    unsupported("generator-close", "a generator is dropped inside try or with", "The interpreter closes it.")
