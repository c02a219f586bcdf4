"""What the operators of linear algebra share: checks in PyTorch's words, shapes of results, kernels run matrix by matrix."""

from __future__ import annotations

import numpy as np

from ...base.dtypes import int32
from ...base.errors import LinAlgError
from ...base.memory_format import contiguous_format
from ...base.shapes import broadcast_shapes, contiguous_strides
from ...core import declare
from ...core.definition import TensorMeta
from ...core.operator import namespace
from ...core.promotion import _scalar_name

aten = namespace("aten")
FULL = ("float32", "float64", "complex64", "complex128")
# Kernels whose dtypes PyTorch refuses where it chooses the kernel, by its name for the kernel.
_UNBUILT = {
    "linalg.cholesky": "cholesky_cpu",
    "linalg.det": "lu_cpu",
    "linalg.eig": "linalg_eig_out_cpu",
    "linalg.eigh": "linalg_eigh_cpu",
    "torch.lu_factor": "lu_cpu",
    "cholesky_inverse": "cholesky_inverse_out_cpu",
}
_UNBUILT_FOR_INTEGERS = {"linalg.eigh", "torch.lu_factor", "cholesky_inverse"}


def extern(schema, *, tags=(), **kw):
    """An operator whose call plan is its kernel alone. Its shape rule words the errors."""
    return declare.extern(schema, tags=(*tags, "kernel_alone"), **kw)


def dense(shape, like, dtype=None) -> TensorMeta:
    shape = tuple(shape)
    return TensorMeta(shape, contiguous_strides(shape), dtype or like.dtype, like.device)


def floating(name, t, what="a floating point or complex tensor as input") -> None:
    if t.dtype.name in FULL:
        return
    if name in _UNBUILT and (t.dtype.category >= 2 or name in _UNBUILT_FOR_INTEGERS):
        raise NotImplementedError(f"\"{_UNBUILT[name]}\" not implemented for '{_scalar_name(t.dtype)}'")
    if t.dtype.category < 2:
        raise RuntimeError(f"{name}: Expected {what}. Got {_scalar_name(t.dtype)}")
    raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {_scalar_name(t.dtype)}")


def matrix(name, t, arg="A") -> None:
    """At least two dimensions, floating."""
    if len(t.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {arg} must have at least 2 dimensions.")
    floating(name, t)


def square(name, t, arg="A") -> None:
    matrix(name, t, arg)
    if t.shape[-1] != t.shape[-2]:
        raise RuntimeError(
            f"{name}: {arg} must be batches of square matrices, but they are {t.shape[-2]} by {t.shape[-1]} matrices"
        )


def info_meta(t) -> TensorMeta:
    return dense(t.shape[:-2], t, int32)


def transposed(t):
    return aten.transpose.int(t, -2, -1)


def adjoint(t):
    return aten.adjoint.default(t) if t.dtype.is_complex else aten.transpose.int(t, -2, -1)


def mm(a, b):
    return aten.matmul.default(a, b)


def eye_like(t):
    """The identity of the matrices ``t``, without batch."""
    return aten.eye.default(t.shape[-1], dtype=t.dtype, device=t.device)


def each(fn, *arrays, tails):
    """``fn`` of each matrix (or vector) of the batch; ``tails``: number of trailing dimensions of each array. Results stacked, infos as int32."""
    batch = broadcast_shapes(*[a.shape[: a.ndim - t] for a, t in zip(arrays, tails)])
    flat = [
        np.broadcast_to(a, batch + a.shape[a.ndim - t :]).reshape((-1, *a.shape[a.ndim - t :]))
        for a, t in zip(arrays, tails)
    ]
    results = [fn(*parts) for parts in zip(*flat)]
    if not results:
        return None
    return tuple(np.ascontiguousarray(np.stack(r)).reshape(batch + np.shape(r[0])) for r in zip(*results))


def routine_for(name, a):
    """SciPy's LAPACK routine for the array's element type, of those that base/lapack.py doesn't run."""
    import scipy.linalg.lapack

    return scipy.linalg.lapack.get_lapack_funcs((name,), (a,))[0]


def check_info(name, info, text) -> None:
    """LinAlgError when an info is not 0; ``text(code)`` says what it means."""
    bad = np.flatnonzero(np.asarray(info))
    if bad.size:
        code = int(np.asarray(info).reshape(-1)[bad[0]])
        where = f"(Batch element {int(bad[0])}): " if np.ndim(info) else ""
        raise LinAlgError(f"{name}: {where}{text(code)}")


def refuse_info(lowering, name, info, text) -> None:
    """``check_info`` in a compiled graph."""
    where = "(Batch element {size}): " if info.ndim else ""
    lowering.refuse(info, f"{name}: {where}{text('{value}')}")


def not_definite(code):
    return (
        "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
        f"{code} is not positive-definite)."
    )


def singular(code):
    return f"The diagonal element {code} is zero, the inversion could not be completed because the input matrix is singular."


def unsolvable(code):
    return "The solver failed because the input matrix is singular."


def by_columns(t):
    """A copy of matrices (..., m, n) that is column-major, as LAPACK's results are."""
    rows = aten.clone.default(aten.transpose.int(t, -2, -1), memory_format=contiguous_format)
    return aten.transpose.int(rows, -2, -1)


def batched(op, *tails):
    """The batching rule of an operator that takes any leading dimensions: what isn't mapped is expanded."""

    def rule(call, *values):
        full = [call.all(x, m) if hasattr(x, "_shape") else x for x, m in zip(values, call.mask)]
        from_args = op._schema.arguments
        positional = [v for a, v in zip(from_args, full) if not a.kwarg_only]
        named = {a.name: v for a, v in zip(from_args, full) if a.kwarg_only}
        return op(*positional, **named)

    op.override("batch", rule)
    return op
