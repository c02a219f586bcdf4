"""What is known of the processor without asking LLVM: importing it costs more than a warm start should pay."""

import functools
import os
import platform

__all__ = ["asks_ahead_for_writes", "description", "follows_one_line", "holds_lines"]


@functools.cache
def description() -> str:
    """Maker, model and features, in words of the system."""
    try:
        with open("/proc/cpuinfo") as f:
            first = f.read().split("\n\n")[0]
    except OSError:
        return platform.processor() + platform.machine()
    return "".join(x for x in first.splitlines(True) if x.startswith(("model name", "flags", "vendor")))


def asks_ahead_for_writes() -> bool:
    """Whether it pays to ask for lines that will be written: it does on Intel's processors; on AMD's the rows of a large result take a fifth longer
    with it."""
    return "AuthenticAMD" not in description()


def follows_one_line() -> bool:
    """Whether reading memory in order, or from a few places by turns, counts for more than writing in order, where results go past the cache: on Zen
    4 a permutation of lines of 256 bytes takes half as long. Where it was measured on Intel's processors, such kernels took no longer than a copy."""
    return "AuthenticAMD" in description()


def holds_lines() -> bool:
    """Whether a vector register is a cache line (AVX-512): with halves of lines, turned squares are better stored by way of the stack."""
    return "avx512f" in description() and os.environ.get("FLAMBEAU_CPU") not in ("avx2", "default")
