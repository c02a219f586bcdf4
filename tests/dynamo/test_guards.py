"""Guards: what makes a captured variant not fit, natively and in the Python mirror; recompilation and its limit."""

import collections
import logging
import math
import threading

import numpy as np
import pytest
from helpers import Graphs, check

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile, reset, run, set_stance
from flambeau.dynamo.config import config
from flambeau.dynamo.guards.tree import mirror_check, tensor_facts

A, C = _frame.ACCESS, _frame.CHECK
X = torch.tensor([1.0, 2.0, 3.0])
GLOBAL = 2


class Thing:
    kind = "thing"

    def __init__(self, **kw):
        self.__dict__.update(kw)


def agree(nodes, func, args, want):
    tree = _frame.GuardTree(nodes)
    assert tree.check(func, args) is want, tree.failed
    assert mirror_check(nodes, func, args) is want


def func(a, b=1):
    return a


CASES = [
    ("TYPE_MATCH", int, 3, "3"),
    ("TYPE_MATCH", bool, True, 1),
    ("ID_MATCH", None, None, 0),
    ("EQUALS_MATCH", 3, 3, 4),
    ("EQUALS_MATCH", 1, 1, True),
    ("EQUALS_MATCH", 1, 1, 1.0),
    ("EQUALS_MATCH", 2.5, 2.5, 2.25),
    ("EQUALS_MATCH", 0.0, 0.0, -0.0),
    ("EQUALS_MATCH", math.nan, float("nan"), 1.0),
    ("EQUALS_MATCH", 10**30, 10**30, 10**30 + 1),
    ("EQUALS_MATCH", "abc", "".join("abc"), "abd"),
    ("EQUALS_MATCH", b"x", b"x", b"y"),
    ("EQUALS_MATCH", (1, (2.0, None)), (1, (2.0, None)), (1, (2.0, 0))),
    ("EQUALS_MATCH", range(3), range(3), range(4)),
    ("LENGTH", 2, [1, 2], [1]),
    ("LENGTH", 2, (1, 2), ()),
    ("LENGTH", 1, {"a": 1}, {}),
    ("LENGTH", 2, {1, 2}, 5),
    ("DICT_KEYS", ("a", "b"), {"a": 1, "b": 2}, {"b": 1, "a": 2}),
    ("DICT_KEYS", ("a",), {"a": 1}, ["a"]),
    ("HAS_KEY", "a", {"a": 1}, {"b": 1}),
    ("NO_KEY", "a", {"b": 1}, {"a": 1}),
    ("NO_INSTANCE_KEY", "x", Thing(y=1), Thing(x=1)),
    ("CALL", callable, print, 3),
]


@pytest.mark.parametrize("kind, payload, good, bad", CASES, ids=lambda v: repr(v)[:20])
def test_checks(kind, payload, good, bad):
    nodes = [(-1, A["arg"], 0, ((C[kind], payload),))]
    agree(nodes, func, (good, 1), True)
    agree(nodes, func, (bad, 1), False)


def test_accesses():
    k = 5

    def closure(a, b=1):
        return k + GLOBAL + a

    t = Thing(x=[1, {"k": (7,)}])
    nodes = [
        (-1, A["arg"], 0, ()),
        (0, A["attr"], "x", ()),
        (1, A["item"], 1, ()),
        (2, A["key"], "k", ()),
        (3, A["item"], 0, ((C["EQUALS_MATCH"], 7),)),
        (-1, A["closure_cell"], 0, ()),
        (5, A["cell"], None, ((C["EQUALS_MATCH"], 5),)),
        (-1, A["global"], "GLOBAL", ((C["EQUALS_MATCH"], 2),)),
        (-1, A["global"], "len", ((C["ID_MATCH"], len),)),
        (0, A["type"], None, ((C["ID_MATCH"], Thing),)),
        (9, A["type_lookup"], "kind", ((C["EQUALS_MATCH"], "thing"),)),
        (0, A["instance_dict"], None, ((C["DICT_KEYS"], ("x",)),)),
        (0, A["getattr"], "kind", ((C["EQUALS_MATCH"], "thing"),)),
        (-1, A["const"], 3, ((C["EQUALS_MATCH"], 3),)),
        (0, A["call"], id, ((C["TYPE_MATCH"], int),)),
        (-1, A["func"], None, ((C["ID_MATCH"], closure),)),
    ]
    agree(nodes, closure, (t, 1), True)
    t.x.pop()
    agree(nodes, closure, (t, 1), False)
    agree([(-1, A["arg"], 0, ()), (0, A["attr"], "nothing", ())], closure, (t, 1), False)


