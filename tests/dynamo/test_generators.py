"""Generators and coroutines as the compiled function, and generators that break inside: what is yielded, sent, thrown, awaited and raised
agrees with plain Python, and the code between two suspensions is captured."""

import asyncio
import contextlib
import gc
import inspect
import traceback
import weakref

import fuzz_generators
import pytest
from programs import agree, attempt, snapshot

import flambeau as torch
from flambeau.dynamo.config import config


def X():
    return torch.tensor([1.0, 2.0])


def counting(x, n):
    for i in range(n):
        yield x * i + 1
    return x - 1


def echo(x, log):
    try:
        while True:
            got = yield x
            if got is None:
                x = x + 1
            else:
                log.append(got)
                x = x * got
    except ValueError as e:
        log.append(("caught", e.args, e.__traceback__.tb_frame.f_code.co_name, e.__traceback__.tb_lineno))
        yield x - 100
    finally:
        log.append("closed")
    return x * 1000


def delegating(x, log):
    r = yield from echo(x + 1, log)
    log.append(("returned", r))
    yield r + x


def over_a_list(xs):
    yield from xs
    yield from (x + 1 for x in xs)


def handling(x, log):
    """Suspended while an exception is handled."""
    try:
        raise KeyError(1)
    except KeyError as e:
        yield x + 1
        log.append(type(e).__name__)
        try:
            yield x * 2
        except ValueError as v:
            log.append(type(v.__context__).__name__)
            yield x * 3


def breaking(x, n):
    for i in range(n):
        x = x * 2
        torch._dynamo.graph_break()
        x = x + i
        if x.sum() > 20:
            return x
        yield x


def with_grad_mode(x):
    with torch.no_grad():
        y = x * 2
        yield y.requires_grad, torch.is_grad_enabled()
    z = x * 3
    yield z.requires_grad, torch.is_grad_enabled()


def closes_over(x):
    scale = 2

    def times(q):
        return q * scale

    for i in range(3):
        scale = scale + i
        yield times(x)


def arguments(x, /, *rest, k=2, **more):
    yield x * k + sum(rest)
    yield x + more["z"]


def drive(f, *script):
    """Make the generator's calls, one after another, and tell what comes of each."""
    out = []
    for call, *args in script:
        try:
            out.append(getattr(f, call)(*args))
        except BaseException as e:
            out.append(
                (type(e).__name__, e.args, [(t.name, t.lineno) for t in traceback.extract_tb(e.__traceback__)[1:]])
            )
            if isinstance(e, RuntimeError):
                out.append(type(e.__cause__).__name__)
    return out


def ends_with_stop_iteration(x):
    yield x + 1
    raise StopIteration(3)


def ignores_exit(x):
    try:
        yield x + 1
    except GeneratorExit:
        yield x * 2


NEXT, CLOSE = ("__next__",), ("close",)
PROGRAMS = {
    "counting": lambda C: drive(C(counting)(X(), 2), NEXT, NEXT, NEXT, NEXT),
    "listed": lambda C: list(C(counting)(X(), 3)),
    "sent": lambda C: [drive(C(echo)(X(), log := []), NEXT, ("send", 3), NEXT, ("send", 2), CLOSE, NEXT), log],
    "send first": lambda C: drive(C(echo)(X(), []), ("send", 3)),
    "thrown": lambda C: [drive(C(echo)(X(), log := []), NEXT, ("throw", ValueError(1)), NEXT, NEXT), log],
    "thrown through": lambda C: [drive(C(echo)(X(), log := []), NEXT, ("throw", KeyError(1)), NEXT), log],
    "thrown first": lambda C: drive(C(counting)(X(), 2), ("throw", KeyError(1)), NEXT),
    "thrown without handler": lambda C: drive(C(counting)(X(), 2), NEXT, ("throw", KeyError(1)), NEXT),
    "closed first": lambda C: [drive(C(echo)(X(), log := []), CLOSE, NEXT), log],
    "delegated": lambda C: [
        drive(C(delegating)(X(), log := []), NEXT, ("send", 3), ("throw", ValueError(2)), NEXT, NEXT, NEXT), log
    ],
    "delegated closed": lambda C: [drive(C(delegating)(X(), log := []), NEXT, CLOSE, NEXT), log],
    "over a list": lambda C: list(C(over_a_list)([X(), X() + 1])),
    "handling": lambda C: [drive(C(handling)(X(), log := []), NEXT, NEXT, ("throw", ValueError(2)), NEXT), log],
    "breaking": lambda C: drive(C(breaking)(X(), 5), NEXT, NEXT, NEXT, NEXT),
    "grad mode": lambda C: [*C(with_grad_mode)(X().requires_grad_()), torch.is_grad_enabled()],
    "closes over": lambda C: list(C(closes_over)(X())),
    "arguments": lambda C: [list(C(arguments)(X(), 1, 2, z=3)), list(C(arguments)(X(), k=5, z=X()))],
    "wrong arguments": lambda C: drive(type("A", (), {"go": lambda self: C(counting)(X())})(), ("go",)),
    "stop iteration": lambda C: drive(C(ends_with_stop_iteration)(X()), NEXT, NEXT, NEXT),
    "ignores exit": lambda C: drive(C(ignores_exit)(X()), NEXT, CLOSE),
    "interleaved": lambda C: [
        (a, b) for f in [C(counting)] for a, b in zip(f(X(), 3), f(X() * 2, 3))
    ],
}  # fmt: skip


