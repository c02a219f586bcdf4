"""Write csrc/kernels/element_loops.h: the scalar table's transcendental functions in C, for eager's loops.

usage: element_loops.py [--check]      --check writes nothing; the exit status is 1 where the file isn't what would be written

What compiled graphs compute by an expansion (inductor/codegen/expansions), eager calls compute by the same expansion, printed here as C: the same
IEEE operations in the same order, so both have the same bits. A lane that calls the C library (``by_lane``) does so in both.
"""

from __future__ import annotations

import argparse
import math
import struct
import sys
from pathlib import Path

import flambeau as torch  # noqa: F401  # fills the scalar table in
from flambeau.core.body import TABLE
from flambeau.inductor.assembly.builder import Builder
from flambeau.inductor.assembly.code import Names
from flambeau.inductor.assembly.dtypes import LLVM
from flambeau.inductor.assembly.instructions import ConstantOperand, Instruction, Operand
from flambeau.inductor.codegen.expansions import EXPANSIONS
from flambeau.inductor.exactness import EXACT

FILE = Path(__file__).parent.parent / "csrc" / "kernels" / "element_loops.h"
HEAD = """/* Written by tools/element_loops.py: functions of elements, the expansions of compiled code as C. */
"""
_TYPES = {"float": "float", "double": "double", "i1": "_Bool", "i32": "uint32_t", "i64": "uint64_t"}
_ARITHMETIC = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
               "shl": "<<", "lshr": ">>"}  # fmt: skip
_ORDER = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


class _Scalars(Builder):
    """Instructions of one lane. A call of the C library in rare lanes is an instruction of its own, "rare", and so is "rarely", the choice of two
    expressions that comes last."""

    def rarely(self, rare, usual, whole) -> Operand:
        made = whole()
        return self.emit("rarely", made.type, (rare(), usual(), made))

    def by_lane(self, fast: Operand, rare: Operand, callee: str, *args: Operand) -> Operand:
        return self.emit("rare", fast.type, (rare, fast, *args), callee)


def rows() -> list[str]:
    """Names of the scalar table's rows that are printed."""
    found = [(n, r.llvm.get("f", "")) for n, r in TABLE.items()]
    return [n for n, text in found if text.startswith("@") and n not in EXACT - {"fmod", "remainder"} | {"pow"}]


def _number(x: ConstantOperand) -> str:
    kind, value = x.type.text, x.value
    if kind == "i1":
        return str(int(bool(value)))
    if kind in ("i32", "i64"):
        return f"{int(value) & ((1 << x.type.bits) - 1)}u" + ("ll" if kind == "i64" else "")
    value = float(value)
    end = "f" if kind == "float" else ""
    if end and math.isfinite(value):
        value = struct.unpack("f", struct.pack("f", value))[0]
    if math.isnan(value):
        return f'__builtin_nan{end}("")'
    if math.isinf(value):
        return ("-" if value < 0 else "") + f"__builtin_inf{end}()"
    text = value.hex().replace(".0000000000000p", "p")
    mantissa, _, power = text.partition("p")
    return f"{mantissa.rstrip('0') if '.' in mantissa else mantissa}p{power}{end}"


def _text(x: Operand) -> str:
    return _number(x) if isinstance(x, ConstantOperand) else x.text.lstrip("%")


def _signed(x: Operand) -> str:
    return f"(int{x.type.bits}_t){_text(x)}"


def _compared(i: Instruction) -> str:
    x, y = i.args
    way = i.flags
    if i.operation == "icmp":
        if way in ("eq", "ne"):
            return f"{_text(x)} {_ORDER[way]} {_text(y)}"
        a, b = (_signed(x), _signed(y)) if way[0] == "s" else (_text(x), _text(y))
        return f"{a} {_ORDER[way[1:]]} {b}"
    if way == "uno":
        if x is y:
            return f"{_text(x)} != {_text(x)}"
        return f"({_text(x)} != {_text(x)}) | ({_text(y)} != {_text(y)})"
    if way == "one":
        return f"({_text(x)} < {_text(y)}) | ({_text(x)} > {_text(y)})"
    if way[0] == "u" and way != "une":
        opposite = {"gt": "<=", "ge": "<", "lt": ">=", "le": ">"}[way[1:]]
        return f"!({_text(x)} {opposite} {_text(y)})"
    return f"{_text(x)} {_ORDER[way[1:]]} {_text(y)}"


def _called(i: Instruction) -> str:
    callee, *args = i.args
    _, name, _ = callee.text.split(".")
    end = "f" if i.type.text == "float" else ""
    return f"__builtin_{name}{end}({', '.join(map(_text, args))})"


