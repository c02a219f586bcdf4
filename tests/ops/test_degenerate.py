"""Beside PyTorch where nothing is left to do: factors and paddings of one or zero, a single tensor, a dimension of size 1 or 0. Results have PyTorch's
shape, strides and dtype, and share memory with the input exactly where PyTorch's do."""

import pytest

import flambeau

try:
    import torch
except ImportError:
    torch = None

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore"),  # PyTorch's about its own defaults
    pytest.mark.skipif(torch is None, reason="PyTorch is not installed"),
]

# (N, C, H, W) = (2, 4, 3, 6) in several memory layouts, and without elements
LAYOUTS = {
    "row-major": lambda m: m.arange(144.0).reshape(2, 4, 3, 6) - 70,
    "column-major": lambda m: (m.arange(144.0).reshape(6, 3, 4, 2) - 70).permute(3, 2, 1, 0),
    "swapped": lambda m: (m.arange(144.0).reshape(4, 2, 3, 6) - 70).transpose(0, 1),
    "heads": lambda m: (m.arange(144.0).reshape(2, 3, 4, 6) - 70).transpose(1, 2),
    "gaps": lambda m: (m.arange(288.0).reshape(2, 4, 3, 12) - 70)[..., ::2],
    "window": lambda m: (m.arange(864.0).reshape(6, 8, 3, 6) - 70)[1:3, 2:6],
    "expanded": lambda m: (m.arange(72.0).reshape(1, 4, 3, 6) - 30).expand(2, 4, 3, 6),
    "no batch": lambda m: m.zeros(0, 4, 3, 6),
    "no channels": lambda m: m.zeros(2, 0, 3, 6),
    "no columns": lambda m: m.zeros(2, 4, 3, 0),
}

