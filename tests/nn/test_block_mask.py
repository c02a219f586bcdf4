"""Masks of attention in blocks: what they count, attention by them (eager and compiled), and lengths that don't fit. Numbers of blocks are PyTorch's."""

import pytest

import flambeau as torch
from flambeau.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention


def band(b, h, q, k):
    return (q >= k) & (q - k < 9)


def causal(b, h, q, k):
    return q >= k


def int32(*rows):
    return torch.tensor(rows, dtype=torch.int32)


def test_blocks_are_counted():
    mask = create_block_mask(band, 2, None, 20, 28, BLOCK_SIZE=(8, 4))
    assert (mask.shape, mask.seq_lengths, mask.BLOCK_SIZE, mask.numel()) == ((2, 1, 20, 28), (20, 28), (8, 4), 1120)
    assert mask.kv_num_blocks.tolist() == [[[2, 4, 3]]] * 2 and mask.kv_indices.dtype is torch.int32
    assert mask.kv_indices[0, 0].tolist()[2] == [2, 3, 4, 0, 1, 5, 6]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 0, 0]]] * 2
    assert mask.q_num_blocks.tolist() == [[[2, 2, 2, 2, 1, 0, 0]]] * 2
    assert mask.sparsity() == pytest.approx(48.5714, abs=1e-3)
    assert mask.to_dense()[0, 0].tolist() == [[1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0]]
    assert "(1, 0)\n████" in mask.to_string() and "sparsity=48.57%" in str(mask)
    assert create_block_mask(causal, 1, 1, 8, 8, BLOCK_SIZE=4).full_kv_num_blocks.tolist() == [[[0, 1]]]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_attention_by_blocks(full, compiled):
    """PyTorch's eager function looks at the mask's function alone; here as there compiled, at the blocks too."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 8, 4) for _ in range(3))
    more = {"full_kv_num_blocks": int32([[0, 1]]), "full_kv_indices": int32([[[0, 1], [0, 1]]])} if full else {}
    counts = int32([[1, 1]]) if full else int32([[1, 2]])
    indices = int32([[[0, 1], [1, 0]]]) if full else int32([[[0, 1], [0, 1]]])
    mask = BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=4, mask_mod=causal, **more)
    kept = torch.ones(8, 8, dtype=torch.bool).tril()
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, kept)
    attend = torch.compile(flex_attention) if compiled else flex_attention
    torch.testing.assert_close(attend(q, k, v, block_mask=mask), wanted, rtol=1e-5, atol=1e-6)
    whole = BlockMask.from_kv_blocks(int32([[1, 2]]), int32([[[0, 1], [0, 1]]]), BLOCK_SIZE=4)
    blocks = torch.tensor([[1, 0], [1, 1]]).repeat_interleave(4, 0).repeat_interleave(4, 1).bool()
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, blocks)
    torch.testing.assert_close(attend(q, k, v, block_mask=whole), wanted, rtol=1e-5, atol=1e-6)


def test_parts_and_other_lengths():
    mask = create_block_mask(causal, 2, 3, 8, 8, BLOCK_SIZE=4)
    assert mask[1].shape == (1, 3, 8, 8) and mask[0, 1].kv_num_blocks.shape == (1, 1, 2)
    smaller = create_block_mask(causal, 1, 1, 8, 8, BLOCK_SIZE=4)._adjust(6, 5)
    assert smaller.shape == (1, 1, 6, 5) and smaller.kv_num_blocks.tolist() == [[[1, 1]]]
    q = torch.ones(1, 1, 8, 4)
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        flex_attention(q, q, q, block_mask=mask[0, 0])


SHORT, LONG = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 9, 4)
FIT = torch.ones(1, 1, 8, 4)
REFUSED = [
    (lambda m: flex_attention(LONG, FIT, FIT, block_mask=m), ValueError, "created for a smaller length"),
    (lambda m: flex_attention(SHORT, FIT, FIT, block_mask=m), ValueError, "created for a larger length.*_adjust"),
    (lambda m: flex_attention(FIT[0], FIT, FIT), NotImplementedError, "must be 4D tensors"),
    (lambda m: flex_attention(torch.ones(1, 3, 8, 4), FIT, FIT), ValueError, "Hq=3 and Hkv=1.*enable_gqa"),
    (lambda m: flex_attention(torch.ones(1, 1, 8, 5), FIT, FIT), ValueError, "E=5 and E=4"),
    (lambda m: BlockMask.from_kv_blocks(int32(1, 2), int32(0, 1)), RuntimeError, "at least 2 dimensions"),
    (
        lambda m: BlockMask.from_kv_blocks(int32([[1]]), int32([[[0]]]), int32([[1]])),
        ValueError,
        "both provided or omitted",
    ),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_does_not_fit_is_refused(case):
    call, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        call(create_block_mask(causal, 1, 1, 8, 8, BLOCK_SIZE=4))
