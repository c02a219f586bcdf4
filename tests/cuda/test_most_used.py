"""The operators that programs use most run on the device: none of these calls goes through the host."""

import pytest

import flambeau as torch
from flambeau.eager import through_host

F = torch.nn.functional

# What isn't one row of the sample table or is made of others; x: 4 by 3, p: its absolute values, i: an image.
CALLS = """
x[1:, ::2]; x[x > 0]; x[[0, 2]]; x.allclose(x); torch.equal(x, x); x.abs().any(); torch.arange(3, device=x.device)
torch.argsort(x); x.as_strided((2, 2), (1, 1)); torch.bernoulli(p.clamp(0, 1)); torch.bmm(x[None], x.T[None]); x.bool(); torch.cat([x, x])
torch.einsum("ij,kj->ik", x, x); torch.eye(3, device=x.device); x.diff(); torch.meshgrid(x[0], x[1], indexing="ij"); x.median(); x.median(0)
torch.multinomial(p, 2); torch.nonzero(x); torch.normal(x, p); torch.rot90(x); torch.repeat_interleave(x, torch.tensor([1, 2, 0, 3]).cuda(), 0)
torch.linalg.pinv(x); torch.linalg.pinv(x.T @ x, hermitian=True); torch.linalg.norm(x); torch.linalg.norm(x, 2); torch.linalg.norm(x, "nuc")
torch.linalg.vector_norm(x, 3); torch.linspace(0, 1, 5, device=x.device); torch.randint(3, (3,), device=x.device); torch.randn_like(x)
torch.sort(x, stable=True); x.split(2); x.topk(2); torch.unique(x); torch.unique(x, return_inverse=True, return_counts=True); x.var(0); x.tril()
x.clone().normal_(); x.clone().uniform_(); x.clone().exponential_(); x.clone().geometric_(0.5); x.clone().log_normal_(); x.clone().cauchy_()
x.clone().random_(); x.clone().bernoulli_(); x.clone().zero_(); torch.kthvalue(x, 2); x.cumprod(0); x.cumsum(1); x.logsumexp(0)
F.adaptive_avg_pool2d(i, 2); F.adaptive_max_pool2d(i, 2); F.avg_pool2d(i, 2); F.max_pool2d(i, 2); F.unfold(i, 2); F.pad(i, (1, 1, 1, 1), "reflect")
F.batch_norm(i, None, None, training=True); F.group_norm(i, 1); F.conv2d(i, i.expand(2, 1, 4, 4)); F.interpolate(i, scale_factor=2, mode="bicubic")
F.grid_sample(i, torch.zeros(1, 2, 2, 2).cuda(), align_corners=False); F.one_hot(torch.tensor([1, 2]).cuda()); F.dropout(x); F.normalize(x)
F.scaled_dot_product_attention(i, i, i, is_causal=True); F.cross_entropy(x, torch.tensor([0, 1, 2, 0]).cuda()); F.kl_div(x, p, reduction="sum"); F.gelu(x)
F.binary_cross_entropy_with_logits(x, p); F.nll_loss(x, torch.tensor([0, 1, 2, 0]).cuda()); F.layer_norm(x, (3,)); F.smooth_l1_loss(x, p)
torch.tril_indices(3, 3, device=x.device); torch.linalg.matrix_rank(x); torch.linalg.eigvalsh(x.T @ x); x.erfinv(); x.item
"""
CALLS = [c.strip() for line in CALLS.strip().splitlines() for c in line.split("; ")]


@pytest.fixture
def gone(monkeypatch):
    found = []
    monkeypatch.setattr(through_host, "observers", [lambda op: found.append(str(op))])
    return found


@pytest.mark.parametrize("call", CALLS)
def test_it_runs_on_the_device(call, gone):
    x = torch.linspace(-1, 2, 12).cos().reshape(4, 3).cuda()
    here = {
        "torch": torch,
        "F": F,
        "x": x,
        "p": x.abs(),
        "i": torch.linspace(0, 1, 16).sin().reshape(1, 1, 4, 4).cuda(),
    }
    eval(call, here)
    torch.cuda.synchronize()
    assert not gone


def test_gradients_run_on_the_device(gone):
    x = torch.linspace(-1, 2, 6).cuda().requires_grad_()
    y = x.as_strided((2, 2), (1, 2)).sum() + torch.linalg.pinv(x.reshape(3, 2)).sum() + x.cumprod(0).sum()
    (grad,) = torch.autograd.grad(y, x)
    h = torch.linspace(-1, 2, 6).requires_grad_()
    z = h.as_strided((2, 2), (1, 2)).sum() + torch.linalg.pinv(h.reshape(3, 2)).sum() + h.cumprod(0).sum()
    assert not gone and torch.allclose(grad.cpu(), torch.autograd.grad(z, h)[0], rtol=1e-4)
