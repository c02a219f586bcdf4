"""Large operators run compiled kernels from their second call on: the number they were compiled with is part of what they are."""

import math

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("first,second", [(0.0, -0.0), (-0.0, 0.0), (1, 1.0), (1, True), (math.nan, 2.0)])
def test_numbers_that_compare_equal_are_told_apart(first, second):
    x = torch.ones(100_000) if not isinstance(first, int) else torch.ones(100_000, dtype=torch.int64)
    for s in (first, first, second, second):
        got = torch.clamp(x, max=5).mul(s)
        expected = torch.clamp(x[:2], max=5).mul(s)
        assert got.dtype == expected.dtype
        assert np.array_equal(got[:2].numpy(), expected.numpy(), equal_nan=True)
        if got.is_floating_point():
            assert np.array_equal(np.signbit(got[:2].numpy()), np.signbit(expected.numpy()))
