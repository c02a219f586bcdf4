"""Causal biases: the masks, attention with them, and what is refused."""

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left


@pytest.mark.parametrize("make, diagonal", [(causal_upper_left, 0), (causal_lower_right, 2)])
def test_attention(make, diagonal):
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 4, requires_grad=True) for n in (3, 5, 5))
    bias, mask = make(3, 5), torch.ones(3, 5, dtype=torch.bool).tril(diagonal)
    assert isinstance(bias, CausalBias) and isinstance(bias, torch.Tensor) and repr(bias) == repr(mask)
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    for got in (F.scaled_dot_product_attention(q, k, v, bias), F.scaled_dot_product_attention(q, k, v, attn_mask=bias)):
        torch.testing.assert_close(got, want)
    a = torch.autograd.grad(want.sum(), (q, k, v))
    b = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, bias).sum(), (q, k, v))
    for x, y in zip(a, b):
        torch.testing.assert_close(x, y)
    with pytest.raises(ValueError, match="causal=True"):
        F.scaled_dot_product_attention(q, k, v, bias, is_causal=True)


def test_refused():
    with pytest.raises(AssertionError, match="only supports 2D"):
        causal_upper_left(3)
    with pytest.raises(AssertionError, match="CausalVariant"):
        CausalBias(1, 2, 3)
    with pytest.warns(UserWarning, match="NaNs"):
        CausalBias(CausalVariant.LOWER_RIGHT, 5, 3)
