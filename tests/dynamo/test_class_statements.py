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


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_is_one_graph(name):
    scope = {"torch": torch, "__name__": "classes"}
    exec("def f(x):\n" + textwrap.indent(textwrap.dedent(ONE_GRAPH[name]), "    "), scope)
    check(scope["f"], torch.ones(2), graphs=1, fullgraph=True)


def test_each_call_makes_its_own():
    def f(x):
        class A:
            v = x * 2

        return A

    g = torch.compile(f, backend="eager", fullgraph=True)
    a, b = g(torch.ones(1)), g(torch.zeros(1))
    assert a is not b
    assert (a.v.item(), b.v.item()) == (2, 0)


class Base:
    pass


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
