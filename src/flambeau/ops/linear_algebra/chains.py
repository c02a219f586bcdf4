"""Products of several matrices, in the order that costs least."""

from __future__ import annotations

import itertools

import numpy as np

from ...core.declare import composite
from ...core.operator import namespace

aten = namespace("aten")


@composite("linalg_multi_dot(Tensor[] tensors) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_multi_dot(tensors):
    """The product in the order that needs the fewest operations (T. Cormen et al., "Introduction to Algorithms", 15.2)."""
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    first, *middle, last = tensors
    if not 1 <= first.ndim <= 2:
        raise RuntimeError(f"multi_dot(): the first tensor must be 1D or 2D but got {first.ndim}D")
    if not 1 <= last.ndim <= 2:
        raise RuntimeError(f"multi_dot(): the last tensor must be 1D or 2D but got {last.ndim}D")
    for k, t in enumerate(middle, 1):
        if t.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {k} must be 2D but got {t.ndim}D")
    for k, t in enumerate(tensors):
        if t.dtype is not first.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {first.dtype} and tensor {k} {t.dtype}"
            )
    ms = [aten.unsqueeze.default(first, 0) if first.ndim == 1 else first, *middle]
    ms.append(aten.unsqueeze.default(last, 1) if last.ndim == 1 else last)
    for k, (a, b) in enumerate(itertools.pairwise(ms)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {k} and {k + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied"
            )
    out = _chain(ms)
    if first.ndim == 1:
        out = aten.squeeze.dim(out, 0)
    return aten.squeeze.dim(out, -1) if last.ndim == 1 else out


def _chain(ms):
    sizes = [m.shape[0] for m in ms] + [ms[-1].shape[1]]
    known = all(type(s) is int for s in sizes) and max(sizes, default=0) ** 3 * len(ms) < 1 << 62
    return _product(ms, (_cuts if known else _cuts_of_symbols)(sizes, len(ms)))


def _cuts_of_symbols(sizes: list, n: int) -> dict[tuple[int, int], int]:
    """Where the product of the matrices i to j is cut. Sizes that vary are compared, two at a time."""
    cost, cut = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], cut[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return cut


def _cuts(sizes: list[int], n: int) -> np.ndarray:
    """The same for known sizes: all products of a length at once."""
    size = np.array(sizes, np.int64)
    cost, cut = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    for length in range(1, n):
        i = np.arange(n - length)
        j, k = i + length, i[:, None] + np.arange(length)
        costs = cost[i[:, None], k] + cost[k + 1, j[:, None]]
        costs += size[i, None] * size[k + 1] * size[j + 1, None]
        best = costs.argmin(1)
        cost[i, j], cut[i, j] = costs[i, best], i + best
    return cut


def _product(ms, cut):
    """Of all matrices, cut where it is cheapest: parts are made when both of their parts are, without recursion."""
    made, todo = [], [(0, len(ms) - 1, False)]
    while todo:
        i, j, ready = todo.pop()
        if i == j:
            made.append(ms[i])
        elif ready:
            right = made.pop()
            made.append(aten.mm.default(made.pop(), right))
        else:
            k = int(cut[i, j])
            todo += [(i, j, True), (k + 1, j, False), (i, k, False)]
    return made[0]


@composite("chain_matmul(Tensor[] matrices) -> Tensor", variants="", has_out=True)
def chain_matmul(matrices):
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead")
    return _chain(list(matrices))
