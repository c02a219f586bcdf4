"""Random functions with tensors, containers, closures, classes, branches on data, graph breaks, with and try blocks, called plainly and compiled
with changes to their globals and classes in between. ``fuzz.py programs FIRST COUNT`` runs many.

Results, arguments, what is identical to what, errors, the globals and gradients must be the same: bit for bit where the operators run as they are,
and under inductor, whose kernels are other computations, by the rule of ``helpers.near`` with ``ULPS``. Gradients are added up in another order
by every backend but ``eager``, so the rule is theirs too.
"""

import copy
import linecache
import random
import re

from helpers import outcome, same

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile as compiled_by
from flambeau.dynamo.config import config

# What a few dozen fused operations on numbers of size one come to; sums that cancel make it relative to the largest element, not to each.
ULPS = 256

HEADER = """
import collections, contextlib, functools, itertools
import flambeau as torch
from flambeau.compiler import graph_break
class Obj:
    def __init__(self): self.t, self.n, self.items = None, 0, []
def helper(a, b):
    return a * 2 - b
def breaking(a):
    a = a + 1
    graph_break()
    return a * 3
def gen(a, k):
    for i in range(k):
        yield a + i
class Manager:
    def __init__(self, o, swallow): self.o, self.swallow = o, swallow
    def __enter__(self):
        self.o.items.append("in")
        return self.o.n
    def __exit__(self, *exc):
        self.o.items.append(exc[0].__name__ if exc[0] else "out")
        return self.swallow and exc[0] is ValueError
def careful(a, k, log):
    try:
        for i in range(k):
            try:
                got = yield a * i
                log.append(got)
            except ValueError as e:
                log.append(e.args)
                yield a - 1
    finally:
        log.append("closed")
@contextlib.contextmanager
def noted(o, name):
    o.items.append(name)
    try:
        yield name
    except KeyError as e:
        o.items.append(e.args)
    finally:
        o.items.append("end " + name)
COUNT = 0
def bump(k=1):
    global COUNT
    COUNT += k
    return COUNT
class Vec:
    __slots__ = ("t",)
    scale = 1
    def __init__(self, t): self.t = t
    def __add__(self, other): return Vec(self.t + (other.t if isinstance(other, Vec) else other))
    def __radd__(self, other): return Vec(other - self.t)
    def __getitem__(self, i): return self.t[i] * self.scale
    def __len__(self): return 4
    def __call__(self, k): return self.t * k
    @property
    def twice(self): return self.t * 2
    @classmethod
    def of(cls, *ts): return cls(sum(ts) * cls.scale)
class Base:
    k = 2
    def go(self, t): return t * self.k
    def __getattr__(self, name):
        if name.startswith("v"): return len(name)
        raise AttributeError(name)
class Derived(Base):
    def go(self, t): return super().go(t) + self.vow
def early(q, o):
    for i in range(3):
        try:
            if i == 1: return q + i
        finally:
            o.n += 1
def cached(fn):
    seen = {}
    @functools.wraps(fn)
    def wrapper(t, k):
        if k not in seen: seen[k] = k * 2
        return fn(t, seen[k])
    return wrapper
@cached
def scaled(t, k): return t * k
"""

