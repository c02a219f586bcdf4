"""Lists of scalar operations and their derivatives, of any order.

A :class:`OperationList` is a straight program: each entry is an operation on at most two earlier ones, or constants (csrc/runtime/operation_list.c
computes it). :func:`pullback` appends the reverse sweep as further entries, so that what comes out is a list again and can be differentiated again
(Griewank and Walther, Evaluating Derivatives, chapter 3). The rules are those of the tape (:class:`~.tape.Partials`), run on symbols once for each
operation; entries of one operation are appended together.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import _runtime
from ..inductor.assembly.instructions import ConstantOperand
from .tape import Partials

__all__ = ["ENTRY", "NUMBERS", "OperationList", "pullback"]

ENTRY = np.dtype([("op", "u4"), ("a", "u4"), ("b", "u4"), ("unused", "u4"), ("x", "f8"), ("y", "f8")])
NUMBERS = {name: k for k, name in enumerate(_runtime.operation_names())}
LEAF, ADD, SCALED = NUMBERS["LEAF"], NUMBERS["ADD"], NUMBERS["SCALED"]
_SYMBOLS = ("a", "b", "r")  # of a rule: the operands and the result


class OperationList:
    """``entries``: of dtype ENTRY; entry 0 stands for constants. Leaves are given their values."""

    def __init__(self, entries: np.ndarray):
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    def leaves(self, n: int) -> np.ndarray:
        """Append ``n`` leaves; their numbers."""
        first = len(self)
        self.entries = np.concatenate([self.entries, np.zeros(n, ENTRY)])
        return np.arange(first, first + n, dtype=np.uint32)

    def values(self, given: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Of all entries; ``given``: numbers of leaves and their values."""
        out = np.zeros(len(self))
        for numbers, values in given:
            out[numbers] = values
        out[0] = 0.0
        _runtime.compute_operations(np.ascontiguousarray(self.entries).view(np.uint8), out)
        return out


class _Symbols:
    """What rules write with: appends (operation, operand, operand); an operand is a symbol, a number, or the index of an earlier one as (index,)."""

    def __init__(self):
        self.made: list[tuple] = []

    def add(self, name: str, x, y=0.0):
        self.made.append((NUMBERS[name], _operand(x), _operand(y)))
        return (len(self.made) - 1,)

    def op(self, operation: str, x, y):
        return self.add({"fadd": "ADD", "fsub": "SUB", "fmul": "MUL", "fdiv": "DIV"}[operation], x, y)

    def neg(self, x):
        return self.add("NEG", x)

    def intrinsic(self, name: str, *xs):
        return self.add(name.upper(), *xs)

    def cmp(self, predicate: str, x, y):
        return self.add({"oeq": "EQ", "ogt": "GT"}[predicate], x, y)

    def select(self, condition, x, y):
        if _operand(x) == 0.0:
            return self.add("UNLESS", condition, y)
        assert _operand(y) == 0.0
        return self.add("WHEN", condition, x)

    def external(self, name: str, type, *xs):
        return self.add(name.upper(), *xs)


def _operand(x):
    return float(x.value) if isinstance(x, ConstantOperand) else float(x) if isinstance(x, int | float) else x


# Operation -> for each operand, what writes the partial derivative; the tape has those of functions.
_RULES = {
    "ADD": (lambda p, r, x, y: 1.0, lambda p, r, x, y: 1.0),
    "SUB": (lambda p, r, x, y: 1.0, lambda p, r, x, y: -1.0),
    "MUL": (lambda p, r, x, y: y, lambda p, r, x, y: x),
    "SCALED": (lambda p, r, x, y: y, lambda p, r, x, y: x),
    "DIV": (lambda p, r, x, y: p.over(1.0, y), lambda p, r, x, y: p.over(p.code.neg(p.over(x, y)), y)),
    "NEG": (lambda p, r, x: -1.0,),
    "FREM": (lambda p, r, x, y: 1.0, lambda p, r, x, y: p.whole_turns(x, y)),
    "WHEN": (None, lambda p, r, x, y: x),
    "UNLESS": (None, lambda p, r, x, y: p.less(1.0, x)),
}
_FLAT = frozenset(("LEAF", "EQ", "GT", "TRUNC"))  # whose derivatives are zero


@functools.cache
def _partial(op: int, which: int) -> tuple[list[tuple], object] | None:
    """(what is appended, the partial derivative: a symbol, a number or the index of one of these); None where it is zero."""
    name = _runtime.operation_names()[op]
    if name in _FLAT:
        return None
    symbols = _Symbols()
    partials = Partials(symbols, symbols.external)  # type: ignore[arg-type]
    if name in _RULES:
        rules = _RULES[name]
        rule = rules[which] if which < len(rules) else None
        if rule is None:
            return None
        slope = rule(partials, "r", "a", "b") if len(rules) == 2 else rule(partials, "r", "a")
    else:
        found = (
            partials.of(name.lower(), "r", "a", "b")
            if name.lower() in Partials.of_two
            else partials.of(name.lower(), "r", "a")
        )
        if which >= len(found):
            return None
        slope = found[which]()
    return symbols.made, _operand(slope)


