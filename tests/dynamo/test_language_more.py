"""Language and standard library: attributes of C objects, exceptions in generator managers, getters of the operator module, enumerations, heapq."""

import collections
import contextlib
import enum
import heapq
import itertools
import operator
import types

import numpy as np
import pytest
from programs import X, agree, attempt, graphs_of

import flambeau as torch
from flambeau.compiler import compile, wrap_numpy

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@contextlib.contextmanager
def manager(log, swallow=ValueError):
    log.append("in")
    try:
        yield 5
    except swallow:
        log.append("caught")
    finally:
        log.append("out")


@contextlib.contextmanager
def raises_another(log):
    try:
        yield
    except ValueError as e:
        raise KeyError("other") from e


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Indexed(type):
    def __getitem__(cls, i):
        return cls.base + i

    def __contains__(cls, i):
        return i > cls.base

    def __len__(cls):
        return 7


class WithIndex(metaclass=Indexed):
    base = 10

    def __class_getitem__(cls, i):
        raise AssertionError


class Generic:
    def __class_getitem__(cls, i):
        return (cls.__name__, i)


class Declining:
    """Leaves operators to what is beside it."""

    def __add__(self, other):
        return NotImplemented

    def __radd__(self, other):
        return "radd"

    def __lt__(self, other):
        return NotImplemented

    def __gt__(self, other):
        return "gt"

    def __eq__(self, other):
        return NotImplemented

    def __rsub__(self, other):
        return "rsub"


class Derived(Declining):
    pass


class Overriding(Declining):
    def __radd__(self, other):
        return "Overriding.radd"


class DecliningTensor(torch.Tensor):
    def __add__(self, other):
        return NotImplemented

    def __radd__(self, other):
        return "radd"


class OwnList(list):
    pass


class OwnDict(dict):
    pass


@program
def deques_rotate_by_integers(C, torch):
    def f(x, q, n):
        r = collections.deque([1, 2, 3], 5)
        return [attempt(v.rotate, n) for v in (q, r, collections.deque())], r, x + 1

    out = []
    for n in (2, -1, 10, True, "", "a", 2.5, None, [1], np.int64(2)):
        for q in (collections.deque([1]), collections.deque("abc")):
            out += [C(f)(X(), q, n), q]
    return out


@program
def objects_of_derived_classes_are_their_own(C, torch):
    def f(x, l, k):
        made = [
            collections.Counter("a") is collections.Counter("a"),
            operator.is_not(collections.Counter("a"), collections.Counter("a")),
            OwnList() is OwnList(),
            OwnDict() is OwnDict(),
            l is OwnList(),
            any(v is l for v in [OwnList(), OwnDict()]),
            l is k,
            l is l,
        ]
        return made, x + 1

    l = OwnList()
    return [C(f)(X(), l, OwnList()), C(f)(X(), l, l)]


@program
def operators_of_sets_called_by_name(C, torch):
    def f(x, s):
        names = ("__and__", "__or__", "__xor__", "__sub__")
        others = ([1, 2], (1,), {1: 2}, "ab", 3, None, {1: 2}.values(), {2, 3}, frozenset([2]))
        return [getattr(v, n)(o) for v in (s, {1, 2}, frozenset([1])) for n in names for o in others], x + 1

    return C(f)(X(), {1, 5})


@program
def numbers_of_combinations_are_looked_at_first(C, torch):
    def f(x):
        out = []
        for make in (itertools.combinations, itertools.permutations, itertools.combinations_with_replacement):
            for args in ((3, [1]), (None, "a"), ([1], -1), (3, 2), ([1, 2], 2)):
                out.append(attempt(lambda *a: list(make(*a)), *args))
        return out, x + 1

    return C(f)(X())


@program
def states_of_iterators(C, torch):
    def begun():
        it = (k for k in (1, 2))
        return next(it), it

    def whole(x, it):
        return list(it), it.gi_frame is None, bool(it.gi_running), x + 1

    def closed(x, it):
        it.close()
        return it.gi_frame is None, it.gi_yieldfrom, x + 1

    def behind_a_break(x, it):
        left = list(it)
        torch._dynamo.graph_break()
        return left, it.gi_frame is None, x + 1

    def made_inside(x):
        it = begun()[1]
        return it.gi_frame is None, list(it), it.gi_frame is None, it.__name__, x + 1

    def without_hash(x):
        return [
            v.__hash__ is None for v in (collections.deque(), {}, [1], set(), collections.OrderedDict(a=x), (1,))
        ], x + 1

    out = [C(f)(X(), begun()[1]) for f in (whole, closed, behind_a_break)]
    return [*out, C(made_inside)(X()), C(without_hash)(X())]


@program
def texts_of_missing_keys(C, torch):
    def f(x, d, k):
        out = []
        for missing in (
            lambda: d[k],
            lambda: d.pop(k),
            lambda: {1: x}[k],
            lambda: {1}.remove(k),
            lambda: d.__delitem__(k),
        ):
            try:
                missing()
            except KeyError as e:
                out.append((str(e), repr(e), f"{e}", e.args))
        return x + len(out), out

    return [C(f)(X(), {5: 6}, k) for k in ((1, 2), (), ((1,),), "a", 3, 2.5, frozenset([1]), None)]


def displays(x):
    out, d = [], [0]
    for k in (*d, *[1, 2], 3):
        out = [*out, k, *d]
        d = {*d, k}
    for k in [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        16,
        17,
        18,
        19,
        20,
        21,
        22,
        23,
        24,
        25,
        26,
        27,
        28,
        29,
        30,
        x.ndim,
    ]:
        out.append(k)
    return x + len(out), out, d


