"""Random programs of views and in-place writes: values and gradients as PyTorch's, where it is installed.

Where PyTorch refuses a program (writes into outputs of split and unbind, overlapping memory), nothing is compared. A failing seed prints the
program, which runs by itself.
"""

import random

import pytest

import flambeau

VIEWS = [".t().t()", "[1:3]", "[0]", "[:, 1]", ".view(-1)[:4]", ".transpose(0, 1)", ".unsqueeze(0)", ".reshape(4, 3)", "[:, ::2]", ".narrow(1, 0, 2)",
         ".diagonal()", ".unbind(0)[0]", ".chunk(2, 1)[1]", ".detach()", ".select(1, 2)", ".expand(2, 3, 4)[0]"]  # fmt: skip
WRITES = [".mul_(3)", ".add_(1.5)", ".sin_()", ".add_({t}.sum())", ".mul_({t}.mean())", ".zero_()", ".copy_({t}.flatten()[0])", ".exp_()",
          ".clamp_(max=2)", ".fill_(0.5)"]  # fmt: skip
VALUES = [" * 2", " + 1", ".sin()", " * a0.sum()", ".exp()", ".cumsum(0)", " / 3"]


def program(seed: int) -> str:
    r = random.Random(seed)
    lines = ["x = torch.arange(12.0).reshape(3, 4).div(10).detach().requires_grad_()",
             "w = torch.linspace(-1, 1, 12).reshape(3, 4).detach().requires_grad_()",
             "a0 = x * 2", "a1 = torch.zeros(3, 4)", "a2 = w.exp()"]  # fmt: skip
    live = ["a0", "a1", "a2"]
    for n in range(r.randint(4, 12)):
        kind, s, t = r.random(), r.choice(live), r.choice(live)
        if kind < 0.35:
            lines.append(f"v{n} = {s}{r.choice(VIEWS)}")
            live.append(f"v{n}")
        elif kind < 0.7:
            lines.append(f"{s}{r.choice(WRITES).format(t=t)}")
        elif kind < 0.85:
            lines.append(f"b{n} = {s}{r.choice(VALUES)}")
            live.append(f"b{n}")
        else:
            lines.append(f"{s}[0] = {t}.sum()")
    used = [*r.sample(live, min(len(live), 4)), "a0", "a1"]
    return "\n".join(
        [
            *lines,
            f"out = sum((q * (i + 1)).sum() for i, q in enumerate([{', '.join(used)}]))",
            "out.requires_grad and out.backward()",
        ]
    )


def outcome(torch, text: str):
    env = {"torch": torch}
    try:
        exec(text, env)
    except (RuntimeError, IndexError) as e:
        return "error", str(e)
    return "ok", [env["out"].detach(), *(env[k].grad if env[k].grad is not None else torch.zeros(3, 4) for k in "xw")]


@pytest.mark.parity
@pytest.mark.parametrize("seeds", [range(k, k + 100) for k in range(0, 600, 100)], ids=lambda s: f"{s.start}-{s.stop}")
def test_values_and_gradients_are_pytorchs(seeds):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    compared = 0
    for seed in seeds:
        text = program(seed)
        theirs, ours = outcome(torch, text), outcome(flambeau, text)
        if theirs[0] == "error":
            continue
        assert ours[0] == "ok", f"seed {seed}: {ours[1]}\nimport flambeau as torch\n{text}"
        for a, b in zip(theirs[1], ours[1]):
            assert torch.allclose(a, torch.tensor(b.tolist()), rtol=1e-4, atol=1e-4, equal_nan=True), (
                f"seed {seed}\nimport flambeau as torch\n{text}"
            )
        compared += 1
    assert compared > 10


# Found by the programs above: a view made before its base got a history through another view.
@pytest.mark.parametrize("write", ["base[0] = w.sum()", "base.add_(w)", "base.view(-1)[:4].copy_(w[0])"])
def test_a_view_takes_over_the_history_its_base_gets(write):
    w = flambeau.ones(3, 4, requires_grad=True)
    base = flambeau.zeros(3, 4)
    view = base.transpose(0, 1)
    exec(write, {"base": base, "w": w})
    assert view.requires_grad
    (view * 2).sum().backward()
    direct = flambeau.ones(3, 4, requires_grad=True)
    other = flambeau.zeros(3, 4)
    exec(write, {"base": other, "w": direct})
    (other * 2).sum().backward()
    assert w.grad.tolist() == direct.grad.tolist()
