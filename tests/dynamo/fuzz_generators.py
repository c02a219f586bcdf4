"""Random generator functions and random calls of ``send``, ``throw`` and ``close``: as the compiled function, and driven inside one. Values, log,
errors, their chains and the names and lines of their tracebacks agree. ``python tests/dynamo/fuzz_generators.py FIRST COUNT [BACKEND]``."""

from __future__ import annotations

import random
import sys
import traceback

HEADER = """\
import contextlib
import flambeau as torch
from flambeau.compiler import graph_break

class Told(Exception):
    def __init__(self, t, n=0):
        super().__init__(n)
        self.t = t

class Manager:
    def __init__(self, log, swallows): self.log, self.swallows = log, swallows
    def __enter__(self): self.log.append('enter'); return 2
    def __exit__(self, t, v, tb):
        self.log.append((t and t.__name__, tb and tb.tb_lineno))
        return self.swallows

@contextlib.contextmanager
def noted(log):
    log.append('in')
    try: yield 3
    except KeyError as e: log.append(('caught', e.args))
    finally: log.append('out')

def inner(t, log):
    try:
        got = yield t + 1
        log.append(got)
        yield t * 2
    except ValueError as e:
        log.append(('inner', e.args))
        yield t * 3
    finally:
        log.append('inner done')
    return t - 1

def fails(t, n):
    u = t + n
    if n % 2: raise Told(u, n)
    raise [ValueError, KeyError][n // 2 % 2](n)

"""
ERRORS = ("ValueError", "KeyError", "Told", "Exception", "(ValueError, KeyError)")


class Body:
    """One generator function: statements over the tensor ``t``, the number ``n`` and ``log``."""

    def __init__(self, r: random.Random):
        self.r, self.lines, self.depth, self.loops = r, [], 1, 0

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, n: int = 3) -> None:
        self.depth += 1
        before = len(self.lines)
        for _ in range(self.r.randint(1, n)):
            self.statement()
        if len(self.lines) == before:
            self.emit("pass")
        self.depth -= 1

    def statement(self) -> None:
        r = self.r
        deep = self.depth > 4
        kind = r.choice("yyyyabcdfg" if deep else "yyyyabcdefghijklmnop")
        if kind == "y":
            self.emit(r.choice(["yield t", "got = yield t + n", "got = yield n", "t = t + ((yield t * 2) or 1)"]))
        elif kind == "a":
            self.emit(r.choice(["t = t * 2 - n", "t = t + 1", "n = n + 1", "t = torch.sin(t) * n"]))
        elif kind == "b":
            self.emit(r.choice(["graph_break()", "log.append(n)", "log.append(t.sum().item() > 3)"]))
        elif kind == "c":
            self.emit(r.choice(["log.append(torch.is_grad_enabled())", "n += len(log)", "t = t.clone(); t += n"]))
        elif kind == "d":
            self.emit(
                r.choice(
                    ["t = t + (yield from inner(t, log))", "yield from [t, n]", "yield from (t * q for q in (1, 2))"]
                )
            )
        elif kind == "f":
            self.emit(
                f"if n % {r.randint(2, 4)} == {r.randint(0, 1)}: {r.choice(['return t', 'fails(t, n)', 'raise Told(t, 7)'])}"
            )
        elif kind == "g":
            self.emit(r.choice(["t = sum([t * q for q in range(2)])", "h = lambda q: q * t + n", "log.append(f'{n}')"]))
        elif kind in "eh":
            self.emit(f"if {r.choice(['n % 2', 't.sum() > 2', 'n > 3', 'len(log) < 4'])}:")
            self.block(2)
            if r.random() < 0.5:
                self.emit("else:")
                self.block(2)
        elif kind in "ij" and self.loops < 2:
            self.loops += 1
            self.emit(r.choice(["for q in range(2):", "for q in [t, n]:", "for q in inner(t, log):"]))
            self.block(2)
            if r.random() < 0.3:
                self.emit(f"    if n > {r.randint(0, 5)}: {r.choice(['break', 'continue'])}")
            self.loops -= 1
        elif kind in "kl":
            self.emit(
                f"with {r.choice(['torch.no_grad()', 'Manager(log, True)', 'Manager(log, False)', 'noted(log)'])} as m:"
            )
            self.block()
        elif kind in "mno":
            self.emit("try:")
            self.block()
            for _ in range(r.randint(1, 2)):
                self.emit(f"except {r.choice(ERRORS)} as e:")
                self.emit(
                    "    log.append((type(e).__name__, e.args[:1], type(e.__context__).__name__, e.__traceback__.tb_lineno))"
                )
                self.block(2)
                if r.random() < 0.3:
                    self.emit(
                        f"    {r.choice(['raise', 'raise Told(t, 9) from e', 'raise KeyError(n)', 'raise ValueError(n) from None'])}"
                    )
            if r.random() < 0.4:
                self.emit("finally:")
                self.emit("    log.append('finally')")
                if r.random() < 0.5:
                    self.block(1)
        elif kind == "p":
            self.emit("try:")
            self.block()
            self.emit("finally:")
            self.block(1)


