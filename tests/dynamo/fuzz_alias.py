"""Random functions that write to inputs which share memory: views of views, overlapping slices, transposes, expanded tensors, with gradients or
without. What they return, the inputs' values, geometry and bases, and gradients must be those of plain code, call after call.

``python fuzz_alias.py SEED COUNT BACKENDS`` runs many; a failing program is printed with its seed.
"""

import random
import sys
import warnings

from programs import attempt, differ, snapshot

import flambeau as torch
from flambeau.compiler import compile, reset

# No view in which elements share memory is written in part by another (its plain result depends on the order of the loop).
VIEWS = """b[:4]|b[2:]|b[1:5]|b.view(2, 3)|b.view(2, 3).t()|b.view(3, 2)[1]|b.view(2, 3)[:, 1:]|b[::2]|b[2:4].expand(3, 2)|b[:1].expand(4)
b[1:].view(5)[1:]|b.as_strided((2, 2), (2, 1), 1)|b|b.detach()|b.view(1, 6).squeeze(0)|b.unsqueeze(0)|b.view(2,3).unbind(0)[1]|b.view(6).data
torch.zeros(3)|b.view(2,3).diagonal()""".replace("\n", "|").split("|")
OFTEN = "{v}.add_({k})|{v}.mul_({w}.sum())|{v}.copy_({w}.sum())|y = y + {v}.sum()|y = y * {w}.mean()".split("|")
SELDOM = """{v}[0] = {k}|{v}.zero_()|{v}.view(-1)[0] = {k}|{v}.t_()|{v}.unsqueeze_(0)|{v}.squeeze_()|{v}[..., -1].sub_({k})|{v}.select(0, 0).add_({w}.sum())
{v}.relu_()|{v}.set_({w})|{v}.data.add_(1)|{v} += 1|{v}.transpose_(0, -1)|z.append({v}[:1])|{v}.fill_({w}.max())|{v}.detach().add_({k})""".replace(
    "\n", "|"
).split("|")


def source(seed):
    r = random.Random(seed)
    n = r.randint(1, 4)
    views = [r.choice(VIEWS) for _ in range(n)]
    grad = r.random() < 0.3
    names = [f"a{i}" for i in range(n)]
    body = []
    for _ in range(r.randint(1, 5)):
        text = r.choice(OFTEN if r.random() < 0.5 else SELDOM)
        body.append(text.format(v=r.choice(names), w=r.choice(names), k=r.randint(1, 5)))
    ret = r.choice(["y", "y, " + names[0], "y, " + names[-1] + " * 2", "y, z", "y, " + names[0] + "[..., :1]"])
    f = (
        f"def f({', '.join(names)}):\n    y, z = {names[0]}.sum() * 2, []\n"
        + "".join(f"    {line}\n" for line in body)
        + f"    return {ret}\n"
    )
    return f, views, grad


def run_one(f, views, grad, C):
    space = {"torch": torch}
    exec(f, space)
    call = C(space["f"])
    out = []
    for turn in range(3):
        leaf = torch.arange(6.0) + 1 + turn
        if grad:
            leaf.requires_grad_()
        b = leaf * 1
        args = [eval(v, {"b": b, "torch": torch}) for v in views]
        r = attempt(call, *args)
        err = isinstance(r, tuple) and r[:1] == ("error",)
        out.append(r[:2] if err else snapshot(r))
        if err:
            break
        out.append(
            [
                snapshot(b),
                snapshot(args),
                [tuple(a.shape) + tuple(a.stride()) + (a.storage_offset(),) for a in args],
                [a._base is b for a in args],
            ]
        )
        if grad and not err:
            first = r if isinstance(r, torch.Tensor) else r[0]
            total = attempt(lambda first=first, args=args: first + sum(a.sum() for a in args if a.requires_grad))
            g = attempt(lambda total=total, leaf=leaf: torch.autograd.grad(total, leaf, allow_unused=True)[0])
            out.append(g[:2] if isinstance(g, tuple) else snapshot(g))
    return out


def run(seed, backend):
    f, views, grad = source(seed)
    want = run_one(f, views, grad, lambda g: g)
    reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        got = run_one(f, views, grad, lambda g: compile(g, backend=backend))
    where = differ(want, got)
    assert where is None, f"seed {seed} grad {grad}: {where[:300]}\n{f}\n{views}"


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    failed = 0
    for seed in range(first, first + count):
        for b in sys.argv[3].split(","):
            try:
                run(seed, b)
            except Exception as e:
                failed += 1
                print(b, type(e).__name__, e, flush=True)
    print(count, "programs", failed, "failed")
