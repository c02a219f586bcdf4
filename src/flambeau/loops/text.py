"""Text that a loop reads: the codes of its characters in memory, and characters, numbers of the dtype ``U1``.

A string from outside is an operand of 32-bit codes, one of the program's a constant of the kernel's module. Questions about characters are answered
for ASCII; of others the loop ends, and the frame runs plainly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from . import arrays
from .emitter import BOOL, I64, Emitter, constant
from .faults import Limit
from .numbers import comparisons, conversions
from .values import CHARACTER, ArrayView, Declined, Known, Method, Scalar, Size, Slice, Text, Tuple

__all__ = [
    "at",
    "backwards",
    "called",
    "character",
    "compare",
    "contains",
    "has_text",
    "is_text",
    "method",
    "method_of",
    "of",
    "subscript",
]

CODE = np.dtype(np.uint32)
LONGEST = 1 << 14  # characters that are part of the kernel's text
MOST = 64  # characters that are asked for one by one
LAST = 0x10FFFF


def is_text(v) -> bool:
    """Whether it is text: read by the loop, known, or a character."""
    return isinstance(v, Text) or (isinstance(v, Known) and type(v.value) is str) or _is_character(v)


def has_text(values) -> bool:
    """Whether some of these are text that isn't known, or hold such."""
    return any(isinstance(v, Text) or _is_character(v) or (isinstance(v, Tuple) and has_text(v.items)) for v in values)


def _is_character(v) -> bool:
    return isinstance(v, Scalar) and v.dtype == CHARACTER


def character(v):
    """A known string of one character as such a number; all else as it is."""
    if isinstance(v, Known) and type(v.value) is str and len(v.value) == 1:
        return _made(llvm.constant(llvm.I32, ord(v.value)))
    return v


def _made(code: Operand) -> Scalar:
    return Scalar(CHARACTER, True, code)


def of(e: Emitter, v) -> Text | None:
    """Text as it lies in memory; None for what isn't text there."""
    if isinstance(v, Text):
        return v
    if not (isinstance(v, Known) and type(v.value) is str) or len(v.value) > LONGEST:
        return None
    codes = [ord(c) for c in v.value] or [0]
    data = np.array(codes, "<u4").tobytes()
    name = f"@text.{hashlib.blake2b(data, digest_size=12).hexdigest()}"
    said = ", ".join(f"i32 {c}" for c in codes)
    e.functions[name] = f"{name} = private unnamed_addr constant [{len(codes)} x i32] [{said}]"
    return Text(ArrayView(Operand(name, llvm.PTR), CODE, (len(v.value),), (4,), frozenset()))


def at(e: Emitter, text: Text, k: Operand) -> Scalar:
    """The character with this number, which there is."""
    return _made(arrays.load(e, text.view, (k,)).v)


def subscript(e: Emitter, text: Text, key) -> Scalar | Text:
    view = text.view
    if isinstance(key, Slice):
        return Text(arrays.subscript(e, view, key))
    if not isinstance(key, Scalar) or key.kind not in "iu":
        raise Declined("a subscript of text")
    n, k = view.sizes[0], conversions.to_int(e, key).v
    if not (key.bounds and key.bounds[0] >= 0):
        k = e.select(e.cmp("slt", k, 0), integer(e.add(k, n)), k)
    e.check(e.cmp("ult", k, n), "IndexError", "string index out of range")
    return at(e, text, integer(k))


def backwards(e: Emitter, text: Text) -> Text:
    return Text(arrays.subscript(e, text.view, Slice(Known(None), Known(None), constant(-1))))


# ---- comparisons


def compare(e: Emitter, op: str, a, b) -> Scalar:
    """``a op b``, of which one is text."""
    if not (is_text(a) and is_text(b)):
        if op in ("==", "!=") and all(is_text(x) or isinstance(x, Scalar | Tuple) for x in (a, b)):
            return Scalar(BOOL, True, llvm.constant(llvm.I1, op == "!="))
        raise Declined("a comparison of text with other things")
    x, y = character(a), character(b)
    if _is_character(x) and _is_character(y):
        return comparisons.compare(e, op, x, y)
    if op not in ("==", "!="):
        raise Declined("which text is less, of several characters")
    same = _same(e, _reader(e, x), _reader(e, y))
    return Scalar(BOOL, True, e.flip(same) if op == "!=" else same)


def _reader(e: Emitter, v) -> tuple[Size, Callable[[Operand], Operand]]:
    """How many characters text has, and what gives the code of one."""
    if _is_character(v):
        return 1, lambda k: v.v
    text = of(e, v)
    if text is None:
        raise Declined("very long text")
    return text.view.sizes[0], lambda k: at(e, text, k).v


