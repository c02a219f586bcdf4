"""Random compositions of vmap, grad and their relatives over small random programs, against loops and the plain tape.

Each case is a script of its own, made from a seed: it is printed when it fails, to be kept under tests/regress.
``FLAMBEAU_FUZZ_SEED`` sets the first seed, ``FLAMBEAU_FUZZ_COUNT`` how many are run.
"""

import os
import random

import pytest

FIRST = int(os.environ.get("FLAMBEAU_FUZZ_SEED", "0"))
COUNT = int(os.environ.get("FLAMBEAU_FUZZ_COUNT", "120"))

# Expressions of vectors {a}, {b} of three elements and a matrix m, giving vectors of three elements.
VECTORS = [
    "torch.sin({a})", "{a} * {b}", "{a} + 0.5 * {b}", "m @ {a}", "{a} @ m", "{a}.softmax(0)", "{a}.log_softmax(-1)", "{a}.tanh()",
    "{a} / (1 + {b} ** 2)", "torch.where({a} > {b}, {a}, 2 * {b})", "torch.cat([{a}[1:], {b}[:1]])", "{a}.amax() * {b}",
    "torch.outer({a}, {b}).sum(0)", "{a}.view(3, 1).expand(3, 3).t().sum(1)", "{a}[torch.tensor([2, 0, 0])]",
    "{a}.gather(0, torch.tensor([1, 1, 2]))", "torch.stack([{a}, {b}], -1).mean(1)", "{a}.unsqueeze(0).mm(m).squeeze(0)",
    "torch.zeros_like({a}).scatter_add(0, torch.tensor([0, 2, 0]), {b})", "({a} + 0 * {b}).mul_(2).add_({b})", "({a} - {a}.mean()) * {b}.sum()",
    "torch.nn.functional.layer_norm({a}, (3,))", "{a}.unfold(0, 2, 1).sum(1).repeat(2)[:3]", "torch.addmm(m, m, m) @ {a}",
    "torch.index_put({a}, [torch.tensor([1])], {b}[2:])", "{a}.detach() * {b}", "torch.nn.functional.gelu({a})", "m.diagonal() * {a}",
    "{a}.split(2)[0].sum() + {b}", "m[:, 1] - {a}", "torch.exp({a}.clamp(-2, 1.5))", "{a}.index_select(0, torch.tensor([2, 1, 0]))",
]  # fmt: skip
PRELUDE = '''import flambeau as torch
from flambeau.func import grad, jacfwd, jacrev, vmap

torch.manual_seed({seed})
torch.set_default_dtype(torch.float64)


def each(f, at):
    """vmap by a loop. at: which of the two arguments are mapped."""
    def run(x, m):
        n = (x if at[0] == 0 else m).shape[0]
        return torch.stack([f(x[i] if at[0] == 0 else x, m[i] if at[1] == 0 else m) for i in range(n)])
    return run


def slope(f):
    """grad by autograd.grad on the plain tape."""
    def run(x, m):
        with torch.enable_grad():
            x = x.clone() if x.requires_grad else x.detach().requires_grad_()
            y = f(x, m)
            return torch.autograd.grad(y, x, create_graph=True, materialize_grads=True, allow_unused=True)[0] if y.requires_grad else torch.zeros_like(x)
    return run


def rows(f):
    """jacrev of a function with a vector result, a row at a time."""
    return lambda x, m: torch.stack([slope(lambda x, m, i=i: f(x, m)[i])(x, m) for i in range(3)])


def program(x, m):
{body}
    return {result}


'''


def make(seed: int) -> str:
    """The script of a seed."""
    r = random.Random(seed)
    names, lines = ["x"], []
    for k in range(r.randint(2, 5)):
        lines.append(f"    v{k} = " + r.choice(VECTORS).format(a=r.choice(names[-2:]), b=r.choice(names)))
        names.append(f"v{k}")
    source = PRELUDE.format(seed=seed, body="\n".join(lines), result=f"{names[-1]} * {r.choice(names)}")
    made, plain, shape = "program", "program", "vector"  # what f gives for one example
    x_dims = m_dims = 0
    derivatives = 0
    for _ in range(r.randint(1, 4)):
        kind = r.choice(["vmap", "vmap", "grad", "jac"])
        if kind == "grad" and derivatives < 2 and x_dims == 0:
            made, plain = (f"lambda x, m, f={f}: f(x, m).sum()" for f in (f"({made})", f"({plain})"))
            made, plain, shape = f"grad({made})", f"slope({plain})", "vector"
            derivatives += 1
        elif kind == "jac" and derivatives < 2 and shape == "vector" and x_dims == 0 and m_dims == 0:
            made, plain, shape = f"{r.choice(['jacrev', 'jacfwd'])}({made})", f"rows({plain})", "other"
            derivatives += 1
        elif kind == "vmap" and x_dims + m_dims < 3:
            at = r.choice([(0, None), (0, 0), (None, 0)])
            made, plain, shape = f"vmap({made}, {at})", f"each({plain}, {at})", "other"
            x_dims, m_dims = x_dims + (at[0] == 0), m_dims + (at[1] == 0)
    if r.random() < 0.3 and derivatives < 2:
        # A gradient around everything, with respect to the whole batch.
        made, plain = (f"lambda x, m, f={f}: f(x, m).sum()" for f in (f"({made})", f"({plain})"))
        made, plain = f"grad({made})", f"slope({plain})"
    x_shape, m_shape = [2, 4, 2][:x_dims], [2, 4, 2][:m_dims]
    sizes = {"x": (x_shape, [3]), "m": (m_shape, [3, 3])}
    # Levels are entered from the outside in: the sizes of both arguments must agree where a level maps both.
    for name, (batch, example) in sizes.items():
        source += f"{name} = torch.randn({', '.join(map(str, [2] * len(batch) + example))})\n"
    source += f"got = ({made})(x, m)\nwant = ({plain})(x, m)\n"
    source += "assert not got.requires_grad and got.shape == want.shape, (got.shape, want.shape)\n"
    source += "assert torch.allclose(got, want.detach(), rtol=1e-7, atol=1e-9, equal_nan=True), (got, want)\n"
    return source


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_composition(seed):
    import flambeau as torch

    source = make(seed)
    dtype = torch.get_default_dtype()
    try:
        exec(compile(source, f"<fuzz seed {seed}>", "exec"), {"__name__": "fuzz"})
    except Exception as e:
        raise AssertionError(f"seed {seed} fails ({type(e).__name__}: {e}); the program:\n\n{source}") from e
    finally:
        torch.set_default_dtype(dtype)
