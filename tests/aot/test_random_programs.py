"""Random programs with views, in-place operators and detach: compiled ahead of time and functionalized they do what eager does."""

import random

import pytest

import flambeau as torch
from flambeau.aot import aot_function, default_partition, min_cut_rematerialization_partition, nop
from flambeau.aot.api import Compilers, compile_flat
from flambeau.base.shape_env import ShapeEnv
from flambeau.fake import FakeTensorMode
from flambeau.functionalize import functionalize

UNARY = ("sin", "cos", "tanh", "neg", "exp", "sigmoid")
SHAPE = (2, 3)


def program(seed: int) -> str:
    """Source of ``f(a, b)`` on tensors of SHAPE, returning a list."""
    r = random.Random(seed)
    lines, shapes = ["def f(a, b):"], {"a": SHAPE, "b": SHAPE}

    def new(expression, shape):
        name = f"v{len(shapes)}"
        lines.append(f"    {name} = {expression}")
        shapes[name] = shape

    for _ in range(r.randint(3, 9)):
        x = r.choice(list(shapes))
        s = shapes[x]
        y = r.choice([v for v in shapes if shapes[v] == s])
        kind = r.choice(
            ["unary", "binary", "binary", "view", "view", "reduce", "write", "write", "write_view", "detach"]
        )
        if kind == "unary":
            new(f"{x}.{r.choice(UNARY)}() * 0.5", s)
        elif kind == "binary":
            new(f"{x} {r.choice('+-*')} {y}", s)
        elif kind == "detach":
            new(f"{x}.detach()", s)
        elif kind == "reduce" and s:
            new(f"{x}.mean()", ()) if r.random() < 0.5 else new(f"{x}.sum(0, keepdim=True).expand({x}.shape) + 0", s)
        elif kind == "view" and len(s) == 2:
            i = r.randrange(s[0])
            views = {
                f"{x}.t()": s[::-1],
                f"{x}.reshape(-1)": (s[0] * s[1],),
                f"{x}[{i}]": s[1:],
                f"{x}.unsqueeze(0).squeeze(0)": s,
            }
            new(*r.choice(list(views.items())))
        elif kind == "view" and s and s[-1] > 1:
            new(f"{x}[..., 1:]", (*s[:-1], s[-1] - 1))
        elif kind == "write":
            calls = ["mul_(0.5)", "add_(1)", "sin_()", f"add_({y})", f"mul_({y}.detach())", f"copy_({y})", "zero_()"]
            lines.append(f"    {x}.{r.choice(calls)}")
        elif kind == "write_view" and s:
            lines.append(f"    {x}[{r.randrange(s[0])}].{r.choice(['mul_(2)', 'add_(1)', 'fill_(3.0)'])}")
    outs = r.sample(list(shapes), min(len(shapes), r.randint(1, 3)))
    lines.append(f"    return [{', '.join(outs)}]")
    return "\n".join(lines)


def run(f, seed: int, grads: tuple[bool, bool], shape=SHAPE):
    """Outputs, inputs afterwards, gradients of the leaves behind the inputs, which outputs require grad."""
    torch.manual_seed(seed)
    leaves = [torch.randn(*shape).requires_grad_(g) for g in grads]
    inputs = [x * 1 if g else x for x, g in zip(leaves, grads)]
    out = f(*inputs)
    total = sum((o * (i + 1)).sum() for i, o in enumerate(out) if o.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    # A gradient that is absent in eager may be zeros here; what was written with one that needs a gradient is no leaf any more.
    grads_of = [x.grad if x.is_leaf else None for x in leaves]
    gradients = [torch.zeros(*shape) if g is None else g for g in grads_of]
    return [t.detach() for t in (*out, *inputs, *gradients)], [o.requires_grad for o in out]


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed):
    source = program(seed)
    scope: dict = {}
    exec(source, scope)
    f = scope["f"]
    for grads in ((False, False), (True, False), (True, True)):
        try:
            expected = run(f, seed, grads)
        except RuntimeError:
            continue  # the program itself is at fault: a saved value was overwritten
        ways = {
            "default": aot_function(f, nop, partition_fn=default_partition),
            "min-cut": aot_function(f, nop, partition_fn=min_cut_rematerialization_partition),
        }
        if not any(grads):
            ways["functionalize"] = functionalize(f)
        for name, way in ways.items():
            try:
                got = run(way, seed, grads)
            except RuntimeError as e:
                # The gradient of a written input is traced whether or not the program asks for it, as in PyTorch.
                assert "modified by an inplace operation" in str(e), (name, source)
                continue
            assert got[1] == expected[1], (name, source)
            for a, b in zip(expected[0], got[0], strict=True):
                assert torch.allclose(a, b, atol=1e-5, equal_nan=True), (name, source, a, b)


SIZES = ((2, 3), (3, 5), (4, 7), (5, 6), (6, 9))


@pytest.mark.parametrize("seed", range(100, 160))
def test_one_compilation_at_five_sizes(seed):
    source = program(seed)
    scope: dict = {}
    exec(source, scope)
    f = scope["f"]
    for grads in ((False, False), (True, True)):
        env = ShapeEnv()
        mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
        fakes = [mode.from_tensor(torch.randn(*SIZES[0])).requires_grad_(g) for g in grads]
        try:
            compiled = compile_flat(f, fakes, Compilers(nop, partition_fn=min_cut_rematerialization_partition))
        except RuntimeError as e:
            assert "modified by an inplace operation" in str(e), source
            continue
        for shape in SIZES:
            try:
                expected = run(f, seed, grads, shape)
            except RuntimeError:
                break
            assert all(g.relation.evaluate(dict(zip(env.hints, shape))) for g in env.guards), (source, env.guards)
            try:
                got = run(compiled, seed, grads, shape)
            except RuntimeError as e:
                assert "modified by an inplace operation" in str(e), source
                break
            assert got[1] == expected[1], source
            for a, b in zip(expected[0], got[0], strict=True):
                assert torch.allclose(a, b, atol=1e-5, equal_nan=True), (source, shape, a, b)
