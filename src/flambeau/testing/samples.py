"""Sample inputs and a NumPy reference for every operator, as data: what the table-driven tests run over.

A sample is what a call takes, with ndarrays (float64 where floating) for tensors; strides are kept, so a transposed array is a non-contiguous
sample. The reference gets the same arguments as arrays. Rows are in ``testing/tables/``, a file to a family of operators::

    row("add.Tensor", [call(f(2, 3), f(3)), call(f(3), f(3), alpha=2)], lambda self, other, alpha=1: self + alpha * other)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _C
from ..core.operator import OpOverload, Unbuilt, namespace, namespaces
from ..ops import load_family
from ..ops.family_index import FAMILIES

__all__ = ["Call", "Row", "call", "every_operator", "fixed", "load", "operator", "row", "to_tensors"]

# The families whose samples are in ``testing/tables/``, of those that load when they are used.
SAMPLED = tuple(
    """indexing.data_dependent indexing.index_writes indexing.searching neural.activation neural.adaptive_pooling neural.average_pooling
    neural.classification_losses neural.convolution neural.ctc_loss neural.dropout neural.embedding_bag neural.folding
    neural.fractional_pooling neural.margin_losses neural.max_pooling neural.normalization neural.recurrent
    neural.regression_losses neural.resampling neural.scaled_dot_product neural.similarity neural.softmax pointwise.clamping
    pointwise.complex_numbers pointwise.real_functions random.distributions reductions.order_statistics
    reductions.scans_and_sorting reductions.statistics shapes.inplace_views shapes.strided""".split()
)


@dataclass(frozen=True)
class Call:
    """Arguments of one call."""

    args: tuple
    kwargs: dict = field(default_factory=dict)
    grad: bool = True  # False: not differentiable here (a kink, an infinity, a convention)

    def __repr__(self):
        parts = [_show(a) for a in self.args] + [f"{k}={_show(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(parts)})"


def _show(x):
    if isinstance(x, np.ndarray):
        strides = "" if x.flags.c_contiguous else f" strides {x.strides}"
        return f"{x.dtype}{list(x.shape)}{strides}"
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(_show, x))}]"
    return repr(x)


def call(*args, **kwargs) -> Call:
    return Call(args, kwargs)


def fixed(*args, **kwargs) -> Call:
    """A call at which the derivative isn't the limit of difference quotients."""
    return Call(args, kwargs, False)


@dataclass(frozen=True)
class Row:
    """Samples of one operator.

    ``reference``: NumPy function of the same arguments (a tuple for several results), or None when there is nothing independent to compare with.
    ``grad``: positions or names of arguments to differentiate (None: all floating tensors; (): none). ``second``: whether the second
    order is checked too. ``values``: whether values are determined (False: random or uninitialised). ``dtypes``: whether the samples are also run in
    other dtypes against PyTorch; ``strides``: whether the strides of the result are PyTorch's.
    ``torch``: overload name there when it differs, or None when PyTorch has no such operator. ``rtol``: of the reference.
    ``arbitrary``: whether any values of these shapes will do (False: the samples' own; singular matrices are errors, factors aren't unique).
    ``through``: what is differentiated where it isn't the results themselves, a function ``(op, *args, **kwargs)``: eigenvectors have a phase that
    nothing determines, and a Cholesky factor reads one half of its matrix.
    """

    name: str
    calls: tuple[Call, ...]
    reference: Callable | None = None
    grad: Any = None
    second: bool = True
    values: bool = True
    dtypes: bool = False
    strides: bool = True
    torch: str | None = ""
    rtol: float = 1e-10
    through: Callable | None = None
    arbitrary: bool = True

    @property
    def op(self) -> OpOverload:
        return operator(self.name)


TABLE: dict[str, Row] = {}


def row(names: str, calls, reference=None, **kw) -> None:
    """Add a row for each of the (space-separated) operators; the reference may be a list, one for each."""
    names = names.split()
    for k, name in enumerate(names):
        if name in TABLE:
            raise ValueError(f"{name} has samples already")
        ref = reference[k] if isinstance(reference, (list, tuple)) else reference
        TABLE[name] = Row(name, tuple(calls() if callable(calls) else calls), ref, **kw)


