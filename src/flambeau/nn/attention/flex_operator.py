"""``flex_attention`` and its backward as operators (``torch.ops.higher_order``): masks as the tuples of ``BlockMask.as_tuple``, logarithms to base 2.

Both are written with ``torch.nn.attention.flex_attention``: the backward is that function's derivative, so a tape or a trace sees its parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flambeau.autograd import enable_grad
from flambeau.autograd import grad as gradients
from flambeau.core.higher_order import HigherOrderOperator, tensors_in
from flambeau.core.tensor import Tensor
from flambeau.nn.attention.block_mask import BlockMask
from flambeau.nn.attention.flex_attention import AuxRequest
from flambeau.nn.attention.flex_attention import flex_attention as attention

__all__ = ["flex_attention", "flex_attention_backward"]

flex_attention = HigherOrderOperator("flex_attention")
flex_attention_backward = HigherOrderOperator("flex_attention_backward")


def with_buffers(fn: Callable | None, buffers: tuple) -> Callable | None:
    """``fn`` of a score or of indices alone, the tensors that it reads handed in behind them."""
    return fn if fn is None or not buffers else lambda *given: fn(*given, *buffers)


def computed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None,
    block_mask: tuple,
    scale: float | None,
    score_buffers: tuple,
    mask_buffers: tuple,
) -> tuple[Tensor, Tensor, Tensor]:
    shape = (query.shape[0], query.shape[1], query.shape[-2], key.shape[-2])
    mask = BlockMask(with_buffers(block_mask[-1], mask_buffers), shape, tuple(block_mask[-3:-1]))
    out, aux = attention(
        query, key, value, with_buffers(score_mod, score_buffers), mask, scale,
        enable_gqa=True, return_aux=AuxRequest(lse=True, max_scores=True),
    )  # fmt: skip
    return out, aux.lse / math.log(2), aux.max_scores / math.log(2)


@flex_attention.rule("eager")
def _(
    op, query, key, value, score_mod, block_mask, scale, kernel_options=None, score_mod_other_buffers=(), mask_mod_other_buffers=()
):  # fmt: skip
    """(result, logarithm to base 2 of the sum of exponentials, largest score / ln 2)."""
    buffers = tuple(score_mod_other_buffers), tuple(mask_mod_other_buffers)
    return computed(query, key, value, score_mod, block_mask, scale, *buffers)


@flex_attention_backward.rule("eager")
def _(
    op, query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph, joint_graph, block_mask, scale,
    kernel_options=None, score_mod_other_buffers=(), mask_mod_other_buffers=(),
):  # fmt: skip
    """(gradients of query, key and value, tuple of those of the score's tensors: None where none is asked for)."""
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise ValueError(
            "Backward pass with mixed query, key, and value dtype is not supported, "
            f"got query.dtype={query.dtype}, key.dtype={key.dtype}, and value.dtype={value.dtype}"
        )
    if joint_graph is not None:
        raise NotImplementedError(
            "flex_attention_backward: joint_graph is not read; give None, and the derivative of fw_graph is taken"
        )
    buffers: list[Any] = [
        x.detach().requires_grad_(x.requires_grad) if list(tensors_in(x)) else x for x in score_mod_other_buffers
    ]
    with enable_grad():
        given = [x.detach().requires_grad_() for x in (query, key, value)]
        found, lse, _ = computed(*given, fw_graph, block_mask, scale, tuple(buffers), tuple(mask_mod_other_buffers))
        pairs = [(r, g) for r, g in ((found, grad_out), (lse, grad_logsumexp)) if g is not None]
        wanted = given + [x for x in tensors_in(buffers) if x.requires_grad]
        results, cotangents = zip(*pairs) if pairs else ((found.sum() * 0,), (None,))
        got = list(gradients(results, wanted, cotangents, allow_unused=True, materialize_grads=True))
    rest = iter(got[3:])
    return (*got[:3], tuple(next(rest) if getattr(x, "requires_grad", False) else None for x in buffers))
