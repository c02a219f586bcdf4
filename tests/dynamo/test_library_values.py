"""Values and functions of the standard library, and modules without parameters, in captured functions: what is known is computed while tracing
(``fullgraph=True`` holds), and what it depends on is guarded. ``library_values.txt`` has the rows."""

import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import itertools
import json
import logging
import os
import pathlib
import random
import re
import struct
import sys
import types
import typing
import urllib.parse
import uuid
import warnings
import weakref

import numpy as np
import pytest
from programs import differ, snapshot

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile
from flambeau.dynamo.exc import Unsupported

ROWS = [r for r in pathlib.Path(__file__).with_name("library_values.txt").read_text().splitlines() if r and r[0] != "#"]
MODULES = """argparse ast base64 binascii bisect calendar collections colorsys contextlib copy dataclasses datetime decimal difflib enum
    fnmatch fractions functools heapq html inspect itertools json keyword logging math numbers operator os pathlib pprint random re reprlib secrets shlex
    statistics string struct sys tempfile textwrap traceback types typing unicodedata urllib uuid warnings weakref graphlib"""


@dataclasses.dataclass
class Cfg:
    n: int = 2
    name: str = "a"
    sub: list = dataclasses.field(default_factory=lambda: [1, 2])


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int = 1
    b: float = 2.0


class NT(typing.NamedTuple):
    a: int
    b: int = 3


class Said:
    def __repr__(self):
        return "<said>"

    def __format__(self, spec):
        return f"[{spec}]"


@typing.runtime_checkable
class HasK(typing.Protocol):
    k: int


@functools.singledispatch
def dispatched(a):
    return 1


dispatched.register(int)(lambda a: 2)
dispatched.register(list)(lambda a: 3)


class Dispatching:
    @functools.singledispatchmethod
    def go(self, a):
        return 1

    @go.register
    def _(self, a: int):
        return 2

    @functools.cached_property
    def k(self):
        return 5

    def add(self, a, b=0):
        return a + b

    inc = functools.partialmethod(add, 1)
    kw = functools.partialmethod(add, b=7)


@contextlib.contextmanager
def scaled():
    yield


def decorated(f):
    return scaled()(f)


def warned(f):
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        f()
    return [(str(w.message), w.category, w.filename, w.lineno) for w in log]


def quiet(f):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="z+")
        f()
        return True


def failing(f):
    with warnings.catch_warnings(action="error"):
        try:
            f()
        except UserWarning as e:
            return str(e)


def sig(a, b=2, *, c: int = 3):
    return a


SCOPE = {name: importlib.import_module(name) for name in MODULES.split()} | {
    "Cfg": Cfg, "Frozen": Frozen, "NT": NT, "OBJECT": Said(), "NAMES": types.SimpleNamespace(k=3), "sig": sig, "np": np, "HasK": HasK, "dispatched": dispatched, "Dispatching": Dispatching, "DISPATCHING": Dispatching(), "decorated": decorated, "warned": warned,
    "quiet": quiet, "failing": failing, "Said": Said, "torch": torch, "nn": torch.nn, "logging": logging,
    "Color": enum.Enum("Color", "RED BLUE", module=__name__), "Flag": enum.Flag("Flag", "A B", module=__name__),
    "IE": enum.IntEnum("IE", {"X": 5}, module=__name__), "SE": enum.Enum("SE", {"RELU": "relu"}, type=str, module=__name__),
    "Point": collections.namedtuple("Point", "x y"), "PAT": re.compile(r"(\w+)-(\d+)"), "PROXY": types.MappingProxyType({"a": 2}),
    "P": pathlib.Path("/usr/lib/x.py"), "FR": fractions.Fraction(3, 4), "D": decimal.Decimal("1.5"), "U": uuid.UUID(int=5),
    "DT": datetime.datetime(2020, 1, 2), "ST": struct.Struct("<i"), "LOG": logging.getLogger("library_values"),
}  # fmt: skip
assert urllib.parse and itertools


def function(row: str):
    *statements, result = row.split("; ")
    scope = {**SCOPE, "__name__": __name__}
    exec("\n    ".join(["def f(x):", *statements, f"return {result}"]), scope)
    return scope["f"]


@pytest.fixture(autouse=True)
def strict():
    old = _frame.set_strict_guards(True)
    yield
    _frame.set_strict_guards(old)
    torch.compiler.reset()


def agreeing(f, c, calls=2):
    for _ in range(calls):
        want, got = snapshot(f(torch.ones(3))), snapshot(c(torch.ones(3)))
        assert differ(want, got) is None, differ(want, got)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_is_captured_whole(row):
    f = function(row)
    agreeing(f, compile(f, backend="eager", fullgraph=True))


PLACE = types.SimpleNamespace(fraction=fractions.Fraction(1, 2), pattern=re.compile("a+"), mapping={"k": 1})
SHOWN = types.MappingProxyType(PLACE.mapping)
LOG = logging.getLogger("library_values.changed")


