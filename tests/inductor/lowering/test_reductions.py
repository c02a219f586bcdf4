"""Long reductions of operands that aren't as the flattened shape is (broadcast, transposed, cut): by lines, so that no element costs a division."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.base.expr import Div, Mod, terms
from flambeau.inductor.debug import observing
from flambeau.inductor.ir.nodes import Reduction
from flambeau.inductor.ir.values import walk

R = np.random.default_rng(4)


def _pair(m, n):
    return R.random((m, n)), R.random((m, n))


CASES = {
    "outer products": (lambda x, y: np.sum(x[:, :, None] * y[:, None, :]), _pair),
    "outer products of integers": (
        lambda x, y: np.sum((x * 99).astype(np.int64)[:, :, None] * (y * 9).astype(np.int64)[:, None, :]),
        _pair,
    ),
    "over two dimensions of three": (
        lambda x, y: np.sum(x[:3, :, None] * y[:3, None, :], axis=(1, 2)),
        lambda m, n: _pair(5, 9 * n),
    ),
    "a row taken off": (lambda x, y: np.sum((x - y[0]) ** 2), lambda m, n: _pair(9 * m, n)),
    "greatest": (lambda x, y: np.max(x[:, :, None] - y[:, None, :]), _pair),
    "product": (lambda x, y: np.prod(1 + (x[:, :, None] - y[:, None, :]) * 1e-3), _pair),
    "whether any": (lambda x, y: np.any(x[:, :, None] * y[:, None, :] > 0.9999), _pair),
    "transposed": (lambda x, y: np.sum(x * y.T), lambda m, n: (R.random((m, n)), R.random((n, m)))),
    "cut": (lambda x, y: np.sum(x[1:-1, 1:-1] * y[2:, :-2]), lambda m, n: _pair(9 * m, n + 2)),
}
# Lines are made for the first sizes. The others are shorter than a line, or longer.
SIZES = [(60, 40), (70, 33), (3, 3), (2, 90), (700, 5), (130, 70)]


def _divisions(made):
    """The indices of a compiled graph that divide loop variables."""
    nodes = [n for g in made.groups for n in g.nodes]
    values = [w for n in nodes if hasattr(n, "value") for w in walk(n.value) if w.op in ("load", "index")]
    return [w for w in values for atom, _ in terms(w.args[-1]) if isinstance(atom, Div | Mod) and atom.variables()]


@pytest.mark.parametrize("name", CASES)
def test_by_lines(name):
    plain, arguments = CASES[name]
    compiled = torch.compile(plain, dynamic=True)
    found = []
    with observing(lambda gm, made, info: found.append(made)):
        for m, n in SIZES:
            given = arguments(m, n)
            got, want = compiled(*given), plain(*given)
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-11)
    assert len(found) == 1
    assert not _divisions(found[0])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("classes", [2, 31, 5000])
def test_sums_of_rows_that_hold_one_element(classes, dynamic):
    """The sum is known: the element, where its place is one of the row's. Negative zeros are added to zeros."""
    places = torch.tensor([[0], [classes - 1], [1], [-1], [classes], [1]])
    elements = torch.tensor([[2.5], [-1.0], [-0.0], [3.0], [4.0], [float("nan")]])

    def f(x, places, elements):
        held = torch.where(places == torch.arange(x.shape[1]), elements, 0.0)
        return held.sum(1), x - held.sum(1, keepdim=True) * held

    x = torch.rand(6, classes)
    found = []
    with observing(lambda gm, made, info: found.append(made)):
        got = torch.compile(f, dynamic=dynamic)(x, places, elements)
    assert not any(isinstance(n, Reduction) for made in found for g in made.groups for n in g.nodes)
    for g, w in zip(got, f(x, places, elements)):
        torch.testing.assert_close(g, w, equal_nan=True, rtol=0, atol=0)
        assert torch.equal(g.signbit(), w.signbit())
