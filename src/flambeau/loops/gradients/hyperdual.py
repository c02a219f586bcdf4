"""Derivatives of higher order along a list of operations: hyper-dual numbers are carried forwards, their cotangents backwards.

A pullback of pullbacks, ``k`` in all, is one reverse sweep over numbers with ``k - 1`` nilpotent units e, each with e * e = 0 (Fike and Alonso,
The development of hyper-dual numbers for exact second-derivative calculations, 2011; that forward over reverse gives what reverse over reverse
does: Griewank and Walther, Evaluating Derivatives, chapter 5). Such a number has 2 ** (k - 1) parts: part number ``m`` belongs to the product of
the units whose bits are in ``m``.

Each operation has straight programs of scalar operations that make the parts of its result from those of its operands, and what the parts of
its cotangent add to those of the operands (csrc/runtime/operation_list.c runs them). They are written by the rules of the tape
(:class:`~.tape.Partials`), run on hyper-dual symbols. A part of zero, of a tangent or a cotangent, is not multiplied: what wasn't selected
never meets an infinity.

:class:`Levels` says which parts the arguments of the pullbacks are.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ... import _runtime
from ...inductor.assembly.instructions import ConstantOperand
from .operations import FLAT, NUMBERS, RULES
from .tape import Partials

__all__ = ["Levels", "backwards", "forwards"]

STEPS = 1 << 16  # of one operation's program
PIECE = 1 << 20  # operations between which signals are looked for
NOTHING = None  # a part that is zero whatever the operands are

Part = int | float | None  # of a symbol: a slot, or a constant
Symbol = tuple[Part, ...]


class TooManySteps(Exception):
    """An operation's program has more than STEPS."""


class _Program:
    """Steps (operation, slot or constant, slot or constant), each written once. ``slots``: how many are given."""

    def __init__(self, slots: int):
        self.slots, self.steps = slots, {}

    def add(self, name: str, x: Part, y: Part = NOTHING) -> Part:
        if x is NOTHING and name in ("MUL", "SCALED", "DIV", "NEG", "WHEN"):
            return NOTHING
        if y is NOTHING and name in ("MUL", "SCALED", "WHEN", "UNLESS"):
            return NOTHING
        if name in ("ADD", "SUB") and y is NOTHING:
            return x
        if name in ("ADD", "SUB") and x is NOTHING:
            return y if name == "ADD" else self.add("NEG", y)
        if name in ("MUL", "SCALED") and isinstance(x, float) and abs(x) == 1.0:
            return y if x == 1.0 else self.add("NEG", y)
        if len(self.steps) >= STEPS:
            raise TooManySteps
        return self.steps.setdefault((name, x, y), self.slots + len(self.steps))