def _expression(i: Instruction) -> str:
    if i.operation in _ARITHMETIC:
        x, y = map(_text, i.args)
        return f"{x} {_ARITHMETIC[i.operation]} {y}"
    if i.operation == "fneg":
        return f"-{_text(i.args[0])}"
    if i.operation in ("fcmp", "icmp"):
        return _compared(i)
    if i.operation == "select":
        c, x, y = map(_text, i.args)
        return f"chosen_{_short(i.type.text)}({c}, {x}, {y})"
    if i.operation == "bitcast":
        (x,) = i.args
        return f"{_short(x.type.text)}_as_{_short(i.type.text)}({_text(x)})"
    if i.operation in ("fpext", "fptrunc", "zext", "trunc"):
        return f"({_TYPES[i.type.text]}){_text(i.args[0])}"
    if i.operation == "sitofp":
        return f"({_TYPES[i.type.text]}){_signed(i.args[0])}"
    if i.operation == "call":
        return _called(i)
    if i.operation == "fast":
        return _text(i.args[1])
    if i.operation == "rare":
        rare, fast, *args = i.args
        call = f"{i.flags}({', '.join(map(_text, args))})"
        return call if isinstance(rare, ConstantOperand) and rare.value else f"{_text(rare)} ? {call} : {_text(fast)}"
    raise NotImplementedError(f"{i!r}")


def _short(type: str) -> str:
    return {"float": "f32", "double": "f64"}.get(type, type)


def _needed(code: list[Instruction], root: Operand) -> list[Instruction]:
    """Those that ``root`` is made of, in order."""
    wanted, out = {id(root)}, []
    for i in reversed(code):
        if id(i) in wanted:
            out.append(i)
            args = i.args[1:2] if i.operation == "fast" else i.args
            if i.operation == "rare" and isinstance(i.args[0], ConstantOperand):
                args = i.args[2:]
            wanted.update(id(a) for a in args)
    return out[::-1]


def _function(
    name: str, kind: str, parameters: list[str], code: list[Instruction], root: Operand, args: list[str]
) -> list[str]:
    lines = [f"INLINE {kind} {name}({', '.join(f'{t} {n}' for t, n in zip(parameters, args))}) {{"]
    lines += [f"    {_TYPES[i.type.text]} {_text(i)} = {_expression(i)};" for i in _needed(code, root)]
    return [*lines, f"    return {_text(root)};", "}"]


def printed(name: str, t: str) -> list[str]:
    """The C of a row for one type, and its line in the table of loops."""
    code: list[Instruction] = []
    arity, expand = TABLE[name].arity, EXPANSIONS[TABLE[name].llvm["f"][1:]]
    args = ["x", "y"][:arity]
    type = LLVM[t]
    c, full = _TYPES[type.text], f"{name}_{t}"
    parameters = [Operand(f"%{a}", LLVM["f64" if hasattr(expand, "of_singles") else t]) for a in args]
    if t == "f32" and hasattr(expand, "of_singles"):
        # Computed in float64, in a loop of its own: loops on both widths don't become vector code.
        if expand.of_singles is expand.of_doubles:
            return [f"WIDE_{arity}({full}, {name}_f64_block)", ""]
        root = expand.of_singles(_Scalars(Names(), 1, code), "f64", *parameters)
        lines = _function(f"{full}_wide", "double", ["double"] * arity, code, root, args)
        return [*lines, f"PLAIN_{arity}({full}_wide, double)", f"WIDE_{arity}({full}, {full}_wide_block)", ""]
    root = expand(_Scalars(Names(), 1, code), t, *parameters)
    if root.operation == "rarely":
        condition, usual, whole = root.args
        lines = []
        for end, kind, value in (("_slow", c, whole), ("_rare", "_Bool", condition), ("", c, usual)):
            lines += _function(f"{full}{end}", kind, [c] * arity, code, value, args)
        return [*lines, f"USUALLY_{arity}({full}, {c})", ""]
    rare = [i for i in code if i.operation == "rare" and not isinstance(i.args[0], ConstantOperand)]
    if rare:
        # The loop computes every element the fast way and puts the rare ones right behind it, so that it is vector code.
        lines = _function(f"{full}_slow", c, [c] * arity, code, root, args)
        (only,) = rare
        lines += _function(f"{full}_rare", "_Bool", [c] * arity, code, only.args[0], args)
        only.operation = "fast"
        lines += _function(full, c, [c] * arity, code, root, args)
        return [*lines, f"WITH_RARE_{arity}({full}, {c})", ""]
    lines = _function(full, c, [c] * arity, code, root, args)
    return [*lines, f"PLAIN_{arity}({full}, {c})", ""]


def text() -> str:
    names = rows()
    lines = [HEAD]
    for name in names:
        for t in ("f64", "f32"):
            lines += printed(name, t)
    lines += ["#define ELEMENT_LOOPS(ROW) \\"]
    lines += [f"    ROW({name}, {TABLE[name].arity})" + (" \\" if name != names[-1] else "") for name in names]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where the file is another")
    check = parser.parse_args().check
    wanted = text()
    if check:
        return int(not FILE.exists() or FILE.read_text() != wanted)
    FILE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
