"""Straight code assembled quickly: what nearly all captured code is, instructions without jumps or blocks.

:func:`straight` writes the code object itself (instructions, inline caches, line table); for anything it doesn't know it gives None, and the
``bytecode`` library assembles. Formats: CPython's Objects/locations.md (line table) and dis (caches, arguments).
"""

from __future__ import annotations

import dis
import functools
import types
from typing import Any

from bytecode import CellVar, FreeVar, Instr
from bytecode.instr import UNSET

from .versions import JUMPS, PY312, PY313

__all__ = ["Op", "instrs", "straight"]


class Op:
    """An instruction as captured code is first written: unchecked and without a place, which takes a fifth of the library's time."""

    __slots__ = ("arg", "name")
    location = None

    def __init__(self, name: str, *arg):
        self.name, self.arg = name, arg[0] if arg else UNSET

    def instr(self) -> Instr:
        return Instr(self.name) if self.arg is UNSET else Instr(self.name, self.arg)


def instrs(code: list) -> list:
    """The code for the library."""
    return [i.instr() if type(i) is Op else i for i in code]


_NO_COLUMNS, _COLUMNS = 13, 14  # kinds of entries in a line table
_CONSTANT = frozenset(dis.hasconst)
_LOCAL = frozenset(dis.haslocal)
_FREE = frozenset(dis.hasfree)
_NAME = frozenset(dis.hasname)
_ENUMS = frozenset({"BINARY_OP", "COMPARE_OP", "IS_OP", "CONTAINS_OP"})  # arguments that the library has types for


_STRAIGHT = {name: opcode for name, opcode in dis.opmap.items() if opcode not in JUMPS and name not in _ENUMS}


@functools.cache
def _caches(opcode: int) -> bytes:
    """The cache behind an instruction, empty."""
    table: Any = dis._inline_cache_entries
    return bytes(2 * (table.get(dis.opname[opcode], 0) if isinstance(table, dict) else table[opcode]))


class _Table:
    """Objects by number, in the order in which they are asked for; constants by identity."""

    def __init__(self, first=()):
        self.items = list(first)
        self.number = {x: i for i, x in enumerate(first)}

    def name(self, x: str) -> int:
        i = self.number.get(x)
        if i is None:
            i = self.number[x] = len(self.items)
            self.items.append(x)
        return i

    def constant(self, x: Any) -> int:
        i = self.number.get(id(x))
        if i is None:
            i = self.number[id(x)] = len(self.items)
            self.items.append(x)
        return i


