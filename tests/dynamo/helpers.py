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


def same(a, b):
    if isinstance(a, torch.Tensor):
        return (
            isinstance(b, torch.Tensor)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and np.array_equal(a.detach().numpy(), b.detach().numpy(), equal_nan=True)
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.allclose(a, b)
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (types.FunctionType, types.MethodType)):
        return a.__name__ == b.__name__
    if hasattr(a, "__dict__") and not isinstance(a, type):
        return same(vars(a), vars(b))
    return a == b


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
