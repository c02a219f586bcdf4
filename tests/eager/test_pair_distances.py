"""`pdist` computes the pairs alone: to the bit what `cdist` has there, with and without a gradient, from the first call on."""

import itertools
import math

import pytest

import flambeau as torch

F = torch.nn.functional


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 9, 16, 17, 32, 33, 65, 81, 130])
def test_pairs_are_those_of_all(n, dtype):
    at = torch.triu_indices(n, n, 1)
    for m, p, turned in itertools.product((0, 1, 3, 33), (2.0, 1.0, 0.0, math.inf, 3.0), (False, True)):
        x = torch.randn(n, m, generator=torch.Generator().manual_seed(n + m)).to(getattr(torch, dtype))
        x = x.t().contiguous().t() if turned else x
        with_history = F.pdist(x.clone().requires_grad_(), p)
        wanted = torch.cdist(x, x, p, compute_mode="donot_use_mm_for_euclid_dist")[at[0], at[1]]
        for _ in range(3):
            made = F.pdist(x, p)
            assert torch.equal(made, with_history) and torch.equal(made, wanted)
            assert made.stride() == with_history.stride() and made.dtype is x.dtype


def test_derivatives_of_all_kinds():
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert torch.autograd.gradcheck(F.pdist, (x.clone().requires_grad_(),))
    torch.testing.assert_close(
        torch.func.vmap(F.pdist)(torch.stack([x, 2 * x])), torch.stack([F.pdist(x), F.pdist(2 * x)])
    )
    along = torch.func.jvp(F.pdist, (x,), (torch.ones_like(x),))[1]
    torch.testing.assert_close(along, torch.zeros(6, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(torch.compile(F.pdist)(x), F.pdist(x))
