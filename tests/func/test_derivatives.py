"""grad, vjp, jvp, jacrev, jacfwd, hessian: values against formulas, their compositions, what stays on the tape, and
the errors."""

import pytest

import flambeau as torch
from flambeau.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def close(a, b):
    assert a.shape == b.shape, (a.shape, b.shape)
    assert torch.allclose(a, b, rtol=1e-4, atol=1e-5), (a, b)


def eye(v):
    return torch.eye(v.numel()) * v


def test_grad():
    x, y = torch.randn(3), torch.randn(3)
    g = grad(lambda a: a.sin().sum())(x)
    close(g, x.cos())
    assert not g.requires_grad and g.grad_fn is None and not x.requires_grad
    close(grad(lambda a, b: (a * b).sum(), argnums=1)(x, y), x)
    ga, gb = grad(lambda a, b: (a * b).sum(), argnums=(-2, 1))(x, y)
    close(ga, y)
    close(gb, x)
    close(grad(lambda a, y: (a * y).sum())(x, y=y), y)
    g, aux = grad(lambda a: ((a**2).sum(), {"twice": a * 2}), has_aux=True)(x)
    close(aux["twice"], 2 * x)
    assert not aux["twice"].requires_grad
    g, (v, aux) = grad_and_value(lambda a: ((a**2).sum(), a), has_aux=True)(x)
    close(v, (x**2).sum())
    assert not v.requires_grad and not aux.requires_grad
    tree = grad(lambda p: (p["w"] * p["b"][0]).sum())({"w": x, "b": [y]})
    close(tree["w"], y)
    close(tree["b"][0], x)
    close(grad(lambda a: y.sum())(x), torch.zeros(3))
    close(grad(lambda a: a.detach().sum())(x), torch.zeros(3))


def test_higher_orders():
    x = torch.randn(())
    f = torch.sin
    close(grad(grad(f))(x), -x.sin())
    close(grad(grad(grad(f)))(x), -x.cos())
    # Perturbations don't mix: d/dx (x * d/dy (x + y)) = 1.
    close(grad(lambda a: a * grad(lambda b: a + b)(a))(x), torch.ones(()))
    close(grad(lambda a: grad(lambda b: a * a * b)(a) * a)(x), 3 * x**2)


def test_outer_tape():
    """Under an ordinary tape the results are recorded when they depend on it, and only then."""
    x = torch.randn(3, requires_grad=True)
    g = grad(lambda a: (a**3).sum())(x)
    close(torch.autograd.grad(g.sum(), x)[0], 6 * x)
    w, y = torch.randn(3, requires_grad=True), torch.randn(3)
    g = grad(lambda a: (a * a * w).sum())(y)
    close(torch.autograd.grad(g.sum(), w)[0], 2 * y)
    v = grad_and_value(lambda a: (a * w).sum())(y)[1]
    close(torch.autograd.grad(v, w)[0], y)
    with torch.no_grad():
        g = grad(lambda a: (a**3).sum())(x)
        close(g, 3 * x**2)
        assert not g.requires_grad
    assert not grad(lambda a: (a**3).sum())(y).requires_grad
    assert x.grad is None and w.grad is None


def test_vmap_of_grad():
    x, w = torch.randn(4, 3), torch.randn(3)

    def loss(w, a):
        return ((a * w).sum().tanh() - a[0]) ** 2

    per_example = vmap(grad(loss), (None, 0))(w, x)
    close(per_example, torch.stack([grad(loss)(w, a) for a in x]))
    close(vmap(grad(lambda a: a.tanh() @ w))(x), (1 - x.tanh() ** 2) * w)
    # An input that isn't mapped, of a function that is.
    close(vmap(lambda a: grad(lambda v: (v * a).sum())(w))(x), x)
    close(vmap(grad(lambda a: a.sum() * 0 + 1.0))(x), torch.zeros(4, 3))
    two = vmap(vmap(grad(lambda a, b: (a * b).sin()), (0, None)), (None, 0))(x[0], x[1])
    close(two, (x[0][None] * x[1][:, None]).cos() * x[1][:, None])


