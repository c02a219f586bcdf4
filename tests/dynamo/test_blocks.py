"""Graph breaks inside with, try and loops: resume functions go on inside the block, and nothing but the instruction runs plainly."""

import contextlib
import itertools
import sys
import traceback

import pytest
from helpers import Graphs, check

import flambeau as torch
from flambeau.compiler import compile, graph_break

X = torch.tensor([1.0, -2.0, 3.0])
log = []


class Manager:
    def __init__(self, swallow=()):
        self.swallow, self.events = swallow, []

    def __enter__(self):
        self.events.append("in")
        return self

    def __exit__(self, *exc):
        self.events.append(exc[0].__name__ if exc[0] else None)
        return exc[0] in self.swallow


@contextlib.contextmanager
def noted(events, name):
    events.append(name)
    try:
        yield name
    except KeyError as e:
        events.append(("caught", e.args))
    finally:
        events.append("end " + name)


def grad_mode(x):
    w = x.clone().requires_grad_()
    with torch.no_grad():
        a = w * 2
        graph_break()
        b = w * 3
        with torch.enable_grad():
            c = w * 4
            graph_break()
            d = w * 5
        e = w * 6
    return [t.requires_grad for t in (a, b, c, d, e, w * 7)], a + b + c + d + e, torch.is_grad_enabled()


def return_inside(x):
    with torch.no_grad():
        y = x * 2
        graph_break()
        return y * 3


def user_manager(x):
    m = Manager()
    with m as k:
        x = x * 2
        graph_break()
        k.events.append("body")
        x = x * 3
    return x + 1, m.events


def manager_swallows(x):
    m = Manager((ValueError,))
    with m:
        x = x * 2
        graph_break()
        x = x * 3
        raise ValueError(1)
    return x + 1, m.events


def manager_lets_through(x):
    m = Manager((ValueError,))
    try:
        with m:
            x = x * 2
            graph_break()
            raise KeyError("k")
    except KeyError as e:
        graph_break()
        x = x + 5
        m.events.append(e.args)
    return x + 1, m.events


def generator_manager(x):
    events = []
    with noted(events, "a") as name:
        x = x * 2
        graph_break()
        x = x * 3
        with noted(events, "b"):
            graph_break()
            x = x + len(events)
            raise KeyError(name)
    return x, events


def break_raises(x):
    out = []
    for k in (0, 1, 2):
        try:
            x = x + 1
            out.append(thrower(k))
            x = x * 2
        except ValueError as e:
            x = x * 3
            out.append(str(e))
        except (KeyError, IndexError):
            out.append("lookup")
        else:
            out.append("else")
        finally:
            out.append("finally")
            x = x - 1
    return x, out


def thrower(k):
    graph_break()
    if k == 1:
        raise ValueError("one")
    if k == 2:
        raise KeyError("two")
    return k


def in_handler(x):
    out = []
    try:
        x = x * 2
        raise ValueError("v")
    except ValueError as e:
        graph_break()
        x = x + 1
        out.append((type(e).__name__, e.args, sys.exc_info()[0].__name__))
        try:
            graph_break()
            raise KeyError("k") from e
        except KeyError as k:
            graph_break()
            out.append((k.__cause__ is e, k.__context__ is e, sys.exc_info()[1] is k))
        out.append(sys.exc_info()[1] is e)
    return x * 2, out


def reraised(x):
    try:
        try:
            x = x * 2
            raise ValueError("v")
        except ValueError:
            graph_break()
            x = x + 1
            raise
    except ValueError as e:
        graph_break()
        return x * 2, e.args, [f.lineno for f in traceback.extract_tb(e.__traceback__)][-1]


def nested_loops(x):
    out = []
    for i, row in enumerate([[1, 2], [3], []]):
        for v in row:
            x = x + v
            if v == 1:
                graph_break()
                continue
            graph_break()
            x = x * 2
        else:
            out.append(i)
        if i == 1:
            graph_break()
    while len(out) < 6:
        out.append(len(out))
        graph_break()
        x = x + 1
    return x, out


def lazy_iterators(x):
    out = []
    for a, (b, c) in zip(map(lambda v: v * 2, [1, 2, 3]), enumerate(itertools.chain([4], (5, 6)), 1), strict=True):
        x = x * a + b
        graph_break()
        out.append((a, b, c))
    for k in itertools.islice(itertools.count(3, 2), 1, 6, 2):
        x = x + k
        graph_break()
        out.append(k)
    for k in filter(None, [0, 1, 2]):
        graph_break()
        out.append(k)
    for k in reversed([1, 2, 3]):
        graph_break()
        x = x - k
    for k in {"a": 1, "b": 2}.items():
        graph_break()
        out.append(k)
    return x, out


def counting(n, events):
    try:
        for i in range(n):
            try:
                got = yield i
                if got:
                    events.append(got)
            except ValueError as e:
                events.append(e.args)
                yield -1
    finally:
        events.append("closed")


def generators(x):
    events = []
    g = counting(5, events)
    a = next(g), g.send("s")
    graph_break()
    x = x + next(g)
    b = g.throw(ValueError("t"))
    graph_break()
    c = next(g)
    g.close()
    return x, a, b, c, events