def operator(name: str) -> OpOverload:
    """``add.Tensor`` or ``sum`` (the default overload) of aten; another namespace with ``::``."""
    ns, _, rest = name.rpartition("::")
    base, _, overload = rest.partition(".")
    packet = getattr(namespace(ns or "aten"), base)
    if isinstance(packet, Unbuilt):
        raise AttributeError(f"{name} is not built")
    return getattr(packet, overload or "default")


def load() -> dict[str, Row]:
    """All rows by operator name."""
    from . import tables  # noqa: F401

    return TABLE


def every_operator() -> list[OpOverload]:
    """Every operator of aten of the families that load at import and of those in ``SAMPLED``; in-place and out= variants aren't counted, nor are
    views in place (whose samples are those of the views; tests/dynamo/test_inplace_views.py). The other families have PyTorch's database as their
    samples (tools/op_coverage.py, tests/ops/test_database.py)."""
    for family in SAMPLED:
        load_family(family)
    others = {name for family, names in FAMILIES.items() if family not in SAMPLED for name in names.split()}
    return [
        op
        for name, packet in list(namespaces["aten"]._packets.items())
        for op in packet._overloads.values()
        if op.kind not in ("inplace", "out") and name not in others and not _view_in_place(op, name)
    ]


def _view_in_place(op, name: str) -> bool:
    plain = namespaces["aten"]._packets.get(name.removesuffix("_")) if name.endswith("_") else None
    return plain is not None and op._schema.is_mutable and op.kind == "composite"


def to_tensors(x, convert=_C.from_array):
    """``x`` with every ndarray replaced by ``convert(copy)``; the copy keeps the strides."""
    if isinstance(x, np.ndarray):
        return convert(copy_strided(x))
    if isinstance(x, (list, tuple)):
        return type(x)(to_tensors(y, convert) for y in x)
    if isinstance(x, dict):
        return {k: to_tensors(v, convert) for k, v in x.items()}
    return x


def copy_strided(a: np.ndarray) -> np.ndarray:
    """A copy with the same strides (gaps and overlaps included)."""
    if a.flags.c_contiguous or a.size == 0:
        return np.array(a, order="C", copy=True)
    span = sum((n - 1) * s for n, s in zip(a.shape, a.strides)) + a.itemsize
    memory = np.zeros(span // a.itemsize, a.dtype)
    out = np.lib.stride_tricks.as_strided(memory, a.shape, a.strides)
    out[...] = a
    return out


# ---- arrays for samples --------------------------------------------------------------------------------------------------

_rng = np.random.default_rng(20240229)


def f(*shape) -> np.ndarray:
    """Normal values."""
    return np.asarray(_rng.standard_normal(shape))


def pos(*shape) -> np.ndarray:
    """Values in (0.5, 2)."""
    return np.asarray(_rng.uniform(0.5, 2.0, shape))


def unit(*shape) -> np.ndarray:
    """Values in (-0.9, 0.9)."""
    return np.asarray(_rng.uniform(-0.9, 0.9, shape))


def apart(*shape) -> np.ndarray:
    """Distinct values at least 0.1 apart, none within 0.05 of a multiple of 1/2: no ties, no kinks."""
    n = int(np.prod(shape))
    values = (np.arange(n) - n // 2) * 0.61 + 0.13
    return np.asarray(_rng.permutation(values).reshape(shape))


def i(*shape, low=0, high=5) -> np.ndarray:
    """int64 in [low, high)."""
    return np.asarray(_rng.integers(low, high, shape))


def b(*shape) -> np.ndarray:
    """Truth values."""
    return np.asarray(_rng.integers(0, 2, shape).astype(bool))


def c(*shape) -> np.ndarray:
    """complex128."""
    return np.asarray(_rng.standard_normal(shape) + 1j * _rng.standard_normal(shape))


def T(a: np.ndarray) -> np.ndarray:
    """Transposed in memory: the same shape reversed, non-contiguous."""
    return a.T


def gaps(a: np.ndarray) -> np.ndarray:
    """Every other element of a wider array along the last dimension: the same values with stride 2."""
    wide = np.zeros((*a.shape[:-1], a.shape[-1] * 2), a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]
