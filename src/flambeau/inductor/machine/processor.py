"""What is known of the processor without asking LLVM: importing it costs more than a warm start should pay."""

import functools
import os
import platform

__all__ = [
    "asks_ahead_for_writes",
    "description",
    "follows_one_line",
    "follows_runs",
    "foresees_sums",
    "holds_lines",
    "level",
    "reads_wide_strips",
]


# The lines of /proc/cpuinfo that say what a processor is and can do: x86's, and ARM's.
_LINES = ("model name", "flags", "vendor", "Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part")


@functools.cache
def description() -> str:
    """Maker, model and features, in words of the system; of each kind of processor, where there are several. LLVM's words where it has none."""
    try:
        with open("/proc/cpuinfo") as f:
            blocks = f.read().split("\n\n")
    except OSError:
        blocks = []
    kinds = {"".join(x for x in block.splitlines(True) if x.startswith(_LINES)) for block in blocks}
    if any(line.startswith(("flags", "Features")) for kind in kinds for line in kind.splitlines()):
        return "".join(sorted(kinds))
    from . import llvm

    return "|".join((platform.machine(), *llvm.host()))


def level() -> str:
    """What FLAMBEAU_CPU says: "avx2" or "default" for code that lesser processors run too, else anything."""
    return os.environ.get("FLAMBEAU_CPU", "")


def asks_ahead_for_writes() -> bool:
    """Whether it pays to ask for lines that will be written: it does on Intel's processors; on AMD's the rows of a large result take a fifth longer
    with it."""
    return "AuthenticAMD" not in description()


def follows_one_line() -> bool:
    """Whether reading memory in order, or from a few places by turns, counts for more than writing in order, where results go past the cache: on Zen
    4 a permutation of lines of 256 bytes takes half as long. Where it was measured on Intel's processors, such kernels took no longer than a copy."""
    return "AuthenticAMD" in description()


def foresees_sums() -> bool:
    """Whether a loop that only reads one run of memory in order is best left to the processor's own guesses: on Zen 4 sums of 6 MB take a quarter
    longer where lines are asked for ahead."""
    return "AuthenticAMD" in description()


def follows_runs() -> bool:
    """Whether the processor keeps up with runs of memory that lie in its third-level cache, so that asking ahead only takes time: relu of 4 MB takes
    a tenth longer with it on Zen 4. It wasn't measured on Intel's."""
    return "AuthenticAMD" in description()


def holds_lines() -> bool:
    """Whether a vector register is a cache line (AVX-512): with halves of lines, transposed squares are better stored by way of the stack."""
    return "avx512f" in description() and level() not in ("avx2", "default")


def reads_wide_strips() -> bool:
    """Whether short sums of columns are best read in strips of four cache lines that nothing asks for ahead. On Intel's processors sums of 1024 by
    1024 took 0.6 of the time of two lines at a time and asking; it wasn't measured on AMD's."""
    return "GenuineIntel" in description()