def test_aliasing():
    nodes = [(-1, A["arg"], 0, ()), (-1, A["arg"], 1, ((C["NO_TENSOR_ALIASING"], (0, 1)),))]
    agree(nodes, func, (X, X), False)
    agree(nodes, func, (X, X + 1), True)
    nodes = [(-1, A["arg"], 0, ()), (-1, A["arg"], 1, ((C["DUPLICATE_INPUT"], 0),))]
    agree(nodes, func, (X, X), True)
    agree(nodes, func, (X, X + 1), False)
    many = [(-1, A["arg"], 0, ()), *[(0, A["item"], i, ()) for i in range(40)]]
    many[-1] = (0, A["item"], 39, ((C["NO_TENSOR_ALIASING"], tuple(range(1, 41))),))
    things = [object() for _ in range(40)]
    agree(many, func, (things, 1), True)
    agree(many, func, ([*things[:-1], things[3]], 1), False)


def test_overlap():
    nodes = [(-1, A["arg"], 0, ()), (-1, A["arg"], 1, ((C["NO_MEMORY_OVERLAP"], (0, 1)),))]
    t, a = torch.arange(6.0), np.arange(6)
    agree(nodes, func, (t[:3], t[3:]), True)
    agree(nodes, func, (t[:4], t[3:]), False)
    agree(nodes, func, (a[4::-1], a[4:]), False)
    agree(nodes, func, (a[3::-1], a[4:]), True)
    agree(nodes, func, (a[:0], a), True)
    agree(nodes, func, (3, a), True)


def test_tensor_match():
    nodes = [(-1, A["arg"], 0, ((C["TENSOR_MATCH"], tensor_facts(X)),))]
    agree(nodes, func, (X + 1, 1), True)
    for other in (X.double(), X[:2], X[None], torch.ones(6)[::2], X.clone().requires_grad_(), 3, torch.nn.Parameter(X)):
        agree(nodes, func, (other, 1), False)


@pytest.mark.parametrize(
    "bad",
    [
        [(-1, 99, 0, ())],
        [(0, A["attr"], "x", ())],
        [(-1, A["item"], 0, ())],
        [(-1, A["arg"], -2, ())],
        [(-1, A["arg"], 0, ((99, None),))],
        [(-1, A["arg"], 0, ((C["DICT_KEYS"], ["a"]),))],
        [(-1, A["arg"], 0, ((C["TENSOR_MATCH"], (1, 2)),))],
        [("x",)],
    ],
)
def test_malformed_trees_are_refused(bad):
    with pytest.raises((TypeError, ValueError)):
        _frame.GuardTree(bad)


def test_recompilation():
    def f(x, k, s="a"):
        return x * k * GLOBAL + len(s)

    global GLOBAL
    g = Graphs()
    c = compile(f, backend=g)
    steps = [
        ((X, 2), 1),
        ((X, 3), 2),
        ((X, 2), 2),
        ((X, 2.0), 3),
        ((X, True), 4),
        ((X[:2], 2), 5),
        ((X, 2, "b"), 6),
        ((X, 2), 6),
    ]
    for args, n in steps:
        assert torch.equal(c(*args), f(*args)) and len(g.gms) == n, args
    GLOBAL = 7
    assert torch.equal(c(X, 2), f(X, 2)) and len(g.gms) == 7
    GLOBAL = 2
    with torch.no_grad():
        c(X, 2)
    assert len(g.gms) == 8
    f.__defaults__ = ("zzz",)
    assert torch.equal(c(X, 2), X * 2 * 2 + 3)


def test_limit(caplog):
    g = Graphs()
    c = compile(lambda x, s: x + len(s), backend=g)
    with caplog.at_level(logging.WARNING, "flambeau._dynamo"):
        for i in range(12):
            assert torch.equal(c(X, "x" * i), X + i)
    assert len(g.gms) == config.cache_size_limit == config.recompile_limit == 8
    warnings = [r.getMessage() for r in caplog.records]
    assert (
        len(warnings) == 1
        and "<lambda>" in warnings[0]
        and "EQUALS_MATCH" in warnings[0]
        and "test_guards.py" in warnings[0]
    )
    too_often = pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="recompile_limit")
    c = compile(lambda x, s: x + len(s), backend="eager", fullgraph=True)
    with config.patch(recompile_limit=1), too_often:
        for i in range(3):
            c(X, "x" * i)
    c = compile(lambda x, s: x - len(s), backend="eager")
    with config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True), too_often:
        for i in range(3):
            c(X, "x" * i)


