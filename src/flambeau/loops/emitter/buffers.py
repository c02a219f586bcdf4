"""Buffers of the loop's own, the memory of arrays that it makes.

References are counted. A buffer without any waits in a list, from which it is freed where nothing on the stack can refer to it, unless a variable has
got it meanwhile. Its header, 64 bytes in front of the data: the count, the link, whether it waits, whether it is a small one. A small one goes into
the second list of LIMBO, from which it is taken again.
"""

from __future__ import annotations

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand, Type, integer
from ..values import Size, known
from .element_loops import ElementLoops

__all__ = ["BUFFER_FUNCTIONS", "LIMBO", "Buffers"]


SMALL_BUFFER = 192  # bytes; buffers of up to this many are used again, those of a known size
LIMBO = Operand("%limbo", llvm.PTR)


class Buffers(ElementLoops):
    freeing = Operand("%free", llvm.PTR)  # the function that gives a buffer's memory back

    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None, fast: bool, turns: bool):
        super().__init__(sizes, fast, turns)
        self.helpers = False  # whether the functions that count references to buffers are wanted

    def buffer(self, size: Size) -> Operand:
        if type(known(size)) is int and known(size) <= SMALL_BUFFER:
            p = self._helper("flb_small", llvm.PTR, LIMBO, Operand("%malloc", llvm.PTR))
        else:
            p = self._helper("flb_new", llvm.PTR, integer(size), Operand("%malloc", llvm.PTR))
        self.check(self.cmp("ne", p, Operand("null", llvm.PTR)), "MemoryError", "")
        return p

    def keep(self, p: Operand) -> None:
        """One more reference to a buffer."""
        self._helper("flb_keep", llvm.VOID, p)

    def drop(self, p: Operand) -> None:
        """One reference less."""
        self._helper("flb_drop", llvm.VOID, p, LIMBO)

    def flush(self) -> None:
        if self.helpers:
            self._helper("flb_flush", llvm.VOID, LIMBO, self.freeing)

    def _helper(self, name: str, result: Type, *args: Operand) -> Operand:
        self.helpers = True
        return self.call(result, f"@{name}", *args)


BUFFER_FUNCTIONS = """
define internal ptr @flb_new(i64 %size, ptr %malloc) {
  %whole = add i64 %size, 64
  %p = call ptr %malloc(i64 %whole)
  %no = icmp eq ptr %p, null
  br i1 %no, label %end, label %yes
yes:
  store i64 1, ptr %p
  %waits = getelementptr i8, ptr %p, i64 16
  store i64 0, ptr %waits
  %small = getelementptr i8, ptr %p, i64 24
  store i64 0, ptr %small
  %data = getelementptr i8, ptr %p, i64 64
  br label %end
end:
  %r = phi ptr [ null, %0 ], [ %data, %yes ]
  ret ptr %r
}
define internal ptr @flb_small(ptr %limbo, ptr %malloc) {
  %list = getelementptr ptr, ptr %limbo, i64 1
  %spare = load ptr, ptr %list
  %none = icmp eq ptr %spare, null
  br i1 %none, label %fresh, label %again
again:
  %link = getelementptr i8, ptr %spare, i64 8
  %next = load ptr, ptr %link
  store ptr %next, ptr %list
  store i64 1, ptr %spare
  %taken = getelementptr i8, ptr %spare, i64 64
  br label %end
fresh:
  %made = call ptr @flb_new(i64 SMALL, ptr %malloc)
  %no = icmp eq ptr %made, null
  br i1 %no, label %end, label %yes
yes:
  %small = getelementptr i8, ptr %made, i64 -40
  store i64 1, ptr %small
  br label %end
end:
  %r = phi ptr [ %taken, %again ], [ null, %fresh ], [ %made, %yes ]
  ret ptr %r
}
define internal void @flb_end(ptr %limbo, ptr %free) {
  %list = getelementptr ptr, ptr %limbo, i64 1
  br label %head
head:
  %p = load ptr, ptr %list
  %no = icmp eq ptr %p, null
  br i1 %no, label %end, label %yes
yes:
  %link = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %link
  store ptr %next, ptr %list
  call void %free(ptr %p)
  br label %head
end:
  ret void
}
define internal void @flb_keep(ptr %data) {
  %no = icmp eq ptr %data, null
  br i1 %no, label %end, label %yes
yes:
  %p = getelementptr i8, ptr %data, i64 -64
  %n = load i64, ptr %p
  %m = add i64 %n, 1
  store i64 %m, ptr %p
  br label %end
end:
  ret void
}
define internal void @flb_drop(ptr %data, ptr %limbo) {
  %no = icmp eq ptr %data, null
  br i1 %no, label %end, label %yes
yes:
  %p = getelementptr i8, ptr %data, i64 -64
  %n = load i64, ptr %p
  %m = sub i64 %n, 1
  store i64 %m, ptr %p
  %last = icmp eq i64 %m, 0
  br i1 %last, label %dead, label %end
dead:
  %waits = getelementptr i8, ptr %p, i64 16
  %w = load i64, ptr %waits
  %known = icmp ne i64 %w, 0
  br i1 %known, label %end, label %enter
enter:
  store i64 1, ptr %waits
  %next = load ptr, ptr %limbo
  %link = getelementptr i8, ptr %p, i64 8
  store ptr %next, ptr %link
  store ptr %p, ptr %limbo
  br label %end
end:
  ret void
}
define internal void @flb_flush(ptr %limbo, ptr %free) {
  br label %head
head:
  %p = load ptr, ptr %limbo
  %no = icmp eq ptr %p, null
  br i1 %no, label %end, label %yes
yes:
  %link = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %link
  store ptr %next, ptr %limbo
  %waits = getelementptr i8, ptr %p, i64 16
  store i64 0, ptr %waits
  %n = load i64, ptr %p
  %dead = icmp eq i64 %n, 0
  br i1 %dead, label %gone, label %head
gone:
  %small = getelementptr i8, ptr %p, i64 24
  %class = load i64, ptr %small
  %is = icmp eq i64 %class, 1
  br i1 %is, label %spare, label %other
spare:
  %list = getelementptr ptr, ptr %limbo, i64 1
  %before = load ptr, ptr %list
  store ptr %before, ptr %link
  store ptr %p, ptr %list
  br label %head
other:
  call void %free(ptr %p)
  br label %head
end:
  ret void
}""".replace("SMALL", str(SMALL_BUFFER))
