"""The differential check: plain Python and captured code must agree in value, type, mutation of arguments and raised error."""

import collections
import copy
import types

import numpy as np

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile
from flambeau.dynamo.config import config


class Graphs:
    """A backend that records graphs and runs them as they are."""

    def __init__(self):
        self.gms = []

    def __call__(self, gm, example_inputs):
        gm.graph.lint()
        self.gms.append(gm)
        return gm.forward

    def names(self):
        return [
            [
                n.target if isinstance(n.target, str) else n.target.__name__
                for n in g.graph.nodes
                if n.op.startswith("call")
            ]
            for g in self.gms
        ]


def near(a: np.ndarray, b: np.ndarray, ulps: float) -> bool:
    """Whether two arrays of one shape and dtype hold the same values.

    Bit for bit (payloads of NaN aside) with ``ulps`` 0. Else, for floating values: NaN and infinities are in the same places, zeros have the
    same sign where both have one, and nothing is further apart than ``ulps`` units in the last place of the largest magnitude among the finite
    elements, or of 1: what fused kernels may do to a sum's order, a fused multiply-add or a function that is rounded otherwise. The units are
    float32's where the dtype is wider: the operands may have been float32.
    """
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    if a.dtype.kind == "c":
        return near(a.real, b.real, ulps) and near(a.imag, b.imag, ulps)
    finite, zero = np.isfinite(a), (a == 0) & (b == 0)
    if not np.array_equal(np.signbit(a[zero]), np.signbit(b[zero])):
        return False
    if not ulps or not np.array_equal(finite, np.isfinite(b)):
        return np.array_equal(a, b, equal_nan=True)
    largest = np.max(np.abs([a[finite], b[finite]]), initial=1.0)
    unit = max(np.finfo(a.dtype).eps, np.finfo("float32").eps)
    far = np.abs(a[finite].astype("float64") - b[finite]) > ulps * unit * largest
    return not far.any() and np.array_equal(a[~finite], b[~finite], equal_nan=True)


def same(a, b, ulps: float = 0):
    if isinstance(a, torch.Tensor):
        return (
            isinstance(b, torch.Tensor)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and a.requires_grad == b.requires_grad
            and near(a.detach().numpy(), b.detach().numpy(), ulps)
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.allclose(a, b)
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(same(x, y, ulps) for x, y in zip(a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k], ulps) for k in a)
    if isinstance(a, (types.FunctionType, types.MethodType)):
        return a.__name__ == b.__name__
    if hasattr(a, "__dict__") and not isinstance(a, type):
        return same(vars(a), vars(b), ulps)
    return a == b or (isinstance(a, float) and a != a and b != b)


def outcome(fn, args, kwargs):
    try:
        return "value", fn(*args, **kwargs)
    except Exception as e:
        return "error", (type(e).__name__, str(e))


def check(fn, *args, graphs=None, ops=None, fullgraph=False, calls=2, backend=None, **kwargs):
    """Run ``fn`` plainly and compiled, ``calls`` times, on copies of the arguments. Returns the recording backend."""
    g = Graphs()
    compiled = compile(fn, backend=backend or g, fullgraph=fullgraph)
    old = _frame.set_strict_guards(True)
    try:
        with config.patch(strict_capture=True):
            for _ in range(calls):
                (a1, k1), (a2, k2) = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
                want, got = outcome(fn, a1, k1), outcome(compiled, a2, k2)
                assert want[0] == got[0], (want, got)
                assert same(want[1], got[1]), (want, got)
                assert same(a1, a2), ("arguments", a1, a2)
                assert same(k1, k2), ("keyword arguments", k1, k2)
    finally:
        _frame.set_strict_guards(old)
    if graphs is not None:
        assert len(g.gms) == graphs, g.names()
    if ops is not None:
        assert g.names() == ops, g.names()
    return g
