"""Python constructs: each function runs plainly and captured, in one graph where nothing has to break."""

import collections
import functools
import math
import operator
from dataclasses import dataclass

import pytest
from helpers import check

import flambeau as torch

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
Y = torch.tensor([[2.0, 1.0, -1.0], [3.0, 0.25, 2.0]])
SCALE = 3
Point = collections.namedtuple("Point", "x y")


@dataclass
class Config:
    width: int
    bias: float = 0.5


class Box:
    limit = 4

    def __init__(self, v):
        self.v = v

    @property
    def twice(self):
        return self.v * 2

    @staticmethod
    def add(a, b):
        return a + b

    @classmethod
    def make(cls, v):
        return cls(v)

    def __add__(self, other):
        return Box(self.v + other.v)

    def __getitem__(self, i):
        return self.v[i]

    def __len__(self):
        return 7

    def __call__(self, x):
        return x * self.v


class Child(Box):
    def __init__(self, v):
        super().__init__(v + 1)


def arithmetic(x, y):
    return (x + y * 2 - 1) / (y + 10) ** 2, -x, x @ y.t(), x > y, 1 - x, 2 / (x + 9)


def inplace(x, y):
    x = x.clone()
    x += y
    x *= 2
    return x


def unpack(x, y):
    a, (b, *c) = x, (y, 1, 2, 3)
    d, e = x
    return a + b, c, d - e


def loops(x, y):
    out = []
    for i in range(3):
        if i == 1:
            continue
        out.append(x * i)
    while len(out) < 5:
        out.append(y)
    else:
        out.append(x)
    return out


def comprehension(x, y):
    d = {k: v * 2 for k, v in zip("ab", (x, y))}
    s = sorted({3, 1, 2})
    g = sum(t for t in [x, y])
    return d, s, g, [a + b for a in (1, 2) for b in (x, y) if a != 2]


def closures(x, y):
    n = 0

    def inc(t):
        nonlocal n
        n += 1
        return t + n

    a, b = inc(x), inc(y)
    return a, b, n


def returned_closure(x, y):
    k = x.sum()

    def f(t, scale=2):
        return t * k * scale

    return f


def defaults(x, y, *args, scale=2, **kw):
    def f(a, /, b, *rest, c=5, **more):
        return a * b + c + len(rest) + sum(more.values())

    return f(x, y, 1, 2, z=3), f(x, b=y, c=scale), args, kw


def lambdas(x, y):
    f = functools.partial(lambda a, b, c: a * b + c, x, c=1)
    return f(y), list(map(lambda t: t + 1, [x, y])), functools.reduce(operator.add, [x, y, x])


def builtins_(x, y):
    a = (
        max(3, 1),
        min([4, 2]),
        abs(-3),
        len([x, y]),
        round(2.7),
        divmod(7, 3),
        isinstance(x, torch.Tensor),
        any([0, 1]),
        all([]),
    )
    return (
        a,
        list(enumerate([x, y], 1)),
        list(reversed([1, 2])),
        dict(a=x),
        tuple([y]),
        hasattr(x, "foo"),
        getattr(x, "bar", 3),
        callable(len),
    )


def strings(x, y):
    n = x.shape[0]
    return x * 2, f"{n}:{SCALE!r:>4}", "a,b".split(","), "%d" % n, "-".join(["x", "y"]), "abc"[1:], str(n)  # noqa: UP031


def shapes(x, y):
    n, m = x.shape
    return (
        x.reshape(m, n),
        x.size(0) * m,
        x.ndim,
        x.dim(),
        x.dtype,
        x.numel(),
        x.shape[-1],
        tuple(x.shape),
        x.is_contiguous(),
    )


def indexing(x, y):
    return x[0], x[:, 1:], x[None], x[..., -1], x[0, 1], x.t()[::2], x[torch.tensor([1, 0])]


def setitem(x, y):
    z = torch.zeros(2, 3)
    z[0] = 1
    z[:, 1] = y[:, 0]
    return z