def test_grad_of_vmap():
    x, w = torch.randn(4, 3), torch.randn(3)
    close(grad(lambda w: vmap(lambda a: (a * w).sin().sum())(x).sum())(w), (x * (x * w).cos()).sum(0))
    close(grad(lambda x: vmap(lambda a: grad(lambda b: (b**3).sum())(a).sum())(x).sum())(x), 6 * x)


def test_vmap_of_autograd_grad():
    x = torch.randn(3, requires_grad=True)
    y = x.sin() * x.sum()
    rows = vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.eye(3))
    want = torch.stack([torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(3)])
    close(rows, want)


def test_vjp_and_jvp():
    x, v = torch.randn(3), torch.randn(3)
    out, pull = vjp(torch.sin, x)
    (g,) = pull(v)
    close(g, v * x.cos())
    assert not out.requires_grad and not g.requires_grad
    (g,) = pull(torch.ones(3))
    close(g, x.cos())
    out, pull, aux = vjp(lambda a, b: ({"p": a * b}, a), x, v, has_aux=True)
    ga, gb = pull({"p": torch.ones(3)})
    close(ga, v)
    close(gb, x)
    out, tangent = jvp(torch.sin, (x,), (v,))
    close(tangent, v * x.cos())
    assert not tangent.requires_grad
    out, tangent = jvp(lambda a, b: (a * b, a.sum()), (x, v), (v, x))
    close(tangent[0], v * v + x * x)
    close(tangent[1], v.sum())
    close(vmap(lambda t: jvp(torch.sin, (x,), (t,))[1])(torch.eye(3)), eye(x.cos()))
    close(jvp(grad(lambda a: (a**3).sum()), (x,), (v,))[1], 6 * x * v)
    close(grad(lambda a: jvp(lambda b: b**3, (a,), (v,))[1].sum())(x), 6 * x * v)


@pytest.mark.parametrize("jac", [jacrev, jacfwd])
def test_jacobians(jac):
    x, y = torch.randn(3), torch.randn(2, 3)
    close(jac(torch.sin)(x), eye(x.cos()))
    assert not jac(torch.sin)(x).requires_grad
    close(jac(lambda a: y @ a)(x), y)
    ja, jb = jac(lambda a, b: b @ a, argnums=(0, 1))(x, y)
    close(ja, y)
    close(jb, torch.stack([torch.stack([x, x * 0]), torch.stack([x * 0, x])]))
    out = jac(lambda a: {"s": a.sin(), "t": (a.sum(), a**2)})(x)
    close(out["s"], eye(x.cos()))
    close(out["t"][0], torch.ones(3))
    close(out["t"][1], eye(2 * x))
    j, aux = jac(lambda a: (a**2, a.sum()), has_aux=True)(x)
    close(aux, x.sum())
    xs = torch.randn(4, 3)
    close(vmap(jac(torch.sin))(xs), torch.stack([eye(a.cos()) for a in xs]))
    close(jac(jac(lambda a: (a**3).sum()))(x), eye(6 * x))


def test_hessian():
    x = torch.randn(3)
    close(hessian(lambda a: (a**3).sum())(x), eye(6 * x))
    close(vmap(hessian(lambda a: (a**3).sum()))(torch.stack([x, 2 * x])), torch.stack([eye(6 * x), eye(12 * x)]))
    (aa, ab), (ba, bb) = hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(x, x)
    close(ab, eye(2 * x))
    close(ba, eye(2 * x))
    close(bb, torch.zeros(3, 3))
    close(jacrev(lambda a: a**2, chunk_size=2)(x), eye(2 * x))


def test_through_modules_of_kinds():
    """Per-example gradients through products, indexing, softmax and a loss, against a loop."""
    w, x, t = torch.randn(5, 4), torch.randn(6, 2, 5), torch.randint(0, 4, [6, 2])

    def loss(w, x, t):
        h = (x @ w).softmax(-1)
        picked = h.gather(1, t[:, None]).squeeze(1)
        return -picked.log().sum() + torch.cat([h[0], h[1]]).amax() + h[:, t].sum()

    got = vmap(grad(loss), (None, 0, 0))(w, x, t)
    close(got, torch.stack([grad(loss)(w, a, b) for a, b in zip(x, t)]))


