"""Copies of quantised tensors, and whether two are equal."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import affine, dtypes
from ...base.records import replace
from ...core.operator import namespace
from ...core.quantized import dequantized, make, parts, quantized_rule

aten = namespace("aten")


@quantized_rule(aten.clone.default)
def clone(self, memory_format=None):
    p = parts(self)
    if p.packed is not None:
        return make(replace(p, codes=p.codes.clone()))
    return make(replace(p, codes=aten.clone.default(p.codes, memory_format=memory_format)))


@quantized_rule(aten.copy_.default)
def copy_(self, src, non_blocking=False):
    p, q = parts(self), parts(src)
    if p is None:
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor"
        )
    if q is None:
        if src._dtype is not dtypes.float32:
            raise RuntimeError(f"Quantized copy only works with kFloat as source Tensor, got {src._dtype.scalar_type}")
        made = affine.codes(src._array, *p.parameters, p.codes._dtype.np, p.limits)
        p.codes.copy_(_C.from_array(made if p.packed is None else affine.packed(np.broadcast_to(made, p.packed))))
        return self
    if self._dtype is not src._dtype or q.axis != p.axis or (p.packed is not None and p.packed != q.packed):
        raise RuntimeError("Quantized Copy only works with Tensors with the same dtype and scheme")
    p.codes.copy_(q.codes)
    # As in PyTorch, what is copied keeps its meaning: its scale comes with it.
    self._payload = replace(p, scale=q.scale, zero_point=q.zero_point)
    return self


@quantized_rule(aten.equal.default)
def equal(self, other):
    p, q = parts(self), parts(other)
    if p is None or q is None or self._dtype is not other._dtype or p.axis != q.axis or p.packed != q.packed:
        return False
    pairs = zip((p.codes, *p.parameters), (q.codes, *q.parameters), strict=True)
    return all(np.array_equal(getattr(a, "_array", a), getattr(b, "_array", b)) for a, b in pairs)


@quantized_rule(aten._local_scalar_dense.default)
def local_scalar(self):
    return dequantized(self).item()
