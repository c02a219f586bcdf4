"""Linear layers with weights of 8 and 4 bits, for inference: csrc/kernels/weight_only.c.

Shapes: self (M, K) in float32 or 16 bits, weights (N, K). Sums are made in float32 and rounded once to the dtype of ``self``. They have no derivative.
"""

from __future__ import annotations

from ...base import dtypes, weight_only
from ...core.declare import extern
from ...core.definition import TensorMeta

_FLOATS = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


def _dtype(x):
    return x.dtype if isinstance(x.dtype, dtypes.DType) else dtypes.from_numpy(x.dtype)


def _refuse_unless(holds, what: str) -> None:
    if not holds:
        raise RuntimeError(what)


def _check_input(name, self, weight, kind):
    of_name = f"{name}_cpu : expect"
    _refuse_unless(len(self.shape) == 2, f"{of_name} A to be a matrix, got {len(self.shape)} dimensions")
    _refuse_unless(_dtype(self) in _FLOATS, f"{of_name} A to be either 32-bit or 16-bit float tensor.")
    _refuse_unless(_dtype(weight) is kind, f"{of_name} B to be {kind.name} tensor.")
    _refuse_unless(len(weight.shape) == 2, f"{of_name} B to be a matrix, got {len(weight.shape)} dimensions")


def _check_scales(self, scales):
    if _dtype(scales) is not _dtype(self):
        wanted, found = (_dtype(x).scalar_type for x in (self, scales))
        raise RuntimeError(f"expected scalar type {wanted} but found {found}")


def _check_bytes(self, mat2, scales):
    name = "_weight_int8pack_mm"
    _check_input(name, self, mat2, dtypes.int8)
    n, k = mat2.shape
    _refuse_unless(k == self.shape[1], f"{name}_cpu : expect B.size(1) == {self.shape[1]}")
    _refuse_unless(tuple(scales.shape) == (n,), f"{name}_cpu : expect scales to be 1d tensor with size {n}")
    _check_scales(self, scales)


def _check_nibbles(self, mat2, group, scales):
    name = "_weight_int4pack_mm"
    _check_input(name, self, mat2, dtypes.uint8)
    _refuse_unless(group in (32, 64, 128, 256), f"{name}_cpu: expect qGroupSize to be 32, 64, 128 or 256, got {group}")
    n, k = mat2.shape[0], self.shape[1]
    _refuse_unless(2 * mat2.shape[1] == k, f"{name}_cpu : expect B.size(1) == {k} / 2")
    _refuse_unless(k % group == 0, f"{name}_cpu: expect K to be a multiple of qGroupSize, got {k} and {group}")
    if tuple(scales.shape) != (k // group, n, 2):
        raise RuntimeError(f"{name}_cpu: expect qScaleAndZeros to be 3d tensor with sizes [{k // group}, {n}, 2]")
    _check_scales(self, scales)


def _result(self, mat2):
    m, n = self.shape[0], mat2.shape[0]
    return TensorMeta((m, n), (n, 1), self.dtype, self.device)


def _bytes_meta(self, mat2, scales):
    _check_bytes(self, mat2, scales)
    return _result(self, mat2)


@extern("_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", meta=_bytes_meta, variants="function")
def int8(self, mat2, scales):
    """self (mat2 * scales[:, None])^T; mat2 int8, scales in the dtype of self."""
    _check_bytes(self, mat2, scales)
    return weight_only.multiply(self, mat2, scales, 0).astype(self.dtype, copy=False)


def _nibbles_meta(self, mat2, qGroupSize, qScaleAndZeros):
    _check_nibbles(self, mat2, qGroupSize, qScaleAndZeros)
    return _result(self, mat2)


@extern(
    "_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
    meta=_nibbles_meta,
    variants="function",
)
def int4(self, mat2, qGroupSize, qScaleAndZeros):
    """self W^T with W = (w - 8) * scale + zero; mat2 (N, K / 2) from _convert_weight_to_int4pack_for_cpu, qScaleAndZeros (K / group, N, 2)."""
    _check_nibbles(self, mat2, qGroupSize, qScaleAndZeros)
    return weight_only.multiply(self, mat2, qScaleAndZeros, qGroupSize).astype(self.dtype, copy=False)


def _check_packed(self):
    name = "_convert_weight_to_int4pack_cpu"
    _refuse_unless(_dtype(self) is dtypes.int32, f"{name} : expect weight to be kInt.")
    _refuse_unless(len(self.shape) == 2, f"{name} : expect weight to be 2D tensor.")
    n, k = self.shape
    _refuse_unless(k % weight_only.BLOCK == 0, f"{name}: expect K to be dividable by {weight_only.BLOCK}, got {k}")


def _packed_meta(self, innerKTiles):
    _check_packed(self)
    n, k = self.shape
    return TensorMeta((n, k // 2), (k // 2, 1), dtypes.uint8, self.device)


@extern(
    "_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor",
    meta=_packed_meta,
    variants="function",
)
def pack(self, innerKTiles):
    """int32 (N, K) of 0 to 15, two to a byte in the order of csrc/kernels/weight_only.c."""
    _check_packed(self)
    return weight_only.pack(self)


@int8.override("lower")
def _(lowering, val, self, mat2, scales):
    return lowering.weight_only(val, self, mat2, scales, 0)


@int4.override("lower")
def _(lowering, val, self, mat2, group, scales):
    return lowering.weight_only(val, self, mat2, scales, group)


def _flops(self, mat2):
    return 2 * self.shape[0] * self.shape[1] * mat2.shape[0]


int8.override("flops", lambda self, mat2, scales: _flops(self, mat2))
int4.override("flops", lambda self, mat2, group, scales: _flops(self, mat2))
