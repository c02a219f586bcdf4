"""Which sizes may vary: what a specification means, what violates it, and what a call is told."""

import re

import pytest

import flambeau as torch
from flambeau.base.shape_env import ConstraintViolationError
from flambeau.export import AdditionalInputs, Dim, ShapesCollection, dims, export

UserError = torch._dynamo.exc.UserError
B, C = Dim("b"), Dim("c")
x, y = torch.ones(6, 4), torch.ones(5, 4)


def branch(x):
    return x + 1 if x.shape[0] > 4 else x


# program, arguments, specification, error, words in it
REFUSED = [
    (
        lambda x: x.reshape(6, 4),
        (x,),
        ({0: B},),
        UserError,
        ("marked b", r"constant \(6\)", "test_constraints.py", "b = 6"),
    ),
    (lambda x: x.reshape(6, 4), (x,), ({0: Dim.DYNAMIC},), UserError, (r"x.size\(\)\[0\]", r"constant \(6\)")),
    (lambda x: x.reshape(-1, 2, 4), (x,), ({0: B},), UserError, ("b", r"% 2\) == 0", r"b = 2\*_b")),
    (branch, (x,), ({0: B},), UserError, ("x.size.*>= 5", r"b = Dim\('b', min=5\)", "test_constraints.py")),
    (lambda x, y: x.sum() + y.sum(), (x, y), ({0: B}, {0: B}), UserError, (r"y.size\(\)\[0\] = 5 is not equal", "= 6")),
    (lambda x, y: x + y, (x, x + 1), ({0: B}, {0: C}), UserError, ("must always be equal", "c = b")),
    (lambda x, y: x.sum() + y.sum(), (x, y), ({0: B}, {0: 2 * B}), UserError, (r"2\*b", "5")),
    (lambda x: x + 1, (torch.ones(1, 4),), ({0: B},), UserError, ("marked b", r"constant \(1\)")),
    (lambda x: x + 1, (torch.ones(1, 4),), ({0: Dim.DYNAMIC},), ValueError, ("0/1 specialized",)),
    (lambda x: x + 1, (x,), ({0: 5},), ConstraintViolationError, ("Static shape constraint of 5", "6")),
    (lambda x: x + 1, (x,), ({0: Dim("b", max=5)},), ConstraintViolationError, (r"6 not in range \[0, 5\]",)),
    (branch, (x,), ({0: Dim.DYNAMIC(min=2)},), ValueError, ("min bound of 2", "5 <=")),
    (lambda x: x + 1, (x,), ([B],), UserError, ("same length", "expected 2, but got 1")),
    (lambda x, y: x, (x, y), {"x": {0: B}}, UserError, ("top-level keys must be the arg names",)),
    (lambda x, y: x, (x, y), ({0: B},), UserError, ("has 2 elements, but `dynamic_shapes` has 1",)),
    (lambda x: x, (x,), {"x": "b"}, UserError, ("Unexpected input tensor shape",)),
    (lambda x: x, (x,), ({2: B},), UserError, ("Unexpected dimension 2",)),
    (lambda x, k: x, (x, 3), (None, {0: B}), UserError, ("Cannot associate shape",)),
    (lambda x, y: x, (x, x), ({0: Dim("b", max=9)}, {0: Dim("b", max=8)}), UserError, ("different definitions",)),
]


@pytest.mark.parametrize("row", range(len(REFUSED)))
def test_specifications_that_do_not_hold(row):
    program, args, spec, error, words = REFUSED[row]
    with pytest.raises(error) as e:
        export(program, args, dynamic_shapes=spec)
    for word in words:
        assert re.search(word, str(e.value)), str(e.value)


INF = float("inf")
# specification of one size, sizes it takes, sizes it refuses, the range that is told
TAKEN = [
    (Dim("b"), (0, 1, 2, 65), (), (0, INF)),
    (Dim("b", min=1, max=64), (1, 2, 64), (0, 65), (1, 64)),
    (Dim("b", min=2), (2, 7), (0, 1), (2, INF)),
    (Dim.DYNAMIC, (0, 1, 7), (), (0, INF)),
    (Dim.AUTO(min=3, max=10), (3, 10), (2, 11), (3, 10)),
    (3 * Dim("t"), (3, 9, 0), (4,), (0, INF)),
    (2 * Dim("t", max=4) + 2, (4, 10), (5, 12), (0, 4)),
]