def call(r: random.Random) -> str:
    return r.choice(
        ["next(g)"] * 5 + ["g.send(2)"] * 2 + ["g.throw(ValueError(5))", "g.throw(KeyError(6))", "g.throw(Told(t, 8))", "g.close()"]
    )  # fmt: skip


def source_of(seed: int) -> str:
    r = random.Random(seed)
    body = Body(r)
    for _ in range(r.randint(2, 5)):
        body.statement()
    lines = [
        "def gen(t, n, log):",
        *body.lines,
        "    yield t",
        "",
        "def drive(t, n, log):",
        "    g, out = gen(t, n, log), []",
    ]
    for _ in range(r.randint(2, 6)):
        lines += ["    try:", f"        out.append({call(r)})", "    except Exception as e:"]
        lines.append(
            "        out.append((type(e).__name__, e.args[:1], type(e.__context__).__name__, type(e.__cause__).__name__))"
        )
        if r.random() < 0.2:
            lines.append("    " + r.choice(["graph_break()", "t = t * 2"]))
    lines += ["    g.close()", "    return out, t", "", "CALLS = " + repr([call(r) for _ in range(r.randint(2, 8))])]
    return HEADER + "\n".join(lines) + "\n"


def value(x):
    import flambeau as torch

    if isinstance(x, torch.Tensor):
        return "tensor", [round(v, 3) for v in x.detach().numpy().astype("float64").ravel().tolist()], x.requires_grad
    if isinstance(x, (list, tuple)):
        return [value(v) for v in x]
    return type(x).__name__, repr(x)


# What is thrown into a generator that another one delegates to inside a handler: CPython 3.11 itself leaves the inner one out of the traceback.
LEFT_OUT = ("inner", "<genexpr>") if sys.version_info < (3, 12) else ()


def error(e, filename):
    out = []
    while e is not None and len(out) < 6:
        frames = [(f.name, f.lineno) for f in traceback.extract_tb(e.__traceback__) if f.filename == filename]
        frames = [f for f in frames if f[0] not in LEFT_OUT]
        out.append((type(e).__name__, value(e.args), e.__suppress_context__, frames))
        e = e.__context__
    return out


def outcome(scope, filename, compiled, what):
    import flambeau as torch

    log: list = []
    t, n = torch.tensor([1.0, 2.0], requires_grad=what == "grad"), 1
    out = []
    if what == "inside":
        try:
            out.append(value(compiled(scope["drive"])(t, n, log)))
        except BaseException as e:
            out.append(error(e, filename))
    else:
        g = compiled(scope["gen"])(t, n, log)
        for c in scope["CALLS"]:
            try:
                out.append(value(eval(c, {**scope, "g": g, "t": t})))
            except BaseException as e:
                out.append(error(e, filename))
        try:
            g.close()
        except BaseException as e:
            out.append(error(e, filename))
    torch.set_grad_enabled(True)
    return out, value(log)


def difference(a, b, path="") -> str:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        found = next((d for i, (x, y) in enumerate(zip(a, b)) if (d := difference(x, y, f"{path}[{i}]"))), "")
        return found or (
            "" if len(a) == len(b) else f"{path}: {len(a)} != {len(b)} elements, {a[len(b) :] or b[len(a) :]}"
        )
    return "" if a == b else f"{path}: {a!r} != {b!r}"


def run(seed: int, backend="eager") -> None:
    import linecache

    import flambeau as torch
    from flambeau import _frame
    from flambeau.dynamo.config import config

    source = source_of(seed)
    filename = f"/fuzz_generators/{seed}.py"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {"__name__": f"fuzz_generators_{seed}"}
    exec(compile(source, filename, "exec"), scope)
    for what in (("alone", "inside", "grad")[seed % 3],):
        want = outcome(scope, filename, lambda f: f, what)
        torch.compiler.reset()
        compiled = {}
        old = _frame.set_strict_guards(True)
        try:
            with config.patch(strict_capture=True):
                for _ in range(2):
                    got = outcome(
                        scope, filename, lambda f: compiled.setdefault(f, torch.compile(f, backend=backend)), what
                    )
                    if got != want:
                        raise AssertionError(f"seed {seed}, {what}: {difference(want, got)}\n{source[len(HEADER) :]}")
        finally:
            _frame.set_strict_guards(old)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    failed = []
    for seed in range(first, first + count):
        try:
            run(seed, sys.argv[3] if len(sys.argv) > 3 else "eager")
        except BaseException as e:
            failed.append(seed)
            print(f"--- {seed}", type(e).__name__, str(e)[: 400 if "-v" not in sys.argv else 4000], flush=True)
            if len(failed) >= 25:
                break
    print("failed:", failed, "of", seed + 1 - first)
