"""``flex_attention`` of captured code by blocks: when it may go so, and which blocks a mask leaves (the loops are in ``aot/attention_blocks.py``)."""

from __future__ import annotations

from flambeau.aot.attention_blocks import KEYS, ROWS
from flambeau.aot.attention_blocks import attend as attend_captured
from flambeau.base.compiling import is_compiling, is_exporting
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.nn.attention.block_mask import BlockMask

__all__ = ["attend_captured", "may_go_by_blocks", "seen_blocks"]

LEAST = 1 << 18  # pairs of a head
arange = function("arange")


def may_go_by_blocks(query: Tensor, key: Tensor) -> bool:
    """Whether code is being captured, to be run here, and blocks would be filled. Symbolic sizes are guarded."""
    return is_compiling() and not is_exporting() and query.shape[-2] * key.shape[-2] >= LEAST


def seen_blocks(mask: BlockMask, query: Tensor, key: Tensor) -> Tensor:
    """Which pairs of blocks the mask leaves: boolean (B or 1, H or 1, blocks of rows, blocks of keys)."""
    b, h, rows = query.shape[:3]
    keys = key.shape[-2]
    down, across = -(-rows // ROWS), -(-keys // KEYS)
    kept = mask.keeps(
        arange(b).view(-1, 1, 1, 1, 1, 1),
        arange(h).view(1, -1, 1, 1, 1, 1),
        arange(down * ROWS).clamp(max=rows - 1).view(1, 1, down, ROWS, 1, 1),
        arange(across * KEYS).clamp(max=keys - 1).view(1, 1, 1, 1, across, KEYS),
    )
    kept = kept.expand(*([1] * (6 - kept.dim())), *kept.shape)
    return kept.expand(*kept.shape[:2], down, ROWS, across, KEYS).any(5).any(3)
