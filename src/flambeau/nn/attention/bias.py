"""Causal biases for attention over queries and keys of different numbers: a tensor that is told by its form and made only when it must be."""

from __future__ import annotations

import enum
import warnings

from ...base import dtypes
from ...core.operator import namespace
from ...core.tensor import Tensor
from .. import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]

aten = namespace("aten")


class CausalVariant(enum.IntEnum):
    """Where the diagonal of the lower triangle begins when there are more keys than queries."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """The bool mask of shape (seq_len_q, seq_len_kv) that lets a query see the keys up to its own place: ``attn_mask`` of
    ``scaled_dot_product_attention``. Made by :func:`causal_upper_left` and :func:`causal_lower_right`."""

    def __new__(cls, variant, seq_len_q, seq_len_kv):
        return aten.empty([0]).as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=3
            )

    def _materialize(self, device=None) -> Tensor:
        """The mask itself."""
        below = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        return aten.tril(aten.ones([self.seq_len_q, self.seq_len_kv], dtype=dtypes.bool_, device=device), below)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.scaled_dot_product_attention:
            return cls._attend(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    @staticmethod
    def _attend(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        upper = attn_mask.variant == CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
        mask = None if upper else attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, is_causal=upper, scale=scale, enable_gqa=enable_gqa
        )

    def __repr__(self, *, tensor_contents=None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The bias whose diagonal begins in the upper left corner: query i sees keys 0 to i, as with ``is_causal=True``."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The bias whose diagonal ends in the lower right corner: the last query sees every key."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
