"""Which function of NumPy's is which here."""

from __future__ import annotations

import numpy as np

from .. import gathers, places, shapes
from .concatenation import array, asarray, concatenate, hstack, stack, vstack
from .creation import arange, eye, full
from .moving import flip, flipped_axes, flipped_axis, roll
from .products import cross, outer, tensordot
from .vectors import allclose, cumsum, diff, isclose, norm, polyval, variance

__all__ = ["FUNCTIONS"]

FUNCTIONS = {
    np.eye: eye, np.identity: lambda e, place, n, dtype=None: eye(e, place, n, dtype=dtype), np.full: full, np.full_like: full,
    np.linalg.norm: norm, np.allclose: allclose, np.isclose: isclose, np.cross: cross, np.polyval: polyval,
    np.concatenate: concatenate, np.hstack: hstack, np.vstack: vstack, np.stack: stack, np.roll: roll, np.tensordot: tensordot, np.outer: outer,
    np.diff: diff, np.unravel_index: places.unravel_index, np.ravel_multi_index: places.ravel_multi_index,
    np.cumsum: cumsum, np.std: variance(True), np.var: variance(False), np.nonzero: gathers.nonzero, np.count_nonzero: gathers.count_nonzero,
    np.flip: flip(flipped_axes), np.flipud: flip(flipped_axis(0)), np.fliplr: flip(flipped_axis(1)),
    np.array: array, np.asarray: asarray, np.arange: arange, np.transpose: shapes.transpose, np.ravel: shapes.ravel,
    np.reshape: shapes.reshape, np.ndarray.flatten: shapes.flatten,
}  # fmt: skip
"""NumPy's function -> function(emitter, place in the code, *arguments)."""
