"""Random programs of containers: lists, dicts and their views, sets, deques, default dicts, counters, chains of dicts, slices, classes derived from them, each
inside others, compared, copied, changed while they are gone through, with wrong arguments too. ``python tests/dynamo/fuzz.py containers FIRST COUNT
BACKENDS`` runs many."""

from fuzz_iterators import Grammar, Program
from iterator_programs import SCOPE, agree

HEADER = """\
from flambeau.compiler import graph_break
import collections, copy, types
o = []
class Listed(list):
    def __getitem__(self, i): o.append(i); return list.__getitem__(self, i)
    def append(self, v): super().append((v, len(self)))
class Missing(dict):
    def __missing__(self, k): o.append(k); return [k]
class Told(dict):
    def __setitem__(self, k, v): o.append(k); super().__setitem__(k, v)
class Tags(set):
    def add(self, v): super().add(str(v))
class Key:
    def __init__(self, v): self.v = v
    def __eq__(self, other): o.append("eq"); return isinstance(other, Key) and self.v == other.v
    def __hash__(self): o.append("hash"); return hash(self.v)
    def __lt__(self, other): return self.v < other.v
class Sized:
    def __len__(self): o.append("len"); return 2
    def __getitem__(self, i):
        if i > 1: raise IndexError
        return i
Pair = collections.namedtuple("Pair", "a b", defaults=(4,))
def named(v): return type(v).__name__
def odd(v): o.append(1); return v % 2
def fails(v):
    if v == 2: raise ValueError(v)
    return v
"""
START = """\
o.clear()
r = []
"""

SOURCES = """[1, {n}, 3]
[[{n}], [1], 2]
[{n}] * 3
[[]] * 2
(1, {n}, 2)
(1, [2], {n})
{1, {n}, 5}
set()
frozenset((1, {n}))
dict(a={n}, b=2)
{"a": [1], {n}: {"b": [2]}}
{1: "x", True: "y", 1.0: {n}}
{}
collections.defaultdict(list)
collections.defaultdict(int, a={n})
collections.defaultdict(lambda: len(o))
collections.OrderedDict(a=1, b={n})
collections.Counter("abca")
collections.Counter(a={n}, b=-1)
collections.deque([1, {n}, 3], 4)
collections.deque([[1], {n}])
collections.ChainMap({"a": {n}}, d)
collections.UserList([1, {n}])
collections.UserDict(a={n})
range({n}, 9, 2)
bytearray(b"ab\\x01")
bytes([{n}, 1])
"ab{n}"
slice(1, None, {n})
types.MappingProxyType(d)
types.SimpleNamespace(a={n}, b=[1])
d.keys()
d.items()
d.values()
Listed([1, {n}])
Missing(a={n})
Told(a=[{n}])
Tags((1, "a"))
Pair({n})
Pair([1], b=l)
Sized()
[Key({n}), Key(1)]
{Key({n}): 1, Key(1): 2}
{Key(1), Key({n})}
[x, {n}, x]
{"a": x, "b": [x]}
(x, [x])
l
d
[float("nan"), 0.0, -0.0]
[None, {n}, "a"]""".split("\n")

MADE = """{a} + {b}
{a} * 2
{a}[1:]
{a}[::-1]
{a}[::{n}]
{a}[-2:{n}]
{a} | {b}
{a} & {b}
{a} - {b}
{a} ^ {b}
list({a})
tuple({a})
set({a})
frozenset({a})
dict({a})
dict({a}, z={n})
sorted({a}, key=named)
sorted({a})
{**{a}, "k": {n}}
[*{a}, *{b}]
{*{a}, {n}}
{a}.copy()
copy.copy({a})
copy.deepcopy({a})
[v for v in {a}]
[(v, w) for v in {a} for w in {b}][:4]
{k: 1 for k in {a}}
{k: v for k, v in {a}.items()}
dict.fromkeys({a}, {n})
dict.fromkeys({a})
type({a})({b})
{a}.keys()
{a}.items()
{a}.values()
reversed({a})
iter({a})
collections.deque({a}, 3)
collections.Counter({a})
collections.OrderedDict({a})
collections.defaultdict(list, {a})
collections.ChainMap({a}, {b})
types.MappingProxyType({a})
dict(zip({a}, {b}))
list(zip({a}, {b}))
list(enumerate({a}))
list(map({f}, {a}))
list(filter(None, {a}))
[{a}, {b}]
{"a": {a}, "b": {b}}
({a}, [{b}])
{a}[{n}]
{a}["a"]
{a}.get({n}, [])
{a}.setdefault({n}, [])
{a}.new_child()
{a}.union({b})
{a}.intersection({b}, {b})
{a}.difference({b})
{a}._replace(a={n})
{a}._asdict()
operator.itemgetter({n})({a})
operator.add({a}, {b})
functools.reduce(operator.add, {a})
({a} if {a} else {b})
({a} or {b})""".split("\n")

