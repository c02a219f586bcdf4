"""Random NumPy programs with loops over elements, called plainly and captured at several sizes: results, dtypes, what arguments are left with, errors.

    python tests/numpy/fuzz_arrays.py FIRST COUNT [BACKEND]

A program is source text, built statement by statement from a seed; one that differs is printed with its arguments, and shrunk by leaving statements
out. ``test_fuzz_arrays.py`` runs a few at each run.
"""

from __future__ import annotations

import linecache
import random
import sys
import warnings

import numpy as np

import flambeau as torch

HEADER = "import math\nimport numpy as np\n"
SIZES = ((5, 4), (5, 4), (7, 3), (6, 6), (1, 2), (9, 5))


class Program:
    """The statements of a function of A (n, m), B (n,), C (m,) of float32, I (n,) of indices below n, whole k and floating s."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.lines: list[str] = []
        # Names by what they are: tables (n, m), columns (n,), rows (m,), whole and floating numbers.
        self.tables, self.columns, self.rows, self.whole, self.floating = ["A"], ["B"], ["C"], ["k"], ["s"]
        for _ in range(self.r.randint(2, 6)):
            self.statement()

    def pick(self, *choices):
        return self.r.choice(choices)

    def new(self, kind: list[str]) -> str:
        name = f"v{len(self.lines)}_{sum(map(len, (self.tables, self.columns, self.rows, self.whole, self.floating)))}"
        kind.append(name)
        return name

    def number(self, depth=0) -> str:
        """A floating-point number outside of loops."""
        r = self.r
        if depth > 1 or r.random() < 0.4:
            return self.pick(r.choice(self.floating), r.choice(self.whole), "0.5", "2", "-1.5", "3")
        column = r.choice(self.columns)
        return self.pick(
            f"{column}[0]", f"{column}[-1]", f"{column}.sum()", f"np.max({column})", f"{column}.mean()", f"({self.number(depth + 1)} * {self.number(depth + 1)})",
            f"({self.number(depth + 1)} - {self.number(depth + 1)})", f"min({self.number(depth + 1)}, {self.number(depth + 1)})", f"abs({self.number(depth + 1)})",
            f"float(np.dot({column}, B))", f"np.sqrt(abs({self.number(depth + 1)}))", "n", "m", f"{r.choice(self.tables)}[0, -1]", f"int({column}[0])", f"len({column})",
        )  # fmt: skip

    def whole_number(self) -> str:
        return self.pick(self.r.choice(self.whole), "n", "m", "n // 2", "k % 3", "1", "2", "int(B[0])", f"({self.r.choice(self.whole)} + 1)", "len(B)", "A.shape[1]", "np.argmax(B)", "(k & 3)", "-1")  # fmt: skip

    def array(self, kind: list[str], depth=0) -> str:
        r = self.r
        if depth > 2 or r.random() < 0.35:
            return r.choice(kind)
        a, b = self.array(kind, depth + 1), self.array(kind, depth + 1)
        simple = [
            f"({a} + {b})", f"({a} * {b})", f"({a} - {self.number(1)})", f"({self.number(1)} * {a})", f"np.sin({a})", f"np.abs({a})", f"np.maximum({a}, {b})", f"np.where({a} > {b}, {a}, {self.number(1)})",
            f"np.clip({a}, -1, 2)", f"-{a}", f"{a}.copy()", f"np.floor({a})", f"({a} > {b}).astype(np.float64)", f"({a} / (1 + {b} ** 2))", f"np.minimum({a}, {self.number(1)})", f"np.zeros_like({a})", f"np.sign({a})", f"({a} // 0.7)", f"({a} % 1.3)",
        ]  # fmt: skip
        table, column = r.choice(self.tables), r.choice(self.columns)
        if kind is self.columns:
            simple += [f"{table}.sum(axis=1)", f"{table}[:, 0]", f"np.cumsum({a})", f"{a}[I]", f"{a}[::-1]", f"np.sort({a})", f"np.roll({a}, 1)", f"{table}.max(axis=1)", f"{table} @ {r.choice(self.rows)}", "np.arange(n)", "I * 1.0", f"np.repeat({self.number(1)}, n)", "np.linspace(0, 1, n)"]  # fmt: skip
        elif kind is self.rows:
            simple += [
                f"{table}.mean(axis=0)",
                f"{table}[0]",
                f"{table}[-1]",
                f"{column} @ {table}",
                "np.arange(m)",
                f"{a}[::-1]",
                f"{table}[I[0]]",
            ]
        else:
            simple += [f"({column}[:, None] + {r.choice(self.rows)})", f"({a} * {r.choice(self.rows)})", f"({a} - {column}[:, np.newaxis])", f"np.outer({column}, {r.choice(self.rows)})", f"{a}[::-1]", f"{a}[I]", f"np.cumsum({a}, axis=1)", "np.ones((n, m))"]  # fmt: skip
        return r.choice(simple)

    def condition(self, a: str, b: str) -> str:
        return self.pick(
            f"{a} > {b}", f"{a} <= {b}", f"{a} != {b}", f"not {a} > 0", f"{a} > 0 and {b} < 1", f"{a} > 0 or {b} > 1"
        )

    def statement(self) -> None:
        r = self.r
        kind = r.choice([self.columns, self.columns, self.rows, self.tables])
        made = r.random()
        if made < 0.25:
            text = self.array(kind)
            self.lines.append(f"{self.new(kind)} = {text}")
        elif made < 0.35:
            text = self.number()
            self.lines.append(f"{self.new(self.floating)} = {text}")
        elif made < 0.4:
            text = self.whole_number()
            self.lines.append(f"{self.new(self.whole)} = {text}")
        elif made < 0.6:
            self.lines.append(self.write())
        else:
            self.loop()

    def write(self) -> str:
        r = self.r
        column, table, row = r.choice(self.columns), r.choice(self.tables), r.choice(self.rows)
        sign = self.pick("=", "+=", "*=", "-=")
        return self.pick(
            f"{column}[0] {sign} {self.number()}", f"{column}[:] {sign} {self.array(self.columns, 1)}", f"{column}[I] = {self.array(self.columns, 1)}", f"{column}[{column} > {self.number(1)}] {sign} {self.number(1)}", f"{table}[0] {sign} {self.array(self.rows, 1)}",
            f"{table}[:, 0] {sign} {self.array(self.columns, 1)}", f"{table}[-1, 0] {sign} {self.number(1)}", f"{column} {sign if sign != '=' else '+='} {self.array(self.columns, 1)}", f"np.add.at({column}, I, {self.number(1)})", f"{column}[1:] {sign} {column}[:-1]",
            f"{column}.sort()", f"{table}[I, 0] = {self.array(self.columns, 1)}", f"{column}.fill({self.number(1)})", f"{table}[[0, -1]] = {table}[[-1, 0]]", f"{table}[{table} < {self.number(1)}] = {self.number(1)}", f"{table}.T[0] {sign} {self.array(self.columns, 1)}", f"{row}[{self.whole_number()}] {sign} {self.number(1)}", f"np.put({column}, [0, -1], {self.number(1)})", f"{column}[::2] {sign} {self.number(1)}", f"{column}[{self.whole_number()}] {sign} {self.number(1)}",
        )  # fmt: skip

    def element(self, depth=0) -> str:
        """A number within a loop over i (and j)."""
        r = self.r
        if depth > 1 or r.random() < 0.45:
            return self.pick(f"{r.choice(self.columns)}[i]", f"{r.choice(self.tables)}[i, {self.pick('j', '0', '-1', 'j - 1')}]", f"{r.choice(self.rows)}[j]", "t", "c", "i", "j", r.choice(self.floating), r.choice(self.whole), f"{r.choice(self.columns)}[i - 1]", f"{r.choice(self.columns)}[I[i]]", "0.5", "2")  # fmt: skip
        a, b = self.element(depth + 1), self.element(depth + 1)
        return self.pick(f"({a} + {b})", f"({a} * {b})", f"({a} - {b})", f"min({a}, {b})", f"max({a}, {b})", f"abs({a})", f"({a} if {self.condition(a, b)} else {b})", f"math.sin({a})", f"np.sqrt(abs({a}))", f"({a} / (1.0 + abs({b})))", f"np.exp(-abs({a}))", f"int({a})", f"float({a})", f"({a} ** 2)", f"round({a})")  # fmt: skip

    def action(self, indent: str, depth=0) -> list[str]:
        r = self.r
        column, table = r.choice(self.columns), r.choice(self.tables)
        e = self.element()
        simple = [
            f"t {self.pick('=', '+=', '-=')} {e}", f"c += {self.pick('1', 'i', '2 * j', 'int(t) % 5', 'c % 3 + 1')}", f"{column}[i] {self.pick('=', '+=', '*=')} {e}", f"{table}[i, j] {self.pick('=', '+=')} {e}", f"t, u = {e}, t",
            f"xs.append({e})", f"{column}[I[i]] += {e}", f"{table}[i] {self.pick('+=', '*=')} {self.pick('t', e)}", f"t = {table}[i].sum() + t", f"t += np.dot({table}[i], {r.choice(self.rows)})", f"u = max(u, {e})", f"{column}[i - 1] = {e}", f"{column}[-1 - i] = {e}", f"t += {table}[i, j:].sum()", f"t = {column}[:i].sum() + t", "c = c * 3 // 2 & 255",
        ]  # fmt: skip
        kind = r.random()
        if depth < 2 and kind < 0.2:
            out = [f"if {self.condition(e, self.element(1))}:", *("    " + x for x in self.action("", depth + 1))]
            if r.random() < 0.5:
                out += ["else:", *("    " + x for x in self.action("", depth + 1))]
            return out
        if depth < 2 and kind < 0.28:
            return [f"if {self.condition(e, self.element(1))}:", f"    {self.pick('continue', 'break', 'continue')}"]
        if depth < 1 and kind < 0.4:
            return [
                "for j in range(m):",
                *("    " + x for _ in range(r.randint(1, 2)) for x in self.action("", depth + 1)),
            ]
        if depth < 1 and kind < 0.46:
            return [
                f"w = {self.pick('i', 'k', 'c % 7')}",
                "while w > 0:",
                *("    " + x for x in self.action("", 2)),
                f"    w {self.pick('-= 1', '//= 2', '-= 2')}",
            ]
        return [r.choice(simple)]

    def loop(self) -> None:
        r = self.r
        head = self.pick("for i in range(n):", "for i in range(n):", "for i in range(1, n):", "for i in range(n - 1, -1, -1):", "for i, x in enumerate(B):", "for i in range(0, n, 2):", "for i in range(k % (n + 1)):", "for i in I:")  # fmt: skip
        body = [x for _ in range(r.randint(1, 4)) for x in self.action("")]
        start = (
            ["t, u, c, j, xs = 0.0, 1.0, 0, 0, []"]
            if r.random() < 0.7 or not any("xs =" in line for line in self.lines)
            else []
        )
        end = []
        for kind, value in ((self.floating, "t"), (self.floating, "u"), (self.whole, "c")):
            if r.random() < 0.5:
                end.append(f"{self.new(kind)} = {value}")
        if r.random() < 0.4:
            end.append(f"{self.new(self.floating)} = len(xs) + sum(xs)")
        self.lines.append("\n".join([*start, head, *("    " + x for x in body), *end]))

    def source(self, lines=None) -> str:
        lines = self.lines if lines is None else lines
        kept = [
            x
            for kind in (self.tables, self.columns, self.rows, self.whole, self.floating)
            for x in kind
            if x in "ABCks" or any(f"{x} =" in line for line in lines)
        ]
        body = ["n, m = A.shape", *(y for x in lines for y in x.split("\n")), f"return {', '.join(kept)}"]
        return HEADER + "def f(A, B, C, I, k, s):\n" + "\n".join("    " + x for x in body) + "\n"


def arguments(seed: int, n: int, m: int) -> tuple:
    g = np.random.default_rng(seed * 1000 + n * 10 + m)
    return (
        np.round(g.normal(size=(n, m)) * 2, 2), np.round(g.normal(size=n) * 2, 2), np.round(g.normal(size=m), 2).astype(np.float32), g.integers(0, n, n), int(g.integers(0, 9)), float(np.round(g.normal(), 2)),
    )  # fmt: skip


def called(fn, args):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "gives", fn(*args), args
        except Exception as e:
            return "raises", type(e).__name__, args


def difference(want, got) -> str:
    """What differs between two results of ``called``, as text; empty where they agree."""
    if want[0] != got[0]:
        return f"{want[:2]} and {got[:2]}"
    if want[0] == "raises":
        return "" if want[1] == got[1] else f"{want[1]} and {got[1]}"
    for k, (x, y) in enumerate(zip((*want[1], *want[2]), (*got[1], *got[2]), strict=True)):
        if (
            type(x) is not type(y)
            or getattr(x, "dtype", None) != getattr(y, "dtype", None)
            or np.shape(x) != np.shape(y)
        ):
            return f"{k}: {type(x).__name__} {getattr(x, 'dtype', '')} {np.shape(x)} {x!r} and {type(y).__name__} {getattr(y, 'dtype', '')} {np.shape(y)} {y!r}"
        narrow = getattr(x, "dtype", None) == np.float32
        if not np.allclose(x, y, rtol=1e-4 if narrow else 1e-6, atol=1e-5 if narrow else 1e-6, equal_nan=True):
            return f"{k}: {x!r} and {y!r}"
    return ""


def function(source: str):
    """``f`` of a program; its lines can be found, as those of a file."""

    name = f"<program {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict = {}
    exec(compile(source, name, "exec"), scope)
    return scope["f"]


def checked(source: str, seed: int, backend: str) -> str:
    torch._dynamo.reset()
    plain, captured = function(source), torch.compile(function(source), backend=backend)
    for n, m in SIZES:
        want, got = (called(fn, arguments(seed, n, m)) for fn in (plain, captured))
        found = difference(want, got)
        if found:
            return f"at {n}, {m}: {found}"
    return ""


def run(seed: int, backend: str = "inductor") -> None:
    """AssertionError with the shrunk program where seed's program differs."""
    program = Program(seed)
    found = checked(program.source(), seed, backend)
    if not found:
        return
    lines, k = list(program.lines), 0
    while k < len(lines):
        fewer = lines[:k] + lines[k + 1 :]
        try:
            less = checked(program.source(fewer), seed, backend)
        except Exception:
            less = ""
        if less and "NameError" not in less and "UnboundLocal" not in less:
            lines, found = fewer, less
        else:
            k += 1
    raise AssertionError(f"seed {seed}: {found}\n{program.source(lines)}")


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    failed = 0
    for seed in range(first, first + count):
        try:
            run(seed, *sys.argv[3:4])
        except AssertionError as e:
            failed += 1
            print(e, flush=True)
    print(f"{count} programs, {failed} differ")