async def sub(x):
    await asyncio.sleep(0)
    return x * 2 + 1


class Manager:
    def __init__(self, log, swallows):
        self.log, self.swallows = log, swallows

    async def __aenter__(self):
        await asyncio.sleep(0)
        return 3

    async def __aexit__(self, t, v, tb):
        await asyncio.sleep(0)
        self.log.append((t and t.__name__, tb and tb.tb_lineno))
        return self.swallows


class Rows:
    """An asynchronous iterator whose awaitables are iterators of its own."""

    def __init__(self, x):
        self.x, self.n = x, 0

    def __aiter__(self):
        return self

    def __anext__(self):
        return self

    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        self.n += 1
        if self.n > 2:
            raise StopAsyncIteration
        return self.x * self.n


async def stream(x, n):
    for i in range(n):
        got = yield x + i
        if got is not None:
            x = x * got
        await asyncio.sleep(0)


async def awaits(x, log):
    y = x + 1
    await asyncio.sleep(0)
    z = y * 2 + y
    try:
        w = await sub(z)
    finally:
        log.append("done")
    return w.sin() * 2


async def everything(x, log):
    t = x
    async with Manager(log, True) as m:
        t = t * m + 1
        async for v in stream(x * 2, 3):
            t = t + v * 3
        async for v in Rows(t):
            t = t + v
        raise ValueError
    return t + [q async for q in stream(t, 2)][1]


async def fails(x, log):
    y = x + 1
    async with Manager(log, False):
        await sub(y)
        raise KeyError(4)


class HalfManager:
    def __init__(self, method):
        self.method = method

    def __aenter__(self):
        return 3 if self.method == "__aenter__" else asyncio.sleep(0)

    def __aexit__(self, *error):
        return 3


async def not_awaitable(x, method):
    y = x + 1
    async with HalfManager(method):
        y = y * 2
        await asyncio.sleep(0)
    return y


async def driven(C, x):
    g = C(stream)(x, 4)
    out = [await g.asend(None), await g.asend(3), await g.__anext__()]
    await g.aclose()
    with contextlib.suppress(StopAsyncIteration):
        await g.__anext__()
        out.append("not reached")
    return out


def run(coroutine):
    try:
        return asyncio.run(coroutine)
    except Exception as e:
        frames = [t for t in traceback.extract_tb(e.__traceback__) if t.filename == __file__]
        return type(e).__name__, e.args, [(t.name, t.lineno) for t in frames[1:]]


PROGRAMS |= {
    "async awaits": lambda C: [run(C(awaits)(X(), log := [])), log],
    "async everything": lambda C: [run(C(everything)(X(), log := [])), log],
    "async with a number to enter": lambda C: run(C(not_awaitable)(X(), "__aenter__")),
    "async with a number to exit": lambda C: run(C(not_awaitable)(X(), "__aexit__")),
    "async fails": lambda C: [run(C(fails)(X(), log := [])), log],
    "async generator": lambda C: run(driven(C, X())),
}


def differ(a, b, path="") -> str:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        return next((d for i, (x, y) in enumerate(zip(a, b)) if (d := differ(x, y, f"{path}[{i}]"))), "")
    same = (a == b).all() if hasattr(a, "shape") and hasattr(b, "shape") else a == b
    return "" if same else f"{path}: {a!r} != {b!r}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_plain(name):
    want = snapshot(PROGRAMS[name](lambda f: f))
    with config.patch(strict_capture=True):
        got = snapshot(PROGRAMS[name](lambda f: torch.compile(f, backend="eager")))
    assert not (d := differ(want, got)), d


def graphs_of(fn, use):
    graphs = []

    def backend(gm, inputs):
        graphs.append([getattr(n.target, "__name__", n.target) for n in gm.graph.nodes if n.op.startswith("call")])
        return gm.forward

    use(torch.compile(fn, backend=backend))
    return graphs


def test_segments_are_captured():
    def gen(x):
        y = x.sin() + 1
        got = yield y
        y = y * got
        yield y.cos()
        return y - 1

    def use(f):
        for _ in range(3):
            g = f(X())
            next(g)
            g.send(3)
            list(g)

    assert graphs_of(gen, use) == [["sin", "add"], ["mul", "cos"], ["sub"]]


