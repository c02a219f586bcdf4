"""The one table of instructions: what CPython 3.11, 3.12 and 3.13 write, and the names that everything else here uses.

The executor, the break logic and the loop compiler see *normal* instructions, which are those of 3.11 with directionless jumps, plus what
later versions added with a meaning of its own (BINARY_SLICE, LOAD_FAST_AND_CLEAR, LOAD_SUPER_ATTR, CALL_KW, ...). :func:`normal` reads a real
instruction, :func:`real` writes a normal one; both are no-ops for what is the same everywhere. An instruction of two (LOAD_FAST_LOAD_FAST,
RETURN_CONST) is two normal ones, and :func:`split` takes it apart in code that is assembled again, so that both count alike.

Instruction semantics: https://docs.python.org/3.13/library/dis.html#python-bytecode-instructions
"""

from __future__ import annotations

import dis
import sys

from bytecode import BinaryOp, Compare, Instr

__all__ = [
    "ASKS",
    "BREAKABLE",
    "FOR_END",
    "JUMPS",
    "NULL_FIRST",
    "PY312",
    "PY313",
    "normal",
    "original",
    "real",
    "split",
]

PY312, PY313 = sys.version_info >= (3, 12), sys.version_info >= (3, 13)
PY314 = sys.version_info >= (3, 14)  # on paper: see docs/design/cpython-3.14.md
NULL_FIRST = not PY313  # the NULL (or self) of a call lies below the callable; above it since 3.13
FOR_END = (
    ("END_FOR", "POP_ITER") if PY314 else ("END_FOR", "POP_TOP") if PY313 else ("END_FOR",) if PY312 else ()
)  # what the target of FOR_ITER starts with

