"""Random programs of ATen operators, compiled and compared with eager: ``python fuzz.py [first seed] [count]``.

A failing seed is printed with its program; put it into test_fuzz.py's list.
"""

import random
import sys

import numpy as np
from tracing import trace

import flambeau as torch

aten = torch.ops.aten
SHAPES = [(6,), (4, 6), (33, 40), (3, 4, 6), (2, 3, 4, 6), (1, 6), (130, 70), (5, 1), (16, 16), (600, 24)]


class Program:
    """``steps``: (text, function of the list of values); values are tensors of float32."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.inputs = [self.rng.choice(SHAPES) for _ in range(self.rng.randint(1, 3))]
        self.steps = []

    def build(self):
        rng = self.rng
        shapes = list(self.inputs)
        for _ in range(rng.randint(2, 14)):
            k = rng.randrange(len(shapes)) if rng.random() < 0.5 else len(shapes) - 1
            s = shapes[k]
            made = self.step(k, s, shapes)
            if made is None:
                continue
            text, fn, shape = made
            if np.prod(shape) > 400000:
                continue
            self.steps.append((text, fn))
            shapes.append(tuple(shape))
        n = rng.randint(1, 3)
        self.outputs = (
            sorted({len(shapes) - 1, *[rng.randrange(len(self.inputs), len(shapes)) for _ in range(n)]})
            if self.steps
            else [0]
        )
        return self

    def step(self, k, s, shapes):
        rng = self.rng
        kind = rng.choice(
            [
                "unary",
                "unary",
                "binary",
                "binary",
                "reduce",
                "reduce",
                "view",
                "view",
                "softmax",
                "norm",
                "mm",
                "where",
                "cat",
                "index",
                "half",
                "argmax",
            ]
        )
        if kind == "unary":
            name = rng.choice(["exp", "tanh", "sigmoid", "relu", "sin", "neg", "abs", "gelu", "add1", "mul", "sq"])
            f = {
                "exp": lambda x: (x * 0.1).exp(),
                "gelu": lambda x: aten.gelu.default(x),
                "add1": lambda x: x + 1,
                "mul": lambda x: x * 0.5,
                "sq": lambda x: x * x * 0.1,
                "relu": lambda x: x.relu(),
                "neg": lambda x: -x,
            }.get(name) or (lambda x: getattr(x, name)())
            return f"v{k}.{name}", lambda v: f(v[k]), s
        if kind == "binary":
            others = [j for j, t in enumerate(shapes) if _broadcast(s, t) is not None]
            j = rng.choice(others)
            op = rng.choice(["+", "-", "*", "max"])
            f = {
                "+": lambda a, b: a + b,
                "-": lambda a, b: a - b,
                "*": lambda a, b: a * b * 0.3,
                "max": lambda a, b: torch.maximum(a, b),
            }[op]
            return f"v{k} {op} v{j}", lambda v: f(v[k], v[j]), _broadcast(s, shapes[j])
        if kind == "reduce":
            if not s:
                return None
            dims = sorted(rng.sample(range(len(s)), rng.randint(1, len(s))))
            keep = rng.random() < 0.5
            op = rng.choice(["mean", "amax", "amin", "sum"])
            f = {
                "mean": lambda x: x.mean(dims, keep),
                "amax": lambda x: x.amax(dims, keep),
                "amin": lambda x: x.amin(dims, keep),
                "sum": lambda x: x.sum(dims, keep) * 0.1,
            }[op]
            return (
                f"v{k}.{op}({dims}, {keep})",
                lambda v: f(v[k]),
                [1 if i in dims else n for i, n in enumerate(s) if keep or i not in dims],
            )
        if kind == "view":
            op = rng.choice(["t", "flatten", "split", "unsqueeze", "slice", "expand"])
            if op == "t" and len(s) > 1:
                a, b = rng.sample(range(len(s)), 2)
                shape = list(s)
                shape[a], shape[b] = shape[b], shape[a]
                return f"v{k}.transpose({a}, {b})", lambda v: v[k].transpose(a, b), shape
            if op == "flatten":
                return f"v{k}.reshape(-1)", lambda v: v[k].reshape(-1), [int(np.prod(s))]
            if op == "split" and s and s[-1] % 2 == 0:
                return (
                    f"v{k}.reshape(.., 2, n/2)",
                    lambda v: v[k].reshape(*s[:-1], 2, s[-1] // 2),
                    [*s[:-1], 2, s[-1] // 2],
                )
            if op == "unsqueeze":
                d = rng.randint(0, len(s))
                return f"v{k}.unsqueeze({d})", lambda v: v[k].unsqueeze(d), [*s[:d], 1, *s[d:]]
            if op == "slice" and s and s[-1] > 2:
                return f"v{k}[..., 1::2]", lambda v: v[k][..., 1::2], [*s[:-1], (s[-1] - 1 + 1) // 2]
            if op == "expand" and 1 in s:
                d = s.index(1)
                shape = [*s[:d], 3, *s[d + 1 :]]
                return f"v{k}.expand({shape})", lambda v: v[k].expand(shape), shape
            return None
        if kind == "softmax" and s:
            d = rng.randrange(len(s))
            return f"softmax(v{k}, {d})", lambda v: aten._softmax.default(v[k], d, False), s
        if kind == "norm" and s and s[-1] > 1:
            return f"layer_norm(v{k})", lambda v: aten.native_layer_norm.default(v[k], [s[-1]], None, None, 1e-3)[0], s
        if kind == "mm" and len(s) == 2:
            return f"v{k} @ v{k}.t()", lambda v: (v[k] @ v[k].t()) * 0.05, [s[0], s[0]]
        if kind == "where":
            return f"where(v{k} > 0)", lambda v: aten.where.self(v[k] > 0, v[k] * 2, v[k] - 1), s
        if kind == "cat" and s:
            d = rng.randrange(len(s))
            shape = [n * 2 if i == d else n for i, n in enumerate(s)]
            return f"cat(v{k}, v{k} + 1, {d})", lambda v: torch.cat([v[k], v[k] + 1], d), shape
        if kind == "index" and s and s[0] > 1:
            idx = [rng.randrange(-s[0], s[0]) for _ in range(5)]
            return f"v{k}[{idx}]", lambda v: aten.index_select.default(v[k], 0, torch.arange(5) * 7 % s[0]), [5, *s[1:]]
        if kind == "argmax" and len(s) > 1:
            d = rng.randrange(len(s))
            return (
                f"v{k}.gather({d}, argmin)",
                lambda v: v[k].gather(d, v[k].argmin(d, True)) + 1,
                [1 if i == d else n for i, n in enumerate(s)],
            )
        if kind == "half":
            return f"v{k}.bfloat16().float()", lambda v: (v[k].to(torch.float64) * 0.7).to(torch.float32), s
        return None

    def __call__(self, *inputs):
        v = list(inputs)
        for _, f in self.steps:
            v.append(f(v))
        return tuple(v[o] for o in self.outputs)

    def __str__(self):
        n = len(self.inputs)
        lines = [f"v{i} = input {s}" for i, s in enumerate(self.inputs)]
        return "\n".join(
            [*lines, *[f"v{n + i} = {t}" for i, (t, _) in enumerate(self.steps)], f"return {self.outputs}"]
        )


def _broadcast(a, b):
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def check(seed):
    """Compile and compare program ``seed``; AssertionError or another exception when it fails."""
    from flambeau.inductor import compile_graph

    program = Program(seed).build()
    rng = np.random.default_rng(seed)
    args = [torch.from_numpy(rng.normal(size=s).astype(np.float32)) for s in program.inputs]
    gm = trace(program, *args)
    graph = compile_graph(gm)
    metas = [n.meta["val"] for n in list(gm.graph.nodes)[-1].args[0]]
    for got, want, meta in zip(graph(*args), program(*args), metas):
        assert tuple(got.shape) == tuple(want.shape) and got.dtype is want.dtype
        assert 0 in got.shape or all(n == 1 or a == b for n, a, b in zip(got.shape, got.stride(), meta.stride())), (
            got.stride(),
            meta.stride(),
        )
        np.testing.assert_allclose(got._array, want._array, rtol=2e-4, atol=2e-4)
    return program


if __name__ == "__main__":
    first, count = int(sys.argv[1]) if len(sys.argv) > 1 else 0, int(sys.argv[2]) if len(sys.argv) > 2 else 200
    failed = 0
    for seed in range(first, first + count):
        try:
            check(seed)
        except Exception as e:
            failed += 1
            print(f"--- seed {seed}: {type(e).__name__}: {str(e).strip()[:300]}\n{Program(seed).build()}", flush=True)
            if failed > 5:
                break
    print(f"{count} programs, {failed} failed")