def test_second_derivative_through_saved_statistics():
    """layer_norm saves its mean and deviation; the derivative of a Jacobian must not take them for constants."""
    x = torch.randn(3)

    def direct(v):
        c = v - v.mean()
        return c / ((c * c).mean() + 1e-5).sqrt()

    for reduce in (lambda j: (j * j).sum(), lambda j: j[0, 1]):
        got = grad(lambda v, r=reduce: r(jacrev(lambda u: torch.nn.functional.layer_norm(u, (3,)))(v)))(x)
        close(got, grad(lambda v, r=reduce: r(jacrev(direct)(v)))(x))


def test_functionalize():
    def f(x):
        y = x.clone()
        y.add_(1)
        return y * 2

    x = torch.randn(3)
    close(functionalize(f)(x), (x + 1) * 2)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda x: grad(torch.sin)(x),
            RuntimeError,
            "to return a scalar Tensor, got tensor with 1 dims. Maybe you wanted to use the vjp or jacrev APIs instead",
        ),
        (lambda x: grad(lambda a: 1.0)(x), RuntimeError, "to return a Tensor, got <class 'float'>"),
        (lambda x: grad(lambda a: a.sum(), has_aux=True)(x), RuntimeError, "output of function f should be a tuple"),
        (lambda x: grad(lambda a: a.sum(), argnums=1)(x), RuntimeError, "Got argnum=1, but only 1 positional inputs"),
        (lambda x: grad(lambda a: a.sum(), argnums=())(x), RuntimeError, "argnums must be non-empty"),
        (lambda x: grad(lambda a, b: a.sum(), argnums=(0, -2))(x, x), RuntimeError, "argnums elements must be unique"),
        (lambda x: grad(lambda a: a.sum(), argnums="0")(x), RuntimeError, "argnums must be int or Tuple"),
        (
            lambda x: grad(lambda a: a)(3.0),
            ValueError,
            "Thing passed to transform API must be Tensor, got <class 'float'>",
        ),
        (
            lambda x: grad(lambda a: a.sum())(torch.ones(2, dtype=torch.int64)),
            RuntimeError,
            "only Tensors of floating point and complex dtype",
        ),
        (lambda x: vjp(lambda a: 3, x), RuntimeError, "to return only tensors, got unsupported type <class 'int'>"),
        (lambda x: vjp(lambda a: None, x), RuntimeError, "non-empty output"),
        (
            lambda x: vjp(lambda a: a > 0, x),
            RuntimeError,
            "must be floating-point or complex Tensors, got Tensor with dtype torch.bool",
        ),
        (lambda x: vjp(torch.sin, x)[1]((x, x)), RuntimeError, "Expected pytree structure of cotangents"),
        (lambda x: jvp(torch.sin, x, x), RuntimeError, "Expected primals to be a tuple"),
        (lambda x: jvp(torch.sin, (x,), (x, x)), RuntimeError, "same python structure"),
        (lambda x: jvp(lambda a: torch.ones(1), (x,), (x,), strict=True), RuntimeError, "independent of the inputs"),
        (lambda x: jacrev(torch.sin, chunk_size=0), ValueError, "chunk_size"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(")):
        call(torch.randn(3))


def test_tangents_of_truth_values_and_indices_are_zeros():
    x = torch.tensor([0.5, -1.0])
    out, tangent = jvp(lambda x: (x > 0, x.argmax()), (x,), (x,))
    assert out[0].tolist() == [True, False] and tangent[0].tolist() == [False, False]
    assert out[1].item() == 0 and tangent[1].dtype == torch.int64 and tangent[1].item() == 0
    out, push = linearize(lambda x: x > 0, x)
    assert push(x).tolist() == [False, False]


def test_jvp_by_integers_is_refused():
    i = torch.arange(3)
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex, but got: torch.int64"):
        jvp(lambda i: i * 2.0, (i,), (i,))