FOLDER, DEPTH = os.getcwd(), sys.getrecursionlimit()


class Held:
    A = 1


def set_precision(n):
    decimal.getcontext().prec = n


@pytest.mark.parametrize(
    "f, change, undo",
    [
        (lambda x: x * len(json.dumps([1])), lambda: setattr(json, "dumps", lambda o: "zz"), lambda f=json.dumps: setattr(json, "dumps", f)),
        (lambda x: (x, os.getcwd()), lambda: os.chdir("/"), lambda: os.chdir(FOLDER)),
        (lambda x: x * sys.getrecursionlimit(), lambda: sys.setrecursionlimit(3210), lambda: sys.setrecursionlimit(DEPTH)),
        (lambda x: (x, PLACE.fraction + 1), lambda: setattr(PLACE, "fraction", fractions.Fraction(5)), None),
        (lambda x: (x, PLACE.pattern.findall("aabb")), lambda: setattr(PLACE, "pattern", re.compile("b")), None),
        (lambda x: (x * SHOWN["k"], list(SHOWN)), lambda: PLACE.mapping.update(k=2, m=3), lambda: PLACE.mapping.pop("m")),
        (lambda x: (x, LOG.isEnabledFor(logging.INFO)), lambda: LOG.setLevel(logging.INFO), lambda: LOG.setLevel(logging.WARNING)),
        (lambda x: (x, decimal.Decimal(1) / 4), lambda: set_precision(9), lambda: set_precision(28)),
        (lambda x: (x, os.path.exists(PLACE.pattern.pattern)), lambda: setattr(PLACE, "pattern", re.compile("/")), None),
        (lambda x: (x, sorted(k for k in Held.__dict__ if k[0] != "_")), lambda: setattr(Held, "B", 1), lambda: delattr(Held, "B")),
    ],
)  # fmt: skip
def test_what_it_depends_on_is_guarded(f, change, undo):
    c = compile(f, backend="eager", fullgraph=True)
    agreeing(f, c)
    try:
        change()
        agreeing(f, c)
    finally:
        if undo is not None:
            undo()
    agreeing(f, c)