@program
def displays_around_loops(C, torch):
    return C(displays)(X())


@program
def reflected_methods_of_one_class(C, torch):
    """Python asks them for comparisons only."""
    a, b, c = Declining(), Derived(), Overriding()
    pairs = [(a, Declining()), (a, b), (b, a), (b, Derived()), (a, c), (c, a), (c, Overriding())]

    def f(x, p, q):
        ops = (operator.add, operator.iadd, operator.sub, operator.lt, operator.gt, operator.eq)
        return x + 1, [attempt(op, p, q) for op in ops]

    t = torch.ones(2).as_subclass(DecliningTensor)
    out = [C(f)(X(), p, q) for p, q in pairs]
    return out + [attempt(C(lambda p, q: p + q), p, q) for p, q in ((t, t), (X(), t), (t, 1), (1, t))]


@program
def namespace_attributes(C, torch):
    def f(x, o):
        del o.q
        o.r = x + 1
        return hasattr(o, "q"), o.r, vars(o)

    out = []
    for _ in range(2):
        o = types.SimpleNamespace(q=1)
        out += [C(f)(X(), o), o]
    return out


@program
def exception_in_manager(C, torch):
    def f(x, kind):
        log = []
        with manager(log) as v:
            x = x + v
            raise kind("e")
        return x, log

    def g(x):
        log = []
        try:
            with raises_another(log):
                raise ValueError("v")
        except KeyError as e:
            return x + 1, type(e.__cause__).__name__
        return x

    def h(x):
        with contextlib.suppress(KeyError, ValueError):
            raise KeyError("k")
        return x * 2

    f, g, h = C(f), C(g), C(h)
    return [attempt(f, X(), ValueError), attempt(f, X(), TypeError), attempt(f, X(), ValueError), g(X()), h(X())]


@program
def exit_stack(C, torch):
    def f(x):
        log = []
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, "callback")
            v = stack.enter_context(manager(log))
            x = x * v
        return x, log

    return [C(f)(X()), C(f)(X())]


@program
def getters(C, torch):
    class A:
        pass

    a = A()
    a.k, a.b = 2, A()
    a.b.c = 5
    made = operator.itemgetter(0, 1), operator.attrgetter("b.c", "k"), operator.methodcaller("sum", dim=0)

    def f(x, get, attr, call):
        first = operator.attrgetter("k")(a), operator.attrgetter("b.c")(a), operator.itemgetter(1)([1, x])
        rows = sorted([(2, 1), (1, 2)], key=operator.itemgetter(1))
        return first, get((x, 2)), attr(a), call(x), operator.methodcaller("mul", 2)(x), rows, operator.itemgetter(2)

    g = C(lambda x: f(x, *made)[:-1])
    out = [g(X()), g(X())]
    a.k = 7
    out.append(g(X()))
    return [*out, C(lambda x: (x, operator.itemgetter(1)))(X())[1]([3, 4])]


@program
def enumerations(C, torch):
    def f(x, c):
        names = [m.name for m in Color]
        return x * c.value, Color["GREEN"].name, names, len(Color), Color.RED in Color, Color(2).name

    return [C(f)(X(), Color.RED), C(f)(X(), Color.GREEN)]


@program
def metaclass_methods(C, torch):
    f = C(lambda x: (x + WithIndex[3], 11 in WithIndex, len(WithIndex), Generic[int][0]))
    return [f(X()), f(X())]


@program
def heaps(C, torch):
    def f(x):
        c = collections.Counter("aabc")
        return heapq.nlargest(2, [3, 1, 2]), heapq.nsmallest(1, ["bb", "a"], key=len), c.most_common(1), x + 1

    return [C(f)(X()), C(f)(X())]


@program
def bounded_deques(C, torch):
    def f(x, q):
        q.append(x + 1)
        q.appendleft(x * 2)
        q.rotate(1)
        q.extend([1, 2])
        q.extendleft([7])
        return list(q), q.maxlen, len(q), q[0], q.copy()

    def g(x):
        d = collections.deque(maxlen=2)
        for i in range(4):
            d.append(x * i)
        e = collections.deque([1, 2, 3, 4], 3)
        e.rotate(-1)
        e += [5]
        return d, e, attempt(collections.deque().popleft), attempt(e.insert, 0, 1)

    f, g, out = C(f), C(g), []
    for n in (3, None, 3, 0):
        q = collections.deque([1, 2], maxlen=n)
        out += [attempt(f, X(), q), list(q), q.maxlen]
    return [*out, list(map(list, g(X())[:2])), g(X())[2:]]


@program
def bound_by_hand(C, torch):
    def m(self, x):
        return x * self

    return [C(lambda x: types.MethodType(m, 3)(x))(X())]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    agree(PROGRAMS[name])


@pytest.mark.parametrize("name", ["enumerations", "metaclass_methods", "heaps", "bound_by_hand", "bounded_deques"])
def test_captured(name):
    assert graphs_of(PROGRAMS[name]) >= 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_gradient_through_a_numpy_break(backend):
    """Arrays that cross a graph break under wrap_numpy carry their history; one that plain code changed on the way doesn't."""

    def fn(a, change):
        p = a * a
        torch._dynamo.graph_break()
        if change:
            print("plain code", end="")
            p[:1] += 5.0
        torch._dynamo.graph_break()
        return np.sum(p * 3)

    f = compile(wrap_numpy(fn), backend=backend)
    for _ in range(2):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        f(x, False).backward()
        assert x.grad.tolist() == [6.0, 12.0]
    arrays = torch.tensor([1.0, 2.0], requires_grad=True)
    assert f(arrays, True).item() == 30.0
