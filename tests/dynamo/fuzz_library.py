"""Random programs that make objects of the library and of the standard library inside a compiled function, use them, keep some and hand some out: generators,
distributions, modules, optimizers, loaders, locks, contexts, weak references, warnings, classes. ``python tests/dynamo/fuzz.py library FIRST COUNT
BACKENDS`` runs many. Called three times, with what was handed out by one call changed before the next: an object that is made once and baked in shows."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from programs import agree

HEADER = """\
import collections, contextlib, contextvars, copy, dataclasses, enum, functools, io, itertools, queue, random, threading, types, warnings, weakref
import numpy as np
class Net(torch.nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k, self.seen = k, []
        self.register_buffer("b", torch.full((2,), float(k)))
    def forward(self, x):
        self.seen.append(len(self.seen))
        self.b.add_(1)
        return x * self.k + self.b
class Data(torch.utils.data.Dataset):
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i):
        if i >= self.n: raise IndexError
        return torch.tensor([float(i)] * 2)
class Own:
    made = 0
    def __init__(self, v): self.v = v; Own.made += 1
    def __eq__(self, other): return isinstance(other, Own) and self.v == other.v
    def __hash__(self): return hash(self.v)
@contextlib.contextmanager
def noted(log, name):
    log.append(name)
    try: yield name
    finally: log.append("end " + name)