def containers(x, y):
    xs = [x, y]
    xs[0] = y
    xs.insert(1, x)
    last = xs.pop()
    d = {"a": x}
    d["b"] = y
    d.update(c=1)
    del d["a"]
    t = (1, 2) + (3,)
    return xs, last, d, t, "b" in d, d.get("zz", 5), list(d.items()), [1] * 3, xs[-1] is last


def named(x, y):
    p = Point(x, y=y)
    return p.x + p.y, p._replace(x=y), p


def dataclass_(x, y):
    c = Config(3)
    c.width += 1
    return x * c.width + c.bias, c


def objects(x, y):
    b = Box(x) + Box(y)
    c = Child(x)
    return b.v, b.twice, Box.add(x, y), Box.make(y).v, c.v, b[0], len(b), b(x), b.limit, c


def conditional(x, y):
    z = x if x.shape[0] == 2 else y
    if SCALE > 2 and not (SCALE == 5 or z is None):
        z = z * SCALE
    assert z is not x
    return z


def math_(x, y):
    return x * math.sqrt(4.0) + math.pi, math.floor(2.5), math.prod((2, 3))


def nograd(x, y):
    w = y.clone()
    with torch.no_grad():
        a = w * 2
        with torch.enable_grad():
            b = a + 1
    return a, b, torch.is_grad_enabled()


def try_(x, y):
    d = {}
    try:
        d["missing"]
    except KeyError:
        x = x + 1
    finally:
        y = y * 2
    try:
        raise ValueError("no")
    except (TypeError, ValueError) as e:
        text = str(e.args[0])
    return x, y, text


def generators(x, y):
    def gen(n):
        for i in range(n):
            yield x * i
        yield from [y, y]

    return list(gen(2)), sum(v.sum() for v in gen(1))


def walrus_and_chains(x, y):
    if (n := x.shape[1]) > 2 and 0 < n <= 3:
        return x + n
    return y


def star_calls(x, y):
    args, kw = (x,), {"other": y}
    return torch.add(*args, **kw), max(*[1, 2], 0)


def slices_of_lists(x, y):
    xs = [x, y, x + y]
    xs[1:] = [y]
    return xs, xs[::-1], (1, 2, 3)[1:], xs[slice(0, 1)]


def sets(x, y):
    s = {1, 2} | {3}
    s.add(9)
    return x + len(s), 2 in s, s - {1}, frozenset([1]), s


def deques(x, y):
    q = collections.deque([x])
    q.append(y)
    a = q.popleft()
    dd = collections.defaultdict(list)
    dd["k"].append(a)
    return a, dd["k"], collections.OrderedDict(a=x)


def torch_functions(x, y):
    a = torch.cat([x, y], dim=1)
    b = torch.stack((x, y))
    q, r = a.split(3, dim=1)
    v, i = x.max(dim=1)
    return a, b, q + r, v, i, torch.relu(x), torch.arange(4), torch.zeros_like(x), x.to(torch.float64)


def identity_of_returned(x, y):
    xs = [x + 1]
    return xs, xs, (xs, x)


ALL = [
    arithmetic, inplace, unpack, loops, comprehension, closures, returned_closure, defaults, lambdas, builtins_, strings, shapes, indexing,
    setitem, containers, named, dataclass_, objects, conditional, math_, nograd, try_, generators, walrus_and_chains, star_calls,
    slices_of_lists, sets, deques, torch_functions, identity_of_returned,
]  # fmt: skip


@pytest.mark.parametrize("fn", ALL, ids=lambda f: f.__name__)
def test_one_graph(fn):
    check(
        fn,
        X,
        Y,
        fullgraph=True,
        graphs=1 if fn not in (shapes, builtins_, containers, slices_of_lists, deques) else None,
    )


def test_identities_survive():
    from flambeau.compiler import compile

    a, b, (c, x) = compile(identity_of_returned, backend="eager")(X, Y)
    assert a is b and c is a and x is X


def test_arguments_by_name():
    check(defaults, X, Y, 1, 2, scale=7, q=3, fullgraph=True)
    check(defaults, X, y=Y, fullgraph=True)
    check(defaults, X)
