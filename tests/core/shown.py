"""Common calls, and what a TorchDispatchMode sees of them. ``python tests/core/shown.py torch`` under PyTorch writes its lists to shown.json."""

import importlib
import json
import pathlib
import sys

import numpy as np

KEPT = pathlib.Path(__file__).with_name("shown.json")
SAVED = {
    "detach.default",
    "lift_fresh.default",
}  # PyTorch shows how it saves results for the backward and takes in numbers

# Operands: x, y (4, 6), m (6, 5), v, w (6), b (3, 4, 6), c (3, 6, 4), i (4, 2) integers below 4, t (4) integers below 4, p (4, 6) in (0, 1),
# g (2, 4, 8, 8), s (2, 4, 8), u (2, 4, 4, 4, 4), k (6, 4, 3, 3), q (2, 2, 5, 4), z (4, 4) symmetric and positive definite, flag (4, 6) truth values.
CALLS = """
x + y
x + 1
x - y
1 - x
x * y
x * 2
x / y
x // y
x % y
-x
x ** 2
2 ** x
x == y
x > 0
x @ m
x @ v
v @ w
b @ c
b @ v
b @ m
q @ q.mT
x[0]
x[:, 1]
x[1:3]
x[..., None]
x[flag]
x[i]
x[:, None, 2:]
x.t()
x.T
x.mT
x.mH
x.abs()
x.exp()
x.square()
x.sqrt()
x.rsqrt()
x.sigmoid()
x.tanh()
x.clamp(0, 1)
x.clamp_min(0.5)
x.sum()
x.sum(1)
x.mean()
x.mean(1, keepdim=True)
x.std()
x.std(1)
x.var(1)
torch.var_mean(x, 1)
x.norm()
x.norm(dim=1)
x.norm(p=1, dim=1)
x.amax(1)
x.max()
x.max(1)
x.min(1)
torch.max(x, y)
x.argmax(1)
x.prod()
x.all()
x.any(1)
x.cumsum(1)
x.logsumexp(1)
x.softmax(1)
x.log_softmax(1)
x.sort(1)
x.argsort(1)
x.topk(2)
x.kthvalue(2)
x.median()
x.quantile(0.5)
x.unique()
x.nonzero()
x.masked_fill(flag, 0)
x.masked_select(flag)
torch.where(flag, x, y)
torch.where(flag, x, 0)
x.gather(1, i)
x.scatter(1, i, 1.0)
x.scatter_add(1, i, y)
x.index_select(0, t)
x.index_add(0, t, y)
x.index_fill(0, t, 1.0)
x.take(t)
x.take_along_dim(i, 1)
x.reshape(6, 4)
x.reshape(2, -1)
x.t().reshape(24)
x.view(24)
x.flatten()
g.flatten(1)
x.ravel()
x.unsqueeze(0)
x.squeeze()
x.transpose(0, 1)
b.permute(2, 0, 1)
b.movedim(0, 2)
x.swapaxes(0, 1)
x.expand(2, 4, 6)
x.expand_as(b)
x.repeat(2, 1)
x.tile(2)
x.repeat_interleave(2)
x.repeat_interleave(2, dim=0)
x.broadcast_to(2, 4, 6)
x.chunk(2, 1)
x.split(2)
x.split([1, 3])
x.unbind()
x.tensor_split(2)
x.narrow(1, 0, 2)
x.select(1, 0)
x.diagonal()
torch.diag(v)
v.diag_embed()
x.tril()
x.flip(0)
x.roll(1)
x.roll(1, 0)
x.rot90()
x.unfold(1, 2, 2)
x.unflatten(1, (2, 3))
x.contiguous()
x.t().contiguous()
x.clone()
x.detach()
x.to(torch.float64)
x.to(x.dtype)
x.double()
x.float()
x.type_as(i)
x.long()
x.new_zeros(3)
torch.cat([x, y])
torch.stack([x, y])
torch.stack([x, y], 1)
torch.hstack([x, y])
torch.vstack([x, y])
torch.column_stack([x, y])
torch.block_diag(x, y)
torch.meshgrid(v, w, indexing='ij')
torch.cartesian_prod(v, w)
torch.zeros(3)
torch.ones(3)
torch.full((3,), 2.0)
torch.arange(5)
torch.linspace(0, 1, 5)
torch.eye(3)
torch.empty(3).fill_(1)
torch.zeros_like(x)
torch.ones_like(x)
torch.full_like(x, 2.0)
torch.rand(3)
torch.rand_like(x)
torch.randn(3)
torch.randperm(5)
torch.randint(0, 4, (3,))
torch.tensor([1.0, 2.0])
torch.outer(v, w)
torch.dot(v, w)
torch.mv(x, v)
torch.bmm(b, c)
torch.addmm(y @ m, x, m)
torch.baddbmm(b @ c, b, c)
torch.einsum('ij,jk->ik', x, m)
torch.einsum('bij,bjk->bik', b, c)
torch.einsum('ij->ji', x)
torch.einsum('ij,ij->', x, y)
torch.tensordot(x, m, 1)
torch.inner(x, y)
torch.matmul(x, m)
torch.kron(x, y)
torch.cross(b[..., :3], b[..., 3:], dim=2)
torch.cdist(x, y)
torch.lerp(x, y, 0.5)
torch.addcmul(x, x, y)
torch.addcdiv(x, x, y)
torch.logaddexp(x, y)
torch.isnan(x)
torch.isfinite(x)
torch.isclose(x, y)
torch.allclose(x, x)
torch.equal(x, y)
torch.count_nonzero(x)
torch.bincount(t)
torch.histc(x)
torch.searchsorted(v.sort().values, w)
torch.bucketize(x, v.sort().values)
torch.trapezoid(x)
torch.diff(x)
torch.cov(x)
torch.corrcoef(x)
torch.trace(x)
torch.cumprod(x, 1)
torch.nan_to_num(x)
torch.linalg.norm(x)
torch.linalg.vector_norm(x)
torch.linalg.matrix_norm(x)
torch.linalg.inv(z)
torch.linalg.solve(z, z)
torch.linalg.det(z)
torch.linalg.slogdet(z)
torch.linalg.cholesky(z)
torch.linalg.qr(z)
torch.linalg.svd(z)
torch.linalg.eigh(z)
torch.linalg.pinv(z)
torch.linalg.matrix_power(z, 3)
torch.linalg.lstsq(z, z)
torch.fft.fft(x)
torch.fft.rfft(x)
torch.fft.fft2(x)
torch.fft.fftshift(x)
F.linear(x, y)
F.linear(x, y, x[:, 0])
F.linear(b, y)
F.linear(b, y, x[:, 0])
F.linear(b, y, v[:4])
F.bilinear(x, x, b.new_ones(2, 6, 6))
F.relu(x)
F.relu6(x)
F.leaky_relu(x)
F.elu(x)
F.selu(x)
F.gelu(x)
F.silu(x)
F.mish(x)
F.softplus(x)
F.softsign(x)
F.hardtanh(x)
F.hardswish(x)
F.hardsigmoid(x)
F.tanhshrink(x)
F.logsigmoid(x)
F.glu(x)
F.prelu(x, v[:1])
F.softmax(x, 1)
F.log_softmax(x, 1)
F.softmin(x, 1)
F.normalize(x)
F.cosine_similarity(x, y)
F.pairwise_distance(x, y)
F.dropout(x, 0.5, True)
F.dropout(x, 0.5, False)
F.dropout2d(g, 0.5, True)
F.alpha_dropout(x, 0.5, True)
F.embedding(t, m)
F.embedding_bag(i, m)
F.one_hot(t, 4)
F.layer_norm(x, (6,))
F.layer_norm(x, (6,), v, w)
F.rms_norm(x, (6,), v)
F.group_norm(g, 2)
F.batch_norm(g, None, None, training=True)
F.batch_norm(g, v.detach()[:4], w.detach()[:4] ** 2)
F.instance_norm(g)
F.local_response_norm(g, 2)
F.conv1d(s, k[..., 0])
F.conv2d(g, k)
F.conv2d(g, k, padding=1)
F.conv2d(g, k, padding='same')
F.conv3d(u, k[..., None])
F.conv_transpose2d(g, k[:4])
F.max_pool1d(s, 2)
F.max_pool2d(g, 2)
F.max_pool3d(u, 2)
F.avg_pool1d(s, 2)
F.avg_pool2d(g, 2)
F.avg_pool3d(u, 2)
F.adaptive_avg_pool1d(s, 2)
F.adaptive_avg_pool2d(g, 2)
F.adaptive_avg_pool2d(g, 1)
F.adaptive_avg_pool3d(u, 2)
F.adaptive_max_pool1d(s, 2)
F.max_unpool2d(*F.max_pool2d(g.detach(), 2, return_indices=True), 2)
F.rrelu(x)
F.hardshrink(x)
F.threshold(x, 0.1, 0.0)
torch.square(x)
torch.std_mean(x, 1)
torch.aminmax(x, dim=1)
torch.addr(x @ m, x[:, 0], m[0])
torch.masked_scatter(x, flag, y)
torch.index_put(x, (t,), v)
torch.vdot(v, w)
F.adaptive_max_pool2d(g, 2)
F.lp_pool2d(g, 2.0, 2)
F.unfold(g, 2)
F.fold(F.unfold(g, 2), (8, 8), 2)
F.pad(x, (1, 1))
F.pad(g, (1, 1, 1, 1), 'reflect')
F.pad(g, (1, 1, 1, 1), 'replicate')
F.pad(g, (1, 1, 1, 1), 'circular')
F.interpolate(g, scale_factor=2.0)
F.interpolate(g, size=(4, 4))
F.interpolate(g, scale_factor=2.0, mode='bilinear')
F.interpolate(g, size=(4, 4), mode='bilinear', align_corners=True)
F.interpolate(g, scale_factor=2.0, mode='bicubic')
F.interpolate(s, scale_factor=2.0, mode='linear')
F.interpolate(g, size=(4, 4), mode='area')
F.interpolate(g, size=(4, 4), mode='bilinear', antialias=True)
F.grid_sample(g, g[:, :2].permute(0, 2, 3, 1), align_corners=False)
F.affine_grid(q[:, 0, :2, :3], (2, 4, 8, 8), align_corners=False)
F.pixel_shuffle(g, 2)
F.pixel_unshuffle(g, 2)
F.channel_shuffle(g, 2)
F.scaled_dot_product_attention(q, q, q)
F.scaled_dot_product_attention(q, q, q, is_causal=True)
F.scaled_dot_product_attention(q, q, q, attn_mask=q.detach()[..., :1] * q.detach()[..., :1].mT)
F.mse_loss(x, y)
F.mse_loss(x, y, reduction='none')
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.huber_loss(x, y)
F.cross_entropy(x, t)
F.cross_entropy(x, t, label_smoothing=0.1)
F.cross_entropy(x, p)
F.nll_loss(x, t)
F.binary_cross_entropy(p, p.detach())
F.binary_cross_entropy_with_logits(x, p.detach())
F.kl_div(x, p)
F.poisson_nll_loss(x, p)
F.gaussian_nll_loss(x, y, p)
F.hinge_embedding_loss(x, y)
F.margin_ranking_loss(v, w, w)
F.cosine_embedding_loss(x, y, x[:, 0].detach())
F.triplet_margin_loss(x, y, p)
F.multi_margin_loss(x, t)
F.multilabel_soft_margin_loss(x, p)
F.soft_margin_loss(x, y.detach())
F.ctc_loss(x.log_softmax(1)[:, None], t[None, :2] % 3 + 1, (4,), (2,))
x.detach().add_(1)
x.detach().mul_(y.detach())
x.detach().copy_(y.detach())
x.detach().zero_()
x.detach().relu_()
x.detach().clamp_(0)
x.detach().t_()
x.detach().masked_fill_(flag, 0)
x.detach().index_put_((t,), v.detach())
x.detach().normal_()
x.detach().uniform_()
x.detach().__setitem__(0, 1.0)
x.detach().__setitem__((slice(None), 1), v.detach()[:4])
x.detach().__setitem__(flag, 0.0)
x.sum().item()
bool(x.sum() > 0)
x.tolist()
x.is_floating_point()
x.size()
torch.nn.LSTM(6, 4)(b)
torch.nn.GRU(6, 4)(b)
torch.nn.LSTMCell(6, 4)(x)
torch.nn.MultiheadAttention(6, 2, batch_first=True)(b, b, b)
torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, dropout=0.0)(b)
torch.nn.utils.clip_grad_norm_([x], 1.0)
torch.nn.utils.parameters_to_vector([x, y])
""".strip().splitlines()


