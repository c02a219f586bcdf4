"""Writes under a mask: one element for all places or one for each, of each item size, in memory of each kind; compiled ones of complex numbers too."""

import numpy as np
import pytest

import flambeau as torch

DTYPES = [np.bool_, np.int8, np.int16, np.float32, np.int64, np.complex64, np.complex128]


def _arrays(dtype, shape=(41, 5)):
    draw = np.random.default_rng(0)
    x = (draw.integers(-9, 9, shape) * (1 + 1j if np.dtype(dtype).kind == "c" else 1)).astype(dtype)
    return x, draw.random(shape) > 0.5, draw.random(shape[0]) > 0.5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [False, True], ids=["elements", "rows"])
def test_writes_are_numpys(dtype, rows):
    x, elements, first = _arrays(dtype)
    mask = first if rows else elements
    for values in (np.array(1, dtype), x[mask][::-1].copy(), x[mask][:1].copy()):
        if values.ndim and len(values) == 1 and not rows:
            values = values.reshape(1)
        want, got = x.copy(), torch.from_numpy(x.copy())
        want[mask] = values
        got[torch.from_numpy(mask)] = torch.from_numpy(np.asarray(values))
        assert np.array_equal(got.numpy(), want)


def test_memory_of_other_kinds():
    x, mask, _ = _arrays(np.complex128)
    for make in (lambda a: a.T, lambda a: a[::2], lambda a: a[:, 1:]):
        want, got = x.copy(), x.copy()
        make(want)[make(mask)] = 1j
        make(torch.from_numpy(got))[make(torch.from_numpy(mask))] = 1j
        assert np.array_equal(got, want)
    line = np.arange(6.0)
    want, t = line.copy(), torch.from_numpy(line)
    holds = np.array([False, True, True, False, True, False])
    want[holds] = want[:3]
    t[torch.from_numpy(holds)] = t[:3]  # read before it is written
    assert np.array_equal(line, want)
    with pytest.raises((IndexError, RuntimeError), match="shape mismatch"):
        t[torch.from_numpy(holds)] = torch.ones(2, dtype=torch.float64)


def _zeroed(a, mask):
    b = a.copy()
    b[mask] = 2 - 1j
    return b, b.real.sum()


def _put(a, mask):
    b = a.copy()
    b[mask] = a[mask] * 2
    return b


@pytest.mark.parametrize("f", [_zeroed, _put])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_compiled_writes_of_complex_numbers(f, dtype):
    x, elements, first = _arrays(dtype)
    for mask in (elements, first):
        for got, want in zip(torch.compile(f)(x, mask), f(x, mask)):
            np.testing.assert_array_equal(got, want)


def test_one_complex_number_for_all_places_is_part_of_a_kernel():
    x, mask, _ = _arrays(np.complex64)
    made = torch.compiler.report(_zeroed, calls=1)(x, mask)
    kinds = [launch.note.kind for program in made.programs for launch in program.launches]
    assert kinds and "call" not in kinds
