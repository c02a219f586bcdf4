"""Masks of attention as functions, and what they keep in blocks: ``BlockMask``.

A mask that was made from a function keeps the function; its blocks are counted when they are asked for. One that was made from blocks keeps
whole blocks, within which a function may leave pairs out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from flambeau.base import dtypes
from flambeau.base.device import Device
from flambeau.base.public import public_in
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor

__all__ = ["BlockMask", "create_mask", "grid", "noop_mask"]

DEFAULT_BLOCK_SIZE = 128
arange, argsort, pad, zeros = map(function, ("arange", "argsort", "constant_pad_nd", "zeros"))


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that keeps every pair."""
    return batch.new_ones((), dtype=dtypes.bool_)


def _of_a_part(b, h, q, kv):
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def grid(b: int, h: int, q: int, k: int, device: Device | str | int | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four indices of every pair, shaped so that they broadcast."""
    return (
        arange(b, device=device).view(b, 1, 1, 1),
        arange(h, device=device).view(1, h, 1, 1),
        arange(q, device=device).view(1, 1, q, 1),
        arange(k, device=device).view(1, 1, 1, k),
    )


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Device | str | int | None = "cpu",
) -> Tensor:  # noqa: N803
    """The mask function as a boolean tensor (B, H, Q_LEN, KV_LEN)."""
    b, h = B or 1, H or 1
    return mod_fn(*grid(b, h, Q_LEN, KV_LEN, device)).expand(b, h, Q_LEN, KV_LEN)


def _ordered(blocks):
    """(number of blocks in each row, their columns and then the others), int32, of a boolean tensor (..., rows, columns)."""
    order = argsort(blocks.to(dtypes.int32), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).to(dtypes.int32), order.to(dtypes.int32)


def _dense(counts, columns):
    """The boolean tensor (..., rows, columns) of what :func:`_ordered` gives."""
    n = columns.shape[-1]
    given = (arange(n) < counts[..., None]).to(dtypes.int32)
    out = zeros((*columns.shape[:-1], n), dtype=dtypes.int32)
    return out.scatter_reduce(-1, columns.to(dtypes.int64), given, "amax").to(dtypes.bool_)


@public_in("nn.attention.flex_attention")
class BlockMask:
    """A mask of pairs (B, H, Q_LEN, KV_LEN) for ``flex_attention``, with its blocks of ``BLOCK_SIZE`` (queries, keys).

    ``kv_num_blocks`` (B, H, rows) and ``kv_indices`` (B, H, rows, columns), int32: how many blocks of keys each block of queries sees in part, and
    which; ``full_kv_num_blocks`` and ``full_kv_indices``: those it sees whole; ``q_...``: the same by blocks of keys. ``mask_mod``: the function."""

    def __init__(
        self,
        mask_mod: Callable[..., Tensor] | None,
        shape: Sequence[int],
        block_size: Sequence[int] = (DEFAULT_BLOCK_SIZE, DEFAULT_BLOCK_SIZE),
        blocks: tuple[Tensor, Tensor | None] | None = None,
    ) -> None:
        self.mask_mod, self.shape, self.BLOCK_SIZE = mask_mod, tuple(shape), tuple(block_size)
        self.seq_lengths = self.shape[-2:]
        self._blocks = blocks

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | Sequence[int] = DEFAULT_BLOCK_SIZE,
        mask_mod: Callable[..., Tensor] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """The mask of these blocks; ``mask_mod`` leaves pairs out of those that are seen in part. ``seq_lengths``: (Q_LEN, KV_LEN), else whole
        blocks. RuntimeError for indices of fewer than two dimensions, ValueError where only half of the whole blocks' tensors is given."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise ValueError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        rows, columns = kv_indices.shape[-2:]
        lengths = (rows * size[0], columns * size[1]) if seq_lengths is None else tuple(seq_lengths)
        part = _dense(kv_num_blocks, kv_indices)
        full = None if full_kv_indices is None else _dense(full_kv_num_blocks, full_kv_indices)
        return cls(noop_mask if mask_mod is None else mask_mod, (*kv_indices.shape[:-2], *lengths), size, (part, full))

    @functools.cached_property
    def _counted(self):
        """(blocks that are seen in part, those that are seen whole or None), boolean tensors (B, H, rows, columns)."""
        if self._blocks is not None:
            return self._blocks
        b, h, q, k = self.shape
        rows, columns = (math.ceil(n / size) for n, size in zip((q, k), self.BLOCK_SIZE))
        kept = create_mask(self.mask_mod, b, h, q, k)
        kept = pad(kept, [0, columns * self.BLOCK_SIZE[1] - k, 0, rows * self.BLOCK_SIZE[0] - q], False)
        kept = kept.reshape(b, h, rows, self.BLOCK_SIZE[0], columns, self.BLOCK_SIZE[1])
        count = kept.sum((-3, -1))
        full = count == self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return (count > 0) & ~full, full

    kv_num_blocks = property(lambda self: _ordered(self._counted[0])[0])
    kv_indices = property(lambda self: _ordered(self._counted[0])[1])
    full_kv_num_blocks = property(lambda self: None if self._counted[1] is None else _ordered(self._counted[1])[0])
    full_kv_indices = property(lambda self: None if self._counted[1] is None else _ordered(self._counted[1])[1])
    q_num_blocks = property(lambda self: _ordered(self._counted[0].transpose(-2, -1))[0])
    q_indices = property(lambda self: _ordered(self._counted[0].transpose(-2, -1))[1])

    @property
    def full_q_num_blocks(self) -> Tensor | None:
        full = self._counted[1]
        return None if full is None else _ordered(full.transpose(-2, -1))[0]

    @property
    def full_q_indices(self) -> Tensor | None:
        full = self._counted[1]
        return None if full is None else _ordered(full.transpose(-2, -1))[1]

    def keeps(self, b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        """Which pairs count, for index tensors: the function, within the blocks where the mask was made from them."""
        if self._blocks is None:
            return self.mask_mod(b, h, q, kv)
        part, full = self._blocks
        at = (
            b if part.shape[0] > 1 else b * 0,
            h if part.shape[1] > 1 else h * 0,
            q // self.BLOCK_SIZE[0],
            kv // self.BLOCK_SIZE[1],
        )
        kept = part[at] & self.mask_mod(b, h, q, kv)
        return kept if full is None else kept | full[at]

    def __getitem__(self, index):
        """A part of the batch, the heads or the rows of blocks. Its function can't be called: its indices were those of the whole."""
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        part, full = (None if x is None else x[index] for x in self._counted)
        return BlockMask(_of_a_part, (*part.shape[:2], *self.seq_lengths), self.BLOCK_SIZE, (part, full))

    def _adjust(self, new_q_len: int, new_kv_len: int):
        """The same mask for other lengths."""
        rows, columns = (math.ceil(n / size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        blocks = tuple(None if x is None else x[..., :rows, :columns] for x in self._counted)
        return BlockMask(self.mask_mod, (*self.shape[:2], new_q_len, new_kv_len), self.BLOCK_SIZE, blocks)

    def as_tuple(self, flatten: bool = True) -> tuple:
        """The lengths, the tensors, the sizes of blocks and the function; pairs are taken apart with ``flatten``."""
        pairs = (self.seq_lengths, self.BLOCK_SIZE)
        lengths, sizes = pairs if flatten else ((p,) for p in pairs)
        tensors = (
            *(self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices),
            *(self.q_num_blocks, self.q_indices, self.full_q_num_blocks, self.full_q_indices),
        )
        return (*lengths, *tensors, *sizes, self.mask_mod)

    def numel(self) -> int:
        """How many pairs there are, kept or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The share of pairs, in percent, that lie outside of the blocks that are seen."""
        part, full = self._counted
        seen = part if full is None else part | full
        return 100 * (1 - seen.sum().item() * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """Which blocks are seen, in part or whole: int32 (B, H, rows, columns)."""
        part, full = self._counted
        return (part if full is None else part | full).to(dtypes.int32)

    def to(self, device: Device | str | int | None) -> BlockMask:
        """The mask with its tensors on ``device``."""
        blocks = self._blocks and tuple(None if x is None else x.to(device) for x in self._blocks)
        return BlockMask(self.mask_mod, self.shape, self.BLOCK_SIZE, blocks)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A drawing of the blocks, of the first ``limit`` masks: two characters a block, or several blocks where ``grid_size`` is less."""
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        dense, lines = self.to_dense(), []
        places = [(b, h) for b in range(dense.shape[0]) for h in range(dense.shape[1])]
        for b, h in places[:limit]:
            lines += [f"({b}, {h})", *_drawn(dense[b, h].tolist(), *most), ""]
        if len(places) > limit:
            lines.append("...")
        return "\n".join(lines)

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self):
        name = getattr(self.mask_mod, "__name__", repr(self.mask_mod))
        return f"BlockMask(shape={self.shape}, BLOCK_SIZE={self.BLOCK_SIZE}, mask_mod={name})"


def _drawn(rows: list[list[int]], most_rows: int, most_columns: int):
    """Lines of a drawing: full where all of the blocks behind a character are seen, half where some are."""
    tall, wide = (max(1, math.ceil(n / most)) for n, most in ((len(rows), most_rows), (len(rows[0]), most_columns)))
    for r in range(0, len(rows), tall):
        line = ""
        for c in range(0, len(rows[0]), wide):
            behind = [x for row in rows[r : r + tall] for x in row[c : c + wide]]
            line += "██" if all(behind) else "░░" if any(behind) else "  "
        yield line