VAR = contextvars.ContextVar("var", default=1)
LOCAL = threading.local()
LOCAL.n = 0
outer = torch.nn.Linear(2, 2)
p = torch.nn.Parameter(torch.ones(2))
D = torch.distributions
"""

# {x} a tensor of two floats, {v} a new tensor, {o} a new object, {k} one made before (any kind), {n} a number, {c} the class of {k}'s making.
MAKE = """gen|torch.Generator().manual_seed({n})
gen|torch.Generator()
normal|D.Normal({x}, 1.0 + {n})
normal|D.Normal(torch.zeros(2), {x}.abs() + 0.1)
normal|D.Independent(D.Normal({x}, torch.ones(2)), 0)
module|torch.nn.ReLU()
module|torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Hardtanh(-{n}, {n} + 1))
module|Net({n})
module|torch.nn.Dropout(0.5)
module|torch.nn.BatchNorm1d(2, affine=False).eval()
module|copy.deepcopy(outer)
scaler|torch.amp.GradScaler("cpu", init_scale={n} + 1.0)
data|torch.utils.data.TensorDataset({x}, {x} + 1)
data|Data({n} + 1)
data|torch.utils.data.Subset([{x}, {x} * 2, {x} + 1], [0, 2])
loader|torch.utils.data.DataLoader(Data({n} + 2), batch_size=2)
loader|torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(range({n} + 2)), 2, False)
random|random.Random({n})
nprandom|np.random.RandomState({n})
lock|threading.Lock()
lock|threading.RLock()
queue|queue.SimpleQueue()
text|io.StringIO()
own|Own({n})
own|types.SimpleNamespace(v={n}, t={x})
counter|collections.Counter("ab" * {n})
deque|collections.deque([{n}, {x}], maxlen=3)
ddict|collections.defaultdict(list, a=[{n}])
odict|collections.OrderedDict(a={x}, b={n})
chain|collections.ChainMap({"a": {n}}, {"b": {x}})
iter|itertools.count({n})
iter|iter([{n}, 2, 3])
iter|itertools.cycle([{n}, 7])
partial|functools.partial(torch.add, {x}, alpha={n})
mode|torch.no_grad()
size|torch.Size([{n}, 2])
sgd|torch.optim.SGD([p], lr=0.1, momentum=0.5)""".split("\n")

USE = {
    "gen": "{v} = {x} + torch.rand(2, generator={o})|r.append({o}.initial_seed() if {n} else 0)|{o}.manual_seed({n})|{v} = {x} * torch.randint(0, 9, (2,), generator={o})|s = {o}.get_state(); {v} = {x} + torch.rand(2, generator={o}); {o}.set_state(s)",
    "normal": "{v} = {o}.log_prob({x})|{v} = {o}.rsample()|r.append({o}.batch_shape)|{v} = {o}.mean + {o}.variance|{v} = {o}.sample()|{o}.tag = {n}; r.append({o}.tag)|{v} = {o}.expand((2,)).mean",
    "module": "{v} = {o}({x}[None])[0]|r.append({o}.training); {o}.eval()|{o}.train({n} > 2)|r.append([k for k, _ in {o}.named_modules()])|h = {o}.register_forward_hook(lambda m, i, t: t * 2); {v} = {o}({x}[None])[0]; h.remove()|{o}.extra = {x}; {v} = {o}.extra + 1|r.append(sorted({o}.state_dict()))|{o}.requires_grad_(False)",
    "scaler": "{v} = {o}.scale({x})|r.append({o}.get_scale())|{o}.scale({x}); {o}.update({n} + 2.0)|r.append({o}.is_enabled())",
    "data": "r.append(len({o}))|r.append({o}[0])|r.append([i for i in {o}][:2] if isinstance({o}, Data) else 0)",
    "loader": "r.append(list({o}))|r.append(len({o}))|r.append(next(iter({o})))",
    "random": "{v} = {x} * {o}.random()|r.append({o}.randint(0, 9))|{o}.seed({n})|l = [1, 2, 3]; {o}.shuffle(l); r.append(l)|r.append({o}.choice('abc'))|s = {o}.getstate(); r.append({o}.random()); {o}.setstate(s)",
    "nprandom": "{v} = {x} * float({o}.rand())|r.append(int({o}.randint(5)))",
    "lock": "with {o}: {v} = {x} + 1|r.append({o}.acquire(False)); {o}.release()",
    "queue": "{o}.put({n}); r.append({o}.get())|r.append({o}.empty())|{o}.put({x})",
    "text": "{o}.write('a{n}'); r.append({o}.getvalue())|print({n}, file={o})",
    "own": "{o}.v += {n}; r.append({o}.v)|{o}.w = {x}; {v} = {o}.w * 2|r.append({o} == copy.copy({o}))|r.append(sorted(vars({o})))",
    "counter": "{o}.update('b'); r.append({o}['b'])|r.append({o}.most_common(1))|{o} += collections.Counter('a'); r.append({o}.total())",
    "deque": "{o}.append({x}); r.append(len({o}))|{o}.rotate(1)|r.append({o}.popleft() if {o} else 0)",
    "ddict": "{o}['z'].append({n}); r.append(len({o}))|r.append({o}.pop('a', None))|r.append({o}.default_factory is list)",
    "odict": "{o}.move_to_end(next(iter({o}))); r.append(list({o}))|{o}['c'] = {x}",
    "chain": "{o}['q'] = {n}; r.append(len({o}))|r.append({o}.maps[0])|r.append('b' in {o})",
    "iter": "{v} = {x} * next({o}, 1)|r.append(next({o}, 'end'))|r.append([a for a, _ in zip({o}, range(2))])",
    "partial": "{v} = {o}({x})|r.append({o}.keywords)",
    "mode": "with {o}: {v} = {x} * 2",
    "size": "r.append({o}.numel())|r.append({o} + (1,))",
    "sgd": "{o}.zero_grad(); (p * {x}).sum().backward(); {o}.step(); {v} = p * 1|{o}.param_groups[0]['lr'] *= 0.5|r.append(len({o}.state))|r.append({o}.param_groups[0]['lr'])",
}  # fmt: skip
USE = {kind: text.split("|") for kind, text in USE.items()}

STATEMENTS = """with warnings.catch_warnings(record=True) as w:|    warnings.simplefilter("always")|    warnings.warn("w{n}")|r.append([str(i.message) for i in w])
with torch.random.fork_rng(): {v} = {x} + torch.rand(2)
with torch.device("cpu"): {v} = {x} + torch.ones(2)
with noted(log, "n{n}"): {v} = {x} + len(log)
t = VAR.set({n}); r.append(VAR.get()); VAR.reset(t)
LOCAL.n += {n}; r.append(LOCAL.n)
w = weakref.ref(keep); r.append(w() is keep)
class C{n}:|    k = {n}|    def go(self, y): return y * self.k + len(r)|{v} = C{n}().go({x})
class E{n}(ValueError):|    def __init__(self, v): super().__init__(v); self.v = v|try: raise E{n}({n})|except ValueError as e: r.append((str(e), e.v, type(e).__name__))
@dataclasses.dataclass|class P{n}:|    a: int|    t: object = None|q = P{n}({n}, {x}); {v} = q.t * q.a; r.append(q.a)
{v} = torch.func.grad(lambda y: (y * y).sum())({x})
{v} = torch.utils.checkpoint.checkpoint(torch.sin, {x}, use_reentrant=False)
p.data = {x}.detach() * 1; {v} = p * 2
p.grad = {x}.detach() * 1; {v} = p.grad + 1
with torch.set_grad_enabled({n} > 2): {v} = {x} * 2
torch.manual_seed({n}); {v} = torch.rand(2)
r.append(copy.deepcopy([{n}, {"a": [1]}])); r[-1][1]["a"].append(2)
graph_break()
if {x}.sum() > {n}: {v} = {x} - 1|else: {v} = {x} + 1
try: raise KeyError({n})|except KeyError as e: import traceback; r.append(traceback.format_exception_only(e))
{v} = functools.reduce(torch.add, [{x}, {x}], torch.zeros(2))
s = torch.get_rng_state(); {v} = {x} + torch.rand(2); torch.set_rng_state(s)""".split("\n")
KEPT = frozenset(("gen", "module", "own", "counter", "deque", "ddict", "odict", "random", "queue", "text", "scaler"))
CHANGE = {
    "gen": "{k}.manual_seed(5)",
    "module": "{k}.eval(); {k}.extra = 3",
    "own": "{k}.v = 50",
    "counter": "{k}['b'] += 9",
    "deque": "{k}.append(9)",
    "ddict": "{k}['z'].append(9)",
    "odict": "{k}['zz'] = 9",
    "random": "{k}.seed(9)",
    "queue": "{k}.put(9)",
    "text": "{k}.write('zz')",
    "scaler": "{k}.scale(torch.ones(1)); {k}.update(64.0)",
}


@dataclass(frozen=True)
class Grammar:
    """What functions of ``x`` and ``keep`` are made of: what their module holds, lines that make an object of a kind, that use one, that use none,
    the kinds that may be kept, and what is done to kept ones between calls."""

    header: str
    make: list[str]
    use: dict[str, list[str]]
    statements: list[str]
    kept: frozenset[str]
    change: dict[str, str]
    seen: str = "p, p.grad"  # what a program returns beside
    argument: str = "torch.tensor([{k}.0, 0.5])"
    behind: str = "pass"  # what is done with the results ``out[-1]`` of each call


GRAMMAR = Grammar(HEADER, MAKE, USE, STATEMENTS, KEPT, CHANGE, "p, p.grad, Own.made, LOCAL.n")


class Program:
    def __init__(self, seed: int, grammar: Grammar = GRAMMAR):
        self.r = random.Random(seed)
        self.grammar = grammar
        self.tensors, self.objects = ["x"], {}
        self.lines: list[str] = []
        self.fresh = 0

    def filled(self, text: str, obj: str = "") -> list[str]:
        r = self.r
        v = f"t{self.fresh}"
        self.fresh += 1
        marks = {"o": obj, "x": r.choice(self.tensors), "n": str(r.randint(0, 5)), "v": v}
        for mark, value in marks.items():
            text = text.replace("{" + mark + "}", value)
        lines = re.split(r"\|", text)
        if v in text:
            lines = [f"{v} = {marks['x']}", *lines]
            self.tensors.append(v)
        return lines

    def statement(self) -> None:
        r, g = self.r, self.grammar
        kind = r.random()
        if kind < 0.35 or not self.objects:
            what, _, text = r.choice(g.make).partition("|")
            name = f"o{len(self.objects)}"
            self.lines += self.filled(f"{name} = {text}")
            self.objects[name] = what
        elif kind < 0.75:
            name = r.choice(list(self.objects))
            self.lines += self.filled(r.choice(g.use[self.objects[name]]), name)
        else:
            self.lines += self.filled(r.choice(g.statements))

    def source(self) -> str:
        g = self.grammar
        for _ in range(self.r.randint(4, 12)):
            self.statement()
        kept = [n for n, what in self.objects.items() if what in g.kept]
        kept = self.r.sample(kept, min(2, len(kept)))
        body = [*self.lines, f"return [{', '.join(self.tensors[-3:])}], r, [{', '.join(kept)}]"]
        f = ["def f(x, keep):", "    r = []", *(f"    {line}" for line in body)]
        change = [g.change[self.objects[n]].replace("{k}", f"out[-1][2][{i}]") for i, n in enumerate(kept)]
        calls = ["f, keep, out = C(f), Own(3), []"]
        for k in (1, 2, 3):
            calls += [
                f"try: out.append(f({g.argument.replace('{k}', str(k))}, keep))",
                "except (RuntimeError, ValueError, TypeError, AttributeError, IndexError) as e: out.append(([], [type(e).__name__, str(e)], []))",
                g.behind,
                f"if out[-1][2]: {'; '.join(change) or 'pass'}",
            ]
        same = "[a is b for u, w in zip(out, out[1:]) for a, b in zip(u[2], w[2])]"
        last = f"return [o[:2] for o in out], {same}, log, {g.seen}, torch.rand(1), out[0][2]"
        lines = [*g.header.splitlines(), "log = []", "from flambeau.compiler import graph_break", *f, *calls, last]
        return "def prog(C, torch):\n" + "\n".join(f"    {line}" for line in lines) + "\n"


def run(seed: int, backend: str = "eager", grammar: Grammar = GRAMMAR) -> None:
    import linecache

    source, filename = Program(seed, grammar).source(), f"/fuzz_library/{seed}.py"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {"__name__": "fuzz_library"}
    exec(compile(source, filename, "exec"), scope)
    try:
        agree(scope["prog"], [backend])
    except AssertionError as e:
        raise AssertionError(f"{e}\n{source}") from None
