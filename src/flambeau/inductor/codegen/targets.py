"""What a kernel for threads asks of its device: which thread it is, barriers, shuffles, shared memory, and the form of a function.

The same instructions are written for both: NVIDIA's devices, and the simulated one, where what the device does is a function of the host
(csrc/device/threads.h) and every address is looked at before it is used.
"""

from __future__ import annotations

from ..assembly.code import Code, Names
from ..assembly.dtypes import itemsize
from ..assembly.instructions import I8, I32, I64, PTR, VOID, Function, Instruction, Operand, ParameterOperand, integer

__all__ = ["NVIDIA", "SIMULATED", "WARP", "Nvidia", "Simulated", "Target"]

WARP = 32


class Target:
    """``name``: part of what the cache is keyed by."""

    name = ""

    def thread(self, code: Code) -> Operand:
        """The number of the thread in its block."""
        raise NotImplementedError

    def block(self, code: Code) -> Operand:
        """The number of the block."""
        raise NotImplementedError

    def barrier(self, code: Code) -> None:
        """All threads of the block wait for one another."""
        raise NotImplementedError

    def shuffle(self, code: Code, x: Operand, mask: int) -> Operand:
        """The i32 of the thread of the warp whose number differs in the bits of ``mask``."""
        raise NotImplementedError

    def shared(self, code: Code, offset: Operand | int) -> Operand:
        """The address of a byte of the block's shared memory."""
        raise NotImplementedError

    def text(self, kernel, body: list[Instruction], names: Names, pointers: list[tuple[Operand, str]]) -> str:
        """A module with one function. ``pointers``: the addresses among its arguments, and the dtypes of what lies there."""
        raise NotImplementedError


class Nvidia(Target):
    """LLVM's NVPTX."""

    name = "nvptx"

    def _register(self, code: Code, name: str) -> Operand:
        return code.to("zext", code.call(I32, f"@llvm.nvvm.read.ptx.sreg.{name}"), I64)

    def thread(self, code: Code) -> Operand:
        return self._register(code, "tid.x")

    def block(self, code: Code) -> Operand:
        return self._register(code, "ctaid.x")

    def barrier(self, code: Code) -> None:
        code.call(VOID, "@llvm.nvvm.barrier0")

    def shuffle(self, code: Code, x: Operand, mask: int) -> Operand:
        given = [Operand(str(n), I32) for n in (-1, mask, WARP - 1)]
        return code.call(I32, "@llvm.nvvm.shfl.sync.bfly.i32", given[0], x, *given[1:])

    def shared(self, code: Code, offset: Operand | int) -> Operand:
        return code.place(I8, Operand("addrspacecast (ptr addrspace(3) @KERNEL.shared to ptr)", PTR), offset)

    def text(self, kernel, body: list[Instruction], names: Names, pointers: list[tuple[Operand, str]]) -> str:
        count = len(kernel.args) + 1 + len(kernel.params)
        args = ParameterOperand("%args", PTR, f"byval([{count} x i64]) align 8")
        lines = [f"@KERNEL.shared = internal addrspace(3) global [{kernel.shared} x i8] poison, align 16"]
        function = Function("KERNEL", VOID, (args,), body, "ptx_kernel")
        lines = [*(lines if kernel.shared else ()), *names.declares.values(), *function.lines(), "!0 = !{}"]
        return "\n".join(lines) + "\n"


class Simulated(Target):
    """A function of the host that is called for each thread; ``%here`` is its FlbThread."""

    name = "simulated"
    _THREAD, _BLOCK, _SHARED, _EXTENTS, _BARRIER, _SHUFFLE, _FAULT, _ACCESS = 0, 1, 4, 5, 6, 7, 8, 9
    _HERE = ParameterOperand("%here", PTR, "noalias")

    def _known(self, code: Code, type, place: int) -> Operand:
        return code.read(type, code.place(I64, self._HERE, place))

    def thread(self, code: Code) -> Operand:
        return self._known(code, I64, self._THREAD)

    def block(self, code: Code) -> Operand:
        return self._known(code, I64, self._BLOCK)

    def barrier(self, code: Code) -> None:
        code.call(VOID, self._known(code, PTR, self._BARRIER), self._HERE)

    def shuffle(self, code: Code, x: Operand, mask: int) -> Operand:
        return code.call(I32, self._known(code, PTR, self._SHUFFLE), self._HERE, x, Operand(str(mask), I32))

    def shared(self, code: Code, offset: Operand | int) -> Operand:
        return code.place(I8, self._known(code, PTR, self._SHARED), offset)

    def text(self, kernel, body: list[Instruction], names: Names, pointers: list[tuple[Operand, str]]) -> str:
        args = ParameterOperand("%args", PTR, "noalias readonly")
        body = self._guarded(body, names, pointers)
        function = Function("KERNEL", VOID, (args, self._HERE), body)
        return "\n".join([*names.declares.values(), *function.lines(), "!0 = !{}"]) + "\n"

    def _guarded(self, body: list[Instruction], names: Names, pointers) -> list[Instruction]:
        """The same, each address of an element compared with what lies there, and each use of one told."""
        code = Code(names, [])
        places: dict[str, tuple[int, int, Operand]] = {}  # address -> (argument, bytes of an element, its position)
        limits: dict[str, tuple[int, Operand]] = {}
        number = {p.text: (k, t) for k, (p, t) in enumerate(pointers)}
        for i in body:
            if i.operation == "getelementptr" and (found := limits.get(i.args[0].text)):
                self._guard(code, found[0], found[1], i.args[1])
                places[i.text] = found[0], itemsize(pointers[found[0]][1]), i.args[1]
            if i.operation in ("load", "store") and (place := places.get(i.args[-1].text)):
                self._tell(code, *place, i.operation == "store")
            code.out.append(i)
            if i.text in number:
                k, t = number[i.text]
                extents = self._known(code, PTR, self._EXTENTS)
                nbytes = code.read(I64, code.place(I64, extents, k))
                limits[i.text] = k, code.op("udiv", nbytes, itemsize(t))
        return code.out

    def _guard(self, code: Code, argument: int, limit: Operand, position: Operand) -> None:
        bad, good = (code.names.label(x) for x in ("outside", "inside"))
        code.branch(code.cmp("uge", position, limit), bad, good)
        code.label(bad)
        code.call(VOID, self._known(code, PTR, self._FAULT), self._HERE, integer(argument), position)
        code.jump(good)
        code.label(good)

    def _tell(self, code: Code, argument: int, nbytes: int, position: Operand, writes: bool) -> None:
        given = integer(argument), position, integer(-nbytes if writes else nbytes)
        code.call(VOID, self._known(code, PTR, self._ACCESS), self._HERE, *given)


NVIDIA, SIMULATED = Nvidia(), Simulated()
