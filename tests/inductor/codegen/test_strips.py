"""Sums of columns in strips: their width changes no bit, and columns that are no whole strips are summed as before."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.codegen import kernel
from flambeau.inductor.settings import config


@pytest.mark.parametrize("columns", [512, 520, 96])
@pytest.mark.parametrize("f", [lambda x: x.sum(0), lambda x: x.amax(0), lambda x: x.abs().sum(0)])
def test_width(monkeypatch, columns, f):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2048, columns)).astype("f4"))
    made, lanes = [], []
    most_lanes = kernel._Writer._most_lanes

    def spy(writer):
        lanes.append(most_lanes(writer))
        return lanes[-1]

    monkeypatch.setattr(kernel._Writer, "_most_lanes", spy)
    for wide in (False, True):
        monkeypatch.setattr(kernel, "reads_wide_strips", lambda wide=wide: wide)
        torch.compiler.reset()
        with config.patch(force_disable_caches=True):
            made.append(torch.compile(f)(x))
    assert lanes == [32, 64 if columns % 64 == 0 else 32]
    assert torch.equal(*made)
    np.testing.assert_allclose(made[0].numpy(), f(x.double()).numpy(), rtol=2e-4, atol=1e-3)
