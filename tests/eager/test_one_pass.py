"""`elu`, `selu`, `celu` and `nansum` in one pass: to the bit what their operators give one after another, from the first call on."""

import itertools
import math

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
SHAPES = [(), (1,), (15,), (3, 17), (2, 3, 300), (0, 4)]
SELU = (1.0507009873554805, 1.0507009873554805 * 1.6732632423543772, 1.0)
CALLS = {
    "selu": (F.selu, SELU),
    "elu": (F.elu, (1.0, 1.0, 1.0)),
    "elu of others": (lambda x: torch.ops.aten.elu(x, 0.3, 1.7, 2.1), (1.7, 0.3 * 1.7, 2.1)),
    "elu of nothing": (lambda x: torch.ops.aten.elu(x, 0.3, 1.7, 0), (1.7, 0.3 * 1.7, 0)),
    "celu": (lambda x: F.celu(x, 1.3), (1.0, 1.3, 1 / 1.3)),
}


def draws(shape, dtype):
    x = 3 * torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    if x.numel() > 14:
        x.view(-1)[:7] = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, -1e-300, 800.0], dtype=torch.float64)
    return x.to(dtype)


def same(a, b):
    assert a.dtype is b.dtype and a.stride() == b.stride()
    np.testing.assert_array_equal(a.numpy(), b.numpy())
    np.testing.assert_array_equal(np.signbit(a.numpy()), np.signbit(b.numpy()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_units_beside_their_operators(name, dtype):
    fn, (scale, below, inner) = CALLS[name]
    for shape, turned in itertools.product(SHAPES, (False, True)):
        x = draws(shape, dtype)
        if turned and x.ndim:
            x = x.transpose(0, -1)
        wide = x if dtype is not torch.float16 else x.float()
        wanted = torch.where(wide > 0, wide * scale, torch.expm1(wide * inner) * below).to(dtype)
        for _ in range(4):
            same(fn(x).abs(), wanted.abs())
            same(fn(x.clone().requires_grad_()).detach().abs(), wanted.abs())
    x = draws((3, 17), dtype)
    if name == "selu":
        for _ in range(3):
            out = torch.empty(17, 3, dtype=dtype).t()
            into = x.clone()
            assert F.selu(into, inplace=True) is into
            same(into.nan_to_num(7), F.selu(x).nan_to_num(7))
            same(out.copy_(F.selu(x)).contiguous().nan_to_num(7), into.nan_to_num(7))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64], ids=str)
def test_sums_without_nan(dtype):
    for shape, turned in itertools.product(SHAPES, (False, True)):
        x = draws(shape, dtype) if dtype.is_floating_point else torch.arange(math.prod(shape)).reshape(shape)
        x = x.transpose(0, -1) if turned and x.ndim else x
        filled = x.masked_fill(x != x, 0)
        for d in (None, *range(x.ndim)):
            for keep in (False, True):
                for _ in range(3):
                    made, wanted = torch.nansum(x, d, keep), torch.sum(filled, d, keep)
                    if turned:  # columns may be added in another order
                        torch.testing.assert_close(made, wanted, equal_nan=True)
                    else:
                        same(made, wanted)
        if dtype.is_floating_point:
            leaf = x.clone().requires_grad_()
            torch.nansum(leaf).backward()
            same(leaf.grad, (x == x).to(dtype))
            same(torch.nansum(leaf).detach(), torch.nansum(x))
            with_out = torch.empty((), dtype=dtype)
            assert torch.nansum(x, out=with_out) is with_out
            same(with_out, torch.nansum(x))
    x = torch.tensor([1.0, math.nan, 2.0])
    assert torch.nansum(x, dtype=torch.float64).dtype is torch.float64 and x[1] != x[1]
    several = torch.func.vmap(torch.nansum)(torch.stack([x, 2 * x]))
    assert several.tolist() == [3, 6] and torch.func.grad(torch.nansum)(x).tolist() == [1, 0, 1]
    assert torch.func.jvp(torch.nansum, (x,), (torch.ones(3),))[1] == 2
    assert torch.compile(torch.nansum)(x) == 3