# Statements over a tensor {t}, another {u} and a number {i}: {v} is a new tensor, {n} a new number, {f} a new name, {c} a small constant.
STATEMENTS = """{v} = {t} if {i} > 2 else {u}
*{f}, {v} = [{t}, {u}, {t} * 2]
{v} = dict(a={t}, b={u}, **{'c': 1})['b']
if ({n} := len(xs)) > 1: xs.pop()
{v} = {t}; {v} += {i}
{v} = {t} + 1; {v} -= {u}; {v} *= 2
o.items.append(sorted({1, *[len(xs), {i}]}))
xs.extend([{t}, {u}][:{i}])
{v} = collections.deque([{t}, {u}], maxlen=1)[0]
{v} = functools.reduce(lambda p, q: p + q, [{t}, {u}, {t}])
{v} = functools.partial(helper, b={t})({u})
o.items.append({k: k * 2 for k in range({i} % 4)})
while len(xs) > {c}:|    xs.pop()|else:|    o.n += 1
for {f} in range(3):|    if {f} == {c}: break|    o.n += {f}|else:|    o.items.append('else')
try:|    {v} = o.missing|except AttributeError as e:|    {v} = {t}; o.items.append(str(e))
try:|    raise KeyError({i}) from ValueError(1)|except (KeyError, TypeError) as e:|    o.items.append(repr(e.__cause__))
def {f}(a, *b, c=1, **k): return a * c + sum(b) + sum(k.values())|{v} = {f}({t}, {u}, z={t}, c={i})
{v} = (Vec({t}) + {u}).t
{v} = (1 + Vec({t})).twice
{v} = Vec({t})[{c} % 4] + Vec({u})({i})
{v} = Vec.of({t}, {u}).t
{v} = Derived().go({t})
try:|    {v} = Base().wow|except AttributeError as e:|    {v} = {t} - 1
{v} = {t} * bump()
{n} = bump({i})
{v} = early({t}, o)
{v} = scaled({t}, {i})
try:|    raise ExceptionGroup('g', [ValueError({c}), KeyError(2)])|except* ValueError as g:|    o.items.append(g.exceptions[0].args)|except* KeyError:|    o.n += 1
try:|    assert {i} < {c}, 'no'|    {v} = {t}|except AssertionError:|    {v} = {u} + 1|    bump()
{f} = {}; {f}[{i}] = {t}; {f}.update(z={u}); {v} = list({f}.values())[-1]; o.items.append(list({f}))
o.__dict__['n'] = {i}; setattr(o, 'm' + str({c}), len(vars(o)))
o.items.append((isinstance({t}, torch.Tensor), {t}.dtype == {u}.dtype, {t} is {u}, {t}.dim()))
o.items.append('%s-%r' % ({i}, [len(d), o.n]))
o.items.append(sorted([({c}, 'b'), ({i}, 'a')], key=lambda p: (p[1], p[0])))
{v} = sum(map(lambda q: q * 2, filter(lambda q: q is not None, [{t}, None, {u}])))
o.items.append((any(k > 2 for k in range({i} % 5)), all([{c}, {i}]), min({c}, {i}), divmod({i}, 3)))
{v} = torch.where({t} > {u}, {t}, {u} * 2)
{v} = {t}.view(2, 2)[{c} % 2].repeat(2)
{f} = {t}.clone(); {f}[{c} % 4] = {i}; {v} = {f}
{f} = {t}.clone(); {f}[1:3].mul_(2); {v} = {f}.neg()
{v} = {t}.detach() * {u}
{v} = torch.stack([q for k, q in enumerate(({t}, {u}, x)) if k != {c} % 3]).mean(0)
with contextlib.suppress(KeyError):|    o.items.append(d['absent'])
with contextlib.ExitStack() as {f}:|    {f}.callback(o.items.append, {c})|    {f}.enter_context(noted(o, 's'))|    {v} = {t} + o.n
{v} = [{t}, {u}]; {v}.reverse(); {v} = {v}[0]
xs.insert({c}, {t}); o.items.append(len(xs))
for {f}, q in sorted(d.items(), key=lambda p: str(p[0])): o.items.append(({f}, q.shape))
{f} = iter([{t}, {u}]); {v} = next({f}); o.items.append(next({f}, None) is None)
def {f}():|    yield {t}|    got = yield from gen({u}, 2)|    return got|{v} = sum({f}())
{v} = {t}.max() * {u} + {t}.argmax()
o.items.append((lambda *a, k=2: (len(a), k))(*xs, k={i}))
{v} = (lambda f, q: f(f, q, {c} % 3))(lambda f, q, k: q if not k else f(f, q * 2, k - 1), {t})
if {t}.requires_grad: {v} = {t} * 2|else: {v} = {t} * 3
del d['k']
o.n: int = {i} + o.n
{v} = torch.zeros(4).copy_({t}); xs[:1] = [{v}]
""".strip().split("\n")

