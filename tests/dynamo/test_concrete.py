"""The executor without tensors: plain Python is traced, assembled again and run, and must agree with CPython; resumption at every line too."""

import dataclasses
import enum
import functools
import inspect
import itertools
import operator
import types

import pytest
from helpers import outcome, same

from flambeau import _frame
from flambeau.compiler import compile
from flambeau.dynamo import convert
from flambeau.dynamo.bytecode import codegen, instructions
from flambeau.dynamo.config import config


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class P:
    x: int
    y: list = dataclasses.field(default_factory=list)


class Base:
    shared = [1]

    def __init__(self, n):
        self.n = n

    def name(self):
        return "base" + str(self.n)

    def __eq__(self, other):
        return isinstance(other, Base) and self.n == other.n

    def __lt__(self, other):
        return self.n < other.n

    def __radd__(self, other):
        return other + self.n

    def __iadd__(self, other):
        self.n += other
        return self

    def __contains__(self, k):
        return k == self.n

    def __bool__(self):
        return self.n > 0

    def __enter__(self):
        self.n += 1
        return self

    def __exit__(self, *exc):
        self.n -= 1
        return exc[0] is KeyError

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return name[4:]
        raise AttributeError(name)


class Derived(Base):
    def name(self):
        return super().name() + "!"


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def primes(n):
    out = []
    for i in range(2, n):
        for p in out:
            if i % p == 0:
                break
        else:
            out.append(i)
    return out


def matrix(n):
    return [[i * j for j in range(n) if j != i] for i in range(n)], {i: {j for j in range(i)} for i in range(n)}


def nested_functions(n):
    def outer(a, *b, c=2, **d):
        def inner():
            nonlocal a
            a += c
            return a + sum(b) + sum(d.values())

        return [inner() for _ in range(n)]

    return outer(1), outer(1, 2, 3, c=4, z=5), outer(*[1, 2], **{"c": 3})


def operators(n):
    a, b = n + 3, 2
    return [
        a + b,
        a - b,
        a * b,
        a / b,
        a // b,
        a % b,
        a**b,
        a & b,
        a | b,
        a ^ b,
        a << b,
        a >> b,
        -a,
        +a,
        ~a,
        not a,
        a < b <= 9,
        a != b,
        a is b,
    ]


def augmented(n):
    a = n
    a += 2
    a -= 1
    a *= 3
    a //= 2
    a **= 2
    a %= 97
    a |= 8
    a &= 15
    a ^= 3
    a <<= 2
    a >>= 1
    xs = [1]
    ys = xs
    xs += [a]
    xs *= 2
    return a, xs, ys is xs


def strings(n):
    s = f"{n:03d} {n!r} {'x' * n:>5} {n / 3:.2f}"
    return (
        s,
        s.upper().split(),
        "é".encode(),
        s[1:3],
        "%s-%d" % ("a", n),  # noqa: UP031
        ",".join(str(i) for i in range(n)),
        "a" in s,
        s.find("x"),
    )  # noqa: UP031


def unpacking(n):
    a, *b = range(n + 1)
    (c, d), e = (1, 2), [3]
    *f, g = "xyz"
    (h,) = e
    return a, b, c, d, f, g, h, [*b, *f], {**{"k": 1}, "j": n}, (*b, 0)


def exceptions(n):
    log = []
    for i in range(4):
        try:
            try:
                if i == 0:
                    raise ValueError("zero")
                if i == 1:
                    {}["k"]
                if i == 2:
                    [].pop()
                log.append(i)
            except ValueError as e:
                log.append(str(e))
            except (KeyError, IndexError):
                log.append("lookup")
                raise
            else:
                log.append("else")
            finally:
                log.append("finally")
        except LookupError as e:
            log.append(type(e).__name__)
    return log


def raises(n):
    d = {"a": n}
    return d["b"]


def raises_later(n):
    xs = [n]
    try:
        xs.append(1)
        raise RuntimeError("x", xs[0])
    finally:
        xs.append(2)