@pytest.mark.parametrize(
    "f, one, other",
    [
        (lambda x, d: (x + 1, json.dumps(d)), {"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}),
        (lambda x, d: (x + 1, json.dumps(d)), {"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (lambda x, v: (x + 1, sum(v) / len(v), sorted(v), f"{v}" if len(v) > 9 else ""), [1, 5], [2, 4, 3]),
        (lambda x, s: (x + 1, re.findall(r"\d", s), os.path.join(s, "b"), pathlib.Path(s) / "q"), "a1", "b22"),
        (lambda x, k: (x + 1, datetime.timedelta(days=k), fractions.Fraction(k, 7), f"{k:04d}", {3: "three"}.get(k)), 3, 5),
        (lambda x, p: (x + 1, p.name, p.suffix, p == pathlib.Path("/a")), pathlib.Path("/a/b.py"), pathlib.Path("/a")),
        (lambda x, t: (x + 1, t.tzinfo, t.year), datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
        (lambda x, m: (x + 1, m.group(), m.span(), m["n"]), re.match(r"(?P<n>\d)", "1"), re.match(r"(?P<n>\d+)", "123")),
    ],
)  # fmt: skip
def test_other_arguments(f, one, other):
    c = compile(f, backend="eager", fullgraph=True)
    for argument in (one, other, one, other):
        want, got = snapshot(f(torch.ones(2), argument)), snapshot(c(torch.ones(2), argument))
        assert differ(want, got) is None


RANDOM = random.Random(3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * random.random() + random.randint(1, 5),
        lambda x: (x * RANDOM.uniform(1, 2), RANDOM.gauss(0, 1), RANDOM.randrange(3, 9, 2)),
        lambda x: (random.random(), x + 1)[1],
        lambda x: (random.randint(1, 5), random.random() * 2 + 1, RANDOM.triangular(0, 1)),
    ],
)
def test_generators_that_existed_draw_at_each_call(f, backend):
    c = compile(f, backend=backend, fullgraph=True)
    states = []
    for g in (f, c):
        random.seed(5), RANDOM.seed(6)
        states.append([[snapshot(g(torch.ones(2))) for _ in range(3)], random.getstate(), RANDOM.getstate()])
    assert differ(states[0][0], states[1][0]) is None and states[0][1:] == states[1][1:]


def test_draws_around_breaks():
    def f(x):
        a = random.random()
        if a > 0.5:
            return x * a + random.random()
        random.seed(7)
        return x - a + random.random()

    c = compile(f, backend="eager")
    for seed in range(8):
        random.seed(seed)
        want = f(torch.ones(1)), random.getstate()
        random.seed(seed)
        assert torch.equal(c(torch.ones(1)), want[0]) and random.getstate() == want[1]


@pytest.mark.parametrize("call", [weakref.ref, weakref.proxy, weakref.finalize])
def test_what_plain_code_refers_to_weakly_lives_as_long_as_its_local(call):
    gone = []

    @torch._dynamo.disable(reason="plain")
    def refer(o):
        return call(o, lambda *_: gone.append(1))

    def f(x):
        b = Cfg(3)
        r = refer(b)
        x = x + 1
        print(end="")
        return x, len(gone), r is None

    assert compile(f, backend="eager")(torch.ones(1))[1:] == (0, False)


def test_callbacks_of_weak_references_run_where_the_object_goes():
    def made(d):
        d["k"] = Said()

    def f(x):
        d, b = weakref.WeakValueDictionary(), Said()
        d["b"] = b
        n = len(d)
        b = None
        made(d)
        return x * n, len(d)

    c = compile(f, backend="eager")
    for _ in range(2):
        assert c(torch.ones(1))[1] == f(torch.ones(1))[1] == 0


def test_equal_values_are_one_variant():
    count = torch._dynamo.testing.CompileCounter()
    c = compile(lambda x, q: x * float(q), backend=count, fullgraph=True)
    for q in (fractions.Fraction(1, 2), fractions.Fraction(2, 4), decimal.Decimal("1.5"), decimal.Decimal("1.5")):
        assert c(torch.ones(1), q).item() == float(q)
    assert count.frame_count == 2


def test_what_a_call_made_is_the_callers():
    def f(x):
        return x, "a,b".split(","), PLACE.pattern.findall("aba"), json.loads('{"k": [1]}')

    c = compile(f, backend="eager", fullgraph=True)
    first = c(torch.ones(1))
    for made in first[1:3]:
        made.append("more")
    first[3]["k"].append(2)
    assert c(torch.ones(1))[1:] == f(torch.ones(1))[1:]


def test_messages_that_are_wanted_are_said():
    said = []

    class Handler(logging.Handler):
        def emit(self, record):
            said.append((record.levelname, record.getMessage(), record.funcName))

    logger = logging.getLogger("library_values.messages")
    logger.propagate = False
    logger.addHandler(Handler())

    def f(x):
        logger.info("sum %d", 3)
        return x + 1

    count = torch._dynamo.testing.CompileCounter()
    c = compile(f, backend=count)
    c(torch.ones(1))
    assert not said and count.frame_count == 1
    logger.setLevel(logging.INFO)
    c(torch.ones(1)), c(torch.ones(1))
    assert said == [("INFO", "sum 3", "f")] * 2


def test_signals_of_decimals_are_effects():
    def f(x):
        return x, decimal.Decimal(1) / 3

    with decimal.localcontext() as context:
        context.clear_flags()
        with pytest.raises(Unsupported, match="raises a signal"):
            compile(f, backend="eager", fullgraph=True)(torch.ones(1))
        assert not context.flags[decimal.Inexact]
        assert compile(f, backend="eager")(torch.ones(1))[1] == decimal.Decimal(1) / 3
        assert context.flags[decimal.Inexact]


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda x: (x, datetime.datetime.now()), "datetime.now"),
        (lambda x: (x, pathlib.Path("/").iterdir()), "Path.iterdir"),
        (lambda x: (x, json.dumps(Held)), "objects of the program"),
    ],
)
def test_what_looks_at_the_world_breaks(f, text):
    with pytest.raises(Unsupported, match=text):
        compile(f, backend="eager", fullgraph=True)(torch.ones(1))


def test_a_replaced_method_runs(monkeypatch):
    c = compile(lambda x: x * float(PLACE.fraction + 1), backend="eager")
    c(torch.ones(1))
    monkeypatch.setattr(fractions.Fraction, "__add__", lambda a, b: 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert c(torch.ones(1)).item() == 7


def test_modules_made_inside():
    class Net(torch.nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k, self.act = k, torch.nn.ReLU()
            self.register_buffer("shift", torch.ones(2) * k)

        def forward(self, x):
            return self.act(x - self.shift) * self.k

    def f(x):
        m = Net(2)
        return m(x), sorted(n for n, _ in m.named_buffers()), [n for n, _ in m.named_modules()], m

    x = torch.tensor([3.0, -1.0])
    for backend in ("eager", "aot_eager", "inductor"):
        c = compile(f, backend=backend, fullgraph=True)
        for got, again in ((c(x), c(x)),):
            assert torch.equal(got[0], f(x)[0]) and got[1:3] == f(x)[1:3]
            assert got[3] is not again[3] and torch.equal(got[3](x), f(x)[0]) and list(got[3].state_dict()) == ["shift"]


def test_a_dispatching_method_of_an_object_that_is_dropped():
    """CPython 3.13 keeps such methods in a weak dict of their objects: what its entry's callback does at the end is a break there."""

    def f(x):
        return x * Dispatching().go(1) * Dispatching().go("a")

    x = torch.ones(3)
    assert torch.equal(compile(f, backend="eager")(x), f(x))
    if sys.version_info < (3, 13):
        assert torch.equal(compile(f, backend="eager", fullgraph=True)(x), f(x))
