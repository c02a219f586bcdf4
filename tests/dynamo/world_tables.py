"""The world of fuzz_world.py: what there is, what a function may read and write of it, and how it may change between two calls.

``I`` stands for an integer and ``F`` for a float. A change meets reads that share a name with it more often than others.
"""

SETUP = """
import abc, array, builtins, collections, contextvars, dataclasses, enum, functools, itertools, math, operator, os, sys, types, weakref
import flambeau as torch
ctx = lambda: torch.enable_grad()
class Desc:
    def __init__(self, v): self.v = v
    def __get__(self, obj, cls): return self.v + (0 if obj is None else 1)
class Data:
    def __get__(self, obj, cls): return obj.__dict__.get("hid", 5)
    def __set__(self, obj, v): obj.__dict__["hid"] = v
class A:
    k = 2
    desc = Desc(4)
    data = Data()
    def __init__(self, v=1): self.v = v
    @property
    def p(self): return self.v + 1
    @functools.cached_property
    def cp(self): return self.v * 3
    def meth(self, n): return n * self.k
    @classmethod
    def cm(cls): return cls.k + 1
    @staticmethod
    def sm(n): return n + 4
    def __add__(self, o): return self.v + o
    def __radd__(self, o): return self.v - o
    def __iter__(self): return iter((self.v, 2))
    def __contains__(self, o): return o == self.v
    def __enter__(self): return self.v
    def __exit__(self, *e): return False
    def __getitem__(self, i): return self.v + i
class S2(A): pass
class Mid(A):
    def meth(self, n): return super().meth(n) + 5
class B(Mid):
    def meth(self, n): return super().meth(n) + 1
    @property
    def p(self): return super().p * 2
class Slotted:
    __slots__ = ("s", "t")
    def __init__(self): self.t = 3
class K:
    def __init__(self, v): self.v = v
    def tw(self): return self.v * 2
    def __len__(self): return 2
class E(enum.Enum):
    X = 1
    Y = 2
    def val(self): return self.value * 3
class Fl(enum.IntFlag):
    R = 1
    W = 2
class Meta(type):
    @property
    def mp(cls): return 3
    def mm(cls): return 4
    def __len__(cls): return 5
class Q(metaclass=Meta): pass
class Abc(abc.ABC):
    @abc.abstractmethod
    def am(self): pass
@dataclasses.dataclass
class DC:
    u: int = 1
    w: float = 2.0
@dataclasses.dataclass(frozen=True)
class FZ:
    u: int = 1
NT = collections.namedtuple("NT", "u w")
class LL(list):
    extra = 1
    def total(self): return sum(self)
class DD(dict):
    extra = 1
class II(int):
    def half(self): return self // 2
class M(torch.nn.Module):
    const = 3
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("n", torch.zeros(2))
        self.scale = 2
        self.sub = torch.nn.Linear(2, 2)
        with torch.no_grad(): self.sub.weight.fill_(0.5); self.sub.bias.fill_(0.25)
        self.cfg = {"gain": 2}
    def forward(self, x): return x * self.w + self.n * self.scale + (1 if self.training else 0) + self.sub(x)
    @property
    def prop(self): return self.scale + 1
    def helper(self): return self.scale * self.const
def h(v, w=1, *, u=2): return v * w + u
h.attr = 1
def deco(fn):
    @functools.wraps(fn)
    def inner(*a): return fn(*a) + 1
    return inner
@deco
def decorated(n): return n * 2
@functools.lru_cache(None)
def cached(n): return n + 1
@functools.singledispatch
def sd(v): return 1
@sd.register
def _(v: float): return 2
pt = functools.partial(h, 2, u=5)
def outer():
    cell = 1
    def inner(): return cell
    def put(v):
        nonlocal cell
        cell = v
    return inner, put
inner, put = outer()
a, b, c, s, m, mod = A(), B(), A(3), Slotted(), M(), types.ModuleType("mod")
zmod = types.ModuleType("zmod"); zmod.k = 2; zmod.fn = lambda v: v * 3; sys.modules["zmod"] = zmod
mod.k, mod.fn, s.s = 3, (lambda v: v + 1), 1
G, lst, tup, objs, st = 1, [1, 2], (1, 0.0), [a, b], {1, 2}
d, od, cfg = {"u": 1, "v": 2.0}, collections.OrderedDict(p=1, q=2), {"deep": {"n": 1}}
ll, dd, ii, dq, df, cnt = LL([1, 2]), DD(u=1), II(6), collections.deque([1, 2], 3), collections.defaultdict(int, u=1), collections.Counter("aab")
cm, ns, nt, dc, fz, arr, ba = collections.ChainMap({"u": 1}, {"w": 2}), types.SimpleNamespace(u=1), NT(1, 2.0), DC(), FZ(), array.array("i", [1, 2]), bytearray(b"ab")
cv = contextvars.ContextVar("cv", default=1)
wr = weakref.ref(a)
fns = {"one": h, "two": lambda v: v + 2}
text, rng, slc, fset, cplx, big = "abc", range(4), slice(0, 1), frozenset({1, 2}), 1 + 2j, 10**20
ml = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.ReLU()])
pl = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))])
sq = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
T = torch.tensor([0.5, 2.0])
"""

