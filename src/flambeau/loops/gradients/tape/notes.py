"""The tape: a list of notes, and the function of a kernel that appends one.

A note is the numbers of the one or two notes that an operation's operands were, and the partial derivatives with respect to them.
"""

from __future__ import annotations

import re

import numpy as np

__all__ = ["NOTE", "NOTE_FUNCTION", "NOTE_RECORD", "TAPE_RECORD", "note_function", "tape_places"]

NOTE_RECORD = np.dtype(
    [("a", "<u4"), ("b", "<u4"), ("wa", "<f8"), ("wb", "<f8")]
)  # operands' numbers, partial derivatives
NOTE = NOTE_RECORD.itemsize
# What a kernel's tape points to: the number of the next note, the first that there is no room for, whether that was wanted, where note 0 would lie;
# what is called where there is no room and makes some, or null; what that uses, see checkpoints.py: the kernel's context, the other, swapcontext.
TAPE_RECORD = np.dtype([(name, "<i8") for name in ("next", "end", "full", "notes", "hook", "mine", "others", "swap")])


def tape_places(text: str) -> str:
    """``text`` with the place in a tape's record for each FIELD(name)."""
    return re.sub(r"FIELD\((\w+)\)", lambda m: f"getelementptr i8, ptr %tape, i64 {TAPE_RECORD.fields[m[1]][1]}", text)


# fld_note(tape, a, partial, b, partial): the number of a new note. Not inlined: a caller would know that numbers follow one another, and could
# keep one and make others from it, see checkpoints.py.
_NOTE_TEXT = """
define internal i32 @fld_note(ptr %tape, GIVEN) noinline {
  %any = or i32 %a, %b
  %none = icmp eq i32 %any, 0
  br i1 %none, label %no, label %yes
yes:
  %n.p = FIELD(next)
  %n = load i64, ptr %n.p
  %end.p = FIELD(end)
  %end = load i64, ptr %end.p
  %room = icmp ult i64 %n, %end
  br i1 %room, label %put, label %full
full:
  %hook.p = FIELD(hook)
  %hook = load ptr, ptr %hook.p
  %last = icmp eq ptr %hook, null
  br i1 %last, label %stop, label %more
more:
  call void %hook(ptr %tape)
  br label %put
stop:
  %full.p = FIELD(full)
  store i64 1, ptr %full.p
  br label %no
put:
  %notes.p = FIELD(notes)
  %notes = load ptr, ptr %notes.p
  %at = getelementptr ENTRY, ptr %notes, i64 %n
STORES
  %next = add i64 %n, 1
  store i64 %next, ptr %n.p
  %r = trunc i64 %n to i32
  ret i32 %r
no:
  ret i32 0
}
"""


def note_function(entry: str, fields: list[tuple[str, str, int]]) -> str:
    """The text of fld_note: append an entry of the LLVM type ``entry``, and return its number, or 0 without operands or room.

    ``fields``: (type, name, byte) of each parameter, which is stored at that byte of the entry.
    """
    given = ", ".join(f"{type} %{name}" for type, name, _ in fields)
    stores = []
    for type, name, byte in sorted(fields, key=lambda field: field[2]):
        place = f"%{name}.p" if byte else "%at"
        stores += [f"  {place} = getelementptr i8, ptr %at, i64 {byte}"] if byte else []
        stores.append(f"  store {type} %{name}, ptr {place}")
    return tape_places(_NOTE_TEXT).replace("GIVEN", given).replace("ENTRY", entry).replace("STORES", "\n".join(stores))


NOTE_FUNCTION = note_function(
    "{ i32, i32, double, double }", [("i32", "a", 0), ("double", "wa", 8), ("i32", "b", 4), ("double", "wb", 16)]
)