def withs(n):
    b = Base(n)
    with b as c, Base(1) as d:
        inside = c.n, d.n
    with b:
        raise KeyError("swallowed")
    return inside, b.n


def classes(n):
    a, b = Base(n), Derived(n)
    a += 5
    return (
        a.name(),
        b.name(),
        a == b,
        b < a,
        1 + a,
        n in b,
        bool(b),
        a.dyn_x,
        b.shared is a.shared,
        isinstance(b, Base),
        type(b).__name__,
    )


def data(n):
    p = P(n)
    p.y.append(n)
    return (
        p,
        P(1, [2]) == P(1, [2]),
        dataclasses.replace(p, x=9) if n > 100 else None,
        Color.RED is Color(1),
        Color.BLUE.name,
        Color.RED.value,
    )


def iterators(n):
    it = iter([1, 2, 3])
    first = next(it)
    z = list(zip(range(n), "abc", itertools.count(5)))
    e = list(enumerate(it, 2))
    c = list(itertools.chain([1], (2,), range(n)))
    p = list(itertools.product([1, 2], "ab"))
    a = list(itertools.accumulate([1, 2, 3], operator.mul))
    s = list(itertools.islice(itertools.count(), 2, 8, 3))
    return (
        first,
        z,
        e,
        c,
        p,
        a,
        s,
        next(iter([]), "none"),
        list(map(lambda x, y: x * y, [1, 2], [3, 4])),
        list(filter(None, [0, 1, 2])),
    )


def generators(n):
    def gen(k):
        got = 0
        while got < k:
            yield got
            got += 1
        return "done"

    def outer():
        r = yield from gen(2)
        yield r

    order = []

    def noisy():
        for i in range(2):
            order.append(("made", i))
            yield i

    for v in noisy():
        order.append(("used", v))
    return (
        list(gen(n)),
        list(outer()),
        order,
        [x for x in gen(3) if x],
        dict(zip("ab", gen(5))),
        sum(x * x for x in range(n)),
        any(x > 1 for x in gen(4)),
    )


def containers(n):
    d = {"a": 1, **{"b": 2}}
    d["c"] = d.pop("a") + n
    d.update(z=1)
    ks = [k for k in d]
    t = tuple(sorted(d.items(), key=lambda kv: -kv[1]))
    s = set(ks) - {"z"}
    xs = list(range(5))
    del xs[1:3]
    xs[0:1] = [9, 9]
    xs.reverse()
    return (
        d,
        ks,
        t,
        sorted(s),
        xs,
        xs.index(9),
        xs.count(9),
        min(xs),
        max(xs, key=lambda v: -v),
        sum(xs),
        d.get("nope", n),
        len(d),
        [1, 2] < [1, 3],
        (1,) == (1,),
    )


def chains(n):
    a = n and n + 1 or 7
    b = None if n else "none"
    if not a or b is None and n != 3:
        c = "yes"
    elif n == 3:
        c = "three"
    else:
        c = "no"
    while n > 0:
        n -= 1
        if n == 1:
            continue
        if n == 2:
            break
    return a, b, c, n


def functools_(n):
    f = functools.partial(pow, 2)
    g = functools.reduce(lambda a, b: a * b, range(1, n + 2), 1)
    return (
        f(n),
        g,
        operator.add(1, n),
        abs(-n),
        divmod(n, 2),
        round(n / 3, 2),
        bool(n),
        int("7"),
        float(n),
        str(n),
        repr([n]),
        hash(n) == hash(n),
    )


def returned_functions(n):
    def f(x, k=n):
        return x + k + n

    return f(1), [g() for g in [lambda i=i: i for i in range(3)]]


def globals_and_imports(n):
    import math
    from os import path

    return math.gcd(n, 6), path.sep, Color.RED, __name__


def walrus(n):
    return [y for x in range(n) if (y := x * 2) > 2], (z := n) + z


