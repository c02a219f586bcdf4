"""The native tables are checked where they are built and where sizes come from outside."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime

BIG = 2**31 - 2


def graph(**changes):
    tables = {
        "ninputs": 0,
        "frame": [0, 0],
        "stages": [([], [])],
        "slots": [],
        "steps": [],
        "outputs": [],
        "arena": 0,
    } | changes
    return _runtime.Graph(*tables.values(), None, None)


def test_an_empty_graph():
    assert graph()() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"arena": BIG},
        {"ninputs": -1},
        {"steps": [("kernel", 0, (), 0, 0, BIG, BIG)]},
        {"steps": [("kernel", 0, (), 0, 0, 1, 2)]},
        {"steps": [("gemm", 0, False, (0, 0, 0), ord("N"), ord("N"), BIG, BIG)]},
        {"slots": [("arena", 0, (1, BIG, np.float32))]},
        {"slots": [("arena", 0, None)], "outputs": [("slot", 0, 0, None)]},
        {"slots": [("input", 2**40, (0, 0, np.float32))]},
        {"outputs": [("value", 2**31 - 1)]},
    ],
)
def test_places_outside_the_tables(changes):
    with pytest.raises((ValueError, MemoryError, OverflowError, TypeError)):
        graph(**changes)


def test_sizes_of_a_convolution_that_overflow():
    torch.nn.functional.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 5))  # finds the library
    x, w = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 5), np.float32)
    for dilation in (2**62, 2**61, 2**63 - 1):
        with pytest.raises(ValueError, match="fit"):
            _runtime.convolve(0, x, w, None, (), (1,), (0,), (dilation,), 1, False)
    with pytest.raises(ValueError, match="fit"):
        _runtime.convolve(0, x, w, None, (), (1,), (2**62,), (1,), 1, False)
    with pytest.raises(RuntimeError):
        torch.nn.functional.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 5), dilation=2**62)
