"""An array behind a graph break in a function that is differentiated is an array to the program: its text, copies, pickles, iteration."""

import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as torch
from flambeau.compiler import graph_break

READS = {
    "repr": repr,
    "str": str,
    "f-string": lambda b: f"{b} {b[0]:.2f}",
    "percent": lambda b: "%s %r" % (b, [b]),  # noqa: UP031
    "class": lambda b: b.__class__ is np.ndarray,
    "pickle": lambda b: (type(pickle.loads(pickle.dumps(b))) is np.ndarray, pickle.dumps(b)),
    "array2string": lambda b: (np.array2string(b), np.array_repr(b), np.array_str(b)),
    "save": lambda b: np.save(io.BytesIO(), b),
    "copy": lambda b: (copy.copy(b) * 2).tolist(),
    "deepcopy": lambda b: copy.deepcopy([b, {"k": b}])[1]["k"].tolist(),
    "a loop": lambda b: [float(v) for v in b],
    "unpacked": lambda b: (lambda u, v: repr(u + v))(*b),
    "max": max,
    "transposed": lambda b: repr(b.T),
    "view": lambda b: (b.view(np.int64).tolist(), b.view().tolist()),
    "buffer": lambda b: bytes(memoryview(b)),
    "shares memory": lambda b: np.shares_memory(b, b[:1]),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", READS)
def test_reads(name, backend):
    read = READS[name]

    def f(x):
        b = np.array([1.23456789, 2]) * 3
        y = x + 1
        graph_break()
        return y, read(b)

    x = torch.ones(2, requires_grad=True)
    y, got = torch.compile(f, backend=backend)(x)
    assert repr(got) == repr(f(x)[1])
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "read", [copy.copy, copy.deepcopy, lambda b: b.view(), list], ids=["copy", "deepcopy", "view", "list"]
)
def test_copies_keep_the_gradient(read, backend):
    def f(x):
        b = torch.compiler.disable(read, reason="as plain code reads it")(np.sin(x))
        return b[0] * 2 + b[1]

    compiled = torch.compile(torch.compiler.wrap_numpy(f), backend=backend)
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    compiled(x).backward()
    assert x.grad.tolist() == pytest.approx([2 * np.cos(0.5), np.cos(1.0)])
