"""Random functions over the rest of the language: match statements, classes made inside and their special methods, descriptors, dataclasses,
enumerations, the standard containers and iterators, coroutines, generators that are sent to and thrown into, groups and chains of exceptions, lines of
tracebacks. Programs, calls and comparison are those of ``fuzz_programs``; ``fuzz.py language FIRST COUNT`` runs many."""

import fuzz_programs

HEADER = (
    fuzz_programs.HEADER
    + """
import abc, copy, dataclasses, enum, functools, operator, sys, traceback, typing
Pair = collections.namedtuple("Pair", "a b", defaults=[3])
class Color(enum.Enum):
    RED = 1
    BLUE = 2
    def other(self): return Color.BLUE if self is Color.RED else Color.RED
class Flags(enum.IntFlag):
    A = 1
    B = 2
@dataclasses.dataclass
class Data:
    t: typing.Any
    n: int = 2
    xs: list = dataclasses.field(default_factory=list)
    def __post_init__(self): self.xs.append(self.n)
    def scaled(self): return self.t * self.n
@dataclasses.dataclass(frozen=True, order=True)
class Key:
    a: int
    b: str = "b"
@dataclasses.dataclass
class More(Data):
    k: int = 5
    def scaled(self): return super().scaled() + self.k
class Point:
    __match_args__ = ("n", "t")
    def __init__(self, n, t=None): self.n, self.t = n, t
    def __eq__(self, other): return isinstance(other, Point) and self.n == other.n
    def __hash__(self): return hash(self.n)
    def __lt__(self, other): return self.n < other.n
    def __repr__(self): return f"Point({self.n})"
    def __format__(self, spec): return f"<{self.n:{spec or 'd'}}>"
    def __bool__(self): return self.n > 1
    def __index__(self): return self.n % 3
class Checked:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, o, cls=None): return self if o is None else getattr(o, self.name, 1)
    def __set__(self, o, v):
        if isinstance(v, int) and v > 7: raise ValueError(v)
        setattr(o, self.name, v)
    def __delete__(self, o): delattr(o, self.name)
class Lazily:
    def __init__(self, fn): self.fn = fn
    def __get__(self, o, cls=None):
        o.__dict__[self.fn.__name__] = v = self.fn(o)
        return v
class Plugin:
    kinds = []
    def __init_subclass__(cls, **k):
        super().__init_subclass__()
        Plugin.kinds.append((cls.__name__, k))
        del Plugin.kinds[:-3]
    def __class_getitem__(cls, k): return (cls.__name__, k)
class Meta(type):
    def __call__(cls, *a):
        o = super().__call__(*a)
        o.made = cls.__name__
        return o
    def __getattr__(cls, name):
        if name.startswith("__"): raise AttributeError(name)
        return name * 2
    def __len__(cls): return 4
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
    @property
    def twice(self): return self.area() * 2
class Square(Shape):
    def __init__(self, t): self.t = t
    def area(self): return self.t * self.t
class Whole(metaclass=Meta):
    width = Checked()
    def __init__(self, t): self.t = t
    @Lazily
    def once(self): return self.t + 1
    @functools.cached_property
    def cached(self): return self.t * 2
    @staticmethod
    def plain(a, *b, **k): return a * (len(b) + len(k))
    half = functools.partialmethod(lambda self, k, q: self.t * k - q, 2)
    def __matmul__(self, other): return self.t @ other.t
    def __isub__(self, other):
        self.t = self.t - other
        return self
    def __rsub__(self, other): return other - self.t
    def __contains__(self, k): return k < 3
    def __iter__(self): return iter([self.t, self.t + 1])
    def __reversed__(self): yield self.t * 3
    def __setattr__(self, k, v): super().__setattr__(k, v)
    def __getattr__(self, k):
        if k.startswith("far"): return k
        raise AttributeError(k)
class Countdown:
    def __init__(self, k): self.k = k
    def __iter__(self): return self
    def __next__(self):
        if self.k == 0: raise StopIteration
        self.k -= 1
        return self.k
class Table(dict):
    def __missing__(self, k): return k * 2
class Doubled(list):
    def append(self, q): super().append(q); super().append(q)
class Failed(Exception):
    def __init__(self, n): super().__init__("failed", n); self.n = n
class Worse(Failed, ValueError): pass
def deep(n):
    if n <= 0: raise Failed(n)
    return deep(n - 1)
def chained(n):
    try:
        deep(n)
    except Failed as e:
        if n % 2: raise Worse(n) from e
        raise KeyError(n)
def lines(e):
    return [(f.name, f.lineno) for f in traceback.extract_tb(e.__traceback__)]
def chain(e):
    out = []
    while e is not None and len(out) < 4:
        out.append((type(e).__name__, e.args, e.__suppress_context__, lines(e)))
        e = e.__cause__ or e.__context__
    return out
def taught(t):
    total, k = t * 0, 1
    while True:
        try:
            got = yield total
            total, k = total + (t if got is None else got) * k, k + 1
        except KeyError as e: total = total - len(e.args)
        except GeneratorExit: return
def both(t):
    a = yield from taught2(t)
    yield a
def taught2(t):
    got = yield t
    return got
def drive(c):
    try:
        while True: c.send(None)
    except StopIteration as e: return e.value
class Soon:
    def __init__(self, v): self.v = v
    def __await__(self):
        yield
        return self.v
async def work(t, n, log):
    try:
        u = await Soon(t * n)
        if n % 2: raise Failed(n)
        return u
    except Failed as e: return t - e.n
    finally: log.append("worked")
async def several(t, k):
    for i in range(k):
        await Soon(i)
        yield t + i
class Held:
    def __init__(self, log): self.log = log
    async def __aenter__(self): await Soon(1); self.log.append("held"); return 3
    async def __aexit__(self, t, v, tb): self.log.append(t and t.__name__); return t is KeyError
async def gathered(t, n, log):
    total = t
    async with Held(log) as k:
        async for q in several(t, n % 3): total = total + q * k
        if n > 3: raise KeyError(n)
    return total + sum([q async for q in several(t, 2)])
@functools.singledispatch
def shown(x): return "other"
@shown.register
def _(x: int): return f"int {x}"
@shown.register
def _(x: list): return f"list {len(x)}"
@functools.lru_cache(maxsize=4)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
@contextlib.contextmanager
def scaled_by(o, k):
    before, o.n = o.n, o.n * k
    try: yield o
    finally: o.n = before
"""
)

