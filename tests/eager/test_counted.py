"""Runs of equal elements and counts of numbers are native in eager calls."""

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_runs_and_counts_beside_numpy(dtype):
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 17, 400):
        a = rng.integers(0, 3, n).astype(dtype)
        if dtype[0] == "f":
            a[n // 2] = np.nan
        x, begins = torch.from_numpy(a), np.flatnonzero(np.concatenate([[True], a[1:] != a[:-1]]))
        for _ in range(3):
            values, places, counts = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
            assert np.array_equal(values.numpy(), a[begins], equal_nan=True)
            assert np.array_equal(counts.numpy(), np.diff(begins, append=n))
            assert np.array_equal(values.numpy()[places.numpy()], a, equal_nan=True)
            assert np.array_equal(torch.unique(x).numpy(), np.unique(a, equal_nan=False), equal_nan=True)
            if dtype == "int64":
                assert (
                    np.array_equal(torch.bincount(x).numpy(), np.bincount(a))
                    and len(torch.bincount(x, minlength=9)) == 9
                )
    for _ in range(3):
        with pytest.raises(RuntimeError, match="non-negative integral"):
            torch.bincount(torch.tensor([-1, 2]))
        assert torch.bincount(torch.tensor([], dtype=torch.int64)).shape == (0,)
