"""Random programs over dtypes, comparisons, integer arithmetic and large or empty shapes: ``python fuzz_dtypes.py [first seed] [count]``."""

import random
import sys

import numpy as np
from tracing import trace

import flambeau as torch

aten = torch.ops.aten
DTYPES = ["float32", "float64", "int64", "int32", "bool", "bfloat16", "float16", "uint8", "int8", "int16"]
SHAPES = [(), (7,), (0, 3), (5, 7), (1, 7), (40000,), (3, 9001), (20000, 3), (70, 130)]


def make(rng, shape, dtype):
    if dtype == "bool":
        return torch.from_numpy(np.asarray(rng.random(shape) > 0.5))
    if dtype in ("float32", "float64", "bfloat16", "float16"):
        return torch.from_numpy(np.asarray(rng.normal(size=shape))).to(getattr(torch, dtype))
    return torch.from_numpy(np.asarray(rng.integers(0, 9, size=shape))).to(getattr(torch, dtype))


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.inputs = [(self.rng.choice(SHAPES), self.rng.choice(DTYPES)) for _ in range(self.rng.randint(1, 3))]
        self.plan = [
            (
                self.rng.random(),
                self.rng.random(),
                self.rng.choice(
                    [
                        "add",
                        "mul",
                        "sub",
                        "cmp",
                        "where",
                        "to",
                        "sum",
                        "amax",
                        "arg",
                        "any",
                        "div",
                        "floordiv",
                        "rem",
                        "max",
                        "addn",
                        "muln",
                        "not",
                        "exp",
                        "mean",
                        "all",
                        "prod",
                    ]
                ),
                self.rng.randint(0, 10),
            )
            for _ in range(self.rng.randint(1, 8))
        ]
        self.names: list[str] = []

    def __call__(self, *inputs):
        v, self.names = list(inputs), []
        for a, b, kind, n in self.plan:
            x = v[int(a * len(v))]
            y = v[int(b * len(v))]
            try:
                if np.prod(np.broadcast_shapes(tuple(x.shape), tuple(y.shape))) > 200000:
                    y = x
            except ValueError:
                y = x
            if kind in ("addn", "muln") and x.dtype is torch.uint8:
                kind = "add"
            floating = x.dtype.is_floating_point
            dim = n % x.ndim if x.ndim else None
            if kind in ("sum", "amax", "any", "all", "mean", "prod", "arg") and (x.ndim == 0 or 0 in x.shape):
                continue
            if (
                (kind in ("mean", "exp") and not floating)
                or (kind in ("floordiv", "rem") and x.dtype is torch.bool)
                or (kind == "sub" and torch.bool in (x.dtype, y.dtype))
                or (kind in ("amax", "arg", "max") and torch.bool in (x.dtype, y.dtype))
            ):
                continue
            if kind == "prod" and (floating or x.shape[dim] > 20):
                continue
            made = {
                "add": lambda: x + y,
                "mul": lambda: x * y,
                "sub": lambda: x - y,
                "max": lambda: torch.maximum(x, y),
                "cmp": lambda: [x > y, x == y, x <= y, x != y][n % 4],
                "where": lambda: aten.where.self(x > 0, x, y),
                "to": lambda: (
                    x.to(getattr(torch, DTYPES[n % len(DTYPES)]))
                    if not floating or n % len(DTYPES) in (0, 1, 5, 6)
                    else x * 1
                ),
                "sum": lambda: x.sum(dim) if n % 2 else x.sum(),
                "amax": lambda: x.amax([dim]),
                "arg": lambda: x.argmax(dim) if n % 2 else x.argmin(dim),
                "any": lambda: (x > 2).any(dim),
                "all": lambda: (x > -2).all(dim),
                "div": lambda: x / (n + 1),
                "floordiv": lambda: x // (n + 2),
                "rem": lambda: x % (n + 2),
                "addn": lambda: x + n,
                "muln": lambda: x * (n - 3),
                "not": lambda: (x > 1).logical_not(),
                "exp": lambda: (x * 0.1).exp(),
                "mean": lambda: x.mean([dim], True),
                "prod": lambda: x.prod(dim),
            }[kind]()
            self.names.append(
                f"v{len(v)} = {kind}(v{int(a * len(v))}, v{int(b * len(v))}, {n}) -> {made.dtype}{list(made.shape)}"
            )
            v.append(made)
        return tuple(v[len(inputs) :]) or (v[0] * 1,)

    def __str__(self):
        return "\n".join([f"v{i} = input {d}{list(s)}" for i, (s, d) in enumerate(self.inputs)] + self.names)


def check(seed):
    """Compile and compare program ``seed``."""
    from flambeau.inductor import compile_graph

    program = Program(seed)
    rng = np.random.default_rng(seed)
    args = [make(rng, s, d) for s, d in program.inputs]
    try:
        wants = program(*args)
    except (OverflowError, RuntimeError):
        return  # eager refuses it (a number that doesn't fit the dtype)
    gots = compile_graph(trace(program, *args))(*args)
    for i, (got, want) in enumerate(zip(gots, wants)):
        assert got.dtype is want.dtype and tuple(got.shape) == tuple(want.shape), (
            i,
            got.dtype,
            want.dtype,
            got.shape,
            want.shape,
        )
        a, b = np.asarray(got._array), np.asarray(want._array)
        if not want.dtype.is_floating_point:
            bad = np.count_nonzero(a != b)
            # a comparison of values that were rounded differently may come out differently now and then
            assert bad <= 0.002 * a.size + (
                2 if any(d[1] in ("bfloat16", "float16", "float32", "float64") for d in program.inputs) else 0
            ), (i, bad)
            continue
        tol = {"bfloat16": 4e-2, "float16": 4e-3, "float32": 2e-4, "float64": 1e-9}[want.dtype.name]
        if any(d in ("bfloat16", "float16") for _, d in program.inputs):
            tol = max(tol, 2e-2)
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=tol, atol=tol * 5)


if __name__ == "__main__":
    first, count = int(sys.argv[1]) if len(sys.argv) > 1 else 0, int(sys.argv[2]) if len(sys.argv) > 2 else 200
    failed = 0
    for seed in range(first, first + count):
        try:
            check(seed)
        except Exception as e:
            failed += 1
            p = Program(seed)
            try:
                p(*[make(np.random.default_rng(seed), s, d) for s, d in p.inputs])
            except Exception as eager_error:
                p.names.append(f"eager raises {eager_error!r}")
            print(f"--- seed {seed}: {type(e).__name__}: {str(e).strip()[:400]}\n{p}", flush=True)
            if failed > 5:
                break
    print(f"{count} programs, {failed} failed")