# As in fuzz_programs: {t} and {u} are tensors, {i} a number; {v} is a new tensor, {n} a new number, {f} and {g} new names, {c} a small constant.
STATEMENTS = r"""
match {'a': {t}, 'k': {i}}:|    case {'k': 0}: {v} = {u}|    case {'a': q, **rest} if len(rest) > {c}: {v} = q * 2|    case _: {v} = {t}
match Point({i}, {t}):|    case Point(n=0): {v} = {u}|    case Point(1 | 2 as k, q): {v} = q + k|    case Point() as p: {v} = p.t - 1
match [{i}, [{c}, {t}]]:|    case [a, [1 | 2 as b, q]]: {v} = q * b + a|    case [_, [*_, q]]: {v} = q
match o.items:|    case []: o.n += 1|    case [str() as s, *_]: o.n += len(s)|    case [*_, int(k)] if k > {c}: o.n -= k|    case [_, *_]: pass
match Color({c} % 2 + 1):|    case Color.RED: {v} = {t}|    case Color.BLUE: {v} = {u} * 2
match ({t}, {i}, 'a'):|    case (torch.Tensor() as q, int() | float(), 'b' | 'a'): {v} = q + 1|    case _: {v} = {t}
match Data({t}, {i}):|    case Data(n=2, t=q): {v} = q|    case Data(xs=[k, *_]): {v} = {u} * k
class {f}:|    k = {i}|    class Inner(Base):|        j = {c}|        def go(self, q): return super().go(q) + self.j|    made = Inner()|{v} = {f}.made.go({t}) * {f}.k
class {f}(Plugin, tag={i}): pass|o.items.append((Plugin.kinds[-1], {f}[{c}]))
class {f}(Whole):|    def __getattr__(self, k): return super().__getattr__('far' + k)|o.items.append({f}({t}).away)
{f} = type('Made', (Base,), {'k': {c}, 'go': lambda self, q: q - self.k})|{v} = {f}().go({t})
{f} = Whole({t}); {v} = {f}.once + {f}.once + {f}.cached; o.items.append(sorted({f}.__dict__))
{f} = Whole({t}); {v} = {f}.half({u}) + Whole.plain({u}, 1, k=2); o.items.append((Whole.other, len(Whole), {f}.made, {f}.far))
{f} = Whole({t}); {f} -= {i}; {v} = {u} - {f}; o.items.append(({c} in {f}, len(list({f}))))
{v} = (Whole({t}) @ Whole({u})) * next(reversed(Whole({t})))
{v}, {g} = Whole({t})
try:|    {f} = Whole({t}); {f}.width = {i}; {f}.width += {c}; o.items.append({f}.width); del {f}.width; o.items.append({f}.width)|except ValueError as e: o.items.append(e.args)
try: o.items.append(Whole({t}).missing)|except AttributeError as e: o.items.append((str(e), lines(e)))
{v} = Square({t}).twice
try: Shape()|except TypeError as e: o.items.append(type(e).__name__)
{f} = Data({t}, {i}); {f}.n += 1; {v} = {f}.scaled() + len({f}.xs)
{f} = More({t}, {c}); {v} = dataclasses.replace({f}, n={i}).scaled(); o.items.append([q.name for q in dataclasses.fields({f})])
o.items.append((Key({c}) < Key({i}), Key(1) == Key(1), hash(Key({c})) == hash(Key({c})), repr(Key({c})), dataclasses.asdict(Key({i}, 'z')), sorted([Key({i}), Key({c})])[0].a))
try: Key(1).a = 2|except dataclasses.FrozenInstanceError as e: o.items.append(str(e))
{f} = Pair({t}, b={i}); {v} = {f}._replace(a={u}).a * {f}.b; o.items.append((Pair._fields, Pair(1).b, {f}[1], {f}._asdict()['b']))
o.items.append((Color.RED.other().name, Color['BLUE'].value, Color(1) is Color.RED, [c.name for c in Color], (Flags.A | Flags.B).value, Flags.A in Flags({i} % 4)))
o.items.append(collections.Counter('abca' * ({i} % 3)).most_common(2)); {n} = sum(collections.Counter(a={c}, b=2).values())
{f} = collections.Counter([{c}, {i}, 1]); {f}.update([1, 2]); {f} -= collections.Counter([1]); o.items.append(sorted({f}.items()))
{f} = collections.deque([{t}], maxlen=2); {f}.extend([{u}, {t} + 1]); {f}.rotate(1); {f}.appendleft({u}); {v} = {f}[0] - {f}.pop(); o.items.append((len({f}), {f}.maxlen))
{f} = collections.OrderedDict(a={t}); {f}['b'] = {u}; {f}.move_to_end('a'); {v} = {f}.popitem()[1]; o.items.append(list({f}))
{f} = collections.defaultdict(list); {f}[{i}].append({t}); {f}[0].append({u}); {v} = {f}[{i}][0]; o.items.append(sorted({f}))
{f} = collections.ChainMap({'a': {t}}, {'a': {u}, 'b': {i}}); {v} = {f}['a'] * {f}['b']; o.items.append(len({f}))
{f} = Table(a=1); o.items.append(({f}[{i}], {f}.get(5), len({f}), 'a' in {f}))
{f} = Doubled([{t}]); {f}.append({u}); {v} = {f}[1] - {f}[2]; o.items.append((len({f}), isinstance({f}, list), type({f}[:1]).__name__))
{f} = {{t}, {u}, {t}}; o.items.append((len({f}), {t} in {f})); {f}.discard({t}); {v} = {f}.pop() if {f} else {t}
{f} = {{t}: {i}, {u}: 2}; {v} = {t} * {f}[{t}]; o.items.append(len({f}))
{f} = frozenset(({i}, {c})) | {1}; {g} = {q * 2 for q in {f}}; o.items.append((sorted({f} & {g}), sorted({f} ^ {g}), {f} <= {g}, {f}.isdisjoint({g})))
{v} = list(itertools.accumulate([{t}, {u}, {t}], lambda p, q: p * q))[-1]
{v} = sum(a * b for a, b in itertools.product([{t}, {u}], range(1, 3)))
{v} = next(itertools.islice(itertools.cycle([{t}, {u}]), {i} % 5, None))
o.items.append([(k, len(list(g))) for k, g in itertools.groupby([1, 1, {c}, {i}, {i}])])
o.items.append(list(itertools.zip_longest(range({c}), 'ab', fillvalue={i}))); {v} = list(itertools.chain([{t}], [{u}]))[1]
{f}, {g} = itertools.tee(q * 2 for q in [{t}, {u}]); {v} = next({f}) + next({g}) + next({g})
o.items.append((list(itertools.combinations(range(3), 2)), list(itertools.pairwise([{i}, {c}, 1])), list(itertools.compress('abc', [1, {c}, 0])), list(itertools.takewhile(lambda q: q < 3, itertools.count({c})))))
{v} = list(itertools.starmap(operator.sub, [({t}, {u})]))[0]; o.items.append(list(itertools.filterfalse(None, [0, {c}])))
o.items.append([*Countdown({i} % 4)]); {f} = iter(Countdown(3).__next__, 1); o.items.append(list({f}))
o.items.append((f'{ {i}:>4}/{ {c}!r:<3}/{Point({i})}/{Point({c}):03}', f'{ {t}.shape}', '%(a)s' % {'a': {i}}, '{0:{w}}'.format({i}, w=5)))
if ({n} := {i} * 2) > {c} and (k := {n} + 1): o.items.append(k)
o.items.append([y for q in range({c}) if (y := q * {i}) > 1])
def {f}(a, /, b={i}, *c, d, e=2, **k): return a * b + sum(c) * d - e * len(k)|{v} = {f}({t}, {c}, *[{u}, {t}], d=2, **{'z': 1, 'e': {i}})
try:|    {v} = {t}; (lambda a, *, b: a)({t})|except TypeError as e: o.items.append('b' in str(e))
def {f}():|    global COUNT|    COUNT += {c}|    return COUNT|{n} = {f}()
def {f}(k):|    seen = []|    def inner(q):|        nonlocal k|        k += 1; seen.append(q)|        return len(seen) * k|    return inner|{g} = {f}({i}); {g}({t}); {n} = {g}({u})
{f} = [lambda q, k=k: q * k for k in range(1, 3)]; {g} = [lambda q: q * k for k in range(1, 3)]; {v} = {f}[0]({t}) + {g}[0]({t})
{f} = {t} * 1; del {f}|try: {f}|except NameError as e: o.items.append(type(e).__name__)
del xs[:1]; o.t = {t}; del o.t|o.items.append(hasattr(o, 't')); o.t = None
xs.append({t}); del xs[-1], o.items[3:]
{f} = taught({t}); next({f}); {v} = {f}.send({u}); {v} = {v} + {f}.throw(KeyError(1, 2)) + next({f}); {f}.close()
{f} = both({t}); next({f}); {v} = {f}.send({u}); o.items.append(next({f}, 'end'))
{f} = taught({t}); next({f})|try: {f}.throw(Failed({c}))|except Failed as e: o.items.append((e.n, lines(e)))
{f} = gen({t}, {c}); o.items.append(len(list({f}))); o.items.append(next({f}, None))
try: next(iter([]))|except StopIteration as e: o.items.append(e.value)
try: chained({c})|except (KeyError, ValueError) as e: o.items.append(chain(e))
try:|    try: deep({c})|    except Failed as e:|        e.add_note('n'); o.items.append((e.__notes__, lines(e))); raise|except Exception as e: o.items.append((e.args, e.__traceback__.tb_lineno, sys.exc_info()[0].__name__))
try:|    try: 1 / 0|    finally: o.items.append(sys.exc_info()[0].__name__)|except ZeroDivisionError: o.items.append(sys.exc_info()[1].args)|o.items.append(sys.exc_info()[0])
try:|    try: raise Worse({i})|    except Failed: raise KeyError({c}) from None|except KeyError as e: o.items.append(chain(e))
try:|    try: {t}.nothing|    except AttributeError as e: raise TypeError({i}) from e|except TypeError as e: o.items.append([k[0] for k in chain(e)])
try:|    raise ExceptionGroup('g', [Worse({c}), KeyError(2), ExceptionGroup('h', [Failed(3)])])|except* Failed as g:|    o.items.append([type(q).__name__ for q in g.exceptions]); {v} = {t} * 2|except* KeyError: o.n += 1; {v} = {u}
try:|    try: raise ExceptionGroup('g', [ValueError(1), TypeError({c})])|    except* ValueError as g: raise KeyError({i}) from g|except ExceptionGroup as g: o.items.append([type(q).__name__ for q in g.exceptions])
try:|    raise ExceptionGroup('g', [Failed({c})])|except ExceptionGroup as g: o.items.append((g.subgroup(lambda q: isinstance(q, Failed)) is g, g.split(KeyError)[0], str(g)))
for {f} in range(3):|    try:|        if {f} == {c}: continue|        if {f} == 2: break|        o.n += {f}|    except KeyError: pass|    else: o.items.append(({f}, 'ok'))|    finally: o.items.append({f})|else: o.items.append('all')
def {f}(q):|    for k in range(3):|        try:|            if k == {c}: return q * k|        finally:|            if k == 1: o.items.append('fin')|    return q|{v} = {f}({t})
{v} = drive(work({t}, {i}, o.items))
{v} = drive(gathered({t}, {i}, o.items))
async def {f}(q): return q * {c}|async def {g}(): return await {f}({t}) + await {f}({u})|{v} = drive({g}())
with scaled_by(o, 2) as {f}, noted(o, 'w') as {g}:|    {v} = {t} * {f}.n
with contextlib.ExitStack() as {f}:|    {g} = [{f}.enter_context(noted(o, k)) for k in 'ab']; {f}.callback(lambda: o.items.append('called'))|    {v} = {t} + len({g})
with contextlib.nullcontext({t}) as {v}, contextlib.suppress(ZeroDivisionError): o.n //= 0
try:|    with noted(o, 'k'), Manager(o, False): raise KeyError({c})|except Exception as e: o.items.append((type(e).__name__, lines(e)))
o.items.append((shown({i}), shown(xs) if not xs else 'xs', shown('a'), fib({c}), fib({i} % 9)))
{v} = functools.reduce(operator.add, map(operator.itemgetter(1), [(1, {t}), (2, {u})])); o.items.append(operator.attrgetter('n')(o))
{v} = operator.methodcaller('clamp', min=0)({t}) + functools.partial(torch.clamp, max={i})({u})
o.items.append(sorted([Point({i}, 1), Point({c}, 2)], key=functools.cmp_to_key(lambda a, b: a.n - b.n))[0].n); {n} = 'abc'.index('abc'[Point({i}, 0)])
{f} = Point({i}, {t}); {g} = copy.copy({f}); {g}.n += 1; o.items.append(({f} == {g}, {f}.t is {g}.t, bool({f}), max({f}, {g}).n, {f} in [{g}, {f}]))
{f} = copy.deepcopy([{i}, {'a': [{c}]}, (1, [2])]); {f}[1]['a'].append(3); o.items.append({f})
o.items.append(('a-b'.partition('-'), ' x '.strip(), 'a,b'.split(','), 'ab'.upper().center(5, '*'), '-'.join(map(str, range({c}))), b'ab'[0], ({i}).bit_length(), ({c}).to_bytes(2, 'big'), int('11', 2), chr(97 + {c}), 'ab' * {c}))
o.items.append((round({i} / 3, 2), divmod(-{i}, 3), pow(3, {c}, 5), abs(-{i}), sum([[{c}], [1]], []), max([1, {i}], key=lambda q: -q), min([], default={c}), {i} ** 2 % 7, -{i} // 2, {i} << 2 | 1, ~{c}, {i} / 4))
try: list(zip([1, 2], range({c}), strict=True))|except ValueError as e: o.items.append(str(e)[:10])
try: int('x' * {c})|except ValueError as e: o.items.append(e.args)
try: [1, 2][{i}]|except IndexError as e: o.items.append((str(e), lines(e)))|try: {}['k']|except KeyError as e: o.items.append(e.args)
try: 'a' + {i}|except TypeError as e: o.items.append((str(e), lines(e)))
a, (b, *{g}), [{v}] = {i}, ({c}, 1, 2), [{t}]; o.items.append((a, b, {g}))
{f} = [*range({c}), *'ab']; {f}[1:2] = [7, 8]; {f}.insert(0, {i}); {f}.sort(key=str); o.items.append(({f}, {f}[::-1], {f}.index({i}), {f}.count(7))); {f} *= 2; {f}.clear()
{f} = {'a': 1, **{'b': {i}}} | {'c': {c}}; {f}.pop('a'); {f}.setdefault('z', 4); {f} |= {'b': 0}; o.items.append((list({f}.items()), 'b' in {f}.keys(), {f}.get('q', {c}), list(reversed({f}))))
{v} = {k: q * 2 for k, q in zip('ab', ({t}, {u}))}['b']; o.items.append([[a * b for a in range(2)] for b in range({c} % 3)])
o.items.append((isinstance({i}, int | str), issubclass(Worse, Failed), callable(helper), getattr(o, 'zz', {c}), type({i})('3'), [k.__name__ for k in Worse.__mro__[:3]], type(o).__name__, Base.go.__qualname__, id({t}) == id({t})))
{f} = slice({c}, None, 2); o.items.append(({f}.indices(7), 'abcdef'[{f}], list(range(9))[{f}])); {v} = torch.cat([{t}, {u}])[{f}].sum() * {t}
{v} = {t}; {v} = {v} if ... is Ellipsis else {u}; {v} = {v}[..., None].squeeze(-1); {v} = {t} if not ({c} > 1 and {i} > 2) or o.n else {u}; o.items.append({c} < {i} <= 5)
""".strip().split("\n")  # noqa: E501

