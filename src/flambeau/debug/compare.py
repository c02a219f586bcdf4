"""Do two runs of a graph agree? With a float64 run as the judge where one can be had."""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau as torch
from flambeau.base import pytree
from flambeau.dynamo.exc import AccuracyError

__all__ = ["AccuracyError", "clone_inputs", "difference", "reference", "run_plainly"]


def clone_inputs(inputs) -> list[Any]:
    """Tensors copied with their strides (leaves that require gradients stay so); everything else as it is."""
    return [_clone(x) if isinstance(x, torch.Tensor) else x for x in inputs]


def _clone(t):
    out = t.detach().clone()
    return out.requires_grad_(t.requires_grad) if t.requires_grad else out


def run_plainly(gm, inputs):
    """The graph run operator by operator on copies of ``inputs``, without recording gradients: (leaves of the result, the copies)."""
    copies = clone_inputs(inputs)
    with torch.no_grad():
        out = gm.forward(*copies)
    return pytree.tree_flatten(out)[0], copies


def reference(gm, inputs) -> list[Any] | None:
    """The leaves of the result from float64 inputs, or None when the graph doesn't run on them (it names a dtype, say)."""

    def widen(x):
        return x.detach().to(torch.float64) if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    try:
        return run_plainly(gm, [widen(x) for x in inputs])[0]
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None


def difference(got, want, judge=None, tolerance: float = 1e-3) -> str | None:
    """What is different between two flat results, as text; None when they agree.

    ``judge``: the same result in float64. With it ``got`` may be as far from it as twice what ``want`` is, plus ``tolerance`` / 10 in the
    root mean square; without it values may differ by ``tolerance``, relative and absolute. nan equals nan, integers are compared exactly.
    """
    if len(got) != len(want):
        return f"{len(got)} results instead of {len(want)}"
    for i, (a, b) in enumerate(zip(got, want)):
        text = _different(a, b, judge[i] if judge is not None else None, tolerance)
        if text is not None:
            return f"result {i}: {text}" if len(got) > 1 else text
    return None


def _different(a, b, judge, tolerance) -> str | None:
    if not isinstance(b, torch.Tensor):
        return None if isinstance(a, torch.Tensor) or a == b or (a != a and b != b) else f"{a!r} instead of {b!r}"
    if not isinstance(a, torch.Tensor):
        return f"{type(a).__name__} instead of a tensor"
    if a.dtype is not b.dtype or tuple(a.shape) != tuple(b.shape):
        return f"{a.dtype} {list(a.shape)} instead of {b.dtype} {list(b.shape)}"
    x, y = (t.detach().numpy() for t in (a, b))
    if b.dtype.category < 2:
        return None if np.array_equal(x, y) else f"{int((x != y).sum())} of {x.size} elements differ"
    kind = np.complex128 if b.dtype.is_complex else np.float64
    x, y = x.astype(kind), y.astype(kind)
    if isinstance(judge, torch.Tensor) and tuple(judge.shape) == tuple(b.shape):
        z = judge.detach().numpy().astype(kind)
        finite = np.isfinite(z)
        if np.array_equal(np.isfinite(x), finite) and np.array_equal(np.isfinite(y), finite):
            error, allowed = _rms(x[finite], z[finite]), 2 * _rms(y[finite], z[finite]) + tolerance / 10
            return (
                None
                if error <= allowed
                else f"error {error:.3g} against float64, plain code {_rms(y[finite], z[finite]):.3g}"
            )
    if np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True):
        return None
    both = np.isfinite(x) & np.isfinite(y)
    largest = float(np.abs(x - y)[both].max()) if both.any() else float("inf")
    bad = int((~np.isclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)).sum())
    return f"{bad} of {x.size} elements differ, by {largest:.3g} at most"


def _rms(x, y) -> float:
    return float(np.sqrt(np.mean(np.abs(x - y) ** 2))) if x.size else 0.0
