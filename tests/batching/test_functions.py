"""autograd.Function under vmap and func.grad."""

import pytest

import flambeau as torch
from flambeau.autograd import Function
from flambeau.func import grad, jacrev, vmap


class Plain(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        return 2 * x * ct


class Generated(Function):
    """x * sum(w) with a derivative that is deliberately ten times too large, to be recognised."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, k):
        return x * w.sum() * k, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, k = inputs
        ctx.save_for_backward(x, w)
        ctx.k = k

    @staticmethod
    def backward(ctx, ct, ct_sum):
        x, w = ctx.saved_tensors
        return 10 * (ct * w.sum() * ctx.k + ct_sum), 10 * (ct * x).sum() * ctx.k * torch.ones_like(w), None


class Own(Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, ct):
        x, y = ctx.saved_tensors
        return ct * y, ct * x

    @staticmethod
    def vmap(info, in_dims, x, y):
        Own.seen = (info.batch_size, info.randomness, in_dims)
        x = x if in_dims[0] == 0 else x.unsqueeze(0)
        y = y if in_dims[1] == 0 else y.unsqueeze(0)
        return Own.apply(x, y).movedim(0, -1), -1


def close(a, b):
    assert a.shape == b.shape and torch.allclose(a, b, atol=1e-6), (a, b)


X, W = torch.arange(6.0).view(2, 3) - 1.5, torch.tensor([1.0, 2.0])


def test_func_grad_of_a_function():
    close(grad(lambda x: Plain.apply(x).sum())(X[0]), 2 * X[0])
    close(grad(lambda x: grad(lambda y: Plain.apply(y).sum())(x).sum())(X[0]), torch.full((3,), 2.0))
    close(
        jacrev(lambda w: Generated.apply(X[0], w, 1.0)[1] + Generated.apply(X[0], w, 1.0)[0].sum())(W),
        10 * X[0].sum() * torch.ones(2),
    )


def test_without_a_rule_is_an_error():
    with pytest.raises(RuntimeError, match="You tried to vmap over Plain, but it does not have vmap support"):
        vmap(Plain.apply)(X)
    close(vmap(lambda x: Plain.apply(X[0]) + x)(X), X[0] ** 2 + X)


def test_generated_rule():
    out, total = vmap(lambda x: Generated.apply(x, W, 2.0))(X)
    close(out, X * 6)
    close(total, X.sum(1))
    each = vmap(grad(lambda x: sum(o.sum() for o in Generated.apply(x, W, 2.0))))(X)
    close(each, torch.full((2, 3), 70.0))
    w = W.clone().requires_grad_()
    vmap(lambda x: Generated.apply(x, w, 1.0)[0])(X).sum().backward()
    close(w.grad, 10 * X.sum() * torch.ones(2))
    per_example = vmap(grad(lambda w, x: Generated.apply(x, w, 1.0)[0].sum()), (None, 0))(W, X)
    close(per_example, 10 * X.sum(1)[:, None].expand(2, 2))
    nested = vmap(vmap(lambda x, w: Generated.apply(x, w, 1.0)[0], (0, None)), (None, 0))(X, torch.stack([W, 2 * W]))
    close(nested, torch.stack([3 * X, 6 * X]))


def test_own_rule():
    close(vmap(Own.apply, (0, None))(X, X[0]), X * X[0])
    assert Own.seen == (2, "error", (0, None))
    close(vmap(grad(lambda x, y: Own.apply(x, y).sum()), (0, None))(X, X[0]), X[0].expand(2, 3))


class Pushed(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y, x + 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, tx, ty):
        x, y = ctx.saved_tensors
        return tx * y + x * ty, tx * 1


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0)], ids=str)
def test_a_generated_rule_pushes_tangents(dims):
    many, one = torch.arange(6.0).reshape(3, 2), torch.tensor([2.0, 5.0])
    args = tuple(one if d is None else many + k for k, d in enumerate(dims))
    tangents = tuple(2 * a + 1 for a in args)
    plain = lambda x, y: (x * y, x + 1)  # noqa: E731
    for order in (
        lambda f: torch.func.jvp(vmap(f, in_dims=dims), args, tangents),
        lambda f: vmap(lambda *a: torch.func.jvp(f, a, tuple(2 * x + 1 for x in a)), in_dims=dims)(*args),
    ):
        torch.testing.assert_close(order(Pushed.apply), order(plain))


def test_sparse_kernels_run_once_an_example():
    s, g = torch.eye(2).to_sparse(), torch.rand(3, 2, 2)
    torch.testing.assert_close(vmap(lambda g: g.sparse_mask(s).to_dense())(g), g * torch.eye(2))
    torch.testing.assert_close(vmap(lambda g: torch.sparse.mm(s, g))(g), g)
    torch.testing.assert_close(vmap(lambda g: g.to_sparse().to_dense())(g), g)
    torch.testing.assert_close(vmap(lambda s: s.to_dense())(torch.stack([s, s])), torch.eye(2).expand(2, 2, 2))
    layouts = []
    vmap(lambda s: layouts.append((s.layout, s.is_sparse)) or s * 2)(torch.stack([s, s]))
    assert layouts == [(torch.sparse_coo, True)]
