"""What CPython's versions do differently in bytecode: comprehensions in their function's frame, calls with names, super(), formatting,
slices, fused instructions. Each program agrees with plain Python with a graph break at every place."""

import types

import pytest
from helpers import check

import flambeau as torch
from flambeau.dynamo.bytecode.instructions import decode
from flambeau.dynamo.bytecode.versions import PARTS, normal

X = torch.tensor([1.0, -2.0, 3.0])


def graph_break():
    torch._dynamo.graph_break()


def broken(v):
    graph_break()
    return v


def break_in_comprehension(x):
    i = 5
    a = [x * broken(i) for i in range(3)]
    return a, i


def break_in_nested_comprehension(x):
    return [[x * broken(i + j) for j in range(i)] for i in range(3)], {k: broken(x + k) for k in range(2)}


def variable_of_a_lambda(x):
    fs = [lambda: x * i for i in range(3)]
    graph_break()
    return [f() for f in fs]


def break_where_a_lambda_is_made(x):
    fs = []
    for n in range(2):
        fs += [broken(lambda: x * i + n) for i in range(2)]
    return [f() for f in fs]


def cell_outside_and_variable_inside(x):
    i = 7
    f = lambda: i  # noqa: E731
    a = [x + i for i in range(2)]
    graph_break()
    b = [(lambda: x - i)() for i in range(2)]
    i = 8
    return a, b, f()


def cell_here_local_there(x):
    a = [(lambda: i)() for i in range(2)]
    b = [broken(x * i) for i in range(2)]
    return a, b


def generator_in_comprehension(x):
    ys = [any(broken(a) > y for a in range(3)) for y in range(4)]
    return x, ys


def error_in_comprehension(x):
    i = "kept"
    try:
        [x / broken(1 // i) for i in (1, 0)]
    except ZeroDivisionError as e:
        return x, i, str(e)


def unbound_before(x):
    if x.sum() > 100:
        i = 1
    a = [broken(x + i) for i in range(2)]
    try:
        return a, i
    except UnboundLocalError as e:
        return a, str(e)


class Base:
    n = 3

    def go(self, x, *, by=1):
        return x * by + self.n


class Child(Base):
    @property
    def m(self):
        return super().n

    def go(self, x, *, by=2):
        graph_break()
        y = super().go(x, by=by)
        return broken(super()).go(y) + self.m

    def kept(self, x):
        f = lambda: self  # noqa: E731
        graph_break()
        return f() is self, super().go(broken(x))


def supers(x):
    return Child().go(x, by=3), Child().kept(x)


def names(x, a=1, *, b=2, **rest):
    f = broken
    g = lambda v, *, w=4, **r: v * w + len(r)  # noqa: E731
    return f(v=x) * a + b, g(x, w=2, z=1), g(*[x], **{"q": broken(1)}), rest


def formats(x):
    n = broken(3)
    return x, f"{n}{n!r:>4}{broken('a')!s}{n:0{n}d}", "%d" % broken(2)  # noqa: UP031


def slices(x):
    a = list(range(6))
    a[broken(1) : 3] = [9]
    return x[broken(0) : 2], a[: broken(2)], a[broken(3) :], a[1:2:1]


def truths(x):
    n = broken(0)
    a = not broken([])
    b = n or broken("") or broken("z")
    c = broken(1) < broken(2) < broken(3)
    while not n > 2 and broken(True):
        n += 1
    return x + n, a, b, c, x if n is None else 1, (x.sum() > 0) and not (x.sum() < 0)


def yields(x):
    def inner(n):
        got = yield broken(n)
        return got

    def outer():
        r = yield from inner(1)
        yield r, (yield from inner(broken(2)))

    g = outer()
    out = [next(g), g.send("s")]
    graph_break()
    try:
        out.append(g.send("t"))
        next(g)
    except StopIteration as e:
        out.append(e.value)
    return x, out


def stop_in_generator(x):
    def g():
        yield 1
        raise StopIteration(broken(3))

    try:
        return x, list(g())
    except RuntimeError as e:
        return x * 2, str(e)


PROGRAMS = [
    break_in_comprehension, break_in_nested_comprehension, variable_of_a_lambda, break_where_a_lambda_is_made,
    cell_outside_and_variable_inside, cell_here_local_there, generator_in_comprehension, error_in_comprehension, unbound_before,
    supers, names, formats, slices, truths, yields, stop_in_generator,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_plain(program):
    check(program, X, calls=3)


@pytest.mark.parametrize("program", PROGRAMS)
def test_decoded_alike(program):
    """The executor sees no instruction that is only one version's."""
    seen = {i.name for i in decode(program.__code__)}
    assert not seen & {*PARTS, "TO_BOOL", "LOAD_FAST_CHECK", "CALL_INTRINSIC_1", "POP_JUMP_FORWARD_IF_FALSE"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("LOAD_FAST_BORROW", "x", [("LOAD_FAST", "x")]),
        ("LOAD_FAST_BORROW_LOAD_FAST_BORROW", ("x", "y"), [("LOAD_FAST", "x"), ("LOAD_FAST", "y")]),
        ("LOAD_SMALL_INT", 3, [("LOAD_CONST", 3)]),
        ("NOT_TAKEN", None, [("NOP", None)]),
    ],
)
def test_names_of_3_14_on_paper(name, value, expected):
    """What docs/design/cpython-3.14.md calls rows."""
    found = normal(types.SimpleNamespace(opname=name, arg=3, argval=value))
    assert [(n, v) for n, _, v in found] == expected


def test_decoding_runs_no_code_of_constants():
    """Constants of resume functions are objects of the program; dis asks what it lists for its repr."""

    class Loud:
        def __repr__(self):
            raise AssertionError("asked")

    loud = Loud()
    code = (lambda: ("a constant", [])).__code__
    code = code.replace(co_consts=tuple(loud if c == "a constant" else c for c in code.co_consts))
    assert [i.argval for i in decode(code) if i.name == "LOAD_CONST"][:1] == [loud]
    called = compile("f(a=1)", "", "eval")
    assert [i.argval for i in decode(called)] == [i.argval for i in decode(called.replace(co_name="other"))]
