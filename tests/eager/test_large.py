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


def _streamed(monkeypatch):
    from flambeau.eager import backend

    monkeypatch.setattr(backend, "STREAMED", 1 << 10)


def test_concatenation_and_rows_of_large_tensors(monkeypatch):
    """A call of a description met before is made by a compiled kernel: the same values, strides and errors as NumPy's first one."""
    _streamed(monkeypatch)
    x, y = torch.randn(2, 30, 8, 9), torch.randn(70, 33, 5)
    last = x.to(memory_format=torch.channels_last)
    i, j, mask = torch.randint(-70, 70, (40,)), torch.randint(0, 5, (40,)), torch.rand(70) > 0.5
    outside = torch.tensor([0, 99]) * torch.ones(40, 1).long()
    cases = [
        *(lambda d=d: torch.cat([x, x.abs()], d) for d in range(-4, 4)),
        *(lambda p=p: torch.cat(p, 1) for p in ([last, last], [last, x], [x, last], [x, x.int()], [x > 0, x > 1])),
        lambda: torch.cat([x.to(torch.bfloat16), x.long(), torch.empty(0)]),
        lambda: torch.cat([x.transpose(0, 1), x.transpose(0, 1), x[:0].transpose(0, 1)], 1),
        lambda: torch.cat([x, x[:, :, 1:]]),
        *(
            lambda k=k: y[k]
            for k in (i, (slice(None), slice(None), j), (i, slice(None), j), (i[:, None], 1, j), (None, i))
        ),
        *(
            lambda k=k: y[k]
            for k in (mask, outside, torch.randn(3), (slice(None), i), torch.tensor([], dtype=torch.int64))
        ),
        lambda: y.transpose(0, 2)[:, :, i],
    ]
    for case in cases:
        met = []
        for _ in range(3):
            try:
                r = case()
                met.append((r.shape, r.stride(), r.dtype, r.to(torch.float64).numpy().tobytes()))
            except (IndexError, RuntimeError) as e:
                met.append((type(e), str(e)))
        assert met[0] == met[1] == met[2]
