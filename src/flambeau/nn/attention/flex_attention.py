"""flex_attention: attention whose scores a function changes and whose mask a function gives. Written on whole matrices. Compiled, none of them is
ever in memory as a whole (docs/design/inductor.md, "A product with its neighbours"): whole rows at a time, or by blocks (flex_blocks.py). Large ones
of eager code are made by parts (flex_parts.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flambeau.base import dtypes
from flambeau.base.device import Device
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.nn.attention.block_mask import DEFAULT_BLOCK_SIZE, BlockMask, create_mask, grid, noop_mask
from flambeau.nn.attention.flex_blocks import attend_captured, may_go_by_blocks, seen_blocks
from flambeau.nn.attention.flex_parts import Places, attend_by_parts, goes_by_parts

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

safe_softmax = function("_safe_softmax")
FlexKernelOptions = dict
_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK_SIZE


class AuxOutput(NamedTuple):
    lse: object = None
    max_scores: object = None


class AuxRequest(NamedTuple):
    lse: bool = False
    max_scores: bool = False


def and_masks(*mask_mods) -> Callable[..., Tensor]:
    """A mask where all of them hold."""

    def mask(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        out = mask_mods[0](b, h, q, k)
        for m in mask_mods[1:]:
            out = out & m(b, h, q, k)
        return out

    return mask


def or_masks(*mask_mods) -> Callable[..., Tensor]:
    """A mask where one of them holds."""

    def mask(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        out = mask_mods[0](b, h, q, k)
        for m in mask_mods[1:]:
            out = out | m(b, h, q, k)
        return out

    return mask


def create_block_mask(
    mask_mod: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device | str | int | None = "cpu",
    BLOCK_SIZE: int | Sequence[int] = DEFAULT_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:  # noqa: N803
    """A mask for :func:`flex_attention`: ``mask_mod(b, h, q, kv)`` tells for index tensors which pairs count. ``B`` and ``H`` None broadcast.
    Blocks of ``BLOCK_SIZE`` are what the mask counts; attention evaluates the function."""
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), size)


def _create_empty_block_mask(query, key):
    """A mask that keeps every pair, in one block."""
    most = 1 << 30
    return BlockMask(noop_mask, (1, 1, 1, 1), (most, most), (query.new_ones(1, 1, 1, 1, dtype=dtypes.bool_), None))


def _check(query, key, value, block_mask, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[1] != key.shape[1] and not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.shape[1]} and Hkv={key.shape[1]}. "
            "Try setting enable_gqa=True for GQA."
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if block_mask is None or block_mask.BLOCK_SIZE[0] >= 1 << 30:
        return
    made, used = block_mask.shape[-2:], (query.shape[-2], key.shape[-2])
    if made == used:
        return
    text = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={used[0]} and kv_len={used[1]}. "
    )
    if used[0] > made[0] or used[1] > made[1]:
        raise ValueError(
            f"{text}As the block mask was created for a smaller length than you're using it for, you likely need to create a new block mask."
        )
    raise ValueError(
        f"{text}As the block mask was created for a larger length than you're using it for, you can either 1. create a new block mask with the "
        "correct length, or 2. 'adjust' the existing block mask to the correct length by calling block_mask._adjust(q_len, kv_len)."
    )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, AuxOutput]:
    """softmax(score_mod(q k^T scale, b, h, i, j)) v over (B, H, L, E); ``enable_gqa``: fewer heads of keys than of queries. A row that sees nothing
    gives zeros, its logarithmic sum is -inf. 16-bit numbers are computed in float32, and the result is rounded once; ``lse`` and ``max_scores``
    are float32 then."""
    _check(query, key, value, block_mask, enable_gqa)
    kind = query.dtype
    if kind.itemsize < 4:
        query, key, value = (x.float() for x in (query, key, value))
    wants_lse = return_lse if return_aux is None else return_aux.lse
    wants_top = return_aux is not None and return_aux.max_scores
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    shared = query.shape[1] // key.shape[1] if enable_gqa else 1

    def change(scores: Tensor, *at: Tensor) -> Tensor:
        if score_mod is not None:
            scores = score_mod(scores, *at)
        if block_mask is not None:
            scores = scores.masked_fill(~block_mask.keeps(*at), float("-inf"))
        return scores

    def attend(query: Tensor, key: Tensor, value: Tensor, places: Places | None = None) -> list[Tensor]:
        b, h, rows, _ = query.shape
        at = grid(b, h, rows, key.shape[-2], query.device) if places is None else (*places[:3], places.key)
        if places is not None:
            key, value = places.among(key), places.among(value)
        scores = change((query @ key.transpose(-2, -1)) * factor, *at)
        made = [(safe_softmax(scores, -1) @ value).to(kind)]
        if wants_lse or wants_top:
            top = scores.amax(-1)
        if wants_lse:
            nothing = top == float("-inf")  # such a row has no gradient either
            made.append(scores.masked_fill(nothing[..., None], 0.0).logsumexp(-1).masked_fill(nothing, float("-inf")))
        return [*made, top] if wants_top else made

    def whole() -> list[Tensor]:
        keys, values = (x if shared == 1 else x.repeat_interleave(shared, 1) for x in (key, value))
        by_parts = goes_by_parts(query, key, block_mask)
        return attend_by_parts(attend, query, keys, values, block_mask) if by_parts else attend(query, keys, values)

    if not wants_top and may_go_by_blocks(query, key):
        seen = None if block_mask is None else lambda: seen_blocks(block_mask, query, key)
        out, *rest = attend_captured(whole, change, seen, query * factor, key, value, score_mod is not None)
    else:
        out, *rest = whole()
    out = out.to(kind)
    if return_aux is None:
        return (out, rest[0]) if return_lse else out
    given = iter(rest)
    return out, AuxOutput(next(given) if wants_lse else None, next(given) if wants_top else None)
