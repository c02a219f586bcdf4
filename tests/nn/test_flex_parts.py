"""Eager flex_attention by parts beside whole matrices: results, gradients, captured tensors that ask for one, blocks that a mask hides, memory."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.nn.attention import flex_parts
from flambeau.nn.attention.flex_attention import AuxRequest, BlockMask, create_block_mask, flex_attention

SIZES = [
    (2, 4, 4, 37, 50, 5),
    (1, 4, 2, 64, 33, 3),
    (2, 1, 1, 19, 70, 4),
]  # batch, heads, heads of keys, queries, keys, width
BIAS = torch.tensor(np.random.default_rng(3).normal(size=(4, 128)), dtype=torch.float64, requires_grad=True)
MODS = {
    "none": None,
    "a slope": lambda s, b, h, i, j: s + (i - j) * 0.01 * (h + 1) - b * 0.1,
    "capped": lambda s, b, h, i, j: torch.tanh(s / 3) * 3,
    "a learned bias by distance": lambda s, b, h, i, j: s + BIAS[h, (i - j).abs()],
    "a learned bias by key": lambda s, b, h, i, j: s * BIAS[0, j],
}
MASKS = {
    "none": None,
    "causal": lambda b, h, i, j: i >= j,
    "a window": lambda b, h, i, j: (i - j).abs() < 4,
    "by heads": lambda b, h, i, j: (i + h * 9 >= j) & (j >= b * 5),
    "two runs": lambda b, h, i, j: (j < 6) | ((i - j).abs() < 3),
    "nothing for some": lambda b, h, i, j: (i % 17 > 8) & (j > i),
    "nothing for most": lambda b, h, i, j: (i > 15) & (j < 9),
    "of keys alone": lambda b, h, i, j: j % 11 < 7,
    "all": lambda b, h, i, j: b.new_ones((), dtype=torch.bool),
}


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of a few rows and heads, and blocks of eight keys."""
    for name, value in {"WHOLE": 0, "MASKED": 0, "PART": 1600, "ROWS": 16, "KEYS": 8}.items():
        monkeypatch.setattr(flex_parts, name, value)


def operands(size, dtype=torch.float64):
    rng = np.random.default_rng(1)
    b, h, held, t, s, e = size
    return [torch.tensor(rng.normal(size=n), dtype=dtype) for n in ((b, h, t, e), (b, held, s, e), (b, held, s, e))]


def mask_of(name, size):
    return None if MASKS[name] is None else create_block_mask(MASKS[name], None, None, *size[3:5], BLOCK_SIZE=16)


def results(size, mod, mask, dtype=torch.float64):
    inputs = [x.requires_grad_() for x in operands(size, dtype)]
    out, lse = flex_attention(*inputs, mod, mask, enable_gqa=True, return_lse=True)
    loss = (out.double() * torch.arange(out.numel()).view(out.shape).cos()).sum() + (lse.exp() * 0.1).sum()
    wanted = [*inputs, BIAS]
    grads = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
    return [x.detach().numpy() for x in (out, lse, *grads)]


def whole(monkeypatch, f):
    with monkeypatch.context() as m:
        m.setattr(flex_parts, "goes_by_parts", None)
        m.setattr("flambeau.nn.attention.flex_attention.goes_by_parts", lambda *_: False)
        return f()


# Every mask with one function, every function without a mask and with one that hides blocks; the full product is slow.
TOGETHER = [(mod, mask) for mod in MODS for mask in MASKS]
OFTEN = [(mod, mask) for mod, mask in TOGETHER if mod == "a slope" or mask in ("none", "two runs")]
SELDOM = [pytest.param(*each, marks=pytest.mark.slow) for each in TOGETHER if each not in OFTEN]