# An instruction of two parts: the names of the parts. A tuple as argument is divided, any other belongs to the first part.
PARTS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
    "RETURN_CONST": ("LOAD_CONST", "RETURN_VALUE"),
}
# Names that differ without a difference in meaning.
SAME = {
    "LOAD_FAST_CHECK": "LOAD_FAST",  # our LOAD_FAST always looks
    "LOAD_FAST_BORROW": "LOAD_FAST",
    "LOAD_SMALL_INT": "LOAD_CONST",
    "NOT_TAKEN": "NOP",
    **{
        f"POP_JUMP_{way}_IF_{what}": f"POP_JUMP_IF_{what}"
        for way in ("FORWARD", "BACKWARD")
        for what in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}
INTRINSICS = {3: "STOPITERATION_ERROR", 4: "ASYNC_GEN_WRAP", 5: "UNARY_POSITIVE", 6: "LIST_TO_TUPLE"} if PY312 else {}
INTRINSICS_2 = {1: "PREP_RERAISE_STAR"} if PY312 else {}
SUBSCRIPT = 26 if PY314 else None  # the argument of BINARY_OP that stands for x[i]
# What asks for the truth by itself, as it did before 3.13: a TO_BOOL in front says nothing more. Elsewhere it is ``not not``.
ASKS = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT")
JUMPS = frozenset(dis.hasjrel + dis.hasjabs)
# Normal instructions that may run alone between captured code: name -> (values popped, values pushed), given the argument. Behind a break at any
# other one the rest of the frame runs plainly.
BREAKABLE = {
    "BEFORE_ASYNC_WITH": lambda a: (1, 2),
    "BEFORE_WITH": lambda a: (1, 2),
    "BINARY_OP": lambda a: (2, 1),
    "BINARY_SLICE": lambda a: (3, 1),
    "BINARY_SUBSCR": lambda a: (2, 1),
    "BUILD_CONST_KEY_MAP": lambda a: (a + 1, 1),
    "BUILD_LIST": lambda a: (a, 1),
    "BUILD_MAP": lambda a: (2 * a, 1),
    "BUILD_SET": lambda a: (a, 1),
    "BUILD_STRING": lambda a: (a, 1),
    "CALL": lambda a: (a + 2, 1),
    "CALL_KW": lambda a: (a + 3, 1),
    "CALL_FUNCTION_EX": lambda a: (3 + (a & 1), 1),
    "CHECK_EXC_MATCH": lambda a: (1, 1),
    "COMPARE_OP": lambda a: (2, 1),
    "CONTAINS_OP": lambda a: (2, 1),
    "CONVERT_VALUE": lambda a: (1, 1),
    "DELETE_ATTR": lambda a: (1, 0),
    "DELETE_FAST": lambda a: (0, 0),
    "DELETE_GLOBAL": lambda a: (0, 0),
    "DELETE_SUBSCR": lambda a: (2, 0),
    "DICT_MERGE": lambda a: (1, 0),
    "DICT_UPDATE": lambda a: (1, 0),
    "FORMAT_SIMPLE": lambda a: (1, 1),
    "FORMAT_VALUE": lambda a: (1 + ((a & 4) == 4), 1),
    "FORMAT_WITH_SPEC": lambda a: (2, 1),
    "GET_AITER": lambda a: (1, 1),
    "GET_ANEXT": lambda a: (0, 1),
    "GET_ITER": lambda a: (1, 1),
    "GET_LEN": lambda a: (0, 1),
    "IMPORT_FROM": lambda a: (0, 1),
    "IMPORT_NAME": lambda a: (2, 1),
    "IS_OP": lambda a: (2, 1),
    "LIST_EXTEND": lambda a: (1, 0),
    "LOAD_ATTR": lambda a: (1, 1),
    "LOAD_BUILD_CLASS": lambda a: (0, 1),
    "LOAD_METHOD": lambda a: (1, 2),
    "LOAD_SUPER_ATTR": lambda a: (3, 1),
    "LOAD_SUPER_METHOD": lambda a: (3, 2),
    "MAP_ADD": lambda a: (2, 0),
    "MATCH_CLASS": lambda a: (3, 1),
    "MATCH_KEYS": lambda a: (0, 1),
    "MATCH_MAPPING": lambda a: (0, 1),
    "MATCH_SEQUENCE": lambda a: (0, 1),
    "POP_TOP": lambda a: (1, 0),
    "RAISE_VARARGS": lambda a: (a, None),
    "RERAISE": lambda a: (1, None),
    "SET_ADD": lambda a: (1, 0),
    "SET_UPDATE": lambda a: (1, 0),
    "STORE_ATTR": lambda a: (2, 0),
    "STORE_FAST": lambda a: (1, 0),
    "STORE_GLOBAL": lambda a: (1, 0),
    "STORE_SLICE": lambda a: (4, 0),
    "STORE_SUBSCR": lambda a: (3, 0),
    "UNARY_INVERT": lambda a: (1, 1),
    "UNARY_NEGATIVE": lambda a: (1, 1),
    "TO_BOOL": lambda a: (1, 1),
    "UNARY_NOT": lambda a: (1, 1),
    "UNARY_POSITIVE": lambda a: (1, 1),
    "UNPACK_EX": lambda a: (1, (a & 0xFF) + 1 + (a >> 8)),
    "UNPACK_SEQUENCE": lambda a: (1, a),
    "WITH_EXCEPT_START": lambda a: (0, 1),
}


def normal(i: dis.Instruction) -> list[tuple[str, int | None, object]]:
    """(name, arg, argval) of each normal instruction that ``i`` is."""
    name, arg, value = i.opname, i.arg, i.argval
    if name == "BINARY_OP" and arg == SUBSCRIPT:
        return [("BINARY_SUBSCR", None, None)]
    parts = PARTS.get(name)
    if parts is not None:
        values = value if isinstance(value, tuple) and name != "RETURN_CONST" else (value, None)
        return [(part, None, v) for part, v in zip(parts, values)]
    if PY312:
        if name == "LOAD_ATTR" and arg & 1:
            return [("LOAD_METHOD", arg, value)]
        if name == "LOAD_SUPER_ATTR" and arg & 1:
            return [("LOAD_SUPER_METHOD", arg, value)]
        if name == "CALL_INTRINSIC_1":
            return [(INTRINSICS.get(arg, name), arg, value)]
        if name == "CALL_INTRINSIC_2":
            return [(INTRINSICS_2.get(arg, name), arg, value)]
        if name == "COMPARE_OP":
            value = str(value).removeprefix("bool(").removesuffix(")")
    return [(SAME.get(name, name), arg, value)]


def real(name: str, *arg, make=Instr) -> list:
    """The instructions of this version for a normal one that captured code is made of, by ``make(name, arg)``."""
    if name == "PRECALL" and PY312:
        return []
    if PY312 and name in ("LOAD_ATTR", "LOAD_METHOD"):
        return [make("LOAD_ATTR", (name == "LOAD_METHOD", arg[0]))]
    if PY313:
        if name == "LOAD_CLOSURE":
            return [make("LOAD_FAST", *arg)]
        if name == "MAKE_FUNCTION":
            flags = [Instr("SET_FUNCTION_ATTRIBUTE", bit) for bit in (8, 4, 2, 1) if arg[0] & bit]
            return [Instr("MAKE_FUNCTION"), *flags]
    if PY312 and name in ("LIST_TO_TUPLE", "UNARY_POSITIVE"):
        return [Instr("CALL_INTRINSIC_1", next(k for k, v in INTRINSICS.items() if v == name))]
    return [make(name, *arg)]


def split(i: Instr) -> list[Instr]:
    """An assembler's instruction as its parts."""
    parts = PARTS.get(i.name)
    if parts is None:
        return [i]
    values = ((i.arg,), ()) if i.name == "RETURN_CONST" else ((a,) for a in i.arg)
    return [Instr(part, *v, location=i.location) for part, v in zip(parts, values)]


def original(i) -> list[Instr]:
    """An ``Inst`` of the original code (no jump, no cell) as this version writes it."""
    name = i.name
    if name == "LOAD_SUPER_ATTR":
        return [Instr(name, (bool(i.arg & 1), bool(i.arg & 2), i.argval))]
    if i.opname in PARTS or name in ("LOAD_FAST", "STORE_FAST", "LOAD_CONST", "LOAD_ATTR", "LOAD_METHOD"):
        return real(name, *(() if name == "RETURN_VALUE" else (i.argval,)))
    name = i.opname
    if name == "BINARY_OP":
        return [Instr(name, BinaryOp(i.arg))]
    if name == "COMPARE_OP":
        return [Instr(name, Compare((i.arg >> 5) | (i.arg & 16) if PY313 else i.arg >> 4 if PY312 else i.arg))]
    if i.arg is None:
        return [Instr(name)]
    if name == "LOAD_GLOBAL":
        return [Instr(name, (bool(i.arg & 1), i.argval))]
    if i.opcode in dis.haslocal or i.opcode in dis.hasname:
        return [Instr(name, i.argval)]
    return [Instr(name, i.arg)]
