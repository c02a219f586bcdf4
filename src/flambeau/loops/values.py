"""What is known of a value while a loop is compiled, and the types that meet where paths of the region join."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..base.records import replace, slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import ConstantOperand, Operand, ParameterOperand, Type
from . import bounds as between
from .dependence import TurnIndex

__all__ = [
    "Array",
    "CHARACTER",
    "COLLECTED",
    "CONFLICT",
    "Call",
    "Container",
    "ContainerType",
    "DONE",
    "Declined",
    "Element",
    "Empty",
    "Expression",
    "Iterator",
    "Known",
    "LocalFunction",
    "Method",
    "NoValue",
    "Null",
    "PerhapsType",
    "RETURNED",
    "Scalar",
    "ScalarType",
    "Slice",
    "State",
    "Stream",
    "Symbolic",
    "TABLES",
    "Text",
    "TextType",
    "Tuple",
    "TupleType",
    "ArrayView",
    "ViewType",
    "alignment",
    "join",
    "known",
    "libm",
    "memory_type",
    "plain",
    "register_type",
    "type_of",
]


# A character of text, which is one of Python's strings: its code in 32 bits.
CHARACTER = np.dtype("U1")
TABLES = frozenset(("dict", "set"))
"""Kinds of containers that have keys."""
DONE = "@done"  # what a loop gives that has no other result
# The variable that holds what a comprehension fills.
COLLECTED = "@collected"
RETURNED = "@return"  # the variable that holds what the function returns, where the region ends with ``return``


class Declined(Exception):
    """The region can't be a native loop; the text says why."""


class NoValue(Declined):
    """A variable has no value before the loop."""

    def __init__(self):
        super().__init__("it may have no value")


class Empty(Exception):
    """An item is read of a container into which nothing has been put so far, or a variable to which nothing was assigned so far: what follows isn't
    reached yet. The text is why the region is declined if that stays so."""


LLVM = {
    "b": llvm.I8,
    "i1": llvm.I8,
    "i2": llvm.I16,
    "i4": llvm.I32,
    "i8": llvm.I64,
    "u1": llvm.I8,
    "u2": llvm.I16,
    "u4": llvm.I32,
    "u8": llvm.I64,
    "f4": llvm.FLOAT,
    "f8": llvm.DOUBLE,
    "c8": llvm.FLOAT.vector(2),
    "c16": llvm.DOUBLE.vector(2),
}
"""Type in memory, by NumPy's kind and size."""

Size = Operand | int
"""A size, a stride, an offset: a Python int where it is known."""


def plain(v: Size) -> Size:
    """A constant as the number that it is."""
    return v.value if isinstance(v, ConstantOperand) else v


def known(v: Size) -> int | None:
    """The number that a size is, where that is known."""
    v = plain(v)
    return v if type(v) is int else None


def memory_type(dtype: np.dtype) -> Type:
    key = "b" if dtype.kind == "b" else dtype.str[1:]
    if key not in LLVM or not dtype.isnative:
        raise Declined(f"elements of {dtype}")
    return LLVM[key]


def register_type(dtype: np.dtype) -> Type:
    if dtype == CHARACTER:
        return llvm.I32
    return llvm.I1 if dtype.kind == "b" else memory_type(dtype)


def libm(name: str, t: Type) -> str:
    """The C library's name of a function of this floating type."""
    return name if t is llvm.DOUBLE else f"{name}f"


def alignment(dtype: np.dtype) -> int:
    """Of elements in memory: a complex one lies as its parts do."""
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


@slotted
class Scalar:
    """A number: ``v`` of ``dtype``. ``weak``: True for Python's numbers, False for NumPy's, None when it may be either.
    ``bounds``: what an integer is known to lie between. ``const``: its value, when known. ``flag``: where ``weak`` is None, an i8 that is
    0 for NumPy's number, 1 for Python's of this type, 2 for a Python int that is kept as a float or complex number. ``sum_of``: (operand,
    number) of which an integer is known to be the sum. ``turn``: by how much it exceeds the index of the outermost loop, which is a range.
    ``below``: see bounds.py."""

    dtype: np.dtype
    weak: bool | None
    v: Operand
    bounds: tuple[int, int] | None = None
    const: Any = None
    flag: Operand | None = None
    sum_of: tuple[Operand, int] | None = None
    turn: int | None = None
    below: between.Below = None

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
    other things (see parts.py). ``bounds``: what the elements of the range lie between, ``below``: and what they are below."""

    key: str
    step: int
    parts: Any = None
    bounds: tuple[int, int] | None = None
    below: between.Below = None

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
class ScalarType:
    dtype: np.dtype
    weak: bool | None
    bounds: tuple[int, int] | None = None
    below: between.Below = None


@slotted
class ViewType:
    """``sizes``: those that are known when the kernel starts, None for others. ``dense``: the last stride is one element.
    ``owned``: it may be in a buffer of the loop's own."""

    dtype: np.dtype
    sizes: tuple[Size | None, ...]
    origins: frozenset
    dense: bool
    owned: bool
    whole: int | None
    turn: frozenset[tuple[int, int]]

    @property
    def ndim(self) -> int:
        return len(self.sizes)


@slotted
class TextType:
    of: ViewType


@slotted
class TupleType:
    items: tuple[Any, ...]
    listed: bool = False


@slotted
class ContainerType:
    """``sites``: where it may be made, see containers.py. ``method``: that of its methods which is on the stack. ``view``: see Container."""

    sites: frozenset
    kind: str
    method: str | None = None
    view: str = ""


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


@slotted
class PerhapsType:
    """A number, or no value yet: which of both, a slot of the variable's tells."""

    of: ScalarType


class _Conflict:
    """Different on different paths: reading it declines the region."""

    def __repr__(self):
        return "conflict"


