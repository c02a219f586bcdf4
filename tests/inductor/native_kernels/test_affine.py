"""Scales that are chosen for values, and codes of sums: the bits of NumPy's formulas, eager and compiled, for every kind of CPU."""

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.base import affine
from flambeau.inductor import debug
from flambeau.testing import guard_pages

VALUES = {
    "usual": np.linspace(-3, 5, 1001),
    "above 0": np.array([2.0, 7.0]),
    "below 0": np.array([-2.0, -7.5, -1e-3]),
    "zeros": np.array([0.0, -0.0]),
    "small": np.array([1e-42, -1e-43]),
    "great": np.array([3e38, -3e38]),
    "none": np.zeros(0),
}


def chosen(x, signed, reduce_range):
    return torch.ops.quantized._chosen_parameters(x, signed, reduce_range)


@pytest.mark.parametrize("name", VALUES)
def test_chosen_in_a_graph(name):
    x = torch.from_numpy(VALUES[name].astype(np.float32))
    run = torch.compile(chosen, fullgraph=True)
    for signed in (False, True):
        for reduced in (False, True):
            found, expected = run(x, signed, reduced), chosen(x, signed, reduced)
            assert [v.item() for v in found] == [v.item() for v in expected]
            assert (expected[0].dtype, expected[1].dtype) == (torch.float64, torch.int64)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value):
    x = torch.tensor([1.0, value, 2.0])
    for run in (chosen, torch.compile(chosen, fullgraph=True)):
        with pytest.raises(RuntimeError, match="a scale can't be chosen for values that aren't finite"):
            run(x, False, False)


def test_a_graph_calls_the_kernel():
    torch.compiler.reset()
    found: list[str] = []
    debug.listeners.append(found.append)
    try:
        torch.compile(chosen, fullgraph=True)(torch.ones(4), False, True)
    finally:
        debug.listeners.pop()
    assert "chosen_parameters" in "".join(found) and "eager kernel" not in "".join(found)


def by_numpy(sums, scale, shift, zero_point, kind, least):
    line = (1, -1) + (1,) * (sums.ndim - 2)
    made = sums.astype(np.float32)
    if shift is not None:
        made += np.broadcast_to(np.asarray(shift, np.float32), sums.shape[1:2]).reshape(line)
    scale = np.broadcast_to(np.asarray(scale, np.float32), sums.shape[1:2]).reshape(line)
    made = affine.requantized(made, scale, zero_point, kind)
    return made if least is None else np.maximum(made, np.array(least, kind))


def sweep() -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (1, 70), (2, 3, 7), (1, 4, 9, 5), (0, 3), (2, 3, 0)):
        for kind, zero_point in ((np.uint8, 100), (np.int8, -3)):
            sums = rng.integers(-(10**6), 10**6, shape).astype(np.int32)
            scales = rng.uniform(0, 3e-4, shape[1]).astype(np.float32)
            for scale in (scales, np.float32(1e-4), np.full(shape[1], np.nan, np.float32)):
                for shift in (None, rng.normal(size=shape[1]).astype(np.float32) * 1e4, np.float32(0.5)):
                    for least in (None, zero_point):
                        given = sums, scale, shift, zero_point, kind, least
                        found, expected = affine.requantized_sums(*given), by_numpy(*given)
                        assert found.dtype == expected.dtype and np.array_equal(found, expected), given


@pytest.mark.parametrize("cpu", ["", level("avx2"), "default"])
def test_codes_of_sums_on_all_kinds_of_cpu(cpu):
    guard_pages.run_alone(__file__, "sweep()", FLAMBEAU_CPU=cpu)
