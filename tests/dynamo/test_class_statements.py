"""Class statements are captured: whole functions that make classes are one graph. ``user_programs/classes.txt`` has what they do."""

import gc
import textwrap

import pytest
from helpers import check

import flambeau as torch

ONE_GRAPH = {
    "method": """
        class A:
            k = 3
            def m(self, y): return y * self.k
        return A().m(x), A.__name__, A.__qualname__.split(".")[-1]""",
    "closure and super": """
        class A:
            def m(self): return x * 2
        class B(A):
            def m(self): return super().m() + 1
        return B().m(), [c.__name__ for c in B.__mro__]""",
    "descriptors": """
        class P:
            def __init__(self, v): self._v = v
            @property
            def v(self): return self._v
            @v.setter
            def v(self, n): self._v = n * 2
            @classmethod
            def of(cls, v): return cls(v)
            @staticmethod
            def one(): return 1
        p = P.of(x); p.v = p.v + P.one()
        return p.v""",
    "module": """
        class M(torch.nn.Module):
            def __init__(self, k): super().__init__(); self.k = k
            def forward(self, y): return torch.relu(y) * self.k
        return M(2)(x)""",
    "exception": """
        class E(ValueError):
            def __init__(self, n): super().__init__(n); self.n = n
        try: raise E(4)
        except ValueError as e: return x * e.n, str(e), type(e).__name__""",
    "body": """
        class A:
            table = [i * 2 for i in range(3)]
            if len(table) > 2: k = sum(table)
            a: int = k
            del table
        A.k += 1
        return x * A.k, hasattr(A, "table"), A.__annotations__""",
    "slots": """
        class S:
            __slots__ = ("a",)
        s = S(); s.a = x
        try: s.b = 1
        except AttributeError: return s.a * 2, hasattr(s, "__dict__")""",
    "type()": """
        T = type("T", (dict,), {"k": 3, "m": lambda self, y: y * self.k})
        return T(a=1).m(x), T(a=1)["a"]""",
}


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_is_one_graph(name, fullgraph):
    scope = {"torch": torch, "__name__": "classes"}
    exec("def f(x):\n" + textwrap.indent(textwrap.dedent(ONE_GRAPH[name]), "    "), scope)
    check(scope["f"], torch.ones(2), graphs=1, fullgraph=fullgraph)


@pytest.mark.parametrize("fullgraph", [True, False])
def test_each_call_makes_its_own(fullgraph):
    def f(x):
        class A:
            v = x * 2

        return A

    g = torch.compile(f, backend="eager", fullgraph=fullgraph)
    a, b = g(torch.ones(1)), g(torch.zeros(1))
    assert a is not b
    assert (a.v.item(), b.v.item()) == (2, 0)


class Base:
    pass


def before_the_class(x):
    torch._dynamo.graph_break()

    class A:
        k = 2

    return x * A.k


def in_a_callee(x):
    return before_the_class(x) + 1


def behind_the_class(x):
    class A:
        k = x * 2

    torch._dynamo.graph_break()
    return A.k + 1, A


def behind_an_object(x):
    class A:
        made = 0

        def __init__(self):
            A.made += 1
            self.y = x

    a = A()
    a.y = a.y + 1
    torch._dynamo.graph_break()
    return a.y * A.made, type(a) is A


def in_a_loop(x):
    made = []
    for k in range(3):

        class A:
            n = k

        made.append(A)
        if k == 1:
            torch._dynamo.graph_break()
    return [x * a.n for a in made], len(set(made))


def a_body_that_looks_at_its_names(x):
    x = x + 1

    class A:
        y = x

        def m(self):
            return x

        seen = [n for n in list(locals()) if not n.startswith("__")]
        locals()["k"] = 3
        there = sorted(n for n in dir() if not n.startswith("__")), "k" in vars()

    return x * A.k, A.seen, A.there


def a_generator(x):
    class A:
        k = 3

    yield x * A.k
    yield A.k


# Graphs where the frame breaks: in front of the statement, and behind it.
BREAKS = {
    before_the_class: 1,
    in_a_callee: 2,
    behind_the_class: 2,
    behind_an_object: 2,
    in_a_loop: None,
    a_body_that_looks_at_its_names: None,
}


@pytest.mark.parametrize("fn", BREAKS)
def test_frames_that_break(fn):
    got = check(lambda x: normalised(fn(x)), torch.ones(2), calls=3)
    assert BREAKS[fn] is None or len(got.gms) >= BREAKS[fn]


def normalised(found):
    return [v.__name__ if isinstance(v, type) else v for v in found] if isinstance(found, tuple) else found


def test_a_generator_makes_a_class():
    compiled = torch.compile(a_generator, backend="eager")
    for _ in range(3):
        assert [torch.as_tensor(v).tolist() for v in compiled(torch.ones(1))] == [[3], 3]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_no_class_stays_when_the_frame_ends_by_an_exception(backend):
    class Bad(Exception):
        pass

    def f(x):
        class E(Base, Bad):
            pass

        if x.shape[0] == 2:
            raise E("two")
        return x + 1

    compiled = torch.compile(f, backend=backend)
    for _ in range(3):
        with pytest.raises(Bad, match="two"):
            compiled(torch.ones(2))
        assert compiled(torch.ones(3)).tolist() == [2, 2, 2]
    gc.collect()
    assert Base.__subclasses__() == []


def test_without_fullgraph_the_rest_is_captured_and_dropped():
    """Behind the statement a graph is captured for each call's class, up to the limit; none of them keeps the class."""

    def f(x, n):
        x = x * 2

        class D(Base):
            k = n

        y = x + D.k
        torch._dynamo.graph_break()
        return y * D.k

    backend = torch._dynamo.testing.CompileCounter()
    g = torch.compile(f, backend=backend)
    for n in range(1, 12):
        assert torch.equal(g(torch.ones(2), n), f(torch.ones(2), n))
    gc.collect()
    assert Base.__subclasses__() == []
    # In front once, once more for a varying number at most, and behind the statement two for each of eight calls.
    assert 1 + 2 * 8 <= backend.frame_count <= 2 + 2 * 8
