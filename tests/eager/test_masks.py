"""Masks: what is taken and written under them, and the places of what isn't zero, beside NumPy, called often enough that native code does it."""

import numpy as np
import pytest

import flambeau as torch

DTYPES = (
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int16,
    torch.bool,
    torch.bfloat16,
    torch.complex64,
    torch.uint8,
)
SHAPES = [(5,), (4, 6), (3, 4, 5), (2, 1, 3), (0, 3), (3, 0)]


def bits(t):
    return t.view(torch.int16).numpy() if t.dtype is torch.bfloat16 else t.numpy()


def drawn(shape, dtype):
    return (torch.rand(*shape) * 4).to(dtype) * (torch.rand(*shape) < 0.6).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_beside_numpy(shape, dtype):
    torch.manual_seed(1)
    plain = drawn(shape, dtype)
    for x in (plain, plain.transpose(0, -1)):
        for part in [*range(1, x.ndim + 1)] * 2:
            for p in (0.0, 0.5, 1.1):
                mask = torch.rand(*x.shape[:part]) < p
                found = [x[mask] for _ in range(4)]
                assert all(np.array_equal(bits(r), bits(x)[mask.numpy()]) for r in found)
                assert len({r.stride() for r in found}) == 1
                values = torch.tensor(3).to(dtype)
                for given in (values, values.reshape(1), 3):
                    y, z = x.clone(), x.clone()
                    y[mask] = given
                    bits(z)[mask.numpy()] = bits(values)
                    assert np.array_equal(bits(y), bits(z)) and y._version == x.clone()._version + 1
        if dtype is not torch.bfloat16:
            places = [torch.nonzero(x) for _ in range(4)] + [torch.argwhere(x) for _ in range(4)]
            assert all(np.array_equal(r.numpy(), np.argwhere(x.numpy())) for r in places)
            assert len({r.stride() for r in places}) == 1
        mask = torch.rand(*x.shape) < 0.5
        assert all(np.array_equal(bits(x.masked_select(mask)), bits(x)[mask.numpy()]) for _ in range(4))


def test_errors():
    x = torch.rand(4, 6)
    for shape in ((5,), (4, 5), (4, 6, 1)):
        for _ in range(3):
            with pytest.raises(IndexError, match="mask|too many"):
                x[torch.ones(shape, dtype=torch.bool)]
            with pytest.raises(IndexError, match="mask|too many"):
                x[torch.ones(shape, dtype=torch.bool)] = 1.0


def test_masks_among_other_keys():
    x = torch.arange(24.0).reshape(2, 3, 4)
    a, b, c = (
        torch.tensor([True, False, True]),
        torch.tensor([[True, False, True], [False] * 3]),
        torch.rand(2, 3, 4) > 0.5,
    )
    n = x.numpy()
    keys = [
        (slice(None), a),
        (0, a),
        (..., torch.tensor([True, False, False, True])),
        (None, b),
        (b, 1),
        (b, slice(1, 3)),
        (c,),
        (None, c),
        (b, ...),
    ]
    for key in keys:
        expected = n[tuple(k.numpy() if isinstance(k, torch.Tensor) else k for k in key)]
        for _ in range(3):
            assert np.array_equal(x[key].numpy(), expected)


def test_large_and_counts():
    """Above the sizes from which other operators run compiled kernels, rows of several elements, and counts by turns."""
    x = drawn((300, 250), torch.float32)
    mask = x > 0
    for part in (mask, mask[:, 0]):
        assert all(np.array_equal(x[part].numpy(), x.numpy()[part.numpy()]) for _ in range(3))
    assert all(np.array_equal(x.nonzero().numpy(), np.argwhere(x.numpy())) for _ in range(3))
    numbers = np.random.default_rng(0).integers(0, 90, 70001)
    for n in (0, 1, 3, 359, 360, 363, 70001):
        for least in (0, 5, 91, 3000):
            want = np.bincount(numbers[:n], minlength=least)
            for _ in range(3):
                assert np.array_equal(torch.bincount(torch.from_numpy(numbers[:n]), minlength=least).numpy(), want)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="non-negative"):
            torch.bincount(torch.tensor([1, -1]), minlength=4)
