"""Random programs that make iterators of iterators, consume parts of them in every way, change containers meanwhile, break the graph and raise.
``python tests/dynamo/fuzz.py iterators FIRST COUNT BACKENDS`` runs many."""

import random
from dataclasses import dataclass

from iterator_programs import agree

HEADER = """\
from flambeau.compiler import graph_break
o = []
def count(n, fails=99):
    try:
        for i in range(n):
            o.append(i)
            if i == fails: raise KeyError(i)
            yield i
    finally:
        o.append("end")
class Own:
    def __init__(self, n, fails=99): self.n, self.i, self.fails = n, 0, fails
    def __iter__(self): o.append("iter"); return self
    def __next__(self):
        self.i += 1
        if self.i == self.fails: raise KeyError(self.i)
        if self.i > self.n: raise StopIteration
        return self.i
class Indexed:
    def __getitem__(self, i):
        if i > 3: raise IndexError
        return i * 2
class Sized:
    def __iter__(self): o.append("sized"); return iter((2, 1, 3))
    def __len__(self): o.append("len"); return 3
    def __length_hint__(self): return 2
def odd(v): o.append(v); return v % 2
def small(v): return v < 3
def fails(v):
    if v == 2: raise ValueError(v)
    return v
def stops(v):
    if v == 3: raise StopIteration
    return v
s, q = {1, 2, 3}, collections.deque([1, 2, 3], 5)
r = []
"""

# What makes an iterator: of containers, and of other iterators {a} and {b}; {n} is a small number, {f} a function.
SOURCES = """iter(l)|iter(d)|iter(d.values())|iter((3, 1, 2))|iter(range({n}))|iter(q)|iter(s)|reversed(l)|reversed(q)|count({n})|count(5, {n})|Own({n})|Own(4, {n})
Indexed()|Sized()|it|(v + {n} for v in l)|l|q|d.values()|itertools.islice(itertools.count({n}), 7)|itertools.repeat({n}, 3)|itertools.islice(itertools.cycle([1, {n}]), 5)|itertools.product(l, repeat=2)
itertools.combinations(l, 2)|iter(count({n}).__next__, 2)|x.new_ones(2)|[[1, 2], [3, 4]]""".replace("\n", "|").split(
    "|"
)
MADE = """map({f}, {a})|map(operator.add, {a}, {b})|filter({f}, {a})|filter(None, {a})|zip({a}, {b})|enumerate({a})|itertools.chain({a}, {b})
itertools.islice({a}, {n})|itertools.islice({a}, 1, None, 2)|itertools.takewhile({f}, {a})|itertools.dropwhile({f}, {a})|itertools.accumulate({a})
itertools.accumulate({a}, initial={n})|itertools.compress({a}, {b})|itertools.filterfalse({f}, {a})|itertools.pairwise({a})|itertools.zip_longest({a}, {b})
itertools.groupby({a}, {f})|itertools.tee({a})[{n} % 2]|(v for v in {a})|(v for v in {a} if {f}(v))|([v, w] for v in {a} for w in {b})|iter({a})
itertools.starmap(lambda *v: v, zip({a}, {b}))|itertools.chain.from_iterable([v] for v in {a})|iter([*itertools.islice({a}, 2)])""".replace(
    "\n", "|"
).split("|")
CONSUMERS = """next({a}, "end")|next({a})|any(v > {n} for v in {a})|any(map({f}, {a}))|all({f}(v) for v in {a})|{n} in {a}|sum(itertools.islice({a}, {n}))
list(itertools.islice({a}, {n}))|[v for v in itertools.islice({a}, {n})]|[*zip({a}, range({n}))]|list(map({f}, itertools.islice({a}, 4)))|max(itertools.islice({a}, 3))
min(itertools.islice({a}, 3), key={f})|functools.reduce(lambda v, w: v + w, itertools.islice({a}, 3))|sorted(itertools.islice({a}, 4), key=str)
tuple(itertools.islice({a}, 2))|len(set(itertools.islice({a}, 3)))|" ".join(str(v) for v in itertools.islice({a}, 3))|dict(zip("abc", {a}))
dict.fromkeys(itertools.islice({a}, 3), {n})|(lambda *v, **k: len(v))(*itertools.islice({a}, {n}))|l.extend(itertools.islice({a}, 2))|q.extend(itertools.islice({a}, 2))
d.update(zip("xy", {a}))|s.update(itertools.islice({a}, 2))|s.issuperset(itertools.islice({a}, 3))|s.isdisjoint(itertools.islice({a}, 3))
sorted(s.intersection(itertools.islice({a}, 4)), key=str)|operator.indexOf(itertools.islice({a}, 4), {n})|operator.countOf(itertools.islice({a}, 4), {n})
math.prod(itertools.islice({a}, 3))|[(k, list(g)) for k, g in itertools.groupby(itertools.islice({a}, 4), {f})]|collections.Counter(itertools.islice({a}, 4))
collections.deque(itertools.islice({a}, 4), 2)|q.extendleft(itertools.islice({a}, 2))|[*itertools.islice({a}, 3)]|min({a}.__next__(), 9)|list(iter({a}.__next__, 3))[:3]
l.__iadd__(itertools.islice({a}, 2))|{*itertools.islice({a}, 2)}|{**dict(zip("uv", {a}))}|next(v for v in {a} if {f}(v))|iter({a}) is {a}
s.difference_update(itertools.islice({a}, 2))|l.index(next({a}, 0))|heapq.nsmallest(2, itertools.islice({a}, 3))|(x * 2, next({a}, 1))""".replace(
    "\n", "|"
).split("|")
STATEMENTS = """u, w = {a}|u, *w = itertools.islice({a}, 4)|u, *w, y = itertools.islice({a}, {n})|(u, w), y = zip({a}, {b})|l.append({n})|l.insert(0, {n})|l.pop()|del l[0]|q.append({n})|q.popleft()|d[{n}] = {n}
d.pop("a", None)|s.add({n} + 7)|graph_break()|x = x + {n}|l.clear()|l[1:2] = itertools.islice({a}, 2)|l += itertools.islice({a}, 2)|d.__ior__(zip("pq", {a}))|{a}, {b} = {b}, {a}
l[::2] = itertools.islice({a}, 2)|o.append(len(l))|x = x * next({a}, 1)""".replace("\n", "|").split("|")
LOOPS = (
    "if len(r) > {n} + 8: break",
    "if {f}(v): break",
    "if len(l) < 6: l.append({n})",
    "r.append(next({b}, 0))",
    "graph_break()",
    "continue",
)


