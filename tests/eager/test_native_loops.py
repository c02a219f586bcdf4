"""Scalar operations whose NumPy function is Python code run as native loops on floating operands: the same bits as that function."""

import itertools

import numpy as np
import pytest

import flambeau as torch
from flambeau.core.body import TABLE

EDGES = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, float("inf"), -float("inf"), float("nan"), 1e-40, -3.0, 3.0, 0.5]
UNARY = {
    "sign": torch.sign,
    "sgn": torch.sgn,
    "angle": torch.angle,
    "signbit": torch.signbit,
    "2 ** x": lambda x: torch.pow(2, x),
    "-inf ** x": lambda x: torch.pow(-float("inf"), x),
    "x ** 0.5": lambda x: x.pow(0.5),
    "x ** -1.5": lambda x: x.pow(-1.5),
}
BINARY = {
    "pow": torch.pow,
    "float_power": torch.float_power,
    "heaviside": torch.heaviside,
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
}
KINDS = ["float32", "float64", "float16", "bfloat16", "int64", "complex64"]


def bits(t):
    t = torch.view_as_real(t) if t.is_complex() else t
    a = t.float().numpy() if t.dtype in (torch.float16, torch.bfloat16) else t.numpy()
    return np.where(np.isnan(a), np.nan, a).tobytes(), t.dtype, t.stride()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_first_and_later_calls_agree(name, kind):
    """The first call of a description runs the function, later ones the loops."""
    dtype = getattr(torch, kind)
    x = torch.tensor(EDGES, dtype=dtype) if dtype.is_floating_point else torch.tensor([1, 2, 3, 1, 2], dtype=dtype)
    rows, columns = torch.meshgrid(x, x, indexing="ij")
    calls = [(x,), (rows.t(),)] if name in UNARY else [(rows, columns), (rows, x), (x, rows.t())]
    for operands in calls:
        fn = {**UNARY, **BINARY}[name]
        try:
            first = bits(fn(*operands))
        except NotImplementedError:
            return
        for _ in range(3):
            assert bits(fn(*operands)) == first


@pytest.mark.parametrize("name", "sgn sign pow angle signbit heaviside logaddexp logaddexp2 sigmoid lgamma erf".split())
def test_there_are_loops(name):
    fn = TABLE[name].numpy
    assert isinstance(fn, np.ufunc) or any(hasattr(fn, word) for word in ("ufunc", "body", "of_reals"))


def test_pairs_of_all_edges():
    """Against NumPy, an element at a time: what the loops give doesn't depend on the place."""
    pairs = list(itertools.product(EDGES, repeat=2))
    x, y = (torch.tensor([p[k] for p in pairs]) for k in (0, 1))
    for _ in range(3):
        out = torch.pow(x, y)
    alone = [torch.pow(torch.tensor([a]), torch.tensor([b])).item() for a, b in pairs]
    np.testing.assert_allclose(out.numpy(), np.array(alone, np.float32), rtol=1e-6)