# Between two calls.
CHANGES = """helper = lambda a, b: a * 3 - b
def helper(a, b): return b * 2 - a
Obj.n2 = 3
Manager.__exit__ = lambda self, *exc: self.swallow
Manager.__enter__ = lambda self: self.o.items.append('other')
breaking = lambda a: a * 3 + 1
gen = lambda a, k: iter([a] * k)
Vec.__add__ = lambda s, o: Vec(s.t - (o.t if isinstance(o, Vec) else o))
Vec.scale += 1
Vec.twice = property(lambda s: s.t * 5)
Base.k = 7
Base.vow = 1.5
del Base.vow
Derived.go = lambda s, t: t - 1
Derived.__bases__ = (type('Other', (Base,), {'k': 11}),)
torch.set_grad_enabled(False)
torch.set_grad_enabled(True)
COUNT += 5
scaled = cached(lambda t, k: t - k)
Obj.__setattr__ = lambda s, k, v: object.__setattr__(s, k, v)
bump.__defaults__ = (4,)
bump = lambda k=1: k
early = lambda q, o: q * 3
noted = contextlib.contextmanager(lambda o, name: iter([name + '2']))
pass
pass
""".strip().split("\n")


class Program:
    """Statements over tensors, numbers and the arguments of ``f``. ``more_often``: the part of them that is drawn from the table."""

    header, statements, changes, more_often = HEADER, STATEMENTS, CHANGES, 0.4

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.tensors = ["x", "y"]
        self.ints = ["2"]
        self.fresh = 0
        self.loops = 0
        self.blocks = 0

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, p: str) -> str:
        self.fresh += 1
        return f"{p}{self.fresh}"

    def tensor(self) -> str:
        a, b = self.r.choice(self.tensors), self.r.choice(self.tensors)
        i = self.r.choice(self.ints)
        return self.r.choice([
            f"{a} + {b}", f"{a} * {i}", f"torch.sin({a})", f"{a}.abs() - {b}", f"helper({a}, {b})", f"{a} / 3", f"torch.relu({a})", f"({a} + {i}).clone()",
            f"sum(gen({a}, 2))", f"torch.stack([{a}, {b}]).sum(0)", f"{a}.reshape(2, 2).t().reshape(4)", f"torch.cat([{a}[:2], {b}[2:]])",
            f"[{a}, {b}][{self.r.randint(0, 1)}]", f"{a}.sum() * {b}", f"{a}.float()", f"max([{i}, 1]) * {b}", f"(lambda t: t - {a})({b})",
        ])  # fmt: skip

    def block(self, n: int) -> None:
        self.depth += 1
        saved = list(self.tensors), list(self.ints)
        self.emit("pass")
        for _ in range(n):
            self.statement()
        self.tensors, self.ints = saved
        self.depth -= 1

    def more(self, t: str) -> None:
        r = self.r
        text, v, n = r.choice(self.statements), self.name("t"), self.name("n")
        marks = {"t": t, "u": r.choice(self.tensors), "i": r.choice(self.ints), "v": v, "n": n}
        marks |= {"f": self.name("q"), "g": self.name("q")}
        for mark, value in (*marks.items(), ("c", str(r.randint(0, 4)))):
            text = text.replace("{" + mark + "}", value)
        for line in re.split(r"(?<! )\|", text):  # the operator has a space in front
            self.emit(line)
        if re.search(rf"\b{v} = ", text):
            self.tensors.append(v)
        if re.search(rf"\b{n} :?= ", text):
            self.ints.append(n)

    def statement(self) -> None:
        r = self.r
        t = r.choice(self.tensors)
        if r.random() < self.more_often:
            self.more(t)
            return
        kind = r.choice("aaaaabcdefghijklmnopqrstuvwxyz")
        if kind in "ab":
            v = (
                self.name("t")
                if kind == "a" or len(self.tensors) < 3
                else r.choice([n for n in self.tensors if n not in "xy"] or ["x"])
            )
            self.emit(f"{v} = {self.tensor()}")
            if v not in self.tensors:
                self.tensors.append(v)
        elif kind == "c":
            self.emit(f"{t} = {t}.clone()")
            self.emit(f"{t}.{r.choice(['add_(1)', 'mul_(0.5)', 'zero_()'])}")
        elif kind == "d":
            self.emit(f"xs.append({self.tensor()})")
        elif kind == "e":
            self.emit(f"d[{r.choice(['1', repr('k'), repr('z')])}] = {self.tensor()}")
        elif kind == "f":
            self.emit(f"o.n += {r.choice(self.ints)}; o.t = {self.tensor()}")
        elif kind == "g":
            self.emit(r.choice(["graph_break()", f"log.append({t}.sum().item() > 0)", f"{t} = breaking({t})"]))
        elif kind == "h" and self.depth < 4:
            self.emit(f"if {t}.sum() > {r.randint(-3, 6)}:")
            self.block(2)
            if r.random() < 0.5:
                self.emit("else:")
                self.block(2)
        elif kind == "i" and self.depth < 4 and self.loops < 2:
            self.loops += 1
            v = self.name("i")
            it = r.choice([f"range({r.randint(0, 3)})", "list(xs)[:2]", "(1, 2)"])
            self.emit(f"for {v} in {it}:")
            self.emit(f"    o.items.append({v})")
            self.block(2)
            if r.random() < 0.3:
                self.emit(f"    if len(xs) > {r.randint(0, 4)}: {r.choice(['break', 'continue'])}")
            self.loops -= 1
        elif kind == "j" and self.depth < 4 and self.blocks < 2:
            self.blocks += 1
            self.emit(r.choice(["with torch.no_grad():", "with torch.enable_grad():"]))
            self.block(2)
            self.blocks -= 1
        elif kind == "k" and self.depth < 4 and self.blocks < 2:
            self.blocks += 1
            self.emit("try:")
            self.block(2)
            if r.random() < 0.6:
                self.emit(f"    if len(xs) > {r.randint(0, 3)}: raise ValueError(len(xs))")
            self.emit("except ValueError as e:")
            self.emit("    xs.append(e.args[0])")
            if r.random() < 0.5:
                self.emit("finally:")
                self.emit("    o.n += 1")
            self.blocks -= 1
        elif kind == "l":
            f, a = self.name("f"), self.name("c")
            self.emit(f"{a} = {t} * 1")
            self.emit(f"def {f}(q, k={r.choice(self.ints)}):")
            self.emit(f"    nonlocal {a}")
            self.emit(f"    {a} = {a} + q")
            self.emit(f"    return {a} * k")
            v = self.name("t")
            self.emit(f"{v} = {f}({self.tensor()})")
            self.tensors.append(v)
            self.tensors.append(a)
        elif kind == "m":
            a, b = self.name("t"), self.name("t")
            self.emit(f"{a}, {b} = ({self.tensor()}, {self.tensor()})")
            self.tensors += [a, b]
        elif kind == "n":
            v = self.name("n")
            self.emit(f"{v} = {r.choice(['len(xs)', 'o.n + 1', 'x.shape[0]', 'len(d)', repr(r.randint(0, 4))])}")
            self.ints.append(v)
        elif kind == "o" and self.depth > 1:
            self.emit(f"if {r.choice(self.ints)} > {r.randint(3, 9)}: return {self.tensor()}")
        elif kind == "p":
            self.emit(
                f"xs[{r.choice(['0', '-1'])}:] = [{t}]" if r.random() < 0.5 else "xs = xs[:] if len(xs) < 3 else xs"
            )
        elif kind == "q":
            self.emit(f"del d[{r.choice(['1', repr('k')])}]" if r.random() < 0.15 else f"d.setdefault('k', {t})")
        elif kind == "r":
            v = self.name("t")
            self.emit(f"{v} = [{t} * q for q in range(2)][-1] + sum([p.sum() for p in [{t}]])")
            self.tensors.append(v)
        elif kind == "s":
            self.emit(f"assert {r.choice(self.ints)} < {r.randint(3, 50)}, 'small'")
        elif kind == "t":
            self.emit(f"o.items.append(f'{{len(xs)}}:{{{r.choice(self.ints)}}}')")

        elif kind in "uv" and self.depth < 4 and self.blocks < 2:
            self.blocks += 1
            manager = r.choice(["Manager(o, True)", "Manager(o, False)", "noted(o, 'a')", "noted(o, 'b')"])
            self.emit(f"with {manager} as got:")
            self.block(2)
            if r.random() < 0.3:
                self.emit(
                    f"    if len(o.items) > {r.randint(1, 6)}: raise {r.choice(['ValueError', 'KeyError'])}(len(xs))"
                )
            self.blocks -= 1
        elif kind == "w" and self.depth < 4 and self.loops < 2:
            self.loops += 1
            i, v = self.name("i"), self.name("t")
            it = r.choice([
                f"zip([{t}, {t} + 1], range(3))", f"zip(map(lambda q: q * 2, [{t}, x]), itertools.count(2))",
                f"((q, k) for k, q in enumerate([{t}, y, x]) if k != 1)", f"zip(gen({t}, 2), reversed([3, 4]))",
            ])  # fmt: skip
            self.emit(f"for {v}, {i} in {it}:")
            self.tensors.append(v)
            self.ints.append(i)
            self.block(2)
            self.tensors.remove(v)
            self.ints.remove(i)
            self.loops -= 1
        elif kind == "x":
            g, v = self.name("g"), self.name("t")
            self.emit(f"{g} = careful({t}, {r.randint(2, 4)}, o.items)")
            self.emit(f"{v} = next({g}) + {g}.send({r.choice(self.ints)})")
            if r.random() < 0.4:
                self.emit(r.choice([f"{v} = {v} + {g}.throw(ValueError(1))", "graph_break()"]))
            # NOTE: one left open that outlives an exception is closed when the traceback goes, which is earlier in captured code.
            self.emit(r.choice([f"{g}.close()", f"{g} = None"]))
            self.tensors.append(v)
        elif kind == "y":
            k, v = self.name("K"), self.name("t")
            self.emit(f"class {k}(Obj):")
            self.emit(f"    m = {r.choice(self.ints)}")
            self.emit("    def go(self, q): return super().__getattribute__('m') * q + self.n" if r.random() < 0.2 else
                      "    def go(self, q): return self.m * q + self.n")  # fmt: skip
            self.emit(f"{v} = {k}().go({t})")
            self.tensors.append(v)
        elif kind == "z":
            v = self.name("t")
            self.emit(f"match ({r.choice(self.ints)}, {t}):")
            self.emit(f"    case (0 | 1, q): {v} = q + 1")
            self.emit(f"    case (int(k), q) if k > 2: {v} = q * k")
            self.emit(f"    case [_, *rest]: {v} = rest[0] - 1")
            self.tensors.append(v)

    def source(self) -> str:
        for _ in range(self.r.randint(3, 12)):
            self.statement()
        self.emit(
            f"return {self.tensor()}, xs, {self.r.choice(self.tensors)}, {self.r.choice(self.ints)}, torch.is_grad_enabled()"
        )
        return self.header + "def f(x, y, xs, d, o, log):\n" + "\n".join(self.lines) + "\n"