@dataclass(frozen=True)
class Grammar:
    """What bodies of ``f(x, l, d, it)`` are made of: values, values of others, expressions, statements (lines between "; then "), lines of loops."""

    header: str
    sources: list[str]
    made: list[str]
    consumers: list[str]
    statements: list[str]
    loops: tuple[str, ...]
    result: str
    over: str = "{a}"  # what a loop goes through


GRAMMAR = Grammar(HEADER, SOURCES, MADE, CONSUMERS, STATEMENTS, LOOPS, "x, r, o, s, q", "itertools.islice({a}, 6)")


class Program:
    def __init__(self, seed: int, grammar: Grammar = GRAMMAR):
        self.r = random.Random(seed)
        self.grammar = grammar
        self.names: list[str] = []
        self.lines: list[str] = []

    def filled(self, text: str) -> str:
        r = self.r
        marks = {"a": r.choice(self.names or ["it"]), "b": r.choice(self.names or ["it"]), "n": str(r.randint(0, 5))}
        marks["f"] = r.choice(["odd", "small", "fails", "stops", "bool", "str"])
        for mark, value in marks.items():
            text = text.replace("{" + mark + "}", value)
        return text

    def guarded(self, *lines: str) -> None:
        self.lines += ["try:", *(f"    {line}" for line in lines)]
        caught = self.r.choice(
            ["Exception", "(ValueError, TypeError, KeyError, StopIteration, RuntimeError, IndexError, AttributeError)"]
        )
        self.lines += [f"except {caught} as e: r.append((type(e).__name__, str(e)))"]

    def make(self) -> None:
        g = self.grammar
        name = f"k{len(self.names)}"
        self.guarded(
            f"{name} = it",
            f"{name} = {self.filled(self.r.choice(g.sources + 2 * g.made if self.names else g.sources))}",
        )
        self.names.append(name)

    def statement(self) -> None:
        kind = self.r.random()
        if kind < 0.3:
            self.make()
        elif kind < 0.7:
            self.guarded(f"r.append({self.filled(self.r.choice(self.grammar.consumers))})")
        elif kind < 0.85:
            self.guarded(*self.filled(self.r.choice(self.grammar.statements)).split("; then "))
        else:
            inside = [f"    {self.filled(line)}" for line in self.r.sample(self.grammar.loops, 2)]
            self.guarded(self.filled(f"for v in {self.grammar.over}:"), "    r.append(v)", *inside)

    def source(self) -> str:
        self.make()
        for _ in range(self.r.randint(4, 12)):
            self.statement()
        return self.text()

    def text(self) -> str:
        g = self.grammar
        return g.header + "\n".join(self.lines) + f"\nreturn {g.result}, [{', '.join(self.names)}]"


def run(seed: int, backend: str = "eager") -> None:
    agree(Program(seed).source(), f"/fuzz_iterators/{seed}.py", backend)
