"""The arena that everything lies in which a kernel with a tape touches: the numbers of notes lie ``%shadow`` bytes behind their elements."""

from __future__ import annotations

__all__ = ["ARENA_FUNCTIONS"]

# arena: the next free byte, the end, buffers that were given back, the distance of the shadow. A buffer's header (64 bytes in front of it): see
# emitter/buffers.py, then its size and the arena.
ARENA_FUNCTIONS = """
define internal ptr @fld_new(i64 %size, ptr %arena) {
  %more = add i64 %size, 127
  %whole = and i64 %more, -64
  %list = getelementptr i64, ptr %arena, i64 2
  br label %look
look:
  %link = phi ptr [ %list, %0 ], [ %next.p, %other ]
  %tries = phi i64 [ 0, %0 ], [ %again, %other ]
  %p = load ptr, ptr %link
  %last = icmp eq ptr %p, null
  %enough = icmp ugt i64 %tries, 32
  %stop = or i1 %last, %enough
  br i1 %stop, label %fresh, label %test
test:
  %size.p = getelementptr i8, ptr %p, i64 24
  %has = load i64, ptr %size.p
  %fits = icmp eq i64 %has, %whole
  br i1 %fits, label %taken, label %other
other:
  %next.p = getelementptr i8, ptr %p, i64 8
  %again = add i64 %tries, 1
  br label %look
taken:
  %rest.p = getelementptr i8, ptr %p, i64 8
  %rest = load ptr, ptr %rest.p
  store ptr %rest, ptr %link
  br label %made
fresh:
  %free = load i64, ptr %arena
  %end.p = getelementptr i64, ptr %arena, i64 1
  %end = load i64, ptr %end.p
  %new = add i64 %free, %whole
  %room = icmp ule i64 %new, %end
  br i1 %room, label %cut, label %none
cut:
  store i64 %new, ptr %arena
  %q = inttoptr i64 %free to ptr
  br label %made
made:
  %b = phi ptr [ %p, %taken ], [ %q, %cut ]
  store i64 1, ptr %b
  %waits = getelementptr i8, ptr %b, i64 16
  store i64 0, ptr %waits
  %bsize = getelementptr i8, ptr %b, i64 24
  store i64 %whole, ptr %bsize
  %barena = getelementptr i8, ptr %b, i64 32
  store ptr %arena, ptr %barena
  %data = getelementptr i8, ptr %b, i64 64
  ret ptr %data
none:
  ret ptr null
}
define internal void @fld_free(ptr %p) {
  %arena.p = getelementptr i8, ptr %p, i64 32
  %arena = load ptr, ptr %arena.p
  %list = getelementptr i64, ptr %arena, i64 2
  %first = load ptr, ptr %list
  %link = getelementptr i8, ptr %p, i64 8
  store ptr %first, ptr %link
  store ptr %p, ptr %list
  ret void
}
"""
