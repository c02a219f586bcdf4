"""Random programs over two sizes that vary: compiled once, exported once, and compared with plain Python at several sizes.

``python tests/inductor/fuzz_sizes.py FIRST COUNT`` runs others than the tests do."""

from __future__ import annotations

import random
import sys

import flambeau as torch
from flambeau.export import Dim, export

SIZES = ((3, 5), (6, 4), (2, 7), (9, 8), (4, 33))
SMALL = ((1, 5), (4, 1))

# Steps: a text with holes for tensors whose shape is (b, c), and the shape of what comes out.
BC, CB, B, C, NONE = ("b", "c"), ("c", "b"), ("b",), ("c",), ()
STEPS = [
    ("{bc} * {bc} + 0.5", BC),
    ("torch.tanh({bc}) - {c}", BC),
    ("{bc} + {b}.unsqueeze(1)", BC),
    ("torch.softmax({bc}, -1)", BC),
    ("torch.softmax({bc}, 0)", BC),
    ("torch.nn.functional.layer_norm({bc}, ({bc}.shape[1],))", BC),
    ("torch.nn.functional.gelu({bc})", BC),
    ("{bc}.cumsum(0)", BC),
    ("{bc}.cumsum(1)", BC),
    ("{bc}.flip(0)", BC),
    ("{bc}.roll(1, 1)", BC),
    ("{bc}.t().contiguous()", CB),
    ("{cb}.t()", BC),
    ("{bc} @ {cb} @ {bc}", BC),
    ("({bc} @ {cb}).diagonal()", B),
    ("{bc}.sum(0)", C),
    ("{bc}.mean(1)", B),
    ("{bc}.amax(1)", B),
    ("{bc}.var(0, correction=0)", C),
    ("{bc}.sum()", NONE),
    ("{bc}.prod(1)", B),
    ("{bc}.norm(dim=1)", B),
    ("torch.cat([{bc}, {bc}], 0)[{bc}.shape[0]:]", BC),
    ("torch.cat([{bc}, {bc} * 2], 1)[:, ::2]", BC),
    ("torch.stack([{bc}, {bc}], 1).sum(1)", BC),
    ("{bc}.reshape(-1).reshape({bc}.shape[0], -1)", BC),
    ("{bc}.reshape(-1, {bc}.shape[0])", CB),
    ("{bc}.flatten().view({bc}.shape[1], {bc}.shape[0])", CB),
    ("{bc}[:, :1].expand({bc}.shape[0], {bc}.shape[1])", BC),
    ("{c}.expand({b}.shape[0], -1)", BC),
    ("{bc}[torch.arange({b}.shape[0] - 1, -1, -1)]", BC),
    ("{bc}.index_select(1, torch.arange({c}.shape[0]) // 2)", BC),
    ("{bc}.gather(1, {bc}.argmax(1, True)).expand_as({bc})", BC),
    ("torch.where({bc} > 0, {bc}, {c})", BC),
    ("{bc}.masked_fill({bc} > 1, 0.25)", BC),
    ("torch.zeros_like({bc}).index_add(0, torch.arange({b}.shape[0]) // 2, {bc})", BC),
    ("torch.zeros_like({bc}).scatter_add(1, (torch.arange({c}.shape[0]) // 3).expand({bc}.shape), {bc})", BC),
    ("torch.nn.functional.pad({bc}, (1, 2))[:, 1:-2]", BC),
    ("{bc}.repeat(2, 1)[: {b}.shape[0]]", BC),
    ("{bc}.unfold(0, 2, 1).sum(-1).sum(0)", C),
    ("torch.arange({b}.shape[0]) * 0.1 + {b}", B),
    ("torch.linspace(0, 1, {c}.shape[0]) + {c}", C),
    ("{bc} * ({bc}.shape[0] + {bc}.shape[1] // 2)", BC),
    ("{bc} / {bc}.numel()", BC),
    ("torch.outer({b}, {c})", BC),
    ("{bc}.tril() + {bc}.triu(1)", BC),
    ("{b}.sort().values", B),
    ("{bc}.bfloat16().float()", BC),
    ("{bc}.clamp(-1, 1).double().sum(0).float()", C),
    ("torch.einsum('bc,cd->bd', {bc}, {cb} @ {bc})", BC),
    ("torch.nn.functional.one_hot(torch.arange({c}.shape[0]), {c}.shape[0]).float().sum(0) * {c}", C),
    ("{bc}.chunk(1, 0)[0] + {bc}.split({bc}.shape[0], 0)[0]", BC),
    ("torch.nn.functional.conv1d({bc}.unsqueeze(1), torch.ones(1, 1, 3), padding=1).squeeze(1)", BC),
    ("torch.nn.functional.avg_pool1d({bc}, 3, 1, 1)", BC),
    ("{bc}.as_strided(({b}.shape[0], {c}.shape[0]), ({c}.shape[0], 1)) if {bc}.is_contiguous() else {bc}", BC),
]