CONFLICT = _Conflict()


def type_of(value):
    """The type under which a value is kept where paths join."""
    if isinstance(value, Scalar):
        bounds = value.bounds if value.dtype in (np.int64, np.float64) else None
        return ScalarType(value.dtype, value.weak, bounds, value.below)
    if isinstance(value, ArrayView):
        return ViewType(
            value.dtype,
            tuple(n if isinstance(n, int | ParameterOperand) else None for n in value.sizes),
            value.origins,
            value.ndim > 0 and value.strides[-1] == value.dtype.itemsize,
            value.owner is not None,
            value.whole,
            value.turn,
        )
    if isinstance(value, Tuple):
        if any(isinstance(item, ArrayView) and item.owner is not None for item in value.items):
            raise Declined("a tuple of arrays that are made in the loop")
        return TupleType(tuple(map(type_of, value.items)), value.listed)
    if isinstance(value, Text):
        return TextType(type_of(value.view))
    if isinstance(value, Container):
        return ContainerType(value.sites, value.kind, None, value.view)
    if isinstance(value, Method) and isinstance(value.owner, Container):
        return ContainerType(value.owner.sites, value.owner.kind, value.name)
    if isinstance(value, Method) and isinstance(value.owner, Stream):
        return value
    if isinstance(value, (Element, Iterator, Known, LocalFunction, Null, Stream)):
        return value
    raise Declined(f"a {type(value).__name__.lower()} is kept in a variable")


def join(a, b, thresholds: tuple[int, ...] = ()):
    """The type that holds ``a``, which was known before, and ``b``; CONFLICT when there is none. ``thresholds``: see bounds.py.
    Python's and NumPy's number meet in a number of NumPy's dtype of which it isn't
    known which it is, Python's int and float likewise in float; a value that isn't exact there is an error of the kernel."""
    if a == b:
        return a
    if isinstance(a, PerhapsType) or isinstance(b, PerhapsType):
        a, b = (t.of if isinstance(t, PerhapsType) else t for t in (a, b))
        of = join(a, b, thresholds)
        return PerhapsType(of) if isinstance(of, ScalarType) else CONFLICT
    if isinstance(a, ScalarType) and isinstance(b, ScalarType):
        weak = a.weak if a.weak is b.weak else None
        if a.dtype == b.dtype:
            bounds = a.bounds if a.bounds == b.bounds else None
            if a.dtype == np.int64:
                bounds = between.widened(a.bounds, b.bounds, thresholds)
            return ScalarType(a.dtype, weak, bounds, _below(a, b))
        for python, other in ((a, b), (b, a)):
            holds = {"i": "iufc", "f": "f", "c": "c"}.get(python.dtype.kind, "")
            if other.dtype.kind == "c" and python.dtype.kind == "i" and not (python.bounds and python.bounds[0] >= 0):
                continue  # sums and products of others have other zeros as complex numbers
            if (
                python.weak is True
                and other.dtype.kind in holds
                and (other.weak is not True or other.dtype.kind in "fc")
            ):
                return ScalarType(other.dtype, None)
        return CONFLICT
    if isinstance(a, ViewType) and isinstance(b, ViewType) and (a.dtype, a.ndim) == (b.dtype, b.ndim):
        return ViewType(
            a.dtype,
            tuple(n if n == m else None for n, m in zip(a.sizes, b.sizes)),
            a.origins | b.origins,
            a.dense and b.dense,
            a.owned or b.owned,
            a.whole if a.whole == b.whole else None,
            a.turn & b.turn,
        )
    if isinstance(a, TupleType) and isinstance(b, TupleType) and (len(a.items), a.listed) == (len(b.items), b.listed):
        return TupleType(tuple(join(x, y, thresholds) for x, y in zip(a.items, b.items)), a.listed)
    if (
        isinstance(a, ContainerType)
        and isinstance(b, ContainerType)
        and (a.kind, a.method, a.view) == (b.kind, b.method, b.view)
    ):
        return ContainerType(a.sites | b.sites, a.kind, a.method, a.view)
    if isinstance(a, TextType) and isinstance(b, TextType):
        of = join(a.of, b.of, thresholds)
        return TextType(of) if isinstance(of, ViewType) else CONFLICT
    if isinstance(a, Element) and isinstance(b, Element):
        it = join(a.of, b.of, thresholds)
        return it if it is CONFLICT else Element(it)
    if isinstance(a, Iterator) and isinstance(b, Iterator) and replace(a, bounds=b.bounds, below=b.below) == b:
        return replace(a, bounds=between.widened(a.bounds, b.bounds, thresholds), below=_below(a, b))
    return CONFLICT


def _below(a, b) -> between.Below:
    """What held before, where it still does: a bound that moves from turn to turn is none."""
    return a.below if between.either_below(a.below, b.below) == a.below else None


@slotted(frozen=False)
class State:
    """Types where control enters a block."""

    locals: dict[str, Any]
    stack: tuple[Any, ...] = ()

    def joined(self, other: State, thresholds: tuple[int, ...], perhaps: frozenset[str] = frozenset()) -> State:
        """``perhaps``: variables that may be read later, and have no value where they have no type."""
        if len(self.stack) != len(other.stack):
            raise Declined("paths meet with different stacks")
        names = self.locals.keys() & other.locals.keys()
        types = {n: join(self.locals[n], other.locals[n], thresholds) for n in names}
        for n in perhaps - names:
            t = self.locals.get(n) or other.locals.get(n)
            if isinstance(t, ScalarType | PerhapsType):
                types[n] = t if isinstance(t, PerhapsType) else PerhapsType(t)
        return State(
            types,
            tuple(join(x, y, thresholds) for x, y in zip(self.stack, other.stack)),
        )
