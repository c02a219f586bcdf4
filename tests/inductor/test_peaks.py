"""What is never in memory: a matrix of scores (attention), probabilities (cross-entropy over a vocabulary)."""

import pytest

import flambeau as torch
from flambeau.nn.attention.flex_attention import flex_attention

F = torch.nn.functional
LENGTH, WORDS, ROWS = 2048, 16000, 512
SCORES = 4 * LENGTH * LENGTH * 4  # bytes of the matrices of four heads


def peak(f) -> int:
    """Bytes in use at most in the third call of ``f``, above those before it."""
    for _ in range(2):
        f()
    torch.cpu.empty_cache()
    torch.cpu.reset_peak_memory_stats()
    before = torch.cpu.memory_allocated()
    f()
    return torch.cpu.max_memory_allocated() - before


def _sides(held=4, grad=True):
    return [torch.randn(1, heads, LENGTH, 16, requires_grad=grad) for heads in (4, held, held)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "held, how", [(4, {}), (4, {"is_causal": True}), (2, {"enable_gqa": True}), (4, {"dropout_p": 0.3})], ids=str
)
def test_attention_holds_no_scores(held, how, compiled):
    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, **how)

    run = torch.compile(f) if compiled else f
    sides = _sides(held)
    assert peak(lambda: run(*(x.detach() for x in sides))) < SCORES / 8
    assert peak(lambda: torch.autograd.grad(run(*sides).sum(), sides)) < SCORES / 8


@pytest.mark.parametrize("held", [4, 2])
def test_a_users_scores_are_not_held(held):
    def slope(s, b, h, i, j):
        return s + (i - j) * 0.01

    run = torch.compile(lambda q, k, v: flex_attention(q, k, v, slope, enable_gqa=held < 4))
    sides = _sides(held)
    assert peak(lambda: run(*(x.detach() for x in sides))) < SCORES / 8
    assert peak(lambda: torch.autograd.grad(run(*sides).sum(), sides)) < SCORES / 8


def test_cross_entropy_holds_scores_and_their_gradient_only():
    x, w, t = torch.randn(ROWS, 32), torch.randn(WORDS, 32, requires_grad=True), torch.randint(0, WORDS, (ROWS,))
    loss = torch.compile(lambda x, w: F.cross_entropy(F.linear(x, w), t))
    scores = ROWS * WORDS * 4
    assert peak(lambda: loss(x, w)) < 1.3 * scores
    assert peak(lambda: torch.autograd.grad(loss(x, w), w)) < 2.3 * scores