READS = [
    line
    for line in """
a.k|A.k|B.k|a.v|b.v|a.p|b.p|a.meth(2)|b.meth(2)|A.cm()|B.cm()|b.sm(1)|B().meth(3)|B(2).p|K(3).tw()|len(K(1))|K(2).v|E.X.val()|E.Y.val()|Q.mp|Q.mm()|len(Q)
a.desc|A.desc|b.desc|a.data|a.cp|a + 1|1 + a|sum(a)|(1 if 3 in a else 2)|a[2]|[*a][0]|super(B, b).meth(1)|Mid.meth(b, 1)|A.__dict__["k"]|(lambda q: q.k)(a)
getattr(a, "zz", 3)|getattr(A, "zz", 4)|getattr(mod, "zz", 5)|getattr(h, "zz", 6)|getattr(s, "s", 7)|getattr(m, "zz", 8)|mod.k|mod.fn(2)|h(2)|h(1, u=3)|h.attr|s.t
decorated(2)|cached(2)|sd(1)|sd(1.5)|pt()|pt(w=3)|pt.keywords["u"]|fns["one"](1)|fns["two"](1)|operator.attrgetter("v")(a)|operator.methodcaller("meth", 2)(a)
inner()|G|len(lst)|lst[0]|sum(lst)|tup[1]|sum(tup)|len(objs)|d.get("u", 5)|d["v"]|len(d)|len(list(d)[0])|list(d.values())[0]|(1 if list(od)[0] == "p" else 2)|cfg["deep"]["n"]
len(st)|sum(st)|(1 if a is c else 2)|(1 if a is not b else 2)|(1 if a in objs else 2)|(1 if a == c else 2)|(1 if hasattr(a, "q") else 2)|(1 if hasattr(A, "q") else 2)
(1 if a else 2)|(1 if lst else 2)|(1 if isinstance(a, B) else 2)|(1 if callable(a) else 2)|(1 if 2 in st else 3)|(1 if "w" in d else 2)|len(vars(a))|len(a.__dict__)
ll.total()|len(ll)|sum(ll)|ll[0]|ll.extra|dd["u"]|dd.extra|dd.get("w", 4)|(1 if "w" in dd else 2)|ii.half()|ii + 1|dq[0]|dq.maxlen|len(dq)|df["u"]|df["new"]|cnt["a"]|cnt.most_common(1)[0][1]
cm["u"]|cm["w"]|ns.u|nt.u|nt.w|dc.u|dc.w|DC().u|DC(3).u|fz.u|(1 if dc == DC() else 2)|arr[0]|ba[0]|len(ba)|cv.get()|(1 if wr() is None else wr().v)|len(text)|sum(rng)|slc.stop|x[slc]|sum(fset)
cplx.real|big % 7|E(1).value|len(E)|len(Fl.R.__or__(Fl.W))|(1 if isinstance(a, Abc) else 2)|(1 if issubclass(A, Abc) else 2)|type(a).__mro__.index(A)|(1 if type(b) is B else 2)|len(f"{a.v:>4}")
m(x)|m.w|m.n|m.scale|m.prop|m.helper()|m.const|m.cfg["gain"]|m.sub.weight.sum()|m.sub(x)|len(list(m.parameters()))|len(list(m.buffers()))|len(list(m.children()))|int(m.training)|len(ml)|ml[1](x)
sum([q(x) for q in ml])|sq(x)|len(sq)|pl[0]|sum(p.sum() for p in m.parameters())|len(dict(m.named_parameters()))|getattr(m, "sub").bias.sum()|(1 if hasattr(m, "extra") else 2)
torch.ones(2)|torch.arange(2) * 1.5|torch.tensor(1.5)|T|T * 2|T.sum()|torch.relu(x)|torch.nn.functional.relu(x)|x.sigmoid()|int(torch.is_grad_enabled())|int(torch.is_inference_mode_enabled())
getattr(x, "tag", 1)|int(type(a).__name__ == "A")|a.__class__.k|len(a.__class__.__name__)|abs(-3)|math.pi|math.floor(2.5)|int(os.environ.get("ZZ", "1"))|len(os.environ.get("ZZ", ""))|(1 if "ZZ" in os.environ else 2)
zmod.k|zmod.fn(1)|__import__("zmod").k|sys.modules["zmod"].k|torch.mm(x.view(1, 2), x.view(2, 1)).sum()|torch.nn.functional.linear(x, m.sub.weight)|int(torch.are_deterministic_algorithms_enabled())
int(torch.get_default_dtype() is torch.float32)|torch.get_num_threads()|globals()["G"]|globals().get("NEW", 1)|eval("G")|len(vars(mod))|len(dir(a)) * 0|h.__defaults__[0]|h.__kwdefaults__["u"]|len(h.__name__)
next(iter(d))  == "u"|min(lst)|max(lst)|any(lst)|all(lst)|sorted(lst)[0]|list(reversed(lst))[0]|list(zip(lst, lst))[0][1]|dict(d)["u"]|{**d}["u"]|[*lst][-1]|list(map(float, lst))[0]|str(G) + ""  == "1"|int(str(len(lst)))
(1 if x.requires_grad else 2)|x.dtype.itemsize|(1 if x.is_contiguous() else 2)|x.shape[0]|(1 if x.grad is None else 2)|(1 if T.requires_grad else 2)|len(x)|x.dim()""".replace(
        "\n", "|"
    ).split("|")
    if line
]

