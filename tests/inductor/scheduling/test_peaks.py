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


def _mask(*shape):
    return torch.rand(*shape) > 0.3


def _added(*shape):
    return torch.randn(*shape)


OTHERS = {  # shapes of query, key and value; what is given besides
    "bool mask": ([(1, 4, LENGTH, 16)] * 3, lambda: {"attn_mask": _mask(1, 1, 1, LENGTH)}),
    "bool matrix": ([(1, 4, LENGTH, 16)] * 3, lambda: {"attn_mask": _mask(LENGTH, LENGTH)}),
    "a bool matrix a head": ([(1, 4, LENGTH, 16)] * 3, lambda: {"attn_mask": _mask(4, LENGTH, LENGTH)}),
    "float matrix": ([(1, 4, LENGTH, 16)] * 3, lambda: {"attn_mask": _added(LENGTH, LENGTH)}),
    "a float matrix a head": ([(1, 4, LENGTH, 16)] * 3, lambda: {"attn_mask": _added(4, LENGTH, LENGTH)}),
    "float rows": ([(1, 4, LENGTH, 16)] * 3, lambda: {"attn_mask": _added(4, 1, LENGTH)}),
    "float columns": ([(1, 4, LENGTH, 16)] * 3, lambda: {"attn_mask": _added(LENGTH, 1)}),
    "other lengths": ([(1, 4, LENGTH // 2, 16), *[(1, 4, LENGTH, 16)] * 2], lambda: {"is_causal": True}),
    "one matrix": ([(2 * LENGTH, 16)] * 3, dict),
    "three dimensions": ([(4, LENGTH, 16)] * 3, dict),
    "five dimensions": ([(1, 2, 2, LENGTH, 16)] * 3, dict),
    "wide values": ([(1, 4, LENGTH, 16), (1, 4, LENGTH, 16), (1, 4, LENGTH, 32)], dict),
    "narrow values": ([(1, 4, LENGTH, 16), (1, 4, LENGTH, 16), (1, 4, LENGTH, 8)], dict),
    "broadcast": ([(1, 4, LENGTH, 16), (1, 1, LENGTH, 16), (LENGTH, 16)], dict),
}


@pytest.mark.parametrize(
    ("case", "compiled"),
    [*((c, False) for c in OTHERS), ("bool matrix", True), ("one matrix", True), ("broadcast", True)],
)
def test_attention_of_other_shapes_and_masks_holds_no_scores(case, compiled):
    shapes, how = OTHERS[case]
    sides, how = [torch.randn(*n, requires_grad=True) for n in shapes], how()

    def f(q, k, v, how):
        return F.scaled_dot_product_attention(q, k, v, **how)

    run = torch.compile(f) if compiled else f
    assert peak(lambda: run(*(x.detach() for x in sides), how)) < SCORES / 6
    assert peak(lambda: torch.autograd.grad(run(*sides, how).sum(), sides)) < SCORES / 6


def test_keys_that_lie_across():
    q, k, v = (torch.randn(1, 4, *n, requires_grad=True) for n in ((LENGTH, 16), (16, LENGTH), (LENGTH, 16)))
    f = lambda: torch.autograd.grad(F.scaled_dot_product_attention(q, k.mT, v).sum(), (q, k, v))  # noqa: E731
    assert peak(f) < SCORES / 6


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