CASES = """
x.repeat(1, 1, 1, 1)
x.tile((1,))
x.tile((1, 1, 1, 1))
x.tile(())
x.roll(0, 0)
x.roll(6, -1)
x.roll((0, 0), (0, 1))
x.flip([])
x.flip(0)
x.rot90(0)
x.rot90(4)
x.rot90(2)
F.pixel_shuffle(x, 1)
F.pixel_unshuffle(x, 1)
F.channel_shuffle(x, 1)
F.pad(x, (0, 0))
F.pad(x, (-1, 0))
F.pad(x, (-1, -1, 0, -1))
F.pad(x, (0, 0), mode="reflect")
F.pad(x, (0, 0, 0, 0), mode="circular")
F.pad(x, (-1, 0, 0, 0), mode="circular")
F.pad(x, (0, 0, 0, 0), mode="replicate")
F.pad(x, (-1, 0, 0, 0), mode="replicate")
F.pad(x, (-1, 0, 0, 0), mode="reflect")
x.expand(2, 4, 3, 6)
x.sum([])
x.sum([], keepdim=True)
x.mean([])
x.amax([])
x.movedim(0, 0)
x.to(x.dtype)
x.to(x.dtype, copy=True)
x.contiguous()
F.interpolate(x, size=(3, 6))
F.interpolate(x, size=(3, 6), mode="bilinear")
F.interpolate(x, scale_factor=1)
F.interpolate(x, size=(3, 6), mode="area")
F.interpolate(x, size=(3, 6), mode="bicubic")
F.interpolate(x, size=(3, 6), mode="nearest-exact")
torch.cat([x])
torch.cat([x, torch.zeros(0)])
torch.stack([x])
torch.hstack([x])
torch.vstack([x])
torch.dstack([x])
torch.column_stack([x])
torch.block_diag(x[0, 0])
torch.cartesian_prod(x[0, 0, 0])
torch.meshgrid(x[0, 0, 0], indexing="ij")[0]
torch.broadcast_tensors(x, x)[0]
x.sum_to_size(2, 4, 3, 6)
x.sum_to_size(1, 4, 3, 6)
torch.atleast_1d(x)
torch.atleast_3d(x)
x.squeeze()
x.squeeze(0)
torch.einsum("abcd->abcd", x)
torch.einsum("abcd->dcba", x)
torch.einsum("aa->a", x[0, 0, :3, :3])
torch.tensordot(x, torch.ones(()), 0)
x @ torch.eye(6)
torch.diag(x[0, 0])
torch.diag(x[0, 0, 0])
x.diff(n=0)
x.cumsum(0)
x.type_as(x)
x.clamp()
x.round(decimals=0)
F.dropout(x, 0.0)
F.dropout(x, 0.5, False)
F.dropout2d(x, 0.5, False)
F.alpha_dropout(x, 0.5, False)
F.adaptive_avg_pool2d(x, (3, 6))
F.adaptive_max_pool2d(x, (3, 6))
F.avg_pool2d(x, 1)
F.max_pool2d(x, 1)
F.max_pool1d(x[0], 1)
F.avg_pool1d(x[0], 1)
F.fold(F.unfold(x, 1), (3, 6), 1)
F.unfold(x, 1)
F.normalize(x)
x.flatten()
x.ravel()
x.reshape(x.shape)
x.reshape(-1)
x.reshape(2, 4, 18)
x.view(x.shape)
x.flatten(1, 1)
x.unflatten(1, (2, 2))
x.narrow(0, 0, 2)
x.positive()
+x
x.detach()
x.requires_grad_(False)
x.T
x.mT
x.t() if x.ndim < 3 else x[0, 0].t()
x[...]
x[()]
x[:]
x[None]
x[True]
x[0]
x.squeeze().unsqueeze(0)
x.repeat_interleave(1, 0)
x.repeat_interleave(1)
x.index_select(0, torch.arange(2))
x.take_along_dim(torch.zeros(1, 1, 1, 1, dtype=torch.long), 0)
x.where(torch.tensor(True), x)
torch.where(torch.tensor(True), x, x)
x.nan_to_num()
x.trunc()
x.to(torch.int).trunc()
x.to(torch.int).round()
x.to(torch.int).floor()
x.to(torch.int).ceil()
x.to(torch.int).sgn()
x.to(torch.int).nan_to_num()
x.to(torch.int).abs()
x.to(torch.int).positive()
x.to(torch.int).pow(1)
x.pow(1)
x.float_power(1)
x.unbind(0)[0]
x.split(2, 0)[0]
x.chunk(1, 0)[0]
x.tensor_split(1, 0)[0]
x.unfold(0, 1, 1)
x.as_strided(x.shape, x.stride())
x.logsumexp([0])
x.norm(2, 0)
x.softmax(0)
x.quantile(0.3, 0)
x.quantile(0.3, 1)
x.quantile(0.3, 2, keepdim=True)
x.quantile(torch.tensor([0.3, 0.5]), 2, keepdim=True)
x.quantile(torch.tensor([0.3, 0.5]), 1)
x.nanquantile(0.3, 1)
x.nanquantile(torch.tensor([0.3, 0.5]), 1, keepdim=True)
x.median(1)[0]
x.mode(1)[0]
x.kthvalue(1, 1)[0]
x.sort(1)[0]
x.topk(1, 1)[0]
x.cummax(1)[0]
x.logcumsumexp(1)
x.msort()
x.argsort(1)
x.aminmax(dim=1)[0]
x.var(1)
x.std([0, 1])
torch.var_mean(x, 1)[0]
x.nansum(1)
x.nanmean(1)
x.max(1)[0]
x.diagonal(0, 0, 1)
x.diag_embed()
x.tril()
x.fliplr()
x.swapaxes(0, 1)
x.clone()
x.expand_as(x)
torch.broadcast_to(x, x.shape)
torch.full_like(x, 1)
torch.empty_like(x)
torch.rand_like(x)
x.new_zeros(x.shape)
F.layer_norm(x, (6,))
F.group_norm(x, 2)
F.batch_norm(x, None, None, training=True)
F.instance_norm(x)
F.rms_norm(x, (6,))
F.local_response_norm(x, 2)
F.glu(x, -1)
F.prelu(x, torch.ones(4))
F.softmin(x, 1)
F.gumbel_softmax(x, 1)
F.scaled_dot_product_attention(x, x, x)
F.linear(x, torch.ones(2, 6))
F.linear(x, torch.ones(2, 6), torch.ones(2))
x @ x.mT
x.mT @ x
torch.einsum("...i,...j->...ij", x, x)
torch.einsum("...ij,...kj->...ik", x, x)
torch.select_scatter(x, x.select(1, 0), 1, 1)
torch.slice_scatter(x, x.narrow(1, 0, 1), 1, 0, 1)
F.cosine_similarity(x, x, 1)
F.pairwise_distance(x, x)
F.cross_entropy(x, x.argmax(1), reduction="none")
F.nll_loss(x, x.argmax(1), reduction="none")
F.embedding(torch.tensor([[0, 1]]), x[0, 0])
F.one_hot(torch.tensor([0, 1]))
x.index_add(0, torch.tensor([0]), x[:1])
x.index_fill(0, torch.tensor([0]), 1)
x.index_copy(0, torch.tensor([0]), x[:1])
x.gather(0, torch.zeros(1, 4, 3, 6, dtype=torch.long))
x.scatter(0, torch.zeros(1, 4, 3, 6, dtype=torch.long), 1)
x.scatter_add(0, torch.zeros(1, 4, 3, 6, dtype=torch.long), x)
x.scatter_reduce(0, torch.zeros(1, 4, 3, 6, dtype=torch.long), x, "amax")
x.index_reduce(0, torch.tensor([0]), x[:1], "amax")
x.masked_fill(x > 0, 1)
x.masked_scatter(x > 0, x)
x.index_put((torch.tensor([0]),), x[:1])
x.put(torch.tensor([0]), torch.ones(1))
x.take(torch.tensor([0]))
torch.isin(x, torch.ones(1))
x.lerp(x, 0.3)
torch.addcmul(x, x, x)
torch.kron(x[0, 0], x[0, 0])
torch.outer(x[0, 0, 0], x[0, 0, 0])
torch.cov(x[0, 0])
torch.corrcoef(x[0, 0])
x.renorm(2, 0, 1.0)
torch.dist(x, x)
x.allclose(x)
torch.vander(x[0, 0, 0])
torch.inner(x[0, 0], x[0, 0])
torch.bilinear(x[0, 0], x[0, 0], torch.ones(2, 6, 6), None)
torch.baddbmm(x[0], x[0], torch.ones(4, 6, 6))
torch.addmm(x[0, 0], x[0, 0], torch.ones(6, 6))
torch.bmm(x[0], x[0].mT)
F.conv2d(x, torch.ones(2, 4, 1, 1))
F.conv1d(x[0], torch.ones(2, 3, 1))
F.conv_transpose2d(x, torch.ones(4, 2, 1, 1))
F.max_unpool2d(*F.max_pool2d(x, 1, return_indices=True), 1)
F.grid_sample(x, torch.zeros(2, 2, 2, 2))
F.lp_pool2d(x, 2, 1)
F.embedding_bag(torch.tensor([[0, 1]]), x[0, 0])
torch.histc(x)
torch.bincount(x.abs().long().flatten())
x.nonzero()
x[x > 0]
x.masked_select(x > 0)
x.cumprod(1)
x.prod(1)
x.all(1)
x.argmax(1)
x.count_nonzero(1)
torch.fmod(x, 2)
x.copysign(x)
x.heaviside(x)
torch.nn.functional.silu(x)
torch.special.logit(x)
x.view(-1, 6)
x.permute(0, 1, 2, 3)
x.transpose(0, 0)
x.float()
x.double()
x.cpu()
x.type(torch.float32)
torch.tensor([1.0]).expand(2, 3)
torch.Tensor.contiguous(x)
""".strip().splitlines()

