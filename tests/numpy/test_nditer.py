"""np.nditer in captured code: elements, places, writes and errors are NumPy's."""

import numpy as np
import pytest

import flambeau as torch

A = np.arange(6.0).reshape(2, 3)
F = np.asfortranarray(A + 1)
ROW = np.array([10.0, 20.0, 30.0])


def total(a):
    s = 0.0
    for x in np.nditer(a):
        s = s + x
    return s


def in_order(a):
    return np.stack([x * 2 for x in np.nditer(a)])


def in_columns(a):
    return np.stack([np.array(x) for x in np.nditer(a, order="F")])


def doubled(a):
    a = a.copy()
    with np.nditer(a, op_flags=["readwrite"]) as it:
        for x in it:
            x[...] = 2 * x
    return a


def places(a):
    it = np.nditer(a, flags=["multi_index"])
    return [(it.multi_index, np.array(x)) for x in it]


def while_not_finished(a):
    it, out = np.nditer(a, flags=["multi_index"]), np.zeros(a.shape)
    while not it.finished:
        i, j = it.multi_index
        out[i, j] = it[0] * (i - j)
        it.iternext()
    return out


def pairs(a, b):
    return np.array([x * y for x, y in np.nditer([a, b])])


def into_another(a, b):
    c = np.zeros_like(a)
    for x, y, z in np.nditer([a, b, c], op_flags=[["readonly"], ["readonly"], ["writeonly"]]):
        z[...] = x - y
    return c


def facts(a):
    it = np.nditer(a, flags=["multi_index"])
    return it.shape, it.ndim, it.itersize, it.nop, it.finished, it.iterindex


@pytest.mark.parametrize(
    "fn, args",
    [*((f, (a,)) for f in (total, in_order, in_columns, doubled, places, while_not_finished, facts) for a in (A, F, A[:, ::2])),
     *((f, (A, b)) for f in (pairs, into_another) for b in (A + 1, ROW, A[:1]))],
)  # fmt: skip
def test_as_numpy(fn, args):
    torch._dynamo.reset()  # sizes are known
    want = fn(*args)
    compiled = torch.compile(fn, fullgraph=True, backend="eager")
    for _ in range(2):
        got = compiled(*args)
        assert type(got) is type(want)
        np.testing.assert_equal(got, want)


def test_an_element_that_is_only_read_refuses_writes():
    def f(a):
        for x in np.nditer(a):
            x[...] = 1
        return a

    for call in (f, torch.compile(f, backend="eager")):
        with pytest.raises(ValueError, match="read-only"):
            call(A.copy())


def test_an_iterator_that_leaves_the_graph_goes_on():
    def f(a):
        it = np.nditer(a * 2)
        torch._dynamo.graph_break()
        return [float(x) for x in it]

    assert torch.compile(f, backend="eager")(A) == f(A)
