"""What CPython's own tests showed: identity of tuples, errors of calls and matches, names of generators, managers that are none,
exceptions that existed before they were raised."""

import operator

import pytest
from helpers import check

import flambeau as torch
from flambeau.compiler import graph_break

X = torch.tensor([1.0, -2.0, 3.0])
ERROR = RuntimeError("made before")
PAIR, NAMES = (1, 2), frozenset("a")


def same_tuple(x, *rest):
    other = rest
    graph_break()
    return x + 1, other is rest, (lambda t: t)(PAIR) is PAIR, (lambda t: t)(NAMES) is NAMES


class Events:
    def __init__(self):
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.events.append(exc[0])
        graph_break()
        return True


def raise_what_there_is(x):
    with Events() as e:
        x = x * 2
        raise ERROR
    return x, e.events


class Nothing:
    pass


class Half:
    def __enter__(self):
        return self


def not_a_manager(x, cls=Nothing):
    with cls():
        x = x + 1
    return x


def wants(a, /, b, *, c):
    return a * b + c


class Wrong:
    __match_args__ = ("n", "n")
    n = 1


class Listed:
    __match_args__ = ["n"]


def match_twice(x):
    match Wrong():
        case Wrong(1, 1):
            return x + 1


def match_listed(x):
    match Listed():
        case Listed(1):
            return x + 1


def match_too_many(x):
    match Nothing():
        case Nothing(1):
            return x + 1


def named_generator(x):
    def g():
        yield x

    g.__name__, g.__qualname__ = "other", "some.other"
    made = g()
    return made.__name__, made.__qualname__, next(made)


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (same_tuple, (None, None)), (same_tuple, ()), (raise_what_there_is, ()), (not_a_manager, ()), (lambda x: not_a_manager(x, Half), ()),
        (lambda x: wants(x), ()), (lambda x: wants(a=x, b=2, c=1), ()), (lambda x: wants(x, 1, 2, c=3), ()), (lambda x: wants(x, 1, b=2, c=3), ()),
        (lambda x: wants(x, 1, c=1, d=2), ()), (lambda x: wants(x, 1), ()), (match_twice, ()), (match_listed, ()), (match_too_many, ()),
        (named_generator, ()),
    ],
)  # fmt: skip
def test_same_as_plain(program, args):
    check(program, X, *args, calls=2)


def equal_texts(x, given):
    a = b = "xyzpdq"
    c = a[:3] + b[3:]
    graph_break()
    kept = {"a": a, "c": c}
    graph_break()
    return (
        x + 1,
        a is b,
        a is c,
        c is "".join([c]),
        kept["a"] is kept["c"],
        kept["c"] is c,
        operator.is_not(a, c),
        given is a,
    )


def equal_numbers_and_phrases(x, n):
    a, s = 1000, "two words"
    b, t = n + 990, "two " + s[4:]
    c = float(a)
    graph_break()
    return x + 1, a is b, s is t, c is c, c is float(b)


def asked_in_one_graph(x):
    a = "xyzpdq"
    c = a[:3] + a[3:]
    return x + 1, operator.is_(a, c), operator.is_not(a, c), a is c, operator.is_(a, a)


@pytest.mark.parametrize(
    ("program", "args"),
    [(equal_texts, ("".join(["xyz", "pdq"]),)), (equal_numbers_and_phrases, (10,)), (asked_in_one_graph, ())],
)
def test_equal_constants_are_the_objects_that_plain_python_has(program, args):
    check(program, X, *args, calls=2)
