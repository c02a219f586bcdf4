"""Arrays that a loop puts into lists: an item is the view's words, and the kernel keeps its memory until it ends.

Behind the loop each is a NumPy array of its own; one that is in a list several times is one object there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _runtime
from ...base.records import replace, slotted
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand, integer
from .. import arrays
from ..arguments import NULL
from ..emitter import Emitter
from ..faults import Limit
from ..values import ArrayView, Empty, Expression

__all__ = ["ArrayItem", "OWNERS", "Memory", "item_of", "load", "made", "merged", "store", "type_of"]

OWNERS = "@owners.b"  # the slot of a list of what is kept; its name has it begin as NULL


@slotted
class ArrayItem:
    """``origins``: see ArrayView."""

    dtype: np.dtype
    ndim: int
    origins: frozenset

    @property
    def words(self) -> int:
        return 2 + 2 * self.ndim


def type_of(value: ArrayView) -> ArrayItem:
    return ArrayItem(value.dtype, value.ndim, value.origins)


def merged(a, b):
    """The type of items of both types, which differ by where their memory is from; None for other types."""
    alike = isinstance(a, ArrayItem) and isinstance(b, ArrayItem) and (a.dtype, a.ndim) == (b.dtype, b.ndim)
    return replace(a, origins=a.origins | b.origins) if alike else None


def item_of(e: Emitter, value, chain: Operand, place: str) -> ArrayView:
    """A view as an item, whose memory is kept."""
    if isinstance(value, Expression):
        value = arrays.materialise(e, value, place)
    elif value.owner is None:
        raise Empty("a view of an array from outside in a list")
    else:
        e.check(e.cmp("ne", value.owner, NULL), "RuntimeError", Limit("an array from outside in a list"))
        e.keep(value.owner)
    e.function("@flb_hold", _HOLD)
    e.function("@flb_release", _RELEASE)
    given = (e.slot(OWNERS, llvm.PTR), chain, Operand("%container_new", llvm.PTR), Operand("%list_append", llvm.PTR))
    e.check(e.call(llvm.I1, "@flb_hold", *given, value.owner), "MemoryError", "")
    return value


def store(e: Emitter, p: Operand, value: ArrayView, at: int) -> int:
    """Write the words of an item; the number of the next word."""
    for word in (value.ptr, value.owner, *map(integer, (*value.sizes, *value.strides))):
        e.write(word, e.place(llvm.I64, p, at))
        at += 1
    return at


def load(e: Emitter, p: Operand, t: ArrayItem, at: int) -> tuple[ArrayView, int]:
    """An item, and the number of the word behind it."""
    ptr, owner = (e.read(llvm.PTR, e.place(llvm.I64, p, at + k)) for k in range(2))
    sizes = [e.read(llvm.I64, e.place(llvm.I64, p, at + 2 + k)) for k in range(2 * t.ndim)]
    view = ArrayView(ptr, t.dtype, tuple(sizes[: t.ndim]), tuple(sizes[t.ndim :]), t.origins, owner)
    return view, at + t.words


# ---- behind the loop


class Memory:
    """Memory of a kernel's, for NumPy to read."""

    def __init__(self, at: int, shape: tuple, strides: tuple, dtype: str):
        self.__array_interface__ = {
            "data": (at, True),
            "shape": shape,
            "strides": strides,
            "typestr": dtype,
            "version": 3,
        }


def made(table: np.ndarray, dtype: np.dtype, n: int, at: int) -> tuple[list[Any], int]:
    """The arrays, of ``n`` dimensions, of some words of each entry, and the number of the word behind them. RuntimeError where two of them share
    some memory: as arrays of their own they wouldn't."""
    rows = np.ascontiguousarray(table[:, at : at + 2 + 2 * n])
    if len(set(rows[:, 1].tolist())) == len(rows):
        return _runtime.arrays_at(rows, dtype), at + 2 + 2 * n
    arrays_: dict[tuple, np.ndarray] = {}
    keys: dict[int, tuple] = {}
    out = []
    for ptr, owner, *sizes in rows.tolist():
        key = (ptr, *sizes)
        if keys.setdefault(owner, key) != key:
            raise RuntimeError("views of one array in a list of a compiled loop")
        if key not in arrays_:
            memory: Any = Memory(ptr, tuple(sizes[:n]), tuple(sizes[n:]), dtype.str)
            arrays_[key] = np.array(memory)
        out.append(arrays_[key])
    return out, at + 2 + 2 * n


# flb_hold(slot of the list of owners, chain, container_new, list_append, owner): false where there is no memory.
_HOLD = """
define internal i1 @flb_hold(ptr %slot, ptr %chain, ptr %new, ptr %append, ptr %owner) {
  %there = load ptr, ptr %slot
  %no = icmp eq ptr %there, null
  br i1 %no, label %first, label %on
first:
  %made = call ptr %new(ptr %chain, i64 0, i64 1)
  store ptr %made, ptr %slot
  %none = icmp eq ptr %made, null
  br i1 %none, label %failed, label %on
on:
  %list = load ptr, ptr %slot
  %place = call ptr %append(ptr %list)
  %full = icmp eq ptr %place, null
  br i1 %full, label %failed, label %done
done:
  store ptr %owner, ptr %place
  ret i1 true
failed:
  ret i1 false
}
"""
# flb_release(list of owners or null, limbo): drop what is kept.
_RELEASE = """
define internal void @flb_release(ptr %list, ptr %limbo) {
  %no = icmp eq ptr %list, null
  br i1 %no, label %end, label %begin
begin:
  %items.p = getelementptr i64, ptr %list, i64 1
  %items = load ptr, ptr %items.p
  %used.p = getelementptr i64, ptr %list, i64 3
  %used = load i64, ptr %used.p
  br label %head
head:
  %k = phi i64 [ 0, %begin ], [ %next, %turn ]
  %more = icmp slt i64 %k, %used
  br i1 %more, label %turn, label %end
turn:
  %p = getelementptr ptr, ptr %items, i64 %k
  %owner = load ptr, ptr %p
  call void @flb_drop(ptr %owner, ptr %limbo)
  %next = add i64 %k, 1
  br label %head
end:
  ret void
}
"""