def source(seed: int, kind: type[Program] = Program) -> tuple[str, list[str]]:
    """The program, and the statements between the calls."""
    program = kind(seed)
    return program.source(), [program.r.choice(program.changes) for _ in range(3)]


def leaves(x) -> list:
    """The tensors and objects that ``x`` leads to, in order."""
    if isinstance(x, (list, tuple)):
        return [leaf for v in x for leaf in leaves(v)]
    if isinstance(x, dict):
        return [leaf for v in x.values() for leaf in leaves(v)]
    return [x, *leaves(vars(x))] if hasattr(x, "__dict__") and not callable(x) else []


def identities(x) -> list[int]:
    """For each of the leaves, the first place at which it stands."""
    found = leaves(x)
    first: dict[int, int] = {}
    return [first.setdefault(id(leaf), i) for i, leaf in enumerate(found)]


def gradients(result, args) -> list:
    """Of the sum of the first result with a history, with respect to the leaves among the arguments. Their zeros have no sign: contributions may
    be added to zeros."""
    roots = [t for t in leaves(result) if isinstance(t, torch.Tensor) and t.grad_fn is not None]
    ends = {id(t): t for t in leaves(args) if isinstance(t, torch.Tensor) and t.is_leaf and t.requires_grad}
    if not roots or not ends:
        return []
    found = torch.autograd.grad(roots[0].sum(), list(ends.values()), allow_unused=True)
    return [g if g is None else g + 0.0 for g in found]