class _Code:
    """What rules write with, on hyper-dual numbers of ``parts`` parts."""

    def __init__(self, program: _Program, parts: int):
        self.program, self.parts = program, parts

    def symbol(self, x) -> Symbol:
        if isinstance(x, tuple):
            return x
        value = float(x.value) if isinstance(x, ConstantOperand) else float(x)
        return (value or NOTHING, *[NOTHING] * (self.parts - 1))

    def apply(self, name: str, *given) -> Symbol:
        """The function of the numbers without the last unit, and along it the partial derivatives."""
        xs = [self.symbol(x) for x in given]
        if self.parts == 1:
            return (self.program.add(name, *(x[0] for x in xs)),)
        half = self.parts // 2
        code = _Code(self.program, half)
        low = [x[:half] for x in xs]
        result = code.apply(name, *low)
        along = code.symbol(0.0)
        for k, x in enumerate(xs):
            if any(part is not NOTHING for part in x[half:]):
                along = code.sum(along, code.carried(code.slope(name, k, result, low), x[half:]))
        return result + along

    def slope(self, name: str, k: int, result: Symbol, xs: list[Symbol]) -> Symbol:
        """The partial derivative by operand ``k``."""
        if name in FLAT:
            return self.symbol(0.0)
        partials = Partials(self, self.external)  # type: ignore[arg-type]
        if name in RULES:
            return self.symbol(RULES[name][k](partials, result, *xs))
        return self.symbol(partials.of(name.lower(), result, *xs)[k]())  # type: ignore[arg-type]

    def sum(self, x: Symbol, y: Symbol) -> Symbol:
        return tuple(self.program.add("ADD", a, b) for a, b in zip(x, y))

    def carried(self, slope: Symbol, x: Symbol) -> Symbol:
        """Their product; parts of ``x`` that are zero carry nothing."""
        if len(x) == 1:
            return (self.program.add("SCALED", slope[0], x[0]),)
        half = len(x) // 2
        (s, ds), (v, dv) = (slope[:half], slope[half:]), (x[:half], x[half:])
        return self.carried(s, v) + self.sum(self.carried(s, dv), self.carried(ds, v))

    # -- as Partials asks for it --
    def op(self, operation: str, x, y) -> Symbol:
        return self.apply({"fadd": "ADD", "fsub": "SUB", "fmul": "MUL", "fdiv": "DIV"}[operation], x, y)

    def neg(self, x) -> Symbol:
        return self.apply("NEG", x)

    def intrinsic(self, name: str, *xs) -> Symbol:
        return self.apply(name.upper(), *xs)

    def external(self, name: str, type, *xs) -> Symbol:
        return self.apply(name.upper(), *xs)

    def cmp(self, predicate: str, x, y) -> Symbol:
        return self.apply({"oeq": "EQ", "ogt": "GT"}[predicate], x, y)

    def select(self, condition, x, y) -> Symbol:
        (c, *_), x, y = condition, self.symbol(x), self.symbol(y)
        if all(part is NOTHING for part in x):
            return tuple(self.program.add("UNLESS", c, part) for part in y)
        assert all(part is NOTHING for part in y)
        return tuple(self.program.add("WHEN", c, part) for part in x)


@functools.lru_cache(1024)
def _written(parts: int, place: int, back: bool) -> tuple[list[tuple], list[Part]]:
    """(the steps of an operation, what they make), by its place among the programs: see operation_list.c."""
    op, which = divmod(place, 4)
    name = _runtime.operation_names()[op]
    program = _Program(4 * parts)
    code = _Code(program, parts)
    x, y, r, g = (tuple(range(k * parts, (k + 1) * parts)) for k in range(4))
    operands = [v if which >> k & 1 else (v[0], *[NOTHING] * (parts - 1)) for k, v in enumerate((x, y))]
    if name not in RULES and name.lower() not in Partials.of_two or name == "NEG":
        operands = operands[:1]
    made: list[Part] = []
    if back:
        for k in range(2):
            wanted = which >> k & 1 and k < len(operands)
            made += code.carried(code.slope(name, k, r, operands), g) if wanted else [NOTHING] * parts
    else:
        made += code.apply(name, *operands)
    return list(program.steps), made


class _Sweeps(NamedTuple):
    """The programs of some operations, as operation_list.c reads them."""

    steps: np.ndarray
    programs: np.ndarray
    makes: np.ndarray
    constants: np.ndarray


@functools.lru_cache(64)
def _sweeps(parts: int, places: frozenset[int]) -> _Sweeps:
    constants = {0.0: 0}
    written = {(place, back): _written(parts, place, back) for place in sorted(places) for back in (False, True)}
    for steps, made in written.values():
        for value in (*(v for _, *given in steps for v in given), *made):
            if isinstance(value, float):
                constants.setdefault(value, len(constants))
    given = 4 * parts

    def slot(v: Part) -> int:
        if not isinstance(v, int):
            return given + constants[v or 0.0]
        return v if v < given else v + len(constants)

    programs = np.full((2, 4 * len(NUMBERS), 3), -1, np.int64)
    all_steps: list[tuple[int, int, int]] = []
    makes: list[int] = []
    for (place, back), (steps, made) in written.items():
        programs[int(back), place] = len(all_steps), len(all_steps) + len(steps), len(makes)
        all_steps += [(NUMBERS[name], slot(x), slot(y)) for name, x, y in steps]
        makes += map(slot, made)
    return _Sweeps(
        np.array(all_steps, np.uint32).reshape(-1, 3), programs, np.array(makes, np.uint32), np.array(list(constants))
    )


