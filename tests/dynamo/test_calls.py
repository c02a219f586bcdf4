"""Calls as the interpreter checks them: what builtins refuse, when iterators ask for their arguments' iterators, what __init__ may return, super()."""

import functools
import itertools
import sys
import types

import pytest
from helpers import check

import flambeau as torch


class Declines:
    def __ipow__(self, other):
        return NotImplemented

    def __iadd__(self, other):
        return NotImplemented

    def __add__(self, other):
        return "added"


class Reflected:
    def __rpow__(self, other):
        return 1


class ReturnsTen:
    def __init__(self):
        return 10  # noqa: PLE0101


class New:
    def __new__(cls, k):
        return object.__new__(cls)

    def __init__(self, k):
        return k  # noqa: PLE0101


class Meta(type):
    def __call__(cls, *args):
        return "made", super().__call__(*args)


class Made(metaclass=Meta):
    def __init__(self, a):
        self.a = a


class Asks:
    def method(self):
        return super().__repr__

    def without():
        return super()


class BadIterable:
    def __iter__(self):
        raise ValueError("bad")


class Early(type):
    """Asked for its MRO before it has one."""

    def mro(cls):
        return [cls, *type.mro(cls)[1:]] if cls.__mro__ is None else type.mro(cls)


def ipow(t):
    a = Declines()
    a **= Reflected()
    return a, t + 1


def iadd(t):
    a = Declines()
    a += 1
    return a, t + 1


def sends_into_a_list(t):
    def g():
        yield from [t, 1]

    it = g()
    next(it)
    return it.send(2)


def changed_behind(t):
    over = [1, 2]
    pairs = itertools.pairwise(over)
    over.append(3)
    return t + 1, list(pairs)


class Equal:
    def __init__(self, d):
        self.d = d

    def __eq__(self, other):
        return self.d == other if other is not None else NotImplemented

    __hash__ = None


def unequal(t):
    out = [t + 1]
    for x in ({1}, [1], (1,), 3, "a", {1: 2}, None, Equal(3), Equal([1])):
        for e in (Equal({1}), Equal([1]), Equal(3), Equal("a")):
            out += [x != e, e != x, x == e, e == x]
    return out


CASES = {
    "!= where there is __eq__ only": unequal,
    "**= declined": ipow,
    "+= declined": iadd,
    "send to a list": sends_into_a_list,
    "a list that grows": changed_behind,
    "__init__ returns": lambda t: (ReturnsTen(), t + 1),
    "__init__ behind __new__ returns": lambda t: (New(3), t + 1),
    "__init__ behind __new__": lambda t: (type(New(None)), t + 1),
    "super() of a metaclass": lambda t: (Made(3)[1].a, t + 1),
    "super() of another object": lambda t: Asks.method(3),
    "super() of a cell": lambda t: Asks.method(types.CellType(2)),
    "super() without arguments": lambda t: Asks.without(),
    "super of three": lambda t: (t + 1, super(int, int, int)),
    "super of no class": lambda t: (t + 1, super(1, int)),
    "super of another class": lambda t: (t + 1, super(Declines, Asks()).__add__),
    "pairwise of None": lambda t: (t + 1, itertools.pairwise(None)),
    "pairwise of two": lambda t: (t + 1, itertools.pairwise("abc", 10)),
    "pairwise": lambda t: (t + 1, list(itertools.pairwise([t, 1, 2]))),
    "zip_longest of what raises": lambda t: (t + 1, itertools.zip_longest(BadIterable())),
    "zip_longest": lambda t: list(itertools.zip_longest([1], [1, 2], fillvalue=t)),
    "compress": lambda t: list(itertools.compress([t, 2, 3], iter([1, 0, 1]))),
    "int": lambda t: (t + 1, int(x=1)),
    "bool": lambda t: (t + 1, bool(x=1)),
    "list": lambda t: (t + 1, list(sequence=(0, 1))),
    "tuple": lambda t: (t + 1, tuple(sequence=(0, 1))),
    "range": lambda t: (t + 1, range(start=1)),
    "zip": lambda t: (t + 1, list(zip([1], foo=2))),
    "len": lambda t: (t + 1, len()),
    "getattr": lambda t: (t + 1, getattr(t)),
    "isinstance": lambda t: (t + 1, isinstance(t)),
    "enumerate": lambda t: (t + 1, list(enumerate([1], 2, 3))),
    "sorted": lambda t: (t + 1, sorted([3, 1], None)),
    "an iterator's attribute": lambda t: (t + 1, iter([1]).foo),
    "attributes of builtins": lambda t: [
        getattr(x, "foo", t) for x in (set(), frozenset(), slice(1), range(2), iter(()))
    ],
    "an attribute of a set": lambda t: (t + 1, {1}.foo),
    "a class without MRO": lambda t: (t + 1, Early("C", (), {}).__name__),
}


@pytest.mark.parametrize("name", CASES)
def test_calls(name):
    check(CASES[name], torch.ones(2))


def shadows(t):
    global AssertionError
    AssertionError = TypeError
    try:
        assert False, "hello"  # noqa: B011
    except BaseException as e:
        del AssertionError
        return str(e), t + 1


def contexts_in_a_cycle(t):
    try:
        try:
            raise ValueError(1)
        except ValueError as e:
            e.__context__ = e
            raise TypeError(2)  # noqa: B904
    except TypeError as e:
        return t + 1, type(e.__context__), e.__context__.__context__ is e.__context__


def of_classes(t, cls):
    return t + 1, cls.__dict__["__doc__"], functools.partial.__dict__["func"]


def bound_methods_of_c(t, p):
    return t + 1, p.__setstate__.__name__, p.__repr__.__name__, p.__reduce__()[0] is type(p)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "fn, args",
    [(shadows, ()), (contexts_in_a_cycle, ()), (of_classes, (type,)), (bound_methods_of_c, (functools.partial(len),))],
)
def test_what_is_made_anew_or_gone(fn, args):
    compiled = torch.compile(fn, backend="eager")
    t = torch.ones(2)
    for _ in range(2):
        want, got = fn(t, *args), compiled(t, *args)
        assert [x for x in want if type(x) is not torch.Tensor] == [x for x in got if type(x) is not torch.Tensor]
    assert sys.exc_info() == (None, None, None)
