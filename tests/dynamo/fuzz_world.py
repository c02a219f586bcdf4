"""Random programs whose world changes between calls: a function that reads classes, objects, modules, functions, containers and settings is
called plainly and compiled, with random changes in between (a method patched, an attribute deleted, an object swapped, a flag flipped).

``python fuzz_world.py SEED [COUNT]`` runs many; a failing program is printed with its seed.
"""

import random
import sys
import warnings

from programs import attempt, differ, snapshot

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile, reset
from flambeau.dynamo.config import config

SETUP = """
import collections, enum, types
import flambeau as torch
class A:
    k = 2
    def __init__(self, v=1): self.v = v
    @property
    def p(self): return self.v + 1
    def meth(self, n): return n * self.k
    @classmethod
    def cm(cls): return cls.k + 1
    @staticmethod
    def sm(n): return n + 4
class B(A):
    def meth(self, n): return super().meth(n) + 1
    @property
    def p(self): return super().p * 2
class S:
    __slots__ = ("s",)
class K:
    def __init__(self, v): self.v = v
    def tw(self): return self.v * 2
    def __len__(self): return 2
class E(enum.Enum):
    X = 1
    Y = 2
    def val(self): return self.value * 3
class Meta(type):
    @property
    def mp(cls): return 3
class Q(metaclass=Meta): pass
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("n", torch.zeros(2))
        self.scale = 2
    def forward(self, x): return x * self.w + self.n * self.scale + (1 if self.training else 0)
def h(v, w=1, *, u=2): return v * w + u
h.attr = 1
def outer():
    cell = 1
    def inner(): return cell
    def put(v):
        nonlocal cell
        cell = v
    return inner, put
inner, put = outer()
a, b, c, s, m, mod = A(), B(), A(3), S(), M(), types.ModuleType("mod")
mod.k, mod.fn, s.s = 3, (lambda v: v + 1), 1
G, lst, tup, objs, st = 1, [1, 2], (1, 0.0), [a, b], {1, 2}
d, od, cfg = {"u": 1, "v": 2.0}, collections.OrderedDict(p=1, q=2), {"deep": {"n": 1}}
ml = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.ReLU()])
"""
READS = """a.k|A.k|B.k|a.v|b.v|a.p|b.p|a.meth(2)|b.meth(2)|A.cm()|B.cm()|b.sm(1)|B().meth(3)|B(2).p|K(3).tw()|len(K(1))|K(2).v|E.X.val()|E.Y.val()|Q.mp
getattr(a, "zz", 3)|getattr(A, "zz", 4)|getattr(mod, "zz", 5)|getattr(h, "zz", 6)|getattr(s, "s", 7)|getattr(m, "zz", 8)|mod.k|mod.fn(2)|h(2)|h(1, u=3)|h.attr
inner()|G|len(lst)|lst[0]|sum(lst)|tup[1]|sum(tup)|len(objs)|d.get("u", 5)|d["v"]|len(d)|len(list(d)[0])|list(d.values())[0]|list(od)[0] == "p"|cfg["deep"]["n"]
len(st)|sum(st)|(1 if a is c else 2)|(1 if a is not b else 2)|(1 if a in objs else 2)|(1 if a == c else 2)|(1 if hasattr(a, "q") else 2)|(1 if hasattr(A, "q") else 2)
(1 if a else 2)|(1 if lst else 2)|(1 if isinstance(a, B) else 2)|(1 if callable(a) else 2)|(1 if 2 in st else 3)|(1 if "w" in d else 2)|len(vars(a))|len(a.__dict__)
m(x)|m.w|m.n|m.scale|len(list(m.parameters()))|len(list(m.buffers()))|int(m.training)|len(ml)|ml[1](x)|sum([f(x) for f in ml])|torch.ones(2)|torch.arange(2) * 1.5
torch.relu(x)|torch.nn.functional.relu(x)|int(torch.is_grad_enabled())|getattr(x, "tag", 1)|type(a).__name__ == "A"|a.__class__.k""".replace(
    "\n", "|"
).split("|")
CHANGES = """a.k = I|A.k = I|B.k = F|del A.k|a.v = F|del a.v|b.v = I|A.p = property(lambda s: I)|B.p = I|del B.p|A.meth = lambda s, n: n - I|B.meth = lambda s, n: n + I|del B.meth
A.cm = classmethod(lambda c: I)|A.sm = staticmethod(lambda n: n * I)|A.__init__ = lambda s, v=I: setattr(s, "v", v)|K.tw = lambda s: I|K.__len__ = lambda s: I
K.__init__ = lambda s, v: setattr(s, "v", v + I)|E.val = lambda s: I|Meta.mp = property(lambda c: I)|Q.mp = I|a.zz = I|A.zz = I|del a.zz|del A.zz|mod.zz = I|del mod.zz
mod.__getattr__ = lambda n: I|h.zz = I|del h.zz|del s.s|s.s = I|m.zz = I|mod.k = F|mod.k = I|mod.fn = lambda v: v - I|h.__defaults__ = (I,)|h.__kwdefaults__ = {"u": I}
h.attr = I|h.attr = F|h.__code__ = (lambda v, w=1, *, u=2: v + w - u).__code__|put(I)|put(F)|G = I|G = F|G = True|del G|lst.append(I)|lst[0] = F|lst.pop()|lst = [I]|lst.clear()
tup = (1, -0.0)|tup = (1.0, 0.0)|tup = (I, I)|objs = [b]|objs.append(A())|objs.insert(0, a)|objs.clear()|d["u"] = F|d.pop("u", None)|d = {"v": I, "u": I}|d["w"] = 1|d["v"] = I
od.move_to_end("p")|od["p"] = I|cfg["deep"]["n"] = I|cfg["deep"] = {"n": F}|st.add(I)|st = {1.0, 2}|st.discard(2)|a = A(I)|a = B(I)|c = a|c = A()|b = B()|a.q = 1|A.q = 1|del A.q
A.__getattr__ = lambda s, n: I|del A.__getattr__|A.__len__ = lambda s: 0|del A.__len__|A.__bool__ = lambda s: False|A.__call__ = lambda s: 1|A.__eq__ = lambda s, o: True|del A.__eq__
a.__class__ = B|a.__class__ = A|A.__getattribute__ = lambda s, n: 9 if n == "v" else object.__getattribute__(s, n)|del A.__getattribute__|B.__bases__ = (S2,)
m.train(False)|m.train()|m.w = torch.nn.Parameter(torch.full((2,), F))|m.n = torch.full((2,), F)|m.n.add_(1)|m.scale = I|m.scale = F|m.extra = torch.nn.Parameter(torch.ones(1))
m.forward = lambda x: x - I|del m.forward|M.forward = lambda s, x: x * I|m.register_forward_hook(lambda mod, i, o: o + I)|m.n = None|m._buffers["n"] = torch.ones(2)|m = M()
ml.append(torch.nn.ReLU())|ml[1] = torch.nn.Tanh()|torch.nn.ModuleList.__len__ = torch.nn.ModuleList.__len__|x.tag = I|x.tag = F|del x.tag|x = torch.ones(2) * I
torch.set_default_dtype(torch.float64)|torch.set_default_dtype(torch.float32)|torch.set_grad_enabled(False)|torch.set_grad_enabled(True)|x.requires_grad_()""".replace(
    "\n", "|"
).split("|")