def _swept(entries: np.ndarray, base: int, values: np.ndarray, cotangents: np.ndarray) -> None:
    parts = values.shape[1]
    places = 4 * entries["op"] + (entries["a"] != 0) + 2 * (entries["b"] != 0)
    found = frozenset(np.flatnonzero(np.bincount(places, minlength=1)).tolist())
    try:
        programs = _sweeps(parts, found)
    except TooManySteps:
        order = parts.bit_length()
        raise NotImplementedError(
            f"a derivative of order {order} of a native loop: an operation's takes more than {STEPS} steps"
        ) from None
    _runtime.sweep_operations(np.ascontiguousarray(entries).view(np.uint8), base, parts, values, cotangents, *programs)


def forwards(entries: np.ndarray, base: int, values: np.ndarray) -> None:
    """The rows of these operations, from ``base`` on, in ``values`` (rows of parts; row 0 is a constant's) from those of their operands."""
    for k in range(0, len(entries), PIECE):
        _swept(entries[k : k + PIECE], base + k, values, np.zeros(0))


def backwards(entries: np.ndarray, base: int, values: np.ndarray, cotangents: np.ndarray) -> None:
    """Add what goes from the rows of these operations in ``cotangents`` to those of their operands."""
    for k in reversed(range(0, len(entries), PIECE)):
        _swept(entries[k : k + PIECE], base + k, values, cotangents)


class Levels:
    """The arguments of ``k`` nested pullbacks as parts of the loop's operands and of its cotangents.

    Let f be the loop, c1 the cotangents of its results, and P1(x, c1) its pullback. P2(x, c1, c2) is the pullback of P1 where c2 are the cotangents
    of what it gives, that is, the gradient by (x, c1) of the slope of <c1, f(x)> along c2; P3 is the gradient of that function's slope along c3, by
    (x, c1, c2), and so on. So Pk is the gradient of the part with all units of <c1, f(x)>, where x and c1 have the directions of level j as
    their parts with unit j, which have parts themselves.

    ``variables``: arrays (elements, parts) of x, c1, ..., ck, each with all elements in a row.
    """

    def __init__(self, arrays: list[np.ndarray], levels: list[list[np.ndarray]]):
        self.order = len(levels)
        self.parts = 1 << (self.order - 1)
        self.variables = []
        for group in (arrays, *levels):
            made = np.zeros((sum(a.size for a in group), self.parts))
            made[:, 0] = np.concatenate([np.zeros(0), *(a.reshape(-1) for a in group)])
            self.variables.append(made)
        for level in range(self.order, 1, -1):
            for which, rows, without, along in self._directions(level):
                self.variables[which][:, along] = self.variables[level][rows][:, without]

    def _directions(self, level: int):
        """(number of a variable, rows of the level's directions that are its, parts without the level's unit, the same with it)."""
        bit, at = 1 << (level - 2), 0
        without = np.array([m for m in range(self.parts) if not m & bit])
        for which in range(level - 1):
            end = at + len(self.variables[which])
            yield which, slice(at, end), without, without | bit
            at = end

    def pulled_back(self, cotangents: np.ndarray, results: np.ndarray) -> list[np.ndarray]:
        """For x, c1, ..., c(k-1) what Pk gives, from the cotangents of x and the results, arrays (elements, parts)."""
        found = [cotangents[:, ::-1], results[:, ::-1]]  # the part that makes up all units
        for level in range(2, self.order):
            made = np.zeros_like(self.variables[level])
            for which, rows, without, along in self._directions(level):
                made[rows][:, without] = found[which][:, along]
            found.append(made)
        return [made[:, 0] for made in found[: self.order]]