CHANGES = [
    *fuzz_programs.CHANGES,
    *"""Color.other = lambda self: Color.RED
Data.scaled = lambda self: self.t - self.n
Data.__post_init__ = lambda self: None
More.k = 1
Point.__match_args__ = ("t", "n")
Point.__eq__ = lambda a, b: True
Point.__bool__ = lambda self: False
Point.__format__ = lambda self, spec: spec
Checked.__get__ = lambda self, o, cls=None: 4
Whole.__getattr__ = lambda self, k: k
Whole.__contains__ = lambda self, k: True
Whole.plain = staticmethod(lambda *a, **k: a[0])
Whole.cached = 3
Meta.__len__ = lambda cls: 9
Table.__missing__ = lambda self, k: -k
Doubled.append = list.append
Square.area = lambda self: self.t + 1
Plugin.__class_getitem__ = classmethod(lambda cls, k: k)
Failed.__str__ = lambda self: 'other'
Worse.__bases__ = (Failed, KeyError)
deep = lambda n: fib(n)
taught = lambda t: (t * k for k in range(9))
drive = lambda c: c.close()
work.__defaults__ = (1,)
Soon.__await__ = lambda self: iter([1])
shown.register(str)(lambda x: 'str')
fib = lambda n: n
lines = lambda e: len(traceback.extract_tb(e.__traceback__))
chain = repr
sys.exc_info()
Countdown.__next__ = lambda self: (_ for _ in ()).throw(StopIteration)
collections.abc.Sized.register(Point)""".split("\n"),
]


class Language(fuzz_programs.Program):
    header, statements, changes, more_often = HEADER, STATEMENTS, CHANGES, 0.7


def run(seed: int, backend: str = "eager") -> None:
    fuzz_programs.run(seed, backend, Language)