# Deliberate, see docs/reference/differences.md: (text, layouts)
OTHER = {
    "F.scaled_dot_product_attention(x, x, x)": ("swapped", "heads"),
    "torch.select_scatter(x, x.select(1, 0), 1, 1)": ("gaps", "window"),
    "torch.slice_scatter(x, x.narrow(1, 0, 1), 1, 0, 1)": ("gaps", "window"),
}


def observed(m, text, x):
    """(dtype, shape, strides of dimensions longer than one, whether memory is shared), or the kind of error."""
    try:
        y = eval(text, {"torch": m, "F": m.nn.functional, "x": x})
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError) as e:
        return f"an error: {e}"
    if not isinstance(y, m.Tensor):
        return y
    strides = tuple(s for n, s in zip(y.shape, y.stride()) if n > 1) if y.numel() else ()
    shared = bool(y.numel()) and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return str(y.dtype), tuple(y.shape), strides, shared, y is x


@pytest.mark.parametrize("text", CASES)
def test_nothing_to_do(text):
    for name, layout in LAYOUTS.items():
        if name in OTHER.get(text, ()):
            continue
        want, got = observed(torch, text, layout(torch)), observed(flambeau, text, layout(flambeau))
        if isinstance(want, str):
            assert isinstance(got, str), f"{name}: {got}, PyTorch has {want}"
        else:
            assert got == want, f"{name}: {got}, PyTorch has {want}"