@pytest.mark.parametrize("row", range(len(TAKEN)))
def test_ranges(row):
    spec, taken, refused, (lo, hi) = TAKEN[row]
    ep = export(lambda x: torch.softmax(x, -1) * x.shape[0], (x,), dynamic_shapes=({0: spec},))
    r = next(iter(ep.range_constraints.values()))
    assert (r.lower, r.upper) == (lo, hi)
    run = ep.module()
    for n in taken:
        assert run(torch.ones(n, 4)).shape == (n, 4)
    for n in refused:
        with pytest.raises(AssertionError, match=r"Guard failed.*\d"):
            run(torch.ones(n, 4))


def test_a_size_that_the_program_fixes_stays_static_under_auto():
    ep = export(lambda x: x.reshape(6, 4) + 1, (x,), dynamic_shapes=({0: Dim.AUTO},))
    assert not ep.range_constraints
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] == 6.*5"):
        ep.module()(y)


def test_what_the_program_asked_is_checked_with_its_line():
    ep = export(lambda x: x + 1 if x.shape[0] % 3 == 0 else x, (x,), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert ep.module()(torch.ones(9, 4)).shape == (9, 4)
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] % 3\) == 0 \(s0 = 7.*test_constraints.py"):
        ep.module()(torch.ones(7, 4))


@pytest.mark.parametrize("program", [lambda x: x + 1 if x.shape[0] == 1 else x - 1, lambda x: x.squeeze(0)])
def test_a_branch_on_the_size_one_is_not_taken_silently(program):
    ep = export(program, (x,), dynamic_shapes=({0: B},))
    assert torch.equal(ep.module()(y), program(y))
    with pytest.raises(AssertionError, match="s0 = 1"):
        ep.module()(torch.ones(1, 4))


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((torch.ones(6, 5), 3), AssertionError, r"x.size\(\)\[1\] == 4.*5"),
        ((torch.ones(6, 4, 1), 3), AssertionError, r"x.dim\(\) == 2.*3"),
        ((torch.ones(6, 4, dtype=torch.float64), 3), AssertionError, "x.dtype == torch.float32.*float64"),
        ((x, 4), AssertionError, r"k == 3 \(k = 4\)"),
        ((x, 3.0), AssertionError, "k == 3"),
        ((3, 3), TypeError, "x must be a tensor"),
        ((x,), ValueError, "exported input tree spec"),
    ],
)
def test_calls_that_do_not_fit(args, error, words):
    run = export(lambda x, k: x * k, (x, 3), dynamic_shapes=({0: B}, None)).module()
    with pytest.raises(error, match=words):
        run(*args)


def test_dims():
    a, b = dims("a", "b", max=4)
    assert (a.__name__, a.min, a.max, b.__name__) == ("a", 0, 4, "b")
    d = 2 * a + 1
    assert (d.__name__, d.min, d.max, repr(d)) == ("2*a + 1", 1, 9, "2*a + 1")
    for bad, error in (
        (lambda: Dim("1a"), AssertionError),
        (lambda: Dim("a", min=5, max=3), AssertionError),
        (lambda: a + b, NotImplementedError),
        (lambda: a * -1, NotImplementedError),
        (lambda: 1 - a, NotImplementedError),
        (lambda: a - 9, AssertionError),
        (lambda: a // 2, TypeError),
    ):
        with pytest.raises(error):
            bad()


def test_collections_of_shapes():
    shapes = ShapesCollection()
    shapes[x] = {0: B}
    assert shapes.dynamic_shapes(lambda p, q: p, (x,), {"q": [y]}) == {"p": {0: B}, "q": [None]}
    more = AdditionalInputs()
    more.add((torch.ones(9, 4), 3))
    fn = lambda p, k: p * k  # noqa: E731
    spec = more.dynamic_shapes(fn, (x, 3))
    assert spec["k"] is None and spec["p"][0] is Dim.DYNAMIC
    more.verify(export(fn, (x, 3), dynamic_shapes=spec))
