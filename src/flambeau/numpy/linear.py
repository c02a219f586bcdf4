"""Products of vectors, matrices and tensors; einsum; norms."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..batching.contraction import contract
from ..core.operator import namespace
from ..core.tensor import Tensor
from .promotion import as_tensor, cast, dtype_of, numpy_dtype, result_dtype
from .reductions import axes_of
from .table import implements, into
from .ufuncs import multiply

aten = namespace("aten")
_DTYPES = "fd"


def _pair(name, *xs):
    """Tensors of a common dtype that products are computed in. Integers are left to NumPy."""
    d = result_dtype(*xs)
    if d.char not in _DTYPES:
        raise TypeError(f"np.{name} in {d}")
    return [cast(as_tensor(x), d) for x in xs]


@implements(np.matmul, np.linalg.matmul)
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    out: Tensor | None = None,
    *,
    casting: str = "same_kind",
    order: str | None = "K",
    dtype: DTypeLike | None = None,
    subok: bool = True,
) -> Tensor:
    """np.matmul."""
    if order not in ("K", "C") or subok is not True or casting != "same_kind":
        raise TypeError("np.matmul with order=, subok= or casting=")
    a, b = _pair("matmul", x1, x2) if dtype is None else (cast(as_tensor(x), dtype) for x in (x1, x2))
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    return into(out, aten.matmul.default(a, b), casting)


@implements(np.dot, method="dot")
def dot(a: ArrayLike, b: ArrayLike, out: Tensor | None = None) -> Tensor:
    """np.dot: the last axis of ``a`` with the one before the last of ``b``."""
    x, y = as_tensor(a), as_tensor(b)
    if x.ndim == 0 or y.ndim == 0:
        return into(out, multiply(x, y))
    return into(out, matmul(x, y) if y.ndim <= 2 else tensordot(x, y, ([x.ndim - 1], [y.ndim - 2])))


@implements(np.inner)
def inner(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """np.inner: over the last axes."""
    x, y = as_tensor(a), as_tensor(b)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, ([x.ndim - 1], [y.ndim - 1]))


@implements(np.vdot)
def vdot(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """np.vdot of real arrays, flattened."""
    x, y = _pair("vdot", a, b)
    return aten.dot.default(x.reshape(-1), y.reshape(-1))


@implements(np.outer)
def outer(a: ArrayLike, b: ArrayLike, out: Tensor | None = None) -> Tensor:
    """np.outer of the flattened arrays."""
    return into(out, multiply(as_tensor(a).reshape(-1, 1), as_tensor(b).reshape(1, -1)))


@implements(np.tensordot, gives_array=True)
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """np.tensordot."""
    x, y = _pair("tensordot", a, b)
    if isinstance(axes, (tuple, list)):
        left, right = axes_of(x, axes[0]), axes_of(y, axes[1])
    else:
        n = operator.index(axes)
        left, right = list(range(x.ndim - n, x.ndim)), list(range(n))
    if len(left) != len(right) or any(x.shape[i] != y.shape[j] for i, j in zip(left, right)):
        raise ValueError("shape-mismatch for sum")
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    lx = [next(letters) for _ in range(x.ndim)]
    ly = [lx[left[right.index(k)]] if k in right else next(letters) for k in range(y.ndim)]
    out = [c for k, c in enumerate(lx) if k not in left] + [c for k, c in enumerate(ly) if k not in right]
    return contract(x, y, "".join(lx), "".join(ly), "".join(out))


@implements(np.kron)
def kron(a: ArrayLike, b: ArrayLike) -> Tensor:
    """np.kron."""
    x, y = as_tensor(a), as_tensor(b)
    n = max(x.ndim, y.ndim)
    x, y = (t.reshape([1] * (n - t.ndim) + list(t.shape)) for t in (x, y))
    wide = multiply(x.reshape([v for s in x.shape for v in (s, 1)]), y.reshape([v for s in y.shape for v in (1, s)]))
    return wide.reshape([p * q for p, q in zip(x.shape, y.shape)])


def _letters(subscripts: str, xs):
    """(terms, result) with ``...`` written out as capital letters. ValueError for subscripts that don't fit the
    operands."""
    subscripts = subscripts.replace(" ", "")
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise ValueError(
            "more operands provided to einstein sum function than specified in the subscripts string"
            if len(terms) < len(xs)
            else "fewer operands provided to einstein sum function than specified in the subscripts string"
        )
    free = [c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in subscripts]
    wide = max((x.ndim - len(t.replace("...", "")) for t, x in zip(terms, xs) if "..." in t), default=0)
    rest = "".join(reversed(free[:wide]))
    made = []
    for t, x in zip(terms, xs):
        n = x.ndim - len(t.replace("...", ""))
        if n < 0 or (n and "..." not in t):
            raise ValueError(
                f"einstein sum subscripts string {subscripts!r} doesn't fit an operand of {x.ndim} dimensions"
            )
        made.append(t.replace("...", rest[wide - n :] if n else ""))
    if arrow:
        out = out.replace("...", rest)
    else:
        joined = "".join(made)
        out = rest + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in rest))
    return made, out


def _without_repeats(x, term: str):
    """Repeated letters of a term are its diagonal."""
    while len(set(term)) < len(term):
        c = next(c for c in term if term.count(c) > 1)
        i = term.index(c)
        j = term.index(c, i + 1)
        if x.shape[i] != x.shape[j]:
            raise ValueError(
                f"dimensions in operand for collapsing index '{c}' don't match ({x.shape[i]} != {x.shape[j]})"
            )
        x = aten.diagonal.default(x, 0, i, j)
        term = "".join(t for k, t in enumerate(term) if k not in (i, j)) + c
    return x, term


@implements(np.einsum)
def einsum(
    subscripts: str,
    /,
    *operands,
    out: Tensor | None = None,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    casting: str = "safe",
    optimize: bool | str = False,
) -> Tensor:
    """np.einsum in subscript form, as a chain of matrix products."""
    if not isinstance(subscripts, str) or order != "K" or casting != "safe":
        raise TypeError("np.einsum in sublist form, or with order= or casting=")
    xs = [as_tensor(x) for x in operands]
    xs = _pair("einsum", *xs) if dtype is None else [cast(x, numpy_dtype(dtype)) for x in xs]
    terms, result = _letters(subscripts, xs)
    if len(set(result)) < len(result):
        raise ValueError(f"einstein sum subscripts string included output subscript '{result}' more than once")
    pairs = [_without_repeats(x, t) for x, t in zip(xs, terms)]
    sizes: dict[str, int] = {}
    for x, t in pairs:
        for c, n in zip(t, x.shape):
            sizes[c] = n if sizes.get(c, 1) == 1 else sizes[c]
    # A dimension of size one broadcasts against the same letter elsewhere.
    pairs = [
        (x.expand([sizes[c] for c in t]) if any(n != sizes[c] for c, n in zip(t, x.shape)) else x, t) for x, t in pairs
    ]
    if any(c not in sizes for c in result):
        raise ValueError(
            f"einstein sum subscripts string included output subscript {result!r} which never appeared in an input"
        )
    x, have = pairs[0]
    for k, (y, term) in enumerate(pairs[1:], 1):
        later = set(result).union(*(t for _, t in pairs[k + 1 :]))
        keep = "".join(c for c in dict.fromkeys(have + term) if c in later)
        goal = result if k == len(pairs) - 1 else keep
        x, have = contract(x, y, have, term, goal), goal
    gone = [i for i, c in enumerate(have) if c not in result]
    if gone:
        x, have = aten.sum.dim_IntList(x, gone), "".join(c for c in have if c in result)
    return into(out, aten.permute.default(x, [have.index(c) for c in result]) if have != result else x)


@implements(np.linalg.norm)
def norm(
    x: ArrayLike, ord: float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor:
    """np.linalg.norm of vectors (2, 1, infinity, p) and the Frobenius norm."""
    t = as_tensor(x)
    d = dtype_of(t) if dtype_of(t).kind == "f" else np.dtype(np.float64)
    if d.char not in _DTYPES or dtype_of(t).kind == "c":
        raise TypeError(f"np.linalg.norm in {dtype_of(t)}")
    t = cast(t, d)
    axes = axes_of(t, axis)
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return aten.sqrt(aten.sum.dim_IntList(aten.mul(t, t), axes, bool(keepdims)))
    if len(axes) != 1 or isinstance(ord, str):
        raise TypeError(f"np.linalg.norm of order {ord!r} of a matrix")
    size = aten.abs(t)
    if ord == math.inf:
        return aten.amax.default(size, axes, bool(keepdims))
    if ord == -math.inf:
        return aten.amin.default(size, axes, bool(keepdims))
    if ord == 1:
        return aten.sum.dim_IntList(size, axes, bool(keepdims))
    if ord == 0:
        return cast(aten.sum.dim_IntList(aten.ne(t, 0), axes, bool(keepdims)), d)
    return aten.pow(aten.sum.dim_IntList(aten.pow(size, float(ord)), axes, bool(keepdims)), 1 / float(ord))
