"""Whether a loop is worth a native one: how long it would be unrolled."""

from __future__ import annotations

import types

from flambeau.loops.binary_operators import binary_name

from ...bytecode.instructions import decode
from ...exc import SkipFrame

__all__ = ["MANY", "TOO_MANY", "WORTH", "is_worth_it", "left_to_python", "recurses", "work_of"]

# Instructions that unrolling would interpret; the second where parts of arrays are written: unrolled, each write is a new array.
WORTH, WORTH_WRITING = 1000, 100
# Instructions that aren't unrolled: minutes.
TOO_MANY = 100_000
# Turns of a while loop over numbers.
MANY = 50


def is_worth_it(tx, header: int, work: int, count: int) -> bool:
    """Whether unrolling the loop would be long, or has turned out to break the graph. A loop of one turn is none."""
    body = tx.insts[header + 1 : tx.insts[header].target]
    writes = count > 1 and any(map(_writes, body))
    return tx.output.resumes.short_loops or work >= (WORTH_WRITING if writes else WORTH)


def work_of(tx, header: int, count: int) -> int:
    """About how many instructions ``count`` turns are."""
    body = tx.insts[header + 1 : tx.insts[header].target]
    inner, size = len({i.target for i in body if i.target is not None and header < i.target < i.index}), len(body)
    for code in _called(tx, body):
        insts = decode(code)
        recursive = code.co_name in code.co_names
        inner += max(min(sum(i.target is not None and i.target <= i.index for i in insts), 2), recursive)
        size += len(insts)
    return count * size * 10**inner


def recurses(tx, header: int) -> bool:
    """Whether the body calls a function that calls itself: the turns are more than they look, and each call would be a node of its own."""
    body = tx.insts[header + 1 : tx.insts[header].target]
    return any(code.co_name in code.co_names for code in _called(tx, body))


def _called(tx, body) -> set[types.CodeType]:
    """Functions of the program's that the body names."""
    named = (tx.globals.get(i.argval) for i in body if i.name == "LOAD_GLOBAL")
    return {f.__code__ for f in named if type(f) is types.FunctionType and f.__globals__ is tx.globals}


def left_to_python(tx, header: int, count: int) -> bool:
    """Have the frame run plainly whose loop over arrays stays Python, where unrolling it would take minutes and nothing (a derivative, ``fullgraph``)
    wants one graph. Else False."""
    compiler, body = tx.output.compiler, tx.insts[header + 1 : tx.insts[header].target]
    one_graph = compiler.fullgraph or tx.output.modes.transforms
    if one_graph or count * len(body) < TOO_MANY:
        return False
    raise SkipFrame(
        f"a loop of {count} turns over arrays in line {tx.insts[header].line} is no native one, and too long to be unrolled"
    )


def _writes(inst) -> bool:
    """Whether an instruction may write into an array."""
    return inst.name in ("STORE_SUBSCR", "STORE_SLICE") or (
        inst.name == "BINARY_OP" and binary_name(inst).endswith("=")
    )
