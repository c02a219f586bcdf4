"""Operators that a compiled graph runs by their eager kernel, in all layouts of their operands."""

import numpy as np
import pytest

import flambeau as torch

LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "permuted": lambda x: x.permute(2, 0, 1),
    "stepped": lambda x: x[:, ::2, 1:],
    "expanded": lambda x: x[:, :1].expand(4, 6, 5),
    "one element": lambda x: x[1:2, 2:3, 3:4],
    "offset row": lambda x: x[2],
    "empty": lambda x: x[:, 2:2],
    "empty and transposed": lambda x: x[:0].transpose(0, 2),
}
OPERATORS = {
    "asin": lambda x: x.asin(),
    "erfinv": lambda x: torch.erfinv(x),
    "cumsum": lambda x: x.cumsum(-1),
    "sort": lambda x: x.sort(-1)[0],
    "flip": lambda x: x.flip(0) + 1,
    "in the middle": lambda x: (x * 2).sort(0)[0].mul(2),
    "view of a computed value": lambda x: torch.asin((x * 0.5).transpose(-1, -2)),
    "part of a computed value": lambda x: torch.asin((x * 0.5)[..., 1:]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_same_as_eager(name, layout):
    base = torch.from_numpy(np.random.default_rng(0).uniform(-0.9, 0.9, (4, 6, 5)).astype(np.float32))
    fn = OPERATORS[name]
    x = LAYOUTS[layout](base)
    want = fn(x)
    got = torch.compile(fn)(x)
    assert got.shape == want.shape and got.dtype is want.dtype
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradient_of_cumulative_sums(layout):
    base = torch.from_numpy(np.random.default_rng(0).uniform(-0.9, 0.9, (4, 6, 5)).astype(np.float32))
    grads = []
    for f in (lambda x: (x.cumsum(-1) * x).sum(), torch.compile(lambda x: (x.cumsum(-1) * x).sum())):
        x = LAYOUTS[layout](base).detach().requires_grad_(True)
        f(x).backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-6)


def test_a_result_that_shares_memory_with_its_operand_is_copied():
    def fn(x):
        y = x * 2
        return torch.sort(y.reshape(6, 4), 0)[0], y.reshape(6, 4)

    x = torch.arange(24.0)
    got, want = torch.compile(fn)(x), fn(x)
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g.numpy(), w.numpy())