WRITES = """a.v += 1|lst.append(len(lst))|d["u"] = d.get("u", 0) + 1|global G; G = (G if "G" in globals() else 0) + 1|m.scale = m.scale + 1|objs.append(1)|dq.append(3)|dc.u = dc.u + 1|ll.append(1)|od.move_to_end("p")
st.add(len(st))|a.fresh = 3|mod.k = mod.k + 1|A.k = 5|m.n.add_(1)|m.cfg["gain"] += 1|T.mul_(1.5)|h.attr = 9|put(inner() + 1)|ns.u = 4|s.t += 1|dd["u"] = 7|cnt.update("a")|y = y.clone(); y[0] = 0""".replace(
    "\n", "|"
).split("|")

WATCHED = "a.v|lst|d|G|m.scale|len(objs)|list(dq)|dc.u|list(ll)|list(od)|sorted(map(str, st))|vars(a)|mod.k|A.k|m.n|m.cfg|T|h.attr|inner()|ns.u|s.t|dict(dd)|dict(cnt)|x|len(vars(m))".split(
    "|"
)

CHANGES = [
    line
    for line in """
a.k = I|A.k = I|B.k = F|del A.k|a.v = F|del a.v|b.v = I|A.p = property(lambda s: I)|B.p = I|del B.p|A.meth = lambda s, n: n - I|B.meth = lambda s, n: n + I|del B.meth|del Mid.meth|Mid.meth = lambda s, n: I
A.cm = classmethod(lambda c: I)|A.sm = staticmethod(lambda n: n * I)|A.__init__ = lambda s, v=I: setattr(s, "v", v)|K.tw = lambda s: I|K.__len__ = lambda s: I|K.__new__ = lambda c, v: object.__new__(c)
K.__init__ = lambda s, v: setattr(s, "v", v + I)|E.val = lambda s: I|Meta.mp = property(lambda c: I)|Q.mp = I|a.zz = I|A.zz = I|del a.zz|del A.zz|mod.zz = I|del mod.zz|A.zz = property(lambda s: s.v)
Meta.mm = lambda c: I|Q.mm = lambda: I|Meta.__len__ = lambda c: I|Meta.__call__ = lambda c: I|Q.__class__ = type("Meta2", (Meta,), {"mp": I})|Meta.__getattr__ = lambda c, n: I|Meta.__getattribute__ = lambda c, n: I
A.desc = Desc(I)|A.desc = I|a.desc = I|Desc.__get__ = lambda s, o, c: I|Desc.__set__ = lambda s, o, v: None|a.__dict__["desc"] = I|a.data = I|Data.__get__ = lambda s, o, c: I|del Data.__set__|a.__dict__["data"] = I|A.data = I
a.cp = I|del a.cp|A.cp = I|A.__add__ = lambda s, o: I|del A.__radd__|A.__iter__ = lambda s: iter([I])|A.__contains__ = lambda s, o: True|del A.__contains__|A.__getitem__ = lambda s, i: I
mod.__getattr__ = lambda n: I|h.zz = I|del h.zz|del s.s|s.s = I|m.zz = I|mod.k = F|mod.k = I|mod.fn = lambda v: v - I|h.__defaults__ = (I,)|h.__kwdefaults__ = {"u": I}|h.__kwdefaults__["u"] = I|del h.__defaults__
h.attr = I|h.attr = F|h.__code__ = (lambda v, w=1, *, u=2: v + w - u).__code__|h = lambda v, w=1, u=3: v - u|put(I)|put(F)|G = I|G = F|G = True|del G|lst.append(I)|lst[0] = F|lst.pop()|lst = [I]|lst.clear()|lst = (I, 2)|lst = LL([I])
s = Slotted()|s.t = I|Slotted.t = property(lambda q: I)|Slotted.t = I|Slotted.s = I|tup = (1, -0.0)|tup = (1.0, 0.0)|tup = (I, I)|tup = (True, 0.0)|objs = [b]|objs.append(A())|objs.insert(0, a)|objs.clear()|objs[0] = c
d["u"] = F|d.pop("u", None)|d = {"v": I, "u": I}|d["w"] = 1|d["v"] = I|d = collections.OrderedDict(v=1, u=I)|d = DD(d)|d = {"v": d.pop("v", 1), **d}|d["u"] = d.pop("u", 1)|d = types.MappingProxyType({"u": I, "v": 2})
od.move_to_end("p")|od["p"] = I|cfg["deep"]["n"] = I|cfg["deep"] = {"n": F}|st.add(I)|st = {1.0, 2}|st.discard(2)|st = frozenset({I})|a = A(I)|a = B(I)|c = a|c = A()|b = B()|a.q = 1|A.q = 1|del A.q|a = c|b = S2()
LL.total = lambda s: I|LL.__len__ = lambda s: I|LL.__iter__ = lambda s: iter([I])|LL.__getitem__ = lambda s, i: I|LL.extra = I|ll.extra = I|ll.append(I)|ll[0] = F|DD.__missing__ = lambda s, k: I|DD.__contains__ = lambda s, k: True|DD.get = lambda s, k, e: I
DD.__getitem__ = lambda s, k: I|dd.extra = I|del dd["u"]|dd["w"] = I|II.half = lambda s: I|II.__add__ = lambda s, o: I|ii = II(I)|ii = I|dq.append(I)|dq.appendleft(I)|dq = collections.deque([I])|df["u"] = I|df.default_factory = lambda: I
df.default_factory = None|df.clear()|cnt["a"] = I|cnt.clear()|cm.maps[0]["u"] = I|cm.maps.reverse()|del cm.maps[0]["u"]|cm.maps[0]["w"] = I|ns.u = I|del ns.u|ns.u = F|nt = NT(I, F)|nt = NT(1, 2)|nt = (I, 2)|NT.u = I|dc.u = I|DC.u = I|dc = DC(I)
DC.__init__ = lambda s, u=I: setattr(s, "u", u)|DC.__eq__ = lambda s, o: False|dc.w = I|fz = FZ(I)|FZ.u = property(lambda s: I)|object.__setattr__(fz, "u", I)|arr[0] = I|arr.append(I)|ba[0] = I|ba.append(I)|cv.set(I)|cv.set(F)|wr = weakref.ref(b)|wr = lambda: None
text = "abcd"|text = "xyz"|rng = range(I)|rng = range(0, 4, 2)|slc = slice(1, 2)|slc = 1|fset = frozenset({I})|cplx = 2 + 2j|big = 10**20 + I|big = I|E.X._value_ = I|Abc.register(A)|Abc.__subclasshook__ = classmethod(lambda c, o: True)|A.am = 1
sd.register(int)(lambda v: I)|sd.register(float)(lambda v: I)|pt.keywords["u"] = I|pt = functools.partial(h, I)|cached.cache_clear()|cached = lambda n: I|decorated.__wrapped__ = h|decorated = h|fns["one"] = lambda v: I|fns["two"].__code__ = (lambda v: v - 2).__code__
A.__getattr__ = lambda s, n: I|del A.__getattr__|A.__len__ = lambda s: 0|del A.__len__|A.__bool__ = lambda s: False|A.__call__ = lambda s: 1|A.__eq__ = lambda s, o: True|del A.__eq__|A.__hash__ = lambda s: 1|A.__ne__ = lambda s, o: False
a.__class__ = B|a.__class__ = A|A.__getattribute__ = lambda s, n: 9 if n == "v" else object.__getattribute__(s, n)|del A.__getattribute__|B.__bases__ = (S2,)|Mid.__bases__ = (S2,)|B.__bases__ = (Mid, S2)|A.__name__ = "Z"|A.__qualname__ = "Z"
m.train(False)|m.train()|m.training = False|m.w = torch.nn.Parameter(torch.full((2,), F))|m.n = torch.full((2,), F)|m.n.add_(1)|m.scale = I|m.scale = F|m.extra = torch.nn.Parameter(torch.ones(1))|m.w.data.fill_(I)|m.w.requires_grad_(False)
m.forward = lambda x: x - I|del m.forward|M.forward = lambda s, x: x * I|m.register_forward_hook(lambda mod, i, o: o + I)|m.n = None|m._buffers["n"] = torch.ones(2)|m = M()|m.register_forward_pre_hook(lambda mod, i: (i[0] * I,))|del m.n
M.prop = property(lambda s: I)|M.const = I|m.const = I|M.helper = lambda s: I|m.helper = lambda: I|m.cfg["gain"] = I|m.cfg = {"gain": F}|m.sub = torch.nn.Identity()|m.sub.weight.data.fill_(I)|m.sub = None|m.sub.register_forward_hook(lambda q, i, o: o * I)
M.__getattr__ = lambda s, n: torch.nn.Module.__getattr__(s, n) if n in ("_modules",) else I|m.sub.forward = lambda x: x * I|m.sub.bias = None|del m.sub|m.register_module("two", torch.nn.ReLU())|m.sub.weight = torch.nn.Parameter(torch.ones(2, 2))|m.half()|m.double()|m.float()
torch.nn.Linear.forward = lambda s, x: x * I|torch.nn.ReLU.forward = lambda s, x: x - I|M.__call__ = lambda s, x: x * I|m.scale = torch.ones(2)|m.eval()|m.requires_grad_(False)|m.sub.eval()
ml.append(torch.nn.ReLU())|ml[1] = torch.nn.Tanh()|ml.insert(0, torch.nn.Tanh())|sq.append(torch.nn.ReLU())|sq[0] = torch.nn.Tanh()|del sq[0]|pl[0] = torch.nn.Parameter(torch.full((2,), F))|pl.append(torch.nn.Parameter(torch.ones(2)))|pl[0].data.fill_(I)
x.tag = I|x.tag = F|del x.tag|x = torch.ones(2) * I|x = torch.ones(2, dtype=torch.float64)|x = torch.ones(4)[::2]|x = torch.ones(3)|x = torch.nn.Parameter(torch.ones(2))|x.grad = torch.ones(2)|x = x.detach().clone()
T = torch.full((2,), F)|T.fill_(I)|T = T.double()|T.requires_grad_()|T = torch.nn.Parameter(T)|T = I|T.add_(1)|T = T.clone()
torch.set_default_dtype(torch.float64)|torch.set_default_dtype(torch.float32)|torch.set_grad_enabled(False)|torch.set_grad_enabled(True)|x.requires_grad_()|torch.set_num_threads(1)|torch.set_num_threads(2)|torch.use_deterministic_algorithms(True)
ctx = lambda: torch.no_grad()|ctx = lambda: torch.enable_grad()|ctx = lambda: torch.autocast("cpu", dtype=torch.bfloat16)|ctx = lambda: torch.inference_mode()|ctx = lambda: torch.autocast("cpu", enabled=False)|ctx = lambda: torch.set_grad_enabled(False)
torch.relu = lambda x: x * I|torch.nn.functional.relu = lambda x: x * I|torch.Tensor.sigmoid = lambda s: s * I|builtins.abs = lambda v: I|abs = lambda v: I|del abs|len = lambda v: I|del len|sum = lambda v: I|del sum|max = lambda *v: I|isinstance = lambda o, c: True|float = int
math.pi = F|math.floor = lambda v: I|os.environ["ZZ"] = "I"|os.environ.pop("ZZ", None)|zmod.k = I|zmod.fn = lambda v: I|zmod.__getattr__ = lambda n: I|del zmod.k|sys.modules["zmod"] = mod|sys.modules["zmod"] = types.SimpleNamespace(k=I)|NEW = I|del NEW|globals()["G"] = F
range = lambda n: [0, 0]|getattr = lambda o, n, e=None: I|del getattr|type = lambda o: B|callable = lambda o: True|del range|del isinstance|vars = lambda o: {}|hasattr = lambda o, n: True|del hasattr|super = lambda *a: c|operator = types.SimpleNamespace(attrgetter=lambda n: lambda o: I)""".replace(
        "\n", "|"
    ).split("|")
    if line
]