@pytest.mark.parametrize("mod, mask", OFTEN + SELDOM)
def test_beside_whole_matrices(mod, mask, small_parts, monkeypatch):
    for size in SIZES:
        given = size, MODS[mod], mask_of(mask, size)
        for got, want in zip(results(*given), whole(monkeypatch, lambda given=given: results(*given)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_dense_attention(small_parts):
    size = SIZES[0]
    q, k, v = operands(size)
    kept = MASKS["causal"](None, None, torch.arange(37)[:, None], torch.arange(50))
    scores = np.where(kept.numpy(), (q @ k.mT).numpy() / 5**0.5, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v.numpy()
    np.testing.assert_allclose(flex_attention(q, k, v, None, mask_of("causal", size)).numpy(), want, rtol=1e-12)


def test_masks_of_blocks(small_parts, monkeypatch):
    counts, indices = torch.tensor([[[1, 2, 1]]]), torch.tensor([[[[2, 0, 1], [0, 2, 1], [1, 0, 2]]]])
    mask = BlockMask.from_kv_blocks(
        counts, indices, BLOCK_SIZE=16, mask_mod=MASKS["of keys alone"], seq_lengths=(37, 48)
    )
    given = (2, 4, 4, 37, 48, 5), MODS["a slope"], mask
    for got, want in zip(results(*given), whole(monkeypatch, lambda: results(*given)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_narrow_numbers(dtype, small_parts):
    size = SIZES[0]
    q, k, v = operands(size, dtype)
    out, aux = flex_attention(q, k, v, MODS["capped"], return_aux=AuxRequest(lse=True, max_scores=True))
    want, known = flex_attention(
        *(x.double() for x in (q, k, v)), MODS["capped"], return_aux=AuxRequest(lse=True, max_scores=True)
    )
    assert out.dtype is dtype and aux.lse.dtype is aux.max_scores.dtype is torch.float32
    assert (out.double() - want).abs().max() < 4 * torch.finfo(dtype).eps * want.abs().max()
    assert (aux.lse.double() - known.lse).abs().max() < 1e-5
    assert (aux.max_scores.double() - known.max_scores).abs().max() < 1e-5


@pytest.mark.parametrize("mask", ["none", "two runs"])
def test_differences(mask, small_parts):
    size, bias = (1, 2, 2, 18, 10, 1), torch.full((10,), 0.3, dtype=torch.float64, requires_grad=True)

    def f(q, k, v, bias):
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + bias[j] * torch.tanh(s), mask_of(mask, size))

    given = [x.requires_grad_() for x in operands(size)]
    assert torch.autograd.gradcheck(f, (*given, bias))
    assert torch.autograd.gradgradcheck(f, (*given, bias))


def test_hidden_blocks_are_left_out(small_parts):
    made = []

    def count(s, b, h, i, j):
        made.append(s.numel())
        return s

    size = (1, 4, 4, 96, 96, 3)
    q, k, v = operands(size)
    flex_attention(q, k, v, count, mask_of("a window", size))
    assert sum(made) < 4 * 96 * 96 / 3


def test_dropout_of_scores_is_the_same_in_the_backward(small_parts):
    torch.manual_seed(0)
    size = (1, 2, 2, 40, 40, 3)
    q, k, v = (x.requires_grad_() for x in operands(size))
    drawn = []

    def mod(s, b, h, i, j):
        drawn.append(torch.rand_like(s))
        return s + drawn[-1]

    flex_attention(q, k, v, mod).sum().backward()
    half = len(drawn) // 2
    assert half > 1 and len(drawn) == 2 * half
    assert {x.numpy().tobytes() for x in drawn[:half]} == {x.numpy().tobytes() for x in drawn[half:]}


def test_transforms_have_whole_matrices(small_parts):
    size = (1, 2, 2, 20, 20, 3)
    q, k, v = operands(size)
    want = flex_attention(q, k, v, MODS["capped"])
    grown = torch.func.vmap(lambda q: flex_attention(q[None], k, v, MODS["capped"])[0])(q)
    assert (grown - want).abs().max() < 1e-12
    seen = torch.compile(lambda q: flex_attention(q, k, v, MODS["capped"]), fullgraph=True)(q)
    assert (seen - want).abs().max() < 1e-12


@pytest.mark.parametrize("mod", ["a slope", "a learned bias by distance"])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_no_matrix_of_scores_is_held(mod, mask, monkeypatch):
    for name, value in {"WHOLE": 0, "MASKED": 0, "PART": 1 << 17}.items():
        monkeypatch.setattr(flex_parts, name, value)
    size, bias = (1, 2, 2, 1000, 1000, 8), torch.zeros(2, 1000, requires_grad=True)
    function = MODS["a slope"] if mod == "a slope" else lambda s, b, h, i, j: s + bias[h, (i - j).abs()]
    inputs = [x.requires_grad_() for x in operands(size, torch.float32)]
    held = mask_of(mask, size)
    torch.cpu.reset_peak_memory_stats()
    before = torch.cpu.memory_allocated()
    flex_attention(*inputs, function, held).sum().backward()
    assert (
        torch.cpu.max_memory_allocated() - before < 2 * 1000 * 1000 * 4
    )  # one matrix; of whole matrices there are five
    assert bias.grad is None or bias.grad.abs().max() > 0
