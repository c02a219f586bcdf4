"""Random functions with tensors, containers, closures, branches on data, graph breaks, with and try blocks, for the differential check.

``python fuzz_programs.py SEED [COUNT] [BACKEND]`` runs many; a failing program is printed as source with its seed.
"""

import random
import sys

HEADER = """
import contextlib, itertools
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
"""


class Program:
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

    def statement(self) -> None:
        r = self.r
        kind = r.choice("aaaaabcdefghijklmnopqrstuvwxyz")
        t = r.choice(self.tensors)
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
        return HEADER + "def f(x, y, xs, d, o, log):\n" + "\n".join(self.lines) + "\n"


def make(seed: int):
    import linecache

    source = Program(seed).source()
    filename = f"/fuzz/{seed}.py"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {"__name__": f"fuzz_{seed}"}
    exec(compile(source, filename, "exec"), scope)
    return source, scope


def run(seed: int, backend=None) -> None:
    from helpers import check

    import flambeau as torch

    source, scope = make(seed)
    torch.manual_seed(seed)
    x, y = torch.randn(4), torch.randn(4)
    if seed % 3 == 0:
        y.requires_grad_()
    try:
        check(scope["f"], x, y, [x], {}, scope["Obj"](), [], calls=3, backend=backend)
        check(scope["f"], -x, y, [], {1: y.detach()}, scope["Obj"](), [], calls=1, backend=backend)
    except BaseException:
        print(f"seed {seed}:\n{source}", file=sys.stderr)
        raise


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    backend = sys.argv[3] if len(sys.argv) > 3 else None
    failed = []
    for seed in range(first, first + count):
        try:
            run(seed, backend)
        except Exception as e:
            failed.append(seed)
            print(type(e).__name__, str(e)[:2000])
            if len(failed) >= 3:
                break
    print("failed:", failed)
