"""What a loop is given from outside: arrays, numbers and random generators, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.records import slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand
from . import arrays
from .emitter import I64, SMALL_SIZE
from .machine import InterpreterPart, Machine
from .numbers.bounds import GIVEN, Below, SizeOperand
from .values import Array, Declined, Known, Method, Scalar, Size, Stream, Symbolic, Text, Tuple

if TYPE_CHECKING:
    from .inlining import Callee

__all__ = ["Generator", "GivenArray", "Inputs", "Items", "Operands", "OverItems", "OverRange", "Written"]


@slotted
class GivenArray:
    """An array of the outside: ``token`` is what capture knows it as. ``dense``: the last stride is one element. ``sizes``: one that differs between
    calls is what it is known as."""

    token: Any
    dtype: np.dtype
    ndim: int
    dense: bool
    sizes: tuple


@slotted
class OverRange:
    """What a loop over a range runs over, which isn't empty. ``start`` and ``stop`` may be Symbolic."""

    start: Any
    stop: Any
    step: int


@slotted
class OverItems:
    """What a loop over other things runs over: something given, or a Call of enumerate() and the like with what is given."""

    of: Any


@slotted(frozen=False)
class Inputs:
    """What the loop may read. ``local(name)`` and ``load_global(name)`` give a Scalar constant, Symbolic, GivenArray or Known;
    ``attribute(known, name)`` the same for an attribute. They raise Declined for anything else, and what they give is guarded.
    ``function(known)``: a Python function that is called; ``nested(code)``: the instructions of one that the loop makes.
    ``trip``: what the loop runs over; None for while. ``turns(p)``: the number of turns modulo p, where
    that is known before. ``rerunnable``: nothing that has happened before the loop has an effect, so that all may run again plainly
    when the loop meets an error. ``collects``: whether the loop is a comprehension's: ``local(COLLECTED)`` is the list, dict or set that it fills.
    ``live(code, i)``: variables of a function that is called which may be read at or after its instruction i. ``tells_wrapping``: whether the kernel
    tells of NumPy's integers that wrap around, see wrapping.py. ``reshapes``: whether a run has left an array in another shape than it had before;
    arrays whose shape isn't known are handed to Python as objects then."""

    local: Callable[[str], Any]
    load_global: Callable[[str], Any]
    deref: Callable[[str], Any]
    attribute: Callable[[Known, str], Any]
    function: Callable[[Known], Callee]
    trip: OverRange | OverItems | None
    constants: tuple = ()
    rerunnable: bool = True
    turns: Callable[[int], int] | None = None
    nested: Callable[[Any], tuple] | None = None
    collects: bool = False
    live: Callable[[Any, int], frozenset[str]] | None = None
    tells_wrapping: bool = False
    reshapes: bool = False


@slotted
class Generator:
    """A random generator of the outside, or a method of one: ``token`` and ``sizes`` of its table, as of an array."""

    token: Any
    sizes: tuple
    legacy: bool
    method: str | None = None


@slotted
class Items:
    """A tuple of what the loop may read."""

    items: tuple


@slotted
class Written:
    """Text of the outside: the array of its codes."""

    codes: GivenArray


class Operands(InterpreterPart):
    """``sizes``: bounds of the operands' sizes, see Emitter. ``thresholds``: see bounds.py. ``always``: sizes of the operands as they were given.
    ``written``: the operands that are written; ``drawn``: tables of generators that are drawn from -> whether RandomState's spare normal number
    matters."""

    def __init__(self, machine: Machine, sizes: dict[Operand, tuple[int, int]]):
        super().__init__(machine)
        self.sizes = sizes
        self.thresholds: set[int] = {0, 1}
        self.always: list[tuple] = []
        self.ints: dict[str, Any] = {}
        self.floats: dict[str, Any] = {}
        self.written: set[int] = set()
        self.drawn: dict[int, bool] = {}
        self._arrays: dict[int, tuple[Any, Array]] = {}  # by the id of their tokens, which are kept
        self._named: dict[int, tuple[SizeOperand, Any]] = {}  # sizes of operands -> these values, and what has that id

    @property
    def tokens(self) -> list:
        return [token for token, _ in self._arrays.values()]

    @property
    def arrays(self) -> list[Array]:
        return [array for _, array in self._arrays.values()]

    def array(self, token) -> Array:
        """The operand that a token stands for."""
        return self._arrays[id(token)][1]

    def given(self, what, name: str | None = None):
        """A value from outside as one of ours. Numbers named ``name`` are passed at each call."""
        if isinstance(what, Generator):
            table = self.given(GivenArray(what.token, I64, 1, True, what.sizes))
            stream = Stream(table.whole, table.ptr, what.legacy)
            return stream if what.method is None else Method(stream, what.method)
        if isinstance(what, Written):
            return Text(self.given(what.codes))
        if isinstance(what, Items):
            return Tuple(tuple(self.given(item, name and f"{name}.{k}") for k, item in enumerate(what.items)))
        if isinstance(what, GivenArray):
            if id(what.token) not in self._arrays:
                n = len(self._arrays)
                self.always.append(what.sizes)
                described = arrays.described(n, what.dtype, what.dense, self._sizes_of(n, what.sizes))
                self._arrays[id(what.token)] = what.token, described
            whole = arrays.operand(self.array(what.token))
            return arrays.load(self.e, whole, ()) if what.ndim == 0 else whole
        if isinstance(what, Symbolic):
            number = self._number(what.dtype, f"symbol {id(what.token)}", what.token)
            if id(what.size) in self._named:
                return arrays.size(self.e, self._named[id(what.size)][0])
            return Scalar(what.dtype, True, number, below=self._below(what.size))
        if isinstance(what, Scalar) and what.weak and name is not None and not isinstance(what.const, (bool, complex)):
            if what.kind == "i" and not -GIVEN < what.const < GIVEN:
                raise Declined("a very large integer")
            v = self._number(what.dtype, name, what.const)
            if what.kind == "i":
                self.threshold(what.const)
            return Scalar(what.dtype, True, v, (what.const, what.const))
        return what

    def _number(self, dtype: np.dtype, key: str, what) -> Operand:
        """A number that is passed at each call."""
        table, which = (self.floats, "floats") if dtype.kind == "f" else (self.ints, "ints")
        table.setdefault(key, what)
        return self.e.argument(which, list(table).index(key), llvm.DOUBLE if dtype.kind == "f" else llvm.I64)

    def _below(self, number) -> Below:
        """A size that a number differs from by a known number at every call, and that one."""
        sizes = [] if isinstance(number, int | None) else self._named.values()
        of = ((operand.place, number - size) for operand, size in sizes if not isinstance(size, int))
        return next(((size, first + more) for (size, first), more in of if type(more) is int), None)

    def _sizes_of(self, n: int, sizes) -> tuple[Size, ...]:
        """The sizes of operand ``n``. ``sizes``: an int for each that is the same at every call, else the object that stands for it."""
        out: list[Size] = []
        for d, size in enumerate(sizes):
            key = size if type(size) is int else id(size)
            if type(size) is int and size <= SMALL_SIZE:
                out.append(size)
                continue
            if key not in self._named:
                self._named[key] = SizeOperand(f"%a{n}.n{d}", self._below(size)), size
            operand, _ = self._named[key]
            if type(size) is int:
                self.sizes[operand] = size, size
                self.threshold(size)
            out.append(operand)
        return tuple(out)

    def threshold(self, n: int) -> None:
        if len(self.thresholds) < 40:
            self.thresholds.update((n - 2, n - 1, n))
