"""gradcheck of sparse inputs: with a mask their stored elements vary, without one all of them."""

import pytest

import flambeau as torch
from flambeau.autograd import GradcheckError, gradcheck

D = torch.float64


def eye(layout):
    return torch.eye(2, dtype=D).to_sparse(layout=layout).requires_grad_()


MADE = {
    **{str(layout): lambda layout=layout: eye(layout) for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)},
    "blocks": lambda: torch.rand(4, 8, dtype=D).to_sparse_bsr((2, 2)).requires_grad_(),
    "blocks of columns": lambda: torch.rand(4, 8, dtype=D).to_sparse_bsc((2, 2)).requires_grad_(),
    "uncoalesced": lambda: torch.sparse_coo_tensor([[0, 0, 1], [0, 0, 1]], torch.ones(3, dtype=D), (2, 2)).requires_grad_(),
    "hybrid": lambda: torch.sparse_coo_tensor([[0, 1]], torch.rand(2, 3, dtype=D), (3, 3)).requires_grad_(),
    "a batch": lambda: torch.eye(2, dtype=D).expand(3, 2, 2).to_sparse_csr().requires_grad_(),
}  # fmt: skip


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "whole"])
@pytest.mark.parametrize("masked", [True, False], ids=["masked", "all"])
@pytest.mark.parametrize("name", MADE)
def test_right_derivatives_pass(name, masked, fast):
    x = MADE[name]()
    before = x.detach().to_dense()
    assert gradcheck(lambda x: x.to_dense(masked_grad=masked) ** 2, (x,), masked=masked, fast_mode=fast)
    assert torch.equal(x.detach().to_dense(), before)


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "whole"])
def test_the_mask_decides(fast):
    x = eye(torch.sparse_coo)
    options = {"fast_mode": fast, "raise_exception": False}
    assert not gradcheck(lambda x: x.to_dense(), (x,), masked=False, **options)
    # One projection along what is stored doesn't see the rest, as in PyTorch.
    assert gradcheck(lambda x: x.to_dense(masked_grad=False), (x,), masked=True, **options) is fast


def test_beside_a_dense_input_and_in_batches():
    a = torch.rand(2, 2, dtype=D, requires_grad=True)
    b = torch.rand(2, 2, dtype=D).to_sparse().requires_grad_()
    assert gradcheck(lambda x, y: x * y.coalesce().to_dense(), (a, b), masked=True)
    assert gradcheck(lambda x: x.to_dense() ** 2, (b,), masked=True, check_batched_grad=True)


def hooked(hook):
    def fn(x):
        y = x.clone()
        y.register_hook(hook)
        return y.to_dense()

    return fn


class Sparse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, ct):
        return ct.to_sparse()


REFUSED = {
    "another sparse_dim": (hooked(lambda g: g.to_dense().to_sparse(1)), "grad is sparse tensor, but has incorrect sparse_dim 1, expected 2", GradcheckError),
    "a gradient of its own": (lambda x: hooked(lambda g: g + 1e-2 * torch.ones(2, 2, dtype=D).sparse_mask(g))(x), "not multiplied by grad_output", GradcheckError),
    "a sparse result": (lambda x: x * 2, "Sparse output is not supported at gradcheck", ValueError),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_noticed(name):
    fn, text, error = REFUSED[name]
    with pytest.raises(error, match=text):
        gradcheck(fn, (torch.ones(2, 2, dtype=D).to_sparse().requires_grad_(),), masked=True, atol=1e-1, nondet_tol=1.0)


def test_a_sparse_gradient_of_a_dense_input_is_noticed():
    with pytest.raises(GradcheckError, match="grad is incorrect layout"):
        gradcheck(Sparse.apply, (torch.ones(1, dtype=D, requires_grad=True),))