class _Tables:
    """The names and constants of a code object, and its rows: opcodes with their arguments."""

    def __init__(self, argnames: list[str]):
        self.variables, self.constants, self.names = _Table(argnames), _Table(), _Table()
        self.constants.constant(None)  # a first constant that is a text would be the docstring
        self.rows: list[tuple[int, Any]] = []
        self.cells: list[int] = []
        """Rows whose argument is a cell, known when all locals are."""

    def add(self, i) -> bool:
        """Enter an instruction; False for a rare one, a jump or a block."""
        if type(i) is not Op and type(i) is not Instr:
            return False
        name, arg = i.name, i.arg
        opcode = _STRAIGHT.get(name)
        if opcode is None:
            return False
        kind, number = type(arg), None
        if opcode < dis.HAVE_ARGUMENT if not PY313 else opcode not in dis.hasarg:
            number = 0
        elif kind is CellVar or kind is FreeVar:
            self.cells.append(len(self.rows))
            number = arg
        elif opcode in _CONSTANT:
            number = self.constants.constant(arg)
        elif opcode in _LOCAL:
            number = self.variables.name(arg) if kind is str else None
        elif opcode in _NAME:
            number = self._name(name, arg)
        elif kind is int and opcode not in _FREE:
            number = arg
        if number is None:
            return False
        self.rows.append((opcode, number))
        return True

    def _name(self, name: str, arg) -> int | None:
        flagged = name == "LOAD_GLOBAL" or (PY312 and name == "LOAD_ATTR")
        if type(arg) is tuple and len(arg) == 2 and flagged:
            return self.names.name(arg[1]) << 1 | bool(arg[0])
        plain = type(arg) is str and name not in ("LOAD_GLOBAL", "LOAD_SUPER_ATTR") and not flagged
        return self.names.name(arg) if plain else None

    def place_cells(self, cellvars: tuple[str, ...], freevars: tuple[str, ...]) -> None:
        slots = {n: k for k, n in enumerate(self.variables.items)}
        for n in (*(c for c in cellvars if c not in slots), *freevars):
            slots[n] = len(slots)
        for k in self.cells:
            opcode, var = self.rows[k]
            self.rows[k] = opcode, slots[var.name]

    def code(self) -> tuple[bytes, list[int], int]:
        """(bytecode, the length of each row in units, the greatest depth of the stack)."""
        code, depth, deepest = bytearray(), 0, 0
        lengths: list[int] = []
        for opcode, arg in self.rows:
            start = len(code)
            if arg > 0xFF:
                for shift in (24, 16, 8):
                    if arg >> shift:
                        code += bytes((dis.EXTENDED_ARG, (arg >> shift) & 0xFF))
            code.append(opcode)
            code.append(arg & 0xFF)
            code += _caches(opcode)
            lengths.append((len(code) - start) // 2)
            depth += _effect(opcode, arg) if opcode in _TAKES else _effect(opcode)
            if depth > deepest:
                deepest = depth
        return bytes(code), lengths, deepest


def straight(
    body: list, line: int, argnames: list[str], cellvars: tuple[str, ...], freevars: tuple[str, ...], extra: int
) -> dict[str, Any] | None:
    """Fields of the code object (for ``code.replace``) that runs ``body``, None when it has jumps, blocks or rare instructions. ``line``: of
    instructions without a location; ``extra``: stack kept free beyond what is used."""
    tables = _Tables(argnames)
    if not all(map(tables.add, body)):
        return None
    tables.place_cells(cellvars, freevars)
    code, lengths, deepest = tables.code()
    return {
        "co_code": code,
        "co_consts": tuple(tables.constants.items),
        "co_names": tuple(tables.names.items),
        "co_varnames": tuple(tables.variables.items),
        "co_nlocals": len(tables.variables.items),
        "co_cellvars": tuple(cellvars),
        "co_freevars": tuple(freevars),
        "co_linetable": _lines(body, lengths, line),
        "co_exceptiontable": b"",
        "co_stacksize": deepest + 2 + extra,
    }


_effect = functools.lru_cache(maxsize=4096)(dis.stack_effect)
_TAKES = frozenset(dis.hasarg) if PY313 else frozenset(range(dis.HAVE_ARGUMENT, 256))


def _varint(n: int, out: bytearray) -> None:
    while n >= 64:
        out.append(0x40 | (n & 0x3F))
        n >>= 6
    out.append(n)


def _lines(body: list, lengths: list[int], line: int) -> bytes:
    """The line table, relative to ``line``."""
    out = bytearray()
    at = line
    k, n = 0, len(body)
    while k < n:
        where = body[k].location
        units = lengths[k]
        k += 1
        while k < n and (body[k].location is where or body[k].location == where):
            units += lengths[k]
            k += 1
        lineno = line if where is None or where.lineno is None else where.lineno
        whole = where is not None and None not in (where.end_lineno, where.col_offset, where.end_col_offset)
        while units > 0:
            part = min(units, 8)
            units -= part
            out.append(0x80 | (_COLUMNS if whole else _NO_COLUMNS) << 3 | (part - 1))
            delta = lineno - at
            _varint(((-delta) << 1 | 1) if delta < 0 else delta << 1, out)
            at = lineno
            if whole:
                _varint(where.end_lineno - lineno, out)
                _varint(where.col_offset + 1, out)
                _varint(where.end_col_offset + 1, out)
    return bytes(out)


def with_fields(like: types.CodeType, fields: dict[str, Any], name: str, argcount: int, flags: int) -> types.CodeType:
    """A code object of those fields at the place of ``like``."""
    qualname = like.co_qualname.rpartition(".")[0] + ("." if "." in like.co_qualname else "") + name
    return like.replace(
        co_name=name,
        co_qualname=qualname,
        co_argcount=argcount,
        co_kwonlyargcount=0,
        co_posonlyargcount=0,
        co_flags=flags,
        **fields,
    )