def _same(e: Emitter, a, b) -> Operand:
    (n, of_a), (m, of_b) = a, b
    if type(n) is type(m) is int and n != m:
        return llvm.constant(llvm.I1, False)
    alike = e.cmp("eq", n, m)
    name = f"same@{e.new_label()}"
    e.set(name, llvm.I1, alike)
    for (k,) in e.loop([e.select(alike, n, 0)]):
        k = integer(k)
        e.set(name, llvm.I1, e.op("and", e.get(name, llvm.I1), e.cmp("eq", of_a(k), of_b(k))))
    return e.get(name, llvm.I1)


def contains(e: Emitter, c, key) -> Operand:
    """``key in c``, of which one is text."""
    key = character(key)
    if isinstance(c, Tuple):
        found = llvm.constant(llvm.I1, False)
        for item in c.items[:MOST]:
            found = e.op("or", found, compare(e, "==", key, item).v)
        if len(c.items) > MOST:
            raise Declined("in, of many strings")
        return found
    if not _is_character(key):
        raise Declined("in, of text of several characters")
    if isinstance(c, Known) and len(c.value) <= MOST:
        found = llvm.constant(llvm.I1, False)
        for x in sorted(set(c.value)):
            found = e.op("or", found, e.cmp("eq", key.v, ord(x)))
        return found
    return e.cmp("ne", _count(e, c, key).v, 0)


def _count(e: Emitter, c, key: Scalar) -> Scalar:
    n, code = _reader(e, c)
    name = f"count@{e.new_label()}"
    e.set(name, llvm.I64, 0)
    for (k,) in e.loop([n]):
        more = e.to("zext", e.cmp("eq", code(integer(k)), key.v), llvm.I64)
        e.set(name, llvm.I64, e.op("add", e.get(name, llvm.I64), more))
    return Scalar(I64, True, e.get(name, llvm.I64), (0, 1 << 48))


# ---- functions and methods


def called(e: Emitter, f, args: list) -> Scalar | None:
    """What a builtin gives of text; None for other calls."""
    if len(args) != 1:
        return None
    (x,) = args
    if f is chr and isinstance(x, Scalar) and x.kind == "i":
        n = conversions.to_int(e, x)
        e.check(e.cmp("ule", n.v, LAST), "ValueError", "chr() arg not in range(0x110000)")
        return _made(e.to("trunc", n.v, llvm.I32))
    if f is len and isinstance(x, Text):
        return arrays.size(e, x.view.sizes[0])
    if f is len and isinstance(x, Known) and type(x.value) is str:
        return constant(len(x.value))
    x = character(x)
    if f is len and _is_character(x):
        return constant(1)
    if f is ord and _is_character(x):
        return Scalar(I64, True, e.to("zext", x.v, llvm.I64), (0, LAST))
    if f is int and _is_character(x):
        digit = e.op("sub", x.v, ord("0"))
        e.check(e.cmp("ult", digit, 10), "ValueError", "int() of a character that is no digit")
        return Scalar(I64, True, e.to("zext", digit, llvm.I64), (0, 9))
    return x if f is str and _is_character(x) else None


def _between(e: Emitter, code: Operand, first: str, last: str) -> Operand:
    return e.cmp("ule", e.op("sub", code, ord(first)), ord(last) - ord(first))


def _among(*ranges: tuple[str, str]) -> Callable:
    def ask(e: Emitter, code: Operand) -> Scalar:
        found = llvm.constant(llvm.I1, False)
        for first, last in ranges:
            found = e.op("or", found, _between(e, code, first, last))
        return Scalar(BOOL, True, found)

    return ask


def _cased(first: str, last: str, by: int) -> Callable:
    def make(e: Emitter, code: Operand) -> Scalar:
        return _made(e.select(_between(e, code, first, last), e.op("add", code, by), code))

    return make


DIGITS, UPPER, LOWER = ("0", "9"), ("A", "Z"), ("a", "z")
_METHODS = {
    "isdigit": _among(DIGITS), "isdecimal": _among(DIGITS), "isnumeric": _among(DIGITS), "isalpha": _among(UPPER, LOWER),
    "isalnum": _among(DIGITS, UPPER, LOWER), "isupper": _among(UPPER), "islower": _among(LOWER),
    "isspace": _among(("\t", "\r"), ("\x1c", " ")), "upper": _cased(*LOWER, -32), "lower": _cased(*UPPER, 32),
}  # fmt: skip
"""Methods of characters, of which ASCII ones are asked."""


def method_of(owner, name: str) -> Method | None:
    """A method of a character or of text, for a call; None for others."""
    owner = character(owner)
    if (_is_character(owner) and name in _METHODS) or (isinstance(owner, Text) and name == "count"):
        return Method(owner, name)
    return None


def method(e: Emitter, owner, name: str, args: list) -> Scalar:
    if name == "count" and len(args) == 1 and _is_character(character(args[0])):
        return _count(e, owner, character(args[0]))
    if args or name not in _METHODS:
        raise Declined(f"{name}() of text with these arguments")
    text = Limit(f"{name}() of a character beyond ASCII in a compiled loop")
    e.check(e.cmp("ult", owner.v, 128), "RuntimeError", text)
    return _METHODS[name](e, owner.v)
