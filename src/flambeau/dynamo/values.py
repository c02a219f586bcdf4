"""Copies and comparisons of values that tools around compile() use: ``torch._dynamo.utils``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.pytree import tree_map
from ..core.operator import namespace
from ..core.tensor import Tensor

__all__ = ["clone_input", "clone_inputs", "hashable", "istype", "same"]

aten = namespace("aten")


def istype(obj: Any, allowed: type | tuple[type, ...]) -> bool:
    """Whether the type of ``obj`` is one of ``allowed`` itself: subclasses don't count."""
    return type(obj) in (allowed if isinstance(allowed, (tuple, list, set)) else (allowed,))


def hashable(x: Any) -> bool:
    """Whether ``hash(x)`` works."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def clone_input(x: Tensor, *, dtype=None) -> Tensor:
    """A copy with the strides of ``x``, a leaf that requires a gradient where ``x`` does and has a copy of its gradient."""
    out = x.detach().clone() if dtype is None else x.detach().to(dtype)
    out.requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        out.grad = clone_input(x.grad, dtype=dtype)
    return out


def clone_inputs(example_inputs: Any) -> Any:
    """:func:`clone_input` of every tensor of a list, or of a dict of them."""
    copied = tree_map(lambda x: clone_input(x) if isinstance(x, Tensor) else x, example_inputs)
    return copied if isinstance(example_inputs, dict) else list(copied)


def same(
    ref: Any,
    res: Any,
    fp64_ref: Any = None,
    cos_similarity: bool = False,
    tol: float = 1e-4,
    equal_nan: bool = False,
    exact_dtype: bool = True,
    relax_numpy_equality: bool = False,
    ignore_non_fp: bool = False,
    **_ignored: Any,
) -> bool:
    """Whether two results are alike: tensors close (``tol``), containers of alike elements, everything else equal.

    ``fp64_ref``: the result in double precision; ``res`` may then be as far from it as ``ref`` is. ``cos_similarity``: directions are compared.
    """
    options = dict(
        cos_similarity=cos_similarity,
        tol=tol,
        equal_nan=equal_nan,
        exact_dtype=exact_dtype,
        relax_numpy_equality=relax_numpy_equality,
        ignore_non_fp=ignore_non_fp,
    )
    if isinstance(ref, (list, tuple)) and not isinstance(ref, type(Tensor.shape)):
        if not isinstance(res, (list, tuple)) or len(ref) != len(res):
            return False
        finer = fp64_ref if isinstance(fp64_ref, (list, tuple)) else [None] * len(ref)
        return all(same(a, b, c, **options) for a, b, c in zip(ref, res, finer))
    if isinstance(ref, Mapping):
        if not isinstance(res, Mapping) or ref.keys() != res.keys():
            return False
        finer = fp64_ref if isinstance(fp64_ref, Mapping) else {}
        return all(same(ref[k], res[k], finer.get(k), **options) for k in ref)
    if isinstance(ref, (set, frozenset)):
        return isinstance(res, (set, frozenset)) and ref == res
    if isinstance(ref, Tensor):
        return isinstance(res, Tensor) and _alike(ref, res, fp64_ref, **options)
    if isinstance(ref, (np.ndarray, np.generic)):
        if relax_numpy_equality and not isinstance(res, np.generic | np.ndarray):
            ref = ref.item()
        return (type(ref) is type(res) or relax_numpy_equality) and bool(
            np.allclose(ref, res, rtol=tol, atol=tol, equal_nan=equal_nan)
            if np.issubdtype(np.asarray(ref).dtype, np.number)
            else np.array_equal(ref, res)
        )
    if isinstance(ref, float):
        return bool(np.isclose(ref, res, rtol=tol, atol=tol, equal_nan=True))
    if dataclasses.is_dataclass(ref) and not isinstance(ref, type):
        names = [f.name for f in dataclasses.fields(ref)]
        return type(ref) is type(res) and all(same(getattr(ref, n), getattr(res, n), None, **options) for n in names)
    if hasattr(ref, "__dict__") and type(ref).__eq__ is object.__eq__ and type(ref) is type(res):
        return all(same(v, getattr(res, k, None), None, **options) for k, v in vars(ref).items())
    return bool(ref == res)


def _alike(ref, res, fp64_ref, *, cos_similarity, tol, equal_nan, exact_dtype, ignore_non_fp, **_ignored) -> bool:
    if ref.layout is not res.layout or tuple(ref.shape) != tuple(res.shape):
        return False
    if exact_dtype and ref.dtype is not res.dtype:
        return False
    if not ref.is_floating_point() and not ref.is_complex():
        return ignore_non_fp or bool((ref == res).all())
    a, b = ref.detach(), res.detach().to(ref.dtype)
    if cos_similarity:
        a, b = a.flatten().float(), b.flatten().float()
        norm = a.norm() * b.norm()
        return bool(norm == 0) and bool(a.norm() == b.norm()) or bool((a * b).sum() / norm >= 0.99)
    if bool(aten.isclose.default(a, b, tol, tol, equal_nan).all()):
        return True
    if fp64_ref is None:
        return False
    exact = fp64_ref.detach().double()
    theirs, ours = ((x.double() - exact).square().mean().sqrt() for x in (a, b))
    return bool(ours <= 2 * theirs + tol / 10)
