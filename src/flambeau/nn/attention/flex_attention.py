"""flex_attention: attention whose scores a function changes and whose mask a function gives. Written on whole matrices; compiled, none of them is
ever in memory as a whole (docs/design/inductor.md, "A product with its neighbours")."""

from __future__ import annotations

import math
from typing import NamedTuple

from flambeau.core.bindings import function

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
]
__all__ += ["noop_mask", "or_masks"]

arange, safe_softmax = map(function, ("arange", "_safe_softmax"))
FlexKernelOptions = dict
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxOutput(NamedTuple):
    lse: object = None
    max_scores: object = None


class AuxRequest(NamedTuple):
    lse: bool = False
    max_scores: bool = False


def noop_mask(batch, head, token_q, token_kv):
    """A mask that keeps every pair."""
    return batch.new_ones((), dtype=arange(1).eq(0).dtype)


def and_masks(*mask_mods):
    """A mask where all of them hold."""

    def mask(b, h, q, k):
        out = mask_mods[0](b, h, q, k)
        for m in mask_mods[1:]:
            out = out & m(b, h, q, k)
        return out

    return mask


def or_masks(*mask_mods):
    """A mask where one of them holds."""

    def mask(b, h, q, k):
        out = mask_mods[0](b, h, q, k)
        for m in mask_mods[1:]:
            out = out | m(b, h, q, k)
        return out

    return mask


def _grid(b, h, q, k, device):
    return (
        arange(b, device=device).view(b, 1, 1, 1),
        arange(h, device=device).view(1, h, 1, 1),
        arange(q, device=device).view(1, 1, q, 1),
        arange(k, device=device).view(1, 1, 1, k),
    )


def create_mask(mod_fn, B, H, Q_LEN: int, KV_LEN: int, device="cpu"):  # noqa: N803
    """The mask function as a boolean tensor (B, H, Q_LEN, KV_LEN)."""
    b, h = B or 1, H or 1
    return mod_fn(*_grid(b, h, Q_LEN, KV_LEN, device)).expand(b, h, Q_LEN, KV_LEN)


class BlockMask:
    """A mask function with the sizes it is for."""

    def __init__(self, mask_mod, shape):
        self.mask_mod, self.shape = mask_mod, tuple(shape)
        self.seq_lengths = self.shape[-2:]

    def to_dense(self):
        return create_mask(self.mask_mod, *self.shape)

    def __repr__(self):
        return f"BlockMask(shape={self.shape})"


def create_block_mask(mask_mod, B, H, Q_LEN: int, KV_LEN: int, device="cpu", BLOCK_SIZE=128, _compile: bool = False):  # noqa: N803
    """A mask for :func:`flex_attention`: ``mask_mod(b, h, q, kv)`` tells for index tensors which pairs count. ``B`` and ``H`` None broadcast;
    ``BLOCK_SIZE`` changes nothing: the mask is evaluated whole."""
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN))


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """softmax(score_mod(q k^T scale, b, h, i, j)) v over (B, H, L, E); ``enable_gqa``: fewer heads of keys than of queries. A row that sees nothing
    gives zeros, its logarithmic sum is -inf. 16-bit numbers are computed in float32, and the result is rounded once; ``lse`` and ``max_scores``
    are float32 then."""
    kind = query.dtype
    if kind.itemsize < 4:
        query, key, value = (x.float() for x in (query, key, value))
    if enable_gqa and query.shape[1] != key.shape[1]:
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    scores = (query @ key.transpose(-2, -1)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    b, h, q, k = scores.shape
    if score_mod is not None:
        scores = score_mod(scores, *_grid(b, h, q, k, query.device))
    if block_mask is not None:
        kept = block_mask.mask_mod(*_grid(b, h, q, k, query.device))
        scores = scores.masked_fill(~kept, float("-inf"))
    out = (safe_softmax(scores, -1) @ value).to(kind)
    if return_aux is None and not return_lse:
        return out
    top = scores.amax(-1) if return_aux is None or return_aux.lse or return_aux.max_scores else None
    lse = None
    if return_aux is None or return_aux.lse:
        nothing = top == float("-inf")  # such a row has no gradient either
        lse = scores.masked_fill(nothing[..., None], 0.0).logsumexp(-1).masked_fill(nothing, float("-inf"))
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse, top if return_aux.max_scores else None)