def generator_dropped(x):
    events = []
    for i in counting(5, events):
        x = x + i
        if i == 2:
            break
    events.append("after")
    it = counting(3, events)
    x = x + next(it)
    it = None
    events.append("rebound")
    last = counting(3, events)
    return x + next(last), events


def delegating(x):
    events = []

    def outer():
        r = yield from counting(3, events)
        events.append(r)
        yield "end"

    g = outer()
    out = [next(g), g.send("a"), g.throw(ValueError(1))]
    graph_break()
    out.extend(g)
    return x + 1, out, events


def generators_live_to_the_end(x):
    events = []
    g = counting(3, events)
    x = x + next(g) + g.send("s")
    match (1, x):
        case (0, q):
            x = q + 1
        case [_, *rest]:
            graph_break()
            x = rest[0] - 1
    m = Manager()
    with m:
        h = counting(4, events)
        x = x + next(h)
        graph_break()
        events.append("body")
    events.append("after")
    return x, events, m.events


def loop_over_a_generator(x):
    events = []
    with Manager((ValueError,)) as m:
        for q, k in ((x * i, i) for i in range(4) if i != 1):
            events.append(q.sum().item() > 0)
            g = counting(3, events)
            x = x + next(g) + g.send(k)
            g = None
        m.events.append(len(events))
    return x, events, m.events


def matches(x):
    out = []
    for v in (1, [1, 2, 3], (x, 2), {"k": x, "j": 1}, "text", Manager((1,)), 2.5):
        match v:
            case int(n) if n > 3:
                out.append("big")
            case int():
                out.append("int")
            case [torch.Tensor() as t, n]:
                out.append(t * n)
            case [a, *rest, b]:
                out.append((a, rest, b))
            case {"k": t, **others}:
                out.append((t + 1, others))
            case str() | bytes():
                out.append("text")
            case Manager(swallow=(1,), events=[]):
                out.append("manager")
            case _:
                out.append("other")
    return out


def comprehension_in_try(x):
    try:
        ys = [x * i for i in range(3)]
        graph_break()
        zs = {i: y + 1 for i, y in enumerate(ys)}
    finally:
        graph_break()
        x = x + 1
    return x, zs


def data_in_blocks(x):
    out = []
    for _ in range(3):
        with torch.no_grad():
            try:
                if x.sum() > 2:
                    x = x - 1
                else:
                    x = x + 2
                out.append(x.sum().item())
            finally:
                x = x * 1
    return x, out


ALL = [
    grad_mode, return_inside, user_manager, manager_swallows, manager_lets_through, generator_manager, break_raises, in_handler, reraised,
    nested_loops, lazy_iterators, generators, generator_dropped, delegating, generators_live_to_the_end,
    loop_over_a_generator, matches, comprehension_in_try, data_in_blocks,
]  # fmt: skip


@pytest.mark.parametrize("fn", ALL, ids=lambda f: f.__name__)
def test_same_as_plain(fn):
    check(fn, X, calls=3)
    check(fn, -X)


def test_only_the_instruction_runs_plainly():
    check(return_inside, X, ops=[["mul"], ["mul", "_set_grad_enabled"]][:0] or None)
    names = check(user_manager, X).names()
    assert names == [["mul"], ["mul", "add"]]
    assert [n for g in check(grad_mode, X).names() for n in g if n == "mul"] == ["mul"] * 6


def test_a_long_loop_with_a_break_neither_recurses_nor_compiles_each_turn():
    def f(x, n):
        for _ in range(n):
            x = x + 1
            graph_break()
            x = x * 1
        return x

    g = Graphs()
    assert torch.equal(compile(f, backend=g)(X, 3000), X + 3000)
    assert len(g.gms) < 8


def test_tracebacks_have_the_lines_of_plain_python():
    def f(x):
        y = x + 1
        graph_break()
        try:
            graph_break()
            return y + {}["missing"]
        except LookupError as e:
            graph_break()
            raise TypeError("t") from e

    def lines(fn):
        with pytest.raises(TypeError) as info:
            fn(X)
        out = []
        e = info.value
        while e is not None:
            out.append(
                (
                    type(e).__name__,
                    [t.lineno for t in traceback.extract_tb(e.__traceback__) if t.filename == __file__][-1],
                )
            )
            e = e.__context__
        return out

    assert lines(compile(f, backend="eager")) == lines(f)


def test_null_contexts_of_plain_frames():
    """Frames of nullcontext's own methods are captured where their caller runs plainly."""

    def f(x):
        with contextlib.nullcontext(x) as t:
            y = t * 2

            class Local:
                pass

        return y + 1

    assert torch.compile(f, backend="eager")(torch.ones(2)).tolist() == [3, 3]


def test_null_contexts_across_breaks():
    def f(x):
        n = contextlib.nullcontext(x)
        torch._dynamo.graph_break()
        t = n.__enter__()
        torch._dynamo.graph_break()
        return t, n.enter_result

    n = contextlib.nullcontext(3)

    def g(x):
        torch._dynamo.graph_break()
        return n.__enter__() + x, n.enter_result

    x = torch.ones(2)
    assert all(t is x for t in torch.compile(f, backend="eager")(x))
    assert torch.compile(g, backend="eager")(x)[1] == 3
