"""``embedding_bag``: sums, means and maxima of the rows of a table."""

from __future__ import annotations

import math

from ...base.dtypes import float32, int32
from ...base.errors import OutOfBounds
from ...core.declare import composite, explicit, extern
from ...core.device_memory import elements
from ...core.messages import About
from ...core.operator import namespace

aten = namespace("aten")


@composite(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
    variants="",
)
def embedding_bag_of_all(*args):
    """The same with every index counted."""
    return embedding_bag.definition.fn(*args, None)


@composite(
    "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, "
    "Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
    variants="function",
)
def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """Sum (mode 0), mean (1) or maximum (2) of the rows of each bag. Returns (bags, bag of each index, sizes of bags, winners)."""
    if not (weight.requires_grad or (per_sample_weights is not None and per_sample_weights.requires_grad)):
        padding = -1 if padding_idx is None else padding_idx
        rest = (scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding)
        return aten._embedding_bag_forward_only.default(weight, indices, offsets, *rest)
    return _bags(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )


@explicit(
    "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    variants="function",
    has_out=False,
)
def forward_only(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """What needs no gradient, as one operator: eager calls have a kernel."""
    padding = None if padding_idx < 0 else padding_idx
    return _bags(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    )


@forward_only.override("rows")
def _rows(h, weight, indices, offsets, scale, mode, sparse, per_sample_weights, include_last_offset, padding_idx):
    if mode not in (0, 1, 2) or (mode == 2 and per_sample_weights is not None) or len(weight.shape) != 2:
        raise NotImplementedError("the body words the error")
    if include_last_offset:
        raise NotImplementedError("an offset that begins no bag is looked at by the body")
    return h.bags(weight, indices, offsets, mode, per_sample_weights, max(padding_idx, -1))


@extern(
    "_refuse_nonzero(Tensor value, str message) -> ()",
    meta=lambda *a: (),
    variants="",
    has_out=False,
    tags=("has_side_effects",),
)
def refuse_nonzero(value, message):
    """RuntimeError with the message, ``{value}`` in it being the first of the int32 values that isn't 0, if there is one."""
    if value.any():
        raise RuntimeError(message.replace("{value}", str(int(value[value != 0][0]))))
    return ()


refuse_nonzero.override(
    "lower", lambda lowering, val, value, message: lowering.refuse(value, message, about=About.CONDITION) or ()
)
refuse_nonzero.override("batch", lambda call, value, message: aten._refuse_nonzero.default(value, message))


def _refuse(offsets, wrong, message: str) -> None:
    """RuntimeError, when the graph runs, with the first of the ``offsets`` that is ``wrong``."""
    near = aten.clamp.default(offsets, -(2**31) + 2, 2**31 - 1)
    aten._refuse_nonzero.default(aten._to_copy.default(aten.where.ScalarOther(wrong, near, 0), dtype=int32), message)


_BEGINS = "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {value}"


def _check_offsets(offsets, total: int) -> None:
    """RuntimeError for offsets that aren't integers, that don't begin at 0 or end behind the last index; when the graph runs, where a trace
    doesn't know the elements."""
    if offsets.dtype.category != 1:
        raise RuntimeError(
            "Expected tensor for argument #2 'offsets' to have one of the following scalar types: Long, Int; "
            f"but got {offsets.dtype} instead"
        )
    known, ends = elements(offsets), "offsets[-1] can not be greater than input's length {} but got offsets[-1] of {}"
    if known is None and offsets.shape[0]:
        first, last = (aten.slice.Tensor(offsets, 0, at, at + 1) for at in (0, offsets.shape[0] - 1))
        _refuse(first, aten.ne.Scalar(first, 0), _BEGINS)
        _refuse(last, aten.gt.Scalar(last, total), ends.format(total if isinstance(total, int) else "", "{value}"))
    if known is not None and known.size:
        if known[0] != 0:
            raise RuntimeError(_BEGINS.format(value=known[0]))
        if known[-1] > total:
            raise RuntimeError(ends.format(total, known[-1]))


def _greatest(rows, bag, bags: int, kept):
    """The greatest element of each bag's rows, by columns, and its row; ``kept``: rows that count, None for all."""
    member = aten.eq.Tensor(
        aten.unsqueeze.default(bag, 0), aten.unsqueeze.default(aten.arange.default(bags, device=bag.device), 1)
    )
    if kept is not None:
        member = aten.logical_and.default(member, aten.unsqueeze.default(kept, 0))
    each = aten.where.ScalarOther(aten.unsqueeze.default(member, 2), aten.unsqueeze.default(rows, 0), -math.inf)
    return aten.max.dim(each, 1)


def _bags(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    total, bags = indices.shape[0], offsets.shape[0] - (1 if include_last_offset else 0)
    _check_offsets(offsets, total)
    # The first bag begins at 0, or an index has no bag; none begins behind the last index: a read that is checked, of the value itself.
    offsets = aten.gather.default(
        aten.arange.default(total + 1, dtype=offsets.dtype, device=offsets.device), 0, offsets
    )
    starts = aten.slice.Tensor(offsets, 0, 0, bags)
    if not bags:  # the only offset ends what no bag has
        total, indices = 0, aten.slice.Tensor(indices, 0, 0, 0)
        if per_sample_weights is not None:
            per_sample_weights = aten.slice.Tensor(per_sample_weights, 0, 0, 0)
    position = aten.arange.default(total, device=indices.device)
    if bags:
        at = aten.arange.default(total, dtype=offsets.dtype, device=indices.device)
        bag = aten.sub.Tensor(aten.searchsorted.Tensor(aten.contiguous.default(starts), at, right=True), 1)
    else:
        bag = position
    try:
        rows = aten.embedding.default(
            weight, indices, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse and mode != 2
        )
    except OutOfBounds:
        bad = next(i for i in indices.tolist() if not 0 <= i < weight.shape[0])
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {bad}"
        ) from None
    counts = aten.ones_like.default(indices)
    if padding_idx is not None:
        kept = aten.ne.Scalar(indices, padding_idx)
        counts = aten._to_copy.default(kept, dtype=indices.dtype)
    sizes = aten.index_add.default(aten.new_zeros.default(counts, [bags]), 0, bag, counts)
    if mode == 2 and per_sample_weights is not None:
        raise RuntimeError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'"
        )
    if mode == 2 and total:
        values, where = _greatest(rows, bag, bags, None if padding_idx is None else kept)
        empty = aten.unsqueeze.default(aten.eq.Scalar(sizes, 0), 1)
        return aten.where.ScalarSelf(empty, 0.0, values), bag, sizes, where
    if per_sample_weights is not None:
        if per_sample_weights.dtype is not weight.dtype:
            raise RuntimeError(
                f"embedding_bag: expected 'weight' and 'per_sample_weights' to have the same type as each other, but got {weight.dtype} and "
                f"{per_sample_weights.dtype}"
            )
        rows = aten.mul.Tensor(rows, aten.unsqueeze.default(per_sample_weights, 1))
    if padding_idx is not None:
        rows = aten.where.ScalarOther(aten.unsqueeze.default(kept, 1), rows, 0.0)
    if weight.dtype.itemsize == 2:
        # Added up in single precision and rounded once, as in PyTorch.
        rows = aten._to_copy.default(rows, dtype=float32)
    out = aten.index_add.default(aten.new_zeros.default(rows, [bags, weight.shape[1]]), 0, bag, rows)
    if mode == 1:
        divisor = aten._to_copy.default(aten.clamp_min.default(sizes, 1), dtype=out.dtype)
        out = aten.div.Tensor(out, aten.unsqueeze.default(divisor, 1))
    out = out if out.dtype is weight.dtype else aten._to_copy.default(out, dtype=weight.dtype)
    winners = aten.new_zeros.default(bag, [bags, weight.shape[1]]) if mode == 2 else sizes
    return out, bag, sizes, winners