def arguments(seed: int, scope) -> list:
    """Those of each call."""
    torch.manual_seed(seed)
    x, y = torch.randn(4), torch.randn(4)
    if seed % 3 == 0:
        y.requires_grad_()
    first = (x, y, [x], {}, scope["Obj"](), [])
    second = (-x, y, [], {1: y.detach()}, scope["Obj"](), [])
    third = ((x.double(), x, (x * 4).long())[seed % 5 % 3], y, [y], {"k": x}, scope["Obj"](), [])
    return [first, first, second, second, third]


def check(text: str, changes: list[str], seed: int, backend: str) -> None:
    filename = f"/fuzz/{seed}.py"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope = {"__name__": f"fuzz_{seed}"}
    exec(compile(text, filename, "exec"), scope)
    plain, compiled = scope["f"], compiled_by(scope["f"], backend=backend)
    ulps = ULPS if backend == "inductor" else 0
    for n, args in enumerate(arguments(seed, scope)):
        if 0 < n <= len(changes):
            outcome(exec, (changes[n - 1], scope), {})
        sides = []
        for fn in (plain, compiled):
            count = scope["COUNT"]
            mine = copy.deepcopy(args)
            kind, value = outcome(fn, mine, {})
            sides.append((kind, value, mine, scope["COUNT"], torch.is_grad_enabled()))
            if fn is plain:
                scope["COUNT"] = count
        want, got = sides
        assert want[0] == got[0], f"call {n}: {want[:2]} {got[:2]}"
        assert same(want, got, ulps), f"call {n}: {want} {got}"
        assert identities(want[1:3]) == identities(got[1:3]), f"call {n}: what is identical"
        if want[0] == "value":
            derived = outcome(gradients, want[1:3], {})
            if derived[0] == "value":
                mine = outcome(gradients, got[1:3], {})
                assert same(derived, mine, ulps if backend == "eager" else ULPS), f"call {n}: {derived} {mine}"


def run(seed: int, backend: str = "eager", kind: type[Program] = Program) -> None:
    text, changes = source(seed, kind)
    old = _frame.set_strict_guards(True)
    try:
        with config.patch(strict_capture=True, cache_size_limit=16):
            check(text, changes, seed, backend)
    except AssertionError as e:
        raise AssertionError(f"seed {seed}: {e}\n{text[len(kind.header) :]}\n" + "\n".join(changes)) from None
    finally:
        _frame.set_strict_guards(old)
        torch.set_grad_enabled(True)
