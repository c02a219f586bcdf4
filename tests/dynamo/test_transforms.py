"""Function transforms in captured code: one graph, right values, and guards on what the transformed function reads."""

import pytest
from helpers import Graphs

import flambeau as torch
from flambeau.compiler import compile
from flambeau.dynamo import exc

F = torch.func
X = torch.tensor([0.5, -1.0, 2.0])
FACTOR = 3


def with_aux(x):
    return F.grad_and_value(lambda y: ((y.sin() * FACTOR).sum(), y * 2), has_aux=True)(x)


def vjp(x):
    out, pull = F.vjp(torch.sin, x)
    return out, pull(torch.ones_like(out))[0]


def closes_over_graph_values(x):
    total, k = x.sum(), 2
    return F.vmap(lambda r: r * total + k)(x)


def nested(x):
    return F.grad(lambda y: F.grad(lambda z: (z**3).sum())(y).sum())(x)


CASES = [
    with_aux,
    vjp,
    closes_over_graph_values,
    nested,
    lambda x: F.grad(lambda a, b: (a * b).sum(), argnums=1)(x, x + 1),
    lambda x: F.jvp(torch.sin, (x,), (torch.ones_like(x),))[1],
    lambda x: F.jacrev(torch.sin)(x),
    lambda x: F.jacfwd(torch.sin)(x),
    lambda x: F.hessian(lambda y: (y**3).sum())(x),
    lambda x: F.vmap(lambda a, b: {"p": a * b, "q": (a,)}, in_dims=(0, None))(x, x)["p"],
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("i", range(len(CASES)))
def test_one_graph(i, backend):
    fn = CASES[i]
    want, got = fn(X), compile(fn, backend=backend, fullgraph=True)(X)
    for a, b in zip(torch.utils._pytree.tree_leaves(want), torch.utils._pytree.tree_leaves(got)):
        assert torch.allclose(a, b)


def test_globals_of_the_function_are_guarded():
    global FACTOR
    g = Graphs()
    c = compile(with_aux, backend=g, fullgraph=True)
    assert torch.allclose(c(X)[0], X.cos() * 3)
    FACTOR = 5
    try:
        assert torch.allclose(c(X)[0], X.cos() * 5) and len(g.gms) == 2
    finally:
        FACTOR = 3


def test_what_could_change_unnoticed_is_refused():
    table = {"k": 2}

    def f(x):
        return F.vmap(lambda r: r * table["k"])(x)

    assert torch.equal(compile(f, backend="eager")(X), X * 2)
    table["k"] = 3
    assert torch.equal(compile(f, backend="eager")(X), X * 3)
    with pytest.raises(exc.Unsupported, match="table"):
        compile(f, backend="eager", fullgraph=True)(X)

    def appends(x):
        acc = []

        def inner(r):
            acc.append(1)
            return r * 2

        return F.vmap(inner)(x), len(acc)

    assert compile(appends, backend="eager")(X)[1] == 1
    with pytest.raises(exc.Unsupported, match="acc"):
        compile(appends, backend="eager", fullgraph=True)(X)

    def writes(x):
        n = x

        def inner(r):
            nonlocal n
            n = r
            return r

        return F.vmap(inner)(x)

    with pytest.raises(exc.Unsupported, match="writes to its closure"):
        compile(writes, backend="eager", fullgraph=True)(X)
