"""Lists of operations: each rule beside central differences, and pullbacks of pullbacks."""

import numpy as np
import pytest

from flambeau import _runtime
from flambeau.loops.operations import ENTRY, NUMBERS, OperationList, pullback

POINTS = {"ACOSH": 1.7, "ASIN": 0.4, "ACOS": 0.4, "ATANH": 0.4}
NAMES = [n for n in _runtime.operation_names() if n not in ("LEAF", "EQ", "GT")]


def listed(*rows):
    """(operation, a, b) behind two leaves."""
    entries = np.zeros(3 + len(rows), ENTRY)
    for k, (name, a, b) in enumerate(rows):
        entries[3 + k] = (NUMBERS[name], a, b, 0, 0.0, 0.0)
    return OperationList(entries)


LEAVES = [np.array([1], np.uint32), np.array([2], np.uint32)]


def value(program, x, y, number=-1, more=()):
    return program.values([(LEAVES[0], x), (LEAVES[1], y), *more])[number]


@pytest.mark.parametrize("name", NAMES)
def test_each_rule(name):
    x, y, h = POINTS.get(name, 0.7), 0.45, 1e-6
    if name in ("SCALED", "WHEN", "UNLESS"):
        x = 1.0 if name != "UNLESS" else 0.0
    program = listed((name, 1, 2))
    seeds = [program.leaves(1)]
    found = pullback(program, [np.array([3], np.uint32)], seeds, LEAVES)
    got = [value(program, x, y, found[k][0], [(seeds[0], 1.0)]) for k in range(2)]
    want = [
        0.0 if name in ("WHEN", "UNLESS") else (value(program, x + h, y, 3) - value(program, x - h, y, 3)) / (2 * h),
        (value(program, x, y + h, 3) - value(program, x, y - h, 3)) / (2 * h),
    ]
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8)


def test_pullbacks_of_pullbacks():
    """x * x * y + sin(x): slopes of orders one to four."""
    program = listed(("MUL", 1, 1), ("MUL", 3, 2), ("SIN", 1, 0), ("ADD", 4, 5))
    x, y = 0.8, 1.3
    out, given = [np.array([6], np.uint32)], []
    for want in (2 * x * y + np.cos(x), 2 * y - np.sin(x), -np.cos(x), np.sin(x)):
        seed = program.leaves(1)
        given.append((seed, 1.0))
        out = pullback(program, out, [seed], LEAVES)[:1]
        np.testing.assert_allclose(value(program, x, y, out[0][0], given), want, rtol=1e-12)


def test_nothing_is_multiplied_by_a_cotangent_of_zero():
    program = listed(("LOG", 1, 0), ("WHEN", 2, 3))  # of -1, which isn't chosen
    seed = program.leaves(1)
    (slope, _) = pullback(program, [np.array([4], np.uint32)], [seed], LEAVES)
    assert value(program, 0.0, 0.0, slope[0], [(seed, 1.0)]) == 0.0


@pytest.mark.parametrize("bad", [(NUMBERS["SIN"], 9, 0), (NUMBERS["SIN"], 1, 1), (999, 0, 0)])
def test_what_is_no_list_is_refused(bad):
    entries = np.zeros(2, ENTRY)
    entries[1] = (*bad, 0, 0.0, 0.0)
    with pytest.raises(ValueError, match="no list of operations"):
        OperationList(entries).values([])