def operands(torch, requires_grad: bool) -> dict:
    """The names that a call may use."""
    rng = np.random.default_rng(0)
    tensor = lambda *shape: torch.from_numpy(rng.random(shape).astype(np.float32) + 0.1)  # noqa: E731
    shapes = {
        "x": (4, 6),
        "y": (4, 6),
        "m": (6, 5),
        "v": (6,),
        "w": (6,),
        "b": (3, 4, 6),
        "c": (3, 6, 4),
        "g": (2, 4, 8, 8),
        "s": (2, 4, 8),
    }
    shapes |= {"u": (2, 4, 4, 4, 4), "k": (6, 4, 3, 3), "q": (2, 2, 5, 4)}
    space = {name: tensor(*shape) for name, shape in shapes.items()}
    space["p"] = torch.from_numpy(rng.uniform(0.1, 0.9, (4, 6)).astype(np.float32))
    root = rng.random((4, 4)).astype(np.float32)
    space["z"] = torch.from_numpy(root @ root.T + 4 * np.eye(4, dtype=np.float32))
    if requires_grad:
        for t in space.values():
            t.requires_grad_()
    space["i"], space["t"] = torch.from_numpy(rng.integers(0, 4, (4, 2))), torch.from_numpy(rng.permutation(4))
    space["flag"] = torch.from_numpy(rng.random((4, 6)) < 0.5)
    return {"torch": torch, "F": importlib.import_module(f"{torch.__name__}.nn.functional"), **space}


def seen(torch, call: str, requires_grad: bool) -> str:
    """The operators that a dispatch mode sees of the call, as PyTorch writes them, or the error."""

    class Log(importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if (name := str(func).removeprefix("aten.")) not in SAVED:
                names.append(name)
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    torch.manual_seed(0)
    space = operands(torch, requires_grad)
    try:
        with Log():
            eval(call, space)
    except Exception as e:
        return type(e).__name__
    return " ".join(names)


if __name__ == "__main__":
    library = importlib.import_module(sys.argv[1])
    KEPT.write_text(json.dumps({c: [seen(library, c, g) for g in (False, True)] for c in CALLS}, indent=0) + "\n")
