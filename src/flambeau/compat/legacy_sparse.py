"""``torch.sparse.FloatTensor`` and the like: the old constructors of tensors in coordinate layout, and their classes for isinstance."""

from __future__ import annotations

from ..base import dtypes
from ..base.device import as_device
from ..core.tensor import Tensor, sparse_coo
from ..sparse.construct import sparse_coo_tensor
from .legacy import TYPED

_NAMED = tuple(d for d in TYPED if not d.is_complex and d is not dtypes.bool_)


class _SparseMeta(type):
    """``isinstance(t, FloatTensor)`` asks for a tensor of that dtype in coordinate layout; the class itself makes plain sparse tensors."""

    def __instancecheck__(cls, instance):
        return (
            isinstance(instance, Tensor)
            and instance.is_sparse
            and instance.dtype is cls.dtype
            and instance.device.type == "cpu"
        )

    def __call__(cls, *args, device=None):
        if device is not None and as_device(device).type != "cpu":
            raise RuntimeError(
                f"legacy constructor expects device type: cpu but device type: {as_device(device).type} was passed"
            )
        if len(args) in (2, 3) and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
            # As in PyTorch, the values keep their dtype.
            return sparse_coo_tensor(*args)
        sizes = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args or (0,)
        if not all(isinstance(n, int) for n in sizes):
            got = ", ".join(type(a).__name__ for a in args)
            raise TypeError(
                f"torch.sparse.{cls.__name__}: expected sizes, or (indices, values) with an optional size, but got ({got})"
            )
        return sparse_coo_tensor(tuple(sizes), dtype=cls.dtype)

    def __repr__(cls):
        return f"<class '{cls.__module__}.{cls.__name__}'>"


for _dtype in _NAMED:
    _name = f"{_dtype.scalar_type}Tensor"
    globals()[_name] = _SparseMeta(
        _name,
        (),
        {
            "dtype": _dtype,
            "is_cuda": False,
            "is_sparse": True,
            "layout": sparse_coo,
            "__module__": "torch.sparse",
            "__doc__": f"Sparse tensors of {_dtype}: a call makes one of indices and values, or of sizes; isinstance asks for the layout too.",
        },
    )