def test_a_coroutine_breaks_only_where_it_awaits():
    async def f(x):
        y = x + 1
        y = y * await sub(y)
        return y - 3

    graphs = graphs_of(f, lambda g: [asyncio.run(g(X())) for _ in range(3)])
    assert graphs == [["add"], ["mul", "add"], ["mul", "sub"]]


def test_a_generator_that_breaks_in_a_captured_function_is_captured():
    def gen(x):
        for i in range(3):
            y = x * i
            torch._dynamo.graph_break()
            yield y + 1

    def f(x):
        t = x
        for v in gen(x + 1):
            t = t + v * 2
        return t

    seen = graphs_of(f, lambda g: g(X()))
    assert ["add"] in seen and ["mul"] in seen and any("add" in g and "mul" in g for g in seen)


def test_what_it_is():
    g = torch.compile(counting, backend="eager")(X(), 2)
    assert inspect.isgenerator(g) and g.__name__ == "counting" and g.gi_code.co_name == "counting"
    assert inspect.getgeneratorstate(g) == "GEN_CREATED"
    next(g)
    assert inspect.getgeneratorstate(g) == "GEN_SUSPENDED"
    c = torch.compile(sub, backend="eager")(X())
    assert inspect.iscoroutine(c)
    c.close()


def test_it_goes_on_when_the_compiled_function_is_gone():
    def gen(x):
        yield x + 1
        yield x + 2

    g = torch.compile(gen, backend="eager")(X())
    next(g)
    gc.collect()
    assert next(g).tolist() == [3.0, 4.0]


def test_a_dropped_generator_lets_go():
    gc.disable()
    try:
        x = X()
        ref = weakref.ref(x)
        g = torch.compile(counting, backend="eager")(x, 3)
        next(g)
        del g, x
        assert ref() is None
    finally:
        gc.enable()


def test_fullgraph_takes_yields():
    f = torch.compile(counting, backend="eager", fullgraph=True)
    assert [v.tolist() for v in f(X(), 2)] == [[1.0, 1.0], [2.0, 3.0]]
    with pytest.raises(Exception, match="graph_break"):
        list(torch.compile(breaking, backend="eager", fullgraph=True)(X(), 2))


@pytest.mark.parametrize("seed", [2, 7, 16, 27, 85, 115, 90031, 780042, 780076])
def test_random_generators(seed):
    """Each differed once: see fuzz_generators.py."""
    fuzz_generators.run(seed)


def called_behind_a_break(f, *args):
    torch._dynamo.graph_break()
    return f(*args)


def own_cells_of_a_generator_that_has_not_begun(x):
    return tuple(r for k in (1, 2) for r in called_behind_a_break(lambda t: ((lambda: t * k)(), t), x))


def an_argument_that_is_a_cell(x, n):
    def scaled(y, n):
        yield (lambda: y * n)()
        yield y, n

    return list(called_behind_a_break(lambda g: g, scaled(x, n)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fn", [own_cells_of_a_generator_that_has_not_begun, an_argument_that_is_a_cell])
def test_cells_of_generators_that_have_not_begun(fn):
    more = (3,) if fn is an_argument_that_is_a_cell else ()
    agree(lambda C, torch: [attempt(C(fn), X(), *more)])


def under_no_grad(x):
    with torch.no_grad():
        yield x * 2
        yield x * 3


def leaves_no_grad(x):
    torch.set_grad_enabled(False)
    try:
        yield x * 2
    finally:
        torch.set_grad_enabled(True)


def left_by_break(x):
    for y in under_no_grad(x):  # noqa: B007
        break
    return y, x * 3, torch.is_grad_enabled()


def around_a_break(x):
    with torch.enable_grad():
        it = under_no_grad(x)
        y = next(it)
        torch._dynamo.graph_break()
        z = x * 2
    w = x * 3
    del it
    return y, z, w, x * 3, torch.is_grad_enabled()


def two_dropped(x):
    it = under_no_grad(x)
    next(it)
    other = leaves_no_grad(x)
    next(other)
    torch._dynamo.graph_break()
    a = x * 2
    del other
    b = x * 2
    it = None
    return a, b, x * 2


def mode_inside_a_block(x):
    with torch.no_grad():
        torch.set_grad_enabled(True)
        torch._dynamo.graph_break()
        y = x * 2
    return y, x * 3


def view_made_without_grad(x):
    y = x * 1
    with torch.no_grad():
        v = y[0]
    v.mul_(2)
    return y


@pytest.mark.parametrize(
    "fn", [left_by_break, around_a_break, two_dropped, mode_inside_a_block, view_made_without_grad]
)
def test_grad_modes_around_suspended_generators(fn):
    agree(lambda C, torch: [attempt(C(fn), X().requires_grad_())])
