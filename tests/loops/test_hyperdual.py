"""Hyper-dual numbers through lists of operations: each rule beside central differences, and pullbacks of pullbacks."""

import math

import numpy as np
import pytest

from flambeau import _runtime
from flambeau.loops.gradients.hyperdual import Levels, _sweeps, backwards, forwards
from flambeau.loops.gradients.operations import ENTRY, FLAT, NUMBERS

POINTS = {"ACOSH": 1.7, "ASIN": 0.4, "ACOS": 0.4, "ATANH": 0.4}
OWN = {"SCALED", "WHEN", "UNLESS", "NONE"} | FLAT  # of the programs themselves: no loop lists them
NAMES = [n for n in _runtime.operation_names() if n not in OWN]
Y = 0.45


class Listed:
    """Operations (name, operand, operand) on x and y, numbers 1 and 2; a number that isn't whole is a constant."""

    def __init__(self, *rows):
        self.rows = rows

    def values(self, x, y):
        found, entries = [0.0, x, y], np.zeros(len(self.rows), ENTRY)
        for entry, (name, *operands) in zip(entries, self.rows):
            numbers = [n if isinstance(n, int) else 0 for n in operands] + [0] * (2 - len(operands))
            given = [found[n] if isinstance(n, int) else n for n in operands] + [0.0] * (2 - len(operands))
            entry["op"], (entry["a"], entry["b"]), (entry["x"], entry["y"]) = NUMBERS[name], numbers, given
            alone = np.array([entry])
            alone["a"], alone["b"] = 0, 0
            row = np.zeros((2, 1))
            forwards(alone, 1, row)
            found.append(row[1, 0])
        return entries, found

    def pulled_back(self, x, y, *levels):
        """Of the last operation: what goes to the arguments of each level but the last."""
        variables = Levels([np.array([x, y])], [[np.array(c, float)] for c in levels])
        rows = np.zeros((3 + len(self.rows), variables.parts))
        rows[1:3] = variables.variables[0]
        entries, _ = self.values(x, y)
        forwards(entries, 3, rows)
        cotangents = np.zeros_like(rows)
        cotangents[-1] = variables.variables[1][0]
        backwards(entries, 3, rows, cotangents)
        return variables.pulled_back(cotangents[1:3], rows[-1:])


@pytest.mark.parametrize("name", NAMES)
def test_each_rule(name):
    """Slopes of first order beside differences of values, of second beside differences of slopes, of third beside those."""
    x, h, program = POINTS.get(name, 0.7), 1e-5, Listed((name, 1, 2))
    unary = name.lower() not in ("pow", "atan2", "hypot", "fmod", "copysign", "add", "sub", "mul", "div", "frem")
    if unary:
        program = Listed((name, 1))

    def of_order(k):
        if k == 0:
            return lambda a, b: np.array([program.values(a, b)[1][-1]])
        levels = [[1.0], [0.8, -0.6], [0.3, 0.5, 0.7]][:k]
        return lambda a, b: np.concatenate(program.pulled_back(a, b, *levels))

    # The slope of what an order gives, along what the next order's cotangents ask of it.
    for k in range(3):
        f, along = of_order(k), [[1.0], [0.8, -0.6], [0.3, 0.5, 0.7]][k]
        got = of_order(k + 1)(x, Y)[:2]
        want = [
            along @ (f(x + h, Y) - f(x - h, Y)) / (2 * h),
            0.0 if unary else along @ (f(x, Y + h) - f(x, Y - h)) / (2 * h),
        ]
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("name", ["MUL", "DIV", "POW", "ATAN2", "HYPOT"])
def test_constants_have_no_slope(name, place):
    operands = [1, 1]
    operands[place] = 1.3
    program, h = Listed((name, *operands)), 1e-6
    got = program.pulled_back(0.7, Y, [1.0], [1.0, 0.0])[0]
    up, down = (program.pulled_back(0.7 + d, Y, [1.0])[0][0] for d in (h, -h))
    np.testing.assert_allclose(got, [(up - down) / (2 * h), 0.0], rtol=1e-7, atol=1e-9)


def test_pullbacks_of_pullbacks():
    """x * x * y + sin(x): slopes by x of orders one to five."""
    program = Listed(("MUL", 1, 1), ("MUL", 3, 2), ("SIN", 1), ("ADD", 4, 5))
    x, y, levels = 0.8, 1.3, [[1.0]]
    for want in (2 * x * y + math.cos(x), 2 * y - math.sin(x), -math.cos(x), math.sin(x), math.cos(x)):
        found = program.pulled_back(x, y, *levels)
        assert found[0][0] == pytest.approx(want, rel=1e-12)
        levels.append([1.0] + [0.0] * (sum(map(len, found)) - 1))


def test_what_goes_to_cotangents_is_linear():
    """A pullback's value is what its cotangents get back: <c2, P1> by c1 is the slope along c2."""
    program = Listed(("MUL", 1, 2), ("EXP", 3))
    _, by_c1 = program.pulled_back(0.5, 0.3, [7.0], [2.0, -1.0])
    e = math.exp(0.15)
    assert by_c1[0] == pytest.approx(e * (0.3 * 2.0 - 0.5), rel=1e-13)


def test_nothing_is_multiplied_by_a_part_of_zero():
    """The slopes of a root at 0 are infinite: nothing goes to it, nothing comes from it."""
    program = Listed(("SQRT", 1), ("ADD", 2, 2))
    assert program.pulled_back(0.0, 1.0, [1.0])[0].tolist() == [0.0, 2.0]
    program = Listed(("SQRT", 1), ("ADD", 3, 2))
    found = program.pulled_back(0.0, 1.0, [1.0], [0.0, 1.0])  # along y alone
    assert found[0].tolist() == [0.0, 0.0] and found[1].tolist() == [1.0]


def test_an_order_that_takes_too_many_steps_is_an_error():
    program = Listed(("POW", 1, 2))
    levels, n = [[1.0]], 2
    for _ in range(9):
        levels.append([1.0] * n)
        n *= 2
    with pytest.raises(NotImplementedError, match="a derivative of order .* of a native loop"):
        program.pulled_back(0.7, 0.4, *levels)


@pytest.mark.parametrize("bad", [(NUMBERS["SIN"], 9, 0), (NUMBERS["SIN"], 1, 1), (999, 0, 0), (0, 0, 0)])
def test_what_is_no_list_is_refused(bad):
    entries, good = np.zeros(1, ENTRY), np.zeros(1, ENTRY)
    entries[0], good[0] = (*bad, 0, 0.0, 0.0), (NUMBERS["SIN"], 0, 0, 0, 0.0, 0.0)
    programs = _sweeps(1, frozenset([4 * NUMBERS["SIN"]]))
    with pytest.raises(ValueError, match="no list of operations"):
        _runtime.sweep_operations(entries.view(np.uint8), 1, 1, np.zeros((2, 1)), np.zeros(0), *programs)
    with pytest.raises(ValueError, match="too little room"):
        _runtime.sweep_operations(good.view(np.uint8), 1, 1, np.zeros((1, 1)), np.zeros(0), *programs)
    wrong = programs._replace(steps=programs.steps + 99)
    with pytest.raises(ValueError, match="no list of operations"):
        _runtime.sweep_operations(good.view(np.uint8), 1, 1, np.zeros((2, 1)), np.zeros(0), *wrong)
