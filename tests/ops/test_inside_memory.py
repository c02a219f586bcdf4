"""Calls of which a kernel once read or wrote outside of its memory: they give numbers or an error, plainly and compiled."""

import pytest

import flambeau as torch

CALLS = {
    # Edges that float32 can't tell apart: a place computed by dividing by their distance is no number.
    "histogram of one large number": (lambda x: torch.histogram(x * -8478374.0, 3)[0].sum(), 1.0),
    "histogram of equal large numbers": (lambda x: torch.histogram((x * 1e30).expand(7), 100)[0].sum(), 7.0),
    "histogram between equal edges": (lambda x: torch.histogram(x, torch.ones(4))[0].sum(), 1.0),
    "histogram between edges without order": (
        lambda x: torch.histogram(x, torch.tensor([1.0, 9.0, -9.0, 2.0]))[0].sum(),
        1.0,
    ),
    "histc of one large number": (lambda x: torch.histc(x * -8478374.0, 3).sum(), 1.0),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("name", CALLS)
def test_counts_are_kept(name, compiled):
    fn, want = CALLS[name]
    fn = torch.compile(fn) if compiled else fn
    for _ in range(3):
        assert fn(torch.ones(1)).item() == want


@pytest.mark.parametrize("pivots", [[-1, -1, -1], [1, 2, -3], [-2, 1, 3], [-3, -3, -3]])
def test_pivots_that_no_factorization_gives(pivots):
    """LAPACK takes a block of two where a pivot is below 0, and swaps the row of the next one."""
    with pytest.raises(RuntimeError, match="in pairs"):
        torch.linalg.ldl_solve(torch.eye(3) + 1, torch.tensor(pivots, dtype=torch.int32), torch.ones(3, 1))


def test_pivots_in_pairs():
    a = torch.tensor([[0.0, 1.0, 0.5], [1.0, 0.0, 0.25], [0.5, 0.25, 2.0]])
    ld, pivots, _ = torch.linalg.ldl_factor_ex(a)
    assert (pivots < 0).any()
    b = torch.ones(3, 1)
    torch.testing.assert_close(a @ torch.linalg.ldl_solve(ld, pivots, b), b)