CONSUMERS = """len({a})
{n} in {a}
"a" in {a}
x in {a}
{a} == {b}
{a} != {b}
{a} < {b}
{a} <= {b}
{a} > {b}
bool({a})
not {a}
{a}.count({n})
{a}.index({n})
{a}.index({n}, 1)
{a}.pop()
{a}.pop({n})
{a}.pop("a")
{a}.pop({n}, None)
{a}.popitem()
{a}.popleft()
{a}.popitem(last=False)
{a}.remove({n})
{a}.discard({n})
sum({a})
min({a})
max({a}, default=0)
max({a}, key=named)
ADDRESS.sub("", repr({a}))
f"{{a}!r:>{n}}"[:1]
hash({a}) == hash({b})
{a} is {b}
{a}[{n}]
{a}[-1]
{a}["a"]
{a}[{n}:2]
{a}[None]
{a}[1.0]
{a}[True]
{a}.isdisjoint({b})
{a}.issubset({b})
{a}.issuperset({b})
{a}.symmetric_difference({b})
{a}.most_common(2)
sorted({a}.elements())
{a}.total()
{a}.maps
type({a}).__name__
isinstance({a}, (list, tuple))
isinstance({a}, collections.abc.Mapping)
isinstance({a}, collections.abc.Sequence)
issubclass(type({a}), dict)
"".join(map(str, {a}))[:1]
",".join({a})
{a}.__contains__({n})
{a}.__len__()
{a}.__getitem__(0)
operator.contains({a}, {n})
operator.length_hint({a})
operator.countOf({a}, {n})
next(iter({a}))
any({a})
all({a})
{a}.default_factory
{a}.maxlen
{a}.get("a")
{a}.get({n}, {b})
{a}.a
{a}.b
{a}._fields
{a}.start
{a}.indices(5)
{a}.mapping
{a}.setdefault({n}, {b})
{a}.sort()
{a}.reverse()
{a}.clear()
{a}.append({b})
{a}.update({b})
{a}.extend({b})
{a}.foo
list({a}.items())
sorted({a}.values(), key=named)
list(reversed({a}))
list({a}.keys() & {b}.keys())
{a}.items() == {b}.items()
{a}.keys() <= {b}.keys()
heapq.nlargest(2, {a})
[u for u, *_ in {a}]
dict({a}) == dict({b})
tuple({a}) < tuple({b})
zip(*{a})
(lambda *v, **k: (v, k))(*{a})
(lambda *v, **k: (v, k))(**{a})
(lambda a=1, *v, b=2: (a, v, b))(*{a}, b={n})
("%s %s" % {a})[:1]
"{} {a}".format(*{a}, a=1)[:1]
"{a}".format_map({a})[:1]""".split("\n")

