"""Numbers and texts of a program's own classes stay what they are through the functions that give them back, and operators on them are theirs;
iterators have no length; partials of partials, weak proxies and functions that a C module replaces look as they do plainly."""

import enum
import functools
import heapq
import operator
import statistics
import weakref

import numpy as np
import pytest
from programs import X, agree


class Int(int):
    pass


class Text(str):
    pass


class Reflected(int):
    def __radd__(self, other):
        return "mine"

    __rmul__ = __ror__ = __rxor__ = __rsub__ = __radd__


class Perm(enum.IntFlag):
    X = 1
    W = 2
    R = 4


def given(s):
    yield from s


def names(*values):
    return [type(v).__name__ for v in values]


def extremes(x):
    return names(
        min([Int(3), Int(2)]),
        max(Int(3), 4, Int(5)),
        max([Int(1)], default=0),
        min(Text("b"), Text("a")),
        min(1, Int(1)),
    )


def merged(x):
    rows = [[Int(3), Int(4)], [Int(1)]]
    for row in rows:
        for v in row:
            v.pair = (int(v), len(row))
    return [v.pair for v in heapq.merge(*rows)], names(*heapq.nlargest(2, rows[0])), names(*heapq.nsmallest(1, rows[0]))


def chosen(x):
    return names(statistics.mode([Int(1), Int(1)]), statistics.median_low([Int(1), Int(2)]), sum([], Int(2)))


def has_no_length(x):
    out = []
    for it in (
        given("123"),
        iter([1, 2]),
        map(abs, [1]),
        zip([1], [2]),
        reversed([1, 2]),
        enumerate("ab"),
    ):
        try:
            out.append(len(it))
        except TypeError as e:
            out.append(str(e))
        out.append(list(it))
    return out


def largest(x):
    return heapq.nlargest(2, given("123")), heapq.nsmallest(2, given("312")), heapq.nlargest(1, given("12"))


def shortened(x):
    """The list that is walked loses elements, before the loop is left to plain code and after."""
    out = []
    for n in (0, 1, 2):
        walked = [1, 2, 3, 4]
        for v in walked:
            out.append(v)
            del walked[n:]
            print(v)
            if n == 2:
                walked.append(5)
                n = 9
    return out


def partials(x):
    inner = functools.partial(max, 1)
    marked = functools.partial(max, 2)
    marked.note = "kept"
    outer, of_marked = functools.partial(inner, 3, key=abs), functools.partial(marked, 4)
    before = functools.partial(MADE, 5), functools.partial(MARKED, 6)
    return (
        outer.func is max, outer.args, sorted(outer.keywords), outer(-9), of_marked.func is marked, of_marked.args, of_marked(),
        before[0].func is max, before[0].args, before[1].func is MARKED, before[1].args,
    )  # fmt: skip


MADE, MARKED = functools.partial(max, 1), functools.partial(max, 1)
MARKED.note = "kept"


def of_modules(x):
    return heapq.heappush.__module__, heapq.nlargest.__module__, heapq.heappush.__name__


PROGRAMS = [extremes, merged, chosen, has_no_length, largest, shortened, partials, of_modules]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    agree(lambda C, T: C(lambda x: (program(x), x + 1))(X()))


OPERANDS = [Perm.X, Reflected(3), np.int64(3), np.float64(3), 3 + 0j, np.float32(3), True, Text("a"), None, (1,)]
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.or_, operator.xor, operator.eq, operator.ne, operator.ior, operator.lt,
]  # fmt: skip


@pytest.mark.parametrize("other", OPERANDS, ids=repr)
def test_operators_of_a_number_that_varies(other):
    """From the second value on ``i`` is symbolic."""

    def program(C, T):
        def every(i, x):
            out = []
            for f in OPERATORS:
                for a, b in ((i, other), (other, i)):
                    try:
                        r = f(a, b)
                        out.append((type(r).__name__, str(r)))
                    except TypeError:
                        out.append("refused")
            return out, x + 1

        f = C(every)
        return [f(i, X()) for i in (5, 3, 2, 6)]

    agree(program, ("eager",))


class Owner:
    a = 1


def test_weak_proxies():
    def program(C, T):
        def read(p, x):
            try:
                return p.a, x + 1
            except ReferenceError as e:
                return str(e), x + 2

        f, owner = C(read), Owner()
        p = weakref.proxy(owner)
        out = [f(p, X()), f(p, X())]
        del owner
        return [*out, f(p, X())]

    agree(program, ("eager",))
