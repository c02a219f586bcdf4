"""``_scaled_mm``: the product of two float8 matrices, each with a scale or with one for each row or column."""

from __future__ import annotations

from ...base import dtypes
from ...core.declare import composite
from ...core.operator import namespace
from ..reductions.basic import as_dtype

aten = namespace("aten")
FLOAT8 = (dtypes.float8_e4m3fn, dtypes.float8_e5m2)


def _check(a, b, scale_a, scale_b, bias) -> None:
    for name, x in (("mat1", a), ("mat2", b)):
        if x.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if a.shape[1] != b.shape[0]:
        shapes = f"{a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]}"
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({shapes})")
    m, n = a.shape[0], b.shape[1]
    narrow = a.dtype in FLOAT8 and b.dtype in FLOAT8
    wide = all(s.dtype is dtypes.float32 for s in (scale_a, scale_b))
    single = scale_a.numel() == 1 and scale_b.numel() == 1
    rows = tuple(scale_a.shape) == (m, 1) and tuple(scale_b.shape) == (1, n)
    if not (narrow and wide and (single or rows)):
        raise ValueError(
            "Invalid scaling configuration.\n"
            "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
            "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be "
            f"({m}, 1) and scale_b should be (1, {n}), and both should be contiguous.\n"
            f"Got mat_a.dtype()={a.dtype.scalar_type}, scale_a.dtype()={scale_a.dtype.scalar_type}, "
            f"scale_a.size()={list(scale_a.shape)}, scale_a.stride()={list(scale_a.stride())}, "
            f"mat_b.dtype()={b.dtype.scalar_type}, scale_b.dtype()={scale_b.dtype.scalar_type}, "
            f"scale_b.size()={list(scale_b.shape)} and scale_b.stride()={list(scale_b.stride())}"
        )
    if bias is not None and bias.numel() != n:
        raise RuntimeError(f"Bias must be size {n} but got {bias.numel()}")


@composite(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, "
    "ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    variants="function",
)
def _scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum):
    """(self scale_a) (mat2 scale_b) + bias in float32, given in ``out_dtype`` (the dtype of self where that is None), a float8 one divided by
    ``scale_result`` before. self (M, K) and mat2 (K, N) are float8, scales float32: one number each, or (M, 1) and (1, N). RuntimeError for
    shapes that don't fit, ValueError for other dtypes and scales. ``use_fast_accum`` is for processors that sum in fewer bits."""
    _check(self, mat2, scale_a, scale_b, bias)
    out_dtype = self.dtype if out_dtype is None else out_dtype
    matrices = [
        aten.mul.Tensor(as_dtype(dtypes.float32, x), aten.reshape.default(s, []) if s.numel() == 1 else s)
        for x, s in ((self, scale_a), (mat2, scale_b))
    ]
    out = aten.mm.default(*matrices)
    if bias is not None:
        out = aten.add.Tensor(out, as_dtype(dtypes.float32, bias))
    if scale_result is not None and out_dtype in FLOAT8:
        out = aten.div.Tensor(out, scale_result)
    return as_dtype(out_dtype, out)