def source(seed: int) -> tuple[str, list[str]]:
    """The function, and the statements between its calls."""
    r = random.Random(seed)
    reads = r.sample(READS, r.randint(2, 6))
    f = "def f(x):\n    y = x * 1\n" + "".join(f"    y = y * 2 + ({e})\n" for e in reads) + "    return y\n"
    changes = []
    for _ in range(r.randint(3, 7)):
        names = {w for e in reads for w in e.replace("(", " ").replace(".", " ").split() if w.isidentifier()}
        near = [c for c in CHANGES if names & set(c.replace(".", " ").replace("(", " ").replace("[", " ").split())]
        text = r.choice(near if near and r.random() < 0.8 else CHANGES)
        changes.append(
            text.replace(" I", f" {r.randint(3, 9)}")
            .replace("(I", f"({r.randint(3, 9)}")
            .replace("F", f"{r.randint(3, 9)}.5")
        )
    return f, changes


def run_one(f: str, changes: list[str], C) -> list:
    space: dict = {}
    exec(SETUP + "class S2(A): pass\n" + f, space)
    space["I"] = 7
    space["x"] = torch.tensor([1.0, -2.0])
    call, out = C(space["f"]), []
    try:
        for change in ["pass", "pass", *changes, "pass"]:
            attempt(exec, change, space)
            r = attempt(call, space["x"])
            out.append(r[:2] if isinstance(r, tuple) and r[:1] == ("error",) else snapshot(r))
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
    return out


def run(seed: int, backend: str = "eager") -> None:
    f, changes = source(seed)
    want = run_one(f, changes, lambda g: g)
    reset()
    old = _frame.set_strict_guards(True)
    try:
        with warnings.catch_warnings(), config.patch(strict_capture=True, cache_size_limit=32):
            warnings.simplefilter("error", RuntimeWarning)
            got = run_one(f, changes, lambda g: compile(g, backend=backend))
    finally:
        _frame.set_strict_guards(old)
    where = differ(want, got)
    assert where is None, f"seed {seed}: {where}\n{f}\n" + "\n".join(changes)


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    backends = sys.argv[3].split(",") if len(sys.argv) > 3 else ["eager"]
    failed = 0
    for seed in range(first, first + count):
        for backend in backends:
            try:
                run(seed, backend)
            except Exception as e:
                failed += 1
                print(backend, type(e).__name__, e, flush=True)
    print(f"{count} programs, {failed} failed")
