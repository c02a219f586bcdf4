"""What is known of a value while a loop is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...base.records import slotted
from ...inductor.assembly.instructions import Operand
from ..numbers import bounds as between
from ..numbers.relations import NONE, Relations
from ..threads.dependence import TurnIndex
from .memory_types import Size

__all__ = [
    "Array",
    "ArrayView",
    "COLLECTED",
    "Call",
    "Container",
    "DONE",
    "Element",
    "Expression",
    "Iterator",
    "Known",
    "LocalFunction",
    "Method",
    "Null",
    "RETURNED",
    "Scalar",
    "Slice",
    "Stream",
    "Symbolic",
    "TABLES",
    "Text",
    "Tuple",
    "Under",
]

TABLES = frozenset(("dict", "set"))
"""Kinds of containers that have keys."""
DONE = "@done"  # what a loop gives that has no other result
# The variable that holds what a comprehension fills.
COLLECTED = "@collected"
RETURNED = "@return"  # the variable that holds what the function returns, where the region ends with ``return``


@slotted
class Scalar:
    """A number: ``v`` of ``dtype``. ``weak``: True for Python's numbers, False for NumPy's, None when it may be either.
    ``bounds``: what an integer is known to lie between. ``const``: its value, when known. ``flag``: where ``weak`` is None, an i8 that is
    0 for NumPy's number, 1 for Python's of this type, 2 for a Python int that is kept as a float or complex number. ``sum_of``: the two
    integers of which one is the sum. ``turn``: by how much it exceeds the index of the outermost loop, which is a range.
    ``below``: see bounds.py. ``relations``: see relations.py."""

    dtype: np.dtype
    weak: bool | None
    v: Operand
    bounds: tuple[int, int] | None = None
    const: Any = None
    flag: Operand | None = None
    sum_of: tuple[Scalar, Scalar] | None = None
    turn: int | None = None
    below: between.Below = None
    relations: Relations = NONE

    @property
    def kind(self) -> str:
        return self.dtype.kind


@slotted
class Array:
    """Operand number ``n`` of the loop, where it lies, its byte strides and sizes; one object stands for equal sizes."""

    n: int
    dtype: np.dtype
    ptr: Operand
    strides: tuple[Size, ...]
    sizes: tuple[Size, ...]

    @property
    def ndim(self) -> int:
        return len(self.sizes)


@slotted
class ArrayView:
    """Elements in memory: address of the first, sizes and byte strides. ``origins``: the operands (by
    number) and the places in the code (as text) whose memory it may be. ``owner``: the buffer that has to be kept for it, or None for
    memory that outlives the loop. ``whole``: the number of the operand that it is, when it is all of it. ``turn``: what is known of the turn of
    the outermost loop that all its elements belong to. ``rows``: whether its first axis is that of the memory, from the first element on."""

    ptr: Operand
    dtype: np.dtype
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    origins: frozenset
    owner: Operand | None = None
    whole: int | None = None
    turn: frozenset[TurnIndex] = frozenset()
    rows: bool = False

    @property
    def ndim(self) -> int:
        return len(self.sizes)


@slotted
class Expression:
    """An array that isn't stored: ``element(indices)`` emits one element. It is used up in the statement that makes it: a view that it
    reads may be written after that. ``reads``: the views. ``pairs``: sizes of parts of it and the size of the result that each is broadcast to."""

    dtype: np.dtype
    sizes: tuple[Size, ...]
    element: Callable[[tuple[Size, ...]], Scalar]
    reads: tuple[ArrayView, ...] = ()
    pairs: tuple[tuple[Size, Size], ...] = ()
    under: Under | None = None

    @property
    def ndim(self) -> int:
        return len(self.sizes)


@slotted
class Under:
    """The mask of an expression of one dimension that has what arrays have where the mask is true. Its ``element`` takes indices of the mask,
    and its size isn't known, until ``compact(expression)`` has put the elements into a new array, one behind the other."""

    mask: ArrayView
    compact: Callable[[Expression], ArrayView]


@slotted
class Tuple:
    """A tuple, or a list that nothing writes to (``listed``)."""

    items: tuple[Any, ...]
    listed: bool = False


@slotted
class Text:
    """A string: the codes of its characters, an array of ``uint32`` that isn't written."""

    view: ArrayView


@slotted
class Slice:
    start: Any
    stop: Any
    step: Any


@slotted
class Iterator:
    """Over a range. ``key`` names its slots; ``step`` is a known number. ``parts``: how elements are made of the counter, where it is over
    other things (see parts.py). ``bounds``: what the elements of the range lie between, ``below``: what they are below, ``relations``: see Scalar."""

    key: str
    step: int
    parts: Any = None
    bounds: tuple[int, int] | None = None
    below: between.Below = None
    relations: Relations = NONE

    @property
    def most(self) -> int:
        """Turns, at most."""
        first, last = self.bounds or (0, between.LARGEST - 1)
        return (last - first) // abs(self.step) + 1


@slotted
class Element:
    """The last element of an iterator over arrays, on the stack where the loop's body begins: it is read there."""

    of: Iterator


@slotted
class Known:
    """A Python object that is the same at every call: a module, a function, a string, None. ``origin``: what capture knows it as."""

    value: Any
    origin: Any = None

    def __eq__(self, other):
        return isinstance(other, Known) and other.value is self.value

    def __hash__(self):
        return id(self.value)


@slotted
class Call:
    """A call of a Python function that isn't made yet: of one that gives an iterator, which a loop will ask for its elements, or of one that is
    written out."""

    function: Callable
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = MappingProxyType({})

    @property
    def first(self) -> Any:
        return self.arguments[0]


@slotted
class LocalFunction:
    """A function that the loop makes: its code, and what its free variables are called where it is made. ``consumer``: the builtin that takes the
    elements of a generator."""

    code: Any
    cells: tuple[str, ...]
    consumer: Any = None


@slotted
class Method:
    """A method of an array, a random generator or a container."""

    owner: Any
    name: str


@slotted
class Symbolic:
    """A Python int or float that is passed to the loop at each call; ``token`` is what capture knows it as. ``size``: the expression that an int
    is, in which the sizes of operands are written too."""

    token: Any
    dtype: np.dtype
    size: Any = None


@slotted
class Stream:
    """A random generator: operand number ``n`` is its table (see streams.py), which lies at ``ptr``. ``legacy``: a RandomState."""

    n: int
    ptr: Operand
    legacy: bool


@slotted
class Null:
    """What PUSH_NULL pushes."""


@slotted
class Container:
    """A list, deque, dict or set that the loop changes: where the object lies, and where it may be made. ``view``: "keys", "values" or "items" where
    it is what these methods of a dict give."""

    sites: frozenset
    kind: str
    ptr: Operand
    view: str = ""

    @property
    def is_table(self) -> bool:
        """Whether it has keys: a dict or a set."""
        return self.kind in TABLES