def test_code_replaced():
    def f(x):
        return x + 1

    def g(x):
        return x + 2

    c = compile(f, backend="eager")
    assert torch.equal(c(X), X + 1)
    f.__code__ = g.__code__
    assert torch.equal(c(X), X + 2)


def test_closures_of_one_code():
    def make(n):
        def f(x):
            return x + n

        return f

    g = Graphs()
    kept = []  # what was captured of a code object goes with the last callable made of it
    for n in (1, 2, 1):
        kept.append(compile(make(n), backend=g))
        assert torch.equal(kept[-1](X), X + n)
    assert len(g.gms) == 2


def test_default_dtype_is_guarded():
    c = compile(lambda x: x + torch.zeros(3).sum(), backend="eager")
    assert c(X.double()).dtype == torch.float64
    f = compile(lambda x: torch.ones(2), backend="eager")
    assert f(X).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert f(X).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_identity_is_guarded():
    def f(a, b, x):
        return x + 1 if a is b else x - 1

    p, q = [1], [1]
    c = compile(f, backend="eager")
    for args in ((p, q), (p, p), (q, p)):
        assert torch.equal(c(*args, X), f(*args, X))


def test_run_and_stance():
    g = Graphs()

    def f(x):
        return x * 2

    c = compile(f, backend=g)
    c(X)
    assert torch.equal(run(f)(X[:2]), X[:2] * 2) and len(g.gms) == 1
    with set_stance("fail_on_recompile"):
        c(X)
        with pytest.raises(RuntimeError, match="recompile"):
            c(X[:2])
    with set_stance("eager_on_recompile"):
        assert torch.equal(c(X[:2]), X[:2] * 2)
    assert len(g.gms) == 1
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        set_stance("sometimes")


def test_reset_forgets():
    g = Graphs()
    c = compile(lambda x: x + 1, backend=g)
    c(X)
    reset()
    c(X)
    assert len(g.gms) == 2


def test_threads():
    c = compile(lambda x, k: x * k, backend="eager")
    wrong = []

    def work(k):
        for _ in range(50):
            if not torch.equal(c(X, k), X * k):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_call_errors_are_pythons():
    c = compile(lambda x, *, k: x * k, backend="eager")
    for args, kw in (((), {}), ((X,), {}), ((X, 1), {"k": 1}), ((X,), {"k": 1, "z": 2})):
        with pytest.raises(TypeError, match="<lambda>"):
            c(*args, **kw)
    assert torch.equal(c(X, k=2), X * 2)
    assert c.__name__ == "<lambda>" and callable(c.__wrapped__)


def test_compiled_methods():
    class K:
        def __init__(self, n):
            self.n = n

        @compile(backend="eager")
        def f(self, x):
            return x * self.n

        def __call__(self, x):
            return x + self.n

    assert torch.equal(K(2).f(X), X * 2) and torch.equal(K(3).f(X), X * 3)
    assert torch.equal(compile(K(2), backend="eager")(X), X + 2)
    assert torch.equal(compile(K(5).f, backend="eager")(X), X * 5)


def test_modes_see_every_call():
    from flambeau.core.modes import TorchDispatchMode

    class Count(TorchDispatchMode):
        n = 0

        def __torch_dispatch__(self, fn, types, args=(), kwargs=None):
            Count.n += 1
            return fn(*args, **(kwargs or {}))

    g = Graphs()
    c = compile(lambda x: torch.sin(x) + 1, backend=g)
    c(X)
    with Count():
        got = c(X)
    assert torch.equal(got, torch.sin(X) + 1)
    assert Count.n == 2 and len(g.gms) == 2
    c(X)
    assert len(g.gms) == 2


def test_constants_of_numpy():
    check(lambda x, k: x * float(k), X, np.float32(2))


@pytest.mark.parametrize(
    "table", [collections.Counter(a=2), collections.defaultdict(int, a=2)], ids=["Counter", "defaultdict"]
)
def test_a_key_that_went_is_not_asked_of_missing(table):
    """Native guards and their mirror say alike that the key is gone, and looking doesn't put it back."""
    before = _frame.set_strict_guards(True)
    try:
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: x + table["a"], backend="eager")
        x = torch.ones(2)
        assert compiled(x).tolist() == [3, 3]
        table.clear()
        assert compiled(x).tolist() == [1, 1]
        table["a"] = 5
        assert compiled(x).tolist() == [6, 6]
    finally:
        _frame.set_strict_guards(before)
