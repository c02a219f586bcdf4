"""Random programs over sets of numbers: what is added, removed, combined, taken over as a whole, popped, carried over graph breaks. The order of a set follows
from all that was done to it, and what is done to it later tells more of it. ``python tests/dynamo/fuzz.py sets FIRST COUNT BACKENDS`` runs many."""

import random

from programs import agree

# ``s`` and ``t`` are made inside, ``g`` existed before; {n}, {m} and {k} are numbers below 71.
STATEMENTS = """s.add({n})
s.discard({n})
s |= {{{n},{m},{k}}}
s.update([{n},{m}])
s -= {{{n}}}
s.difference_update([{n},{m}])
s &= set(range({n}, {n}+40))
s ^= {{{n},{m}}}
s = s | {{{n}}}
s = s - {{{n}, {m}}}
s = s.copy()
s = set(s)
s = s ^ t
s = s & t
t = t | s
t.add({n})
t.discard({n})
s = set(dict.fromkeys(range({n},{n}+20,3)))
s = {{8,0,16,24,{n}}}
s.update(range({n},{n}+9))
r.append(s.pop() if s else 0)
r.append(t.pop() if t else 0)
s = s.union(t, [{n}])
s = s.intersection(range(0,90,2))
s.intersection_update(t)
s = set(frozenset(s) | t)
s = {{v*2 for v in s}}
s.clear()
s.update(frozenset(t))
r.append(list(s))
r.append(list(t)[:3])
s.symmetric_difference_update([{n},{m}])
s = set(list(t))
s = set(t)
t = set(s)
t.remove({n}) if {n} in t else 0
s |= {{1: 2, {n}: 3}}.keys()
s.update({{{n}: 1, {m}: 2}})
u = s; s |= {{1: 2, {n}: 3}}.keys(); r.append(u is s)
s = {{1: 2, {n}: 3, {m}: 4}}.keys() ^ s
s = s & dict.fromkeys(range({n},{n}+15)).keys()
s = dict.fromkeys(range(30)).keys() & s
s = dict.fromkeys(range(30)).keys() - t
s = dict.fromkeys(range(30)).keys() | [{n},{m}]
s = dict.fromkeys(range(3,40,3)).keys() & dict.fromkeys(range(0,50,2)).keys()
g.add({n})
g.discard({n})
s = g | s
r.append(g.pop() if g else 1)
g &= t
s = s | g.copy()
r.append(list(g))
graph_break()
s = set(sorted(s, reverse=True))""".split("\n")


def source(seed: int) -> str:
    r = random.Random(seed)
    statements = r.choices(STATEMENTS, k=r.randint(3, 15))
    body = [text.format(n=r.randint(0, 70), m=r.randint(0, 70), k=r.randint(0, 70)) for text in statements]
    lines = "".join(f"        {line}\n" for line in body)
    # A set that was popped goes on behind the place where that ended.
    popped = r.choice(["g.pop(); g.add(0)", "pass"])
    return f"""\
def prog(C, torch):
    from flambeau.compiler import graph_break
    g = set(range({r.randint(1, 20)}))
    {popped}
    def f(x, g):
        r = []
        s = {{1, 2, 33}}; t = {{40, 8, 16, 64}}
{lines}        return x + len(s), r, list(s), list(t), s
    f, out = C(f), []
    for i in range(3):
        *a, s = f(torch.ones(2), g)
        s.add(7); s.add(100)
        out.append((a, list(s), list(g)))
    return out
"""


def run(seed: int, backend: str = "eager") -> None:
    scope: dict = {}
    exec(compile(text := source(seed), f"/fuzz_sets/{seed}.py", "exec"), scope)
    try:
        agree(scope["prog"], [backend])
    except AssertionError as e:
        raise AssertionError(f"{e}\n{text}") from None
