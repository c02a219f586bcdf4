"""Sobol sequences: PyTorch's points, plain and scrambled (recorded)."""

import pytest
from flambeau.quasirandom import SobolEngine

import flambeau as torch


def test_plain():
    e = SobolEngine(3)
    assert e.draw(1).tolist() == [[0, 0, 0]] and e.draw(2).tolist() == [[0.5, 0.5, 0.5], [0.75, 0.25, 0.25]]
    again = SobolEngine(3).fast_forward(1)
    assert again.draw(2).tolist() == [[0.5, 0.5, 0.5], [0.75, 0.25, 0.25]]
    assert torch.equal(e.reset().draw(8), SobolEngine(3).draw_base2(3)) and repr(e) == "SobolEngine(dimension=3)"


def test_scrambled():
    e = SobolEngine(5, scramble=True, seed=1)
    want = [3.9977803230285645, 4.0009765625, 4.281189441680908, 3.9997575283050537, 4.009674072265625]
    torch.testing.assert_close(e.draw_base2(3).sum(0), torch.tensor(want))
    assert (
        repr(e) == "SobolEngine(dimension=5, scramble=True, seed=1)"
        and e.draw(1, dtype=torch.float64).dtype is torch.float64
    )


def test_refused():
    with pytest.raises(ValueError, match="dimensionality"):
        SobolEngine(0)
    with pytest.raises(ValueError, match="power of 2"):
        SobolEngine(2).fast_forward(1).draw_base2(1)