def program(seed: int) -> str:
    """Source of ``f(x, y, z)`` for shapes (b, c), (b,), (c,)."""
    rng = random.Random(seed)
    values = {BC: ["x"], B: ["y"], C: ["z"], CB: [], NONE: []}
    lines = ["def f(x, y, z):"]
    k = 0
    while k < rng.randint(3, 9):
        text, shape = rng.choice(STEPS)
        holes = {"bc": BC, "b": B, "c": C, "cb": CB}
        if any("{" + h + "}" in text and not values[s] for h, s in holes.items()):
            continue
        while "{" in text:
            at = text.index("{")
            hole = text[at + 1 : text.index("}")]
            text = text.replace("{" + hole + "}", rng.choice(values[holes[hole]]), 1)
        name = f"v{k}"
        if rng.random() < 0.15 and shape == BC:
            lines.append(f"    {name} = ({text}) * 1")
            lines.append(f"    {name}.mul_(0.5)")
        else:
            lines.append(f"    {name} = {text}")
        values[shape].append(name)
        k += 1
    made = [v for vs in values.values() for v in vs if v.startswith("v")]
    outs = rng.sample(made, min(len(made), 3))
    outs.append(made[-1])
    return "\n".join([*lines, f"    return {', '.join(outs)}, x.shape[0] * 2 + z.shape[0]"])


def inputs(b: int, c: int, seed: int, grad: bool):
    torch.manual_seed(seed)
    return [torch.randn(*s).requires_grad_(grad) for s in ((b, c), (b,), (c,))]


def same(want, got, source, sizes) -> None:
    for a, b in zip(want, got, strict=True):
        if isinstance(a, torch.Tensor):
            assert a.shape == b.shape and a.dtype is b.dtype, (sizes, a.shape, b.shape, source)
            assert torch.allclose(a, b, atol=2e-3, rtol=2e-3, equal_nan=True), (sizes, a, b, source)
        else:
            assert a == b, (sizes, a, b, source)


def leaves_of(out):
    return [o for o in out if isinstance(o, torch.Tensor)]


def check(seed: int, backend: str = "inductor") -> None:
    """Compile program ``seed`` once and compare it at five sizes, with gradients for every other one; export it and compare again."""
    source = program(seed)
    scope: dict = {"torch": torch}
    exec(source, scope)
    f = scope["f"]
    count = 0

    def counting(gm, examples):
        nonlocal count
        count += 1
        return torch._dynamo.lookup_backend(backend)(gm, examples)

    torch._dynamo.reset()
    compiled = torch.compile(f, backend=counting, dynamic=True, fullgraph=True)
    grad = seed % 2 == 1
    for b, c in SIZES:
        ours, theirs = inputs(b, c, seed, grad), inputs(b, c, seed, grad)
        want, got = f(*theirs), compiled(*ours)
        same(want, got, source, (b, c))
        if grad:
            for out in (want, got):
                total = sum(o.sum() for o in leaves_of(out) if o.requires_grad)
                if isinstance(total, torch.Tensor):
                    total.backward()
            for p, q in zip(theirs, ours):
                assert (p.grad is None) == (q.grad is None) or not (p.grad if p.grad is not None else q.grad).any(), (
                    source
                )
                if p.grad is not None and q.grad is not None:
                    same([p.grad], [q.grad], source, (b, c, "gradient"))
    assert count <= 3, f"compiled {count} times\n{source}"
    b, c = Dim("b"), Dim("c")
    try:
        ep = export(f, tuple(inputs(3, 5, seed, False)), dynamic_shapes=({0: b, 1: c}, {0: b}, {0: c}))
    except torch._dynamo.exc.UserError as e:
        assert "reshape(" in source and "generated guard" in str(e), source
        return  # whether such a reshape copies depends on which size is greater
    run = ep.module()
    for sizes in SIZES[1:]:
        args = inputs(*sizes, seed, False)
        same(f(*args), run(*args), source, sizes)
    for sizes in SMALL:
        args = inputs(*sizes, seed, False)
        try:
            want = f(*args)
            got = run(*args)
        except (AssertionError, RuntimeError):
            continue  # what plain Python can't do, or a range that leaves the size out
        same(want, got, source, sizes)


def main() -> None:
    first, count = (int(a) for a in (*sys.argv[1:], "0", "200")[:2])
    failed = 0
    for seed in range(first, first + count):
        try:
            check(seed)
        except Exception as e:
            failed += 1
            print(f"--- seed {seed}: {type(e).__name__}: {str(e).strip()[:900]}\n{program(seed)}", flush=True)
    print(f"{count} programs, {failed} failed")


if __name__ == "__main__":
    main()
