"""LDL factors of symmetric and Hermitian matrices, and systems that are solved with them."""

from __future__ import annotations

import itertools

import numpy as np

from ...base.dtypes import int32
from ...base.shapes import broadcast_shapes
from ...core.declare import composite
from ...core.operator import namespace
from .checks import (
    check_info,
    dense,
    each,
    extern,
    info_meta,
    routine_for,
    square,
)
from .failures import checked

aten = namespace("aten")


def _ldl_meta(self, hermitian, check_errors):
    square("torch.linalg.ldl_factor_ex", self)
    return dense(self.shape, self), dense(self.shape[:-1], self, int32), info_meta(self)


def _symmetric(name, a, hermitian):
    return routine_for(("he" if hermitian and a.dtype.kind == "c" else "sy") + name, a)


@extern(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
    columns=(0,),
    meta=_ldl_meta,
    variants="",
    has_out=True,
)
def linalg_ldl_factor_ex(a, hermitian, check_errors):
    if not a.size:
        return a.copy(), np.zeros(a.shape[:-1], np.int32), np.zeros(a.shape[:-2], np.int32)
    routine = _symmetric("trf", a, hermitian)

    def one(x):
        ld, piv, info = routine(x, lower=1)
        return np.tril(ld), piv.astype(np.int32), np.int32(info)

    ld, piv, info = each(one, a, tails=(2,))
    if check_errors:
        check_info("torch.linalg.ldl_factor_ex", info, lambda c: f"The factorization has an exact zero at D[{c},{c}].")
    return ld, piv, info


@composite(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    variants="",
    has_out=True,
    out_rules="exact",
)
def linalg_ldl_factor(self, hermitian):
    ld, piv, info = aten.linalg_ldl_factor_ex.default(self, hermitian=hermitian)
    checked(info, "linalg.ldl_factor", self)
    return ld, piv


def _ldl_solve_meta(LD, pivots, B, hermitian):
    square("torch.linalg.ldl_solve", LD)
    if len(B.shape) < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {len(B.shape)} dimensions instead"
        )
    if pivots.dtype.category != 1:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {pivots.dtype}")
    if LD.dtype is not B.dtype:
        raise RuntimeError(f"torch.linalg.ldl_solve: LD dtype {LD.dtype} does not match b dtype {B.dtype}")
    if tuple(LD.shape[:-1]) != tuple(pivots.shape):
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} instead"
        )
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} "
            f"but each b matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    batch = broadcast_shapes(tuple(LD.shape[:-2]), tuple(B.shape[:-2]))
    return dense((*batch, *B.shape[-2:]), B)


@extern(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    columns=(0,),
    meta=_ldl_solve_meta,
    variants="",
    has_out=True,
)
def linalg_ldl_solve(ld, pivots, b, hermitian):
    if not b.size or not ld.size:
        return np.zeros((*broadcast_shapes(ld.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
    size = np.abs(pivots)
    for wrong, rule in ((size < 1, ">= 1"), (size > ld.shape[-1], "<= LD.size(-2)")):
        if wrong.any():
            raise RuntimeError(
                f"Pivots given to ldl_solve must all satisfy |pivot| {rule}. Did you properly pass the result of ldl_factor?"
            )
    for row in pivots.reshape(-1, pivots.shape[-1]):
        if any(len(list(run)) % 2 for below, run in itertools.groupby(row < 0) if below):
            raise RuntimeError(
                "Pivots given to ldl_solve must be below 0 in pairs. Did you properly pass the result of ldl_factor?"
            )
    routine = _symmetric("trs", ld, hermitian)
    out = each(lambda m, p, x: (routine(m, p, x, lower=1)[0],), ld, pivots, b, tails=(2, 1, 2))
    return out[0]
