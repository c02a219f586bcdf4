"""An index or a slice of one dimension is made without a call plan: every number gives what NumPy gives, and autograd knows where it came from."""

import itertools

import numpy as np
import pytest

import flambeau as torch

aten = torch.ops.aten
ARRAY = np.arange(24.0, dtype="float32").reshape(4, 3, 2)[:, ::-1]


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_every_index_and_slice(dim):
    x = torch.from_numpy(ARRAY.copy()).transpose(0, 2).transpose(0, 2)
    n, whole = ARRAY.shape[dim], [slice(None)] * 3
    for i in range(-n, n):
        got = aten.select.int(x, dim, i)
        assert np.array_equal(got.numpy(), ARRAY.take(i, dim)) and got._base is not None
    ends = [None, *range(-n - 1, n + 2), 2**63 - 1]
    for start, stop, step in itertools.product(ends, ends, (1, 2, 3)):
        got, keys = aten.slice.Tensor(x, dim, start, stop, step), whole.copy()
        keys[dim] = slice(start, stop, step)
        want = ARRAY[tuple(keys)]
        assert got.shape == want.shape and np.array_equal(got.numpy(), want), (start, stop, step)
        assert (
            got.storage_offset()
            == aten.slice.Tensor(torch.empty_like(x, device="meta"), dim, start, stop, step).storage_offset()
        )


def test_what_is_wrong_is_told():
    x = torch.ones(3, 2)
    for error, text, run in (
        (IndexError, "index 3 out of range", lambda: aten.select.int(x, 0, 3)),
        (IndexError, "Dimension out of range", lambda: aten.select.int(x, 2, 0)),
        (IndexError, "Dimension out of range", lambda: aten.slice.Tensor(x, -3, 0, 1)),
        (RuntimeError, "slice step must be positive", lambda: aten.slice.Tensor(x, 0, 0, 3, 0)),
        (IndexError, "0-dim", lambda: aten.select.int(torch.tensor(1.0), 0, 0)),
    ):
        with pytest.raises(error, match=text):
            run()


def test_gradients_and_writes_go_through():
    x = torch.arange(12.0).reshape(4, 3).requires_grad_()
    total = sum(x[i, j] * (i + j) for i in range(4) for j in range(3)) + x[1:3, ::2].sum()
    total.backward()
    want = np.add.outer(np.arange(4.0), np.arange(3.0))
    want[1:3, ::2] += 1
    assert np.array_equal(x.grad.numpy(), want)
    y = torch.zeros(4, 3)
    for i in range(4):
        y[i][1:].add_(i)
    assert y.tolist() == [[0, i, i] for i in range(4)] and y._version == 4


@pytest.mark.parametrize("offset", [0, 1])
def test_strides_stay_inside_the_memory(offset):
    x = torch.arange(12.0)[offset:]
    for _ in range(3):
        for sizes, strides, first in [
            ((20,), (1,), 0),
            ((3,), (-1,), 2),
            ((2,), (1,), 11),
            ((2, 2), (1,), 0),
            ((2**62, 2), (4, 1), 0),
        ]:
            with pytest.raises(RuntimeError, match="out of bounds|Negative strides|mismatch in length"):
                torch.as_strided(x, sizes, strides, first)
        assert torch.as_strided(x, (2, 3), (1, 4), 1).tolist() == [[1, 5, 9], [2, 6, 10]]


def test_pairs_begin_at_whole_numbers():
    for _ in range(3):
        even, odd = torch.arange(12.0)[2:10].view(4, 2), torch.arange(12.0)[1:9].view(4, 2)
        assert torch.view_as_complex(even).tolist() == [2 + 3j, 4 + 5j, 6 + 7j, 8 + 9j]
        with pytest.raises(RuntimeError, match="divisible by 2"):
            torch.view_as_complex(odd)


def test_views_of_another_dtype_are_written_through():
    for _ in range(3):
        leaf = torch.ones(4, requires_grad=True)
        x = leaf.clone()
        torch.view_as_complex(x.view(2, 2)).mul_(2j)
        torch.view_as_real(torch.view_as_complex(x.view(2, 2))).add_(1.0)
        x.sum().backward()
        assert leaf.grad.tolist() == [2, -2, 2, -2] and x.tolist() == [-1, 3, -1, 3]