STATEMENTS = """{a}.append({n})
{a}.append({b})
{a}.extend({b})
{a}.insert(1, {n})
{a}.insert(-9, {b})
{a}.add({n})
{a}.update({b})
{a}.update(z={n})
{a}.update({b}, a={n})
{a}.clear()
del {a}[{n}]
del {a}["a"]
del {a}[1:]
del {a}[::2]
{a}[{n}] = {b}
{a}[-1] = {n}
{a}["a"] = {n}
{a}[x] = {n}
{a}[1:2] = {b}
{a}[::2] = {b}
{a}[:] = {b}
{a} += {b}
{a} |= {b}
{a} &= {b}
{a} -= {b}
{a} ^= {b}
{a} *= 2
{a}["a"] += {n}
{a}[0] += {b}
{a}.sort()
{a}.sort(key=named, reverse=True)
{a}.sort(key={f})
{a}.reverse()
{a}.rotate({n})
{a}.move_to_end("a", last={n} > 2)
{a}.appendleft({b})
{a}.extendleft({b})
{a}[{n}].append({n})
{a}["a"].append({n})
{a}[0][0] = {n}
{a}.subtract({b})
{a}.intersection_update({b})
{a}.difference_update({b})
{a}.symmetric_difference_update({b})
{a}.setdefault("q", []).append({n})
{a}.__setitem__({n}, {b})
{a}.__delitem__(0)
{a}.__init__({b})
{a}.maxlen = 3
{a}.default_factory = list
{a}.a = {n}
{a}.extra = {n}
u, *w = {a}; then r.append(w)
u, w = {a}; then r.append((u, w))
(u, w), *y = {a}; then r.append((y, w))
graph_break()
x = x + len({a})
x = x * {n}; then {a}.append(x)
{a}, {b} = {b}, {a}
match {a}:; then     case [u, *w]: r.append((u, w)); then     case {"a": u, **w}: r.append((u, w)); then     case Pair(a=u): r.append(u); then     case _: r.append("none")
match {a}:; then     case []: r.append(0); then     case [[u], *_] if u: r.append(u); then     case dict(): r.append("dict"); then     case (1, _) | [_, 1]: r.append("one")
assert {a}, {b}
e = {a}; then e += [{n}]; then r.append(e is {a})
g = (v for v in {a}); then next(g); then {a}.append({n}); then r.append(list(itertools.islice(g, 4)))
k = iter({a}); then next(k); then {a}.pop(); then r.append(list(itertools.islice(k, 4)))
def h(v={a}): v.append({n}); return len(v); then r.append((h(), h()))
for k in list({a}):; then     if k == {n}: del {a}[k]
for k, v in {a}.items():; then     {a}[k] = v if k == "b" else {n}
while {a}:; then     r.append({a}.pop()); then     if len(r) > 9: break""".split("\n")
LOOPS = (
    "if len(r) > 14: break",
    "if len({a}) > {n}: {a}.pop()",
    "if len(r) < 9: {a}.append({n})",
    "if len(r) < 9: {a}[v] = {n}",
    "{a}.add({n} + len(r) if len(r) < 9 else 0)",
    "{b}.append(v) if len(r) < 9 else 0",
    "if v == {n}: {a}.clear()",
    "if v: continue",
    "graph_break()",
    "x = x + {n}",
)
GRAMMAR = Grammar(
    START, SOURCES, MADE, CONSUMERS, STATEMENTS, LOOPS, "x, r[:40], o[:60]", "list({a})[:6] if {n} > 2 else {a}"
)


class Live(Program):
    """Runs what it writes: most of what is of no use to the value that it meets (no such method, wrong type) is drawn again."""

    def __init__(self, seed: int):
        super().__init__(seed, GRAMMAR)
        self.scope = {**SCOPE, "x": SCOPE["torch"].ones(1), "l": [1, 2, 3], "d": {"a": 1, "b": 2}, "it": iter([1, 2])}
        exec(HEADER + START, self.scope)

    def guarded(self, *lines: str) -> None:
        try:
            exec("\n".join(lines), self.scope)
        except (AttributeError, TypeError):
            if self.r.random() < 0.85:
                return
        except Exception:
            self.scope["r"].append(0)
        super().guarded(*lines)

    def make(self) -> None:
        n = len(self.lines)
        super().make()
        if len(self.lines) == n:  # was of no use
            self.names.pop()

    def source(self) -> str:
        for _ in range(3):
            self.make()
        while self.r.random() < 0.95 and len(self.lines) < 80:
            self.statement()
        self.names = self.names or ["l"]
        return self.text()


def source_of(seed: int) -> str:
    return Live(seed).source()


def run(seed: int, backend: str = "eager") -> None:
    agree(source_of(seed), f"/fuzz_containers/{seed}.py", backend, HEADER)