def pullback(
    program: OperationList, outputs: list[np.ndarray], seeds: list[np.ndarray], wanted: list[np.ndarray]
) -> list[np.ndarray]:
    """Append the reverse sweep: the numbers of the entries that are the cotangents of ``wanted``, where those of ``outputs`` are ``seeds``. All are
    numbers of entries; 0 is a constant, or a cotangent of zero."""
    return _Pullback(program, outputs, seeds).cotangents(wanted)


class _Pullback:
    def __init__(self, program: OperationList, outputs: list[np.ndarray], seeds: list[np.ndarray]):
        self.program, self.entries, n = program, program.entries, len(program)
        targets = np.concatenate([o.reshape(-1) for o in outputs]).astype(np.int64)
        given = np.concatenate([s.reshape(-1) for s in seeds])
        reached = np.zeros(n, np.uint8)
        reached[targets] = 1
        _runtime.wanted_operations(np.ascontiguousarray(self.entries).view(np.uint8), reached)
        self.blocks = self._blocks(np.flatnonzero(reached[1:])[::-1] + 1, n + len(targets))
        # Contributions to cotangents in the order in which they are added: the seeds, then each block's.
        self.to = np.concatenate([targets, self.blocks["to"]])
        self.at = np.concatenate([np.arange(n, n + len(targets)), self.blocks["at"]])
        self.before, self.total = self._chains(n)
        new = np.zeros(self.size - n, ENTRY)
        new["op"][: len(targets)] = ADD
        new["a"][: len(targets)] = given
        new["b"][: len(targets)] = self.before[: len(targets)]
        self._write(new, n, len(targets))
        program.entries = np.concatenate([self.entries, new])

    def cotangents(self, wanted: list[np.ndarray]) -> list[np.ndarray]:
        return [self.total[w.astype(np.int64)] for w in wanted]

    def _blocks(self, numbers: np.ndarray, first: int) -> dict:
        """Where the entries go that carry the cotangent of each of ``numbers`` to its operands."""
        ops = self.entries["op"][numbers]
        lengths = np.zeros((2, len(NUMBERS)), np.int64)  # of what carries it to an operand
        for op in np.unique(ops):
            for k in range(2):
                rule = _partial(int(op), k)
                lengths[k, op] = 0 if rule is None else len(rule[0]) + 2
        long = [np.where(self.entries[s][numbers] != 0, lengths[k][ops], 0) for k, s in enumerate("ab")]
        ends = first + np.cumsum(long[0] + long[1])
        self.size = int(ends[-1]) if len(ends) else first
        begin = ends - long[0] - long[1]
        starts = np.stack([begin, begin + long[0]], 1)
        kept = np.stack(long, 1) > 0
        return {
            "of": np.repeat(numbers, 2).reshape(-1, 2)[kept],
            "operand": np.broadcast_to([0, 1], kept.shape)[kept],
            "start": starts[kept],
            "to": np.stack([self.entries["a"][numbers], self.entries["b"][numbers]], 1)[kept].astype(np.int64),
            "at": (starts + np.stack(long, 1) - 1)[kept],  # the entry that adds it
        }

    def _chains(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """(for each contribution the sum of those before it, for each entry the sum of all)."""
        order = np.argsort(self.to, kind="stable")
        to, at = self.to[order], self.at[order]
        follows = np.zeros(len(to), bool)
        follows[1:] = to[1:] == to[:-1]
        before = np.zeros(len(to), np.int64)
        before[order] = np.where(follows, np.concatenate([[0], at[:-1]]), 0)
        last = np.ones(len(to), bool)
        last[:-1] = ~follows[1:]
        total = np.zeros(n, np.uint32)
        total[to[last]] = at[last]
        total[0] = 0
        return before, total

    def _write(self, new: np.ndarray, n: int, seeds: int) -> None:
        blocks, ops = self.blocks, self.entries["op"][self.blocks["of"]]
        for op in np.unique(ops):
            for k in range(2):
                rule = _partial(int(op), k)
                mine = np.flatnonzero((ops == op) & (blocks["operand"] == k))
                if rule is None or not len(mine):
                    continue
                made, slope = rule
                of, start = blocks["of"][mine], blocks["start"][mine]
                for j, (operation, x, y) in enumerate(made):
                    at = start - n + j
                    new["op"][at] = operation
                    self._put(new, at, "a", "x", x, of, start)
                    self._put(new, at, "b", "y", y, of, start)
                at = start - n + len(made)
                new["op"][at] = SCALED
                self._put(new, at, "a", "x", slope, of, start)
                new["b"][at] = self.total[of]
                new["op"][at + 1] = ADD
                new["a"][at + 1] = at + n
                new["b"][at + 1] = self.before[seeds + mine]

    def _put(self, new, at, number: str, constant: str, what, of, start) -> None:
        """An operand of new entries."""
        if isinstance(what, tuple):
            new[number][at] = start + what[0]
        elif what == "r":
            new[number][at] = of
        elif isinstance(what, str):
            new[number][at] = self.entries[what][of]
            new[constant][at] = self.entries["x" if what == "a" else "y"][of]
        else:
            new[constant][at] = what
