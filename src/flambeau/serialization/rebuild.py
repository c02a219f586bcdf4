"""What checkpoints name beside the functions of core/rebuild.py and modules/parameter.py: sparse tensors, layouts, storage classes, and what is
refused because tensors of that kind aren't built."""

from __future__ import annotations

import importlib

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.dtypes import DType
from ..core.quantized import CODES
from ..core.tensor import Tensor, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided

__all__ = ["NOT_BUILT", "STORAGES", "StorageType", "sparse_parts"]


class StorageType:
    """What a storage class of a checkpoint stands for; ``dtype`` None for an untyped one."""

    def __init__(self, name: str, dtype: DType | None):
        self.name, self.dtype = name, dtype


STORAGES: dict[str, StorageType] = {
    f"{d.scalar_type}Storage": StorageType(f"{d.scalar_type}Storage", d)
    for d in (*(d for d in dtypes.ALL if d not in dtypes.LATE), *CODES)
}
BY_DTYPE = {kind.dtype: kind for kind in STORAGES.values()}
UNTYPED = StorageType("UntypedStorage", None)

_PACKED = "quantised tensors of two bits an element are not built in flambeau: dequantize() before saving"
_NO_DTYPE = "this dtype is not built in flambeau"
# Names that PyTorch's files may hold and nothing here can stand for: why.
NOT_BUILT: dict[str, str] = {
    "torch._utils._rebuild_wrapper_subclass": "wrapper subclasses without data of their own can't be loaded",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": "tensors of devices that store no bytes (XLA, MAIA) can't be loaded",
    **{f"torch.{name}Storage": _PACKED for name in ("QUInt2x4",)},
    **{f"torch.{name}": _PACKED for name in ("quint2x4",)},
    **{
        f"torch.{name}": _NO_DTYPE
        for name in "complex32 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 bits8 bits16".split()
    },
    "torch.ComplexHalfStorage": _NO_DTYPE,
}


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    if not isinstance(data, np.ndarray) or not isinstance(dtype, DType):
        raise RuntimeError("invalid checkpoint: a device's tensor needs an array and a dtype")
    out = _C.from_array(np.array(data, dtype=dtype.np))
    return out.requires_grad_(True) if requires_grad else out


def _rebuild_njt(constructor_kwargs: dict):
    """A nested tensor of the jagged layout from its parts, which go by the names that PyTorch gives them."""
    nested = importlib.import_module("flambeau.nested.construct")
    return nested.from_parts(constructor_kwargs)


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """A nested tensor of the strided layout from its parts."""
    nested = importlib.import_module("flambeau.nested.strided.construct")
    return nested.from_parts(buffer, sizes, strides, storage_offsets)


# Classes that are imported when a file names them.
LATE = {"torch.nested._internal.nested_tensor.NestedTensor": ("flambeau.nested.tensor", "NestedTensor")}
LAYOUTS = {repr(x): x for x in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}


def _get_layout(name: str):
    """The layout that prints as ``name``."""
    if name not in LAYOUTS:
        raise RuntimeError(f"invalid checkpoint: no layout {name!r}")
    return LAYOUTS[name]


def _rebuild_sparse_tensor(layout, data) -> Tensor:
    """A sparse tensor from its parts, which are checked as a user's are. Indices are copied: what has been checked has no other name."""
    makers = importlib.import_module("flambeau.sparse")
    if layout is sparse_coo:
        indices, values, size, *coalesced = data
        coalesced = bool(coalesced and coalesced[0]) or None
        return makers.sparse_coo_tensor(indices.clone(), values, size, is_coalesced=coalesced)
    compressed, plain, values, size = data
    return makers.sparse_compressed_tensor(compressed.clone(), plain.clone(), values, size, layout=layout)


def sparse_parts(t: Tensor):
    """The function and arguments that make a sparse tensor."""
    record = t._payload
    held = tuple(part for _, part in record.named_parts())
    data = (*held, t.shape, record.coalesced) if t.is_sparse else (*held, t.shape)
    return _rebuild_sparse_tensor, (t.layout, data)
