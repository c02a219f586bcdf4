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
