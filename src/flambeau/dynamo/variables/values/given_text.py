"""Strings that are given to a function with loops: text of which the value isn't guarded until something asks for it.

A native loop reads the codes of the characters (:func:`codes_of`), an input of the graph's. Everything else asks for the value, as of a constant,
and that is guarded then.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau.base.compiling import is_exporting

from ...bytecode.instructions import decode
from ...config import config
from ...guards.source import CallSource, LocalSource, Source
from ..base import Variable
from ..iterators.container_iterators import SequenceIteratorVariable
from .constant import ConstantVariable

__all__ = ["GivenTextVariable", "TextIteratorVariable", "codes_of", "of_text"]

LEAST = 32  # characters that a loop may be worth


def codes_of(text: str) -> np.ndarray:
    """The codes of a string's characters."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class GivenTextVariable(ConstantVariable):
    def __init__(self, value: str, source: Source, output):
        self._text, self._output = value, output
        self._guarded = False
        self._codes: Variable | None = None
        super().__init__(value, source)

    @property
    def value(self) -> str:
        """What it is at every call of the captured code, from now on."""
        if not self._guarded:
            self._guarded = True
            self._output.guard(self.source, "EQUALS_MATCH", self._text)
        return self._text

    @value.setter
    def value(self, value: str) -> None:
        self._text = value

    def python_type(self):
        return str

    def __repr__(self):
        return "a str"

    def reloadable(self):
        return True

    def codes(self) -> Variable:
        """The array of its codes in the graph."""
        if self._codes is None:
            held = CallSource(self.source, codes_of, "codes")
            self._codes = self._output.add_input(codes_of(self._text), held, ndarray=True)
        return self._codes

    def size(self):
        """How many characters there are; a symbol where calls give different ones."""
        return len(self._text) if self._guarded else self.codes().val.shape[0]

    def iter(self, tx):
        return super().iter(tx) if self._guarded else TextIteratorVariable(self)


class TextIteratorVariable(SequenceIteratorVariable):
    """Over such text. What is taken of it is known; as long as nothing is, a native loop may run over it. ``down``: what makes
    reversed() of a string, where it is such."""

    def __init__(self, over: GivenTextVariable, down: Callable | None = None):
        super().__init__(over)
        self.text, self.down = over, down
        self.known: Variable | None = None

    def _known(self, tx) -> Variable:
        if self.known is None:
            known = ConstantVariable(self.text.value, self.text.source)
            self.over, self.known = None, self.down(tx, known) if self.down else known.iter(tx)
        return self.known

    def advance(self, tx):
        return self._known(tx).advance(tx)

    def expected_length(self, tx):
        return self._known(tx).expected_length(tx)

    def parts(self):
        return (reversed if self.down else iter, [self.text]) if self.known is None else self.known.parts()


def of_text(tx, value: str, source: Source) -> Variable | None:
    """The variable of a string that a function with loops is given; None where it is a constant."""
    if len(value) < LEAST or not config.native_loops or type(source) is not LocalSource or is_exporting():
        return None
    if not any(i.name == "FOR_ITER" or (i.target is not None and i.target < i.index) for i in decode(tx.code)):
        return None
    tx.output.guard(source, "TYPE_MATCH", str)
    return GivenTextVariable(value, source, tx.output)
