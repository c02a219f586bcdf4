"""A graph that reads an input and then overwrites it by what doesn't depend on it: what was read is what was there."""

import pytest

import flambeau as torch

PROGRAMS = {
    "filled": lambda x, y: (x * 2, x.zero_()),
    "changed, then filled": lambda x, y: (x.sigmoid_().mul_(4), x * 1, x.fill_(3))[1:],
    "another's copied": lambda x, y: (x + 1, x.copy_(y)),
    "exchanged": lambda x, y: (x * 2, x.copy_(y * 3), y.copy_(y + 1)),
    "read twice": lambda x, y: (x * 2, x.copy_(y), (x - y).sum(), x.zero_()),
    "summed": lambda x, y: (x.sum(), x * 3, x.zero_()),
    "a condition": lambda x, y: (torch.where(y > 0, x, 0.0), x.fill_(1), y * 2),
    "both filled": lambda x, y: (x * y, x.zero_(), y.zero_()),
}


@pytest.mark.parametrize("size", [2, 1000, 70_000])
@pytest.mark.parametrize("name", PROGRAMS)
def test_reads_come_first(name, size):
    f, compiled = PROGRAMS[name], torch.compile(PROGRAMS[name])
    for _ in range(2):
        given = [torch.linspace(-1, 2, size), torch.linspace(1, -3, size)]
        own = [t.clone() for t in given]
        want, got = f(*given), compiled(*own)
        for a, b in zip([*want, *given], [*got, *own], strict=True):
            assert torch.allclose(a, b)
