"""Embeddings whose rows are codes of eight or four bits, each row with a scale and a zero point that are floats. Indices in, floats out."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.core.operator import namespace

from .utils import quantized_weight

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]

ops = namespace("quantized")
_DTYPES = (torch.quint8, torch.quint4x2)


def _zeros(rows: int, columns: int, dtype):
    """A weight of codes of 0."""
    parameters = {"scales": torch.ones(rows), "zero_points": torch.zeros(rows), "axis": 0}
    return torch._empty_per_channel_affine_quantized([rows, columns], dtype=dtype, **parameters)


class EmbeddingPackedParams(nn.Module):
    """The weight, saved as PyTorch saves it: ``dtype``, and the quantised tensor as ``_packed_weight``."""

    _version = 1

    def __init__(self, num_embeddings, embedding_dim, dtype=torch.quint8):
        super().__init__()
        if dtype not in _DTYPES:
            raise NotImplementedError(
                f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2. Got dtype: {dtype}"
            )
        self.dtype = dtype
        self.set_weight(_zeros(num_embeddings, embedding_dim, dtype))

    def set_weight(self, weight):
        """Take a weight of quint8 or quint4x2, quantised by rows with floats as zero points."""
        self._packed_weight = ops.embedding_bag_prepack.default(weight)
        self.dtype = weight.dtype

    def _weight(self):
        return ops.embedding_bag_unpack.default(self._packed_weight)

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.dtype = state_dict.pop(f"{prefix}dtype")
        self.set_weight(state_dict.pop(f"{prefix}_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __repr__(self):
        return repr(self._weight())


class Embedding(nn.Module):
    """Rows of a quantised table: indices of int32 or int64 (*) to floats (*, embedding_dim). ``dtype``: quint8 or quint4x2.

    AssertionError where ``_weight`` has other sizes; RuntimeError for an index out of range."""

    _version = 1
    _FLOAT_MODULE: type = nn.Embedding

    def __init__(
        self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False,
        _weight=None, dtype=torch.quint8,
    ):  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    f"Shape of weight does not match num_embeddings and embedding_dim: expected {[num_embeddings, embedding_dim]}, "
                    f"got {list(_weight.shape)}"
                )
            self.set_weight(_weight)

    @property
    def dtype(self):
        """quint8 or quint4x2, that of the weight."""
        return self._packed_params.dtype

    def set_weight(self, w):
        """Take a weight of quint8 or quint4x2, quantised by rows with floats as zero points."""
        self._packed_params.set_weight(w)

    def weight(self):
        """The table, a quantised tensor."""
        return self._packed_params._weight()

    def forward(self, indices):
        lookup = ops.embedding_4bit if self.dtype is torch.quint4x2 else ops.embedding_byte
        return lookup.default(self._packed_params._packed_weight, indices)

    def _get_name(self):
        return "QuantizedEmbedding"

    def __repr__(self):
        # The table is a module for the names in files alone.
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self):
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    @classmethod
    def _settings(cls, mod) -> dict:
        return {}

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of a float layer whose ``qconfig`` is ``float_qparams_weight_only_qconfig`` or the one of 4 bits. AssertionError for another."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}"
            )
        if getattr(mod, "qconfig", None) is None:
            raise AssertionError(f"{cls._FLOAT_MODULE.__name__} input float module must have qconfig defined")
        observer = mod.qconfig.weight()
        if getattr(observer, "qscheme", None) is not torch.per_channel_affine_float_qparams:
            raise AssertionError("Embedding quantization is only supported with float_qparams_weight_only_qconfig.")
        if observer.dtype not in _DTYPES:
            raise AssertionError(
                f"The only supported dtype for nnq.{cls.__name__} is torch.quint8 and torch.quint4x2, got {observer.dtype}"
            )
        observer(mod.weight)
        weight = quantized_weight(mod.weight.float(), observer, observer.dtype)
        return cls(mod.num_embeddings, mod.embedding_dim, _weight=weight, dtype=observer.dtype, **cls._settings(mod))


class EmbeddingBag(Embedding):
    """Sums of rows of a quantised table, by bags: as ``nn.EmbeddingBag``, whose ``mode`` has to be 'sum'."""

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(
        self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="sum", sparse=False, _weight=None,
        include_last_offset=False, dtype=torch.quint8,
    ):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.include_last_offset, self.pruned_weights = mode, include_last_offset, False

    def forward(self, indices, offsets=None, per_sample_weights=None, compressed_indices_mapping=None):
        bags = ops.embedding_bag_4bit if self.dtype is torch.quint4x2 else ops.embedding_bag_byte
        return bags.default(
            self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights, per_sample_weights,
            compressed_indices_mapping, self.include_last_offset,
        )  # fmt: skip

    def _get_name(self):
        return "QuantizedEmbeddingBag"

    @classmethod
    def _settings(cls, mod) -> dict:
        return {"mode": mod.mode, "include_last_offset": mod.include_last_offset}
