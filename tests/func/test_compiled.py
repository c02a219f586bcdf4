"""The transforms inside compiled functions: one graph, the same values, with gradients."""

import pytest

import flambeau as torch
from flambeau.func import grad, hessian, jacrev, vmap

torch.manual_seed(0)
X, W, E = torch.randn(4, 5), torch.randn(5, 6), torch.randn(7, 3)
I5, I7 = torch.randint(0, 5, [4, 3]), torch.randint(0, 7, [4, 2])

CASES = {
    "gather": (lambda x, i: vmap(lambda a, b: a.gather(0, b) * 2)(x, i), X, I5),
    "index": (lambda x, i: vmap(lambda a, b: a[b].sum())(x, i), X, I5),
    "scatter": (lambda x, i: vmap(lambda a, b: a.scatter_add(0, b, torch.ones(3)))(x, i), X, I5),
    "per-example": (lambda w, x: vmap(grad(lambda w, a: (a @ w).relu().sum()), (None, 0))(w, x), W, X),
    "embedding": (lambda e, i: vmap(grad(lambda e, b: (torch.embedding(e, b) ** 2).sum()), (None, 0))(e, i), E, I7),
    "softmax": (lambda x: vmap(lambda a: a.softmax(-1))(x), X),
    "jacobian": (lambda x: jacrev(lambda a: a.sin() * a.sum())(x), X[0]),
    "hessian": (lambda x: hessian(lambda a: (a**3).sum())(x), X[0]),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("case", CASES)
def test_compiled(case, backend):
    fn, *args = CASES[case]
    torch._dynamo.reset()
    assert torch.allclose(torch.compile(fn, backend=backend, fullgraph=True)(*args), fn(*args), atol=1e-5)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_gradient_of_compiled_vmap(backend):
    w = W.clone().requires_grad_()

    def fn(x, w):
        return vmap(lambda a: (a @ w).tanh())(x).sum()

    (want,) = torch.autograd.grad(fn(X, w), w)
    torch._dynamo.reset()
    (got,) = torch.autograd.grad(torch.compile(fn, backend=backend)(X, w), w)
    assert torch.allclose(got, want, atol=1e-5)
