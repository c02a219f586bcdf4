"""Regions that have been compiled in this frame: code that is met again on operands of the same kinds isn't compiled again.

What flambeau.loops asks while it compiles a region, and what it is told, is written down with numbers for the operands. Where all of it is told
again, the kernel is the same, and only the operands are others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.loops.inlining import Callee
from flambeau.loops.operands import GivenArray, Inputs, Items
from flambeau.loops.values import Declined, Known, Scalar, Symbolic, TupleType

from ...base.records import replace, slotted

__all__ = ["CompiledRegions"]

MOST = 8  # kernels for one code that are kept


class _Unknown(Exception):
    """Something was told that can't be compared with what is told another time."""


@slotted
class _Question:
    """``of``: the number of the answer, a function, whose names are asked for; None for the region's own. ``what``: which of the questions of Inputs
    or Callee. ``about``: the number of the answer that a question for an attribute or a function is about."""

    of: int | None
    what: str
    name: str | None
    about: int | None = None


@slotted
class _Array:
    operand: int
    dtype: Any
    ndim: int
    dense: bool
    sizes: tuple


@slotted
class _Number:
    operand: int
    dtype: Any
    size: Any


@slotted
class _Constant:
    dtype: Any
    weak: Any
    kind: type
    said: str


@slotted
class _Code:
    code: Any


@slotted
class _Refusal:
    kind: type
    why: str


class _Hearing:
    """One course of questions and answers."""

    def __init__(self, inputs: Inputs):
        self.inputs = inputs
        self.answers: list[Any] = []
        self.operands: list[Any] = []

    def ask(self, question: _Question) -> Any:
        """The answer, as something that compares with those of other times; :attr:`answers` has it as it is."""
        name: Any = question.name
        about = None if question.about is None else self.answers[question.about]
        asked = getattr(self.inputs if question.of is None else self.answers[question.of], question.what)
        try:
            match question.what:
                case "function":
                    answer = asked(about)
                case "attribute":
                    answer = asked(about, name)
                case "defaults":
                    answer = asked[name]()
                case _:
                    answer = asked(name)
        except Declined as refused:
            self.answers.append(refused)
            return _Refusal(type(refused), str(refused))
        self.answers.append(answer)
        return self.comparable(answer)

    def comparable(self, answer: Any) -> Any:
        match answer:
            case GivenArray(token, dtype, ndim, dense, sizes):
                return _Array(self.number(token), dtype, ndim, dense, sizes)
            case Symbolic(token, dtype, size):
                return _Number(self.number(token), dtype, size)
            case Known(value):
                return Known(value)
            case Items(items):
                return Items(tuple(map(self.comparable, items)))
            case Callee():
                return _Code(answer.code)
        if type(answer) is Scalar and answer.const is not None:
            return _Constant(answer.dtype, answer.weak, type(answer.const), repr(answer.const))
        raise _Unknown

    def number(self, token: Any) -> int:
        for k, other in enumerate(self.operands):
            if other is token:
                return k
        self.operands.append(token)
        return len(self.operands) - 1

    def numbers(self, tokens: list) -> list[Any]:
        """The numbers of operands, and constants as they are."""
        return [next((_Operand(k) for k, x in enumerate(self.operands) if x is t), t) for t in tokens]


@slotted
class _Operand:
    number: int


@slotted
class _Kept:
    course: list[tuple[_Question, Any]]
    done: Any
    operands: tuple[list[Any], list[Any], list[Any]]
    """``arrays``, ``ints`` and ``floats`` of what was compiled."""


class CompiledRegions:
    """By code, first instruction and options."""

    def __init__(self):
        self.kept: dict[Any, list[_Kept]] = {}

    def compiled(self, key: tuple, inputs: Inputs, compile: Callable[[Inputs], Any]) -> Any:
        """``compile(inputs)``, or what is known from another time."""
        kept = self.kept.setdefault(key, [])
        for row in kept:
            hearing = _Hearing(inputs)
            if _told_again(hearing, row.course):
                arrays, ints, floats = (
                    [hearing.operands[x.number] if type(x) is _Operand else x for x in xs] for xs in row.operands
                )
                return replace(row.done, arrays=arrays, ints=ints, floats=floats)
        hearing, course = _Hearing(inputs), []
        listening = _listening(hearing, course)
        done = compile(listening)
        if None not in course and len(kept) < MOST and not _holds_known([done.returned, *(t for _, t in done.tuples)]):
            operands = tuple(map(hearing.numbers, (done.arrays, done.ints, done.floats)))
            kept.append(_Kept(course, done, operands))
        return done


def _told_again(hearing: _Hearing, course: list[tuple[_Question, Any]]) -> bool:
    try:
        return all(hearing.ask(question) == answer for question, answer in course)
    except _Unknown:
        return False


def _holds_known(types: list) -> bool:
    """Whether a result is an object that capture knows by a variable of this time."""
    return any(isinstance(t, Known) or (isinstance(t, TupleType) and _holds_known([*t.items])) for t in types)


def _listening(hearing: _Hearing, course: list) -> Inputs:
    """The same inputs, whose questions and answers are written down; None in the course for what can't be."""

    def asked(of: int | None, what: str) -> Callable:
        def ask(about: Any, name: str | None = None) -> Any:
            question = _Question(of, what, about)
            if isinstance(about, Known):
                found = next((k for k, a in enumerate(hearing.answers) if a is about), None)
                if found is None:
                    course.append(None)
                    inputs = hearing.inputs
                    return inputs.function(about) if name is None else inputs.attribute(about, name)
                question = _Question(of, what, name, found)
            try:
                course.append((question, hearing.ask(question)))
            except _Unknown:
                course.append(None)
            answer = hearing.answers[-1]
            if isinstance(answer, Declined):
                raise answer
            return _heard(len(hearing.answers) - 1, answer) if isinstance(answer, Callee) else answer

        return ask

    def _heard(number: int, callee: Callee) -> Callee:
        defaults = {name: lambda name=name: asked(number, "defaults")(name) for name in callee.defaults}
        return replace(
            callee, load_global=asked(number, "load_global"), deref=asked(number, "deref"), defaults=defaults
        )

    names = ("local", "load_global", "deref", "attribute", "function")
    return replace(hearing.inputs, **{name: asked(None, name) for name in names})
