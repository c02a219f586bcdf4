"""Points between numbers in integer dtypes: the ends become integers first, as PyTorch's kernels have it (recorded from 2.13); and the
bounds of logit's clamp."""

import pytest

import flambeau as torch

T = torch.tensor
inf, nan = float("inf"), float("nan")
ROWS = [
    (lambda: torch.linspace(-2, 1.5, 8, dtype=torch.int64), [-2, -1, -1, 0, 0, 0, 0, 1]),
    (lambda: torch.linspace(0.7, 9.9, 4, dtype=torch.int32), [0, 3, 6, 9]),
    (lambda: torch.linspace(0.7, 9.9, 1, dtype=torch.int32), [0]),
    (lambda: torch.linspace(-2, 1, 3, dtype=torch.uint8), [254, 127, 1]),
    (lambda: torch.linspace(5, 1, 3, dtype=torch.uint8), [5, 3, 1]),
    (lambda: torch.linspace(T(-0.7), 1.5, 4, dtype=torch.int32), [0, 0, 0, 1]),
    (lambda: torch.linspace(-0.7, T(1.5), 4, dtype=torch.int32), [0, 0, 0, 1]),
    (lambda: torch.linspace(T(0.7), T(9.9), 4, dtype=torch.int32), [0, 3, 6, 9]),
    (lambda: torch.logspace(0.7, 2.9, 4, dtype=torch.int32), [1, 4, 21, 100]),
    (lambda: torch.logspace(T(0.7), 2.9, 4, dtype=torch.int32), [1, 4, 21, 100]),
    (lambda: torch.logspace(0.7, 9.9, 1, dtype=torch.int32), [5]),
    (lambda: torch.logspace(-1, 3, 3, dtype=torch.uint8), [0, 0, 232]),
    (lambda: torch.range(0.7, 9.9, 2.5, dtype=torch.int32), [0, 2, 4, 6, 8]),
    (lambda: torch.range(-1, 4, 2, dtype=torch.uint8), [255, 1, 3]),
    (lambda: torch.range(0, 4, out=torch.empty(2, dtype=torch.int64)), [0, 1, 2, 3, 4]),
    (lambda: torch.logit(T([0.0, 0.5, 0.9]), 1.0), [inf, inf, inf]),
    (lambda: torch.logit(T([0.5, 0.9]), nan), [0.0, 2.1972243785858154]),
]


@pytest.mark.filterwarnings("ignore:torch.range")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_points(row, compiled):
    fn, expected = ROWS[row]
    found = (torch.compile(fn) if compiled else fn)()
    assert torch.allclose(found.double(), T(expected, dtype=torch.float64), atol=1e-6)


def test_range_writes_out():
    out = torch.empty(0)
    assert torch.range(1, 3, out=out) is out and out.tolist() == [1.0, 2.0, 3.0]


def test_expanded_scalar_strides():
    """A new dimension of a tensor without dimensions has no step, whatever its size."""
    for fn in (lambda x: x.expand(1, 1), lambda x: x.expand(2, 1, 1)):
        for f in (fn, torch.compile(fn)):
            assert set(f(T(1.0)).stride()) == {0}


def test_new_tensor_of_a_tensor():
    """Made of a tensor, too, it has the dtype of what it is a method of."""
    assert T([1]).new_tensor(T(1.5)).dtype is torch.int64
    assert T([1.5]).new_tensor(T(1)).dtype is torch.float32
    assert T([1.5]).new_tensor(T(1), dtype=torch.int8).dtype is torch.int8