def deletes(n):
    a = n
    del a
    try:
        return a  # noqa: F821
    except NameError as e:
        return type(e).__name__


def star_args(n, *args, k=1, **kw):
    return n, args, k, kw


ALL = [
    fib, primes, matrix, nested_functions, operators, augmented, strings, unpacking, exceptions, raises, raises_later, withs, classes, data, iterators,
    generators, containers, chains, functools_, returned_functions, globals_and_imports, walrus, deletes, star_args,
]  # fmt: skip


@pytest.mark.parametrize("fn", ALL, ids=lambda f: f.__name__)
def test_agrees_with_cpython(fn):
    events = []
    c = compile(fn, backend="eager")
    c.context.compiler.listeners.append(events.append)
    with config.patch(capture_empty_graphs=True, strict_capture=True, strict_guards=True):
        for n in (3, 3, 0):
            want, got = outcome(fn, (n,), {}), outcome(c, (n,), {})
            assert want[0] == got[0] and same(want[1], got[1]), (want, got)
    skipped = [e.skipped for e in events if e.skipped and "the code raises" not in e.skipped]
    breaks = [e.break_reason.reason for e in events if e.break_reason and e.break_reason.id != "user-exception"]
    assert not skipped and not breaks, (skipped, breaks)


@pytest.mark.parametrize(
    "fn", [primes, exceptions, containers, chains, withs, unpacking, iterators], ids=lambda f: f.__name__
)
def test_resume_anywhere(fn):
    """A resume function entered at any line with an empty stack continues as the function would."""
    code = fn.__code__
    insts = instructions.decode(code)
    starts = {}
    for i in insts:
        starts.setdefault(i.line, i.index)
    want = fn(4)
    for line, index in sorted(starts.items()):
        # Stop the plain function in front of the line by an exception from a trace, take its locals, go on in the resume function.
        if insts[index].handler is not None or instructions.in_loop(code, index):
            continue  # inside loops and with blocks something is on the stack
        if insts[index - 1].name not in ("RESUME", "STORE_FAST", "POP_TOP", "STORE_SUBSCR", "DELETE_SUBSCR"):
            continue  # in the middle of an expression
        locals_at = stop_before(fn, 4, insts[index].offset)
        if locals_at is None or code.co_cellvars:
            continue
        names = [n for n in instructions.live_locals(code, index) if n in locals_at]
        rc, _ = codegen.resume_code(code, index, (), names, line)
        assert rc.co_name == fn.__name__
        assert instructions.shown_as(rc) == instructions.Shown(f"torch_dynamo_resume_in_{fn.__name__}_at_{line}", line)
        f = types.FunctionType(rc, fn.__globals__)
        assert f(*[locals_at[n] for n in names]) == want, line


class Stop(Exception):
    pass


def stop_before(fn, arg, offset):
    import sys

    seen = {}

    def tracer(frame, event, _):
        if frame.f_code is not fn.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti == offset:
            seen.update(frame.f_locals)
            seen["__hit__"] = True
            raise Stop
        return tracer

    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        fn(arg)
    except Stop:
        pass
    finally:
        sys.settrace(old)
    return seen if seen.pop("__hit__", False) else None


def test_signatures():
    c = compile(star_args, backend="eager")
    with config.patch(capture_empty_graphs=True):
        for args, kw in (((1,), {}), ((1, 2, 3), {"k": 5}), ((), {"n": 2, "z": 3})):
            assert c(*args, **kw) == star_args(*args, **kw)


def test_generator_functions_run_plainly():
    def gen(n):
        yield from range(n)

    assert list(compile(gen, backend="eager")(3)) == [0, 1, 2]


def test_frames_that_ask_about_themselves():
    def f(n):
        m = n + 1
        return sorted(locals()), inspect.currentframe().f_code.co_name

    with config.patch(capture_empty_graphs=True):
        assert compile(f, backend="eager")(1) == (["m", "n"], "f")


def test_evaluator_is_off_outside():
    assert _frame.get_context() is None and not convert.is_compiling()
