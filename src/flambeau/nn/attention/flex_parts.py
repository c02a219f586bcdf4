"""``flex_attention`` of plain tensors part by part: some heads and some rows of queries at a time, so that no matrix of scores is in memory as a
whole. Blocks of keys that the mask hides from all rows of a part are left out. The backward makes the scores of a part again (checkpoint)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from flambeau import _C
from flambeau.base.compiling import is_compiling, is_exporting
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules.parameter import Parameter
from flambeau.nn.attention.block_mask import BlockMask
from flambeau.utils.checkpoint import checkpoint

__all__ = ["Places", "attend_by_parts", "goes_by_parts"]

WHOLE = 1 << 23  # scores that are made at once: that is faster, as nothing is made again
MASKED = 1 << 20  # the same under a mask, which may hide blocks of them
PART = 1 << 20  # scores of a part
ROWS = 128  # of queries in a part, at most
KEYS = 128  # of a block that is left out
arange, cat = map(function, ("arange", "cat"))


def goes_by_parts(query: Tensor, key: Tensor, mask: BlockMask | None) -> bool:
    """Whether the scores are many, and nobody watches or transforms the call."""
    if is_compiling() or is_exporting() or _C.tls("transforms") or _C.tls("dispatch_modes"):
        return False
    if any(type(x) not in (Tensor, Parameter) or x._array is None for x in (query, key)):
        return False
    return query[..., 0].numel() * key.shape[-2] > (WHOLE if mask is None else MASKED)


class Places(NamedTuple):
    """Indices of a part's scores, shaped so that they broadcast; ``runs``: the keys, as (begin, end)."""

    batch: Tensor
    head: Tensor
    query: Tensor
    runs: tuple[tuple[int, int], ...]

    @property
    def key(self) -> Tensor:
        parts = [arange(begin, end) for begin, end in self.runs]
        return (parts[0] if len(parts) == 1 else cat(parts)).view(1, 1, 1, -1)

    def among(self, keys: Tensor) -> Tensor:
        """Those of all keys (or values) that the part has."""
        parts = [keys[:, :, begin:end] for begin, end in self.runs]
        return parts[0] if len(parts) == 1 else cat(parts, 2)


def attend_by_parts(
    attend: Callable[..., list[Tensor]], query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None
) -> list[Tensor]:
    """``attend(query, key, value, places)`` of each part, put together: tensors (B, H, L, ...)."""
    b, h, rows = query.shape[:3]
    seen = _Seen(mask, b, h, key.shape[-2])
    tall = max(16, min(ROWS, PART // key.shape[-2]))
    heads = max(1, min(h, PART // (tall * key.shape[-2])))

    def run(*given) -> Any:
        return checkpoint(attend, *given, use_reentrant=False)

    images = []
    for i in range(b):
        across = []
        for j in range(0, h, heads):
            q, k, v = (x[i : i + 1, j : j + heads] for x in (query, key, value))
            down = []
            for part, (begin, end) in zip(q.split(tall, 2), _pieces(rows, tall)):
                lines = arange(begin, end).view(1, 1, -1, 1)
                runs = seen.runs(i, slice(j, j + heads), lines)
                at = arange(i, i + 1).view(1, 1, 1, 1), arange(j, min(j + heads, h)).view(1, -1, 1, 1)
                down.append(run(part, k, v, Places(*at, lines, runs)))
            across.append([cat(x, 2) for x in zip(*down)])
        images.append([cat(x, 1) for x in zip(*across)])
    return [cat(x, 0) for x in zip(*images)]


def _pieces(n: int, size: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + size, n)) for begin in range(0, n, size))


class _Seen:
    """Which keys the rows of a part see."""

    def __init__(self, mask: BlockMask | None, images: int, heads: int, keys: int):
        self.mask, self.images, self.heads, self.keys = mask, images, heads, keys
        self.blocks: dict[
            int, np.ndarray
        ] = {}  # by first row: which blocks of keys are seen, of each image and head or of all

    def runs(self, image: int, heads: slice, rows: Tensor) -> tuple[tuple[int, int], ...]:
        if self.mask is None:
            return ((0, self.keys),)
        first = int(rows.flatten()[0])
        if first not in self.blocks:
            self.blocks[first] = self._blocks(rows)
        blocks = self.blocks[first]
        blocks = blocks[image if len(blocks) > 1 else 0, heads if blocks.shape[1] > 1 else slice(None)].any(0)
        # Blocks in a row are one run; a part that sees nothing has one block, whose rows give zeros.
        found: list[list[int]] = []
        for n in np.flatnonzero(blocks).tolist() or [0]:
            if found and found[-1][1] == n * KEYS:
                found[-1][1] += KEYS
            else:
                found.append([n * KEYS, n * KEYS + KEYS])
        return tuple((begin, min(end, self.keys)) for begin, end in found)

    def _blocks(self, rows: Tensor) -> np.ndarray:
        """Truth values (images or 1, heads or 1, blocks)."""
        at = arange(self.images).view(-1, 1, 1, 1), arange(self.heads).view(1, -1, 1, 1), rows
        kept = self.mask.keeps(*at, arange(self.keys).view(1, 1, 1, -1))
        kept = kept.expand(*([1] * (4 - kept.dim())), *kept.shape).any(2).numpy()
        kept = np.broadcast_to(kept, (*kept.shape[:2], self.keys))
        return np.logical_or.reduceat(kept, np.arange(0, self.keys, KEYS), -1)
