"""How PyTorch's checkpoints say "make this tensor": the functions that their pickles name, and the storages they refer to."""

from __future__ import annotations

import importlib

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.device import META as _META
from ..base.dtypes import DType
from ..core.tensor import Tensor, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..modules.parameter import Parameter

__all__ = ["STORAGES", "Stored", "storage_name"]

# Element type of each storage class that checkpoints name.
STORAGES: dict[str, DType] = {
    f"{d.scalar_type}Storage": d
    for d in dtypes.ALL
    if d.name not in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")
}
_BY_DTYPE = {dtype: name for name, dtype in STORAGES.items()}


def storage_name(dtype: DType) -> str | None:
    """Class name of a storage of ``dtype``; None for the dtypes that checkpoints keep in untyped storages."""
    return _BY_DTYPE.get(dtype)


class Stored:
    """A storage while a checkpoint is read: ``base``, a flat tensor of its bytes that all its tensors share, and the element type.

    ``base`` None stands for tensors on the meta device.
    """

    __slots__ = ("base", "dtype", "nbytes")

    def __init__(self, base: Tensor | None, dtype: DType | None, nbytes: int):
        self.base, self.dtype, self.nbytes = base, dtype, nbytes


def _ints(name: str, values) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(type(v) is int for v in values):
        raise RuntimeError(f"invalid checkpoint: {name} of a tensor must be a tuple of ints, got {values!r:.60}")
    return tuple(values)


def make(storage, dtype: DType, offset: int, size, stride) -> Tensor:
    """A tensor over a part of a storage. RuntimeError when the part isn't inside it."""
    if not isinstance(storage, Stored):
        raise RuntimeError(f"invalid checkpoint: a tensor needs a storage, got {type(storage).__name__}")
    size, stride, item = _ints("size", size), _ints("stride", stride), dtype.itemsize
    if len(size) != len(stride) or min((*size, *stride, 0)) < 0 or type(offset) is not int or offset < 0:
        raise RuntimeError(
            f"invalid checkpoint: sizes {list(size)}, strides {list(stride)}, offset {offset} of a tensor"
        )
    last = 0 if 0 in size else 1 + offset + sum((n - 1) * s for n, s in zip(size, stride))
    if last * item > storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} requiring a storage size of "
            f"{last * item} are out of bounds for storage of size {storage.nbytes}"
        )
    if storage.base is None:
        return _C.without_data(Tensor, size, stride, dtype, _META, offset, None)
    owner = storage.base._array
    at = offset * item if last else 0
    array = np.ndarray(size, dtype.np, owner, at, tuple(s * item for s in stride))
    out = _C.from_array(array)
    out._storage = storage.base._storage
    return out


def _finish(tensor: Tensor, requires_grad, backward_hooks) -> Tensor:
    if requires_grad:
        tensor.requires_grad_(True)
    if backward_hooks:
        tensor._backward_hooks = backward_hooks
    return tensor


def _rebuild_tensor(storage, storage_offset, size, stride):
    return make(storage, storage.dtype or dtypes.uint8, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    return _finish(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, backward_hooks)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    return _finish(make(storage, dtype, storage_offset, size, stride), requires_grad, backward_hooks)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return _finish(Parameter(data, requires_grad), False, backward_hooks)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    out = _rebuild_parameter(data, requires_grad, backward_hooks)
    out.__dict__.update(state[0] if isinstance(state, tuple) else state)
    return out


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return _finish(
        _C.without_data(Tensor, _ints("size", size), _ints("stride", stride), dtype, _META, 0, None),
        requires_grad,
        None,
    )


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    return _finish(_C.from_array(np.array(data, dtype=dtype.np)), requires_grad, None)


def _rebuild_from_type_v2(func, new_type, args, state):
    out = func(*args)
    if type(out) is not new_type:
        out = out.as_subclass(new_type)
    if isinstance(state, tuple):
        state = state[0]
    if state:
        out.__dict__.update(state)
    return out


LAYOUTS = {repr(x): x for x in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}


def _get_layout(name: str):
    """The layout that prints as ``name``."""
    if name not in LAYOUTS:
        raise RuntimeError(f"invalid checkpoint: no layout {name!r}")
    return LAYOUTS[name]


def _rebuild_sparse_tensor(layout, data):
    """A sparse tensor from its parts, which are checked as a user's are."""
    makers = importlib.import_module("flambeau.sparse")
    if layout is sparse_coo:
        indices, values, size, *coalesced = data
        return makers.sparse_coo_tensor(indices, values, size, is_coalesced=bool(coalesced and coalesced[0]) or None)
    return makers.sparse_compressed_tensor(*data, layout=layout)
