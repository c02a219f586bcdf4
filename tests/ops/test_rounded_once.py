"""Operators made of several that compute 16-bit numbers in float32 and round once, as PyTorch's kernels do: results and gradients beside float64's of the same
operands, in units of the dtype's epsilon of the greatest result."""

import pytest

import flambeau as torch

F = torch.nn.functional
CASES = {  # function, bound of the result, of its gradient
    "softmax": (lambda x: x.softmax(-1), 0.6, 1.2),
    "softmax of columns": (lambda x: x.softmax(-2), 0.6, 1.2),
    "log_softmax": (lambda x: x.log_softmax(-1), 0.6, 1.2),
    "softmin": (lambda x: F.softmin(x, -1), 0.6, 1.2),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), 0, 0.6),
    "nearest, other sizes": (lambda x: F.interpolate(x, (20, 31)), 0, 0.6),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), 0.6, 0.6),
    "bicubic": (lambda x: F.interpolate(x, (20, 31), mode="bicubic", align_corners=True), 0.6, 0.6),
    "antialiased": (lambda x: F.interpolate(x, (5, 7), mode="bilinear", antialias=True), 0.6, 0.6),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_rounded_once(name, dtype):
    fn, of_result, of_gradient = CASES[name]
    x = torch.randn(2, 3, 9, 11, generator=torch.Generator().manual_seed(0)).to(dtype)

    def run(fn, x):
        x = x.detach().requires_grad_()
        out = fn(x)
        # Neighbours that nearly cancel each other, so that a sum in 16 bits would show.
        weights = torch.cos(3.0 * torch.arange(out.numel())).reshape(out.shape).to(dtype).to(x.dtype)
        return out.detach(), torch.autograd.grad(out, x, weights)[0]

    exact = run(fn, x.double())
    compiled = torch.compile(fn)
    for results in (run(fn, x), run(fn, x), run(fn, x), run(compiled, x)):
        for what, got, want, bound in zip(("result", "gradient"), results, exact, (of_result, of_gradient)):
            assert got.dtype is dtype and got.stride() == want.stride()
            off = (got.double() - want).abs().max() / (torch.finfo(dtype).eps * want.abs().max())
            assert off <= bound, (what, off.item())


SUMS = {
    "scatter_add": lambda x, i, s: x.scatter_add(0, i, s),
    "scatter": lambda x, i, s: x.scatter(0, i, s, reduce="add"),
    "index_add": lambda x, i, s: x.index_add(0, i[:, 0], s),
    "index_add of vectors": lambda x, i, s: x[:, 0].index_add(0, i[:, 0], s[:, 0]),
    "scatter_reduce": lambda x, i, s: x.scatter_reduce(0, i, s, "sum"),
    "embedding": lambda x, i, s: torch.ops.aten.embedding_dense_backward(s, i[:, 0], 6, -1, False),
    "unfold": lambda x, i, s: torch.ops.aten.unfold_backward(s[:100].view(20, 5, 5), [24, 5], 0, 5, 1),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_sums_into_places(name, dtype):
    draws = torch.Generator().manual_seed(0)
    x, s = (torch.randn(n, 5, generator=draws).to(dtype) for n in (6, 200))
    i = torch.randint(0, 6, (200, 5), generator=draws)
    want = SUMS[name](x.float(), i, s.float()).to(dtype)
    # The kernel, then native code once the call has come up often.
    for _ in range(4):
        assert torch.equal(SUMS[name](x, i, s), want)
    assert torch.equal(torch.compile(SUMS[name])(x, i, s), want)
    kept = x.clone()
    if name in ("scatter_add", "index_add"):
        getattr(kept, f"{name}_")(0, i if name == "scatter_add" else i[:, 0], s)
        assert torch.equal(kept, want)
