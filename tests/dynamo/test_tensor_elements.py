"""``torch.tensor`` of tensors and numbers without values: what eager refuses of their values is refused by compiled code, captured whole, as well."""

import numpy as np
import pytest
from programs import agree, attempt

import flambeau as torch

T = torch.tensor
CALLS = {
    "unsigned": (lambda x: T([x[0], x[1]], dtype=torch.uint8), T([3, 255]), T([3, 300]), T([-255, 2]), T([-256, 2])),
    "nested": (lambda x: T([[x[0], 1], (2, x[1])], dtype=torch.int8), T([3, 127]), T([3, 128]), T([-129, 2])),
    "half the width": (lambda x: T((x[0], 1), dtype=torch.int32), T([2**31 - 1]), T([2**31]), T([-(2**31) - 1])),
    "no negative ones": (lambda x: T([x[0]], dtype=torch.uint64), T([3]), T([-1])),
    "signed of unsigned": (lambda x: T([x[0]], dtype=torch.int8), T([127], dtype=torch.uint8), T([128], dtype=torch.uint8)),
    "real of complex": (lambda x: T([x[0]], dtype=torch.float32), T([2 + 0j]), T([2 + 1j])),
    "truth of floats": (lambda x: T([x[0]], dtype=torch.bool), T([2.0])),
    "truth of integers": (lambda x: T([x[0]], dtype=torch.bool), T([2]), T([0])),
    "items": (lambda x: T([x.item(), 1], dtype=torch.uint8), T(255), T(256)),
    "an item": (lambda x: T(x.item(), dtype=torch.int8), T(-128), T(-129)),
    "sizes": (lambda x: T([x.size(0)], dtype=torch.int8), torch.ones(3), torch.ones(127), torch.ones(128)),
    "an array of no dimensions": (lambda x: T([x.numpy()]), T(1.0)),
    "a number of NumPy": (lambda x: T([x.numpy()[0]]), T([1.0])),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ("eager", "inductor"))
@pytest.mark.parametrize("name", CALLS)
def test_refused_by_value(name, backend):
    f, *values = CALLS[name]

    def prog(C, _):
        g = C(f)
        return [attempt(g, v) for v in (*values, values[0])]

    agree(prog, (backend,))


@pytest.mark.parametrize("name", ("unsigned", "nested", "real of complex", "items"))
def test_checks_are_in_the_graph(name):
    f, good, bad, *_ = CALLS[name]
    g = torch.compile(f, fullgraph=True)
    assert torch.equal(g(good), f(good))
    with pytest.raises(RuntimeError, match="cannot be converted to type"):
        g(bad)


def test_arrays_of_no_dimensions_are_no_elements():
    g = torch.compile(lambda x: T([np.array(1.0)]) + x, backend="eager")
    with pytest.raises(TypeError, match="len\\(\\) of unsized object"):
        g(torch.ones(1))


@pytest.mark.parametrize(
    "f", (lambda x: x.numpy(), lambda x: np.asarray(x), lambda x: x.numpy() + 1, lambda x: x.numpy()[()])
)
def test_arrays_of_tensors_without_dimensions_are_arrays(f):
    def g(x):
        found = f(x)
        return found, type(found), x + 1

    agree(lambda C, torch: C(g)(torch.tensor(1.0)))


FILLED = {
    "an element": lambda x, v: x.__setitem__(0, v),
    "a mask": lambda x, v: x.__setitem__(x == 0, v),
    "fill_": lambda x, v: x.fill_(v),
    "masked_fill": lambda x, v: x.masked_fill(x == 0, v),
    "masked_fill_": lambda x, v: x.masked_fill_(x == 0, v),
    "index_fill": lambda x, v: x.index_fill(0, T([0]), v),
    "scatter": lambda x, v: x.scatter(0, T([0]), v),
    "full": lambda x, v: torch.full((2,), v, dtype=x.dtype),
    "new_full": lambda x, v: x.new_full((2,), v),
}


@pytest.mark.parametrize("dtype", (torch.uint8, torch.int8, torch.int32))
@pytest.mark.parametrize("name", FILLED)
def test_numbers_that_vary_are_refused_as_in_eager(name, dtype):
    """A number that a graph takes as an operand: a fraction below 0 became 255."""

    def f(x, v):
        out = FILLED[name](x, v)
        return x if out is None else out

    g = torch.compile(f)
    for v in (1.5, 2.5, 3.5, -1.5, 1e10, 4.5, float("nan")):
        results = []
        for run in (f, g):
            x = torch.zeros(3, dtype=dtype)
            try:
                results.append((run(x, v).tolist(), x.tolist()))
            except RuntimeError as e:
                results.append((str(e), x.tolist()))
        assert results[0] == results[1]
