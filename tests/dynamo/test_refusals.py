"""What the interpreter refuses of builtin values, and comparisons and texts of containers, in one graph: the same values and the same words of errors as
in plain Python, with numbers that vary from call to call."""

import collections

import pytest
from flambeau._dynamo import reset

import flambeau as torch
from flambeau.compiler import compile

ONE, TWO = "%s", "%s|%s"
P = collections.namedtuple("P", "a")


def attempts(*ways):
    """What each gives, or says."""
    out = []
    for way in ways:
        try:
            out.append(way())
        except (TypeError, KeyError, IndexError) as e:
            out.append((type(e).__name__, str(e)))
    return out


def stored(v, key):
    v[key] = 1


def removed(v, key):
    del v[key]


def refusals(x, v):
    return x + 1, attempts(
        lambda: stored(v, "q"),
        lambda: stored(v, None),
        lambda: removed(v, "q"),
        lambda: removed(v, 5),
        lambda: v["q"],
        lambda: v[1.5],
        lambda: v(),
    )


def keys(x, v):
    s = {1}
    return (
        x + 1,
        attempts(
            lambda: {v: 1},
            lambda: {v},
            lambda: hash(v),
            lambda: v in {1: 2},
            lambda: {1: 2}.get(v),
            lambda: {1: 3}[v],
            lambda: s.update([2, v]),
            lambda: s.add(v),
        ),
        sorted(s),
    )


def sets(x, n):
    a, b = {n, 1}, {x, n}
    t = n > 1
    return [
        *(a <= {1, n}, a < {1, n}, a >= {n}, a > {n}, a == {3, 1}, a != {2, 1}, frozenset([n]) == {n}),
        *({x} < b, b == {n, x}, {x} == {x + 0}, {n: 1}.keys() <= a, {n: x}.keys() == {n: 3}.keys()),
        *(b == 5, {x} == [x], [x] == (x,), {"a": x} == [x], [n] == {n}, "a" == [x], {} == [x]),
        *(b != 5, [x] == None, P(x) == (x,), slice(n) == (None, n, None), {"a": n} == {"a": 2}, t),  # noqa: E711
    ]


def views(x, n):
    d, e, s = {"a": n, "b": x}, {"b": x, "a": n, "c": 0}, {1, 5}
    one, two, same = {1: 2, 5: 7, 40: 2}, {1: 2, 5: 6, 3: 3, 8: 2}, {1: 2}.items()
    i, j = one.items(), two.items()
    return [
        *(d.items() <= e.items(), d.items() < d.items(), e.items() > d.items(), e.items() >= d.items()),
        *(d.items() == {"b": x, "a": n}.items(), d.items() != e.items(), i == {(1, 2)}, {(1, 2)} == same, {(1, 2)} < i),
        *(("a", n) in d.items(), ("b", x) in d.items(), ("a",) in d.items(), ["a", n] in d.items(), ("q", 1) in i),
        *(
            list(i & j),
            list(i | j),
            list(i - j),
            list(i & {(1, 2), (5, 6)}),
            list({(1, 2), (5, 6)} - i),
            list(i & [(1, 2)]),
        ),
        *(i.isdisjoint(j), i.isdisjoint([(1, 3)]), one.keys().isdisjoint(s), d.keys().isdisjoint("cd"), d.keys() == s),
        *attempts(lambda: i & 3, lambda: one.keys().isdisjoint(3)),
    ]


def sequences(x, n):
    q = n + 1
    return [
        *((n, q) < (2, 2), [n, q] <= [2, 3], (n,) < (n, q), (n, q) > (n,), [n] >= [n], [] < [n], [[n], 2] > [[2], q]),
        *(
            (n, "a") < (2, "b"),
            (n, x) < (n + 1, x),
            slice(n) < slice(q),
            slice(n) == slice(2),
            slice(n, q) != slice(2, 3),
        ),
        *attempts(lambda: (n, "a") < (2, 5)),
    ]


def slices(x, n):
    s = slice(n, None)
    return s.indices(10), slice(None, n).indices(4), [1, 2, 3, 4][s], slice(0, n + 3, 2).indices(n + 1), s.start + 1


def texts(x, n):
    errors = ValueError("q", n), KeyError("a"), KeyError(), OSError(2, "m"), StopIteration(n)
    return [
        *(
            TWO % (n, n),
            ONE % ((n, 2),),
            TWO % (n, [n]),
            repr([n, 2]),
            str((n,)),
            repr(slice(n)),
            repr([[n], 1]),
        ),
        *(f"{[n]}", f"{(n, 1)!r:>12}", "{} {}".format([n], n)),  # noqa: UP030, UP032
        *((repr(e), str(e), f"{e!r}", f"{e}") for e in errors),
    ]


def sizes(x, n):
    s = torch.Size([2, n])
    return x.new_zeros(s).shape, s.numel(), s[1], type(s), s + (n,), tuple(s), s == (2, n), torch.Size((n,)), len(s)


def held_by_itself(x, n):
    items, table = [n], {"n": n}
    items.append(items)
    table["t"] = table
    return items in items, items == [n, 2], len(items), table == {}, "t" in table, table["t"]["t"]["n"]


NOTHING = (1, 2.5, "ab", b"ab", (1, 2), [1, 2], {1}, frozenset([1]), range(3), slice(2), torch.Size([3]), None, {0: 1})


@pytest.mark.parametrize("value", NOTHING, ids=repr)
def test_refused(value):
    reset()
    f = compile(refusals, backend="eager", fullgraph=True)
    assert f(torch.ones(1), value)[1] == refusals(torch.ones(1), value)[1]


@pytest.mark.parametrize(
    "value",
    ([1], {1: 2}, ([1],), (1, {}), {2}, [torch.ones(1)]),
    ids=["list", "dict", "inner", "second", "set", "tensor"],
)
def test_no_keys(value):
    reset()
    assert compile(keys, backend="eager", fullgraph=True)(torch.ones(1), value)[1:] == keys(torch.ones(1), value)[1:]


@pytest.mark.parametrize(
    "program", [sets, views, sequences, slices, texts, sizes, held_by_itself], ids=lambda f: f.__name__
)
def test_numbers_that_vary(program):
    reset()
    f, x = compile(lambda x, n: (x + 1, program(x, n)), backend="eager", fullgraph=True), torch.ones(1)
    for n in (1, 2, 3, 2, 5):
        assert f(x, n)[1] == program(x, n)


def test_no_size_of_fractions():
    reset()
    f = compile(lambda x, n: torch.Size([n, 2.5]), backend="eager")
    with pytest.raises(TypeError, match="takes an iterable of 'int'"):
        f(torch.ones(1), 3)
